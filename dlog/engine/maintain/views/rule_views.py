"""Owns the views of one query in transactions, for all strata that have this query."""

from __future__ import annotations

from collections.abc import Mapping

from dlog.engine.maintain.maps.shared_maps import SharedMaps
from dlog.engine.state.store import Store
from dlog.views.query import Query
from dlog.views.run.groups import GroupViews


class RuleViews(SharedMaps):
    """REQUIRES: `relations` gives the predicate of each relation of the query."""

    maps: GroupViews | None

    def __init__(self, query: Query, relations: Mapping[str, str]):
        super().__init__(relations)
        self.query = query

    def made(self, store: Store, jobs: int) -> GroupViews:
        return GroupViews(self.query, store.dictionary, self.sizes(store), jobs)

    def fits(self, store: Store) -> bool:
        """Whether the relations have about the same sizes as before: the tree depends on them."""
        assert self.maps is not None
        return all(_alike(n, self.maps.sizes[name]) for name, n in self.sizes(store).items())

    def sizes(self, store: Store) -> dict[str, int]:
        return {a.name: store.rows(self.relations[a.relation]) for a in self.query.atoms}


def _alike(n: int, before: int) -> bool:
    return n <= 8 * max(before, 8) and before <= 8 * max(n, 8)
