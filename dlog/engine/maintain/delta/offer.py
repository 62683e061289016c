"""Owns what the delta strategy costs: the column orders that its variants read, beyond those that exist, and
whether rows take the short path.

Variants begin with the changed row, so each atom that may change asks for column orders of the others.
Predicates that never change ask for nothing.
"""

from __future__ import annotations

from dataclasses import replace

from dlog.engine.evaluate.column_orders import LARGE
from dlog.engine.maintain.body_changes import missing_orders
from dlog.engine.maintain.delta.keep import DeltaStrategy, rule_deltas
from dlog.engine.maintain.delta.rule_deltas import RuleDeltas
from dlog.engine.maintain.offers import (
    GENERAL_CHANGES,
    GENERAL_PATH,
    PER_ASSIGNMENT,
    PER_CHANGED_ROW,
    RECURSIVE,
    SHORT_PATH,
    SHORT_ROWS,
    Need,
    Offer,
    Question,
    RuleOffer,
)
from dlog.engine.maintain.rule_strategy import RuleChoice
from dlog.engine.maintain.variants import rows_of_changes
from dlog.ir.rules import Atom, Rule
from dlog.planning.deltas import rule_variants

DELTA = "delta"
# A row on the short path, whose groups are not changed in one kernel call: count_distinct took 150 to 185 us.
OTHER_GROUPS = 150.0


def refuse(name: str, question: Question) -> str | None:
    return RECURSIVE if question.stratum.recursive else None


def offer(name: str, question: Question) -> Offer:
    needs = [rule_need(question, rule) for rule in question.stratum.rules]
    fixed, row = per_transaction(question), PER_ASSIGNMENT * question.assignments_of_row
    if question.changes_only:  # compared with a join graph, by the rows of the change alone
        fixed, row = _of_changes(question)
    return Offer(
        name,
        "; ".join(dict.fromkeys(need.text for need in needs)),
        per_row=row,
        per_transaction=fixed,
        bytes=sum(need.bytes for need in needs),
        build=PER_ASSIGNMENT * question.assignments,
    )


def _of_changes(question: Question) -> tuple[float, float]:
    """(us for a transaction, us for a changed row), where only the change of the head is computed: the mean
    over the predicates that may change."""
    found = [rows for rule in question.stratum.rules for rows in _rows_of_changes(question, rule)]
    general = [GENERAL_CHANGES if rows > SHORT_ROWS else per_transaction(question) for rows in found]
    count = max(1, len(found))
    return sum(general) / count, PER_CHANGED_ROW * sum(found) / count


def _rows_of_changes(question: Question, rule: Rule) -> list[float]:
    reads = rule.body.predicates()
    deltas = RuleDeltas(question.store, rule, rule_variants(rule, reads - question.tables), bag=True)
    return [*rows_of_changes(deltas.runner, deltas.variants).values()]


def make(name: str, question: Question) -> DeltaStrategy:
    choices = [replace(choice, way=name, method=rule_deltas) for choice in question.explained_choices()]
    return DeltaStrategy(question.program, question.stratum, question.store, choices, question.changes_only)


def rule_offer(name: str, question: Question, rule: Rule) -> RuleOffer:
    return RuleOffer(name, rule_deltas, lambda: rule_need(question, rule))


def rule_need(question: Question, rule: Rule) -> Need:
    """With the time of the stratum, if a rule of it may need the general path where others do not: those with
    aggregates always do."""
    need = _order_need(question, rule)
    if rule.aggregates or _is_plain(rule):
        return need
    return replace(need, per_transaction=per_transaction(question))


def per_transaction(question: Question) -> float:
    """Of one row.  Computed once: O(rules)."""
    if DELTA not in question.times:
        question.times[DELTA] = _per_transaction(question)
    return question.times[DELTA]


def _per_transaction(question: Question) -> float:
    from dlog.engine.maintain.triggers.trigger_search import groups_take_one_call, takes_short_path

    choices = [RuleChoice("", "", rule_deltas) for _ in question.stratum.rules]
    made, store = DeltaStrategy(question.program, question.stratum, question.store, choices), question.store
    short = SHORT_PATH if groups_take_one_call(store, made) else OTHER_GROUPS
    return question.per_transaction(short, GENERAL_PATH, lambda name: takes_short_path(store, made, name))


def _is_plain(rule: Rule) -> bool:
    """Whether a body has nothing but atoms, so that rows take the short path."""
    return all(isinstance(form, Atom) for form in rule.body.forms)


def _order_need(question: Question, rule: Rule) -> Need:
    store, reads = question.store, rule.body.predicates()
    if max((store.rows(name) for name in reads), default=0) < LARGE:
        return Need(0.0, "it reads little data, so any index is cheap to build")
    deltas = RuleDeltas(store, rule, rule_variants(rule, reads - question.tables), bag=True)
    orders, size = missing_orders(store, (use for uses in deltas.uses() for use in uses))
    if orders == 0:
        return Need(0.0, "it needs no additional column order")
    lacks = "one additional column order" if orders == 1 else f"{orders} additional column orders"
    return Need(size, f"deltas need {lacks} of {size / 1e6:,.1f} MB")
