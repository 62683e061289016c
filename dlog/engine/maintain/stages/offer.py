"""Owns what the strategy of stages costs, and which recursive strata it cannot maintain."""

from __future__ import annotations

from dlog.engine.head.heads import is_stored
from dlog.engine.maintain.offers import PER_ASSIGNMENT, Offer, Question
from dlog.engine.maintain.stages.keep import StageStrategy
from dlog.engine.maintain.stages.recursive_bodies import bodies, kind_of, mentions
from dlog.engine.state.store import Store
from dlog.ir.rules import Negation, Program, Stratum

PER_TRANSACTION = 100.0
PER_ROW = 2 * PER_ASSIGNMENT  # derivations are examined when they are lost and when they are gained
SLOT = 8 * 8 / 5  # bytes of a word in the table of stages, five eighths full


def refuse(name: str, question: Question) -> str | None:
    if not question.stratum.recursive:
        return "it is for recursive rules"
    return unsupported(question.program, question.stratum, question.store)


def offer(name: str, question: Question) -> Offer:
    stratum, store = question.stratum, question.store
    table = sum(SLOT * (store.predicates[p].arity + 2) * store.rows(p) for p in stratum.predicates)
    return Offer(
        name,
        "each fact has a stage and the number of its derivations from lower stages",
        per_row=PER_ROW * question.assignments_of_row,
        per_transaction=PER_TRANSACTION,
        bytes=table,
        build=PER_ROW * question.assignments,
    )


def make(name: str, question: Question) -> StageStrategy:
    return StageStrategy(question.program, question.stratum, question.store)


def unsupported(program: Program, stratum: Stratum, store: Store) -> str | None:
    """Why a recursive stratum cannot be maintained by stages; None when it can."""
    names = set(stratum.predicates)
    for name in stratum.predicates:
        if name in program.directed("limitsize"):
            return f"{name} has a limited size"
        if name in stratum.combine and not program.predicates[name].columns[-1].type.ordered_codes:
            return f"{name} combines strings"
    for rule in stratum.rules:
        if rule.aggregates and rule.heads[0].predicate not in stratum.combine:
            return f"an aggregation derives {rule.heads[0].predicate}"
        if any(isinstance(f, Negation) and mentions(f, names) for f in rule.body.walk()):
            return "a negation reads the recursion"
    for body in bodies(stratum):
        identity = kind_of(program, stratum, body.head.predicate).identity
        if not is_stored(store, body.rule, body.head, identity):
            return f"keys of {body.head.predicate} are rounded"
    return None
