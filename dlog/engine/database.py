"""Owns the database: the ways to change a program's data from Python, and to be told of changes.

A transaction changes base facts; derived predicates follow when it commits.  A failure of any kind leaves
everything as it was.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from dlog.engine.evaluate import Evaluation
from dlog.engine.evaluated import Evaluated, view_of
from dlog.engine.facts import change_facts
from dlog.engine.few_rows import combined, follow_rows
from dlog.engine.limits import Watch
from dlog.engine.looked import Asked, nowhere
from dlog.engine.maintain import Maintenance, change_program, check_tables, maintain
from dlog.engine.measure import Measures
from dlog.engine.result import Result
from dlog.engine.strategy import FROM_SCRATCH, Cycle
from dlog.engine.subscribers import Subscribers, Subscription
from dlog.engine.transaction import (
    Change,
    Changes,
    Commit,
    Transaction,
    added_costs,
    shown_costs,
    shown_ways,
)
from dlog.engine.view import View, interruptible
from dlog.errors import (
    DataError,
    DlogError,
    DlogErrors,
    Interrupted,
    StoreError,
)
from dlog.interrupts import begin, end, poll, uninterrupted
from dlog.language import ast
from dlog.language.parse import expand_includes, parse
from dlog.storage.batch import Change as Difference

VERIFY = os.environ.get("DLOG_VERIFY", "0") not in ("", "0")  # check everything after each transaction
NOT_MEASURED = Measures()

Differences = Mapping[str, Difference] | Callable[[], Mapping[str, Difference]]  # or a way to find them


class Database(Evaluated):
    """A program with its data.

    >>> rules = "reach(x, y) <- edge(x, y).  reach(x, z) <- reach(x, y), edge(y, z)."
    >>> db = Database(source=rules + " edge(1, 2).")
    >>> with db.transaction() as tx:
    ...     tx.insert("edge", [(2, 3)])
    >>> db["reach"].rows()
    [(1, 2), (1, 3), (2, 3)]
    >>> db.query("?- reach(1, y).").rows()
    [(2,), (3,)]
    """

    # Of the last transaction: what it told, and the strata that went the short way.
    _costs: Mapping[str, int]
    _ways: Mapping[str, str]
    _looked: Asked
    _short: Collection[int]

    @cached_property
    def _subscribers(self) -> Subscribers:
        return Subscribers()

    # What a database that survives does besides: see `dlog.durable`

    def _next_version(self) -> int:
        return self.version + 1

    def _keep(self, transaction: Transaction, changes: Changes) -> None:
        """The last thing before others see a commit.  When it raises, the commit does not take place."""

    def _acknowledge(self) -> None:
        """After a commit, outside of the lock, before anyone is told."""

    # Changing

    def transaction(self, batch_id: str | None = None) -> Transaction:
        """For a `with` block: commits at its end; an error in it, or in what follows from it, changes
        nothing.

        After the block `commit_info` of the transaction tells what changed; it is None after a rollback.
        A `batch_id` names what is delivered: the same one is applied once, however often it comes.
        """
        if batch_id is not None and not isinstance(batch_id, str):
            raise TypeError(f"batch_id is a text, and not {batch_id!r}")
        return Transaction(self, batch_id)

    def apply(
        self,
        insert: Mapping[str, Any] | None = None,
        erase: Mapping[str, Any] | None = None,
        upsert: Mapping[str, Any] | None = None,
    ) -> Commit:
        """One transaction: rows to erase, insert and upsert, by predicate."""
        transaction = Transaction(self)
        for change, rows_of in (
            (transaction.erase, erase),
            (transaction.insert, insert),
            (transaction.upsert, upsert),
        ):
            for name, rows in (rows_of or {}).items():
                change(name, rows)
        return self.commit(transaction)

    def execute(self, text: str, name: str = "<string>") -> Commit | Result:
        """Statements of the language, as one transaction; a text that is one query gives its answer.

        Facts and `+ - ^` change base facts; rules, declarations and constraints join the program.  Answers of
        queries among other statements are in the commit, over the state after it.
        """
        transaction = Transaction(self)
        if transaction.take_changes(text):
            return self.commit(transaction)
        return self.execute_statements(expand_includes(parse(text, name)).statements)

    def execute_statements(self, statements: Sequence[ast.Node]) -> Commit | Result:
        """As `execute`, already parsed."""
        if len(statements) == 1 and isinstance(statements[0], ast.Query):
            return self.answer(statements[0])
        transaction = Transaction(self)
        transaction.add_statements(statements)
        return self.commit(transaction)

    def add_rules(self, text: str) -> Commit:
        """Rules, declarations and constraints that hold from now on."""
        with self.transaction() as transaction:
            transaction.execute(text)
        assert transaction.commit_info is not None
        return transaction.commit_info

    def remove_rule(self, text: str) -> Commit:
        """Takes a rule or constraint away: the one that says the same as the text."""
        with self.transaction() as transaction:
            transaction.remove_rule(text)
        assert transaction.commit_info is not None
        return transaction.commit_info

    def subscribe(self, predicate: str, callback: Callable[[Change], None]) -> Subscription:
        """Calls back after every commit that changes a predicate.  `close()` of what is returned ends it.

        A callback may read the database and start transactions.  When one raises, the commit stands, the
        others are still told, and whoever committed gets a SubscriberError.
        """
        self.require(predicate)
        return self._subscribers.add(predicate, callback)

    @uninterrupted
    def snapshot(self) -> View:
        """The state after the last commit, to read in any thread while transactions go on; waits for none.

        A snapshot itself is for one thread at a time.
        """
        return view_of(self._shown, self)

    def commit(self, transaction: Transaction) -> Commit:
        """All that a transaction collected, or an error and nothing of it.  Of several threads one commits at
        a time."""
        with self._lock:
            shown = self._shown
            outermost = begin()
            try:
                commit = self._commit(transaction)
            except BaseException as error:
                if self._shown is shown:
                    self._go_back(error)
                    if isinstance(error, KeyboardInterrupt):
                        raise Interrupted("interrupted while changing facts") from None
                raise
            finally:
                if outermost:
                    end()
        self._acknowledge()
        if self._subscribers.subscriptions:
            self._subscribers.tell()
        return commit

    def _go_back(self, error: BaseException) -> None:
        """The state as snapshots have it.  An interrupt may come in the middle of anything that strategies
        remember outside of the state: they are made anew."""
        store = self.store
        self.tree, self.program, store.relations, store.predicates, self.version, self.pending = self._shown
        if isinstance(error, Interrupted | StoreError) or not isinstance(error, DlogError):
            self._maintenance = Maintenance.of(self.program, self._maintenance.wanted)

    def _commit(self, transaction: Transaction) -> Commit:
        started = time.perf_counter()
        if self.pending:
            self.complete()
        differences: Differences | None = self._commit_rows(transaction)
        if differences is None:
            differences = self._replace_state(transaction)
        self.version = self._next_version()
        poll()  # the last moment to take it back
        changes = Changes(differences, self.program.predicates, self.store.dictionary)
        self._keep(transaction, changes)
        self._show()
        seconds = time.perf_counter() - started
        for number in self._short:
            strategy = self._maintenance.strategies[number]
            self._maintenance.note(number, FROM_SCRATCH if strategy is None else strategy.way, seconds)
        queries = transaction.queries
        answers = [(q.span.text(), self.answer(q)) for q in queries] if queries else ()
        ways = shown_ways(self._ways, self.program)
        costs = shown_costs(self._costs, self.program)
        commit = Commit(
            self.version, changes, seconds, sum(costs.values()), answers, ways, costs, self._looked
        )
        transaction.commit_info = commit
        if VERIFY:
            self.check()
            self.verify()
        if self._subscribers.subscriptions:
            self._subscribers.note(changes)
        return commit

    def _commit_rows(self, transaction: Transaction) -> Differences | None:
        """The short way for a few rows; None when the transaction has to go the long way."""
        self._short, self._ways, self._costs, self._looked = (), {}, {}, nowhere
        rows = transaction.few_rows()
        if rows is None or not self.limits.none:
            return None
        measures = self.measures
        steps = follow_rows(self._maintenance, self.store, rows, self._short_evaluation)
        if steps is None:
            return None
        if self.measures is measures:
            self.measures = NOT_MEASURED
        first = steps[0]
        self._short, self._ways, self._costs = first.trigger.strata, first.ways, first.costs
        self._looked = first.looked
        for step in steps[1:]:
            if not step.ways:
                continue
            self._short = self._short | step.trigger.strata
            self._ways = {**self._ways, **step.ways}
            self._costs = added_costs(self._costs, step.costs)
        if len(steps) > 1:
            self._looked = lambda: [looked for step in steps for looked in step.looked()]
        return lambda: combined(steps)

    def _short_evaluation(self) -> Evaluation:
        return self._evaluation(self.program, Watch(self.limits))

    def _replace_state(self, transaction: Transaction) -> Mapping[str, Difference]:
        """Brings the state after a transaction; when that fails, the state is as it was.

        Everything happens in a dict of relations of its own, which takes the place of the old one at the end.
        Returns the net change of every predicate.
        """
        store, before = self.store, self.program
        tree, program = transaction.program_after()
        saved = (self.measures, self._maintenance, store.relations, store.predicates)
        tables = self._maintenance.tables  # those before: facts that come with `.table` are its first ones
        watch = Watch(self.limits)
        try:
            with interruptible(watch):
                watch.doing = "changing facts"
                store.relations = store.relations.copy()
                cycle = Cycle(program, store, self._evaluation(program, watch))
                renewed: set[int] = set()
                if program is not before:
                    store.predicates = dict(program.predicates)
                    self._maintenance, renewed = self._maintenance.renewed(program, store)
                    change_program(cycle, before)
                change_facts(cycle, transaction.changes, self._maintenance.owner)
                check_tables(tables, cycle)
                maintain(self._maintenance, cycle, renewed)
                check_tables(tables, cycle)
                cycle.close()
                self._ways, self._costs = cycle.ways, cycle.costs
                told = cycle.looked
                self._looked = lambda: told
                self.tree, self.program = tree, program
        except BaseException:
            self.measures, self._maintenance, store.relations, store.predicates = saved
            raise
        return cycle.changes


def plan_only(path: str | Path, facts: str | Path, strategy: str | None = None) -> Database:
    """A database with its base facts loaded, where they are to be had, and no rule run."""
    try:
        return Database(path, facts=facts, evaluated=False, strategy=strategy)
    except DlogError as error:
        errors = error if isinstance(error, DlogErrors) else (error,)
        if not all(isinstance(e, DataError) for e in errors):
            raise
        return Database(path, facts=facts, evaluated=False, load=False, strategy=strategy)
