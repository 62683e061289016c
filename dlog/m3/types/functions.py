"""Owns the external functions of M3: their names, arguments and results.  Users add their own.

A function gets one numpy array for each argument, all of one length, and returns an array of that length:
numbers as int64 or float64, strings as arrays of str, dates as datetime64[D].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dlog.errors import DlogError

NUMBER, STRING, DATE, ANY = "number", "string", "date", "any"
Columns = Callable[..., Any]


@dataclass(frozen=True)
class Function:
    """`takes` has the kind of each argument, the last `optional` of them may be missing; with `more`, the
    last kind may be repeated.  `gives` is the kind of the result; `columns` is the user's function.
    """

    name: str
    takes: tuple[str, ...]
    gives: str
    columns: Columns | None = None
    more: bool = False
    optional: int = 0

    @property
    def compute(self) -> Columns | None:
        """The function on columns; None for `lift`, which the ring of its type provides."""
        if self.columns is not None:
            return self.columns
        from dlog.m3.types.function_columns import COMPUTE  # numpy is only needed to run

        return COMPUTE.get(self.name)

    def kind_of(self, index: int) -> str | None:
        """The kind of an argument, or None if there is none at that place."""
        if index < len(self.takes):
            return self.takes[index]
        return self.takes[-1] if self.more else None

    @property
    def least(self) -> int:
        return len(self.takes) - self.optional


BUILTIN = {
    f.name: f
    for f in (
        Function("/", (NUMBER, NUMBER), NUMBER, optional=1),
        Function("div", (NUMBER, NUMBER), NUMBER, optional=1),
        Function("listmax", (NUMBER, NUMBER), NUMBER, more=True),
        Function("listmin", (NUMBER, NUMBER), NUMBER, more=True),
        Function("max", (NUMBER, NUMBER), NUMBER, more=True),
        Function("min", (NUMBER, NUMBER), NUMBER, more=True),
        Function("abs", (NUMBER,), NUMBER),
        Function("sqrt", (NUMBER,), NUMBER),
        Function("pow", (NUMBER, NUMBER), NUMBER),
        Function("cos", (NUMBER,), NUMBER),
        Function("sin", (NUMBER,), NUMBER),
        Function("tan", (NUMBER,), NUMBER),
        Function("radians", (NUMBER,), NUMBER),
        Function("degrees", (NUMBER,), NUMBER),
        Function("cast_int", (NUMBER,), NUMBER),
        Function("cast_float", (NUMBER,), NUMBER),
        Function("date_part", (STRING, DATE), NUMBER),
        Function("year_part", (DATE,), NUMBER),
        Function("month_part", (DATE,), NUMBER),
        Function("day_part", (DATE,), NUMBER),
        Function("substring", (STRING, NUMBER, NUMBER), STRING, optional=1),
        Function("regexp_match", (STRING, STRING), NUMBER),
        Function("vec_length", 3 * (NUMBER,), NUMBER),
        Function("vec_dot", 6 * (NUMBER,), NUMBER),
        Function("vector_angle", 6 * (NUMBER,), NUMBER),
        Function("dihedral_angle", 12 * (NUMBER,), NUMBER),
        Function("lift", (ANY,), ANY, more=True, optional=1),
    )
}
REPLACEABLE = frozenset(("sin", "tan", "vec_length", "vec_dot", "vector_angle", "dihedral_angle"))
_registered: dict[str, Function] = {}


def register_function(name: str, compute: Columns, takes: tuple[str, ...], gives: str = NUMBER) -> Function:
    """Make `[name: type](..)` available.  `compute` takes and returns whole columns, as numpy arrays.
    Functions of geometry may be replaced: programs bring their own of the same names.

    >>> register_function("twice", lambda x: 2 * x, ("number",)).takes
    ('number',)
    >>> import numpy as np
    >>> lookup("twice").compute(np.array([1, 2])).tolist()
    [2, 4]
    """
    if name in BUILTIN and name not in REPLACEABLE:
        raise DlogError(f"{name} is already a function of M3")
    unknown = next((kind for kind in (*takes, gives) if kind not in (NUMBER, STRING, DATE)), None)
    if unknown is not None:
        raise DlogError(f"unknown kind {unknown!r} of argument or result", help="number, string or date")
    _registered[name] = Function(name, takes, gives, compute)
    return _registered[name]


def lookup(name: str) -> Function | None:
    """By name; M3's own functions are found in any case."""
    return _registered.get(name) or BUILTIN.get(name) or BUILTIN.get(name.lower())


def known() -> list[str]:
    return [*BUILTIN, *_registered]
