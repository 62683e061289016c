"""The types of the language by name, for modules that only pass them on.  Each one lives in `dlog.values`."""

from dlog.values import (
    BOOL,
    BUILTIN_TYPES,
    DATE,
    DATETIME,
    DECIMAL,
    DURATION,
    FLOAT,
    INT,
    MAX_PRECISION,
    STRING,
    TIMESTAMP,
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
    "DURATION",
    "FLOAT",
    "INT",
    "MAX_PRECISION",
    "STRING",
    "TIMESTAMP",
    "UNSIGNED",
    "Type",
    "decimal",
]
