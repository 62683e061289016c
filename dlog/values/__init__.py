"""Owns the types of the language: one file each, registered here and nowhere else.

To add a type, write its file against the interface in `type.py` and add it to TYPES.
"""

from __future__ import annotations

from dlog.values.bool import BOOL
from dlog.values.date import DATE
from dlog.values.datetime import DATETIME
from dlog.values.decimal import DECIMAL, decimal
from dlog.values.duration import DURATION
from dlog.values.float import FLOAT
from dlog.values.int import INT
from dlog.values.record import Branch, Constructor, RecordType
from dlog.values.string import STRING
from dlog.values.timestamp import TIMESTAMP
from dlog.values.type import MAX_PRECISION, Operation, Type
from dlog.values.unsigned import UNSIGNED

__all__ = [
    "BOOL",
    "BUILTIN_TYPES",
    "DATE",
    "DATETIME",
    "DECIMAL",
    "DURATION",
    "FLOAT",
    "INT",
    "MAX_PRECISION",
    "OPERATIONS",
    "RESERVED_TYPES",
    "STRING",
    "TIMESTAMP",
    "TYPES",
    "UNSIGNED",
    "Branch",
    "Constructor",
    "Operation",
    "RecordType",
    "Type",
    "decimal",
    "grouped",
]

# In the order in which messages name them.
TYPES: tuple[Type, ...] = (
    INT,
    UNSIGNED,
    FLOAT,
    DECIMAL,
    STRING,
    BOOL,
    DATE,
    DATETIME,
    TIMESTAMP,
    DURATION,
)

# Every spelling of a type, LogiQL's and Soufflé's.
BUILTIN_TYPES: dict[str, Type] = {name: type for type in TYPES for name in type.names}

# Names that predicates cannot use.
RESERVED_TYPES = frozenset(name for name, type in BUILTIN_TYPES.items() if type.reserved)

# (operation, names of the input types) -> operations that types implement themselves.
OPERATIONS: dict[tuple[str, ...], Operation] = {k: o for type in TYPES for k, o in type.operations.items()}


def grouped(group: str) -> tuple[str, ...]:
    """The names of the types in a group.

    >>> grouped("integral")
    ('int', 'unsigned')
    """
    return tuple(type.name for type in TYPES if group in type.groups)
