"""Owns what the strategy of sequences costs, and which strata it cannot maintain."""

from __future__ import annotations

from dlog.engine.maintain.numbering.keep import SequenceStrategy
from dlog.engine.maintain.offers import GENERAL_PATH, Offer, Question

PER_NUMBER = 0.1  # of rows that are renumbered: half of those that there are


def refuse(name: str, question: Question) -> str | None:
    return None if question.stratum.sequence is not None else "it is for sequences"


def offer(name: str, question: Question) -> Offer:
    reason = "a row renumbers those behind it"
    per_row = 1.0 + PER_NUMBER * question.rows / 2
    return Offer(name, reason, per_row=per_row, per_transaction=GENERAL_PATH, bytes=0.0, build=0.0)


def make(name: str, question: Question) -> SequenceStrategy:
    return SequenceStrategy(question.stratum)
