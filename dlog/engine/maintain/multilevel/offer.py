"""Owns what levels of maps cost in transactions.  Compiles definitions only if they are requested."""

from __future__ import annotations

from dlog.engine.maintain.cones import cone_reads
from dlog.engine.maintain.offers import RECURSIVE, Offer, Question
from dlog.engine.maintain.strategy import Strategy
from dlog.errors import UnsupportedError
from dlog.ir.rules import Rule
from dlog.planning.versions import facts_name

# A transaction of one row.  Results that are computed again read one map; others read what changes.
PER_TRANSACTION = 260.0
PER_ROW = 5.0
BUILD, BUILD_ROW = 200_000.0, 3.0  # compiled, then run on every row
ROW_BYTES = 96.0  # of the maps, for each row that is read
ON_REQUEST = "how much work it saves is not estimated"


def refuse(name: str, question: Question) -> str | None:
    stratum = question.stratum
    if stratum.recursive:
        return RECURSIVE
    if name != question.requested:
        return ON_REQUEST
    return next((f"it has no levels of maps: {why}" for why in [_obstacle(question)] if why), None)


def _obstacle(question: Question) -> str | None:
    program, stratum = question.program, question.stratum
    (predicate, *others) = stratum.predicates
    if others:
        return "its rules derive several predicates"
    declared = program.predicates[predicate]
    if not declared.arity:
        return "it has no columns"
    if question.given is not None and predicate not in question.given.predicates:
        return "it stores values that other rules compute"
    if not any(rule.aggregates for rule in stratum.rules) and not _has_inline_aggregates(question):
        return "it aggregates nothing, and maps would store its joins"
    if declared.auxiliary and any(program.predicates[name].auxiliary for name in stratum.reads):
        return "it is an auxiliary predicate that reads others"
    if len(question.store.relations.get(facts_name(predicate), ())):
        return "it has base facts, too"
    return next(filter(None, map(_rule_obstacle, stratum.rules)), None)


def _has_inline_aggregates(question: Question) -> bool:
    program = question.program
    below = (name for name in question.stratum.reads if program.predicates[name].auxiliary)
    return any(rule.aggregates for name in below for rule in program.rules_of(name))


def _rule_obstacle(rule: Rule) -> str | None:
    for aggregate in rule.aggregates:
        function = aggregate.function
        if not (function.in_ring or function.is_distinct):
            return f"levels of maps maintain sums and counts, not {aggregate.op}"
        if rule.types[aggregate.result.name].kernel == "float":
            return "sums of floats are rounded"
    return None


def offer(name: str, question: Question) -> Offer:
    rows = sum(map(question.store.rows, cone_reads(question.program, question.stratum)))
    return Offer(
        name,
        "its aggregates are maintained by maps, whose changes read other maps",
        per_row=PER_ROW,
        per_transaction=PER_TRANSACTION,
        bytes=ROW_BYTES * rows,
        build=BUILD + BUILD_ROW * rows,
    )


def make(name: str, question: Question) -> Strategy:
    from dlog.engine.maintain.multilevel.keep import LevelStrategy
    from dlog.views.run.rule_levels import level_program

    (predicate,) = question.stratum.predicates
    try:
        levels = level_program(question.given or question.program, predicate)
    except UnsupportedError as error:
        raise UnsupportedError(f"it has no levels of maps: {error.message}") from None
    reason = "it was requested" if name == question.requested else offer(name, question).reason
    return LevelStrategy(question.program, question.stratum, levels, reason, question.others)
