"""Owns where the facts of a sharded stream are stored: a column for each predicate, one choice for all rules.

A run may place a predicate again for every rule (`dlog.spark.plan.shards`); shards that maintain their state
have each predicate once.  Correct output: with base facts *placed on* a column, each row in the one shard
that its value there belongs to, or *whole* in all shards, every shard derives with the program's own rules

- of a predicate that is placed: exactly the rows of that shard;  of one that is whole: all rows;
- of one that is scattered: rows, or partial aggregates, that are merged from all shards.

No rule reads a scattered predicate.  Knows nothing of Spark, files or rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from dlog.errors import PlanError
from dlog.ir.rules import Atom, Predicate, Program, Rule, Var
from dlog.spark.plan.places import WHOLE, Place, Shape
from dlog.spark.plan.shards import SHARD, StratumPlan, plan_stratum

_TRIED = 512  # choices of columns


@dataclass(frozen=True)
class Placing:
    """The place of every predicate; None is scattered.  `merges` has the rule that merges those, over
    `PREDICATE__part(shard, ...)`."""

    places: Mapping[str, Place | None]
    merges: Mapping[str, str]

    def describe(self, program: Program) -> list[str]:
        """As text, one line for each predicate that a user knows."""
        return [
            f"{name} is {_described(program.predicates[name], place)}"
            for name, place in self.places.items()
            if not program.predicates[name].auxiliary
        ]


def place_program(program: Program, streamed: Collection[str], shards: int) -> Placing:
    """The choice with the least work repeated in every shard (what is whole), and the least merging.

    Raises PlanError if there is none.
    """
    _refuse_program(program)
    reasons: list[str] = []
    best: tuple[int, Placing] | None = None
    for base in islice(_choices(program, streamed), _TRIED):
        try:
            placing = _place(program, base, streamed, shards)
        except PlanError as error:
            reasons.append(error.message)
            continue
        cost = 2 * sum(place == WHOLE for place in placing.places.values()) + len(placing.merges)
        if best is None or cost < best[0]:
            best = (cost, placing)
    if best is None:
        why = f": {reasons[0]}" if reasons else ""
        raise PlanError(f"this program cannot be sharded{why}", help="leave --shards out: one engine")
    return best[1]


def _refuse_program(program: Program) -> None:
    if program.has_records:
        raise PlanError(
            "a program with records cannot be sharded: they are numbers in one process's table",
            help="leave --shards out: one engine",
        )
    if program.subsumptions:
        raise PlanError(
            "a program with subsumption cannot be sharded: a row of one shard may subsume a row of another",
            help="leave --shards out: one engine",
        )
    if any(stratum.totals for stratum in program.strata):
        raise PlanError(
            "a program with recursive sums or counts cannot be sharded: each round needs whole groups",
            help="leave --shards out: one engine",
        )
    for name in program.equivalences:
        raise PlanError(
            f"{name} is an equivalence relation, which cannot be sharded: any pair may join two classes",
            help="leave --shards out: one engine",
        )
    for name in program.remembered:
        reason = f"{name} has a choice domain, and a choice compares the candidates of all shards"
        if program.predicates[name].numbering is not None:
            reason = "autoinc() counts in one engine"
        raise PlanError(f"this program cannot be sharded: {reason}", help="leave --shards out: one engine")
    for name in sorted(program.sequences):
        raise PlanError(
            f"{name} is a sequence, which cannot be sharded: its numbers depend on all rows of a group",
            help="leave --shards out: one engine",
        )
    if program.events is not None:
        raise PlanError(
            "a program with delta rules cannot be sharded: rules read events of all shards",
            help="leave --shards out: one engine",
        )
    if program.constraints:
        raise PlanError(
            "a program with constraints cannot be sharded: a batch is accepted by all shards or by none",
            help="leave --shards out: one engine",
        )


# Base predicates


def _choices(program: Program, streamed: Collection[str]) -> Iterator[dict[str, Place]]:
    """Places of base predicates that belong together: one streamed predicate on a column, and all that are
    joined with it on the same variable; then each of them whole instead."""
    derived = {name for stratum in program.strata for name in stratum.predicates}
    base = [n for n in program.predicates if n not in derived or n in streamed]
    for name in streamed:
        for column in _columns(program.predicates[name]):
            found = {name: column}
            _spread(program, found, set(base))
            yield {n: found.get(n, WHOLE) for n in base}
            for other in found:
                if other != name:
                    yield {n: WHOLE if n == other else found.get(n, WHOLE) for n in base}
            yield {n: column if n == name else WHOLE for n in base}


def _columns(predicate: Predicate) -> range:
    """Columns that may own shards: of a function its keys, so that a key has one value."""
    return range(predicate.n_keys if predicate.is_functional else predicate.arity)


def _spread(program: Program, found: dict[str, Place], base: set[str]) -> None:
    """Adds places of predicates that share, in some rule, the variable that one with a place is on."""
    rules = [rule for stratum in program.strata for rule in stratum.rules]
    grows = True
    while grows:
        grows = False
        for rule in rules:
            atoms = [*rule.heads, *(atom for atom, _ in rule.body.atoms())]
            placed = [atom for atom in atoms if atom.predicate in found]
            for owner in {_argument(atom, found[atom.predicate]) for atom in placed}:
                for atom in atoms:
                    column = _column_of(program, atom, owner)
                    if atom.predicate not in found and column is not None:
                        found[atom.predicate] = column
                        grows = True


def _argument(atom: Atom, column: Place) -> str | None:
    argument = atom.args[column]
    return argument.name if isinstance(argument, Var) else None


def _column_of(program: Program, atom: Atom, variable: str | None) -> int | None:
    for column in _columns(program.predicates[atom.predicate]):
        argument = atom.args[column]
        if isinstance(argument, Var) and argument.name == variable:
            return column
    return None


# Derived predicates


def _place(program: Program, base: Mapping[str, Place], streamed: Collection[str], shards: int) -> Placing:
    """Places of all predicates, given those of base predicates.  Raises PlanError with the reason."""
    if all(base[name] == WHOLE for name in streamed):
        raise PlanError("no column can own the shards")
    shape = Shape(program, max(shards, 2), frozenset(base), {})
    inside: dict[str, Place] = dict(base)
    places: dict[str, Place | None] = dict(base)
    merges: dict[str, str] = {}
    for stratum in program.strata:
        for name in stratum.reads - set(stratum.predicates):
            if places.get(name, WHOLE) is None:
                raise PlanError(f"{name}, which is merged from all shards, is read by another rule")
        others = stratum.reads - set(stratum.predicates)
        known = {name: inside[name] for name in others if name in inside}
        plan = plan_stratum(shape, stratum, known)
        found = _places_of(plan)
        _require_in_shard(plan, found, base)
        for name, place in found.items():
            places[name] = place
            if place is None:
                rules = [rule for rule in stratum.rules if _heads(rule, name)]
                if name in _with_facts(program) and any(rule.aggregates for rule in rules):
                    raise PlanError(f"{name}: every shard would have its facts beside partial aggregates")
                merges[name] = _merge(program, name, rules)
            else:
                inside[name] = place
    return Placing(places, merges)


def _with_facts(program: Program) -> set[str]:
    """Predicates that have facts before the stream begins."""
    given = {block.predicate for block in program.facts} | {delta.predicate for delta in program.deltas}
    return given | {d.predicate for d in program.directives if d.kind == "input"}


def _heads(rule: Rule, name: str) -> bool:
    return any(head.predicate == name for head in rule.heads)


def _places_of(plan: StratumPlan) -> Mapping[str, Place | None]:
    """What is derived only from whole predicates is whole: every shard derives it."""
    if plan.kind == SHARD and all(rule.variable is None and rule.owner is None for rule in plan.rules):
        return dict.fromkeys(plan.places, WHOLE)
    return plan.places


def _require_in_shard(
    plan: StratumPlan, found: Mapping[str, Place | None], base: Mapping[str, Place]
) -> None:
    names = ", ".join(plan.stratum.predicates)
    if plan.kind != SHARD:
        raise PlanError(f"{names}: {plan.why}")
    for rule in plan.rules:
        if rule.owner is not None:
            raise PlanError(f"{names}: a head has a constant where a shard's own value is required")
        if rule.once and rule.rule.aggregates and None in found.values():
            raise PlanError(f"{names}: every shard would derive the same aggregate")
    for name, place in found.items():
        if name in base and base[name] != place:
            raise PlanError(f"{name}: facts and derived rows would be in different shards")


def _merge(program: Program, name: str, rules: list[Rule]) -> str:
    """The rule that merges what shards have of a predicate."""
    predicate = program.predicates[name]
    columns = [f"c{i}" for i in range(predicate.arity)]
    results: dict[int, str] = {}
    for rule in rules:
        if rule.aggregates:
            if len(rules) > 1:
                raise PlanError(f"{name}: partial aggregates of several rules cannot be merged")
            results = _results(predicate, rule)
    parts = [f"w{i}" if i in results else c for i, c in enumerate(columns)]
    aggregates = ", ".join(f"c{i} = {op}(w{i})" for i, op in results.items())
    body = f"{name}__part({', '.join(['_', *parts])})"
    return f"{predicate.show(tuple(columns))} <- {f'agg<<{aggregates}>> ' if results else ''}{body}."


def _results(predicate: Predicate, rule: Rule) -> dict[int, str]:
    """How the column of each aggregate's result is merged."""
    (head,) = (head for head in rule.heads if head.predicate == predicate.name)
    functions = {aggregate.result.name: aggregate.function for aggregate in rule.aggregates}
    found = {}
    for column, argument in enumerate(head.args):
        function = functions.get(argument.name) if isinstance(argument, Var) else None
        if function is None:
            continue
        rounded = function.adds_up and predicate.columns[column].type.kernel == "float"
        if function.merged_by is None or rounded:
            none = f"finished values of {function} cannot be merged"
            what = "a float sum is exact only in one place" if rounded else none
            raise PlanError(f"{predicate.name}: {what}, and its groups are in several shards")
        found[column] = function.merged_by
    return found


def merge_program(program: Program, placing: Placing) -> str:
    """The program that merges scattered predicates."""
    lines = []
    for name, rule in placing.merges.items():
        columns = program.predicates[name].columns
        parts = ", ".join(f"c{i}: {column.type}" for i, column in enumerate(columns))
        lines += [f".decl {name}__part(shard: int{', ' * bool(columns)}{parts})", rule]
    return "\n".join(lines) + "\n"


def _described(predicate: Predicate, place: Place | None) -> str:
    if place is None:
        return "merged from all shards"
    if place == WHOLE:
        return "whole in every shard"
    name = predicate.columns[place].name
    return f"in shards by {f'column {place + 1}' if name == f'c{place}' else name}"  # c0: a generated name
