"""Owns what M3's own functions compute on whole columns.  Which there are and what they take, `functions`
knows.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from dlog.m3.types import vector_columns

Columns = Callable[..., np.ndarray]


def divide(first: np.ndarray, second: np.ndarray | None = None) -> np.ndarray:
    """1 / x, or x / y; 0 where the divisor is 0.

    >>> divide(np.array([2.0, 0.0])).tolist()
    [0.5, 0.0]
    """
    divisor = np.asarray(first if second is None else second, np.float64)
    dividend = np.ones_like(divisor) if second is None else np.asarray(first, np.float64)
    return np.divide(dividend, divisor, out=np.zeros_like(divisor), where=divisor != 0)


def _reduce(ufunc: np.ufunc) -> Columns:
    return lambda *columns: functools.reduce(ufunc, columns)


def _date_part(parts: np.ndarray, dates: np.ndarray) -> np.ndarray:
    out = np.zeros(len(dates), np.int64)
    for part, compute in (("year", _year), ("month", _month), ("day", _day)):
        chosen = np.char.lower(np.asarray(parts, str)) == part
        out[chosen] = compute(dates[chosen])
    return out


def _year(dates: np.ndarray) -> np.ndarray:
    return dates.astype("datetime64[Y]").astype(np.int64) + 1970


def _month(dates: np.ndarray) -> np.ndarray:
    return dates.astype("datetime64[M]").astype(np.int64) % 12 + 1


def _day(dates: np.ndarray) -> np.ndarray:
    return (dates - dates.astype("datetime64[M]")).astype(np.int64) + 1


@functools.cache
def _regular(pattern: str) -> re.Pattern[str]:
    """A pattern as in POSIX and the readers of M3: line ends are ordinary characters, `$` is the end.

    >>> _regular("^a.b$").search("a\\nb") is not None, _regular("^a$").search("a\\n") is not None
    (True, False)
    """
    at_end = re.sub(r"(\\.|\[\^?\]?[^\]]*\])|\$", lambda found: found[1] or r"\Z", pattern, flags=re.DOTALL)
    return re.compile(at_end, re.DOTALL)


def _texts(compute: Callable[..., Any], dtype: Any) -> Columns:
    """A function of texts, computed once for each distinct row of arguments."""

    def columns(*arguments: np.ndarray) -> np.ndarray:
        known: dict[tuple[Any, ...], Any] = {}
        rows = zip(*(a.tolist() for a in arguments), strict=True)
        return np.array([known[r] if r in known else known.setdefault(r, compute(*r)) for r in rows], dtype)

    return columns


def _substring(text: str, start: int, length: int | None = None) -> str:
    """From character `start`, counted from 0; to the end, or `length` characters."""
    start = max(int(start), 0)
    return text[start:] if length is None else text[start : start + max(int(length), 0)]


COMPUTE: dict[str, Columns] = {
    "/": divide,
    "div": divide,
    "listmax": _reduce(np.maximum),
    "listmin": _reduce(np.minimum),
    "max": _reduce(np.maximum),
    "min": _reduce(np.minimum),
    "abs": np.abs,
    "sqrt": lambda x: np.sqrt(np.maximum(x, 0.0)),
    "pow": lambda x, y: np.power(x.astype(float), y.astype(float)),
    "cos": np.cos,
    "sin": np.sin,
    "tan": np.tan,
    "radians": np.radians,
    "degrees": np.degrees,
    "cast_int": lambda x: np.trunc(x).astype(np.int64),
    "cast_float": lambda x: x.astype(np.float64),
    "date_part": _date_part,
    "year_part": _year,
    "month_part": _month,
    "day_part": _day,
    "substring": _texts(_substring, object),
    "vec_length": vector_columns.length,
    "vec_dot": vector_columns.dot,
    "vector_angle": vector_columns.angle,
    "dihedral_angle": vector_columns.dihedral_angle,
    "regexp_match": _texts(lambda pattern, text: int(_regular(pattern).search(text) is not None), np.int64),
}
