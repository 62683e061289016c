"""Owns the execution of typed input: transactions, queries, commands.  Knows nothing of terminals.

A piece with statements is one transaction, unless `begin` opened a longer one.  An error changes nothing: it
is printed and the session continues.  Inside `begin ... commit` it makes the whole transaction fail: what
follows is skipped up to `commit` or `rollback`, so that a script never commits half of a transaction.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TextIO, TypeVar

from dlog.durable.database import FULL, Database, open_database
from dlog.engine.blocks import blocks_of
from dlog.engine.commit.commits import Change, Commit
from dlog.engine.commit.printed_facts import change_lines
from dlog.engine.commit.result import Result
from dlog.engine.commit.subscribers import Subscription
from dlog.engine.state.limits import Limits
from dlog.engine.statements import REMOVABLE
from dlog.engine.transaction import Transaction
from dlog.errors import ConstraintError, DlogError, Interrupted
from dlog.ir.rules import Predicate
from dlog.language import ast
from dlog.language.printing import format_node
from dlog.language.typed import PROMPT, Piece
from dlog.progress import Screen
from dlog.repl.commit_text import changes_text, commit_line
from dlog.report import print_rows

T = TypeVar("T")


class Session:
    """A database and the input typed so far."""

    def __init__(
        self,
        program: Path | None = None,
        facts: Path = Path("."),
        limits: Limits | None = None,
        jobs: int = 1,
        out: TextIO | None = None,
        err: TextIO | None = None,
        folder: Path | None = None,
        durability: str = FULL,
        strategy: str | None = None,
        read_only: bool = False,
    ):
        """`folder` is where the database is stored; without one it lives in memory."""
        self.out, self.err = out or sys.stdout, err or sys.stderr
        self.failures = 0
        self.quits = False
        self.last: Commit | None = None
        self.last_changes = ""  # of it, in words
        self.watched: dict[str, Subscription] = {}
        self._open: Transaction | None = None
        self._failed = False  # whether the open transaction has seen an error
        self._news: list[Change] = []
        self._screen: Screen | None = None
        with self._working():
            self.database: Database = open_database(
                folder,
                program,
                durability,
                facts=facts,
                limits=limits,
                jobs=jobs,
                strategy=strategy,
                read_only=read_only,
                progress=self._progress,
                warn=self._warn,
            )

    # What is typed

    def run(self, piece: Piece) -> None:
        """Executes a piece.  An error is printed and counted, never raised."""
        try:
            if piece.kind == "word":
                self._word(piece.text)
            elif piece.kind == "command":
                self._command(piece)
            else:
                self._statements(piece)
        except DlogError as error:
            if error.span is None and piece.kind != "statements":
                error.span = piece.span()
            self._tell_place(error, piece)
            self._failure(error)
        except KeyboardInterrupt:
            self._failure(Interrupted("interrupted"))
        except BrokenPipeError:
            raise
        except Exception as error:  # the session continues, and its data is not lost
            traceback.print_exc(file=self.err)
            fault = f"this is a bug in dlog: {type(error).__name__}: {error}"
            self._failure(
                DlogError(fault, help="the session continues; please report it with the lines above")
            )
        self.out.flush()

    def close(self) -> None:
        """A transaction that is still open is rolled back."""
        if self._open is not None:
            self._open = None
            self._failure(DlogError("the transaction was not committed: rolled back"))
        try:
            self.database.close()
        except DlogError as error:
            self._failure(error)

    @property
    def state(self) -> str:
        """What the prompt shows: `dlog`, or `tx` in an open transaction, `failed` in one that has errors."""
        return "dlog" if self._open is None else "failed" if self._failed else "tx"

    def say(self, text: str) -> None:
        print(text, file=self.out)

    def _tell_place(self, error: DlogError, piece: Piece) -> None:
        """In a script, the position of a transaction whose error points at a rule or constraint."""
        if isinstance(error, ConstraintError) and piece.name != PROMPT:
            self.out.flush()
            print(f"{piece.name}:{piece.line}: error: the transaction is rolled back", file=self.err)

    def _failure(self, error: DlogError) -> None:
        self.failures += 1
        self._failed = self._open is not None
        print(error.render(), file=self.err, flush=True)

    def _statements(self, piece: Piece) -> None:
        if self._open is None:
            self.execute(piece.parse())
        elif not self._failed:
            statements = piece.parse()
            queries = [s for s in statements if isinstance(s, ast.Query)]
            self._open.add_statements([s for s in statements if not isinstance(s, ast.Query)])
            for query in queries:  # readers see what was committed last
                self.show(self.database.answer(query))

    def execute(self, statements: tuple[ast.Node, ...], to_stay: bool = False) -> None:
        """Statements as one transaction, reported in one line; then the answers of its queries.

        Delta rules run once, unless they are `to_stay`.
        """
        if all(isinstance(s, ast.Query) for s in statements):
            for query in statements:
                assert isinstance(query, ast.Query)
                self.show(self._do(partial(self.database.answer, query)))
            return
        transaction = Transaction(self.database)
        transaction.add_statements(statements, to_stay)
        self._commit(transaction)

    def _word(self, word: str) -> None:
        if word == "begin":
            if self._open is not None:
                raise DlogError("a transaction is already open", help="end it with commit or rollback")
            self._open, self._failed = Transaction(self.database), False
            return
        transaction, failed = self._open, self._failed
        if transaction is None:
            raise DlogError(f"there is no transaction to {word}", help="begin opens one")
        self._open, self._failed = None, False
        if word == "rollback" or failed:
            self.say("rolled back" if word == "rollback" else "rolled back: it has errors")
        else:
            self._commit(transaction)

    def _command(self, piece: Piece) -> None:
        from dlog.repl.commands import run_command

        if not self._failed:
            run_command(self, *piece.command())

    # Output

    def show(self, result: Result) -> None:
        print_rows(result, self.out)

    @property
    def rules(self) -> list[str]:
        """Rules and constraints, as an open transaction would leave them."""
        tree = self.database.tree if self._open is None else self._open.tree
        return [format_node(s) for s in tree.statements if isinstance(s, REMOVABLE)]

    @property
    def blocks(self) -> dict[str, str]:
        """The blocks, as an open transaction would leave them."""
        return blocks_of(self.database.tree if self._open is None else self._open.tree)

    def pending(self, predicate: str = "") -> list[Change]:
        """What the open transaction changes in base facts: of one predicate, or of all it mentions."""
        if self._open is None:
            return []
        names = [predicate] if predicate else dict.fromkeys(name for _, name, _ in self._open.changes)
        return [self._open.pending(name) for name in names]

    def predicate(self, name: str) -> Predicate:
        """A predicate as the open transaction sees it."""
        return (self.database if self._open is None else self._open).program.predicates[name]

    def remove(self, rule: str) -> None:
        """Remove a rule or constraint: a transaction, or a part of the open one."""
        transaction = self._open or Transaction(self.database)
        transaction.remove_rule(rule)
        if self._open is None:
            self._commit(transaction)

    def change_block(self, change: Callable[[Transaction], None]) -> None:
        """Add or remove a block: a transaction, or a part of the open one."""
        transaction = self._open or Transaction(self.database)
        change(transaction)
        if self._open is None:
            self._commit(transaction)

    def watch(self, predicate: str) -> bool:
        """Start or stop showing changes of a predicate; returns whether they are shown now."""
        if predicate in self.watched:
            self.watched.pop(predicate).close()
            return False
        self.watched[predicate] = self.database.subscribe(predicate, self._news.append)
        return True

    def checkout(self, branch: str) -> None:
        """Switch to another branch.  An open transaction belongs to the one it was begun on."""
        if self._open is not None:
            raise DlogError("a transaction is open", help="end it with commit or rollback")
        self._do(partial(self.database.checkout, branch))

    def merge(self, branch: str) -> None:
        """Another branch's changes, as a separate transaction."""
        if self._open is not None:
            raise DlogError("a transaction is open", help="end it with commit or rollback")
        self._tell(partial(self.database.merge, branch))

    def _commit(self, transaction: Transaction) -> None:
        self._tell(partial(self.database.commit, transaction))

    def _tell(self, work: Callable[[], Commit]) -> None:
        earlier = self.database.tree
        self._news.clear()
        self.last = self._do(work)
        self.last_changes = changes_text(self.last, self.database, earlier)
        self.say(commit_line(self.last, self.database, earlier))
        for change in self._news:
            for line in change_lines(self.database.program.predicates[change.predicate], change):
                self.say(line)
        for _, result in self.last.answers:
            self.show(result)

    # While work is in progress

    def _do(self, work: Callable[[], T]) -> T:
        with self._working() as screen:
            screen("evaluate", "what was typed", 0, 1)
            return work()

    def _working(self) -> Screen:
        self._screen = Screen()
        return self._screen

    def _progress(self, phase: str, what: str, done: int, total: int) -> None:
        if self._screen is not None:
            self._screen(phase, what, done, total)

    def _warn(self, text: str) -> None:
        if self._screen is not None:
            self._screen.print(text)
