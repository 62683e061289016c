"""Owns the strategy of levels of maps: one predicate, maintained over its cone.

For rules with inline aggregates, negation, inequalities or self-joins over whole numbers and decimals: one M3
program maintains all aggregates that a rule asks for, with the maps that their changes need
(`dlog.multilevel`).  Auxiliary predicates are not read; their strata are absorbed
(`dlog.engine.maintain.cones`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from dlog import column_functions
from dlog.column_functions.decimals import narrow, widen
from dlog.engine.body.table import Table
from dlog.engine.head.heads import head_rows
from dlog.engine.maintain.cones import cone_reads
from dlog.engine.maintain.maps.keep import MapStrategy
from dlog.engine.maintain.maps.places import HeadPlaces, key_place, places_of
from dlog.engine.maintain.multilevel.explain import explain_levels
from dlog.engine.maintain.multilevel.rule_levels import RuleLevels, check_levels
from dlog.engine.maintain.strategy import CannotFollow, Cycle, Strategy
from dlog.engine.state.store import Store
from dlog.ir.rules import Program, Rule, Stratum
from dlog.jit import Words
from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.planning.versions import facts_name
from dlog.values import Type
from dlog.views.levels.program import Levels
from dlog.views.rules.sources import source_name
from dlog.views.run.groups import Groups


class LevelStrategy(MapStrategy):
    """REQUIRES: `levels` is the `level_program` of the stratum's predicate."""

    shared: RuleLevels
    way = "multilevel"
    maps_are = "levels of maps"
    over_cone = True

    def __init__(
        self,
        program: Program,
        stratum: Stratum,
        levels: Levels,
        reason: str,
        others: Iterable[Strategy] = (),
    ):
        """`others` are strategies of other strata, whose maps it may share."""
        self.reason = reason
        alike = (o for o in self.alike(stratum, others) if _same(o.levels, levels))
        found = next(alike, None)
        reads = cone_reads(program, stratum)
        names = {source.name for source in levels.query.sources}
        relations = {source_name(name): name for name in sorted(reads) if source_name(name) in names}
        shared = found.shared if found is not None else RuleLevels(levels, relations, _tables(program))
        super().__init__(program, stratum, shared)
        self.reads = frozenset(relations.values())
        self.rule = self._aggregation_rule()

    @property
    def levels(self) -> Levels:
        return self.shared.levels

    def _aggregation_rule(self) -> Rule | None:
        """The rule whose groups and aggregates the maps contain; None: they contain rows of the predicate."""
        (rule, *others) = self.stratum.rules
        return rule if rule.aggregates and not others and len(rule.heads) == 1 else None

    def rebuild(self, cycle: Cycle) -> None:
        if len(cycle.store.relations[facts_name(self.name)]):
            raise CannotFollow("it has base facts, too")
        super().rebuild(cycle)

    def check_maps(self, store: Store) -> None:
        check_levels(self.shared, store)

    def explain(self, store: Store) -> list[str]:
        return explain_levels(self.shared, store, self.reason)

    # Rows

    def head_places(self, store: Store) -> HeadPlaces | None:
        maps = self.shared.maps
        results = None if maps is None else maps.results()
        if results is None:
            return None
        if self.rule is None:
            types = store.column_types(self.name)
            return HeadPlaces([key_place(number, type) for number, type in enumerate(types)], results)
        named = {column.name: _variable(column.value) for column in self.levels.query.columns}
        (head,) = self.rule.heads
        return places_of(store, self.rule, head, results, named)

    def rows(self, store: Store, groups: Groups, when: int) -> Words:
        there = groups.counts[when] > 0
        if self.rule is None:
            return self._derived(store, groups.keys[there])
        (head,) = self.rule.heads
        columns = {}
        for name, values in self._columns(groups, when):
            if name in self.rule.types:
                columns[name] = _values(values[there], self.rule.types[name])
        return np.ascontiguousarray(head_rows(store, head, Table(int(there.sum()), columns), self.rule))

    def _columns(self, groups: Groups, when: int) -> Iterator[tuple[str, Words]]:
        """The variables of the rule."""
        query = self.levels.query
        for column in query.columns:
            name = _variable(column.value)
            if name in query.groups:
                yield column.name, groups.keys[:, query.groups.index(name)]
            else:
                yield column.name, groups.sums[when][name]

    def _derived(self, store: Store, keys: Words) -> Words:
        """Rows of the predicate.  A decimal that does not fit its column is reported by what evaluates."""
        for column, type in enumerate(store.column_types(self.name)):
            if type.is_decimal:
                _, fits = narrow(widen(np.ascontiguousarray(keys[:, column]), type), type)
                if not fits.all():
                    raise CannotFollow(f"a value does not fit {type}")
        return np.ascontiguousarray(keys)


def _same(one: Levels, other: Levels) -> bool:
    """Whether two heads of a rule have the same results."""
    return replace(one.query, name="", columns=()) == replace(other.query, name="", columns=())


def _tables(program: Program) -> frozenset[str]:
    """Predicates that never change."""
    return frozenset(program.directed("table"))


def _variable(value: Node) -> str:
    assert isinstance(value, ast.Variable)
    return value.name


def _values(words: Words, type: Type) -> object:
    words = np.ascontiguousarray(words)
    return column_functions.widen(words, type).values if type.is_decimal else words
