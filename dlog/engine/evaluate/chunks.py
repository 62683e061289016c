"""Owns splitting a recursion into independent chunks: a fixpoint for each, on one core or several.

If every rule of a linear recursion passes one column on from its driver to its head, that column is the
*pivot* of its predicate, and rows with different pivots never derive anything together: reach(x, z) <-
reach(x, y), edge(y, z) passes x on.  So a chunk of pivot values runs to its fixpoint alone.  Its sets then
fit the caches, several threads need no locks, and chunks of the first column come out in order.

Correct output: as the fixpoint of all seeds at once, whatever the chunks and threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from dlog.engine.body.parallel import in_threads
from dlog.engine.evaluate.driven import Driven
from dlog.ir.rules import Atom, Var
from dlog.jit import Words
from dlog.planning.versions import base_name
from dlog.storage.index.index import Index
from dlog.storage.relation.relation import Relation

if TYPE_CHECKING:
    from dlog.engine.evaluate.fixpoint import Fixpoint

CHUNK_ROWS = 40_000  # rows to aim at: a hash table of them takes 1 MiB
FIRST_SEEDS = 256  # seeds of the first chunk, which shows how many rows a seed leads to
GROWTH = 8  # a chunk has at most this many times the seeds of the one before
WORTH_THREADS = 1 << 18  # rows from which on threads pay
_CHOICES = 4096  # combinations of columns to try


def find_pivots(items: Sequence[Driven], names: Sequence[str]) -> dict[str, int] | None:
    """A pivot column for each predicate, if there are such; the first ones in column order.

    O(columns of one predicate) for one that is recursive alone.
    """
    if any(item.predicates.intersection(names) for item in items):
        return None
    arities = {base_name(i.driver.predicate): len(i.driver.args) for i in items}
    arities |= {head.predicate: len(head.args) for i in items for head in i.rule.heads}
    if set(arities) != set(names) or np.prod([float(arities[name]) for name in names]) > _CHOICES:
        return None
    for columns in product(*(range(arities[name]) for name in names)):
        pivots = dict(zip(names, columns, strict=True))
        if all(_hands_on(item, pivots) for item in items):
            return pivots
    return None


def _hands_on(item: Driven, pivots: dict[str, int]) -> bool:
    """Whether a rule passes the pivot of its driver to its heads."""
    pivot = _at(item.driver, pivots)
    return isinstance(pivot, Var) and all(_at(head, pivots) == pivot for head in item.rule.heads)


def _at(atom: Atom, pivots: dict[str, int]) -> object:
    return atom.args[pivots[base_name(atom.predicate)]]


def run_chunks(fixpoint: Fixpoint, pivots: list[int], jobs: int) -> None:
    """The whole fixpoint, chunk by chunk, into the store's relations."""
    store, watch = fixpoint.store, fixpoint.watch
    cutter = _Cutter.of([fixpoint.seed_columns(name) for name in fixpoint.names], pivots)
    workers = [fixpoint]
    while len(workers) == 1 and cutter.work(fixpoint):
        if jobs > 1 and cutter.rows_to_come > WORTH_THREADS:
            workers += [fixpoint.twin() for _ in range(jobs - 1)]
    if len(workers) > 1:
        for worker in workers:
            worker.others = _rows_of([w for w in workers if w is not worker])
        in_threads([cutter.loop_of(worker) for worker in workers], watch)
    for worker in workers:
        worker.measure()
    watch.pending(0)
    total = 0
    for q, name in enumerate(fixpoint.names):
        parts = [cutter.results[number][q] for number in sorted(cutter.results)]
        total += sum(part.shape[1] for part in parts)
        store.relations[name] = _relation(store.relations[name], parts, pivots[q])
    watch.derived(total - fixpoint.seeds)


def _rows_of(workers: list[Fixpoint]) -> Callable[[], int]:
    return lambda: sum(worker.finished + worker.rows for worker in workers)


@dataclass
class _Cutter:
    """Hands out chunks, each large enough to be worth a call and small enough for the caches."""

    seeds: list[Words]  # for each queue, sorted by its pivot
    pivots: list[int]
    values: Words  # pivots of all seeds, sorted
    at: int = 0  # seeds handed out
    last: int = 0
    number: int = 0
    rows: int = 0  # derived by the seeds that are done
    done: int = 0
    results: dict[int, list[Words]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, seeds: list[Words], pivots: list[int]) -> _Cutter:
        ordered = []
        for columns, pivot in zip(seeds, pivots, strict=True):
            key = columns[pivot]
            if pivot and columns.shape[1]:
                columns = columns[:, np.argsort(key, kind="stable")]
            ordered.append(columns)
        values = [columns[pivot] for columns, pivot in zip(ordered, pivots, strict=True)]
        merged = values[0] if len(values) == 1 else np.sort(np.concatenate(values))
        return cls(ordered, pivots, np.ascontiguousarray(merged))

    @property
    def per_seed(self) -> float:
        return self.rows / self.done if self.done else CHUNK_ROWS / FIRST_SEEDS

    @property
    def rows_to_come(self) -> float:
        return self.per_seed * (len(self.values) - self.at)

    def work(self, worker: Fixpoint) -> bool:
        """Let a worker do the next chunk; returns whether there was one."""
        with self.lock:
            if self.at >= len(self.values):
                return False
            number, start, end = self.number, self.at, self._end()
            self.number, self.last, self.at = number + 1, end - start, end
            expected = self.per_seed * (end - start)
        low, last = int(self.values[start]), int(self.values[end - 1])
        worker.queues.begin_chunk(self.pivots, low, last + 1, expected)
        result = worker.run_chunk(
            [_between(s, p, low, last) for s, p in zip(self.seeds, self.pivots, strict=True)]
        )
        with self.lock:
            self.results[number] = result
            self.rows += sum(part.shape[1] for part in result)
            self.done += end - start
        return True

    def _end(self) -> int:
        """Where the next chunk ends: a pivot's seeds stay together."""
        wanted = int(CHUNK_ROWS / max(self.per_seed, 1e-9))
        if self.last:
            wanted = min(wanted, GROWTH * self.last)
        end = min(self.at + max(wanted, 1), len(self.values))
        return int(np.searchsorted(self.values, self.values[end - 1], side="right"))

    def loop_of(self, worker: Fixpoint) -> Callable[[], None]:
        def loop() -> None:
            while self.work(worker):
                pass

        return loop


def _between(columns: Words, pivot: int, low: int, last: int) -> Words:
    """Those with low to last in the pivot column; last may be the greatest int64."""
    values = columns[pivot]
    return columns[:, np.searchsorted(values, low) : np.searchsorted(values, last, side="right")]


def _relation(before: Relation, parts: list[Words], pivot: int) -> Relation:
    """Chunks as a relation with the same orders; those of the first column are already in order."""
    n = sum(part.shape[1] for part in parts)
    if n == len(before):
        return before
    if pivot == 0:
        return sorted_relation(before, n, parts)
    return Relation.from_columns(before.arena, list(np.concatenate(parts, axis=1)), before.orders)


def sorted_relation(before: Relation, n: int, parts: Iterable[Words]) -> Relation:
    """The n rows that a relation has grown to, arrays of columns one after the other in order, with the
    same orders.  Each part is done before the next one is requested."""
    natural, orders = tuple(range(before.arity)), before.orders
    if natural not in orders:
        columns = np.concatenate([part.copy() for part in parts], axis=1)
        return Relation.from_columns(before.arena, list(columns), orders)

    def put(words: Words, at: int) -> None:
        for part in parts:
            for c, column in enumerate(part):
                words[at + c * n : at + c * n + len(column)] = column
            at += part.shape[1]

    relation = Relation.of_index(Index.of_sorted(before.arena, before.arity, n, put))
    for order in orders:
        if order != natural:
            relation.add_order(order)
    return relation
