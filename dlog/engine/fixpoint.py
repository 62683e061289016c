"""Owns the fixpoint of driven rules: queues of rows that drive plans until nothing new comes.

Correct output: the least set of rows that holds the seeds and everything the rules derive from it.

Lifecycle.  1 the seeds, what rules outside the recursion gave, begin the queues.  2 `drive` runs slices of
the kernel; between slices limits are looked at, and queues get room.  3 a predicate that bodies read beside
the driver is *read*: its new rows must be in its indices before they drive, so that of two rows that only
together derive something, the later one finds the earlier.  When the kernel has nothing left to do these rows
go in, one batch for all, and it runs on.  4 at the end relations take over the queues.

With supports (see `storage.support_kernels`) every derivation is counted as well, and whoever wants the
supports is told them.  Where bodies read a predicate beside the driver, all queues then go in rounds: what a
round adds has one stage, and bodies may read a predicate as it was *earlier*, without the rows of the round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dlog.engine.chunks import find_pivots, run_chunks, sorted_relation
from dlog.engine.driven import Driven, DrivenPlan, head_sources, place, plan_driven
from dlog.engine.limits import Watch
from dlog.engine.measure import Measures
from dlog.engine.store import Store
from dlog.jit import DISABLED, Words
from dlog.lftj import drive_layout as d
from dlog.lftj import opcodes as o
from dlog.lftj.directory import add_directories
from dlog.lftj.drive import drive
from dlog.lftj.machine import attach
from dlog.lftj.triejoin import BUDGET, FIRST_BUDGET, NO_WORDS
from dlog.planning.options import ALWAYS, NEVER
from dlog.planning.versions import base_name, is_earlier
from dlog.storage import queue_reading
from dlog.storage.index import Index
from dlog.storage.relation import Relation
from dlog.storage.row_queue import RowQueues
from dlog.storage.row_queue_kernels import Q_COUNT, Q_READY, Q_WAITING

OUTPUT_ROWS = 1 << 12  # rows of output between two visits to the sets: two columns stay in the cache

_drive = np.errstate(all="ignore")(drive) if DISABLED else drive


def run_fixpoint(
    store: Store,
    names: Sequence[str],
    items: list[Driven],
    watch: Watch,
    measures: Measures,
    method: str | None = None,
    jobs: int = 1,
    combine: Mapping[str, str] | None = None,
    supports: Supports | None = None,
) -> None:
    """Derive all that follows from the relations `names` by driven rules, into these relations.

    `method` forces a kind of set (see `storage.row_queue`).  With `combine`, all of them are functions of
    which the best value of a key counts, by min or max, and no body reads one beside the driver.  REQUIRES:
    every recursive rule of these predicates is among the items, once for each recursive atom; where
    derivations are counted they have one head each, and read as earlier the atoms before the driver.
    """
    names = sorted(names)
    if not any(len(store.relations[name]) for name in names):
        return
    earlier = {name for item in items for name in item.versions if is_earlier(name)}
    for name in earlier:
        relation = store.relations[base_name(name)]
        store.relations[name] = Relation(store.arena, relation.arity, relation.orders)
    try:
        _run(store, names, items, watch, measures, method, jobs, combine, supports)
    finally:
        for name in earlier:
            store.relations.pop(name).close()


def _run(
    store: Store,
    names: list[str],
    items: list[Driven],
    watch: Watch,
    measures: Measures,
    method: str | None,
    jobs: int,
    combine: Mapping[str, str] | None,
    supports: Supports | None,
) -> None:
    plans = [(item, plan_driven(store, item)) for item in items]
    variants = [_Variant(item, plan) for item, plan in plans if plan is not None]
    for variant in variants:
        variant.item.measure.planned(variant.plan.compiled)
    pivots = None if combine else find_pivots([v.item for v in variants], names)
    fixpoint = _Fixpoint(store, names, variants, watch, measures, method, combine, supports)
    if pivots is None or not variants:
        fixpoint.run()
        fixpoint.store_results()
    else:
        run_chunks(fixpoint, [pivots[name] for name in names], 1 if fixpoint.traced or supports else jobs)


@dataclass(frozen=True)
class Supports:
    """`seeds` are the supports of the rows that relations have from the start, in their order.

    `keep` is told of all rows in the end, a predicate's at once or in parts: its name, and a (arity + 1, n)
    array whose last row are the supports.
    """

    seeds: Mapping[str, Words]
    keep: Callable[[str, Words], None]


@dataclass
class _Variant:
    """A driven rule at work: its plan, its state, and the indices that the state reads."""

    item: Driven
    plan: DrivenPlan
    state: Words = field(default_factory=lambda: NO_WORDS)
    indices: list[Index] = field(default_factory=list)

    def attach(self, store: Store) -> None:
        """A fresh state over the indices as they are now."""
        self.count()
        self.indices = [store.index(use.predicate, use.columns) for use in self.plan.compiled.atoms]
        self.state = self.plan.assembled.initial.copy()
        roots = np.array([index.root for index in self.indices], np.int64)
        attach(store.arena.A, self.state, self.plan.assembled.levels, roots)

    def count(self) -> None:
        """Add what the state has counted to the rule's measure."""
        if len(self.state):
            measure, state = self.item.measure, self.state
            measure.seeks += int(state[o.SEEKS])
            measure.nexts += int(state[o.NEXTS])
            measure.undefined += int(state[o.UNDEFINED])
            state[[o.SEEKS, o.NEXTS, o.UNDEFINED]] = 0


class _Fixpoint:
    """Queues and variants at work in one thread."""

    def __init__(
        self,
        store: Store,
        names: list[str],
        variants: list[_Variant],
        watch: Watch,
        measures: Measures,
        method: str | None,
        combine: Mapping[str, str] | None = None,
        supports: Supports | None = None,
    ):
        self.store, self.names, self.watch, self.measures, self.method = store, names, watch, measures, method
        self.announced: set[int] = set()  # rules whose cross products have been announced
        self.number = {name: q for q, name in enumerate(names)}
        self.variants = variants
        self.read = set(names) & {p for v in variants for p in v.item.predicates}
        self.earlier = sorted({p for v in variants for p in v.item.versions if is_earlier(p)})
        self.gated = set(names) if self.read and supports is not None else self.read
        self.combine = {self.number[name]: op for name, op in (combine or {}).items()}
        self.supports = supports
        arities = [store.predicates[name].arity for name in names]
        if method is None and store.options.sorted_runs == ALWAYS:
            method = "runs"
        runs = store.options.sorted_runs != NEVER
        self.queues = RowQueues(arities, method, self.combine, supports is not None, runs)
        self.seeds = sum(len(store.relations[name]) for name in names)
        self.columns = max((v.plan.assembled.n_columns for v in variants), default=0) or 1
        heads = max((len(v.item.rule.heads) for v in variants), default=1)
        self.room = heads * OUTPUT_ROWS + 1  # rows that a queue must have room for, one to look for rows with
        self.queues.least_waiting = max(self.queues.least_waiting, 2 * self.room)
        self.credited: list[Words] = [np.zeros(len(variants), np.int64)] * len(names)
        self.out = np.empty((self.columns + 1) * OUTPUT_ROWS, np.int64)  # a column for stages
        self.scratch = np.empty(2 * OUTPUT_ROWS, np.int64)
        self.table = self._variant_table()
        self.seconds = 0.0
        self.worked: np.ndarray = np.zeros(len(variants), np.int64)
        self.traced = any(v.item.measure.trace is not None for v in variants)
        self.budget = FIRST_BUDGET
        self.finished = 0  # rows of chunks that are done
        self.others: Callable[[], int] = lambda: 0  # rows that other threads have
        for variant in variants:
            variant.attach(store)
        self.lay_out()

    def twin(self) -> _Fixpoint:
        """Another one for another thread, with its own queues and states."""
        variants = [_Variant(v.item, v.plan, v.state.copy(), v.indices) for v in self.variants]
        for variant in variants:
            variant.state[[o.SEEKS, o.NEXTS, o.UNDEFINED]] = 0
        made = _Fixpoint(self.store, self.names, variants, self.watch, self.measures, self.method)
        made.announced = self.announced
        return made

    def _variant_table(self) -> Words:
        """The variants as `lftj.drive` wants them, all at their first row."""
        words = [0] * (d.VARIANTS + d.VARIANT * len(self.variants))
        words[d.N_VARIANTS] = len(self.variants)
        words[d.STAGED] = 0 if self.supports is None else self.columns * OUTPUT_ROWS
        for number, variant in enumerate(self.variants):
            at = d.VARIANTS + d.VARIANT * number
            item = variant.item
            words[at + d.V_DRIVER] = self.number[base_name(item.driver.predicate)]
            words[at + d.V_BIND] = len(words)
            words += [word for pair in variant.plan.binding for word in pair]
            if variant.plan.lookup:
                words[at + d.V_LOOKUP] = len(words)
                words += variant.plan.lookup
            words[at + d.V_HEADS] = len(words)
            words.append(len(item.rule.heads))
            for head in item.rule.heads:
                words.append(self.number[head.predicate])
                words += [word for pair in head_sources(self.store, item, head) for word in pair]
        return np.array(words, np.int64)

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
        """What a queue begins with."""
        columns = self.store.relations[name].rows().T
        return columns if self.supports is None else np.vstack([columns, self.supports.seeds[name]])

    def run_chunk(self, seeds: list[Words]) -> list[Words]:
        """All rows that follow from some seeds, a (arity, n) array for each queue, sorted."""
        for q, columns in enumerate(seeds):
            self.queues.start(q, columns, self.room)
        for record in self.records():
            record[[d.V_CURSOR, d.V_ROUND]] = 0
        self.to_the_end()
        self.add_directories()
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
            q = int(self.table[d.NEEDY])
            if status in (d.ROWS_FULL, d.SEEN_FULL) and q in self.combine:
                self.drop_stale(q)
            if status == d.ROWS_FULL:  # twice what is live, so that stale rows are not dropped all the time
                live = self.queues.live(q) if q in self.combine else 0
                self.queues.reserve(q, self.queues[q, Q_COUNT] + live + self.room)
            elif status == d.SEEN_FULL:
                if not self.settle([q]):
                    self.choose(q)
            elif status == d.TOO_NARROW:
                self.settle([q])
                self.choose(q, self.pending(q))
            elif status == d.SPENT:
                self.add_directories()
                self.budget = min(2 * self.budget, BUDGET)

    def choose(self, q: int, more: Words | None = None, runs: bool = True) -> None:
        """Give a queue another set, or a larger one."""
        self.shift(q, self.queues.choose(q, self.queues.live(q) + self.room, more, runs))

    def settle(self, numbers: Iterable[int]) -> bool:
        """Look up the rows that wait in some queues, and let new ones drive; whether any waited."""
        waiting = [q for q in numbers if self.queues[q, Q_WAITING]]
        for q in waiting:
            first = min([int(r[d.V_CURSOR]) for r in self.records() if r[d.V_DRIVER] == q], default=0)
            if self.queues[q, Q_READY] >= 0:
                first = min(first, self.queues[q, Q_READY])
            self.credit(q, self.queues.settle(q, first))
            self.shift(q, -first)
            if self.queues.is_thin(q):
                self.choose(q, runs=False)
        return bool(waiting)

    def shift(self, q: int, by: int) -> None:
        """The rows of a queue have got other numbers."""
        for record in self.records():
            if record[d.V_DRIVER] == q:
                record[[d.V_CURSOR, d.V_ROUND]] += by

    def credit(self, q: int, new: int) -> None:
        """Tell the variants that derived rows of a queue how many were new, by what each derived since."""
        rows = self.credited[q].copy()
        for number, (record, variant) in enumerate(zip(self.records(), self.variants, strict=True)):
            if any(self.number[head.predicate] == q for head in variant.item.rule.heads):
                rows[number] = record[d.V_ROWS]
        since, self.credited[q] = rows - self.credited[q], rows
        shares = new * since // max(1, int(since.sum()))
        shares[int(since.argmax())] += new - shares.sum()
        for record, share in zip(self.records(), shares.tolist(), strict=True):
            record[d.V_NEW] += share

    def drop_stale(self, q: int) -> None:
        """Let a queue's stale rows go; its variants go on with the rows that were next."""
        kept = self.queues.drop_stale(q)
        for record in self.records():
            if record[d.V_DRIVER] == q:
                cursor, round_end = np.searchsorted(kept, record[[d.V_CURSOR, d.V_ROUND]])
                if cursor == len(kept) or kept[cursor] != record[d.V_CURSOR]:
                    record[d.V_OFFSET] = 0  # its unfinished row is gone: the one that replaced it will drive
                record[d.V_CURSOR], record[d.V_ROUND] = cursor, round_end

    def slice(self) -> int:
        queues, table, store = self.queues, self.table, self.store
        ranks = store.dictionary.rank if self.ranked else NO_WORDS
        started = time.perf_counter()
        with self.watch.aside():
            status = int(
                _drive(
                    store.arena.A, self.codes, self.states, ranks, table, queues.queues, queues.rows,
                    queues.seen, self.out, self.scratch, OUTPUT_ROWS, self.budget,
                )
            )  # fmt: skip
        self.seconds += time.perf_counter() - started
        if self.traced:
            self.share()
            self.mark()
        self.announce()
        self.watch.doing = f"evaluating the rule at {place(self.current.rule)}"
        self.watch.pending(max(0, self.finished + self.rows + self.others() - self.seeds))
        self.watch.check()
        return status

    def announce(self) -> None:
        """Warn of cross products as soon as the rows that have driven their rules make them large."""
        crossing = [n for n, v in enumerate(self.variants) if v.plan.compiled.cross_products]
        for number in crossing:
            item, record = self.variants[number].item, self.records()[number]
            if item.rule.id in self.announced:
                continue
            sizes = {base_name(item.driver.predicate): int(record[d.V_FED])}
            rows = lambda name, sizes=sizes: max(self.store.rows(name), sizes.get(name, 0))  # noqa: E731
            parts = self.variants[number].plan.compiled.cross_products
            if self.measures.warn_cross_product(item.rule, parts, rows):
                self.announced.add(item.rule.id)

    @property
    def current(self) -> Driven:
        return self.variants[int(self.table[d.CURRENT])].item

    def share(self) -> None:
        """Time so far to the rules, by the rows that went in and came out: they are not timed one by one."""
        work = np.array([int(at[d.V_FED] + at[d.V_ROWS]) for at in self.records()])
        parts = (work - self.worked) / max(1, int((work - self.worked).sum()))
        for variant, part in zip(self.variants, parts.tolist(), strict=True):
            variant.item.measure.seconds += self.seconds * part
        self.seconds, self.worked = 0.0, work

    def mark(self) -> None:
        """Tell a profile, if one is made, where each rule stands after a slice."""
        for measure in {id(v.item.measure): v.item.measure for v in self.variants}.values():
            if measure.trace is not None:
                own = [
                    [*record[[d.V_ROWS, d.V_NEW]].tolist(), *v.state[[o.SEEKS, o.NEXTS]].tolist()]
                    for record, v in zip(self.records(), self.variants, strict=True)
                    if v.item.measure is measure
                ]
                measure.mark(*(sum(parts) for parts in zip(*own, strict=True)))

    def records(self) -> list[Words]:
        """The words of each variant in the table."""
        return list(self.table[d.VARIANTS :][: d.VARIANT * len(self.variants)].reshape(-1, d.VARIANT))

    def pending(self, q: int) -> Words:
        """The rows that the current variant wants to put into a queue."""
        at = d.VARIANTS + d.VARIANT * int(self.table[d.CURRENT])
        n = int(self.table[at + d.V_PENDING])
        out = self.out.reshape(-1, OUTPUT_ROWS)[:, :n]  # the last column is not of the output
        item = self.current
        parts = []
        for head in item.rule.heads:
            if self.number[head.predicate] == q:
                sources = head_sources(self.store, item, head)
                parts.append(np.stack([out[s] if s >= 0 else np.full(n, code) for s, code in sources]))
        return np.concatenate(parts, axis=1)

    def lay_out(self) -> None:
        """Code and states of all variants, each kind in one array."""
        self.ranked = any(v.plan.compiled.uses_ranks for v in self.variants)
        self.codes = np.concatenate([v.plan.assembled.code for v in self.variants] or [NO_WORDS])
        self.states = np.concatenate([v.state for v in self.variants] or [NO_WORDS])
        code = state = 0
        for record, variant in zip(self.records(), self.variants, strict=True):
            record[d.V_CODE], record[d.V_STATE] = code, state
            record[d.V_START] = variant.plan.assembled.initial[o.PC]
            variant.state = self.states[state : state + len(variant.state)]
            code += len(variant.plan.assembled.code)
            state += len(variant.state)

    def add_directories(self) -> None:
        changed = False
        for variant in self.variants:
            state = add_directories(self.store.arena.A, variant.state, variant.plan.assembled.ranges)
            changed |= state is not variant.state
            variant.state = state
        if changed:
            self.lay_out()

    def take_in(self) -> bool:
        """Let what is new drive, and put it into the indices that are read; whether there was any."""
        waiting = [name for name in self.names if name in self.gated and self.unready(self.number[name])]
        if waiting:
            self.keep_earlier()
        for name in waiting:
            q = self.number[name]
            if name in self.read:
                rows = np.ascontiguousarray(self.queues.columns(q, self.queues[q, Q_READY]).T)
                self.store.relations[name].apply_in_place(inserts=rows)
            self.queues[q, Q_READY] = self.queues.count(q)
        if waiting:
            for variant in self.variants:
                if not variant.plan.suits(self.store):
                    plan = plan_driven(self.store, variant.item)
                    assert plan is not None
                    variant.plan = plan
                    self._bind(variant)
                if variant.item.predicates.intersection(self.read if self.earlier else waiting):
                    variant.attach(self.store)
            self.lay_out()
        return bool(waiting)

    def keep_earlier(self) -> None:
        """Versions as they are now, for those who read what was there before the round.  O(orders).

        An order that only they read is kept by the growing relation, so that it grows with it."""
        relations = self.store.relations
        for variant in self.variants:
            for use in variant.plan.compiled.atoms:
                if is_earlier(use.predicate):
                    self.store.index(base_name(use.predicate), use.columns)
        for name in self.earlier:
            relations[name].close()
            relations[name] = relations[base_name(name)].snapshot()

    def unready(self, q: int) -> bool:
        return self.queues[q, Q_READY] < self.queues.count(q)

    def _bind(self, variant: _Variant) -> None:
        """The table's words for a variant whose plan has changed."""
        record = self.records()[self.variants.index(variant)]
        at = int(record[d.V_BIND])
        words = [word for pair in variant.plan.binding for word in pair]
        self.table[at : at + len(words)] = words
        if record[d.V_LOOKUP] and variant.plan.lookup:
            at = int(record[d.V_LOOKUP])
            self.table[at : at + len(variant.plan.lookup)] = variant.plan.lookup
        else:
            record[d.V_LOOKUP] = 0

    # At the end

    def measure(self) -> None:
        """Tell the rules' measures what was done."""
        self.share()
        for record, variant in zip(self.records(), self.variants, strict=True):
            measure = variant.item.measure
            variant.count()
            measure.rows += int(record[d.V_ROWS])
            measure.new_rows += int(record[d.V_NEW])
            measure.iterations += int(record[d.V_ROUNDS])
        for name, q in self.number.items():
            self.measures.told(name, self.queues.told_by(q))

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
        """Supports to who wants them and rows to the relation, piece by piece, so that they stay in the
        cache."""
        parts = (self._kept(name, part, supports) for part in queue_reading.parts(self.queues, q))
        before, n = self.store.relations[name], self.queues.count(q)
        if name in self.read or n == len(before):
            for _ in parts:
                pass
        else:
            self.store.relations[name] = sorted_relation(before, n, parts)

    def _kept(self, name: str, part: Words, supports: Supports) -> Words:
        supports.keep(name, part)
        return part[:-1]
