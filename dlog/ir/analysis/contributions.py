"""Owns the contributions to a recursive total as a predicate: one row for each assignment that it adds up.

    held[x, z] = s <- agg<<s = sum(p)>> acts(x, y), owns[y, z] = p.               is evaluated as
    contributions(x, z, y, p) <- acts(x, y), owns[y, z] = p.
    held[x, z] = s <- agg<<s = sum(p)>> contributions(x, z, y, p).

A row has the group, the keys of the body, and the value that is added.  Where that value is computed
from totals, it grows: then all before it is its key, and the greatest is right.  Values that grow are no
keys: they follow from the others.  An alternative in which a key grows, and which its number tells apart
(see `dlog.ir.analysis.totals`), has a fixed value in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dlog.ir.analysis.non_negative import alternatives
from dlog.ir.analysis.projection import outer_variables
from dlog.ir.analysis.totals import growing_values
from dlog.ir.rules import (
    Atom,
    Column,
    Conj,
    Const,
    Form,
    Operand,
    Predicate,
    Primitive,
    Program,
    Rule,
    Stratum,
    Var,
)
from dlog.ir.types.decimals import scale_decimals
from dlog.values import MAX_PRECISION, Type, decimal

_VALUE = "$value"


@dataclass(frozen=True)
class Alternative:
    """`rule` derives contributions.  `needs` are the atoms of the totals that its value is computed from,
    `arithmetic` the sums and products of integers that grow."""

    rule: Rule
    needs: tuple[Atom, ...]
    arithmetic: tuple[Primitive, ...]


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


def contributions_of(program: Program, stratum: Stratum) -> list[Contributions]:
    """Those of all totals of a stratum."""
    return [
        _contributions(program, rule, stratum.totals)
        for rule in stratum.rules
        if rule.heads[0].predicate in stratum.totals
    ]


def _contributions(program: Program, rule: Rule, totals: Mapping[str, str]) -> Contributions:
    (head,), (item,) = rule.heads, rule.aggregates
    groups = [v.name for v in rule.groups]
    bodies = [_body(program, rule, forms) for forms in alternatives(rule.body.forms)]
    growing = [growing_values(own.body.forms, totals) for own in bodies]
    keyed = [v for v in outer_variables(rule) if v in rule.keys and v not in groups]
    keys = groups + [v for v in keyed if not all(v in found for found in growing)]
    types = {v: _widest(Var(v), bodies) for v in keys}
    if item.argument is not None:
        types[_VALUE] = _widest(item.argument, bodies)
    argument = [] if item.argument is None else [item.argument]
    grow = any(isinstance(v, Var) and v.name in found for v in argument for found in growing)
    columns = tuple(Column(v, type) for v, type in types.items())
    name = f"contributions to {head.predicate}"
    n_keys = len(keys) if grow else len(columns)
    atom = Atom(name, (*map(Var, keys), *argument), n_keys, rule.span)
    touched = Predicate(f"groups of {name}", columns[: len(groups)], len(groups), auxiliary=True)
    total = Atom(name, tuple(map(Var, types)), n_keys)
    types[item.result.name] = item.function.result_type(types.get(_VALUE))
    return Contributions(
        head.predicate,
        Predicate(name, columns, n_keys, auxiliary=True, span=rule.span),
        touched,
        tuple(_alternative(own, atom, grows) for own, grows in zip(bodies, growing, strict=True)),
        _adding_up(rule, total, touched.name, types),
        grow,
    )


def _body(program: Program, rule: Rule, forms: tuple[Form, ...]) -> Rule:
    """One alternative alone: what it computes has all its digits, whatever the others store."""
    own, types = replace(rule, body=Conj((), forms)), dict(rule.types)
    column = lambda name, index: program.predicates[name].columns[index].type  # noqa: E731
    scale_decimals(own, types, column, program.functors)
    return replace(own, types=types)


def _widest(operand: Operand, bodies: Sequence[Rule]) -> Type:
    """The type of a column for an operand: with the most digits that an alternative gives it."""
    found = [own.types[operand.name] if isinstance(operand, Var) else operand.type for own in bodies]
    types = [type for type in found if type is not None]
    return _stored(max(types, key=lambda type: type.scale))


def _stored(type: Type) -> Type:
    """The type of a column: computed decimals have more digits than one holds."""
    if not type.is_decimal or type.precision <= MAX_PRECISION:
        return type
    return decimal(MAX_PRECISION, min(type.scale, MAX_PRECISION))


def _alternative(own: Rule, head: Atom, grows: Mapping[str, frozenset[Atom]]) -> Alternative:
    (item,), args = own.aggregates, list[Operand]()
    for index, operand in enumerate(head.args):
        is_value = item.argument is not None and index == len(head.args) - 1
        if isinstance(operand, Var) and operand.name in grows and not is_value:
            type = own.types[operand.name]
            operand = Const(*type.some_literal, type)
        args.append(operand)
    value = item.argument.name if isinstance(item.argument, Var) else ""
    rule = replace(own, heads=(replace(head, args=tuple(args)),), aggregates=())
    arithmetic = tuple(
        form
        for form in own.body.forms
        if isinstance(form, Primitive)
        and form.name in ("add", "sub", "mul")
        and isinstance(form.output, Var)
        and form.output.name in grows
        and own.types[form.output.name].name in ("int", "unsigned")
    )
    return Alternative(rule, tuple(sorted(grows.get(value, ()), key=str)), arithmetic)


def _adding_up(rule: Rule, contributions: Atom, touched: str, types: Mapping[str, Type]) -> Rule:
    """The total of each group that is touched."""
    (item,), groups = rule.aggregates, tuple(Var(v.name) for v in rule.groups)
    forms = [Atom(touched, groups, len(groups))] if groups else []
    argument = None if item.argument is None else Var(_VALUE)
    body = Conj(tuple(a for a in contributions.args if a not in groups), (*forms, contributions))  # type: ignore[misc]
    keys = frozenset(a.name for a in contributions.args if isinstance(a, Var))
    return replace(rule, body=body, aggregates=(replace(item, argument=argument),), types=types, keys=keys)
