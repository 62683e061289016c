"""Owns what the strategy of classes costs, and which strata it cannot maintain."""

from __future__ import annotations

from dlog.engine.maintain.classes.keep import ClassStrategy
from dlog.engine.maintain.offers import GENERAL_PATH, Offer, Question

PER_ROW = 1.0
ROW_BYTES = 16.0  # of the classes by representative


def refuse(name: str, question: Question) -> str | None:
    if not question.classes:
        return "it is for equivalence relations"
    if question.stratum.recursive:
        (relation, *_) = question.classes.values()
        return f"what {relation} derives depends on {relation}"
    return None


def offer(name: str, question: Question) -> Offer:
    reason = "a pair joins two classes or, when it goes, its class is made again"
    size = ROW_BYTES * question.rows
    return Offer(name, reason, per_row=PER_ROW, per_transaction=GENERAL_PATH, bytes=size, build=0.0)


def make(name: str, question: Question) -> ClassStrategy:
    (relation,) = question.classes.values()
    return ClassStrategy(question.stratum, relation)
