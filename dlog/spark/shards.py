"""Owns how a program is cut into shards: which variable of each rule owns the shard, where each atom's rows
are, and which strata one job can do.  A pure function of the program; knows nothing of Spark, files or rows.

Correct output.  A value belongs to one of n shards (`dlog.spark.hashing`).  A rule with the *first key* x
runs in every shard over the assignments whose x belongs to it: every assignment has one x, hence one owner.
Atoms that have x are read *placed on* the column where it stands, each shard having the rows whose value
there is its own; all other atoms, negated ones too, are read *whole*.  What a rule derives is

- placed on c, when x is the head's argument c in each of its rules: final, and readable in the same job;
- whole, when the rule reads nothing that is placed: every shard derives all of it;
- scattered otherwise: shards may derive the same row, and nobody has all, so readers wait for another job.

An aggregate is final in the shard when its groups contain x; otherwise shards have partial values that are
merged.  Where few values of x have many rows, these *heavy* values are split by a second variable y: of an
atom that has both, such rows are where their y belongs; of one that has x alone, they are in every shard.
What is derived is then scattered.

A recursion whose rules all hand x on runs to its fixpoint inside the shard; others exchange what
they derive after every step (`dlog.spark.steps`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from dlog.ir.rules import Atom, Conj, Const, Disjunction, Negation, Primitive, Program, Rule, Stratum, Var
from dlog.types import Type

WHOLE = -1  # a place: all rows in every shard; other places are columns, or columns with a split
Place = int
_SPLIT, _MOST = 1 << 20, 1 << 10

JOB_ROWS = 200_000  # a job costs as much as so many rows that are copied
UNKNOWN_ROWS = 1_000_000  # of a predicate that is not there yet
_SEARCHED = 4096  # choices of columns for a recursion
MERGED = frozenset({"count", "sum", "total", "min", "max", "mean"})  # aggregates with partial values


@dataclass(frozen=True)
class RulePlan:
    """How one rule runs: `variable` owns the shard; without one, all is read whole.

    `owner` is the constant that a head has at its place: only its shard runs the rule.  `once`: only the
    first shard does, as what the rule derives is scattered.  `merged`: aggregates are partial.
    """

    rule: Rule
    variable: str | None
    places: Mapping[int, Place]  # by the number of the atom in the order of `Conj.atoms`
    owner: tuple[Const, Type] | None = None
    once: bool = False
    merged: bool = False
    second: str | None = None  # the variable by which heavy values of the first are split

    def reads(self) -> Iterator[tuple[str, Place]]:
        for number, (atom, _) in enumerate(self.rule.body.atoms()):
            yield atom.predicate, self.places[number]


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


@dataclass(frozen=True)
class Shape:
    """What the planner knows besides the rules."""

    program: Program
    shards: int
    based: frozenset[str]  # derived predicates that have base facts as well
    sizes: Mapping[str, int]
    limited: frozenset[str] = frozenset()  # `.limitsize`
    heavy: frozenset[tuple[str, int]] = frozenset()  # columns that have heavy values

    def rows(self, name: str) -> int:
        predicate = self.program.predicates[name]
        guess = UNKNOWN_ROWS if predicate.n_keys else 1  # a function without keys has one value
        return self.sizes.get(name, guess)


def split(column: int, second: int | None) -> Place:
    """The place of rows on a column, heavy values by a second column, or in every shard."""
    assert column < _MOST and (second is None or second < _MOST)
    return _SPLIT + column * _MOST + (0 if second is None else second + 1)


def columns_of(place: Place) -> tuple[int, int | None, bool]:
    """Column, second column and whether heavy values are split, of a place on a column.

    >>> columns_of(3), columns_of(split(3, 1)), columns_of(split(3, None))
    ((3, None, False), (3, 1, True), (3, None, True))
    """
    if place < _SPLIT:
        return place, None, False
    column, second = divmod(place - _SPLIT, _MOST)
    return column, second - 1 if second else None, True


def plan_blocks(shape: Shape) -> list[Block]:
    """Blocks in an order in which each reads only what is there.  Few: a stratum joins the first block in
    which all it reads is there and placed as it needs, unless reading it otherwise is much cheaper.
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
    assert alone is not None, "the first stratum that waits reads only what is there"
    return Block((alone,))


# One stratum


def plan_stratum(shape: Shape, stratum: Stratum, inside: Mapping[str, Place]) -> StratumPlan:
    """The cheapest way.  `inside` are predicates of the same block that it reads, and their places."""
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
    """Why a stratum cannot be given to several processes at all; "" if it can."""
    if shape.limited & set(stratum.predicates):
        return "which rows .limitsize leaves depends on the order in which they are derived"
    for rule in stratum.rules:
        for form in rule.body.walk():
            if isinstance(form, Primitive) and form.name == "ord":
                return "ord is the number of a text in one process's dictionary"
    return ""


def _everything_whole(shape: Shape, stratum: Stratum) -> StratumPlan:
    rules = tuple(_whole(rule) for rule in stratum.rules)
    return StratumPlan(stratum, SHARD, rules, dict.fromkeys(stratum.predicates, WHOLE))


def _whole(rule: Rule) -> RulePlan:
    return RulePlan(rule, None, {number: WHOLE for number, _ in enumerate(rule.body.atoms())})


def _plain(shape: Shape, stratum: Stratum, inside: Mapping[str, Place]) -> Iterator[StratumPlan]:
    """Ways to run a stratum without recursion: its predicate on a column, whole or scattered."""
    (name,) = stratum.predicates
    predicate = shape.program.predicates[name]
    columns = range(predicate.n_keys if predicate.is_functional else predicate.arity)
    for place in (*columns, WHOLE):
        found = [_rule_placed(shape, rule, {name: place}, inside) for rule in stratum.rules]
        if all(found):
            yield _stratum_plan(shape, stratum, [r for r in found if r], {name: place})
    loose = [_cheapest(shape, _rule_options(shape, rule, inside)) for rule in stratum.rules]
    if all(loose):
        rules = [_once(rule) for rule in loose if rule]
        yield _stratum_plan(shape, stratum, rules, {name: None})


def _once(plan: RulePlan) -> RulePlan:
    return RulePlan(plan.rule, None, plan.places, once=True) if plan.variable is None else plan


def _recursive(shape: Shape, stratum: Stratum, inside: Mapping[str, Place]) -> Iterator[StratumPlan]:
    """Ways to run a recursion inside the shards: a column of each predicate that all rules hand on."""
    ranges = []
    for name in stratum.predicates:
        predicate = shape.program.predicates[name]
        ranges.append(range(predicate.n_keys if predicate.is_functional else predicate.arity))
    reads_placed = any(place != WHOLE for place in inside.values())
    for number, columns in enumerate(product(*ranges)):
        if number == _SEARCHED:
            return
        places = dict(zip(stratum.predicates, columns, strict=True))
        found = [_rule_placed(shape, rule, places, {**inside, **places}) for rule in stratum.rules]
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
    cost = _read_cost(shape, plan.reads())
    largest = max((shape.rows(name) for name, _ in plan.reads()), default=0)
    for name, place in places.items():
        cost += shape.rows(name) * (shape.shards if place == WHOLE else 1) if name in shape.based else 0
        cost += largest + JOB_ROWS if place is None and not any(r.merged for r in rules) else 0
        cost += largest * shape.shards if place == WHOLE else 0
    cost += JOB_ROWS if any(r.merged for r in rules) else 0
    return StratumPlan(stratum, SHARD, tuple(rules), places, cost)


def _read_cost(shape: Shape, reads: Iterable[tuple[str, Place]]) -> float:
    """Rows that shards load.  The shard of a heavy value has nearly all, and the others wait for it."""
    return sum(
        shape.rows(copy[0]) * (shape.shards if copy[1] == WHOLE or copy in shape.heavy else 1)
        for copy in set(reads)
    )


# One rule


def _rule_placed(
    shape: Shape, rule: Rule, places: Mapping[str, Place], inside: Mapping[str, Place]
) -> RulePlan | None:
    """The rule so that what it derives is at these places; None when it cannot."""
    here = {places[head.predicate] for head in rule.heads}
    if here == {WHOLE}:
        return _whole_rule(rule, inside)
    if WHOLE in here:
        return None
    owners = {head.args[places[head.predicate]] for head in rule.heads}
    if len(owners) != 1:
        return None
    (owner,) = owners
    head = rule.heads[0]
    column = shape.program.predicates[head.predicate].columns[places[head.predicate]]
    if isinstance(owner, Const):
        plan = _whole_rule(rule, inside)
        return plan and RulePlan(rule, None, plan.places, owner=(owner, column.type))
    if any(not _same(rule, owner, shape, h, places[h.predicate]) for h in rule.heads):
        return None
    if rule.aggregates and owner.name not in {v.name for v in rule.groups}:
        return None
    return _rule_on(shape, rule, owner.name, inside)


def _rule_options(shape: Shape, rule: Rule, inside: Mapping[str, Place]) -> Iterator[RulePlan]:
    """All ways to run a rule whose results may be anywhere."""
    for variable in (*rule.universals, *rule.body.exists):
        if plan := _rule_on(shape, rule, variable.name, inside):
            yield plan
            if any(copy in shape.heavy for copy in plan.reads()):
                yield from _rule_splits(shape, rule, variable.name, inside)
    if plan := _whole_rule(rule, inside):
        yield plan


def _cheapest(shape: Shape, plans: Iterable[RulePlan]) -> RulePlan | None:
    def cost(plan: RulePlan) -> float:
        """A rule that is not shared does all of the work in one process."""
        alone = sum(shape.rows(name) for name, _ in plan.reads()) * shape.shards
        return _read_cost(shape, plan.reads()) + (alone if plan.variable is None else 0)

    return min(plans, key=cost, default=None)


def _whole_rule(rule: Rule, inside: Mapping[str, Place]) -> RulePlan | None:
    if any(inside.get(atom.predicate, WHOLE) != WHOLE for atom, _ in rule.body.atoms()):
        return None
    return _whole(rule)


def _rule_on(shape: Shape, rule: Rule, variable: str, inside: Mapping[str, Place]) -> RulePlan | None:
    """The rule with a variable that owns the shard; None if no atom restricts it to its values, or if what is
    placed inside the block is not on it."""
    places: dict[int, Place] = {}
    for number, (atom, _) in enumerate(rule.body.atoms()):
        columns = [
            c
            for c, arg in enumerate(atom.args)
            if isinstance(arg, Var) and arg.name == variable and _same(rule, arg, shape, atom, c)
        ]
        fixed = inside.get(atom.predicate)
        if fixed is None:
            places[number] = columns[0] if columns else WHOLE
        elif fixed == WHOLE or fixed in columns:
            places[number] = fixed
        else:
            return None
    if not _restricted(rule.body, variable, iter(places.values())):
        return None
    merged = bool(rule.aggregates) and variable not in {v.name for v in rule.groups}
    if merged and not all(a.op in MERGED for a in rule.aggregates):
        return None
    return RulePlan(rule, variable, places, merged=merged)


def _rule_splits(shape: Shape, rule: Rule, first: str, inside: Mapping[str, Place]) -> Iterator[RulePlan]:
    """The rule with heavy values of its first key split by each variable that stands beside it in an atom."""
    atoms = [atom for atom, _ in rule.body.atoms()]
    if any(inside.get(atom.predicate, WHOLE) != WHOLE for atom in atoms):
        return
    for second in (*rule.universals, *rule.body.exists):
        if second.name == first:
            continue
        places = {i: _split_place(shape, rule, atom, first, second.name) for i, atom in enumerate(atoms)}
        places |= {i: WHOLE for i, atom in enumerate(atoms) if atom.predicate in inside}
        outer = [i for i, atom in enumerate(atoms) if any(atom is form for form in rule.body.forms)]
        if not any(places[i] != WHOLE and columns_of(places[i])[1] is not None for i in outer):
            continue
        merged = bool(rule.aggregates) and not {first, second.name} <= {v.name for v in rule.groups}
        if not merged or all(a.op in MERGED for a in rule.aggregates):
            yield RulePlan(rule, first, places, merged=merged, second=second.name)


def _split_place(shape: Shape, rule: Rule, atom: Atom, first: str, second: str) -> Place:
    found: dict[str, int] = {}
    for column, arg in enumerate(atom.args):
        if isinstance(arg, Var) and arg.name in (first, second) and _same(rule, arg, shape, atom, column):
            found.setdefault(arg.name, column)
    return split(found[first], found.get(second)) if first in found else WHOLE


def _restricted(conj: Conj, variable: str, places: Iterator[Place]) -> bool:
    """Whether every assignment goes through a placed atom.  `places` come in the order of `Conj.atoms`."""
    found = False
    for form in conj.forms:
        if isinstance(form, Atom):
            found |= next(places) != WHOLE
        elif isinstance(form, Disjunction):
            branches = [_restricted(branch, variable, places) for branch in form.branches]
            found |= bool(branches) and all(branches)
        elif isinstance(form, Negation):
            for _ in form.body.atoms():
                next(places)
    return found


def _same(rule: Rule, var: Var, shape: Shape, atom: Atom, column: int) -> bool:
    """Whether a column holds the variable's values as they are, so that their hashes agree."""
    stored = shape.program.predicates[atom.predicate].columns[column].type
    type = rule.types[var.name]
    return (stored.name, stored.scale) == (type.name, type.scale)


# Recursion that exchanges


def _with_exchange(shape: Shape, stratum: Stratum) -> StratumPlan:
    """Every rule in its cheapest way: recursive atoms are read at any place, copies being kept at each."""
    rules = []
    for rule in stratum.rules:
        found = [p for p in _rule_options(shape, rule, {}) if p.second is None]
        options = [p for p in found if _combinable(shape, stratum, p)]
        plan = _cheapest(shape, (_unmerged(stratum, p) for p in options))
        assert plan is not None, "a rule can be read whole"
        rules.append(_once(plan))
    cost = _read_cost(shape, (copy for rule in rules for copy in rule.reads()))
    why = f"no column of {', '.join(stratum.predicates)} is handed on by all of its rules"
    places: dict[str, Place | None] = dict.fromkeys(stratum.predicates)
    return StratumPlan(stratum, EXCHANGE, tuple(rules), places, cost + JOB_ROWS, why)


def _combinable(shape: Shape, stratum: Stratum, plan: RulePlan) -> bool:
    """Values that combine by key must come together: such predicates are never placed on their value."""
    return all(
        name not in stratum.combine or place < shape.program.predicates[name].n_keys
        for name, place in plan.reads()
    )


def _unmerged(stratum: Stratum, plan: RulePlan) -> RulePlan:
    """In a recursion min and max combine candidates: nothing is partial."""
    return RulePlan(plan.rule, plan.variable, plan.places)
