"""Owns what evaluating a stratum from scratch costs, in each transaction that touches it."""

from __future__ import annotations

from dlog.engine.maintain.offers import PER_ASSIGNMENT, RECURSIVE, Offer, Question
from dlog.engine.maintain.scratch.keep import FromScratch

PER_TRANSACTION = 300.0  # whatever the number of rows


def refuse(name: str, question: Question) -> str | None:
    return None


def offer(name: str, question: Question) -> Offer:
    """Everything is read again, whatever has changed."""
    time = PER_TRANSACTION + PER_ASSIGNMENT * question.assignments
    return Offer(name, "it needs no state", per_row=0.0, per_transaction=time, bytes=0.0, build=0.0)


def make(name: str, question: Question) -> FromScratch:
    reasons = dict.fromkeys(r.reason for r in question.refusals if r.reason != RECURSIVE)
    return FromScratch(question.stratum, "; ".join(reasons))
