"""Owns what the view strategy costs.  Imports M3 only if views would be the cheapest."""

from __future__ import annotations

from dlog.engine.maintain.offers import RECURSIVE, Offer, Question
from dlog.engine.maintain.strategy import Strategy
from dlog.errors import UnsupportedError
from dlog.ir.rules import Atom

# A row on the short path takes 22 us, whatever the number of its assignments, which views never enumerate.
# Deltas take 18 us for 16 of them, 24 us for 256 and, on the general path, 360 us for 576.  With several
# views on the way to the root a row takes 28 to 37 us, and ten rows 70.
PER_TRANSACTION = 40.0
# Self-joins have no short path: BSP and AXF with 300 to 3,000 rows took 113 to 177 us.
SELF_JOIN = 130.0
PER_ROW = 10.0
BUILD, BUILD_ROW = 100_000.0, 2.0  # the M3 program is generated and compiled, then run on every row
MANY = 10.0  # assignments that are a reason
ROW_BYTES = 64.0  # of the maps, for each row that is read


def refuse(name: str, question: Question) -> str | None:
    stratum = question.stratum
    if stratum.recursive:
        return RECURSIVE
    if not any(rule.aggregates for rule in stratum.rules):
        return _none(name, question, "it has no aggregate")
    if name != question.requested and len(stratum.rules) > 1:
        return _none(name, question, "several rules derive it")
    return None


def offer(name: str, question: Question) -> Offer:
    each = question.assignments_of_row
    reason = f"a row is part of about {each:,.0f} assignments of the body, which views never enumerate"
    if each < MANY:
        reason = "other strategies are estimated to take longer"
    return Offer(
        name,
        reason,
        per_row=PER_ROW,
        per_transaction=SELF_JOIN if _joins_itself(question) else PER_TRANSACTION,
        bytes=ROW_BYTES * question.rows,
        build=BUILD + BUILD_ROW * question.rows,
    )


def _joins_itself(question: Question) -> bool:
    names = [[f.predicate for f in r.body.forms if isinstance(f, Atom)] for r in question.stratum.rules]
    return any(len(set(found)) < len(found) for found in names)


def make(name: str, question: Question) -> Strategy:
    from dlog.engine.maintain.views.keep import ViewStrategy
    from dlog.views.run.rule_query import view_query

    try:
        query = view_query(question.program, question.stratum)
        if name != question.requested and not query.is_acyclic:
            raise UnsupportedError("the join is cyclic: deltas need no views and join in the best order")
    except UnsupportedError as error:
        raise UnsupportedError(_none(name, question, error.message)) from None
    reason = "it was requested" if name == question.requested else offer(name, question).reason
    return ViewStrategy(question.program, question.stratum, query, reason, question.others)


def _none(name: str, question: Question, reason: str) -> str:
    return f"it has no view tree: {reason}" if name == question.requested else f"no view tree: {reason}"
