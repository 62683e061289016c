"""Owns `dlog apply`: a file of transactions, run one after the other, and the report of each.

Standard output has what can be compared (changes, answers of queries), standard error what cannot (times) and
errors.  A transaction that fails is rolled back and ends the run, unless `keep_going` is set.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dlog.engine.commit.commits import Commit
from dlog.engine.commit.printed_facts import change_lines, in_order, is_derived
from dlog.engine.commit.result import Result
from dlog.engine.database import Database
from dlog.engine.transaction import Transaction
from dlog.errors import DlogError, SourceError, VerifyError
from dlog.ir.goals.materialize import modes
from dlog.language import ast
from dlog.language.source import read_source
from dlog.language.typed import Piece, pieces
from dlog.repl.commit_text import changes_text
from dlog.report import cost_text, milliseconds, oracle_lines, print_rows


@dataclass
class Options:
    """The options besides running the transactions."""

    changes: bool = False
    stats: bool = False
    verify: bool = False
    keep_going: bool = False


@dataclass
class Tally:
    """What happened so far."""

    committed: int = 0
    failed: int = 0
    rolled_back: int = 0
    base: list[int] = field(default_factory=lambda: [0, 0])  # rows inserted, rows erased
    derived: list[int] = field(default_factory=lambda: [0, 0])
    seconds: float = 0.0

    def count(self, database: Database, commit: Commit) -> None:
        self.committed += 1
        self.seconds += commit.seconds
        for name, change in commit.changes.items():
            rows = self.derived if is_derived(database.program, name) else self.base
            rows[0] += len(change.inserted)
            rows[1] += len(change.erased)

    def __str__(self) -> str:
        counts = [f"{self.committed:,} transaction{'' if self.committed == 1 else 's'} committed"]
        counts += [f"{self.rolled_back:,} rolled back"] if self.rolled_back else []
        counts += [f"{self.failed:,} failed"] if self.failed else []
        base, derived = (f"+{rows[0]:,} -{rows[1]:,}" for rows in (self.base, self.derived))
        return f"{', '.join(counts)}: {base} base rows, {derived} derived rows ({milliseconds(self.seconds)})"


def apply_file(database: Database, path: Path, options: Options) -> Tally:
    """Runs every transaction of a file.  Errors are printed; the tally says whether there were any."""
    tally = Tally()
    if options.changes:
        for name in modes(database.program):  # without a subscriber their changes may not be computed
            database.subscribe(name, lambda change: None)
    for transaction in transactions_of(path):
        if transaction.rolls_back:
            tally.rolled_back += 1
            continue
        try:
            _run(database, transaction, options, tally)
        except VerifyError as error:
            raise VerifyError(f"after the transaction at {transaction.place}: {error.message}") from None
        except DlogError as error:
            tally.failed += 1
            _report(error, transaction)
            if not options.keep_going:
                break
    return tally


@dataclass
class Unit:
    """The pieces of one transaction: a statement, or all between `begin` and `commit`."""

    parts: list[Piece]
    rolls_back: bool = False

    @property
    def place(self) -> str:
        return f"{self.parts[0].name}:{self.parts[0].line}"

    def statements(self) -> list[ast.Node]:
        return [s for piece in self.parts if piece.kind == "statements" for s in piece.parse()]


def transactions_of(path: Path) -> Iterator[Unit]:
    """The transactions of a file, those that roll back themselves included."""
    source = read_source(path)
    block: Unit | None = None
    for piece in pieces(source.text.splitlines(), source.name):
        if piece.kind == "command":
            raise SourceError("a file of transactions has no commands", span=piece.span())
        if piece.kind == "statements":
            if block is None:
                yield Unit([piece])
            else:
                block.parts.append(piece)
        elif (piece.text == "begin") == (block is not None):
            what = "inside a transaction" if block else "without begin"
            raise SourceError(f"{piece.text} {what}", span=piece.span())
        elif piece.text == "begin":
            block = Unit([piece])
        else:
            assert block is not None
            block.rolls_back = piece.text == "rollback"
            yield block
            block = None
    if block is not None:
        raise SourceError("this transaction is never committed", span=block.parts[0].span())


def _run(database: Database, unit: Unit, options: Options, tally: Tally) -> None:
    statements = unit.statements()
    if statements and all(isinstance(s, ast.Query) for s in statements):
        _answer(database, statements)
        return
    transaction, earlier = Transaction(database), database.tree
    transaction.add_statements(statements)
    commit = database.commit(transaction)
    tally.count(database, commit)
    if options.changes:
        print(f"// {commit.version}: {unit.place}")
        for name in in_order(database.program, commit.changes):
            if is_derived(database.program, name) or name in transaction.by_rules:
                lines = change_lines(database.program.predicates[name], commit.changes[name])
                print("\n".join(lines))
    _print_answers(commit.answers)
    if options.stats:
        sys.stdout.flush()
        changes = changes_text(commit, database, earlier)
        print(f"{commit.version}: {changes}; {cost_text(commit, database)}", file=sys.stderr)
        for line in oracle_lines(commit, database):
            print(f"  {line}", file=sys.stderr)
    if options.verify:
        database.verify()


def _answer(database: Database, queries: Sequence[ast.Node]) -> None:
    """Queries alone are not a transaction."""
    _print_answers([(q.span.text(), database.answer(q)) for q in queries if isinstance(q, ast.Query)])


def _print_answers(answers: Sequence[tuple[str, Result]]) -> None:
    for text, result in answers:
        print(text)
        print_rows(result)


def _report(error: DlogError, unit: Unit) -> None:
    sys.stdout.flush()
    if error.span is None or error.span.file != unit.parts[0].name:
        print(f"{unit.place}: error: the transaction is rolled back", file=sys.stderr)
    print(error.render(), file=sys.stderr, flush=True)
