"""Owns what levels of maps cost in transactions.  Compiles definitions only if maps would be the cheapest.

Without a request it is for rules with aggregates.  Where they are inline, others spend most of their time in
the auxiliary strata that it absorbs; else it is cheaper where a row would take the general path.
The offer is for maps that follow a row in a few steps; whether they do is estimated when they are compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlog.engine.maintain.cones import cone_reads
from dlog.engine.maintain.offers import GENERAL_PATH, RECURSIVE, Offer, Question
from dlog.engine.maintain.strategy import Strategy
from dlog.errors import UnsupportedError
from dlog.ir.rules import Rule
from dlog.planning.versions import facts_name

if TYPE_CHECKING:
    from dlog.views.levels.program import Levels

# A transaction of one row under VWAP takes 65 us with 50 bids, 93 us with 2,000 and 163 us with 10,000 and a
# tenth as many prices; deltas take 1,880, 3,300 and 7,200 us.  Under 20 shipped rules with inline aggregates
# and 300 or 3,000 rows (`benchmarks/strategies.py`) it takes 26 to 77 us, deltas 230 to 2,200; except
# VWAP of 3,000 rows, 217 us, and a rule that `_check_worth` refuses.
PER_TRANSACTION = 70.0
PER_ROW = 30.0
# Without inline aggregates: 27 to 57 us under self-joins, disjunctions of comparisons and count_distinct;
# views take 113 to 177, if they can, and deltas 160 to 577.
ALONE, ALONE_ROW = 45.0, 10.0
BUILD, BUILD_ROW = 200_000.0, 3.0  # compiled, then run on every row
ROW_BYTES = 96.0  # of the maps, for each row that is read
MOST_ROW_BYTES = 10 * ROW_BYTES  # more is a join
FEW = 1_000  # rows: the maps of fewer are small in any case


def refuse(name: str, question: Question) -> str | None:
    stratum = question.stratum
    if stratum.recursive:
        return RECURSIVE
    if name != question.requested and not question.absorbable:
        if not any(rule.aggregates for rule in stratum.rules):
            return "it has no aggregate"
        if any(question.program.predicates[predicate].auxiliary for predicate in stratum.predicates):
            return "it is an auxiliary predicate"
    return next((_none(why) for why in [_obstacle(question)] if why), None)


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
    rules = (rule for part in (*question.absorbable, stratum) for rule in part.rules)
    return next(filter(None, map(_rule_obstacle, rules)), None)


def _has_inline_aggregates(question: Question) -> bool:
    program = question.program
    below = (name for name in question.stratum.reads if program.predicates[name].auxiliary)
    return any(rule.aggregates for name in below for rule in program.rules_of(name))


def _rule_obstacle(rule: Rule) -> str | None:
    for aggregate in rule.aggregates:
        function = aggregate.function
        if not (function.in_ring or function.is_distinct):
            return f"levels of maps maintain sums and counts, not {aggregate.function}"
        if rule.types[aggregate.result.name].kernel == "float":
            return "sums of floats are rounded"
    return None


def offer(name: str, question: Question) -> Offer:
    rows, absorbs = _rows(question), bool(question.absorbable)
    reason = "other strategies are estimated to take longer"
    return Offer(
        name,
        f"a row costs others about {question.cone_time:,.0f} us for inline aggregates" if absorbs else reason,
        per_row=PER_ROW if absorbs else ALONE_ROW,
        per_transaction=PER_TRANSACTION if absorbs else ALONE,
        bytes=ROW_BYTES * rows,
        build=BUILD + BUILD_ROW * rows,
        over_cone=True,
    )


def _rows(question: Question) -> int:
    return sum(map(question.store.rows, cone_reads(question.program, question.stratum)))


def make(name: str, question: Question) -> Strategy:
    from dlog.engine.maintain.multilevel.keep import LevelStrategy
    from dlog.views.run.rule_levels import level_program

    (predicate,) = question.stratum.predicates
    program = question.given or question.program
    try:
        levels = level_program(program, predicate)
    except UnsupportedError as error:
        raise UnsupportedError(_none(error.message)) from None
    reason = "it was requested"
    if name != question.requested:
        _check_worth(question, levels)
        reason = offer(name, question).reason
    return LevelStrategy(question.program, question.stratum, levels, reason, question.others)


def _check_worth(question: Question, levels: Levels) -> None:
    """Raises where maps are estimated to cost more than they save."""
    from dlog.engine.maintain.multilevel.statistics import estimate

    found = estimate(levels, question.program, question.store)
    time = sum(found.time.values()) / max(1, len(found.time))
    if time > (question.cone_time if question.absorbable else GENERAL_PATH):
        raise UnsupportedError(_none(f"they would take about {time:,.0f} us a row"))
    if found.bytes > MOST_ROW_BYTES * max(_rows(question), FEW):
        raise UnsupportedError(_none(f"they would be as large as a join, {found.bytes / 1e6:,.1f} MB"))


def _none(reason: str) -> str:
    return f"it has no levels of maps: {reason}"
