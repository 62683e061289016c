"""Owns the view strategy: an aggregation rule over a join, maintained by its view tree.

For rules that count, or sum integers or decimals, over a conjunction of atoms: the join is never computed, a
changed row costs look-ups in the views beside its path (`dlog.views`).  Decimals are integers in units of
their last digit.  Sums of floats are left to others: a product of sums rounds differently from a sum of
products, and answers must not depend on the strategy.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dlog import column_functions
from dlog.engine.body.table import Table, Values
from dlog.engine.head.heads import head_rows
from dlog.engine.maintain.maps.keep import MapStrategy
from dlog.engine.maintain.maps.places import HeadPlaces, places_of
from dlog.engine.maintain.strategy import Strategy
from dlog.engine.maintain.views.explain import explain_views
from dlog.engine.maintain.views.rule_views import RuleViews
from dlog.engine.state.store import Store
from dlog.ir.rules import Program, Rule, Stratum
from dlog.jit import Words
from dlog.values import Type
from dlog.views.query import Query
from dlog.views.rules.sources import source_name
from dlog.views.run.groups import Groups


class ViewStrategy(MapStrategy):
    """REQUIRES: `query` is the stratum's `view_query`."""

    way = "views"
    maps_are = "views"

    def __init__(
        self,
        program: Program,
        stratum: Stratum,
        query: Query,
        reason: str,
        others: Iterable[Strategy] = (),
    ):
        """`others` are strategies of other strata, whose views it may share."""
        self.query, self.reason = query, reason
        found = (other.views for other in self.alike(stratum, others) if other.query == query)
        relations = {source_name(name): name for name in stratum.reads}
        self.views: RuleViews = next(found, None) or RuleViews(query, relations)
        super().__init__(program, stratum, self.views)
        self.rule: Rule = stratum.rules[0]
        self.heads = [h for h in self.rule.heads if h.predicate == self.name]

    def explain(self, store: Store) -> list[str]:
        return explain_views(self.query, self.views.sizes(store), self.reason)

    def head_places(self, store: Store) -> HeadPlaces | None:
        maps = self.views.maps
        if maps is None or len(self.heads) > 1:
            return None
        return places_of(store, self.rule, self.heads[0], maps.results())

    def rows(self, store: Store, groups: Groups, when: int) -> Words:
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
