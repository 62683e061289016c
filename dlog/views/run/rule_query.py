"""Owns which strata a view tree can maintain, and their queries.  Knows nothing of costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from dlog.errors import DlogError, UnsupportedError
from dlog.ir.rules import Atom, Const, Operand, Program, Rule, Stratum
from dlog.m3.syntax import ast
from dlog.views.query import Query
from dlog.views.rules.query import query_of
from dlog.views.run.groups import is_integral, with_count

_NO_RING = "a view tree maintains counts and sums, not {op}: a deletion may need all values of a group"
_FROM_SUMS = "a view tree maintains counts and sums, not {op}, which is computed from them"
_ROUNDED = "sums of floats are rounded, and a product of sums rounds elsewhere than a sum of products"


def view_query(program: Program, stratum: Stratum) -> Query:
    """The query of a stratum that views can keep with the answers of any other strategy.  It has all
    aggregates of the stratum's rule, if views can keep all of them.

    Raises UnsupportedError, which says why there is none.
    """
    if len(stratum.rules) != 1 or len(stratum.predicates) != 1:
        raise UnsupportedError("several rules derive it")
    rule = stratum.rules[0]
    same = (r for r in program.rules_of(stratum.predicates[0]) if r.id == rule.id)
    whole = next((r for r in same if len(r.heads) > len(rule.heads)), rule)
    try:
        return _query(program, whole)
    except UnsupportedError:
        return _query(program, rule)


def _query(program: Program, rule: Rule) -> Query:
    _check_aggregates(rule)
    if not _are_distinct(rule):
        raise UnsupportedError("two of its heads may derive the same row")
    try:
        query = with_count(query_of(rule, program.predicates))
        query.check()
        if len({s.name for s in query.sources}) < len({a.predicate for a, _ in rule.body.atoms()}):
            raise UnsupportedError("two predicates have one name in M3")
        if not all(_compares(query, c) for c in query.conditions):
            raise UnsupportedError("it compares values that are not integers")
        if not is_integral(query):
            raise UnsupportedError(_ROUNDED)
    except DlogError as error:
        raise UnsupportedError(error.message) from None
    return query


def _check_aggregates(rule: Rule) -> None:
    if not rule.aggregates:
        raise UnsupportedError("it has no aggregate")
    for aggregate in rule.aggregates:
        if not aggregate.function.in_ring:
            why = _FROM_SUMS if aggregate.function.is_exact_under_deletion else _NO_RING
            raise UnsupportedError(why.format(op=aggregate.op))
        type = rule.types[aggregate.result.name]
        if type.kernel == "float":
            raise UnsupportedError(_ROUNDED)
        if type.m3 != "long" and not type.is_decimal:
            raise UnsupportedError(f"views do not sum values of type {type}")


def _are_distinct(rule: Rule) -> bool:
    """Whether no row has two derivations: constants keep the rows of each head from those of another."""
    by_predicate: dict[str, list[Atom]] = {}
    for head in rule.heads:
        by_predicate.setdefault(head.predicate, []).append(head)
    return all(map(_differ_by_constants, by_predicate.values()))


def _differ_by_constants(heads: Sequence[Atom]) -> bool:
    named = [{i: a.value for i, a in enumerate(h.args) if _is_plain(a)} for h in heads]
    places = [i for i in named[0] if all(i in one for one in named)]
    return len({tuple(one[i] for i in places) for one in named}) == len(heads)


def _is_plain(argument: Operand) -> TypeGuard[Const]:
    """Whether it is a constant of one spelling: other types have several for a value."""
    return isinstance(argument, Const) and argument.type is not None and argument.type.literal_is_value


def _compares(query: Query, condition: ast.Node) -> bool:
    """Whether a condition is on whole numbers: others are compared as the engine does it."""
    types = {query.type_of(n.name).name for n in condition.walk() if isinstance(n, ast.Variable)}
    constants = {n.type for n in condition.walk() if isinstance(n, ast.Constant)}
    return types <= {"long"} and constants <= {"int", "long"}
