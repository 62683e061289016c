"""Owns ranges that generate nothing: `x = range(a, b)` where an atom has x, too, as comparisons.

    # p(x, y) <- x = range(1, 10), g(x, y).       becomes  p(x, y) <- x >= 1, x < 10, g(x, y).
    # p(x) <- q(n), x = range(0, n), r(x).        becomes
    # p(x) <- q(n), l = min(0, n), h = max(0, n), x >= l, x <= h, x != n, r(x).

A range without a step leads from start to end in steps of 1 or -1, and never reaches the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dlog.ir.lower.literals import literal_value
from dlog.ir.rules import Atom, Conj, Const, Disjunction, Form, Negation, Operand, Primitive, Rule, Var
from dlog.values import INT, UNSIGNED, Type

_LIMIT = 1 << 62  # differences of smaller numbers fit


def with_range_tests(rule: Rule) -> Rule:
    """The rule itself, if all its ranges generate.  Forms may have to be ordered again."""
    types = dict(rule.types)
    body = _conj(rule.body, frozenset(), types)
    return rule if body is rule.body else replace(rule, body=body, types=types)


def _conj(conj: Conj, bound: frozenset[str], types: dict[str, Type]) -> Conj:
    """`bound`: what atoms around it bind."""
    bound = bound.union(*(_names(f.args) for f in conj.forms if isinstance(f, Atom)))
    forms = [new for form in conj.forms for new in _form(form, bound, types)]
    same = len(forms) == len(conj.forms) and all(a is b for a, b in zip(forms, conj.forms, strict=True))
    return conj if same else replace(conj, forms=tuple(forms))


def _form(form: Form, bound: frozenset[str], types: dict[str, Type]) -> Iterator[Form]:
    match form:
        case Primitive(name="range", output=Var(name=name)) if name in bound:
            tests = list(_tests(form, types))
            yield from tests or [form]
        case Negation():
            body = _conj(form.body, bound, types)
            yield form if body is form.body else replace(form, body=body)
        case Disjunction():
            branches = tuple(_conj(b, bound, types) for b in form.branches)
            same = all(a is b for a, b in zip(branches, form.branches, strict=True))
            yield form if same else replace(form, branches=branches)
        case _:
            yield form


def _tests(form: Primitive, types: dict[str, Type]) -> Iterator[Form]:
    """Nothing if comparisons cannot do it."""
    x = form.output
    assert isinstance(x, Var)
    type, start, end = types[x.name], form.inputs[0], form.inputs[1]
    if type not in (INT, UNSIGNED):
        return
    if len(form.inputs) == 3:
        if isinstance(start, Const) and isinstance(end, Const) and isinstance(form.inputs[2], Const):
            yield from _steps(x, start, end, form.inputs[2], types)
        return
    if isinstance(start, Const) and isinstance(end, Const):
        rising = _value(start) < _value(end)
        yield Primitive("ge" if rising else "le", (x, start), span=form.span)
        yield Primitive("lt" if rising else "gt", (x, end), span=form.span)
        return
    low, high = (_fresh(types, type) for _ in range(2))
    yield Primitive("min", (start, end), low, form.span)
    yield Primitive("max", (start, end), high, form.span)
    yield Primitive("ge", (x, low), span=form.span)
    yield Primitive("le", (x, high), span=form.span)
    yield Primitive("ne", (x, end), span=form.span)


def _steps(x: Var, start: Const, end: Const, step: Const, types: dict[str, Type]) -> Iterator[Form]:
    """start, start + step, ... as long as it is before the end."""
    first, last, by = _value(start), _value(end), _value(step)
    if types[x.name] != INT or by == 0 or max(abs(first), abs(last), abs(by)) >= _LIMIT:
        return
    yield Primitive("ge" if by > 0 else "le", (x, start))
    yield Primitive("lt" if by > 0 else "gt", (x, end))
    distance, rest = (_fresh(types, INT) for _ in range(2))
    yield Primitive("sub", (x, start), distance)
    yield Primitive("mod", (distance, step), rest)
    yield Primitive("eq", (rest, Const("int", 0, INT)))


def _value(const: Const) -> int:
    assert const.type is not None
    value = literal_value(const.kind, const.value, const.type)
    assert isinstance(value, int)
    return value


def _names(args: tuple[Operand, ...]) -> set[str]:
    return {a.name for a in args if isinstance(a, Var)}


def _fresh(types: dict[str, Type], type: Type) -> Var:
    number = 0
    while f"_r{number}" in types:
        number += 1
    types[f"_r{number}"] = type
    return Var(f"_r{number}")
