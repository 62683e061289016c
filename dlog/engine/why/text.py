"""Owns derivations as text: an indented tree, each fact once, with the positions of the rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dlog.engine.commit.printed_facts import fact_text, literal_text
from dlog.engine.why.alternatives import place
from dlog.engine.why.tree import Assignment, Condition, Derivation, Premise
from dlog.ir.lower.aggregates import is_domain
from dlog.ir.lower.choice import CANDIDATES
from dlog.ir.primitives import show
from dlog.ir.rules import (
    Atom,
    Conj,
    Const,
    Disjunction,
    Form,
    Negation,
    Operand,
    Primitive,
    Program,
    Rule,
    Var,
)

_DEEPEST = 40  # levels of indentation; deeper lines say their level


def tree_text(root: Derivation) -> str:
    """One line for each node, its premises below it.  O(size), whatever the depth."""
    printer = _Printer(root)
    return "\n".join(printer.lines)


class _Printer:
    def __init__(self, root: Derivation):
        assert root.view is not None
        self.program: Program = root.view.program
        self.lines: list[str] = []
        self.shown: set[int] = set()
        self.stack: list[tuple[Any, int]] = [(root, 0)]
        while self.stack:
            item, depth = self.stack.pop()
            indent = "  " * depth if depth <= _DEEPEST else "  " * _DEEPEST + f"[{depth}] "
            text, below = self.described(item)
            self.lines.append(indent + text)
            self.stack += [(child, depth + 1) for child in reversed(below)]

    def described(self, item: Any) -> tuple[str, list[Any]]:
        """The line of a node and what comes below it."""
        if isinstance(item, str):
            return item, []
        if isinstance(item, tuple):
            return self.assignment(*item)
        assert isinstance(item, Derivation)
        text = self.fact(item) + ("   replaced since" if item.replaced else "")
        if item.by == "fact":
            return f"{text}   base fact", []
        if id(item) in self.shown:
            return f"{text}   shown above", []
        self.shown.add(id(item))
        if item.by == "number":
            return f"{text}   by autoinc()", list(item.parts)
        if item.by == "equivalence":
            return f"{text}   by equivalence", list(item.parts)
        assert item.rule is not None
        if item.by == "sequence":
            return f"{text}   by its place in the order of {place(item.rule)}", list(item.parts)
        if item.by == "rule":
            return f"{text}   by {place(item.rule)}", self.parts(item.rule, item.binding, item.parts)
        return self.aggregate(item, text)

    def aggregate(self, item: Derivation, text: str) -> tuple[str, list[Any]]:
        rule = item.rule
        assert rule is not None
        ops = " and ".join(str(a.function) for a in rule.aggregates)
        number = f"{item.total:,} assignment{'' if item.total == 1 else 's'}"
        below: list[Any] = [(rule, a) for a in item.assignments]
        if item.total > len(item.assignments):
            below.append(f"and {item.total - len(item.assignments):,} more")
        return f"{text}   by {place(rule)}: {ops} of {number}", below

    def assignment(self, rule: Rule, assignment: Assignment) -> tuple[str, list[Any]]:
        named = [f"{n} = {literal_text(v, rule.types[n])}" for n, v in self.visible(rule, assignment.binding)]
        return "with " + (", ".join(named) or "nothing"), self.parts(
            rule, assignment.binding, assignment.parts
        )

    def visible(self, rule: Rule, binding: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Without the variables that a wildcard or an expression stands for."""
        return [(n, v) for n, v in binding.items() if n.isidentifier() and not n.startswith("_")]

    def parts(self, rule: Rule, binding: Mapping[str, Any], parts: list[Premise]) -> list[Any]:
        return [self.condition(rule, binding, p.form) if isinstance(p, Condition) else p for p in parts]

    # Facts and conditions

    def fact(self, item: Derivation) -> str:
        if not item.predicate.auxiliary:
            return fact_text(item.predicate, item.row)
        pairs = zip(item.row, item.predicate.columns, strict=True)
        return self.auxiliary(item.predicate.name, [literal_text(v, c.type) for v, c in pairs])

    def auxiliary(self, name: str, args: list[str]) -> str:
        """An inline aggregate by its text; the values that it is evaluated for."""
        predicate = self.program.predicates[name]
        if predicate.numbering is not None:
            count = predicate.numbering.count
            return f"number {', '.join(args[-count:])} for ({', '.join(args[:-count])})"
        relation = self.program.predicates.get(name.removesuffix(CANDIDATES))
        if relation is not None and relation.choice is not None:
            return f"candidate {relation.name}({', '.join(args)})"
        rules = self.program.rules_of(name)
        if is_domain(name) or not rules or not rules[0].aggregates:
            return f"values ({', '.join(args)})"
        span = rules[0].span
        text = " ".join(span.text().split()) if span else name
        return f"{text} = {args[-1]}"

    def condition(self, rule: Rule, binding: Mapping[str, Any], form: Form) -> str:
        known = {n: literal_text(v, rule.types[n]) for n, v in binding.items()}
        if isinstance(form, Negation):
            uses = Counter(v.name for v in form.body.occurrences())
            once = {n: "_" for n, count in uses.items() if count == 1}
            return f"no {self.conjunction(form.body, {**once, **known})}"
        return self.form(form, known)

    def conjunction(self, conj: Conj, known: Mapping[str, str]) -> str:
        texts = [self.form(f, known) for f in conj.forms]
        return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"

    def form(self, form: Form, known: Mapping[str, str]) -> str:
        if isinstance(form, Atom):
            args = [_operand(a, known) for a in form.args]
            predicate = self.program.predicates[form.predicate]
            if predicate.equivalence is not None:
                return f"{predicate.equivalence}({', '.join(args)})"
            return (
                self.auxiliary(form.predicate, args) if predicate.auxiliary else predicate.show(tuple(args))
            )
        if isinstance(form, Primitive):
            inputs: Any = tuple(_operand(a, known) for a in form.inputs)
            output: Any = None if form.output is None else _operand(form.output, known)
            return show(replace(form, inputs=inputs, output=output))
        if isinstance(form, Negation):
            return f"!{self.conjunction(form.body, known)}"
        assert isinstance(form, Disjunction)
        return f"({' ; '.join(self.conjunction(b, known) for b in form.branches)})"


def _operand(operand: Operand, known: Mapping[str, str]) -> str:
    if isinstance(operand, Var):
        return known.get(operand.name, operand.name)
    assert isinstance(operand, Const)
    return str(operand)
