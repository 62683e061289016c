"""Owns what is measured of levels of maps while they run: rates, sizes, and entries of maps, as statistics by
which the maps may be chosen again.
"""

from __future__ import annotations

from dataclasses import replace

from dlog.language.ast import Node
from dlog.m3.runtime.runtime import Runtime
from dlog.m3.syntax import ast
from dlog.multilevel.selection.sizes import Statistics
from dlog.views.levels.program import Levels


def measured(levels: Levels, runtime: Runtime) -> Statistics:
    """What the maps were chosen by, corrected: `rates` by the rows of each stream that came, `rows` by those
    that it has, `entries` by those of each map.  A map of the values of a column has as many entries as the
    column has values.  O(slots).
    """
    before = levels.options.statistics or Statistics()
    total = max(sum(runtime.changes.values()), 1)
    streams = [s.name for s in levels.query.sources if s.kind == ast.STREAM]
    rates = {name: runtime.changes.get(name, 0) / total for name in streams}
    known = before.grown({name: float(max(n, 0)) for name, n in runtime.sizes.items()})
    entries = [(m.definition, float(runtime.entries_of(m.name))) for m in levels.program.maps]
    values = {place: n for definition, n in entries if (place := _column(definition)) is not None}
    return replace(known, rates=rates, distinct={**known.distinct, **values}, entries=tuple(entries))


def _column(definition: Node) -> tuple[str, int] | None:
    """The column whose values a map has for keys, if it is one of all rows of a relation."""
    body = definition.body if isinstance(definition, ast.AggSum) else None
    if not isinstance(body, ast.Relation) or len(definition.keys) != 1:  # type: ignore[attr-defined]
        return None
    names = [v.name for v in body.variables]
    key = definition.keys[0].name  # type: ignore[attr-defined]
    return (body.name, names.index(key)) if len(set(names)) == len(names) else None
