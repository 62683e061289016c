"""Owns the view strategy: an aggregation rule over a join, maintained by its view tree.

For rules that count, or sum integers or decimals, over a conjunction of atoms: the join is never computed, a
changed row costs look-ups in the views beside its path (`dlog.views`).  Decimals are integers in units of
their last digit.  Sums of floats are left to others: a product of sums rounds differently from a sum of
products, and answers must not depend on the strategy.  How a transaction updates views: see `shared_views`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NoReturn

import numpy as np

from dlog import column_functions
from dlog.engine.body.table import Table, Values
from dlog.engine.head.heads import head_rows
from dlog.engine.maintain.body_changes import changed_share
from dlog.engine.maintain.heads.sets import check_new_rows
from dlog.engine.maintain.strategy import CannotFollow, Cycle, Strategy, evaluated_anew
from dlog.engine.maintain.views.explain import explain_views
from dlog.engine.maintain.views.shared_views import RuleViews
from dlog.engine.state.side_state import SideState
from dlog.engine.state.store import Store
from dlog.errors import DataError
from dlog.ir.rules import Program, Rule, Stratum
from dlog.jit import Words
from dlog.planning.versions import facts_name
from dlog.storage.relation.relation import Relation
from dlog.values import Type
from dlog.views.query import Query
from dlog.views.rules.sources import source_name
from dlog.views.run.groups import Groups


class ViewStrategy(Strategy):
    """REQUIRES: `query` is the stratum's `view_query`."""

    way = "views"

    def __init__(
        self,
        program: Program,
        stratum: Stratum,
        query: Query,
        reason: str,
        others: Iterable[Strategy] = (),
    ):
        """`others` are strategies of other strata, whose views it may share."""
        (self.name,) = stratum.predicates
        self.program, self.stratum, self.query, self.reason = program, stratum, query, reason
        self.rule: Rule = stratum.rules[0]
        self.heads = [h for h in self.rule.heads if h.predicate == self.name]
        self.reads = stratum.reads
        self.stamp = f"views {self.name}"
        self.views = self._shared(others) or RuleViews(
            query, {source_name(name): name for name in self.reads}
        )

    def _shared(self, others: Iterable[Strategy]) -> RuleViews | None:
        """The views of another stratum with the same query."""
        shareable = (one for one in others if isinstance(one, ViewStrategy) and one.reads == self.reads)
        return next((one.views for one in shareable if one.query == self.query), None)

    # The interface of strategies

    def ready(self, store: Store) -> bool:
        return self.views.is_known(store, self.stamp) and not len(store.relations[facts_name(self.name)])

    def rebuild(self, cycle: Cycle) -> None:
        store = cycle.store
        try:
            groups = self.views.rebuild(cycle)
        except DataError as error:
            self._give_up(error)
        rows = np.concatenate([self._rows(store, groups, 1), store.relations[facts_name(self.name)].rows()])
        later = Relation.build(
            store.arena, np.unique(rows, axis=0), rows.shape[1], store.relations[self.name].orders
        )
        cycle.evaluation.watch.derived(len(later))
        cycle.publish_difference(self.name, later)
        check_new_rows(cycle, self.name, later.rows())
        self.views.end(store, self.stamp)

    def apply(self, cycle: Cycle) -> None:
        store = cycle.store
        if self.name in cycle.facts:  # base facts that no longer exist
            self.rebuild(cycle)
            return
        try:
            groups = self.views.apply(cycle, self.stamp)
        except DataError as error:
            self._give_up(error)
        erased, inserted = self._rows(store, groups, 0), self._rows(store, groups, 1)
        later, change = store.relations[self.name].apply(inserts=inserted, erases=erased)
        cycle.evaluation.watch.derived(len(change.inserted))
        cycle.publish(self.name, later, change)
        check_new_rows(cycle, self.name, change.inserted)
        self.views.end(store, self.stamp)

    def _give_up(self, error: DataError) -> NoReturn:
        """A view cannot hold an intermediate value, even if the result would fit."""
        self.views.drop()
        raise CannotFollow(f"views cannot hold its values ({error.message})") from None

    def forget(self, store: Store) -> None:
        self.views.forget(store, self.stamp)

    def side_states(self) -> Iterator[SideState]:
        yield self.views

    def estimate(self, cycle: Cycle) -> float:
        return changed_share(cycle, self.reads)

    def explain(self, store: Store) -> list[str]:
        return explain_views(self.query, self.views.sizes(store), self.reason)

    def check(self, store: Store) -> None:
        """The maps are sound, and the head is what its rule derives, by a join."""
        if self.ready(store) and self.views.is_current(store, self.stamp):
            self.views.check()
            expected = evaluated_anew(self.program, self.stratum, store)[self.name]
            same = np.array_equal(store.relations[self.name].rows(), expected.rows())
            assert same, f"{self.name} is not what its rule derives"

    # Rows

    def _rows(self, store: Store, groups: Groups, when: int) -> Words:
        """The rows of the heads for groups as they were (0) or are (1)."""
        there = groups.counts[when] > 0
        columns = {name: groups.keys[there, j] for j, name in enumerate(self.query.free)}
        for aggregate in self.rule.aggregates:
            name = aggregate.result.name
            columns[name] = _values(groups.sums[when][name][there], self.rule.types[name])
        table = Table(int(there.sum()), columns)
        rows = [head_rows(store, head, table, self.rule) for head in self.heads]
        return np.ascontiguousarray(rows[0] if len(rows) == 1 else np.concatenate(rows))


def _values(words: Words, type: Type) -> Values:
    """Sums as the engine has them; decimals are sums of their last digit."""
    return column_functions.widen(words, type).values if type.is_decimal else np.ascontiguousarray(words)
