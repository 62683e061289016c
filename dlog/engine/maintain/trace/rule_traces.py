"""Owns the change of one rule's assignments in a transaction, found by its trace (maintenance paper, 4).

Correct output: assignments of the body's outer variables that no longer hold, with sign -, and new ones,
with sign +, each once.  Sensitivity indices are a group of relations of the store, under their own name:
versioned and committed with the data; an abort costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from dlog.engine.body.bodies import BodyRunner
from dlog.engine.body.table import Table
from dlog.engine.commit.oracle_report import OracleReport
from dlog.engine.maintain.body_changes import BodyChanges, body_runner
from dlog.engine.maintain.strategy import Cycle
from dlog.engine.maintain.trace.explain import explain_traces
from dlog.engine.maintain.trace.granularity import Crowd, Evidence, crowds, own_crowds, room_for, rows_of
from dlog.engine.maintain.trace.planned import Traces, plan_traces
from dlog.engine.state.store import Store
from dlog.ir.rules import Rule
from dlog.jit import Words
from dlog.lftj.traced import NO_WORDS, TooMuchNoted, Traced
from dlog.planning.arrange import AtomUse
from dlog.planning.deltas import ERASE, INSERT
from dlog.planning.pipeline import Join
from dlog.planning.versions import old_name
from dlog.sensitivity.intervals import Intervals
from dlog.sensitivity.oracle import Oracle
from dlog.sensitivity.rows import distinct_rows, sorted_rows
from dlog.sensitivity.upkeep import CycleResult, Upkeep
from dlog.sensitivity.watches import COARSE, EXACT, Watched, watched
from dlog.storage.diff.surgery import Surgeries, surgeries
from dlog.storage.index.batch import Change
from dlog.storage.index.index import Index
from dlog.storage.relation.relation_group import RelationGroup

LEAST_LED = 1 << 12  # contexts that changes lead to before the granularity is checked again


class TraceDeltas(BodyChanges):
    """The trace of one rule over one store.  REQUIRES: it is not `untraceable`."""

    def __init__(self, store: Store, rule: Rule, state: str, granularity: str):
        """Names of groups of sensitivity indices begin with `state`."""
        super().__init__(store, rule)
        self.store = store
        self.state = state
        self.granularity = granularity
        self.traces: Traces | None = None
        self.led = 0  # contexts that changes have led to since the granularity was chosen
        self.led_before_check = 0
        self.outgrown = False  # another granularity would be chosen now

    @property
    def outputs_of_join(self) -> tuple[str, ...]:
        """The variables that the rows of the join have."""
        assert self.traces is not None
        join = self.traces.pipeline.operations[0]
        assert isinstance(join, Join)
        return join.outputs

    @property
    def _head(self) -> str:
        return self.rule.heads[0].predicate

    # State

    def ready(self, store: Store) -> bool:
        return self.traces is not None and self.traces.name in store.relations and not self.outgrown

    def plans_as(self, other: BodyChanges) -> bool:
        """Whether a trace built now would have the key order of the existing one."""
        if not isinstance(other, TraceDeltas) or other.traces is None:
            return True
        planned, existing = self.planned_traces(), other.traces
        return planned.keys == existing.keys and planned.pipeline.outputs == existing.pipeline.outputs

    def forget(self, store: Store) -> None:
        self.traces, self.outgrown = None, False
        for name in [n for n in store.relations if n.startswith(f"{self.state}:")]:
            del store.relations[name]

    def planned_traces(self) -> Traces:
        """A plan for the current data.  Runs nothing."""
        name = f"{self.state}:{next(self.store.numbers)}"
        return plan_traces(self.store, self.rule, self.outputs, self.granularity, name)

    def intervals(self, store: Store) -> tuple[Intervals, ...]:
        """The sensitivity indices as they are in a store.  REQUIRES: ready."""
        assert self.traces is not None
        specs, group = self.traces.upkeep.specs, store.relations[self.traces.name]
        assert isinstance(group, RelationGroup)
        return tuple(Intervals(spec, part) for spec, part in zip(specs, group.parts, strict=True))

    def size(self, store: Store) -> tuple[int, int]:
        """(Intervals, bytes) of all sensitivity indices; there are none before the first transaction."""
        group = store.relations.get(self.traces.name) if self.traces is not None else None
        return group.size() if isinstance(group, RelationGroup) else (0, 0)

    def keep(self, store: Store, intervals: Sequence[Intervals]) -> None:
        assert self.traces is not None
        store.relations[self.traces.name] = RelationGroup(store.arena, [i.relation for i in intervals])

    # Recording

    def all_assignments(self, cycle: Cycle, weighted: bool = False) -> tuple[BodyRunner, Table]:
        """From the recorded run: the body is evaluated once."""
        with cycle.evaluation.measures.of(self.rule):
            return body_runner(cycle, self.rule), self.record(cycle)

    def record(self, cycle: Cycle) -> Table:
        """All assignments in the new version; makes the sensitivity indices."""
        is_new = self.traces is None
        if self.traces is None:
            self.traces = self.planned_traces()
        self.begin(cycle)
        cycle.evaluation.watch.doing = f"recording where a rule of {self._head} looks"
        traced, intervals = self._recorded(cycle)
        if is_new and self.granularity == COARSE:
            traced, intervals = self._refined(cycle, traced, intervals)
        self.keep(cycle.store, intervals)
        self._allow(intervals)
        rows = distinct_rows(traced.rows)
        self._count(traced, len(rows))
        return self._finished(rows)

    def _recorded(self, cycle: Cycle, most_words: float = inf) -> tuple[Traced, tuple[Intervals, ...]]:
        assert self.traces is not None
        store, upkeep, check = cycle.store, self.traces.upkeep, cycle.evaluation.watch.check
        roots = self._roots(store)
        traced = upkeep.record(store.arena.A, roots, self._ranks(), between=check, most_words=most_words)
        return traced, upkeep.intervals(store.arena, traced, roots)

    def _roots(self, store: Store) -> list[int]:
        assert self.traces is not None
        return [store.index(use.predicate, use.columns).root for use in self.traces.atoms]

    # Granularity

    def _refined(
        self, cycle: Cycle, traced: Traced, intervals: tuple[Intervals, ...]
    ) -> tuple[Traced, tuple[Intervals, ...]]:
        """A coarse trace, or one that is exact where there are crowds and memory for it."""
        assert self.traces is not None
        coarse, evidence = self.traces, self._evidence(cycle.store, intervals, traced.parts)
        found = crowds(evidence, room_for(cycle.store, self.reads))
        self.traces = replace(coarse, crowds=found)
        finer = self._finer(found)
        if not finer.traced.exact and not any(crowd.is_shared for crowd in found):
            return traced, intervals
        self.traces = replace(self.traces, upkeep=Upkeep(finer))
        room = room_for(cycle.store, self.reads)
        most = max(room, sum(index.bytes for index in intervals))
        try:
            finest = self._recorded(cycle, most / 8)
        except TooMuchNoted:
            finest = None
        if finest is None or sum(index.bytes for index in finest[1]) > most:  # the sample was misleading
            self.traces = replace(coarse, crowds=tuple(replace(crowd, bytes=inf) for crowd in found))
            return traced, intervals
        traced, intervals = finest
        own = own_crowds(self._evidence(cycle.store, intervals), room)
        exact_at = frozenset(crowd.slot for crowd in own if crowd.is_exact)
        self.traces = replace(self.traces, upkeep=Upkeep(finer, exact_at), crowds=(*found, *own))
        if exact_at:
            intervals = self.traces.upkeep.intervals(cycle.store.arena, traced, self._roots(cycle.store))
        return traced, intervals

    def _finer(self, found: Sequence[Crowd]) -> Watched:
        """The plan in which crowds are shared or exact."""
        assert self.traces is not None
        shared = [crowd.slot for crowd in found if crowd.is_shared]
        exact = [crowd.slot for crowd in found if crowd.is_exact]
        plan, may_roam = self.traces.compiled.plan, self.traces.may_roam
        return watched(plan, COARSE, may_roam, exact_at=exact, shared_at=shared)

    def _evidence(
        self, store: Store, intervals: Sequence[Intervals], parts: Sequence[Sequence[Words]] = ()
    ) -> Evidence:
        """`parts`: the rows of each index, if they are at hand."""
        assert self.traces is not None
        traces, words = self.traces, store.arena.A
        noted = parts.__getitem__ if parts else rows_of(intervals)
        plan, roots, ranks = traces.compiled.plan, self._roots(store), self._ranks()
        return Evidence(plan, traces.may_roam, traces.upkeep, words, roots, ranks, intervals, noted)

    def _allow(self, intervals: Sequence[Intervals]) -> None:
        """Check the granularity again when changes have led to as many contexts as the indices have rows."""
        self.led, self.led_before_check = 0, max(LEAST_LED, sum(map(len, intervals)))

    @property
    def is_due(self) -> bool:
        """Whether the granularity is to be checked after the next change."""
        return self.granularity == COARSE and self.led > self.led_before_check

    def _check_granularity(self, store: Store, intervals: Sequence[Intervals]) -> None:
        """If there are new crowds, the next transaction records the trace again."""
        assert self.traces is not None
        known = [crowd.slot for crowd in self.traces.crowds]
        room = room_for(store, self.reads)
        evidence = self._evidence(store, intervals)
        found = crowds(evidence, room, known)
        too_large = sum(i.bytes for i in intervals) > 2 * room and any(c.is_exact for c in self.traces.crowds)
        news = any(crowd.is_exact or crowd.is_shared for crowd in found)
        self.outgrown = too_large or news or any(c.is_exact for c in own_crowds(evidence, room))
        self._allow(intervals)

    def _ranks(self) -> Words:
        assert self.traces is not None
        return self.store.dictionary.rank if self.traces.compiled.uses_ranks else NO_WORDS

    def _finished(self, rows: Words) -> Table:
        """Rows of the join, after the primitives on whole columns."""
        assert self.traces is not None
        join, *others = self.traces.pipeline.operations
        assert isinstance(join, Join)
        table = Table.of_rows(join.outputs, rows)
        for operation in others:
            table = self.runner.operation(operation, table)
        return table

    # Maintenance

    def signed(self, cycle: Cycle) -> Iterator[tuple[int, Table]]:
        assert self.traces is not None
        store, upkeep = cycle.store, self.traces.upkeep
        old, new = self._versions(cycle)
        intervals = self.intervals(store)
        found, emptied = self._surgeries(cycle, old, new)
        roots = [index.root for index in old], [index.root for index in new]
        watch = cycle.evaluation.watch
        watch.doing = f"re-examining a rule of {self._head}"
        oracle, upkept = upkeep.cycle(
            store.arena.A, found, roots, intervals, emptied, self._ranks(), watch.check
        )
        cycle.oracle_reports.append(self.oracle_report(oracle))
        self.led += len(oracle)
        self._count(upkept, len(upkept.erased) + len(upkept.inserted))
        self.keep(store, upkept.intervals)
        if self.is_due:
            self._check_granularity(store, upkept.intervals)
        yield ERASE, self._finished(upkept.erased)
        yield INSERT, self._finished(upkept.inserted)

    def _count(self, run: Traced | CycleResult, rows: int) -> None:
        """Opens count as seeks."""
        measure = self.runner.measure
        measure.seeks += run.operations - run.nexts
        measure.nexts += run.nexts
        measure.rows += rows

    def oracle_report(self, oracle: Oracle) -> OracleReport:
        """The report of an oracle.  O(variables)."""
        assert self.traces is not None
        return OracleReport.of(self._head, self.traces.keys, oracle, self.store.dictionary)

    def _versions(self, cycle: Cycle) -> tuple[list[Index], list[Index]]:
        """What each atom reads, before and after, in the same column order."""
        assert self.traces is not None
        store = cycle.store
        old, new = [], []
        for use in self.traces.atoms:
            new.append(store.index(use.predicate, use.columns))
            before, after = store.relations[old_name(use.predicate)], store.relations[use.predicate]
            old.append(before.add_order(after.order_of(new[-1])))
        return old, new

    def _surgeries(
        self, cycle: Cycle, old: list[Index], new: list[Index]
    ) -> tuple[dict[int, Surgeries], list[int]]:
        """The surgeries of each atom whose predicate changed; the atoms whose predicate was or is empty."""
        assert self.traces is not None
        found: dict[int, Surgeries] = {}
        known: dict[tuple[str, int], Surgeries] = {}
        emptied = []
        for number, use in enumerate(self.traces.atoms):
            change = cycle.changes.get(use.predicate)
            if change is None:
                continue
            key = (use.predicate, new[number].root)
            if key not in known:
                known[key] = surgeries(
                    old[number], new[number], self._ordered(cycle, use, new[number], change)
                )
            found[number] = known[key]
            if (len(old[number]) == 0) != (len(new[number]) == 0):
                emptied.append(number)
        return found, emptied

    def _ordered(self, cycle: Cycle, use: AtomUse, index: Index, change: Change) -> Change:
        """A change in the column order of an index."""
        relation = cycle.store.relations[use.predicate]
        order = relation.order_of(index)
        if order == tuple(range(relation.arity)):
            return change
        return Change(*(sorted_rows(rows[:, list(order)]) for rows in change))

    # Inspection

    def explain(self) -> Iterator[str]:
        intervals = self.intervals(self.store) if self.ready(self.store) else None
        return explain_traces(
            self.store, self.rule, self.traces or self.planned_traces(), self.shown_granularity, intervals
        )

    @property
    def shown_granularity(self) -> str:
        """`coarse`, `exact`, or at which variables it is exact."""
        if self.traces is None or self.granularity == EXACT:
            return self.granularity
        names = {slot: name for name, slot in self.traces.compiled.names}
        crowds = self.traces.crowds
        exact = [names.get(crowd.slot, "?") for crowd in crowds if crowd.is_exact]
        shared = [names.get(crowd.slot, "?") for crowd in crowds if crowd.is_shared]
        parts = [f"{how} at {', '.join(at)}" for how, at in (("shared", shared), ("exact", exact)) if at]
        return ", ".join(parts) or COARSE

    def check(self, store: Store, fresh: Store) -> None:
        """Assert that the indices agree with those of a fresh evaluation.  O(size of the indices)."""
        if self.traces is None or not self.ready(store):
            return
        for kept, again in zip(self.intervals(store), self.intervals(fresh), strict=True):
            kept.check()
            if not kept.spec.by_context:
                assert np.array_equal(kept.rows(), again.rows()), f"a sensitivity index of {self.state}"
