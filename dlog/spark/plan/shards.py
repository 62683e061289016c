"""Owns how a program is split into shards: which variable of each rule owns the shard, where each atom's rows
are, and which strata one job can do.  A pure function of the program; knows nothing of Spark, files or rows.

Correct output.  A value belongs to one of n shards (`dlog.spark.plan.hashing`).  A rule with the *first key*
x runs in every shard over the assignments whose x belongs to it: every assignment has one x, hence one owner.
Atoms that have x are read *placed on* the column where it is, each shard having the rows whose value
there is its own; all other atoms, negated ones too, are read *whole*.  What a rule derives is

- placed on c, when x is the head's argument c in each of its rules: final, and readable in the same job;
- whole, when the rule reads nothing that is placed: every shard derives all of it;
- scattered otherwise: shards may derive the same row, and no shard has all, so readers wait for another job.

An aggregate is final in the shard when its groups contain x; otherwise shards have partial values that are
merged.  Where few values of x have many rows, these *heavy* values are split by a second variable y: of an
atom that has both, such rows are where their y belongs; of one that has x alone, they are in every shard.
What is derived is then scattered.

A recursion whose rules all pass x on runs to its fixpoint inside the shard; others exchange what
they derive after every step (`dlog.spark.plan.steps`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from dlog.ir.rules import Primitive, Stratum
from dlog.spark.plan.places import WHOLE, Place, RulePlan, Shape
from dlog.spark.plan.rule_plans import cheapest, read_cost, rule_options, rule_placed, whole, work

JOB_ROWS = 200_000  # a job costs as much as this many rows that are copied
_SEARCHED = 4096  # choices of columns for a recursion


SHARD, EXCHANGE, HERE = "in the shard", "with exchange", "in one process"


@dataclass(frozen=True)
class StratumPlan:
    """How a stratum runs, where its predicates then are (None: scattered), and why not better."""

    stratum: Stratum
    kind: str
    rules: tuple[RulePlan, ...] = ()
    places: Mapping[str, Place | None] = field(default_factory=dict)
    cost: float = 0.0
    why: str = ""

    def reads(self) -> set[tuple[str, Place]]:
        """Copies that it needs of predicates outside the stratum."""
        own = set(self.stratum.predicates)
        return {(name, place) for rule in self.rules for name, place in rule.reads() if name not in own}


@dataclass(frozen=True)
class Block:
    """Strata that run as one job, or one stratum that exchanges or is evaluated in one process."""

    plans: tuple[StratumPlan, ...]

    @property
    def kind(self) -> str:
        return self.plans[0].kind

    @property
    def derives(self) -> dict[str, Place | None]:
        return {name: place for plan in self.plans for name, place in plan.places.items()}

    def reads(self) -> set[tuple[str, Place]]:
        """Copies of predicates that the block does not derive."""
        derived = self.derives
        return {copy for plan in self.plans for copy in plan.reads() if copy[0] not in derived}


def plan_blocks(shape: Shape) -> list[Block]:
    """Blocks in an order in which each reads only what already exists.  Few: a stratum joins the first block
    in which all it reads exists and is placed as it needs, unless reading it otherwise is much cheaper.
    """
    waiting = list(shape.program.strata)
    derived = {name for stratum in waiting for name in stratum.predicates}
    blocks: list[Block] = []
    while waiting:
        block = _next_block(shape, waiting, derived)
        blocks.append(block)
        taken = {id(plan.stratum) for plan in block.plans}
        waiting = [s for s in waiting if id(s) not in taken]
        derived -= set(block.derives)
    return blocks


def _next_block(shape: Shape, waiting: list[Stratum], missing: set[str]) -> Block:
    plans: list[StratumPlan] = []
    inside: dict[str, Place | None] = {}
    alone: StratumPlan | None = None
    for stratum in waiting:
        own = set(stratum.predicates)
        if any(n in missing and inside.get(n) is None for n in stratum.reads - own):
            continue
        known = {n: p for n, p in inside.items() if n in stratum.reads and p is not None}
        plan = plan_stratum(shape, stratum, known)
        free = plan_stratum(shape, stratum, {}) if known else plan
        if plan.kind != SHARD:
            alone = alone or (plan if not known else None)
        elif not known or free.kind != SHARD or plan.cost <= free.cost + JOB_ROWS:
            plans.append(plan)
            inside |= plan.places
    if plans:
        return Block(tuple(plans))
    assert alone is not None, "the first stratum that waits reads only what exists"
    return Block((alone,))


# One stratum


def plan_stratum(shape: Shape, stratum: Stratum, inside: Mapping[str, Place]) -> StratumPlan:
    """The cheapest plan.  `inside` are predicates of the same block that it reads, and their places."""
    if why := _not_shared(shape, stratum):
        return StratumPlan(stratum, HERE, (), dict.fromkeys(stratum.predicates), 0.0, why)
    if shape.shards == 1:
        return _everything_whole(shape, stratum)
    options = _recursive(shape, stratum, inside) if stratum.recursive else _plain(shape, stratum, inside)
    best = min(options, key=lambda plan: plan.cost, default=None)
    if best is not None:
        return best
    if stratum.recursive:
        return _with_exchange(shape, stratum)
    names = ", ".join(stratum.predicates)
    why = f"no variable of a rule of {names} can own the shards"
    return StratumPlan(stratum, HERE, (), dict.fromkeys(stratum.predicates), 0.0, why)


def _not_shared(shape: Shape, stratum: Stratum) -> str:
    """Why a stratum cannot be distributed to several processes; "" if it can."""
    if shape.limited & set(stratum.predicates):
        return "which rows .limitsize leaves depends on the order in which they are derived"
    if stratum.subsumptions:
        return "its subsumption compares all rows"
    if stratum.totals:
        return "a recursive sum or count needs all contributions to a group in each round"
    for name in shape.program.remembered_in(stratum):
        if shape.program.predicates[name].numbering is not None:
            return "autoinc() counts in one process"
        return "which rows are chosen depends on all candidates"
    if stratum.sequence is not None:
        return "a number depends on all rows of its group"
    if shape.program.classes_in(stratum):
        return "any pair of an equivalence relation may join two classes"
    for rule in stratum.rules:
        if any(type.is_record for type in rule.types.values()):
            return "its records are numbers in one process's table"
        for form in rule.body.walk():
            if isinstance(form, Primitive) and form.name == "ord":
                return "ord is the number of a text in one process's dictionary"
    for name in stratum.predicates:
        if shape.program.predicates[name].has_records:
            return "its records are numbers in one process's table"
    return ""


def _everything_whole(shape: Shape, stratum: Stratum) -> StratumPlan:
    rules = tuple(whole(rule) for rule in stratum.rules)
    return StratumPlan(stratum, SHARD, rules, dict.fromkeys(stratum.predicates, WHOLE))


def _plain(shape: Shape, stratum: Stratum, inside: Mapping[str, Place]) -> Iterator[StratumPlan]:
    """Plans for a stratum without recursion: its predicate on a column, whole or scattered."""
    (name,) = stratum.predicates
    predicate = shape.program.predicates[name]
    columns = range(predicate.n_keys if predicate.is_functional else predicate.arity)
    for place in (*columns, WHOLE):
        found = [rule_placed(shape, rule, {name: place}, inside) for rule in stratum.rules]
        if all(found):
            yield _stratum_plan(shape, stratum, [r for r in found if r], {name: place})
    loose = [cheapest(shape, rule_options(shape, rule, inside)) for rule in stratum.rules]
    if all(loose):
        rules = [_once(rule) for rule in loose if rule]
        yield _stratum_plan(shape, stratum, rules, {name: None})


def _once(plan: RulePlan) -> RulePlan:
    return RulePlan(plan.rule, None, plan.places, once=True) if plan.variable is None else plan


def _recursive(shape: Shape, stratum: Stratum, inside: Mapping[str, Place]) -> Iterator[StratumPlan]:
    """Plans for a recursion inside the shards: a column of each predicate that all rules pass on."""
    ranges = []
    for name in stratum.predicates:
        predicate = shape.program.predicates[name]
        ranges.append(range(predicate.n_keys if predicate.is_functional else predicate.arity))
    reads_placed = any(place != WHOLE for place in inside.values())
    for number, columns in enumerate(product(*ranges)):
        if number == _SEARCHED:
            return
        places = dict(zip(stratum.predicates, columns, strict=True))
        found = [rule_placed(shape, rule, places, {**inside, **places}) for rule in stratum.rules]
        if all(found):
            yield _stratum_plan(shape, stratum, [r for r in found if r], dict(places))
    atoms = [atom for rule in stratum.rules for atom, _ in rule.body.atoms()]
    own = set(stratum.predicates)
    if not reads_placed and all(atom.predicate in own or atom.predicate in inside for atom in atoms):
        yield _everything_whole(shape, stratum)


def _stratum_plan(
    shape: Shape, stratum: Stratum, rules: list[RulePlan], places: dict[str, Place | None]
) -> StratumPlan:
    plan = StratumPlan(stratum, SHARD, tuple(rules), places)
    cost = read_cost(shape, plan.reads())
    largest = max((shape.rows(name) for name, _ in plan.reads()), default=0)
    for name, place in places.items():
        cost += shape.rows(name) * (shape.shards if place == WHOLE else 1) if name in shape.based else 0
        cost += largest + JOB_ROWS if place is None and not any(r.merged for r in rules) else 0
        cost += largest * shape.shards if place == WHOLE else 0
    cost += JOB_ROWS if any(r.merged for r in rules) and _is_read(shape, stratum) else 0
    cost += work(shape, rules)
    return StratumPlan(stratum, SHARD, tuple(rules), places, cost)


def _is_read(shape: Shape, stratum: Stratum) -> bool:
    """Whether other rules wait for what a stratum derives."""
    return any(s is not stratum and s.reads & set(stratum.predicates) for s in shape.program.strata)


# Recursion that exchanges


def _with_exchange(shape: Shape, stratum: Stratum) -> StratumPlan:
    """Every rule by its cheapest plan: recursive atoms are read at any place, with a copy for each."""
    rules = []
    for rule in stratum.rules:
        found = [p for p in rule_options(shape, rule, {}) if p.second is None]
        options = [p for p in found if _combinable(shape, stratum, p)]
        plan = cheapest(shape, (_unmerged(stratum, p) for p in options))
        assert plan is not None, "a rule can be read whole"
        rules.append(_once(plan))
    cost = read_cost(shape, (copy for rule in rules for copy in rule.reads()))
    why = f"no column of {', '.join(stratum.predicates)} is passed on by all of its rules"
    places: dict[str, Place | None] = dict.fromkeys(stratum.predicates)
    return StratumPlan(stratum, EXCHANGE, tuple(rules), places, cost + JOB_ROWS, why)


def _combinable(shape: Shape, stratum: Stratum, plan: RulePlan) -> bool:
    """Values that combine by key must be in one shard: such predicates are never placed on their value."""
    return all(
        name not in stratum.combine or place < shape.program.predicates[name].n_keys
        for name, place in plan.reads()
    )


def _unmerged(stratum: Stratum, plan: RulePlan) -> RulePlan:
    """In a recursion min and max combine candidates, so no shard holds a partial aggregate."""
    return RulePlan(plan.rule, plan.variable, plan.places)
