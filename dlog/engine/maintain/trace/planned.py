"""Owns the plan of a rule's trace: its key order, what it emits, and how large its trace is expected to be.

Knows nothing of the changes that a trace finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from dlog.engine.body.default_statistics import GrowingStatistics
from dlog.engine.body.readable import Readable
from dlog.engine.maintain.trace.granularity import Crowd
from dlog.engine.state.store import Store
from dlog.ir.analysis.projection import outer_variables
from dlog.ir.rules import Atom, Rule
from dlog.lftj.plan import Emit, Leap, Or, Plan, RangeStep, Slot, Step, walk
from dlog.planning.arrange import AtomUse
from dlog.planning.compile import CompiledJoin, compile_join
from dlog.planning.generators_last import generators_last
from dlog.planning.pipeline import Anti, Join, Pipeline, Union, plan_pipeline
from dlog.sensitivity.upkeep import Upkeep
from dlog.sensitivity.watches import EXACT, MayRoam, Watch, watched
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


def trace_pipeline(rule: Rule, outputs: tuple[str, ...] = ()) -> Pipeline:
    """A rule's body for some variables, by default all its outer ones, as a set."""
    pipeline = plan_pipeline(rule.body.forms, outputs or outer_variables(rule), rule.types, False)
    return generators_last(pipeline)


def derives_once(plan: Plan) -> bool:
    """Whether a plan emits each row once: nothing that it chooses is left out."""
    *steps, end = plan.steps
    shown = end.slots if isinstance(end, Emit) else ()
    return all(_is_shown(step, shown) for step in steps)


def _is_shown(step: Step, shown: tuple[Slot, ...]) -> bool:
    match step:
        case Leap() | RangeStep():
            return step.slot in shown
        case Or():
            return all(_is_shown(inner, shown) for branch in step.branches for inner in branch)
    return True


@dataclass(frozen=True)
class Traces:
    """A plan whose trace is recorded, and under which name."""

    pipeline: Pipeline
    compiled: CompiledJoin
    upkeep: Upkeep
    name: str
    keys: tuple[tuple[str, Type | None], ...]  # key variables and their types, for display
    may_roam: MayRoam
    crowds: tuple[Crowd, ...] = ()

    @property
    def atoms(self) -> tuple[AtomUse, ...]:
        return self.compiled.atoms

    def expected_bytes(self, store: Store) -> float:
        """The estimated size of sensitivity indices: one row for each context of a coarse leap, and two in
        two orders for each key of an exact leap's smallest participant."""
        slots = dict(self.compiled.names)
        order = self.compiled.key_order
        pairs = zip(order.variables, order.sizes, strict=True)
        expected = {slots[variable]: size for variable, size in pairs if variable in slots}
        keys = self.upkeep.watched.keys
        total = 0.0
        for watch in self.upkeep.watched.indexed:
            bound = keys[: watch.depth - watch.is_leap]
            contexts = expected.get(bound[-1], 1.0) if bound else 1.0
            each = 1.0
            if (watch.atom, watch.level) in self.upkeep.watched.traced.exact:
                each = 4 * self._fewest_keys(store, watch) + 2
            total += 8.0 * (len(watch.prefix) + 2 + len(watch.others)) * contexts * each
        return total

    def _fewest_keys(self, store: Store, watch: Watch) -> float:
        """Of the participants of a watch's leap, in one context."""
        steps = (step for step in walk(self.compiled.plan.steps) if isinstance(step, Leap))
        own = [
            p for step in steps if (watch.atom, watch.level) in step.participants for p in step.participants
        ]
        found = []
        for atom, level in own:
            use = self.atoms[atom]
            many = (
                store.partners(use.predicate, use.columns[level - 1]) if level else store.rows(use.predicate)
            )
            found.append(float(many))
        return min(found, default=1.0)


def plan_traces(store: Store, rule: Rule, outputs: tuple[str, ...], granularity: str, name: str) -> Traces:
    """A plan for the current data, for a head with these outputs.  Runs nothing.

    Variables that the head does not have and that are bound last need not be enumerated: the search for
    them ends at the first match (maintenance paper, 2.2.1).  So a trace returns only the other variables, if
    that is expected to take less time than to return all of them and, unless it is exact, no more memory."""
    pipeline = trace_pipeline(rule)
    full = _traces(store, rule, pipeline, _compiled(store, rule, pipeline), granularity, name)
    if rule.aggregates or not outputs:
        return full
    pipeline, compiled = _without_last(store, rule, outputs)
    order, shorter = full.compiled.key_order, compiled.key_order
    is_part = order.variables[: len(shorter.variables)] == shorter.variables
    if not derives_once(compiled.plan) or not (is_part or shorter.cost < order.cost):
        return full
    short = _traces(store, rule, pipeline, compiled, granularity, name)
    if is_part or granularity == EXACT or short.expected_bytes(store) <= full.expected_bytes(store):
        return short
    return full


def _traces(
    store: Store, rule: Rule, pipeline: Pipeline, compiled: CompiledJoin, granularity: str, name: str
) -> Traces:
    roaming = _Roaming(store, compiled)
    upkeep = Upkeep(watched(compiled.plan, granularity, roaming))
    slots = {slot: variable for variable, slot in compiled.names}
    keys = [slots.get(slot, "?") for slot in upkeep.watched.keys]
    types = tuple((key, rule.types.get(key)) for key in keys)
    return Traces(pipeline, compiled, upkeep, name, types, roaming)


def _without_last(store: Store, rule: Rule, outputs: tuple[str, ...]) -> tuple[Pipeline, CompiledJoin]:
    """A plan for some variables, and for those others that its key order enumerates in order to find them."""
    short = trace_pipeline(rule, outputs)
    found = _compiled(store, rule, short)
    if derives_once(found.plan):
        return short, found
    enumerated = {step.slot for step in found.plan.steps if isinstance(step, Leap | RangeStep)}
    visited = {variable for variable, slot in found.names if slot in enumerated}
    others = (v for v in outer_variables(rule) if v in visited and v not in outputs)
    short = trace_pipeline(rule, (*outputs, *others))
    return short, _compiled(store, rule, short)


def _compiled(store: Store, rule: Rule, pipeline: Pipeline) -> CompiledJoin:
    join, view = pipeline.operations[0], Readable(store, {})
    assert isinstance(join, Join)
    return compile_join(
        join.forms,
        join.outputs,
        {**rule.types, "$number": INT},
        view.column_types,
        GrowingStatistics(view),
        store.encode,
        alike=True,  # what leads to one branch then leads to all of them
    )


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
