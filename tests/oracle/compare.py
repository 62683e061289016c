"""Owns the comparison of an engine's rows with an oracle's: as sets, with exact floats and exact types.

same(db["reach"].rows(), facts["reach"], types)       # raises AssertionError with the difference
"""

from __future__ import annotations

import datetime
import struct
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from dlog.ir.rules import Program
from dlog.values import Type

from .values import Row, Value

SHOWN = 12  # rows of each side of a difference

_PYTHON_TYPES: dict[str, type] = {
    "int": int,
    "unsigned": int,
    "float": float,
    "decimal": Decimal,
    "string": str,
    "bool": bool,
    "date": datetime.date,
    "datetime": datetime.datetime,
    "timestamp": datetime.datetime,
    "duration": datetime.timedelta,
}


def same(
    database_rows: Iterable[Row], oracle_rows: Iterable[Row], types: Sequence[Type], name: str = ""
) -> bool:
    """True if both are the same set of rows.  Otherwise raises AssertionError with what is different."""
    text = difference(database_rows, oracle_rows, types, name)
    if text:
        raise AssertionError(text)
    return True


def same_program(
    database: Mapping[str, Iterable[Row]], oracle: Mapping[str, Iterable[Row]], program: Program
) -> bool:
    """`same` for every predicate that a program shows; all differences in one error."""
    texts = []
    for predicate in program.predicates.values():
        if not predicate.auxiliary:
            types = [column.type for column in predicate.columns]
            name = predicate.name
            texts.append(difference(database[name], oracle[name], types, name))
    if any(texts):
        raise AssertionError("\n".join(filter(None, texts)))
    return True


def difference(
    database_rows: Iterable[Row], oracle_rows: Iterable[Row], types: Sequence[Type], name: str = ""
) -> str:
    """What is different, in lines for a person; "" if nothing is.

    >>> from dlog.values import INT
    >>> print(difference([(1,), (2,), (2,)], {(1,), (3,)}, [INT], "p"))
    p: 3 rows, expected 2
      missing     p(3)
      unexpected  p(2)
      repeated    p(2)
    """
    found: Counter[Hashable] = Counter()
    shown: dict[Hashable, Row] = {}
    for row in database_rows:
        found[_key(row, types)] += 1
        shown[_key(row, types)] = row
    wanted = {_key(row, types): row for row in oracle_rows}
    parts = {
        "missing": [row for key, row in wanted.items() if key not in found],
        "unexpected": [shown[key] for key in found if key not in wanted],
        "repeated": [shown[key] for key, count in found.items() if count > 1],
    }
    if not any(parts.values()):
        return ""
    lines = [f"{name or 'rows'}: {found.total()} rows, expected {len(wanted)}"]
    for word, rows in parts.items():
        lines += [f"  {word:<11} {name}({', '.join(map(_show, row))})" for row in rows[:SHOWN]]
        if len(rows) > SHOWN:
            lines.append(f"  {word:<11} ... {len(rows) - SHOWN} more")
    return "\n".join(lines)


def _key(row: Row, types: Sequence[Type]) -> Hashable:
    if len(row) != len(types):
        return ("wrong width", *map(repr, row))
    return tuple(_exact(value, type) for value, type in zip(row, types, strict=True))


def _exact(value: Any, type: Type) -> Hashable:
    """Equal only for the same value of the right Python type: floats by their bits (NaN apart)."""
    if type.is_record:
        return repr(value)
    if _PYTHON_TYPES[type.name] is not value.__class__:
        return ("wrong type", value.__class__.__name__, repr(value))
    if type.name == "float":
        return "nan" if value != value else struct.pack("<d", value)
    return value


def _show(value: Value) -> str:
    """
    >>> _show(0.1), _show(Decimal("0.10")), _show(datetime.date(2026, 1, 2))
    ('0.1', '0.10', '2026-01-02')
    """
    return repr(value) if isinstance(value, str | bool | int | float) else str(value)
