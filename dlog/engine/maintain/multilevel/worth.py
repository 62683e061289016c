"""Owns what the maps of a program are estimated to cost in transactions, by statistics of the store."""

from __future__ import annotations

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
    rows = {relation: float(store.rows(name)) for relation, name in relations.items()}
    distinct = {
        (relation, column): store.distinct(name, column)
        for relation, name in relations.items()
        for column in range(store.predicates[name].arity)
    }
    return estimated(levels.program, Statistics({}, rows, distinct))
