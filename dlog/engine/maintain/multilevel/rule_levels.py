"""Owns the maps of one program of levels in transactions, and how they are checked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from dlog.engine.maintain.maps.shared_maps import SharedMaps
from dlog.engine.state.store import Store
from dlog.m3.syntax import ast
from dlog.multilevel.meaning import Meaning
from dlog.values import BUILTIN_TYPES
from dlog.views.levels.program import Levels
from dlog.views.run.level_groups import LevelGroups

# Definitions are evaluated over up to this many rows.  It takes about rows^3 steps, where aggregates are
# nested; over more rows maps are filled anew instead, by all rows at once.
FEW_ROWS = 40


class RuleLevels(SharedMaps):
    """REQUIRES: `relations` gives the predicate of each relation of the program."""

    def __init__(self, levels: Levels, relations: Mapping[str, str]):
        super().__init__(relations)
        self.levels = levels

    def made(self, store: Store, jobs: int) -> LevelGroups:
        return LevelGroups(self.levels, store.dictionary, jobs)


def check_levels(state: RuleLevels, store: Store) -> None:
    """Assert that every map has what its definition says, over the rows in the store."""
    assert state.maps is not None
    rows = {relation: store.relations[name].rows() for relation, name in state.relations.items()}
    reports = state.levels.program.maps
    if sum(map(len, rows.values())) <= FEW_ROWS:
        tuples = {name: [tuple(row) for row in found.tolist()] for name, found in rows.items()}
        meaning = Meaning(tuples, partial(_code, store))
        expected = {m.name: meaning.table(m.definition, m.keys) for m in reports}
    else:
        fresh = state.made(store, 1)
        for relation, found in rows.items():
            fresh.apply(relation, found, 1)
        expected = {m.name: fresh.contents(m.name) for m in reports}
    for report in reports:
        assert state.maps.contents(report.name) == expected[report.name], (
            f"{report.name} is not its definition"
        )


def _code(store: Store, constant: ast.Constant) -> int:
    if isinstance(constant.value, int):
        return constant.value
    return store.encode_value(constant.value, BUILTIN_TYPES[constant.type])
