"""Owns the fixpoint of driven rules: queues of rows that drive plans until nothing new comes.

Correct output: the least set of rows that holds the seeds and everything the rules derive from it.

Lifecycle.  1 the seeds, the results of rules outside the recursion, begin the queues.  2 `drive` runs slices
of the kernel; between slices limits are checked, and queues get room.  3 a predicate that bodies read besides
the driver is *read*: its new rows must be in its indices before they drive, so that of two rows that only
together derive something, the later one finds the earlier.  When the kernel has nothing left to do these rows
are added, in one batch, and it continues.  4 at the end relations take over the queues.

With supports (see `storage.queue.support_kernels`) every derivation is counted as well, and the caller
gets the supports.  If bodies read a predicate besides the driver, all queues then run in rounds: what a
round adds has one stage, and bodies may read a predicate as it was *earlier*, without the rows of the round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dlog.engine.evaluate.chunks import find_pivots, run_chunks, sorted_relation
from dlog.engine.evaluate.driven import Driven, place, plan_driven
from dlog.engine.evaluate.variant_measures import VariantMeasures
from dlog.engine.evaluate.variants import Variant, Variants
from dlog.engine.state.limits import Watch
from dlog.engine.state.measure import Measures
from dlog.engine.state.store import Store
from dlog.jit import DISABLED, Words
from dlog.lftj import drive_layout as d
from dlog.lftj.drive import drive
from dlog.lftj.triejoin import BUDGET, FIRST_BUDGET, NO_WORDS
from dlog.planning.options import ALWAYS, NEVER
from dlog.planning.versions import base_name, is_earlier
from dlog.storage.queue import queue_reading
from dlog.storage.queue.row_queue import RowQueues
from dlog.storage.queue.row_queue_kernels import Q_COUNT, Q_READY, Q_WAITING
from dlog.storage.relation.relation import Relation

RECORDS = 1 << 18  # operations of a slice that makes records: there is room for one for each operation
OUTPUT_ROWS = 1 << 12  # rows of output between two accesses to the sets: two columns stay in the cache

_drive = np.errstate(all="ignore")(drive) if DISABLED else drive


@dataclass(frozen=True)
class Surroundings:
    """What a fixpoint needs from the evaluation it is part of.

    `method` forces a kind of set (see `storage.queue.row_queue`); `jobs` are the cores it may use.
    """

    watch: Watch
    measures: Measures
    method: str | None = None
    jobs: int = 1


@dataclass(frozen=True)
class Supports:
    """`seeds` are the supports of the rows that relations have from the start, in their order.

    `keep` gets all rows in the end, a predicate's at once or in parts: its name, and a (arity + 1, n)
    array whose last row are the supports.
    """

    seeds: Mapping[str, Words]
    keep: Callable[[str, Words], None]


def run_fixpoint(
    store: Store,
    names: Sequence[str],
    items: list[Driven],
    around: Surroundings,
    combine: Mapping[str, str] | None = None,
    supports: Supports | None = None,
) -> None:
    """Derive all that follows from the relations `names` by driven rules, into these relations.

    With `combine`, all of them are functions of which the best value of a key counts, by min or max, and no
    body reads one besides the driver.  REQUIRES: every recursive rule of these predicates is among the items,
    once for each recursive atom; if derivations are counted they have one head each, and read as earlier
    the atoms before the driver.
    """
    names = sorted(names)
    if not any(len(store.relations[name]) for name in names):
        return
    earlier = {name for item in items for name in item.versions if is_earlier(name)}
    for name in earlier:
        relation = store.relations[base_name(name)]
        store.relations[name] = Relation(store.arena, relation.arity, relation.orders)
    try:
        _run(store, names, items, around, combine, supports)
    finally:
        for name in earlier:
            store.relations.pop(name).close()


def _run(
    store: Store,
    names: list[str],
    items: list[Driven],
    around: Surroundings,
    combine: Mapping[str, str] | None,
    supports: Supports | None,
) -> None:
    plans = [(item, plan_driven(store, item)) for item in items]
    variants = [Variant(item, plan) for item, plan in plans if plan is not None]
    for variant in variants:
        variant.item.measure.planned(variant.plan.compiled)
    pivots = None if combine else find_pivots([v.item for v in variants], names)
    fixpoint = Fixpoint(store, names, variants, around, combine, supports)
    if pivots is None or not variants:
        fixpoint.run()
        fixpoint.store_results()
    else:
        # One thread at a time stores records.
        alone = fixpoint.account.traced or supports is not None or fixpoint.variants.use_records
        run_chunks(fixpoint, [pivots[name] for name in names], 1 if alone else around.jobs)


class Fixpoint:
    """The running queues and variants of one thread."""

    def __init__(
        self,
        store: Store,
        names: list[str],
        members: list[Variant],
        around: Surroundings,
        combine: Mapping[str, str] | None = None,
        supports: Supports | None = None,
    ):
        self.store, self.names, self.around, self.supports = store, names, around, supports
        self.watch = around.watch
        self.number = {name: q for q, name in enumerate(names)}
        self.read = set(names) & {p for v in members for p in v.item.predicates}
        self.earlier = sorted({p for v in members for p in v.item.versions if is_earlier(p)})
        self.gated = set(names) if self.read and supports is not None else self.read
        self.combine = {self.number[name]: op for name, op in (combine or {}).items()}
        self.variants = Variants(store, self.number, members, OUTPUT_ROWS, supports is not None)
        self.account = VariantMeasures(self.variants, around.measures)
        # Rows that a queue must have room for, one of them for look-ups.
        self.room = self.variants.heads * OUTPUT_ROWS + 1
        self.queues = self._queues()
        self.scratch = np.empty(2 * OUTPUT_ROWS, np.int64)
        self.seeds = sum(len(store.relations[name]) for name in names)
        self.budget = FIRST_BUDGET
        self.finished = 0  # rows of chunks that are done
        self.others: Callable[[], int] = lambda: 0  # rows that other threads have

    def _queues(self) -> RowQueues:
        method, option = self.around.method, self.store.options.sorted_runs
        if method is None and option == ALWAYS:
            method = "runs"
        arities = [self.store.predicates[name].arity for name in self.names]
        made = RowQueues(arities, method, self.combine, self.supports is not None, option != NEVER)
        made.least_waiting = max(made.least_waiting, 2 * self.room)
        return made

    def twin(self) -> Fixpoint:
        """Another one for another thread, with its own queues and states."""
        made = Fixpoint(self.store, self.names, [v.twin() for v in self.variants.members], self.around)
        made.account.announced = self.account.announced
        return made

    # Running

    def run(self) -> None:
        for name, q in self.number.items():
            self.queues.start(q, self.seed_columns(name), self.room)
            if name in self.gated:
                self.queues[q, Q_READY] = self.queues.count(q)
        self.to_the_end()
        while self.take_in():
            self.to_the_end()

    def seed_columns(self, name: str) -> Words:
        """The initial rows of a queue."""
        columns = self.store.relations[name].rows().T
        return columns if self.supports is None else np.vstack([columns, self.supports.seeds[name]])

    def run_chunk(self, seeds: list[Words]) -> list[Words]:
        """All rows that follow from some seeds, a (arity, n) array for each queue, sorted."""
        for q, columns in enumerate(seeds):
            self.queues.start(q, columns, self.room)
        self.variants.rewind()
        self.to_the_end()
        self.variants.add_directories()
        self.finished += self.rows
        taken = [queue_reading.take(self.queues, q) for q in range(self.queues.n)]
        if self.supports is None:
            return taken
        for name, block in zip(self.names, taken, strict=True):
            self.supports.keep(name, block)
        return [block[:-1] for block in taken]

    @property
    def rows(self) -> int:
        """Rows in the queues."""
        return sum(self.queues.live(q) for q in range(self.queues.n))

    def to_the_end(self) -> None:
        """Drive until every row that may drive has done so."""
        while (status := self.slice()) != d.DONE or self.settle(range(self.queues.n)):
            q = int(self.variants.table[d.NEEDY])
            if status in (d.ROWS_FULL, d.SEEN_FULL) and q in self.combine:
                self.drop_stale(q)
            if status == d.ROWS_FULL:  # twice the live rows, so that stale rows are not dropped all the time
                live = self.queues.live(q) if q in self.combine else 0
                self.queues.reserve(q, self.queues[q, Q_COUNT] + live + self.room)
            elif status == d.SEEN_FULL:
                if not self.settle([q]):
                    self.choose(q)
            elif status == d.TOO_NARROW:
                self.settle([q])
                self.choose(q, self.variants.pending(q))
            elif status == d.SPENT:
                self.variants.add_directories()
                self.budget = min(2 * self.budget, BUDGET)

    def slice(self) -> int:
        queues, variants, store = self.queues, self.variants, self.store
        ranks = store.dictionary.rank if variants.ranked else NO_WORDS
        started = time.perf_counter()
        budget = min(self.budget >> 4, RECORDS) if variants.use_records else self.budget
        with self.watch.lock_released(), variants.records_ready(budget):
            status = int(
                _drive(
                    store.arena.A, variants.codes, variants.states, ranks, variants.table, queues.queues,
                    queues.rows, queues.seen, variants.out, self.scratch, OUTPUT_ROWS, budget,
                )
            )  # fmt: skip
        self.account.after_slice(time.perf_counter() - started)
        self.watch.doing = f"evaluating the rule at {place(variants.current.rule)}"
        self.watch.pending(max(0, self.finished + self.rows + self.others() - self.seeds))
        self.watch.check()
        return status

    # Room and sets

    def choose(self, q: int, more: Words | None = None, runs: bool = True) -> None:
        """Give a queue another set, or a larger one."""
        self.variants.shift(q, self.queues.choose(q, self.queues.live(q) + self.room, more, runs))

    def settle(self, numbers: Iterable[int]) -> bool:
        """Look up the pending rows of some queues, and let new ones drive; returns whether any waited."""
        waiting = [q for q in numbers if self.queues[q, Q_WAITING]]
        for q in waiting:
            first = self.variants.first_to_drive(q)
            if self.queues[q, Q_READY] >= 0:
                first = min(first, self.queues[q, Q_READY])
            self.account.credit(q, self.queues.settle(q, first))
            self.variants.shift(q, -first)
            if self.queues.is_losing(q):
                self.choose(q, runs=False)
        return bool(waiting)

    def drop_stale(self, q: int) -> None:
        self.variants.renumber(q, self.queues.drop_stale(q))

    # Predicates read besides the driver

    def take_in(self) -> bool:
        """Let new rows drive, and add them to the indices that are read; returns whether there were any."""
        waiting = [name for name in self.names if name in self.gated and self.unready(self.number[name])]
        if not waiting:
            return False
        self.keep_earlier()
        for name in waiting:
            q = self.number[name]
            if name in self.read:
                rows = np.ascontiguousarray(self.queues.columns(q, self.queues[q, Q_READY]).T)
                self.store.relations[name].apply_in_place(inserts=rows)
            self.queues[q, Q_READY] = self.queues.count(q)
        for variant in self.variants.members:
            if not variant.plan.suits(self.store):
                plan = plan_driven(self.store, variant.item)
                assert plan is not None
                self.variants.use_plan(variant, plan)
            if variant.item.predicates.intersection(self.read if self.earlier else waiting):
                variant.attach(self.store)
        self.variants.lay_out()
        return True

    def keep_earlier(self) -> None:
        """The current versions, for readers of the state before the round.  O(orders).

        An order that only they read is maintained by the growing relation, so that it grows with it."""
        relations = self.store.relations
        for variant in self.variants.members:
            for use in variant.plan.compiled.atoms:
                if is_earlier(use.predicate):
                    self.store.index(base_name(use.predicate), use.columns)
        for name in self.earlier:
            relations[name].close()
            relations[name] = relations[base_name(name)].snapshot()

    def unready(self, q: int) -> bool:
        return self.queues[q, Q_READY] < self.queues.count(q)

    # At the end

    def measure(self) -> None:
        """Add what was done to the measures."""
        self.account.finish()
        for name, q in self.number.items():
            self.around.measures.detected_by(name, self.queues.sets_used(q))

    def store_results(self) -> None:
        for q in self.combine:
            self.drop_stale(q)
        self.measure()
        self.watch.pending(0)
        for name, q in self.number.items():
            if self.supports is not None:
                self.store_counted(name, q, self.supports)
                continue
            new = self.queues.live(q) - len(self.store.relations[name])
            if (new or q in self.combine) and name not in self.read:
                orders = self.store.relations[name].orders
                self.store.relations[name] = queue_reading.relation(self.queues, q, self.store.arena, orders)
        self.watch.derived(self.rows - self.seeds)

    def store_counted(self, name: str, q: int, supports: Supports) -> None:
        """Supports to the caller and rows to the relation, piece by piece, so that they stay in the
        cache."""
        parts = (self._without_supports(name, part, supports) for part in queue_reading.parts(self.queues, q))
        before, n = self.store.relations[name], self.queues.count(q)
        if name in self.read or n == len(before):
            for _ in parts:
                pass
        else:
            self.store.relations[name] = sorted_relation(before, n, parts)

    def _without_supports(self, name: str, part: Words, supports: Supports) -> Words:
        supports.keep(name, part)
        return part[:-1]
