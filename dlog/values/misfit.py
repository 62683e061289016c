"""Owns the reasons why a type rejects a value, and how messages show values.  Knows no type by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dlog.errors import DataError

if TYPE_CHECKING:
    from dlog.values.type import Type

FINER = "is finer than a microsecond"

_NANOSECONDS = re.compile(r"(\.[0-9]{6})[0-9]+")
_KIND_NAMES = {"str": "string", "dict": "object", "NoneType": "null", "Decimal": "decimal"}


class Misfit(ValueError):
    """A value that its type does not have; the text is the reason."""


class BadValue(DataError):
    """A value that its type cannot hold.  `row` counts from 0, the message from 1."""

    def __init__(self, row: int, reason: str):
        super().__init__(f"row {row + 1}: {reason}")
        self.row = row
        self.reason = reason


def not_a(text: str, type: Type) -> Misfit:
    article = "an" if str(type)[0] in "aiu" else "a"
    return Misfit(f"{quoted(text)} is not {article} {type}{type.form}")


def not_a_time(text: str, type: Type, parse: Callable[[str], Any]) -> Misfit:
    """Of a text that `parse` does not read: it may only have too many digits."""
    return Misfit(f"{quoted(text)} {FINER}") if is_finer_text(text, parse) else not_a(text, type)


def is_finer_text(text: str, parse: Callable[[str], Any]) -> bool:
    """Whether a text would be read without its digits after the microseconds."""
    return parse(_NANOSECONDS.sub(r"\1", text)) is not None


def outside(text: str, type: Type) -> Misfit:
    return Misfit(f"{shortened(text)} is outside the range of {type}{type.range_note}")


def wrong_kind(value: Any, type_: Type) -> Misfit:
    kind = _KIND_NAMES.get(type(value).__name__, type(value).__name__)
    article = "an" if kind[0] in "aeiou" else "a"
    return Misfit(f"{shown(value)} is {article} {kind}, {type_} expected")


def quoted(text: str) -> str:
    return f'"{shortened(text)}"'


def shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def shown(value: Any) -> str:
    """A Python value in a message."""
    if isinstance(value, str):
        return quoted(value).encode(errors="replace").decode()
    try:
        return shortened(str(value))
    except ValueError:  # an integer of thousands of digits
        return "the number"


def is_not(value: Any, type: Type) -> str:
    """Why a value has no code."""
    shown = repr(value) if isinstance(value, str) else str(value)
    return f"{shown} is not {type.called}"
