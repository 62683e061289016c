"""Owns the database: changing a program's data from Python, and subscribing to changes.

A transaction changes base facts; derived predicates are maintained when it commits.  A failure of any kind
changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from dlog.engine.blocks import blocks_of
from dlog.engine.commit.commits import Change, Commit, CommitSummary, RecordedSummary
from dlog.engine.commit.result import Result
from dlog.engine.commit.subscribers import Subscribers, Subscription
from dlog.engine.evaluate.evaluate import Evaluation
from dlog.engine.evaluated import Evaluated, view_of
from dlog.engine.events import all_changes, concerns
from dlog.engine.maintain import accounts
from dlog.engine.maintain.build import build_states, expected_memory, memory, without_states
from dlog.engine.maintain.facts import change_facts
from dlog.engine.maintain.idle import attend, begin_new, stored_again, without_rows_of_changes
from dlog.engine.maintain.maintain import Maintenance, maintain
from dlog.engine.maintain.program_changes import change_program, check_facts_of_unstored, check_tables
from dlog.engine.maintain.strategy import Cycle, Strategy
from dlog.engine.maintain.triggers.small_transaction import follow_rows
from dlog.engine.maintain.triggers.trigger_search import let_go
from dlog.engine.state.limits import Watch
from dlog.engine.state.measure import Measures
from dlog.engine.transaction import Transaction
from dlog.engine.view import View, interruptible
from dlog.errors import (
    DataError,
    DlogError,
    DlogErrors,
    Interrupted,
    StoreError,
)
from dlog.garbage import seldom_collected
from dlog.interrupts import begin, end, poll, uninterrupted
from dlog.ir.check import events_with
from dlog.ir.events import Events
from dlog.language import ast
from dlog.language.parse import expand_includes, parse
from dlog.planning.options import Options
from dlog.planning.stored_primitives import with_stored_primitives
from dlog.storage.dictionary.records.uses import in_use
from dlog.storage.relation.relation import Relation

VERIFY = os.environ.get("DLOG_VERIFY", "0") not in ("", "0")  # check everything after each transaction
NOT_MEASURED = Measures()


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

    unread: DlogError | None = None  # why there are no facts: see `plan_only`

    @cached_property
    def _subscribers(self) -> Subscribers:
        return Subscribers()

    # Hooks for a durable database: see `dlog.durable`

    def _next_version(self) -> int:
        return self.version + 1

    def _done_before(self, transaction: Transaction) -> Commit | None:
        """A commit without changes if the transaction was applied before.  Raises if none can be applied."""
        return None

    def _keep(self, transaction: Transaction, commit: Commit) -> None:
        """The last step before others see a commit.  If it raises, the commit does not take place."""

    def _acknowledge(self) -> None:
        """After a commit, outside the lock, before subscribers are called."""

    # Changing

    def transaction(self, batch_id: str | None = None) -> Transaction:
        """For a `with` block: commits at its end; an error in it, or in what follows from it, changes
        nothing.

        After the block `commit_info` of the transaction has the changes; it is None after a rollback.
        A `batch_id` identifies a delivery: the same one is applied once, however often it comes.
        """
        if batch_id is not None and not isinstance(batch_id, str):
            raise TypeError(f"batch_id must be a string, not {batch_id!r}")
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
        """Rules, declarations and constraints that hold from now on; delta rules, too."""
        with self.transaction() as transaction:
            transaction.add_rules(text)
        assert transaction.commit_info is not None
        return transaction.commit_info

    def remove_rule(self, text: str) -> Commit:
        """Removes a rule or constraint: the one that is equal to the text."""
        with self.transaction() as transaction:
            transaction.remove_rule(text)
        assert transaction.commit_info is not None
        return transaction.commit_info

    def add_block(self, name: str, text: str) -> Commit:
        """Adds rules, constraints, declarations, delta rules and facts as a block, to be removed together.

        >>> db = Database(source="edge(1, 2).")
        >>> db.add_block("paths", "path(x, y) <- edge(x, y).").changes["path"].inserted.rows()
        [(1, 2)]
        >>> db.blocks()
        {'paths': 'path(x, y) <- edge(x, y).'}
        >>> db.remove_block("paths").version, db.blocks()
        (2, {})
        """
        with self.transaction() as transaction:
            transaction.add_block(name, text)
        assert transaction.commit_info is not None
        return transaction.commit_info

    def remove_block(self, name: str) -> Commit:
        """Removes a block with all its statements."""
        with self.transaction() as transaction:
            transaction.remove_block(name)
        assert transaction.commit_info is not None
        return transaction.commit_info

    def blocks(self) -> dict[str, str]:
        """The text of each block by name."""
        return blocks_of(self.tree)

    @uninterrupted
    def subscribe(self, predicate: str, callback: Callable[[Change], None]) -> Subscription:
        """Calls back after every commit that changes a predicate.  `close()` of what is returned ends it.

        A callback may read the database and start transactions.  If one raises, the commit remains valid, the
        others are still called, and the committer gets a SubscriberError.  A predicate whose rows are not
        stored is evaluated as far as its changes need; if that fails, nobody has subscribed.
        """
        self.require(predicate)
        if self.program.predicates[predicate].is_equivalence:
            message = f"{predicate} is an equivalence relation, whose changes are not computed"
            raise DataError(message, help="subscribe to a predicate with a rule that reads it")
        subscription = self._subscribers.add(predicate, callback)
        if self._maintenance.modes and not self.pending:
            self._begin_subscription(subscription)
        return subscription

    def _begin_subscription(self, subscription: Subscription) -> None:
        """Now, and not in the next transaction, which may be the one that repairs what cannot be computed."""
        try:
            with self._lock:
                self._attend()
        except BaseException:
            subscription.close()
            raise

    @uninterrupted
    def snapshot(self) -> View:
        """The state after the last commit, to read in any thread while transactions continue; waits for none.

        A snapshot itself is for one thread at a time.
        """
        with in_use():  # until the snapshot is a holder of its records
            return view_of(self._shown, self)

    def commit(self, transaction: Transaction) -> Commit:
        """All that a transaction collected, or an error and nothing of it.  Of several threads one commits at
        a time."""
        with self._lock:
            outermost, asked_for = begin(), transaction.changes
            try:
                if self.pending:
                    self.complete()
                if self._maintenance.modes:
                    self._maintenance.transactions += 1
                    self._attend()
                commit = self._done_before(transaction) or self._commit_with_events(transaction)
            except BaseException:
                transaction.changes = asked_for
                raise
            finally:
                if outermost:
                    end()
        self._acknowledge()
        if self._subscribers.subscriptions:
            self._subscribers.tell()
        if self.store.dictionary.records.may_be_garbage:
            self.collect()
        return commit

    def _commit_with_events(self, transaction: Transaction) -> Commit:
        started = accounts.clock()
        if transaction.once or transaction.program.events or transaction.program.pulses:
            transaction.changes = self._with_events(transaction)
        return self._commit_or_go_back(transaction, started)

    def _commit_or_go_back(self, transaction: Transaction, started: float) -> Commit:
        before = self._shown, self.measures, self._maintenance, self._maintenance.strategies
        try:
            return self._commit(transaction, started)
        except BaseException as error:
            if self._shown is before[0]:
                self._go_back(error, *before)
                if isinstance(error, KeyboardInterrupt):
                    raise Interrupted("interrupted while changing facts") from None
            raise

    def _attend(self) -> None:
        """What is stored follows who reads and who subscribes."""
        maintenance, wanted = self._maintenance, self._changes_wanted()
        if maintenance.transactions >= maintenance.due or maintenance.subscribed != wanted:
            self._go_on_with(partial(attend, maintenance, self.program, self.store, wanted))

    def _changes_wanted(self) -> frozenset[str]:
        """The predicates that have subscribers."""
        return self._subscribers.predicates

    @uninterrupted
    def collect(self) -> int:
        """Forget the records that nothing uses: no version, snapshot, result or commit that still exists.

        Returns how many.  Happens by itself when there are many; does nothing while another thread evaluates
        something.
        """
        with self._lock:
            records = self.store.dictionary.records
            before = len(records)
            records.collect(self._pinned_records())
            return before - len(records)

    def _pinned_records(self) -> int:
        """Records with smaller numbers are in files."""
        return 0

    @uninterrupted
    def build_states(self) -> None:
        """Builds the state of all strategies now, not in the first transaction that touches each rule."""
        with self._lock:
            self.complete()
            if self._maintenance.modes:
                self._attend()
            store, before = self.store, self.store.relations
            watch = Watch(self.limits)
            try:
                with interruptible(watch):
                    watch.doing = "building the state of strategies"
                    store.relations = before.copy()
                    program = with_stored_primitives(self.program)
                    cycle = Cycle(program, store, self._evaluation(self.program, watch))
                    build_states(self._maintenance, cycle)
                    cycle.close()
            except BaseException:
                store.relations = before
                store.predicates = dict(self.program.predicates)
                self._choose_anew()
                raise
            self._show()

    def expected_memory(self) -> float:
        """Bytes of the state of strategies beyond what exists, estimated."""
        with self._lock:
            return expected_memory(self._maintenance, self.store)

    def memory(self) -> int:
        """Bytes of all rows in all column orders, and of the state of strategies; no texts."""
        with self._lock:
            return memory(self._maintenance, self.store)

    def _go_back(
        self,
        error: BaseException,
        shown: Any,
        measures: Measures,
        maintenance: Maintenance,
        strategies: dict[int, Strategy],
    ) -> None:
        """The state as snapshots have it.  An interrupt may come in the middle of anything that strategies
        store outside the state: they are rebuilt."""
        store = self.store
        self.tree, self.program, store.relations, store.predicates, self.version, self.pending = shown
        self.measures, self._maintenance = measures, maintenance
        maintenance.go_back(strategies)
        if isinstance(error, Interrupted | StoreError) or not isinstance(error, DlogError):
            self._choose_anew()

    def _choose_anew(self) -> None:
        """Strategies are chosen again, and build their state again.  O(program)."""
        self._maintenance = Maintenance.of(self.program, self._maintenance.by_caller)
        self.store.relations = without_states(self._maintenance, self.store.relations)
        self._show()

    def _with_events(self, transaction: Transaction) -> list[Any]:
        """The changes of a transaction with those of delta rules, without those of pulse predicates.  Reads
        the state only, which may store predicates of mode on_read from now on."""
        program, changes = transaction.program, transaction.changes
        events = None if transaction.merged is not None else events_with(program, transaction.once)
        if events is not None and concerns(events, changes):
            watch = Watch(self.limits)
            with interruptible(watch):
                watch.doing = "running delta rules"
                changes = self._happened(events, transaction, Evaluation(watch))
            transaction.by_rules = events.changed
        return [change for change in changes if change[1] not in program.pulses]

    def _happened(self, events: Events, transaction: Transaction, evaluation: Evaluation) -> list[Any]:
        store = self.store
        if transaction.program.has_records:
            store.dictionary.records.holders.add(transaction)
        known, arities = self.program.predicates, transaction.program.predicates

        def empty(name: str) -> Relation:
            return Relation(store.arena, arities[name].arity)

        read = [name for name in events.program.predicates if name in arities]
        before = {name: self.relation(name) if name in known else empty(name) for name in read}
        bases = {name: self.base_relation(name) or empty(name) for name in events.named}
        return all_changes(events, transaction.changes, before, bases, store, evaluation)

    def _commit(self, transaction: Transaction, started: float) -> Commit:
        if self._maintenance.measured.due:
            self._maintenance.examine_costs(self.store)
        clock = self._maintenance.measured.clock
        begun = clock()
        summary = self._commit_rows(transaction)
        if summary is None:
            summary = self._replace_state(transaction)
        maintained = clock() - begun
        self.version = self._next_version()
        poll()  # the last moment to undo it
        commit = Commit(self.version, summary, self.program, self.store.dictionary)
        self._keep(transaction, commit)
        self._show()
        commit.seconds = seconds = accounts.clock() - started
        summary.note(seconds, maintained)
        if transaction.queries:
            commit.answers = [(query.span.text(), self.answer(query)) for query in transaction.queries]
        transaction.commit_info = commit
        if VERIFY:
            self.check()
            self.verify()
        if self._subscribers.subscriptions:
            self._subscribers.note(commit.changes)
        return commit

    def _commit_rows(self, transaction: Transaction) -> CommitSummary | None:
        """The short path for a few rows; None if the transaction needs the general path."""
        if self._maintenance.lacks_primitives(self.store):
            return None
        rows = transaction.few_rows() if self.limits.none else None
        if rows is None:
            return None
        measures = self.measures
        summary = follow_rows(self._maintenance, self.store, rows, self._short_evaluation)
        if summary is not None and self.measures is measures:
            self.measures = NOT_MEASURED
        return summary

    def _short_evaluation(self) -> Evaluation:
        return self._evaluation(self.program, Watch(self.limits))

    @seldom_collected
    def _replace_state(self, transaction: Transaction) -> CommitSummary:
        """Makes the state after a transaction; if that fails, the caller undoes everything.

        Everything happens in a separate dict of relations, which replaces the old one at the end.
        """
        store, before = self.store, self.program
        let_go(self._maintenance)
        tree, program = transaction.program_after()
        tables = self._maintenance.tables  # those before: facts that come with `.table` are its first ones
        watch = Watch(self.limits)
        with interruptible(watch):
            watch.doing = "changing facts"
            store.relations = store.relations.copy()
            options = Options.of(program.pragmas)
            self._bind(store, program)
            evaluation = self._evaluation(program, watch)
            if self._maintenance.lacks_primitives(store):
                self._maintenance.store_primitives(store, evaluation)
            cycle = Cycle(with_stored_primitives(program), store, evaluation)
            renewed: set[int] = set()
            if program is not before:
                if not self._maintenance.modes:  # subscriptions were not checked before the transaction
                    self._maintenance.subscribed = self._changes_wanted()
                later, renewed = self._maintenance.renewed(program, store)
                store.relations = stored_again(later, renewed, before, store, evaluation)
                store.predicates = dict(cycle.program.predicates)
                self._maintenance = later
                change_program(cycle, with_stored_primitives(before))
                begin_new(later, renewed, before, store)
            change_facts(cycle, transaction.changes, self._maintenance.owner)
            check_tables(tables, cycle)
            check_facts_of_unstored(cycle)
            maintain(self._maintenance, cycle, renewed)
            check_tables(tables, cycle)
            cycle.close()
            store.relations = without_rows_of_changes(self._maintenance, store)
            self.tree, self.program, store.options = tree, program, options
        return RecordedSummary(cycle.changes, cycle.ways, cycle.costs, cycle.oracle_reports)


def plan_only(path: str | Path, facts: str | Path, strategy: str | None = None) -> Database:
    """A database with its base facts loaded, and no rule run.  If they cannot be read, `unread` says
    why."""
    try:
        return Database(path, facts=facts, evaluated=False, strategy=strategy)
    except DlogError as error:
        errors = error if isinstance(error, DlogErrors) else (error,)
        if not all(isinstance(e, DataError) for e in errors):
            raise
        database = Database(path, facts=facts, evaluated=False, load=False, strategy=strategy)
        database.unread = next(iter(errors))
        return database
