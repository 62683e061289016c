"""Owns recursive min and max: whether a value only flows through operations that preserve its order.

A recursive value improves as the recursion continues: smaller under min, greater under max.  What is
derived from it must stay derivable, or be replaced by something better.  So it may go through
order-preserving operations into a head that combines by the same aggregate, and through bounds that stay
true; it may not be compared for equality, become a key, or occur under a negation.
"""

from __future__ import annotations

from dlog.aggregates import aggregate_named
from dlog.errors import Diagnostics
from dlog.ir.rules import Atom, Conj, Const, Disjunction, Form, Negation, Primitive, Rule, Var
from dlog.ir.types.typecheck import called, text_of
from dlog.language.source import Span

# Operations that preserve the order of a value, by input position.
MONOTONE = {
    "add": (0, 1),
    "sub": (0,),
    "min": (0, 1),
    "max": (0, 1),
    "to_float": (0,),
    "to_decimal": (0,),
    "to_number": (0,),
    "floor": (0,),
    "ceil": (0,),
    "round": (0,),
}
# Conversions preserve the order of numbers only.
CONVERSIONS = frozenset({"to_float", "to_decimal", "to_number"})
# Bounds that stay true as the value at a position improves.
# By the direction of the aggregate: 1 if smaller is better, -1 if greater is.
_BOUNDS = {(1, "lt", 0), (1, "le", 0), (1, "gt", 1), (1, "ge", 1),
           (-1, "gt", 0), (-1, "ge", 0), (-1, "lt", 1), (-1, "le", 1)}  # fmt: skip


def bound_by(direction: int) -> set[tuple[str, int]]:
    """The comparisons, with the position of a value, that stay true as the value improves."""
    return {(name, index) for way, name, index in _BOUNDS if way == direction}


class Misuse(Exception):
    """Of a recursive value, by an aggregate `op`."""

    def __init__(self, op: str, what: str, span: Span | None, help: str = ""):
        super().__init__(what)
        self.op, self.what, self.span, self.help = op, what, span, help


def check_monotone(rule: Rule, combine: dict[str, str], diagnostics: Diagnostics) -> None:
    """Reports the first misuse of a recursive value in a rule of the recursion.  REQUIRES: a safe order."""
    try:
        flow = Flow(rule, combine)
        _check_aggregate(rule, combine)
        flow.run(rule.body, set())
        flow.check_heads()
    except Misuse as misuse:
        op = misuse.op
        help = f"a recursive {op} may flow through +, -, min and max into the {op} itself, and nowhere else"
        span = misuse.span or rule.span
        diagnostics.error(f"the recursive {op} is not monotone: {misuse.what}", span, help)


def _check_aggregate(rule: Rule, combine: dict[str, str]) -> None:
    """All rules of a head combine by the same aggregate."""
    for head in rule.heads:
        op = combine.get(head.predicate)
        for aggregate in rule.aggregates:
            if op is not None and aggregate.op != op and aggregate.result in head.args:
                what = f"another rule of {head.predicate} combines by {aggregate.op}"
                raise Misuse(op, what, aggregate.span)


class Flow:
    """Follows recursive values through a body.  `values` gives the op of each variable's value."""

    def __init__(self, rule: Rule, combine: dict[str, str]):
        self.rule = rule
        self.combine = combine
        self.values: dict[str, str] = {}

    def run(self, conj: Conj, bound: set[str]) -> None:
        """Goes through the forms of a conjunction in order; `bound` grows."""
        for form in conj.forms:
            if isinstance(form, Atom):
                self.atom(form, bound)
            elif isinstance(form, Primitive):
                self.primitive(form, bound)
            elif isinstance(form, Negation):
                self.negation(form)
            else:
                assert isinstance(form, Disjunction)
                inside = [set(bound) for _ in form.branches]
                for branch, own in zip(form.branches, inside, strict=True):
                    self.run(branch, own)
                bound |= set.intersection(*inside) if inside else set()
            bound |= _names(form) if isinstance(form, Atom | Primitive) else set()

    def atom(self, atom: Atom, bound: set[str]) -> None:
        op = self.combine.get(atom.predicate)
        for index, operand in enumerate(atom.args):
            is_value = op is not None and index == atom.n_keys
            if isinstance(operand, Var) and operand.name in self.values:
                what = f"the value {called(operand)} is looked up in {atom.predicate}"
                raise Misuse(self.values[operand.name], what, operand.span or atom.span)
            if is_value and (isinstance(operand, Const) or operand.name in bound):
                assert op is not None
                what = f"the value of {atom.predicate} is compared with {called(operand)}"
                raise Misuse(op, what, operand.span or atom.span)
            if is_value and isinstance(operand, Var) and op is not None:
                self.values[operand.name] = op

    def negation(self, negation: Negation) -> None:
        for var in negation.body.occurrences():
            if var.name in self.values:
                what = f"the value {called(var)} is used under a negation"
                raise Misuse(self.values[var.name], what, var.span or negation.span)

    def primitive(self, form: Primitive, bound: set[str]) -> None:
        used = [i for i, a in enumerate(form.inputs) if isinstance(a, Var) and a.name in self.values]
        if not used:
            if isinstance(form.output, Var) and form.output.name in self.values:
                self.misuse(form, form.output.name)
            return
        if form.output is None and form.name != "eq":
            self.comparison(form, used)
        else:
            self.function(form, used, target(form, bound))

    def comparison(self, form: Primitive, used: list[int]) -> None:
        if not all(self.is_bound(form, i) for i in used):
            self.misuse(form, self.name_at(form, used[0]))

    def function(self, form: Primitive, used: list[int], result: str | None) -> None:
        ops = {self.op_at(form, i) for i in used}
        if result is None or len(ops) > 1 or not (form.name == "eq" or self.keeps_order(form, used)):
            self.misuse(form, self.name_at(form, used[0]))
        else:
            self.values[result] = ops.pop()

    def misuse(self, form: Form, name: str) -> None:
        assert isinstance(form, Primitive)
        raise Misuse(self.values[name], f"the value goes through {text_of(form)}", form.span)

    def name_at(self, form: Primitive, index: int) -> str:
        operand = form.inputs[index]
        assert isinstance(operand, Var)
        return operand.name

    def op_at(self, form: Primitive, index: int) -> str:
        return self.values[self.name_at(form, index)]

    def is_bound(self, form: Primitive, index: int) -> bool:
        return (aggregate_named(self.op_at(form, index)).direction, form.name, index) in _BOUNDS

    def keeps_order(self, form: Primitive, used: list[int]) -> bool:
        if form.name in ("mul", "div"):
            other = form.inputs[1 - used[0]]
            positive = isinstance(other, Const) and not str(other.value).startswith("-")
            return positive and len(used) == 1 and (form.name == "mul" or used == [0])
        if form.name in CONVERSIONS and not self.rule.types[self.name_at(form, 0)].is_numeric:
            return False
        return all(i in MONOTONE.get(form.name, ()) for i in used)

    def check_heads(self) -> None:
        for aggregate in self.rule.aggregates:
            argument = aggregate.argument
            if isinstance(argument, Var) and self.values.get(argument.name, aggregate.op) != aggregate.op:
                what = f"the value {called(argument)} goes into {aggregate.op}"
                raise Misuse(self.values[argument.name], what, aggregate.span)
        for head in self.rule.heads:
            for index, operand in enumerate(head.args):
                if not isinstance(operand, Var) or operand.name not in self.values:
                    continue
                op = self.values[operand.name]
                if index < head.n_keys:
                    what = f"the value {called(operand)} becomes a key of {head.predicate}"
                    raise Misuse(op, what, operand.span or head.span)
                if self.combine.get(head.predicate) != op:
                    what = f"the value {called(operand)} becomes the value of {head.predicate}, "
                    what += f"which has no {op}"
                    raise Misuse(op, what, operand.span or head.span)


def target(form: Primitive, bound: set[str]) -> str | None:
    """The variable that a function or an equality binds; None when it compares."""
    targets = form.inputs if form.name == "eq" else (form.output,)
    free = [a.name for a in targets if isinstance(a, Var) and a.name not in bound]
    return free[0] if len(free) == 1 else None


def _names(form: Atom | Primitive) -> set[str]:
    return {a.name for a in form.args if isinstance(a, Var)}
