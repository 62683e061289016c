"""Owns the contributions to a recursive total as a predicate: one row for each assignment that it adds up.

    held[x, z] = s <- agg<<s = sum(p)>> acts(x, y), owns[y, z] = p.               is evaluated as
    contributions(x, z, y, p) <- acts(x, y), owns[y, z] = p.
    held[x, z] = s <- agg<<s = sum(p)>> contributions(x, z, y, p).

A row has the group, the keys of the body, and the value that is added.  Where that value is computed from
totals, it grows: then all before it is its key, and the greatest is right.  Values that grow are no keys: they
follow from the others.  An alternative in which a key grows, and which its number tells apart (see
`dlog.ir.analysis.totals`), has a fixed value in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dlog.ir.analysis.non_negative import alternatives
from dlog.ir.analysis.projection import outer_variables
from dlog.ir.analysis.totals import growing_values
from dlog.ir.rules import Atom, Column, Conj, Const, Form, Operand, Predicate, Rule, Stratum, Var
from dlog.values import MAX_PRECISION, Type

_VALUE = "$value"


@dataclass(frozen=True)
class Alternative:
    """`rule` derives contributions.  `needs` are the atoms of the totals that its value is computed from."""

    rule: Rule
    needs: tuple[Atom, ...]


@dataclass(frozen=True)
class Contributions:
    """The contributions to one total, and the groups that have new ones."""

    total: str
    predicate: Predicate
    touched: Predicate
    alternatives: tuple[Alternative, ...]
    adding_up: Rule
    grow: bool

    @property
    def name(self) -> str:
        return self.predicate.name


def contributions_of(stratum: Stratum) -> list[Contributions]:
    """Those of all totals of a stratum."""
    return [
        _contributions(rule, stratum.totals)
        for rule in stratum.rules
        if rule.heads[0].predicate in stratum.totals
    ]


def _contributions(rule: Rule, totals: Mapping[str, str]) -> Contributions:
    (head,), (item,) = rule.heads, rule.aggregates
    groups = [v.name for v in rule.groups]
    bodies = list(alternatives(rule.body.forms))
    growing = [growing_values(forms, totals) for forms in bodies]
    own = [v for v in outer_variables(rule) if v in rule.keys and v not in groups]
    keys = groups + [v for v in own if not all(v in found for found in growing)]
    values = [] if item.argument is None else [item.argument]
    grow = any(isinstance(v, Var) and v.name in found for v in values for found in growing)
    types = {**rule.types, **{_VALUE: _type(v, rule) for v in values}}
    columns = tuple(Column(v, _stored(types[v])) for v in (*keys, *([_VALUE] if values else [])))
    name = f"contributions to {head.predicate}"
    n_keys = len(keys) if grow else len(columns)
    predicate = Predicate(name, columns, n_keys, auxiliary=True, span=rule.span)
    touched = Predicate(f"groups of {name}", columns[: len(groups)], len(groups), auxiliary=True)
    found = tuple(
        _alternative(rule, forms, grows, Atom(name, (*map(Var, keys), *values), n_keys, rule.span), types)
        for forms, grows in zip(bodies, growing, strict=True)
    )
    stored = {c.name: c.type for c in columns} | {item.result.name: types[item.result.name]}
    total = _adding_up(rule, Atom(name, tuple(map(Var, stored))[:-1], n_keys), touched.name, stored)
    return Contributions(head.predicate, predicate, touched, found, total, grow)


def _type(operand: Operand, rule: Rule) -> Type:
    type = rule.types[operand.name] if isinstance(operand, Var) else operand.type
    assert type is not None
    return type


def _stored(type: Type) -> Type:
    """The type of a column: computed decimals have more digits than one holds."""
    return replace(type, precision=MAX_PRECISION) if type.precision > MAX_PRECISION else type


def _alternative(
    rule: Rule, forms: tuple[Form, ...], grows: Mapping[str, frozenset[Atom]], head: Atom, types: Mapping[str, Type]
) -> Alternative:
    args: list[Operand] = []
    value = rule.aggregates[0].argument
    for index, operand in enumerate(head.args):
        is_value = value is not None and index == len(head.args) - 1
        if isinstance(operand, Var) and operand.name in grows and not is_value:
            type = types[operand.name]
            operand = Const(*type.some_literal, type)
        args.append(operand)
    needs = grows.get(value.name, frozenset()) if isinstance(value, Var) else frozenset[Atom]()
    own = replace(
        rule, heads=(replace(head, args=tuple(args)),), body=Conj((), forms), aggregates=(), types=types
    )
    return Alternative(own, tuple(sorted(needs, key=str)))


def _adding_up(rule: Rule, contributions: Atom, touched: str, types: Mapping[str, Type]) -> Rule:
    """The total of each group that is touched."""
    (item,), groups = rule.aggregates, tuple(Var(v.name) for v in rule.groups)
    forms = [Atom(touched, groups, len(groups))] if groups else []
    argument = None if item.argument is None else Var(_VALUE)
    body = Conj(tuple(a for a in contributions.args if a not in groups), (*forms, contributions))  # type: ignore[misc]
    keys = frozenset(a.name for a in contributions.args if isinstance(a, Var))
    return replace(rule, body=body, aggregates=(replace(item, argument=argument),), types=types, keys=keys)
