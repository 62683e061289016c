"""Owns the value types of the language.  Knows nothing of how values are stored.

A type is what a column holds; a subtype or a union of Soufflé's `.type` is a name for one of these.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_PRECISION = 18  # digits of a decimal that fit an int64


@dataclass(frozen=True)
class Type:
    """One of the built-in types.  `scale` and `precision` matter for decimals only."""

    name: str
    scale: int = 0
    precision: int = MAX_PRECISION

    def __str__(self) -> str:
        if self.name == "decimal" and self != DECIMAL:
            return f"decimal({self.precision}, {self.scale})"
        return self.name

    @property
    def is_numeric(self) -> bool:
        return self.name in ("int", "unsigned", "float", "decimal")

    @property
    def is_decimal(self) -> bool:
        return self.name == "decimal"


INT = Type("int")
UNSIGNED = Type("unsigned")
FLOAT = Type("float")
STRING = Type("string")
BOOL = Type("bool")
DATE = Type("date")
DATETIME = Type("datetime")
DECIMAL = Type("decimal", scale=6)


def decimal(precision: int, scale: int) -> Type:
    """REQUIRES: 0 <= scale <= precision <= MAX_PRECISION."""
    assert 0 <= scale <= precision <= MAX_PRECISION
    return Type("decimal", scale, precision)


# Every spelling of a built-in type, LogiQL's and Soufflé's.
BUILTIN_TYPES: dict[str, Type] = {
    "int": INT,
    "number": INT,
    "unsigned": UNSIGNED,
    "float": FLOAT,
    "string": STRING,
    "symbol": STRING,
    "bool": BOOL,
    "date": DATE,
    "datetime": DATETIME,
    "decimal": DECIMAL,
}
