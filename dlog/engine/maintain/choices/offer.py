"""Owns what the strategy of choices costs, and which strata it cannot maintain."""

from __future__ import annotations

from dlog.engine.maintain.choices.keep import ChoiceStrategy
from dlog.engine.maintain.offers import GENERAL_PATH, Offer, Question

PER_ROW = 2.0
ROW_BYTES = 16.0  # of the column orders that begin with a domain, of chosen rows and of candidates


def refuse(name: str, question: Question) -> str | None:
    predicate = question.program.predicates[question.remembered[0]]
    if predicate.choice is None:
        return "it is for choices"
    if question.stratum.recursive:
        return f"what {predicate.name} has to choose from depends on it; rows that are derived again stay"
    return None


def offer(name: str, question: Question) -> Offer:
    reason = "a chosen row stays, and when it goes another candidate gets its keys"
    size = ROW_BYTES * question.rows
    return Offer(name, reason, per_row=PER_ROW, per_transaction=GENERAL_PATH, bytes=size, build=0.0)


def make(name: str, question: Question) -> ChoiceStrategy:
    choice = question.program.predicates[question.remembered[0]].choice
    assert choice is not None
    return ChoiceStrategy(question.stratum, choice)
