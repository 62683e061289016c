"""Owns what the strategy of numbers costs, and which strata it is for."""

from __future__ import annotations

from dlog.engine.maintain.autonumbers.keep import NumberStrategy
from dlog.engine.maintain.offers import GENERAL_PATH, Offer, Question

PER_ROW = 1.0


def refuse(name: str, question: Question) -> str | None:
    numbering = question.program.predicates[question.remembered[0]].numbering
    return "it is for numbers of assignments" if numbering is None else None


def offer(name: str, question: Question) -> Offer:
    reason = "an assignment keeps its number, a new one gets the next"
    return Offer(name, reason, per_row=PER_ROW, per_transaction=GENERAL_PATH, bytes=0.0, build=0.0)


def make(name: str, question: Question) -> NumberStrategy:
    numbering = question.program.predicates[question.remembered[0]].numbering
    assert numbering is not None
    return NumberStrategy(question.stratum, numbering)
