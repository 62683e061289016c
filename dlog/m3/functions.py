"""Owns the external functions of M3: what they take, and what they compute on whole columns.

A function gets one numpy array for each argument, all of one length, and gives an array of that length:
numbers as int64 or float64, strings as arrays of str, dates as datetime64[D].  Users add their own.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlog.errors import DlogError

NUMBER, STRING, DATE, ANY = "number", "string", "date", "any"
Columns = Callable[..., np.ndarray]


@dataclass(frozen=True)
class Function:
    """`takes` has the kind of each argument; with `more`, the last kind any number of times.

    `gives` is the kind of the result.  `compute` is None for functions that the type of their call provides,
    as `lift` of a ring.
    """

    name: str
    takes: tuple[str, ...]
    gives: str
    compute: Columns | None
    more: bool = False
    optional: int = 0

    def kind_of(self, index: int) -> str | None:
        """The kind of an argument, or None when there is none at that place."""
        if index < len(self.takes):
            return self.takes[index]
        return self.takes[-1] if self.more else None

    @property
    def least(self) -> int:
        return len(self.takes) - self.optional


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


BUILTIN = {
    f.name: f
    for f in (
        Function("/", (NUMBER, NUMBER), NUMBER, divide, optional=1),
        Function("div", (NUMBER, NUMBER), NUMBER, divide, optional=1),
        Function("listmax", (NUMBER, NUMBER), NUMBER, _reduce(np.maximum), more=True),
        Function("listmin", (NUMBER, NUMBER), NUMBER, _reduce(np.minimum), more=True),
        Function("max", (NUMBER, NUMBER), NUMBER, _reduce(np.maximum), more=True),
        Function("min", (NUMBER, NUMBER), NUMBER, _reduce(np.minimum), more=True),
        Function("abs", (NUMBER,), NUMBER, np.abs),
        Function("sqrt", (NUMBER,), NUMBER, lambda x: np.sqrt(np.maximum(x, 0.0))),
        Function("pow", (NUMBER, NUMBER), NUMBER, lambda x, y: np.power(x.astype(float), y.astype(float))),
        Function("cos", (NUMBER,), NUMBER, np.cos),
        Function("radians", (NUMBER,), NUMBER, np.radians),
        Function("degrees", (NUMBER,), NUMBER, np.degrees),
        Function("cast_int", (NUMBER,), NUMBER, lambda x: np.trunc(x).astype(np.int64)),
        Function("cast_float", (NUMBER,), NUMBER, lambda x: x.astype(np.float64)),
        Function("date_part", (STRING, DATE), NUMBER, _date_part),
        Function("year_part", (DATE,), NUMBER, _year),
        Function("month_part", (DATE,), NUMBER, _month),
        Function("day_part", (DATE,), NUMBER, _day),
        Function("substring", (STRING, NUMBER, NUMBER), STRING, _texts(_substring, object), optional=1),
        Function("regexp_match", (STRING, STRING), NUMBER,
                 _texts(lambda pattern, text: int(re.search(pattern, text) is not None), np.int64)),
        Function("lift", (ANY,), ANY, None, more=True, optional=1),
    )
}  # fmt: skip
_registered: dict[str, Function] = {}


def register_function(name: str, compute: Columns, takes: tuple[str, ...], gives: str = NUMBER) -> Function:
    """Make `[name: type](..)` available.  `compute` gets and gives whole columns, as numpy arrays.

    >>> register_function("twice", lambda x: 2 * x, ("number",)).takes
    ('number',)
    >>> lookup("twice").compute(np.array([1, 2])).tolist()
    [2, 4]
    """
    if name in BUILTIN:
        raise DlogError(f"{name} is a function of M3 already")
    unknown = next((kind for kind in (*takes, gives) if kind not in (NUMBER, STRING, DATE)), None)
    if unknown is not None:
        raise DlogError(f"unknown kind {unknown!r} of argument or result", help="number, string or date")
    _registered[name] = Function(name, takes, gives, compute)
    return _registered[name]


def lookup(name: str) -> Function | None:
    """By name; M3's own are known in any case."""
    return _registered.get(name) or BUILTIN.get(name) or BUILTIN.get(name.lower())


def known() -> list[str]:
    return [*BUILTIN, *_registered]
