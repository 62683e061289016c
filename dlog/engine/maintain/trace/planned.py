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
from dlog.ir.rules import Atom, Rule
from dlog.lftj.plan import Emit, Leap, Or, Plan, RangeStep, Slot, Step, walk
from dlog.planning.arrange import AtomUse
from dlog.planning.compile import CompiledJoin, compile_join
from dlog.planning.deltas import outer_variables
from dlog.planning.generators_last import generators_last
from dlog.planning.key_order import KeyOrder
from dlog.planning.pipeline import Anti, Join, Pipeline, Union, plan_pipeline
from dlog.sensitivity.upkeep import Upkeep
from dlog.sensitivity.watches import MayRoam, Watch, watched
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


def begins_with(order: KeyOrder, shorter: KeyOrder) -> bool:
    return order.variables[: len(shorter.variables)] == shorter.variables


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

    If the key order begins with the head's variables, each of its rows is derived once: the search for
    the others ends at the first match (maintenance paper, 2.2.1), and the rows need no counts."""
    pipeline = trace_pipeline(rule)
    compiled = _compiled(store, rule, pipeline)
    if not rule.aggregates and outputs:
        short = trace_pipeline(rule, outputs)
        found = _compiled(store, rule, short)
        if derives_once(found.plan) and begins_with(compiled.key_order, found.key_order):
            pipeline, compiled = short, found
    roaming = _Roaming(store, compiled)
    upkeep = Upkeep(watched(compiled.plan, granularity, roaming))
    slots = {slot: variable for variable, slot in compiled.names}
    keys = [slots.get(slot, "?") for slot in upkeep.watched.keys]
    types = tuple((key, rule.types.get(key)) for key in keys)
    return Traces(pipeline, compiled, upkeep, name, types, roaming)


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
