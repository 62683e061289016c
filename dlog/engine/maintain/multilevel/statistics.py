"""Owns what the store knows of the relations that maps read, as statistics by which maps are chosen."""

from __future__ import annotations

from collections.abc import Mapping

from dlog.engine.state.store import Store
from dlog.ir.rules import Program
from dlog.multilevel.selection.estimate import Estimate, estimated
from dlog.multilevel.selection.sizes import Statistics
from dlog.views.levels.program import Levels
from dlog.views.rules.sources import source_name


def estimate(levels: Levels, program: Program, store: Store) -> Estimate:
    """Rows of all relations are taken to change equally often."""
    names = {source.name for source in levels.query.sources}
    relations = {source_name(name): name for name in program.predicates if source_name(name) in names}
    return estimated(levels.program, statistics(relations, store))


def statistics(
    relations: Mapping[str, str], store: Store, rates: Mapping[str, float] | None = None
) -> Statistics:
    """`relations`: the predicate of each.  `rates`: how often rows of each change; default: equally often."""
    rows = {relation: float(store.rows(name)) for relation, name in relations.items()}
    distinct = {
        (relation, column): store.distinct(name, column)
        for relation, name in relations.items()
        for column in range(store.predicates[name].arity)
    }
    return Statistics(rates or {}, rows, distinct)
