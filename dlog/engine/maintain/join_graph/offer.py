"""Owns what the join graph strategy costs.  Imports the graph only where it may be chosen.

It is chosen without being requested where a changed row gives so many rows that deltas take the general path:
a head of 300 rows for each changed row took 36 us against 218 us by deltas, one of 1,000 rows 48 us against
255 us, one of 10,000 rows 180 us against 680 us; one of 1 to 200 rows 24 to 32 us against 21 to 29 us.  With
functions that are evaluated on the rows of a graph, it takes the general path, too: 364, 455 and 1,594 us
against 232, 270 and 749 us by deltas.  Only for heads whose relation is not stored: the rows of others cost
more than finding them, and their indices serve the join as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dlog.engine.head.heads import body_outputs
from dlog.engine.maintain.join_graph.rule_body import RuleBody, rule_body
from dlog.engine.maintain.offers import (
    GENERAL_CHANGES,
    PER_ASSIGNMENT,
    PER_CHANGED_ROW,
    RECURSIVE,
    SHORT_PATH,
    SHORT_ROWS,
    Need,
    Offer,
    Question,
    Refusal,
    RuleOffer,
)
from dlog.engine.maintain.rule_strategy import Method
from dlog.engine.maintain.strategy import Strategy
from dlog.engine.state.store import Store
from dlog.errors import UnsupportedError
from dlog.ir.rules import Rule

NAME = "join_graph"
STORED = "its links are kept beside the indices that other strategies read, too"
PER_TRANSACTION = 24.0
PER_VIEW_ROW = 0.02  # of the difference of the view
WITH_FUNCTIONS, PER_ROW_WITH_FUNCTIONS = 330.0, 0.13  # the same two where the body has functions
BUILD_ROW = 0.5
BETTER = 1.5  # times faster than deltas, or the memory of a graph is not worth it


def refuse(name: str, question: Question) -> str | None:
    if question.stratum.recursive:
        return RECURSIVE
    is_requested = name == question.requested
    if not is_requested and not question.changes_only:
        return STORED
    reasons = [_reason(question.store, rule) for rule in question.stratum.rules]
    if (all if is_requested else any)(reasons):
        return "; ".join(dict.fromkeys(reason for reason in reasons if reason))
    return None if is_requested else _unless_better(question)


def offer(name: str, question: Question) -> Offer:
    needs = [rule_need(question, rule) for rule in question.stratum.rules]
    costs = [cost for rule in question.stratum.rules for cost in _costs(question, rule)]
    return Offer(
        name,
        "; ".join(dict.fromkeys(need.text for need in needs)),
        per_row=_mean([cost.each * cost.rows for cost in costs]),
        per_transaction=_mean([cost.fixed for cost in costs]) or PER_TRANSACTION,
        bytes=sum(need.bytes for need in needs),
        build=PER_ASSIGNMENT * question.assignments + BUILD_ROW * question.rows,
    )


def make(name: str, question: Question) -> Strategy:
    from dlog.engine.maintain.join_graph.keep import JoinGraphStrategy

    choices = question.explained_choices()
    if name != question.requested:
        reason = _better(question)
        choices = [replace(choice, way=name, reason=reason, method=_method()) for choice in choices]
    return JoinGraphStrategy(
        question.program, question.stratum, question.store, choices, question.changes_only
    )


def rule_offer(name: str, question: Question, rule: Rule) -> RuleOffer | Refusal:
    if reason := _reason(question.store, rule):
        return Refusal(name, f"it has no join graph: {reason}")
    return RuleOffer(name, _method(), lambda: rule_need(question, rule))


def rule_need(question: Question, rule: Rule) -> Need:
    from dlog.joingraph.estimates import graph_bytes

    body = _body(question.store, rule)
    size = 0.0 if body is None else graph_bytes(body.plan, question.store)
    time = PER_TRANSACTION if body is None else _times(body)[0]
    return Need(size, f"a join graph of about {size / 1e6:,.1f} MB", per_transaction=time)


@dataclass(frozen=True)
class Cost:
    """Of one changed row of a predicate: rows of the view, and us."""

    rows: float
    fixed: float
    each: float  # row of the view
    by_deltas: float

    @property
    def by_graph(self) -> float:
        return self.fixed + self.each * self.rows


def _costs(question: Question, rule: Rule) -> list[Cost]:
    """Of each predicate that a rule reads and that may change; none if it has no join graph."""
    from dlog.joingraph.estimates import work

    body = _body(question.store, rule)
    if body is None:
        return []
    plan, found = body.plan, []
    for name in sorted({*plan.body.relations} - question.tables):
        rows = sum(work(plan, atom, question.store).rows for atom in plan.atoms_of(name))
        base = GENERAL_CHANGES if rows > SHORT_ROWS else SHORT_PATH
        found.append(Cost(rows, *_times(body), base + PER_CHANGED_ROW * rows))
    return found


def _times(body: RuleBody) -> tuple[float, float]:
    """Of a transaction, and of a row of the view."""
    return (WITH_FUNCTIONS, PER_ROW_WITH_FUNCTIONS) if body.rest else (PER_TRANSACTION, PER_VIEW_ROW)


def _unless_better(question: Question) -> str | None:
    """Why deltas are to find the changes of a head whose relation is not stored."""
    costs = [cost for rule in question.stratum.rules for cost in _costs(question, rule)]
    by_graph, by_deltas = _mean([c.by_graph for c in costs]), _mean([c.by_deltas for c in costs])
    if by_deltas >= BETTER * by_graph:
        return None
    rows = _mean([cost.rows for cost in costs])
    found = "faster" if by_graph >= BETTER * by_deltas else "about as fast"
    return f"a changed row gives about {rows:,.3g} rows, which deltas find {found}"


def _better(question: Question) -> str:
    costs = [cost for rule in question.stratum.rules for cost in _costs(question, rule)]
    rows = _mean([cost.rows for cost in costs])
    graph, deltas = _mean([c.by_graph for c in costs]), _mean([c.by_deltas for c in costs])
    return f"a changed row gives about {rows:,.3g} rows: about {graph:,.0f} us, by deltas {deltas:,.0f} us"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


def _method() -> Method:
    from dlog.engine.maintain.join_graph.rule_graphs import GraphDeltas

    return GraphDeltas


def _body(store: Store, rule: Rule) -> RuleBody | None:
    """None: the rule has no join graph."""
    try:
        return rule_body(store, rule, body_outputs(rule))
    except UnsupportedError:
        return None


def _reason(store: Store, rule: Rule) -> str:
    """Why a rule has no join graph; empty if it has one."""
    try:
        rule_body(store, rule, body_outputs(rule))
    except UnsupportedError as error:
        return error.message
    return ""
