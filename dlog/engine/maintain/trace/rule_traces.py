"""Owns the change of one rule's assignments in a transaction, found by its trace (maintenance paper, 4).

Correct output: assignments of the body's outer variables that no longer hold, with sign -, and new ones,
with sign +, each once.  Sensitivity indices are a group of relations of the store, under their own name:
versioned and committed with the data; an abort costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from dlog.engine.body.bodies import BodyRunner
from dlog.engine.body.default_statistics import GrowingStatistics
from dlog.engine.body.readable import Readable
from dlog.engine.body.table import Table
from dlog.engine.commit.oracle_report import OracleReport
from dlog.engine.maintain.body_changes import BodyChanges, body_runner
from dlog.engine.maintain.strategy import Cycle
from dlog.engine.maintain.trace.explain import explain_traces
from dlog.engine.state.store import Store
from dlog.ir.rules import Atom, Rule
from dlog.jit import Words
from dlog.lftj.plan import Leap, Or
from dlog.lftj.traced import NO_WORDS, Traced
from dlog.planning.arrange import AtomUse
from dlog.planning.compile import CompiledJoin, compile_join
from dlog.planning.deltas import ERASE, INSERT, outer_variables
from dlog.planning.pipeline import Anti, Join, Pipeline, Union, plan_pipeline
from dlog.planning.versions import old_name
from dlog.sensitivity.intervals import Intervals
from dlog.sensitivity.oracle import Oracle
from dlog.sensitivity.rows import distinct_rows, sorted_rows
from dlog.sensitivity.upkeep import CycleResult, Upkeep
from dlog.sensitivity.watches import watched
from dlog.storage.diff.surgery import Surgeries, surgeries
from dlog.storage.index.batch import Change
from dlog.storage.index.index import Index
from dlog.storage.relation.relation_group import RelationGroup
from dlog.values import INT, Type

ROAM = 512  # values that an oracle may leave open, for one changed row, before a trace is recorded instead


def untraceable(rule: Rule) -> str | None:
    """Why a rule cannot be maintained by its trace; None when it can."""
    first, *others = trace_pipeline(rule).operations
    if not isinstance(first, Join) or not any(isinstance(f, Atom) for f in rule.body.walk()):
        return "it reads nothing"
    if not first.forms or any(isinstance(operation, Join | Anti | Union) for operation in others):
        return "its body is joined in several stages, with primitives on whole columns between them"
    return None


def trace_pipeline(rule: Rule) -> Pipeline:
    """A rule's body for all its outer variables, as a set."""
    return plan_pipeline(rule.body.forms, outer_variables(rule), rule.types, False)


@dataclass(frozen=True)
class Traces:
    """A plan whose trace is recorded, and under which name."""

    compiled: CompiledJoin
    upkeep: Upkeep
    name: str
    keys: tuple[tuple[str, Type | None], ...]  # key variables and their types, for display

    @property
    def atoms(self) -> tuple[AtomUse, ...]:
        return self.compiled.atoms

    def expected_bytes(self) -> float:
        """The estimated size of coarse sensitivity indices: one row for each context."""
        slots = dict(self.compiled.names)
        order = self.compiled.key_order
        pairs = zip(order.variables, order.sizes, strict=True)
        expected = {slots[variable]: size for variable, size in pairs if variable in slots}
        keys = self.upkeep.watched.keys
        total = 0.0
        for watch in self.upkeep.watched.indexed:
            bound = keys[: watch.depth - watch.is_leap]
            contexts = expected.get(bound[-1], 1.0) if bound else 1.0
            total += 8.0 * (len(watch.prefix) + 2 + len(watch.others)) * contexts
        return total


class TraceDeltas(BodyChanges):
    """The trace of one rule over one store.  REQUIRES: it is not `untraceable`."""

    def __init__(self, store: Store, rule: Rule, state: str, granularity: str):
        """Names of groups of sensitivity indices begin with `state`."""
        super().__init__(store, rule)
        self.store = store
        self.state = state
        self.granularity = granularity
        self.pipeline = trace_pipeline(rule)
        self.traces: Traces | None = None

    @property
    def outputs_of_join(self) -> tuple[str, ...]:
        """The variables that the rows of the join have."""
        join = self.pipeline.operations[0]
        assert isinstance(join, Join)
        return join.outputs

    @property
    def _head(self) -> str:
        return self.rule.heads[0].predicate

    # State

    def ready(self, store: Store) -> bool:
        return self.traces is not None and self.traces.name in store.relations

    def plans_as(self, other: BodyChanges) -> bool:
        """Whether a trace built now would have the key order of the existing one."""
        if not isinstance(other, TraceDeltas) or other.traces is None:
            return True
        return self.planned_traces().keys == other.traces.keys

    def forget(self, store: Store) -> None:
        self.traces = None
        for name in [n for n in store.relations if n.startswith(f"{self.state}:")]:
            del store.relations[name]

    def planned_traces(self) -> Traces:
        """A plan for the current data.  Runs nothing."""
        join = self.pipeline.operations[0]
        assert isinstance(join, Join)
        view = Readable(self.store, {})
        compiled = compile_join(
            join.forms,
            join.outputs,
            {**self.rule.types, "$number": INT},
            view.column_types,
            GrowingStatistics(view),
            self.store.encode,
            alike=True,  # what leads to one branch then leads to all of them
        )
        upkeep = Upkeep(watched(compiled.plan, self.granularity, _Roaming(self.store, compiled)))
        name = f"{self.state}:{next(self.store.numbers)}"
        slots = {slot: name for name, slot in compiled.names}
        keys = [slots.get(slot, "?") for slot in upkeep.watched.keys]
        return Traces(compiled, upkeep, name, tuple((key, self.rule.types.get(key)) for key in keys))

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
        if self.traces is None:
            self.traces = self.planned_traces()
        self.begin(cycle)
        store, upkeep = cycle.store, self.traces.upkeep
        cycle.evaluation.watch.doing = f"recording where a rule of {self._head} looks"
        roots = [store.index(use.predicate, use.columns).root for use in self.traces.atoms]
        watch = cycle.evaluation.watch
        traced = upkeep.record(store.arena.A, roots, self._ranks(), between=watch.check)
        self.keep(store, upkeep.intervals(store.arena, traced))
        rows = distinct_rows(traced.rows)
        self._count(traced, len(rows))
        return self._finished(rows)

    def _ranks(self) -> Words:
        assert self.traces is not None
        return self.store.dictionary.rank if self.traces.compiled.uses_ranks else NO_WORDS

    def _finished(self, rows: Words) -> Table:
        """Rows of the join, after the primitives on whole columns."""
        join, *others = self.pipeline.operations
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
        oracle = upkeep.oracle(found, intervals, emptied)
        cycle.looked.append(self.looked(oracle))
        roots = [index.root for index in old], [index.root for index in new]
        watch = cycle.evaluation.watch
        watch.doing = f"re-examining a rule of {self._head}"
        upkept = upkeep.maintain(store.arena.A, oracle, roots, intervals, self._ranks(), watch.check)
        self._count(upkept, len(upkept.erased) + len(upkept.inserted))
        self.keep(store, upkept.intervals)
        yield ERASE, self._finished(upkept.erased)
        yield INSERT, self._finished(upkept.inserted)

    def _count(self, run: Traced | CycleResult, rows: int) -> None:
        """Opens count as seeks."""
        measure = self.runner.measure
        measure.seeks += run.operations - run.nexts
        measure.nexts += run.nexts
        measure.rows += rows

    def looked(self, oracle: Oracle) -> OracleReport:
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
        return explain_traces(self.rule, self.traces or self.planned_traces(), self.granularity, intervals)

    def check(self, store: Store, fresh: Store) -> None:
        """Assert that the indices agree with those of a fresh evaluation.  O(size of the indices)."""
        if self.traces is None or not self.ready(store):
            return
        for kept, again in zip(self.intervals(store), self.intervals(fresh), strict=True):
            kept.check()
            if not kept.spec.by_context:
                assert np.array_equal(kept.rows(), again.rows()), f"a sensitivity index of {self.state}"


class _Roaming:
    """Whether variables may be left open: a changed row has few values of them."""

    def __init__(self, store: Store, compiled: CompiledJoin):
        self.store = store
        self.compiled = compiled
        top = takewhile(lambda step: not isinstance(step, Or), compiled.plan.steps)
        self.leaps = [step for step in top if isinstance(step, Leap)]

    def __call__(self, depths: tuple[int, ...]) -> bool:
        values = 1.0
        for depth in depths:
            if depth >= len(self.leaps):  # in a disjunction
                return False
            bound = [(a, level) for a, level in self.leaps[depth].participants if level > 0]
            if not bound:
                return False
            values *= min(self._partners(a, level) for a, level in bound)
        return values <= ROAM

    def _partners(self, atom: int, level: int) -> float:
        use = self.compiled.atoms[atom]
        return self.store.partners(use.predicate, use.columns[level - 1])
