"""Owns what the strategy of subsumption costs, and which strata it cannot maintain."""

from __future__ import annotations

from dlog.engine.maintain.offers import GENERAL_PATH, PER_ASSIGNMENT, Offer, Question, made_by_rule
from dlog.engine.maintain.rule_strategy import RuleStrategy
from dlog.engine.maintain.subsumptions.keep import SubsumptionStrategy
from dlog.ir.rules import Program, Stratum

ROW_BYTES = 16.0  # of a value: in the rows with those that are subsumed, and in another column order
STEPS = 3  # rows that come and go, those of them that are subsumed, and what is left


def refuse(name: str, question: Question) -> str | None:
    if not question.stratum.subsumptions:
        return "it is for predicates with a subsumption"
    if question.stratum.recursive:
        return "each round of a recursion removes rows, and a row that comes back would change later rounds"
    return None


def offer(name: str, question: Question) -> Offer:
    (predicate,) = question.stratum.predicates
    values = question.program.predicates[predicate].arity * (question.rows + question.store.rows(predicate))
    return Offer(
        name,
        "a row that comes or goes is compared with the rows that it may subsume, and that may subsume it",
        per_row=PER_ASSIGNMENT * max(1.0, question.assignments_of_row),
        per_transaction=STEPS * GENERAL_PATH,
        bytes=ROW_BYTES * values,
        build=PER_ASSIGNMENT * question.assignments,
    )


def make(name: str, question: Question) -> SubsumptionStrategy:
    def inner(program: Program, stratum: Stratum) -> RuleStrategy:
        return made_by_rule(Question(program, stratum, question.store, question.requested))

    return SubsumptionStrategy(question.program, question.stratum, inner)
