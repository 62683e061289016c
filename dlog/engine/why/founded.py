"""Owns the search inside one stratum: which facts hold without supporting themselves, and by what.

Lifecycle.  1 Goals that are not expanded yet are expanded backwards, a batch at a time, into instances:
head, children in the same stratum, binding.  2 Whenever an instance has all its children proved, proofs are
propagated forwards; each fact stores the first instance that proved it, so its children were proved before
it.  3 The search ends when the goal is proved.  It touches only facts that the goal depends on, shallow
derivations first.

Facts have numbers; number 0 is a fact that is always proved, which fills up instances with few children.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from dlog.engine.body.table import Table
from dlog.engine.state.store import Store
from dlog.engine.why.alternatives import Alternative, Bodies, aggregations, alternatives
from dlog.ir.rules import Atom, Rule, Stratum
from dlog.planning.versions import facts_name

Row = tuple[int, ...]
Key = tuple[str, Row]
BATCH = 256  # goals that are expanded at once


class Instance:
    """One derivation by a plain rule: an alternative and its binding."""

    __slots__ = ("alternative", "index", "table")

    def __init__(self, alternative: Alternative, table: Table, index: int):
        self.alternative, self.table, self.index = alternative, table, index


Support = Instance | tuple[Rule, Atom] | None  # a plain rule, an aggregation, or a base fact


def is_base(store: Store, name: str, row: Row) -> bool:
    """Whether a fact is a base fact.  A predicate without rules has base facts only.  O(log n)."""
    relation = store.relations.get(facts_name(name), store.relations[name])
    return relation.contains(row)


class Founded:
    """The state of the search in one stratum."""

    def __init__(self, bodies: Bodies, stratum: Stratum):
        self.bodies = bodies
        self.stratum = stratum
        self.ways = {name: alternatives(stratum, name) for name in stratum.predicates}
        self.sums = {name: aggregations(stratum, name) for name in stratum.predicates}
        self.numbers: dict[Key, int] = {}
        self.keys: list[Key] = [("", ())]
        self.support: dict[int, Support] = {}
        self.proved = np.ones(1, bool)
        self.waiting: deque[int] = deque()
        self.heads = np.empty(0, np.int64)
        self.children = np.empty((0, 1), np.int64)
        self.groups: list[tuple[int, Alternative, Table]] = []  # (first instance, where it came from)

    def prove(self, key: Key) -> bool:
        """Whether a derivation of a fact is found.

        A search that was cut short continues with a higher limit.  A recursive min or max may also have been
        derived through values that better ones have replaced since, and any row through rows that others
        subsume: these are derived again, round by round.
        What is proved stays proved, by what proved it.
        """
        while not self._prove(key):
            if self.bodies.truncated:
                self.bodies.truncated = False
                self.bodies.limit *= 16
            elif not self._add_replaced():
                return False
            self.waiting.extend(n for n in range(1, len(self.keys)) if not self.proved[n])
        return True

    def _add_replaced(self) -> bool:
        """One more round of candidates, besides the current values; returns whether any was new."""
        store, grown = self.bodies.store, False
        for name in self.stratum.predicates if self.stratum.subsumptions else self.stratum.combine:
            base = store.relations.get(facts_name(name))
            parts = [] if base is None else [base.rows()]
            parts += [self.bodies.derived(way) for way in self.ways[name]]
            relation, change = store.relations[name].apply(inserts=np.concatenate(parts))
            store.relations[name] = relation
            grown |= len(change.inserted) > 0
        return grown

    def of(self, key: Key) -> Support:
        """What proved a fact.  REQUIRES: `prove` has found it."""
        return self.support[self.numbers[key]]

    def _prove(self, key: Key) -> bool:
        number = self._number(key)
        while not self.proved[number] and self.waiting:
            self._expand()
        return bool(self.proved[number])

    # Facts

    def _number(self, key: Key) -> int:
        """The number of a fact; a new one is proved at once if possible, or waits."""
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.keys)
            self.keys.append(key)
            self._grow(number + 1)
            self._look(number, key)
        return number

    def _grow(self, n: int) -> None:
        if n > len(self.proved):
            grown = np.zeros(2 * n, bool)
            grown[: len(self.proved)] = self.proved
            self.proved = grown

    def _look(self, number: int, key: Key) -> None:
        name, row = key
        if is_base(self.bodies.store, name, row):
            self._settle(number, None)
            return
        for rule, head in self.sums[name]:
            if self.bodies.aggregates_to(rule, head, np.array(row, np.int64)):
                self._settle(number, (rule, head))
                return
        self.waiting.append(number)

    def _settle(self, number: int, support: Support) -> None:
        self.proved[number] = True
        self.support[number] = support

    # Backwards

    def _expand(self) -> None:
        """Instances of the next goals of one predicate."""
        name = self.keys[self.waiting[0]][0]
        batch: list[int] = []
        while self.waiting and len(batch) < BATCH and self.keys[self.waiting[0]][0] == name:
            batch.append(self.waiting.popleft())
        batch = [n for n in batch if not self.proved[n]]
        if not batch:
            return
        goals = np.array([self.keys[n][1] for n in batch], np.int64).reshape(len(batch), -1)
        news = False
        for way in self.ways[name]:
            which, table = self.bodies.instances(way, goals)
            if len(which):
                news |= self._add(way, np.array(batch)[which], table)
        if news:
            self._propagate()

    def _add(self, way: Alternative, heads: np.ndarray, table: Table) -> bool:
        """Stores instances; returns whether one of them is already proved."""
        atoms = [a for a in way.atoms if a.predicate in self.ways]
        columns = [self._atom_numbers(way, atom, table) for atom in atoms]
        children = np.zeros((len(heads), max(len(columns), self.children.shape[1])), np.int64)
        for place, column in enumerate(columns):
            children[:, place] = column
        if children.shape[1] > self.children.shape[1]:
            wider = np.zeros((len(self.children), children.shape[1]), np.int64)
            wider[:, : self.children.shape[1]] = self.children
            self.children = wider
        self.groups.append((len(self.heads), way, table))
        self.heads = np.concatenate([self.heads, heads])
        self.children = np.concatenate([self.children, children])
        return bool(self.proved[children].all(axis=1).any())

    def _atom_numbers(self, way: Alternative, atom: Atom, table: Table) -> np.ndarray:
        rows = self.bodies.atom_rows(way, atom, table)
        if rows.shape[1] == 0:
            return np.full(len(rows), self._number((atom.predicate, ())))
        distinct, back = np.unique(rows, axis=0, return_inverse=True)
        numbers = [self._number((atom.predicate, tuple(row))) for row in distinct.tolist()]
        return np.array(numbers, np.int64)[back.reshape(-1)]

    # Forwards

    def _propagate(self) -> None:
        """Proves what follows from what is proved.  O(instances) for each step of the longest new proof."""
        while True:
            ready = np.flatnonzero(~self.proved[self.heads] & self.proved[self.children].all(axis=1))
            if not len(ready):
                return
            numbers, first = np.unique(self.heads[ready], return_index=True)
            starts = [start for start, _, _ in self.groups]
            groups = np.searchsorted(starts, ready[first], side="right") - 1
            for number, instance, group in zip(numbers, ready[first], groups, strict=True):
                start, way, table = self.groups[group]
                self.support[int(number)] = Instance(way, table, int(instance) - start)
            self.proved[numbers] = True
