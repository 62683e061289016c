"""Owns what the trace strategy costs: sensitivity indices, and column orders that the evaluation reads.

A row costs about the same as with the default method if both take the short path, so a trace must need much
less memory.  Its short path is for one row of a base predicate that no other rule reads; the body need not be
simple.
"""

from __future__ import annotations

from dlog.engine.maintain.body_changes import missing_orders
from dlog.engine.maintain.heads.sets import SetHead
from dlog.engine.maintain.offers import (
    GENERAL_PATH,
    PER_ASSIGNMENT,
    RECURSIVE,
    SHORT_PATH,
    Need,
    Offer,
    Question,
    Refusal,
    RuleOffer,
)
from dlog.engine.maintain.trace.keep import TraceStrategy, rule_traces
from dlog.engine.maintain.trace.planned import Traces, untraceable
from dlog.engine.maintain.trace.rule_traces import TraceDeltas
from dlog.ir.rules import Rule
from dlog.sensitivity.watches import COARSE, EXACT

GRANULARITY = {"trace": COARSE, "trace-exact": EXACT}
TRACE, TRACE_EXACT = GRANULARITY
SHORT = 1.2 * SHORT_PATH
GENERAL = 1.4 * GENERAL_PATH
MUCH_LARGER = 2.0  # the alternative must need this many times as much


def refuse(name: str, question: Question) -> str | None:
    if question.stratum.recursive:
        return RECURSIVE
    if name == TRACE_EXACT and name != question.requested:
        return "its indices are many times larger"
    choices = question.rule_choices
    if any(choice.way in GRANULARITY for choice in choices):
        return None
    return "; ".join(dict.fromkeys(choice.reason for choice in choices))


def offer(name: str, question: Question) -> Offer:
    """Leaves out the needs of rules that are not traced: other strategies have the same."""
    choices = zip(question.stratum.rules, question.rule_choices, strict=True)
    needs = [rule_need(question, rule, name) for rule, choice in choices if choice.way in GRANULARITY]
    return Offer(
        name,
        "; ".join(dict.fromkeys(need.text for need in needs)),
        per_row=PER_ASSIGNMENT * question.assignments_of_row,
        per_transaction=max(need.per_transaction for need in needs),
        bytes=sum(need.bytes for need in needs),
        build=PER_ASSIGNMENT * question.assignments,
    )


def make(name: str, question: Question) -> TraceStrategy:
    return TraceStrategy(question.program, question.stratum, question.store, question.explained_choices())


def rule_offer(name: str, question: Question, rule: Rule) -> RuleOffer | Refusal:
    if reason := untraceable(rule):
        return Refusal(name, f"{reason}, so it has no trace")
    return RuleOffer(name, rule_traces(GRANULARITY[name]), lambda: rule_need(question, rule, name))


def rule_need(question: Question, rule: Rule, name: str) -> Need:
    """Where a trace is shared or exact is known only when it is recorded: see
    `dlog.engine.maintain.trace.granularity`."""
    traces = TraceDeltas(question.store, rule, "~", GRANULARITY[name]).planned_traces()
    size = traces.expected_bytes(question.store) + missing_orders(question.store, traces.atoms)[1]
    time = per_transaction(question, rule, traces)
    return Need(size, f"a trace {size / 1e6:,.1f} MB", MUCH_LARGER, time)


def per_transaction(question: Question, rule: Rule, traces: Traces) -> float:
    """Of one row: see `dlog.engine.maintain.trace.triggers`."""
    program, stratum = question.program, question.stratum
    simple = len(stratum.rules) == 1 and not rule.aggregates and len(traces.pipeline.operations) == 1
    simple = simple and all(watch.level >= 0 for watch in traces.upkeep.watched.watches)
    simple = simple and not SetHead(question.store, stratum, looks_up=False).by_existence

    def is_short(name: str) -> bool:
        return simple and program.reader_counts[name] == 1 and name not in program.stratum_of

    return question.per_transaction(SHORT, GENERAL, is_short)
