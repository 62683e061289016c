"""Owns the maps of one rule in transactions: which there are, when others take their place, how they are
checked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial

from dlog.engine.maintain.maps.shared_maps import SharedMaps
from dlog.engine.maintain.multilevel.moved import Moved
from dlog.engine.maintain.multilevel.statistics import statistics
from dlog.engine.maintain.multilevel.writes import Writes
from dlog.engine.maintain.strategy import Cycle
from dlog.engine.state.store import Store
from dlog.errors import DataError
from dlog.m3.syntax import ast
from dlog.multilevel.meaning import Meaning
from dlog.multilevel.names import same
from dlog.multilevel.program import Refusal
from dlog.multilevel.selection.choice import Selection
from dlog.multilevel.selection.estimate import corrections
from dlog.multilevel.selection.sizes import Statistics
from dlog.values import BUILTIN_TYPES
from dlog.views.levels.program import Levels, reconsidered, side_by_side
from dlog.views.levels.sampled import Sample
from dlog.views.run.groups import Groups
from dlog.views.run.level_groups import LevelGroups

# Definitions are evaluated over up to this many rows.  It takes about rows^3 steps, where aggregates are
# nested; over more rows maps are filled anew instead, by all rows at once.
FEW_ROWS = 40
FEW = 1_000  # rows over which maps are chosen: over fewer they cost less than the search


class RuleLevels(SharedMaps):
    """The maps that cost least by what the store knows; over few rows those of full compilation.

    1 transactions count the rows that they change.  2 when sizes or the mix of relations have moved, maps are
    chosen again (`moved`).  3 maps that stay keep what they have, new ones are computed from rows, the rest
    goes.

    REQUIRES: `relations` gives the predicate of each relation of the program; `tables` never change.
    """

    maps: LevelGroups | None

    def __init__(self, levels: Levels, relations: Mapping[str, str], tables: Collection[str] = ()):
        super().__init__(relations)
        self.levels, self.tables, self.moved = levels, frozenset(tables), Moved()
        self._writes = Writes()

    def made(self, store: Store, jobs: int) -> LevelGroups:
        self.levels, self.moved = self._chosen(store), Moved(self.known(store))
        return LevelGroups(self.levels, store.dictionary, jobs)

    def fits(self, store: Store) -> bool:
        return not self.moved.has_moved(self.known(store))

    # ---- the choice

    def known(self, store: Store, measured: bool = False) -> Statistics:
        """The statistics of the store, with the rates at which relations have changed.  `measured`: with the
        numbers of entries of the maps, and what was found of the rows that were added to maps."""
        basis = self.moved.basis
        changing = [relation for relation, name in self.relations.items() if name not in self.tables]
        rates = self.moved.rates(changing)
        if rates is None:
            rates = dict(basis.rates) if basis is not None else dict.fromkeys(changing, 1.0)
        rates = dict.fromkeys(self.relations, 0.0) | rates
        known = statistics(self.relations, store, rates)
        if not measured or self.maps is None:
            return known
        runtime, program = self.maps.runtime, self.levels.program
        entries = [(m.definition, float(runtime.entries_of(m.name))) for m in program.maps]
        known = replace(known, entries=tuple(entries))
        return replace(known, written=basis.written if basis is not None else ())

    def _corrected(self, known: Statistics) -> Statistics:
        """With the rows that were added to maps lately.  What was found of maps that are not stored any more
        stays as it was."""
        found = corrections(self.levels.program, known, *self._writes.since(self.moved.seen))
        gone = (pair for pair in known.written if all(same(pair[0], d) is None for d, _ in found))
        return replace(known, written=(*found, *gone))

    def current(self, store: Store) -> Levels:
        """What the maps are, or would be if they were made now."""
        return self.levels if self.maps is not None else self._chosen(store)

    def _chosen(self, store: Store) -> Levels:
        known = self.known(store)
        return reconsidered(self.levels, known, times=1) if _is_worth(known) else self.levels

    def selections(self, store: Store) -> tuple[Mapping[str, Selection | Refusal], Sample]:
        """Several choices of maps side by side, with what they are estimated by."""
        known = self.known(store, measured=True)
        return side_by_side(self.levels.query, known), Sample(known, tuple(self.relations), "rows")

    # ---- in transactions

    @property
    def is_due(self) -> bool:  # type: ignore[override]
        return self.moved.is_due

    def settle(self) -> None:
        for relation, rows, _ in self.changes:
            self.moved.add(relation, len(rows))

    def rebuild(self, cycle: Cycle) -> Groups:
        groups = super().rebuild(cycle)
        if self.is_due:
            self.moved.begin_anew()
        self._writes.forget()
        return groups

    def _start(self, cycle: Cycle) -> None:
        super()._start(cycle)
        if self.maps is not None:
            runtime = self.maps.runtime
            added = {m.name: runtime.added_to(m.name) for m in self.levels.program.maps}
            self._writes.note({name: n for name, n in added.items() if n is not None}, self.moved.seen)

    def apply(self, cycle: Cycle, stamp: str) -> Groups:
        groups = super().apply(cycle, stamp)
        if self.is_due:
            self._choose_again(cycle.store)
        return groups

    def _choose_again(self, store: Store) -> None:
        """REQUIRES: the maps are those of the relations in the store."""
        known = self._corrected(self.known(store, measured=True))
        self.moved.begin_anew()
        self._writes.begin_anew()
        if not self.moved.has_moved(known):
            return
        found = reconsidered(self.levels, known) if _is_worth(known) else self.levels
        if found is not self.levels:
            self.go_over(store, found)
        self.moved.basis = known  # now: an interrupt leaves what was known

    def go_over(self, store: Store, found: Levels) -> None:
        """Maintain the same results by other maps, unless one of them cannot hold a value.

        REQUIRES: there are maps, those of the relations in the store.
        """
        assert self.maps is not None
        try:
            self.maps = self.maps.by(found, lambda relation: store.relations[self.relations[relation]].rows())
        except DataError:
            return
        self.levels = found
        self._writes.forget()


def _is_worth(known: Statistics) -> bool:
    """Whether there are so many rows that it matters which maps there are."""
    return sum(known.rows.values()) >= FEW


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
        fresh = LevelGroups(state.levels, store.dictionary)
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
