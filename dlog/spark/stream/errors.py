"""Owns the transfer of errors from a shard's process to the user: encoded as JSON, raised again unchanged.

Knows nothing of shards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dlog.errors import DlogError, DlogErrors


class Place(NamedTuple):
    """Where an error is, with the text to show."""

    file: str
    line: int
    column: int
    text: str

    def excerpt(self) -> str:
        return self.text


def encoded(error: DlogError) -> list[dict[str, Any]]:
    """Everything that is printed of an error, one entry for each of several.

    >>> raised(encoded(DlogError("no", span=Place("a.dl", 1, 2, "p(x)."), help="yes"))).render()
    'a.dl:1:2: error: no\\np(x).\\nhelp: yes'
    """
    errors = error.errors if isinstance(error, DlogErrors) else [error]
    return [{"message": e.message, "place": _place(e), "help": e.help} for e in errors]


def _place(error: DlogError) -> Place | None:
    span = error.span
    return None if span is None else Place(span.file, span.line, span.column, span.excerpt())


def raised(entries: Sequence[Mapping[str, Any]]) -> DlogError:
    """The error that `encoded` encoded."""
    found = [
        DlogError(entry["message"], span=entry["place"] and Place(*entry["place"]), help=entry["help"])
        for entry in entries
    ]
    return found[0] if len(found) == 1 else DlogErrors(found)
