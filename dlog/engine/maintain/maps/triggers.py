"""Owns triggers of strata that keep maps: a few rows of a base predicate go into the maps, and what changed
there into the heads.

There is one if all strata that read the predicate share their maps; other rows take the general path.  1 the
predicate changes.  2 the machine runs the trigger of the maps and drains them, in one call; of several
machines, the one that has the row.  3 a kernel changes each head.  4 the stamps are those of the new version.
What reads a head follows as after any other trigger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dlog.engine.maintain.maintain import Maintenance
from dlog.engine.maintain.maps.keep import MapStrategy
from dlog.engine.maintain.maps.places import HeadPlaces
from dlog.engine.maintain.maps.shared_maps import SharedMaps
from dlog.engine.maintain.triggers.kernels import TOO_LARGE
from dlog.engine.maintain.triggers.terminal_head import HeadChange, HeadChanges
from dlog.engine.maintain.triggers.trigger import MOST_ROWS, Room, Rows, Trigger
from dlog.engine.maintain.triggers.trigger_search import is_read, of_predicate
from dlog.engine.state.store import Store
from dlog.errors import DataError
from dlog.heads.group_kernels import GROUP
from dlog.heads.map_kernels import change_mapped_head
from dlog.jit import Words
from dlog.m3.runtime import layout
from dlog.m3.runtime.few_rows import FewRows, FewRowsOfParts
from dlog.planning.deltas import INSERT
from dlog.planning.versions import facts_name, stale_name
from dlog.storage.arena.arena import Arena
from dlog.storage.arena.arena_kernels import RESULT
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import Relation

NO_RELATIONS: dict[str, Relation] = {}


class MappedHead:
    """A head whose rows are groups of maps.  REQUIRES: it has no other rows."""

    def __init__(self, name: str, relation: Relation, places: HeadPlaces, most: int):
        """`most`: entries that change at once."""
        self.name, self.facts = name, facts_name(name)
        self.arity, self.orders, self.arena = relation.arity, tuple(relation.orders), relation.arena
        self._empty: Relation | None = None  # base facts that were found to be none
        self._layout = places.layout(self.orders)
        self._roots = np.zeros(2 * len(self.orders), np.int64)
        self._rows = np.zeros(2 * most * self.arity, np.int64)
        self._places, self._words = self._roots.data, self._rows.data
        self.later: Relation | None = None  # the new version; None: it is the old one
        self.change: HeadChange | None = None

    def bring(self, relations: Mapping[str, Relation]) -> bool:
        """Have the roots of the head in their places; False: it has other column orders now."""
        head = relations[self.name]
        return head.put_roots_of(self.orders, self._places) or self._put_roots(head)

    def _put_roots(self, head: Relation) -> bool:
        """The same of a version that was made in another way."""
        return head.rows_in(self.orders) >= 0 and head.put_roots(self._places) > 0

    def has_facts(self, relations: Mapping[str, Relation]) -> bool:
        """Whether it has base facts: then a row may have another derivation."""
        facts = relations[self.facts]
        if facts is self._empty:
            return False
        self._empty = None if len(facts) else facts
        return len(facts) > 0

    def follow(self, changed: Words, n: int) -> bool:
        """Change it by n entries; False: it has to take the general path.  REQUIRES: its roots are in their
        places, and the lock is held."""
        arena = self.arena
        found = change_mapped_head(arena.A, self._layout, self._roots, changed, n, self._rows)
        if found < 0:
            return False
        roots = self._places[len(self.orders) :].tolist()
        self.later = Relation.of_list(arena, self.arity, self.orders, roots) if found else None
        words = self._words[: found * self.arity].tobytes()
        self.change = HeadChange(self.name, self.orders[0], words, arena.words[RESULT] if found else 0)
        return True

    def taken(self) -> Relation | None:
        """The new version, if there is one.  Returned once, so that no version is held."""
        later, self.later = self.later, None
        return later


@dataclass
class MapTrigger(Trigger):
    stamps: Sequence[str] = field(kw_only=True)
    maps: SharedMaps = field(kw_only=True)
    relation: str = field(kw_only=True)  # of the maps, which the predicate is
    rows_in: FewRows | FewRowsOfParts = field(kw_only=True)
    heads: Sequence[MappedHead] = field(kw_only=True)
    stale: Sequence[str] = field(kw_only=True)  # marks of absorbed predicates: they must be there
    ends: bool = field(kw_only=True)  # nothing follows from the heads
    keeps_state: ClassVar[bool] = True
    committed: Mapping[str, Relation] = field(default_factory=dict)  # the relations that readers see
    changed_state: dict[str, Relation] = field(default_factory=dict)
    changed_relations: Mapping[str, Relation] = field(default_factory=dict)
    n_rows: int = 0  # that the last firing changed
    groups: int = 0  # the same

    def __post_init__(self, arena: Arena, room: Room | None) -> None:
        super().__post_init__(arena, room)
        self.made_maps = self.maps.maps

    def fits(self, relation: Relation) -> bool:
        return self.made_maps is self.maps.maps and super().fits(relation)

    def bring_roots(self, relations: Mapping[str, Relation], committed: Mapping[str, Relation]) -> bool:
        first = None if self.maps.is_due else relations.get(self.stamps[0])
        if first is None or (first is not self.maps.after and first is not self.maps.before):
            return False
        if any(relations.get(stamp) is not first for stamp in self.stamps):
            return False
        if any(name not in relations for name in self.stale):
            return False
        self.changed_relations, self.committed = relations, committed
        self.outgrown = not all(head.bring(relations) for head in self.heads)
        return not self.outgrown and not any(head.has_facts(relations) for head in self.heads)

    def fire(self, arena: Arena, relation: Relation, rows: Rows) -> int:
        """How many groups changed, or NOTHING, or TOO_LARGE.  REQUIRES: `bring_roots` has returned true."""
        found = super().fire(arena, relation, rows)
        stamp, committed = self.changed_relations[self.stamps[0]], self.committed.get(self.stamps[0])
        self.changed_relations = self.committed = NO_RELATIONS
        if found < 0:
            return found
        if self._follow(arena, rows if len(rows) == 1 else self.changed(), stamp, committed):
            return self.groups
        self.version(relation)  # releases the new roots
        return TOO_LARGE

    def _follow(self, arena: Arena, rows: Rows, stamp: Relation, committed: Relation | None) -> bool:
        """Change maps and heads; False: the general path takes back what has been done."""
        if layout.EMPTY in rows[0] if len(rows) == 1 else (np.asarray(rows) == layout.EMPTY).any():
            return False
        maps, sign = self.maps, 1 if self.sign == INSERT else -1
        self.n_rows = len(rows)
        maps.begin_step(stamp, committed)
        maps.changes.append((self.relation, rows, sign))
        try:
            n = self.groups = self.rows_in.apply(rows, sign)
        except DataError:  # a map cannot hold a value
            maps.drop()
            return False
        if n < 0:
            return False
        self.changed_state = state = dict[str, Relation]()
        with arena.lock:
            arena.release_many()
            for head in self.heads if n else ():
                if not head.follow(self.rows_in.changed, n):
                    return False
                if self.ends and (later := head.taken()) is not None:
                    state[head.name] = later
        after = maps.new_stamp(arena)
        for name in self.stamps:
            state[name] = after
        return True

    def put_state(self, relations: dict[str, Relation]) -> None:
        relations.update(self.changed_state)
        self.changed_state = {}

    def own_heads(self) -> dict[str, tuple[Relation, Change]]:
        given = [(head.name, head.taken(), head.change) for head in self.heads]
        return {
            name: (later, change[name])
            for name, later, change in given
            if later is not None and change is not None
        }

    def changed_heads(self, store: Store, found: int) -> Mapping[str, Change] | None:
        if not self.ends:
            return None
        changes = [head.change for head in self.heads if head.change is not None]
        return changes[0] if len(changes) == 1 else HeadChanges(changes)

    @property
    def operations(self) -> int:
        return self.n_rows + self.groups

    def costs(self) -> Mapping[str, int] | int:
        """Those of the first stratum, which changes the maps for all."""
        if len(self.ways) == 1:
            return self.operations
        return dict.fromkeys(self.ways, 0) | {next(iter(self.ways)): self.operations}


def map_trigger(maintenance: Maintenance, store: Store, name: str, sign: int) -> MapTrigger | None:
    """A trigger for rows of a predicate; None: they take the general path."""
    numbers = maintenance.updated(name, store)
    strategies = [maintenance.strategy(number, store) for number in numbers]
    found = [strategy for strategy in strategies if isinstance(strategy, MapStrategy)]
    shared = found[0].shared
    relations = [relation for relation, predicate in shared.relations.items() if predicate == name]
    if len(found) < len(strategies) or shared.maps is None or len(relations) != 1:
        return None
    rows_in = shared.maps.few_rows(relations[0], MOST_ROWS)
    if rows_in is None:
        return None
    heads = [_mapped_head(store, strategy, rows_in.drain.most) for strategy in found]
    mapped = [head for head in heads if head is not None]
    if len(mapped) < len(heads):
        return None
    ways = {strategy.name: strategy.way for strategy in found}
    return MapTrigger(
        **of_predicate(maintenance, store, name, sign, ways),
        stamps=[strategy.stamp for strategy in found],
        maps=shared,
        relation=relations[0],
        rows_in=rows_in,
        heads=mapped,
        stale=[stale_name(p) for number in numbers for p in _absorbed(maintenance, store, number)],
        ends=not any(is_read(maintenance, strategy.name) for strategy in found),
    )


def _absorbed(maintenance: Maintenance, store: Store, number: int) -> Iterator[str]:
    """Predicates that are not updated, since only this stratum and others like it read them."""
    for below in maintenance.cones.below.get(number, ()):
        if maintenance.is_absorbed(below, store):
            yield from maintenance.program.strata[below].predicates


def _mapped_head(store: Store, strategy: MapStrategy, most: int) -> MappedHead | None:
    """None: the head may give a key two values, or it is not simple."""
    places, declared = strategy.head_places(store), store.predicates[strategy.name]
    if places is None:
        return None
    keys = {c.places[0] for c in places.columns[: declared.n_keys] if c.kind == GROUP}
    if declared.is_functional and len(keys) < len(places.results.keys):
        return None
    return MappedHead(strategy.name, store.relations[strategy.name], places, most)
