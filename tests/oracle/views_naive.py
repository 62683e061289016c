"""A query by its definition: every combination of rows is examined.  Shares with view trees only the form of
queries.
"""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from typing import Any

from dlog.m3.syntax import ast
from dlog.views.query import Query

COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def naive(query: Query, relations: dict[str, Counter[tuple[Any, ...]]]) -> dict[tuple[Any, ...], tuple]:
    """Groups with their aggregates, in the order of `query.aggregates`; relations count their rows."""
    groups: dict[tuple[Any, ...], list[list[Any]]] = {}
    for rows in itertools.product(*(relations[atom.relation].items() for atom in query.atoms)):
        binding = assignment(query, [row for row, _ in rows])
        if binding is None or not all(value(c, binding) for c in query.conditions):
            continue
        weight = 1
        for _, times in rows:
            weight *= times
        key = tuple(binding[v] for v in query.free)
        groups.setdefault(key, []).append([weight, binding])
    if not query.free:
        groups.setdefault((), [])
    return {
        key: shown(query, found)
        for key, found in groups.items()
        if not query.free or sum(weight for weight, _ in found)
    }


def assignment(query: Query, rows: list[tuple[Any, ...]]) -> dict[str, Any] | None:
    binding: dict[str, Any] = {}
    for atom, row in zip(query.atoms, rows, strict=True):
        for variable, item in zip(atom.variables, row, strict=True):
            if binding.setdefault(variable, item) != item:
                return None
    return binding


def shown(query: Query, found: list[list[Any]]) -> tuple[Any, ...]:
    sums = {
        a.name: sum(weight * total(a.terms, binding) for weight, binding in found) for a in query.aggregates
    }
    result = []
    for a in query.aggregates:
        if a.divisor is None:
            result.append(sums[a.name])
        else:
            result.append(sums[a.name] / sums[a.divisor] if sums[a.divisor] else 0)
    return tuple(r for r, a in zip(result, query.aggregates, strict=True) if not a.hidden)


def total(terms: Any, binding: dict[str, Any]) -> Any:
    out = 0
    for term in terms:
        product = 1
        for factor in term.factors:
            product *= value(factor, binding)
        out += product
    return out


def value(node: ast.Node, binding: dict[str, Any]) -> Any:
    match node:
        case ast.Variable():
            return binding[node.name]
        case ast.Constant():
            return node.value
        case ast.Sum():
            return sum(value(term, binding) for term in node.terms)
        case ast.Product():
            out = 1
            for factor in node.factors:
                out *= value(factor, binding)
            return out
        case ast.Comparison():
            return int(COMPARE[node.op](value(node.left, binding), value(node.right, binding)))
        case ast.In():
            return int(value(node.operand, binding) in [c.value for c in node.values])
    raise AssertionError(node)
