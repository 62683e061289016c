"""Owns the measurements: the transactions of a file under every strategy, in databases that differ in nothing
else.

1 Each strategy has a database, which loads the program and builds the state of its strategy.  2 They take
turns with every transaction.  3 Each is compared with evaluation from scratch: answers never depend on a
strategy.  If there is time for it, everything is done twice, and the lower time of each transaction counts,
since a kernel may be loaded in the first one.  Times are of the processor: other programs disturb them
little.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from dlog.apply import Unit, transactions_of
from dlog.engine.database import Database
from dlog.engine.maintain.chosen import Chosen
from dlog.engine.maintain.explain_offers import size_text
from dlog.engine.maintain.strategies import FROM_SCRATCH, SELECTABLE
from dlog.engine.state.limits import machine_bytes
from dlog.engine.transaction import Transaction
from dlog.errors import DataError, DlogError, Interrupted, SourceError, VerifyError, did_you_mean
from dlog.ir.goals.materialize import DIRECTIVE, modes
from dlog.ir.goals.narrowed import narrowed, read_by
from dlog.ir.rules import Program
from dlog.language import ast
from dlog.language.source import Source

Progress = Callable[[str, str, int, int], None]
OWN = "own choice"  # of dlog, when no strategy is requested
MEMORY_SHARE = 0.25  # of the machine's, that one strategy may be expected to need
SCRATCH_SHARE = 0.25  # of the time that may be spent, for evaluation from scratch
PHASE = "compare"
_Placed = tuple[str, Sequence[ast.Node]]  # the place of a transaction and its statements


@dataclass
class Measured:
    """One line of the comparison."""

    name: str
    refused: str = ""  # why there are no measurements
    build: float = 0.0  # seconds, once
    seconds: list[float] = field(default_factory=list)  # of each transaction
    operations: int | None = None  # of all of them
    memory: int = 0  # bytes of all rows in all column orders, with the state of the strategy
    chosen: list[Chosen] = field(default_factory=list)

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def total(self) -> float:
        return sum(self.seconds)

    def best_of(self, other: Measured) -> None:
        """The lower times of two rounds.  REQUIRES: of the same strategy and transactions."""
        self.build = min(self.build, other.build)
        both = zip(self.seconds, other.seconds, strict=False)
        self.seconds = [min(a, b) for a, b in both] or self.seconds


@dataclass
class Comparison:
    """`transactions` of `available` were measured: as many as there was time for, without those that fail."""

    program: str
    predicate: str | None
    file: str
    transactions: int
    available: int
    runs: list[Measured]  # the own choice first, then strategies in list order, from scratch last
    failed: Sequence[str] = ()  # the places of transactions that fail
    unstored: Sequence[str] = ()  # predicates whose modes do not hold here

    @property
    def own(self) -> Measured:
        return self.runs[0]

    @property
    def strategies(self) -> list[Measured]:
        """Those that were measured, on all transactions."""
        return [run for run in self.runs[1:] if not run.refused and run.name != FROM_SCRATCH]

    @property
    def fastest(self) -> Measured:
        return min([*self.strategies, self.own], key=lambda run: run.total)

    @property
    def ratio(self) -> float:
        """The time of the own choice, relative to the fastest strategy."""
        return self.own.total / max(self.fastest.total, 1e-9)


def without_modes(tree: ast.Program, program: Program) -> tuple[ast.Program, Program]:
    """Without `.materialize`: what is compared are strategies over the same rows."""
    if not modes(program):
        return tree, program
    kept = tuple(s for s in tree.statements if not (isinstance(s, ast.Directive) and s.kind == DIRECTIVE))
    directives = tuple(d for d in program.directives if d.kind != DIRECTIVE)
    return ast.Program(kept, span=tree.span), replace(program, directives=directives)


class OneDatabase(Database):
    """A program's database, in which all predicates are stored; with a predicate it has only the rules that
    this one depends on."""

    def __init__(self, path: Path, facts: Path, strategy: str | None, predicate: str | None):
        self._wanted = predicate
        super().__init__(path, facts=facts, strategy=strategy)

    def _program_of(self, source: Source) -> tuple[ast.Program, Program]:
        tree, program = super()._program_of(source)
        self.unstored = list(modes(program))
        tree, program = without_modes(tree, program)
        name = self._wanted
        if name is None:
            return tree, program
        if name not in program.predicates:
            known = [n for n, p in program.predicates.items() if not p.auxiliary]
            raise DataError(f"unknown predicate {name}", help=did_you_mean(name, known))
        if name not in program.stratum_of:
            raise DataError(f"{name} has no rules: nothing maintains it", help="name a predicate with rules")
        return tree, narrowed(program, read_by(program, name))


def compare(
    program: Path,
    predicate: str | None,
    facts: Path,
    file: Path,
    seconds: float,
    progress: Progress,
) -> Comparison:
    """Stops with fewer transactions after some seconds.  Transactions that fail are left out."""
    units = _changes(file)
    started = time.perf_counter()
    first = _Round(program, predicate, facts, units, progress)
    try:
        runs = first.run(started + seconds)
        if time.perf_counter() - started < seconds / 2:
            again = _Round(program, predicate, facts, first.succeeded, progress)
            for run, other in zip(runs, again.run(started + 2 * seconds), strict=True):
                run.best_of(other)
    except VerifyError as error:
        raise VerifyError(f"under one of the strategies, {error.message}") from None
    available = len(units) - len(first.failed)
    succeeded, failed = len(first.succeeded), first.failed
    return Comparison(program.name, predicate, file.name, succeeded, available, runs, failed, first.unstored)


def _changes(file: Path) -> list[_Placed]:
    """The place and the statements of each transaction that changes something."""
    units = [unit for unit in transactions_of(file) if not unit.rolls_back]
    found: list[_Placed] = [(unit.place, _without_queries(unit)) for unit in units]
    found = [unit for unit in found if unit[1]]
    if not found:
        raise DataError(
            f"{file} has no transactions", help="write one statement per line, as in +edge(1, 2)."
        )
    return found


def _without_queries(unit: Unit) -> list[ast.Node]:
    return [s for s in unit.statements() if not isinstance(s, ast.Query)]


@dataclass
class _Lane:
    measured: Measured
    database: OneDatabase


class _Round:
    """All strategies over fresh databases, once."""

    def __init__(
        self,
        program: Path,
        predicate: str | None,
        facts: Path,
        units: Sequence[_Placed],
        progress: Progress,
    ):
        self.program, self.predicate, self.facts = program, predicate, facts
        self.units, self.progress = units, progress
        self.scratch = Measured(FROM_SCRATCH)
        self.succeeded: list[_Placed] = []
        self.failed: list[str] = []
        self.unstored: list[str] = []

    def run(self, until: float) -> list[Measured]:
        lanes, refused = self._lanes()
        own = lanes[0].database
        scratch_until = time.perf_counter() + SCRATCH_SHARE * (until - time.perf_counter())
        for number, (place, statements) in enumerate(self.units):
            if number and time.perf_counter() > until:
                break
            self.progress(PHASE, f"{len(lanes)} strategies", number, len(self.units))
            if not self._run(lanes, number, statements):
                self.failed.append(place)
                continue
            self.succeeded.append((place, statements))
            if not self.scratch.seconds or time.perf_counter() < scratch_until:
                self.scratch.seconds.append(own.verify())
        if not self.succeeded:
            raise DataError("every transaction fails", help="dlog apply -k says why")
        for lane in lanes:
            lane.measured.memory = lane.database.memory()
            lane.measured.chosen = lane.database.chosen_strategies()
            lane.database.verify()
        _require_same_sizes(lanes)
        found = {lane.measured.name: lane.measured for lane in lanes} | refused
        return [*(found[name] for name in (OWN, *SELECTABLE)), self.scratch]

    def _lanes(self) -> tuple[list[_Lane], dict[str, Measured]]:
        lanes, refused = [], {}
        names = (OWN, *SELECTABLE)
        for number, name in enumerate(names):
            self.progress(PHASE, f"building {name}", number, len(names))
            lane = self._built(name)
            if reason := _refusal(lane):
                refused[name] = Measured(name, refused=reason)
            else:
                lanes.append(lane)
        gc.collect()
        return lanes, refused

    def _built(self, name: str) -> _Lane:
        strategy = None if name == OWN else name
        database = OneDatabase(self.program, self.facts, strategy, self.predicate)
        if name == OWN:
            self.scratch.memory = database.memory()
            self.unstored = database.unstored
        expected = database.expected_memory()
        if name != OWN and expected > MEMORY_SHARE * machine_bytes():
            too_large = f"it is expected to need {size_text(expected)} of memory"
            return _Lane(Measured(name, refused=too_large), database)
        started = time.process_time()
        database.build_states()
        measured = Measured(name, build=time.process_time() - started, operations=0)
        measured.chosen = database.chosen_strategies()
        return _Lane(measured, database)

    def _run(self, lanes: Sequence[_Lane], number: int, statements: Sequence[ast.Node]) -> bool:
        """One transaction under all strategies; False if it fails, which does not depend on them."""
        for done, lane in enumerate(_in_turns(lanes, number)):
            transaction = Transaction(lane.database)
            try:
                transaction.add_statements(statements)
                if self.predicate is not None and transaction.program is not lane.database.program:
                    break
                started = time.process_time()
                commit = lane.database.commit(transaction)
                seconds = time.process_time() - started
            except Interrupted:
                raise
            except DlogError:
                assert not done, "strategies agree about what fails"
                return False
            lane.measured.seconds.append(seconds)
            lane.measured.operations = (lane.measured.operations or 0) + commit.operations
        else:
            return True
        message = "with PREDICATE, transactions change facts only, and this one changes rules"
        raise SourceError(message, span=statements[0].span, help="leave out PREDICATE to compare all rules")


def _require_same_sizes(lanes: Sequence[_Lane]) -> None:
    """Each database agrees with evaluation from scratch over its own facts: so they must have the same."""
    databases = [lane.database for lane in lanes]
    sizes = [{name: len(db.relation(name)) for name in db.predicates()} for db in databases]
    for lane, found in zip(lanes, sizes, strict=True):
        if found != sizes[0]:
            raise VerifyError(f"{lane.measured.name} has other rows than {lanes[0].measured.name}")


def _in_turns(lanes: Sequence[_Lane], number: int) -> Iterator[_Lane]:
    """Another one first each time: the first one finds the caches filled with other things."""
    first = number % len(lanes)
    yield from lanes[first:]
    yield from lanes[:first]


def _refusal(lane: _Lane) -> str:
    """Why a strategy maintains nothing here, if so; or is too large."""
    if lane.measured.refused:
        return lane.measured.refused
    name, chosen = lane.measured.name, lane.measured.chosen
    plain = [c for c in chosen if not c.recursive]
    if name == OWN or any(c.strategy == name for c in plain):
        return ""
    reasons = dict.fromkeys(c.refusal for c in plain if c.refusal)
    return "; ".join(reasons) or "all rules are recursive"
