"""Owns the export of levels of maps: a nested query -> the text of an M3 program, as a consumer reads it."""

from __future__ import annotations

from dataclasses import replace

from dlog.errors import DlogError
from dlog.m3.consumers.consumers import fitted
from dlog.views.levels.program import Levels, Options, levels
from dlog.views.m3.export import Target, checked_text
from dlog.views.nested import NestedQuery


def level_text(query: NestedQuery, to: Target, options: Options) -> tuple[Levels, str]:
    """The levels of a query and the text of their program, read back and checked."""
    if options.inputs and to.consumer.name != "a5":
        help = "write --for a5"
        raise DlogError(f"{to.consumer.name} has no maps with input variables", help=help)
    found = levels(query, replace(options, batch=to.batch), as_maps=to.consumer.in_cpp)
    return found, checked_text(fitted(found.m3, to.consumer))
