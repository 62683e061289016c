"""Owns what following the arguments of a functor costs, and which strata it is for."""

from __future__ import annotations

from dlog.engine.maintain.calls.keep import CallStrategy
from dlog.engine.maintain.offers import GENERAL_PATH, Offer, Question
from dlog.planning.stored_calls import stored_call

PER_ROW = 1.0


def refuse(name: str, question: Question) -> str | None:
    if question.stratum.recursive or len(question.stratum.rules) != 1:
        return "it is for values of functors"
    return None if stored_call(question.stratum.rules[0]) is not None else "it is for values of functors"


def offer(name: str, question: Question) -> Offer:
    reason = "a call for each new row of arguments"
    return Offer(name, reason, per_row=PER_ROW, per_transaction=GENERAL_PATH, bytes=0.0, build=0.0)


def make(name: str, question: Question) -> CallStrategy:
    return CallStrategy(question.store, question.stratum)
