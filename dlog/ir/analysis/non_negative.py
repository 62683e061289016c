"""Owns which values cannot be negative: those of unsigned types, counts, what a condition or a constraint
bounds, and what is computed from such values.

A constraint counts if it bounds a column of every fact: `owns[y, z] = p -> p >= 0.`  Base facts may be
anything else, so the rules of a predicate prove nothing about it, unless it is auxiliary: then only rules
derive it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy

from dlog.ir.rules import (
    Atom,
    Conj,
    Disjunction,
    Form,
    Negation,
    Operand,
    Predicate,
    Primitive,
    Rule,
    Var,
)
from dlog.values import Type

# Functions whose result is not negative if these inputs are not.
_KEEP = {
    **dict.fromkeys(("add", "mul", "div", "mod", "min"), (0, 1)),
    **dict.fromkeys(("floor", "ceil", "round", "sqrt"), (0,)),
    **dict.fromkeys(("to_int", "to_float", "to_decimal", "to_number", "to_unsigned"), (0,)),
}
_NEVER = frozenset(("abs", "strlen"))  # are never negative
_CONVERSIONS = frozenset(("to_int", "to_float", "to_decimal", "to_number", "to_unsigned"))
# Comparisons that bound one input by the other from below: (name, the bounded one).
_BOUNDS = {("ge", 0), ("gt", 0), ("le", 1), ("lt", 1)}


class NonNegative:
    """What is known about the columns of a program's predicates."""

    def __init__(
        self, predicates: Mapping[str, Predicate], rules: Iterable[Rule], constraints: Iterable[Rule]
    ):
        """`constraints` are the rules of their violations.  O(rules)"""
        self.predicates = predicates
        self.totals: Collection[str] = ()
        self.rules: dict[str, list[Rule]] = defaultdict(list)
        for rule in rules:
            for head in rule.heads:
                self.rules[head.predicate].append(rule)
        self.columns = {column for rule in constraints for column in _bounded_columns(rule)}
        self.known: dict[tuple[str, int], bool] = {}  # columns of auxiliary predicates

    def given(self, totals: Collection[str]) -> NonNegative:
        """The same where these are recursive sums of values that are not negative, or counts.  O(1)"""
        other = copy(self)
        other.totals, other.known = totals, {}
        return other

    def variables(self, rule: Rule, forms: Iterable[Form]) -> set[str]:
        """Variables that are not negative wherever all these forms hold.  O(forms^2)"""
        forms = list(forms)
        found = {name for name, type in rule.types.items() if type.kernel == "unsigned"}
        for form in forms:
            if isinstance(form, Atom):
                given = enumerate(form.args)
                found |= {a.name for i, a in given if isinstance(a, Var) and self.column(form.predicate, i)}
        primitives = [f for f in forms if isinstance(f, Primitive)]
        before = -1
        while before < len(found):
            before = len(found)
            for primitive in primitives:
                found.update(_shown(primitive, found, rule.types))
        return found

    def column(self, predicate: str, index: int) -> bool:
        """Whether no fact has a negative value in a column."""
        if predicate in self.totals and index == self.predicates[predicate].arity - 1:
            return True
        if (predicate, index) in self.columns:
            return True
        if not self.predicates[predicate].auxiliary or not self.rules[predicate]:
            return False
        place = (predicate, index)
        if place not in self.known:
            self.known[place] = True  # of what derives it from itself
            self.known[place] = all(self._derives(rule, *place) for rule in self.rules[predicate])
        return self.known[place]

    def _derives(self, rule: Rule, predicate: str, index: int) -> bool:
        args = [head.args[index] for head in rule.heads if head.predicate == predicate]
        return all(self._is(rule, arg) for arg in args)

    def _is(self, rule: Rule, operand: Operand) -> bool:
        item = next((a for a in rule.aggregates if a.result == operand), None)
        if item is None:
            return all(is_in(operand, self.variables(rule, forms)) for forms in alternatives(rule.body.forms))
        if not item.function.takes_argument or item.function.is_distinct:
            return True
        keeps = item.function.adds_up or item.function.direction != 0
        assert item.argument is not None
        return keeps and self._is(rule, item.argument)


def is_in(operand: Operand, known: set[str]) -> bool:
    """Whether an operand is a literal that is not negative, or one of the variables known not to be."""
    if isinstance(operand, Var):
        return operand.name in known
    numeric = operand.type is None or operand.type.is_numeric
    return numeric and operand.kind != "string" and not str(operand.value).startswith("-")


def alternatives(forms: tuple[Form, ...]) -> Iterator[tuple[Form, ...]]:
    """The conjunctions that a body's disjunctions stand for."""
    for index, form in enumerate(forms):
        if isinstance(form, Disjunction):
            for branch in form.branches:
                yield from alternatives((*forms[:index], *branch.forms, *forms[index + 1 :]))
            return
    yield forms


def _shown(form: Primitive, known: set[str], types: Mapping[str, Type]) -> Iterator[str]:
    """The variables that a primitive shows not to be negative."""
    if form.output is None and len(form.inputs) == 2:
        for index, operand in enumerate(form.inputs):
            bounds = form.name == "eq" or (form.name, index) in _BOUNDS
            if isinstance(operand, Var) and bounds and is_in(form.inputs[1 - index], known):
                yield operand.name
    elif isinstance(form.output, Var) and _keeps(form, known, types):
        yield form.output.name


def _keeps(form: Primitive, known: set[str], types: Mapping[str, Type]) -> bool:
    if form.name in _NEVER:
        return True
    if form.name == "max":
        return any(is_in(a, known) for a in form.inputs)
    if form.name in _CONVERSIONS:
        (given,) = form.inputs
        type = types[given.name] if isinstance(given, Var) else given.type
        if type is None or not type.is_numeric:
            return False
    return form.name in _KEEP and all(is_in(form.inputs[i], known) for i in _KEEP[form.name])


def _bounded_columns(rule: Rule) -> Iterator[tuple[str, int]]:
    """The columns that a constraint bounds for every fact, from the rule of its violations."""
    atoms = [f for f in rule.body.forms if isinstance(f, Atom)]
    others = [f for f in rule.body.forms if not isinstance(f, Atom)]
    if len(atoms) != 1 or len(others) != 1 or not isinstance(others[0], Negation):
        return
    (atom,), names = atoms, [a.name for a in atoms[0].args if isinstance(a, Var)]
    if len(set(names)) < len(atom.args):
        return
    shown = _consequences(others[0].body, rule.types)
    yield from ((atom.predicate, index) for index, name in enumerate(names) if name in shown)


def _consequences(conj: Conj, types: Mapping[str, Type]) -> set[str]:
    found: set[str] = set()
    for _ in conj.forms:
        for form in conj.forms:
            if isinstance(form, Primitive):
                found.update(_shown(form, found, types))
    return found
