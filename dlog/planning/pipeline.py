"""Owns the stages of a rule body: what one join can do at once, and what must run on columns in between.

A body becomes a list of operations on a *table* of bindings (one column per variable):

    Join      leapfrog triejoin of the table so far with atoms, kernel primitives, negations, disjunctions
    Compute   a primitive on whole columns (strings, decimals, dates), binding its output
    Test      a primitive on whole columns that selects the rows where it holds
    Generate  a primitive with several values per row (split)
    Anti      rows without a match in a nested body (a negation with column primitives inside)
    Union     rows from any of several nested bodies (a disjunction with column primitives inside)

Most rules are one Join.  Knows nothing of sizes or indices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from dlog.ir.lower.grounding import ground
from dlog.ir.primitives import signature_of
from dlog.ir.record_forms import is_record_form
from dlog.ir.rules import Atom, Conj, Const, Disjunction, Form, Negation, Operand, Primitive, Var
from dlog.planning.versions import is_change
from dlog.values import MAX_PRECISION, Type

Types: TypeAlias = Mapping[str, Type]


@dataclass(frozen=True)
class Join:
    """`outputs` are the variables that anything later needs; `distinct` drops repeated bindings of them."""

    forms: tuple[Form, ...]
    outputs: tuple[str, ...]
    bag: bool


@dataclass(frozen=True)
class Compute:
    primitive: Primitive


@dataclass(frozen=True)
class Test:
    primitive: Primitive


@dataclass(frozen=True)
class Generate:
    primitive: Primitive


@dataclass(frozen=True)
class Anti:
    body: Pipeline
    shared: tuple[str, ...]


@dataclass(frozen=True)
class Union:
    branches: tuple[Pipeline, ...]
    outputs: tuple[str, ...]


Operation: TypeAlias = Join | Compute | Test | Generate | Anti | Union


@dataclass(frozen=True)
class Pipeline:
    operations: tuple[Operation, ...]
    outputs: tuple[str, ...]


def plan_pipeline(
    forms: Iterable[Form], outputs: Iterable[str], types: Types, bag: bool, bound: Iterable[str] = ()
) -> Pipeline:
    """Stages for a conjunction.  REQUIRES: the forms are safe given `bound`.

    `bag`: each assignment of all variables counts (aggregates); otherwise only distinct outputs matter.
    """
    outputs = tuple(dict.fromkeys(outputs))
    planner = _Planner(list(forms), outputs, types, bag, set(bound))
    planner.run()
    return Pipeline(tuple(joined_at_once(planner.operations, outputs)), outputs)


def bound_behind(operation: Operation, bound: Iterable[str]) -> tuple[str, ...]:
    """The variables that have values after an operation, `bound` being those that have them before it."""
    match operation:
        case Join() | Union():
            return operation.outputs
        case Compute() | Generate():
            return tuple(dict.fromkeys((*bound, *sorted(form_variables(operation.primitive)))))
        case Test() | Anti():
            return tuple(bound)


class _Planner:
    def __init__(self, forms: list[Form], outputs: tuple[str, ...], types: Types, bag: bool, bound: set[str]):
        self.waiting = forms
        self.order = outputs
        self.outputs = set(outputs)
        self.types = types
        self.bag = bag
        self.bound = bound
        self.operations: list[Operation] = []

    def run(self) -> None:
        if not any(not in_kernel(f, self.types, self.bag) for f in self.waiting):
            self.join(self.waiting)
            return
        while self.waiting:
            stage = self.stage()
            if stage:
                self.join(stage)
            if not self.columns() and not stage:
                raise AssertionError(f"no order for {', '.join(map(str, self.waiting))}")
        if not self.operations:
            self.join([])

    def stage(self) -> list[Form]:
        """Forms for the next join: all that do not wait for the result of a column primitive or a
        disjunction.

        What reads a change does not wait for a disjunction: its rows are few, and the disjunction is then
        evaluated for these alone.  If this leaves column primitives without their inputs, atoms are added one
        by one in safe order.
        """
        kernel = [f for f in self.waiting if in_kernel(f, self.types, self.bag)]
        others = [f for f in self.waiting if not in_kernel(f, self.types, self.bag)]
        computed = {v for f in others if isinstance(f, Primitive) for v in _column_outputs(f)} - self.bound
        later = {v for f in others for v in _column_outputs(f)} - self.bound
        chosen: list[Form] = [
            f
            for f in kernel
            if isinstance(f, Atom) and not form_variables(f) & (computed if is_change(f.predicate) else later)
        ]
        postponed = [f for f in kernel if isinstance(f, Atom) and f not in chosen]
        while others and not self.enables(chosen, others) and postponed:
            chosen.append(postponed.pop(0))
        bound = self.bound | {v for f in chosen for v in form_variables(f)}
        return chosen + self.ready([f for f in kernel if not isinstance(f, Atom)], bound)

    def enables(self, atoms: Sequence[Form], others: Sequence[Form]) -> bool:
        """Whether some column primitive has its inputs after these atoms and the kernel forms that can then
        run.
        """
        bound = self.bound | {v for f in atoms for v in form_variables(f)}
        kernel = [f for f in self.waiting if in_kernel(f, self.types, self.bag) and not isinstance(f, Atom)]
        self.ready(kernel, bound)
        around = {v for f in self.waiting for v in form_variables(f)} | self.outputs
        return any(
            _inputs(f, around - own_variables(f, self.waiting, self.outputs), bound) <= bound for f in others
        )

    def ready(self, forms: Sequence[Form], bound: set[str]) -> list[Form]:
        """The non-atoms that can run inside the join once `bound` is known; extends `bound`."""
        chosen: list[Form] = []
        progress = True
        while progress:
            progress = False
            for form in forms:
                if form in chosen:
                    continue
                shared = form_variables(form) - own_variables(form, self.waiting, self.outputs)
                if _inputs(form, shared, bound) <= bound:
                    chosen.append(form)
                    bound |= _binds(form)
                    progress = True
        return chosen

    def join(self, forms: list[Form]) -> None:
        self.waiting = [f for f in self.waiting if not any(f is g for g in forms)]
        needed = self.outputs | {v for f in self.waiting for v in form_variables(f)}
        self.bound |= {v for f in forms for v in form_variables(f)}
        in_order = dict.fromkeys((*(v for v in self.order if v in self.bound), *sorted(self.bound)))
        outputs = tuple(v for v in in_order if v in needed)  # in head order, which saves a copy there
        self.bound = set(outputs)  # the table has no other columns from here on
        self.operations.append(Join(tuple(forms), outputs, self.bag))

    def columns(self) -> bool:
        """Runs every column form that has its inputs now; returns whether there was one."""
        any_ran = False
        progress = True
        while progress:
            progress = False
            for form in list(self.waiting):
                if in_kernel(form, self.types, self.bag) and not isinstance(form, Primitive):
                    continue
                shared = form_variables(form) - own_variables(form, self.waiting, self.outputs)
                if _inputs(form, shared, self.bound) <= self.bound:
                    self.waiting.remove(form)
                    self.operations.append(self.column_operation(form))
                    self.bound |= _binds(form) & (shared | self.bound)
                    progress = any_ran = True
        return any_ran

    def column_operation(self, form: Form) -> Operation:
        if isinstance(form, Negation):
            shared = tuple(sorted(form.body.variables() & self.bound))
            body = plan_pipeline(form.body.forms, shared, self.types, False, shared)  # all its inputs
            return Anti(body, shared)
        if isinstance(form, Disjunction):
            needed = self.outputs | {v for f in self.waiting for v in form_variables(f)}
            if self.bag:  # each value of a variable counts, unless the variable belongs to one branch alone
                local = {v.name for b in form.branches for v in b.exists}
                needed |= form_variables(form) - local
            outputs = tuple(sorted(self.bound | (_binds(form) & needed)))
            branches = tuple(
                plan_pipeline(b.forms, outputs, self.types, False, self.bound) for b in form.branches
            )
            return Union(branches, outputs)
        assert isinstance(form, Primitive)
        if form.output is None:
            unbound = [a for a in form.inputs if isinstance(a, Var) and a.name not in self.bound]
            return Compute(form) if unbound else Test(form)
        if signature_of(form.name, len(form.inputs)).generator:
            return Generate(form)
        return Compute(form)


# Texts that are only concatenated to others


def joined_at_once(operations: Sequence[Operation], outputs: Iterable[str]) -> list[Operation]:
    """`x = cat(a, b), y = cat(x, c)` as `y = cat(a, b, c)`, if nothing else reads x: the dictionary never
    sees it.

    >>> x, y, a = Var("x"), Var("y"), Var("a")
    >>> steps = [Compute(Primitive("cat", (a, a), x)), Compute(Primitive("cat", (x, a), y))]
    >>> [str(step.primitive) for step in joined_at_once(steps, ["y"])]
    ['y = cat(a, a, a)']
    """
    kept: list[Operation] = []
    for index, operation in enumerate(operations):
        later = operations[index + 1 :]
        for before in [o for o in kept if isinstance(o, Compute)]:
            name = _joined_name(before.primitive)
            if name is None or name in outputs or not isinstance(operation, Compute):
                continue
            form = operation.primitive
            others = [o for o in (*kept, *later) if o is not before]
            if form.name != "cat" or form.inputs.count(Var(name)) != 1 or form.output == Var(name):
                continue
            if not any(name in _mentioned(o) for o in others):
                at = form.inputs.index(Var(name))
                inputs = (*form.inputs[:at], *before.primitive.inputs, *form.inputs[at + 1 :])
                operation = Compute(replace(form, inputs=inputs))
                kept.remove(before)
        kept.append(operation)
    return kept


def _joined_name(form: Primitive) -> str | None:
    """The variable that a concatenation binds."""
    return form.output.name if form.name == "cat" and isinstance(form.output, Var) else None


def _mentioned(operation: Operation) -> set[str]:
    match operation:
        case Join():
            return {v for f in operation.forms for v in form_variables(f)} | set(operation.outputs)
        case Anti():
            return set(operation.shared) | {v for o in operation.body.operations for v in _mentioned(o)}
        case Union():
            inner = (v for b in operation.branches for o in b.operations for v in _mentioned(o))
            return set(operation.outputs) | set(inner)
    return form_variables(operation.primitive)


# What the join kernel can do itself

_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_ARITHMETIC = frozenset(
    ["add", "sub", "mul", "div", "mod", "pow", "neg", "band", "bor", "bxor", "bshl", "bshr", "bshru", "bnot"]
    + [
        "land",
        "lor",
        "lxor",
        "lnot",
        "range",
        "as_int",
        "as_unsigned",
        "to_float",
        "to_number",
        "to_unsigned",
    ]
)


def in_kernel(form: Form, types: Types, bag: bool = False, records: bool = False) -> bool:
    """Whether a form can run inside a join.  In a bag a disjunction may not bind: it could count twice.

    `records`: the join may make records and take them apart."""
    if isinstance(form, Atom):
        return True
    if isinstance(form, Negation):
        return all(in_kernel(f, types, False, records) for f in form.body.forms)
    if isinstance(form, Disjunction):
        return not bag and all(in_kernel(f, types, False, records) for b in form.branches for f in b.forms)
    return (records and is_record_form(form.name)) or _primitive_in_kernel(form, types)


def _primitive_in_kernel(form: Primitive, types: Types) -> bool:
    given = [_type(a, types) for a in form.args]
    exact = any(type.is_decimal for type in given)
    if form.name in _COMPARISONS:
        return not exact or _same_scale(form, types)
    if form.name in ("min", "max"):
        return not exact
    return form.name in _ARITHMETIC and not exact and all(type.is_numeric for type in given)


def _type(operand: Operand, types: Types) -> Type:
    if isinstance(operand, Const):
        assert operand.type is not None
        return operand.type
    return types[operand.name]


def _same_scale(form: Primitive, types: Types) -> bool:
    """Stored decimals of one scale compare by their codes; so does a literal with no more digits.

    Decimals that a rule computes are wide columns (more than 18 digits), which only column primitives read.
    """
    stored = [types[a.name] for a in form.inputs if isinstance(a, Var)]
    digits = [len(str(a.value).partition(".")[2]) for a in form.inputs if isinstance(a, Const)]
    scales = {t.scale for t in stored}
    return (
        len(scales) == 1
        and all(t.precision <= MAX_PRECISION for t in stored)
        and all(d <= min(scales) for d in digits)
    )


def form_variables(form: Form) -> set[str]:
    return Conj((), (form,)).variables()


def own_variables(form: Form, forms: Iterable[Form], outputs: set[str]) -> set[str]:
    """Variables that occur in this form and nowhere else."""
    around = set(outputs)
    for other in forms:
        if other is not form:
            around |= form_variables(other)
    return form_variables(form) - around


def _inputs(form: Form, shared: set[str], bound: set[str]) -> set[str]:
    """What must be bound before a non-atom can run."""
    if isinstance(form, Primitive):
        names = {a.name for a in form.inputs if isinstance(a, Var)}
        if form.name == "eq" and len(names - bound) == 1 and form.inputs[0] != form.inputs[1]:
            return names & bound
        return names
    if isinstance(form, Negation):
        return shared & form.body.variables()
    if isinstance(form, Disjunction):  # it binds what is missing in every branch, or waits for all of it
        shared = shared & form_variables(form)
        fresh = shared - bound
        return shared & bound if fresh <= ground((form,), bound, fresh) else shared
    return set()


def _binds(form: Form) -> set[str]:
    """Variables that a form can bind."""
    if isinstance(form, Atom) or (isinstance(form, Primitive) and form.name == "eq"):
        return {a.name for a in form.args if isinstance(a, Var)}
    if isinstance(form, Primitive):
        return {form.output.name} if isinstance(form.output, Var) else set()
    if isinstance(form, Disjunction) and form.branches:
        return set.intersection(*({v for f in b.forms for v in _binds(f)} for b in form.branches))
    return set()


def _column_outputs(form: Form) -> set[str]:
    if isinstance(form, Primitive):
        return {form.output.name} if isinstance(form.output, Var) else set()
    return _binds(form)
