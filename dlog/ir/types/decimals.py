"""Owns the digits of decimals inside a rule.

A column has the digits it was declared with, a literal those it is written with.  Results are exact, so a
product has the digits of both factors; a quotient has QUOTIENT_SCALE at least.  Heads round to their
column.  A variable that gets digits from several places has the most of them, but what atoms bind has
the digits of their columns.  An atom whose column has other digits than its variable is read through a
separate variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal

from dlog.ir.functors import Functor, functor_of, is_call
from dlog.ir.rules import Const, Operand, Primitive, Rule, Var
from dlog.values import DECIMAL, MAX_PRECISION, Type, decimal

QUOTIENT_SCALE = 12
EXACT_PRECISION = 38  # digits of a value that a rule computes
_MAX_SCALE = 30
_MINMAX_SCALE = 9  # digits of a min or max in an auxiliary predicate

ColumnType = Callable[[str, int], Type]


def scale_decimals(
    rule: Rule, types: dict[str, Type], column_type: ColumnType, functors: Mapping[str, Functor]
) -> None:
    """Gives every decimal variable of a rule its digits.  `types` has all variables, and is changed."""
    if not any(t.is_decimal for t in types.values()):
        return
    scales: dict[str, int] = {}
    for atom, negated in rule.body.atoms():
        for index, operand in enumerate(atom.args):
            if isinstance(operand, Var) and types[operand.name].is_decimal and not negated:
                scale = column_type(atom.predicate, index).scale
                scales[operand.name] = max(scale, scales.get(operand.name, 0))
    stored = set(scales)
    _spread(rule, types, scales, stored, functors)
    for name, scale in scales.items():
        # What an atom binds has a column's 18 digits; what the rule computes itself is wider.
        types[name] = Type("decimal", scale, MAX_PRECISION if name in stored else EXACT_PRECISION)


def same_digits(type: Type, column: Type) -> bool:
    """Whether a column's codes are the codes of a variable of this type."""
    return not column.is_decimal or (type.scale == column.scale and type.precision <= MAX_PRECISION)


def literal_scale(literal: Const) -> int:
    """Digits after the point that a literal is written with."""
    if literal.kind != "float":
        return 0
    exponent = Decimal(str(literal.value)).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def auxiliary_column(rule: Rule, types: dict[str, Type], operand: Operand) -> Type | None:
    """The decimal type in an auxiliary predicate: keys unchanged, results as far as they fit.

    A sum leaves room for large numbers, like a column declared by the user.
    """
    if not isinstance(operand, Var) or not types[operand.name].is_decimal:
        return None
    scale = min(types[operand.name].scale, MAX_PRECISION)
    functions = [a.function for a in rule.aggregates if a.result.name == operand.name]
    if functions:
        stored = [t.scale for t in types.values() if t.is_decimal and t.precision <= MAX_PRECISION]
        scale = min(scale, max([DECIMAL.scale, *stored]) if functions[0].adds_up else _MINMAX_SCALE)
    return decimal(MAX_PRECISION, scale)


def _spread(
    rule: Rule,
    types: dict[str, Type],
    scales: dict[str, int],
    stored: set[str],
    functors: Mapping[str, Functor],
) -> None:
    """From operands to results until nothing changes.  Scales only grow, up to _MAX_SCALE."""

    def scale_of(operand: Operand) -> int | None:
        if isinstance(operand, Const):
            return literal_scale(operand)
        return scales.get(operand.name) if types[operand.name].is_decimal else 0

    changed = True
    while changed:
        changed = False
        for target, scale in _results(rule, scale_of, functors):
            if isinstance(target, Var) and types[target.name].is_decimal and target.name not in stored:
                scale = min(scale, _MAX_SCALE)
                if scales.get(target.name, -1) < scale:
                    scales[target.name] = scale
                    changed = True


def _results(
    rule: Rule, scale_of: Callable[[Operand], int | None], functors: Mapping[str, Functor]
) -> Iterable[tuple[Operand | None, int]]:
    """(operand, digits) for all results known so far."""
    for form in rule.body.walk():
        if not isinstance(form, Primitive):
            continue
        known = [scale_of(a) for a in form.inputs]
        if form.name == "eq":
            for target, scale in zip(reversed(form.inputs), known, strict=True):
                if scale is not None:
                    yield target, scale
        elif is_call(form.name):
            yield form.output, functors[functor_of(form.name)].result.scale
        elif form.name == "to_decimal":
            yield form.output, DECIMAL.scale
        elif all(k is not None for k in known):
            yield form.output, _result_scale(form.name, [k for k in known if k is not None])
    for aggregate in rule.aggregates:
        if is_call(aggregate.op):
            yield aggregate.result, aggregate.function.result_type(None).scale
        elif aggregate.argument is not None and (scale := scale_of(aggregate.argument)) is not None:
            yield aggregate.result, scale


def _result_scale(name: str, inputs: list[int]) -> int:
    if name == "mul":
        return sum(inputs)
    return max(QUOTIENT_SCALE, *inputs) if name == "div" else max(inputs)
