"""Owns the check of derivation trees: each node follows from its children by the rule it names.

Works on the tree and on the naive evaluator's facts; shares nothing with the search that found it.  A node is
an object with `predicate`, `row`, `by`, `rule`, `binding`, `forms`, `parts`, `assignments`, `total`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dlog.ir.rules import Atom, Conj, Disjunction, Form, Negation, Primitive, Program, Rule, Stratum

from .naive import Environment, Facts, _aggregated, _Body, _Stratum, _value, fitted
from .values import canonical, fit, order


def acyclic(root: Any) -> Iterator[Any]:
    """All nodes, each once; raises when one is its own ancestor."""
    on_path: set[int] = set()
    done: set[int] = set()
    stack = [(root, False)]
    while stack:
        node, leaving = stack.pop()
        if leaving:
            on_path.discard(id(node))
            done.add(id(node))
        elif id(node) not in done:
            assert id(node) not in on_path, f"{node.predicate.name}{node.row} is its own ancestor"
            on_path.add(id(node))
            yield node
            stack.append((node, True))
            for child in node.children():
                assert id(child) not in on_path, f"{child.predicate.name}{child.row} is its own ancestor"
                stack.append((child, False))


class Checker:
    """Checks trees over one state of a program."""

    def __init__(self, program: Program, base: Facts, facts: Facts):
        self.program, self.base, self.facts = program, base, facts
        self.strata = {p: s for s in program.strata for p in s.predicates}
        self.solutions: dict[tuple[int, str], list[Environment]] = {}  # of aggregations' bodies

    def check(self, root: Any) -> None:
        """Raises AssertionError for the first thing that is wrong."""
        for node in acyclic(root):
            self.node(node)

    def node(self, node: Any) -> None:
        name, row = node.predicate.name, tuple(map(canonical, node.row))
        if node.replaced:
            self.worse(name, row)
        else:
            assert row in self.facts[name], f"{name}{row} does not hold"
        if node.by == "fact":
            assert row in self.base[name], f"{name}{row} is no base fact"
            assert not node.parts and not node.assignments
        elif node.by == "rule":
            self.by_rule(node, name, row)
        else:
            assert node.by == "aggregate", node.by
            self.by_aggregate(node, name, row)

    def worse(self, name: str, row: tuple) -> None:
        """A value that was replaced is worse than the one that its key has."""
        (final,) = [other[-1] for other in self.facts[name] if other[:-1] == row[:-1]]
        op = self.strata[name].combine[name]
        assert order(final) < order(row[-1]) if op == "min" else order(final) > order(row[-1])

    def by_rule(self, node: Any, name: str, row: tuple) -> None:
        stratum = self.strata[name]
        rule = next(r for r in stratum.rules if r.id == node.rule.id and r.body == node.rule.body)
        assert tuple(node.forms) in set(choices(rule.body.forms)), "these are no branches of the body"
        environment = {n: canonical(v) for n, v in node.binding.items()}
        self.parts(rule, stratum, environment, node.forms, node.parts)
        heads = [h for h in node.rule.heads if h.predicate == name]
        rows = [fitted(tuple(_value(a, environment) for a in h.args), node.predicate) for h in heads]
        assert row in rows, f"the rule gives {rows}, not {row}"
        if rule.aggregates:  # a recursive min or max: the head's value is the argument's
            assert name in stratum.combine
            argument = rule.aggregates[0].argument
            assert argument is not None
            assert fitted((*row[:-1], _value(argument, environment)), node.predicate) == row

    def parts(
        self,
        rule: Rule,
        stratum: Stratum,
        environment: Environment,
        forms: tuple[Form, ...],
        parts: list[Any],
    ) -> None:
        body = _Body(rule, _Stratum(self.program, stratum, self.base, self.facts))
        assert len(forms) == len(parts)
        for form, part in zip(forms, parts, strict=True):
            if isinstance(form, Atom):
                assert part.predicate.name == form.predicate
                row = tuple(_value(a, environment) for a in form.args)
                assert fitted(row, part.predicate) == tuple(map(canonical, part.row)), str(form)
            else:
                assert isinstance(form, Negation | Primitive) and part.form == form
                held = list(body.extend(form, dict(environment)))
                assert any(e == environment for e in held), f"{form} does not hold under {environment}"

    def by_aggregate(self, node: Any, name: str, row: tuple) -> None:
        stratum, rule = self.strata[name], node.rule
        assert any(r.id == rule.id and r.aggregates == rule.aggregates for r in stratum.rules)
        head = next(h for h in rule.heads if h.predicate == name)
        members = [e for e in self.all_solutions(rule, stratum) if self.in_group(e, rule, head, row)]
        results = list(_aggregated(rule, iter(members)))
        rows = {fitted(tuple(_value(a, r) for a in head.args), node.predicate) for r in results}
        assert rows == {row}, f"the aggregate gives {rows}, not {row}"
        own = [v.name for v in (*rule.groups, *rule.body.exists)]
        distinct = {tuple(e[v] for v in own) for e in members}
        assert node.total == len(distinct) and 0 < len(node.assignments) <= node.total
        seen = set()
        for assignment in node.assignments:
            environment = {n: canonical(v) for n, v in assignment.binding.items()}
            values = tuple(environment[v] for v in own)
            assert values in distinct and values not in seen
            seen.add(values)
            assert tuple(assignment.forms) in set(choices(rule.body.forms))
            self.parts(rule, stratum, environment, assignment.forms, assignment.parts)

    def all_solutions(self, rule: Rule, stratum: Stratum) -> list[Environment]:
        key = (rule.id, str(rule))
        if key not in self.solutions:
            body = _Body(rule, _Stratum(self.program, stratum, self.base, self.facts))
            self.solutions[key] = list(body.solutions(rule.body, {}))
        return self.solutions[key]

    def in_group(self, environment: Environment, rule: Rule, head: Atom, row: tuple) -> bool:
        """Whether the group of an environment is that of the row."""
        results = {a.result.name for a in rule.aggregates}
        columns = self.program.predicates[head.predicate].columns
        return all(
            getattr(operand, "name", None) in results
            or fit(_value(operand, environment), column.type) == value
            for operand, column, value in zip(head.args, columns, row, strict=True)
        )


def choices(forms: tuple[Form, ...]) -> Iterator[tuple[Form, ...]]:
    """Conjunctions with one branch of every disjunction, from the left."""
    places = [i for i, form in enumerate(forms) if isinstance(form, Disjunction)]
    if not places:
        yield forms
        return
    disjunction = forms[places[0]]
    assert isinstance(disjunction, Disjunction)
    for branch in disjunction.branches:
        assert isinstance(branch, Conj)
        yield from choices((*forms[: places[0]], *branch.forms, *forms[places[0] + 1 :]))
