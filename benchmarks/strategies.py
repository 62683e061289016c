"""The choice of a strategy: every shipped rule that transactions can change, under every strategy that can
maintain it, over generated facts of three sizes and under three mixes of changes.

A *cell* is a rule, a size and a mix.  In it the strategy that dlog chooses by itself is compared with the
best of those that can be selected.  `python -m benchmarks.strategies --seed 2 --table FILE` prints all cells.
"""

from __future__ import annotations

import argparse
import gc
import re
import sys
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness import Row, at_least, below
from benchmarks.rule_facts import Facts
from dlog.engine.database import Database
from dlog.engine.loading import python_codes
from dlog.engine.maintain.offers import LASTS, Offer, Question, all_offers
from dlog.engine.maintain.strategies import SELECTABLE
from dlog.engine.transaction import Transaction
from dlog.errors import Diagnostics, DlogError
from dlog.ir.check import load_program
from dlog.ir.goals.materialize import ALWAYS, CHANGES, DIRECTIVE, check_modes
from dlog.ir.goals.narrowed import narrowed
from dlog.ir.rules import Program, Stratum
from dlog.language import ast
from dlog.language.source import Source, read_source

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
SIZES = (300, 3_000, 30_000)
GOOD = 1.5  # times the best strategy's time
OWN = "own choice"
MIXES = ("single", "batches", "hubs", "bulk")
HEADS = 50  # assignments for each row that is read, at most: otherwise domains are made larger
MOST_MEMORY = 200e6  # expected bytes of a strategy's state: more than that is no choice
MOST_ASSIGNMENTS = 3_000_000
WARM = 12  # transactions before a mix that are not measured: they make plans and column orders
TURNS = 6  # in which each strategy runs its share of a mix
OUTLIERS = 0.05  # of the times, the largest: kernels that are loaded, and other programs


@dataclass(frozen=True)
class ShippedRule:
    """The rules of one predicate in a program, with the auxiliary predicates that belong to them."""

    name: str
    tree: ast.Program
    program: Program


class RuleDatabase(Database):
    """A database of one rule of a program: what it reads has facts only."""

    def __init__(self, rule: ShippedRule, strategy: str | None, rows: Mapping[str, Sequence[Any]]):
        self._rule, self._rows = rule, rows
        super().__init__(source="", strategy=strategy)  # a limit would prevent the short path
        for name in rule.program.directed(DIRECTIVE):
            self.subscribe(name, lambda change: None)

    def _program_of(self, source: Source) -> tuple[ast.Program, Program]:
        return self._rule.tree, self._rule.program

    def _load_inputs(self, facts: str | Path) -> None:
        """Tables, too, which no transaction may change."""
        for name, rows in self._rows.items():
            codes = python_codes(self.store, name, list(rows))
            self.store.relations[name] = self.store.relations[name].apply(inserts=codes)[0]


def shipped_rules() -> Iterator[ShippedRule]:
    """Those without recursion that read something that transactions can change."""
    for path in sorted(PROGRAMS.rglob("*.dl")):
        if {"errors", "includes"} & {*path.parts}:
            continue
        try:
            tree, program = load_program(read_source(path))
        except DlogError:
            continue
        shown = str(path.relative_to(PROGRAMS)).removesuffix(".dl")
        for stratum in program.strata:
            (name, *_) = stratum.predicates
            if not program.predicates[name].auxiliary and not stratum.recursive:
                yield from _rule(f"{shown}:{name}", tree, program, stratum)


def _rule(name: str, tree: ast.Program, program: Program, stratum: Stratum) -> Iterator[ShippedRule]:
    strata, reads = [stratum], set(stratum.reads)
    for other in reversed(program.strata):
        auxiliary = all(program.predicates[p].auxiliary for p in other.predicates)
        if auxiliary and not other.recursive and not reads.isdisjoint(other.predicates):
            strata.append(other)
            reads |= other.reads
    program = narrowed(program, strata)
    directives = tuple(d for d in program.directives if d.kind == "table")
    found = ShippedRule(
        name, ast.Program(()), Program(**{**_fields(program), "facts": (), "directives": directives})
    )
    base = [program.predicates[p] for p in reads - program.stratum_of.keys()]
    if any(predicate.has_records for predicate in base):
        return  # no facts are made for these types
    if any(predicate.arity for predicate in base if predicate.name not in _tables(program)):
        yield found


def with_changes_only(rule: ShippedRule) -> ShippedRule | None:
    """The rule with heads that are not stored, whose changes a subscriber gets; None if they must be."""
    named = [name for name in rule.program.stratum_of if not rule.program.predicates[name].auxiliary]
    mode = (ast.DirectiveParameter("mode", CHANGES),)
    directives = tuple(ast.Directive(DIRECTIVE, name, mode) for name in named)
    kept = rule.program.directives
    program = Program(**{**_fields(rule.program), "directives": kept + directives})
    diagnostics = Diagnostics()
    check_modes(program, diagnostics)
    return None if diagnostics.errors else ShippedRule(rule.name, rule.tree, program)


def _fields(program: Program) -> dict[str, Any]:
    return {name: getattr(program, name) for name in program.__dataclass_fields__}


def _tables(program: Program) -> Sequence[str]:
    return [*program.directed("table")]


# One rule and size


@dataclass
class Lane:
    """One strategy in a cell."""

    name: str
    database: RuleDatabase
    build: float = 0.0
    times: dict[str, list[float]] = field(default_factory=dict)
    choices: tuple[str, ...] = ()  # of each stratum

    def cost(self, mix: str, rows: int) -> float:
        """Seconds per transaction, with its share of building: as the chooser adds them up."""
        times = sorted(self.times[mix])
        times = times[: len(times) - int(OUTLIERS * len(times))]
        return sum(times) / len(times) + self.build / (LASTS * max(rows, 1))


@dataclass(frozen=True)
class Cell:
    rule: str
    size: int
    mix: str
    rows: int  # that the rule reads
    costs: Mapping[str, float]  # seconds per transaction, by strategy, and of OWN
    steady: Mapping[str, float]  # the same without building
    way: str  # what dlog chose
    offers: Mapping[str, float]  # the estimated costs, in us

    @property
    def best(self) -> str:
        return min(self.costs, key=lambda name: self.costs[name])

    @property
    def ratio(self) -> float:
        return self.costs[OWN] / self.costs[self.best]

    @property
    def steady_ratio(self) -> float:
        return self.steady[OWN] / min(self.steady.values())

    def line(self) -> str:
        shown = "  ".join(f"{n} {s * 1e6:,.0f}" for n, s in sorted(self.costs.items(), key=lambda i: i[1]))
        offered = "  ".join(f"{name} {cost:,.0f}" for name, cost in self.offers.items())
        mark = " " if self.ratio <= GOOD else "*"
        return (
            f"{mark} {self.ratio:6.2f} {self.steady_ratio:6.2f}  {self.rule:<44} {self.size:>6} "
            f"{self.mix:<8} chosen {self.way:<18} us: {shown}   offers: {offered}"
        )


def cells(rule: ShippedRule, size: int, seed: int, counts: Mapping[str, int]) -> Iterator[Cell]:
    """All mixes of one rule and size.  Nothing if its facts derive too much."""
    facts = _facts(rule, size, seed)
    if facts is None or not facts.changing:
        return
    base = {name: rows for name, rows in facts.rows.items() if rows}
    try:
        lanes = list(_lanes(rule, base))
    except DlogError:
        return  # values that a rule does not allow, or too many rows
    own = lanes[0]
    rows = sum(len(r) for r in facts.rows.values())
    offers = _offers(own.database)
    mixes = [*MIXES[:2], MIXES[2 + zlib.crc32(rule.name.encode()) % 2]]
    for mix in mixes:
        try:
            _measure(lanes, facts, mix, counts[mix])
        except DlogError:
            return
        costs = _best({lane.name: lane.cost(mix, rows) for lane in lanes}, lanes)
        steady = _best({lane.name: lane.cost(mix, 1 << 60) for lane in lanes}, lanes)
        yield Cell(rule.name, size, mix, rows, costs, steady, _ways(own.database), offers)
    stored = rule.program.stratum_of.keys() - {*rule.program.directed(DIRECTIVE)}
    for lane in lanes[1:]:
        for name in stored:
            if rule.program.predicates[name].auxiliary:
                continue  # it may be stale
            assert len(lane.database.relation(name)) == len(own.database.relation(name)), (rule.name, name)


def _best(costs: Mapping[str, float], lanes: Sequence[Lane]) -> dict[str, float]:
    """Where the choice is a strategy that is measured alone, too, the better of the two times counts."""
    same = [costs[lane.name] for lane in lanes if lane.choices == lanes[0].choices]
    return {**costs, OWN: min(same)}


def _facts(rule: ShippedRule, size: int, seed: int) -> Facts | None:
    """Facts whose joins are not too large."""
    fan = 1.0
    for _ in range(6):
        facts = Facts(rule.program, size, f"{seed} {rule.name} {size}", fan)
        estimated = _assignments(rule, facts)
        if estimated <= min(HEADS * max(size, 300), MOST_ASSIGNMENTS):
            return facts
        fan /= 3
    return None


def _assignments(rule: ShippedRule, facts: Facts) -> float:
    """An estimate of the assignments of the bodies, from statistics of the facts alone."""
    program = rule.program
    plain = ShippedRule(rule.name, rule.tree, narrowed(program, ()))
    database = RuleDatabase(plain, None, {name: rows for name, rows in facts.rows.items() if rows})
    return max(Question(program, s, database.store).assignments for s in program.strata)


def _lanes(rule: ShippedRule, base: Mapping[str, Sequence[Any]]) -> Iterator[Lane]:
    for name in (OWN, *SELECTABLE):
        lane = Lane(name, RuleDatabase(rule, None if name == OWN else name, base))
        if name != OWN and lane.database.expected_memory() > MOST_MEMORY:
            continue
        started = time.process_time()
        lane.database.build_states()
        lane.build = time.process_time() - started
        strategies = lane.database._maintenance.strategies
        lane.choices = tuple(strategies[number].offered_as for number in sorted(strategies))
        if name == OWN or any(_strategy_names(lane.database, name)):
            yield lane


def _strategy_names(database: Database, name: str) -> Iterator[bool]:
    """Whether a strategy maintains a stratum."""
    for strategy in database._maintenance.strategies.values():
        yield strategy.offered_as == name or strategy.explain(database.store)[0].startswith(f"{name},")


def _ways(database: Database) -> str:
    return "+".join(dict.fromkeys(s.offered_as or s.way for s in database._maintenance.strategies.values()))


def _offers(database: Database) -> dict[str, float]:
    """The sum over the strata of what each strategy offers."""
    maintenance, total = database._maintenance, dict[str, float]()
    for number in range(len(maintenance.program.strata)):
        question = maintenance.question(number, database.store)
        for one in all_offers(question):
            if isinstance(one, Offer):
                total[one.strategy] = total.get(one.strategy, 0.0) + one.cost(question.rows)
    return total


def _measure(lanes: Sequence[Lane], facts: Facts, mix: str, count: int) -> None:
    """The same transactions under every strategy, in turns of some transactions in a random order."""
    sizes = {"single": (1, 1), "batches": (10, 100), "hubs": (1, 4), "bulk": (1000, 1000)}[mix]
    least, most = (min(n, max(1, len(max(facts.rows.values(), key=len)))) for n in sizes)
    changes = [facts.change(facts.rng.randint(least, most), mix == "hubs") for _ in range(WARM + count)]
    gc.collect()
    gc.disable()
    try:
        for lane in lanes:
            for change in changes[:WARM]:
                _commit(lane.database, *change)
        turn = max(1, count // TURNS)
        for start in range(WARM, len(changes), turn):
            for lane in facts.rng.sample(lanes, len(lanes)):
                seconds = [_commit(lane.database, *change) for change in changes[start : start + turn]]
                lane.times.setdefault(mix, []).extend(seconds)
    finally:
        gc.enable()


def _commit(database: Database, insert: Mapping[str, Any], erase: Mapping[str, Any]) -> float:
    transaction = Transaction(database)
    for name, rows in erase.items():
        transaction.erase(name, rows)
    for name, rows in insert.items():
        transaction.insert(name, rows)
    started = time.process_time()
    database.commit(transaction)
    return time.process_time() - started


# The benchmark

COUNTS = {"single": 60, "batches": 30, "hubs": 60, "bulk": 8}


def measured(
    sizes: Sequence[int],
    seed: int,
    counts: Mapping[str, int],
    every: int = 1,
    start: int = 0,
    names: str = "",
    mode: str = ALWAYS,
) -> Iterator[Cell]:
    rules = (rule for rule in shipped_rules() if re.search(names, rule.name))
    if mode == CHANGES:
        rules = (changed for rule in rules if (changed := with_changes_only(rule)) is not None)
    for number, rule in enumerate(rules):
        if number % every == start % every:
            for size in sizes:
                yield from cells(rule, size, seed, counts)


def share(found: Sequence[Cell]) -> float:
    """Of the cells in which the choice is good."""
    return sum(cell.ratio <= GOOD for cell in found) / max(1, len(found))


def benchmark(scale: float) -> Iterator[Row]:
    every = at_least(1, 1 / max(scale, 1 / 140))
    sizes = [size for size in SIZES if size <= at_least(SIZES[0], SIZES[-1] * scale)]
    counts = {mix: at_least(2, n * scale) for mix, n in COUNTS.items()}
    for size in sizes:
        found = list(measured((size,), 1, counts, every))
        bad = 100 * (1 - share(found))
        name = f"choices above {GOOD} times the best"
        yield Row(name, f"{size:,} rows, {len(found):,} cells", max(bad, 1e-9), aim=below(5.0), unit="%")


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.strategies", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the generated facts and changes")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write a line for each cell")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="rows of each predicate")
    parser.add_argument("--rules", default="", metavar="REGEX", help="only rules with such names")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth rule")
    parser.add_argument("--start", type=int, default=0, metavar="K", help="with --every: from the Kth")
    modes = ALWAYS, CHANGES
    parser.add_argument("--mode", choices=modes, default=ALWAYS, help="of all heads; with one subscriber")
    arguments = parser.parse_args()
    found = []
    with arguments.table.open("w") if arguments.table else sys.stdout as out:
        given = arguments.sizes, arguments.seed, COUNTS, arguments.every, arguments.start, arguments.rules
        for cell in measured(*given, arguments.mode):
            found.append(cell)
            print(cell.line(), file=out, flush=True)
    for size in arguments.sizes:
        of_size = [cell for cell in found if cell.size == size]
        worst = max((cell.ratio for cell in of_size), default=1.0)
        middle = median([cell.ratio for cell in of_size] or [1.0])
        print(f"{size:,} rows: {share(of_size):.1%} of {len(of_size)} cells within {GOOD}; "
              f"median {middle:.2f}, worst {worst:.1f}", file=sys.stderr)  # fmt: skip
    print(f"all: {share(found):.1%} of {len(found)} cells", file=sys.stderr)


if __name__ == "__main__":
    main()
