"""The types that other modules name, from `dlog.values`, where each has its own file."""

from dlog.values import (
    BOOL,
    BUILTIN_TYPES,
    DATE,
    DATETIME,
    DECIMAL,
    FLOAT,
    INT,
    MAX_PRECISION,
    STRING,
    UNSIGNED,
    Type,
    decimal,
)

__all__ = [
    "BOOL",
    "BUILTIN_TYPES",
    "DATE",
    "DATETIME",
    "DECIMAL",
    "FLOAT",
    "INT",
    "MAX_PRECISION",
    "STRING",
    "UNSIGNED",
    "Type",
    "decimal",
]
