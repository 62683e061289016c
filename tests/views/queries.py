"""The meaning of aggregation queries, by the definition, with M3's naive interpreter.

It knows the neutral form and nothing of variable orders, views or triggers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from dlog.m3.syntax import ast
from dlog.views.query import Query, Term
from tests.oracle.m3_naive import Naive

Row = tuple[Any, ...]
Answer = dict[Row, tuple[Any, ...]]  # values of the free variables -> values of the aggregates that are shown


def answer(query: Query, tables: Mapping[str, Iterable[Row]]) -> Answer:
    """The result of a query over rows; numbers are exact, a quotient by 0 is 0."""
    sources = tuple(
        ast.Source(ast.TABLE, s.name, s.columns) for s in query.sources
    )  # streams are tables that change
    naive = Naive(ast.Program(ast.DBTOASTER, sources=sources), tables)
    counts = _sums(naive, query, Term())
    groups = set(counts) if query.free else {()}
    sums: dict[str, dict[Row, Any]] = {}
    for aggregate in query.aggregates:
        parts = [_sums(naive, query, term) for term in aggregate.terms]
        sums[aggregate.name] = {g: sum((part.get(g, 0) for part in parts), Fraction(0)) for g in groups}
    shown = [aggregate for aggregate in query.aggregates if not aggregate.hidden]
    return {
        group: tuple(_divided(sums[a.name][group], sums[a.divisor][group] if a.divisor else 1) for a in shown)
        for group in groups
    }


def _sums(naive: Naive, query: Query, term: Term) -> dict[Row, Any]:
    atoms = [ast.Relation(a.relation, tuple(map(ast.Variable, a.variables))) for a in query.atoms]
    body = ast.product([*atoms, *query.conditions, *term.factors])
    found = naive.evaluate(ast.AggSum(tuple(map(ast.Variable, query.free)), body), {})
    return {tuple(dict(assignment)[v] for v in query.free): value for assignment, value in found.items()}


def _divided(value: Any, divisor: Any) -> Any:
    return value / divisor if divisor else Fraction(0)
