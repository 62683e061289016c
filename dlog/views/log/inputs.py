"""Owns a query as text for the log: relations, the result, and which functions belong to which variables."""

from __future__ import annotations

from dlog.m3.syntax import ast
from dlog.views.picture.notation import scalar
from dlog.views.query import Aggregate, Query, variables_of


def query_lines(query: Query) -> list[str]:
    lines = [_atom(query, atom.name) for atom in query.atoms]
    if query.types:
        lines.append(f"types: {', '.join(f'{t.name} in {t.file}' for t in query.types)}")
    lines.append(f"free variables: {', '.join(query.free) or 'none'}")
    lines += [f"where {scalar(condition)}" for condition in query.conditions]
    lines += [_aggregate(aggregate) for aggregate in query.aggregates]
    return [*lines, *_functions(query)]


def _atom(query: Query, name: str) -> str:
    atom = query.atom(name)
    source = query.source(atom.relation)
    columns = ", ".join(f"{v} {c.type}" for v, c in zip(atom.variables, source.columns, strict=True))
    alias = f" as {name}" if name != atom.relation else ""
    file = f" from {source.file}" if source.file else ""
    return f"{source.kind} {atom.relation}({columns}){alias}{file}"


def _aggregate(aggregate: Aggregate) -> str:
    terms = (" * ".join(map(scalar, term.factors)) or "1" for term in aggregate.terms)
    text = f"{aggregate.name} = SUM({' + '.join(terms)})"
    if aggregate.divisor is not None:
        text += f" / {aggregate.divisor}"
    return f"{text}, for others" if aggregate.hidden else text


def _functions(query: Query) -> list[str]:
    """Lifting functions by their variables: explicit ones are in the query, implicit ones external."""
    lines = []
    for factor in query.factors:
        variables = variables_of(factor)
        if variables:
            kind = "implicit" if isinstance(factor, ast.Call) else "explicit"
            lines.append(f"{kind} function of {', '.join(variables)}: {scalar(factor)}")
    return lines
