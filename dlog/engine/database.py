"""Owns the database: a program, its state, and the ways to change and read it from Python.

A transaction changes base facts; derived predicates follow when it commits.  A failure of any kind leaves
everything as it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dlog.engine.differences import changed_rows, with_changes
from dlog.engine.evaluate import Evaluation, evaluate
from dlog.engine.limits import Limits, Watch
from dlog.engine.loading import apply_deltas, load_facts, load_inputs
from dlog.engine.measure import Measures
from dlog.engine.result import Result
from dlog.engine.statements import settled
from dlog.engine.store import Store
from dlog.engine.transaction import Change, Commit, Rollback, Subscription, Transaction
from dlog.engine.view import View, interruptible
from dlog.errors import DataError, DlogError, UnsupportedError, VerifyError, did_you_mean
from dlog.ir.check import check_program
from dlog.language import ast
from dlog.language.parse import expand_includes, load_file, parse
from dlog.storage.relation import Relation

Progress = Callable[[str, str, int, int], None]  # phase, what, done, total


class Database(View):
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

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        source: str | None = None,
        facts: str | Path = ".",
        limits: Limits | None = None,
        progress: Progress | None = None,
        warn: Callable[[str], None] | None = None,
        jobs: int = 1,
        evaluated: bool = True,
        load: bool = True,
        strategy: str | None = None,
    ):
        """From a program file or a text.  `facts` is the folder of its `.input` files.
        `jobs` cores are used where they help.

        `warn` is told at once of rows that are not taken and of joins that look too large; `warnings` keeps
        what it was told.  Without `evaluated` only the base facts are there, for `explain`.
        `strategy` forces one way of maintenance on all rules; it never changes an answer.
        """
        require_strategy(strategy)
        self.measures = Measures()
        self.facts_folder = facts
        self.warnings: list[str] = []
        self._tell = warn
        self._jobs = jobs
        self._progress = progress or (lambda phase, what, done, total: None)
        self._subscriptions: list[Subscription] = []
        tree = load_file(path) if path is not None else expand_includes(parse(source or ""))
        program = check_program(tree)
        super().__init__(settled(tree, program), program, Store(program.predicates), limits or Limits(), 0)
        watch = Watch(self.limits)
        load_facts(self.program, self.store)
        with interruptible(watch):
            watch.doing = "loading facts"
            if load:
                self._load_inputs(facts)
            apply_deltas(self.program.deltas, self.store)
            self._base = self.store.relations
            self.store.relations = self._start()
            if evaluated:
                self._evaluate(watch)

    def _load_inputs(self, facts: str | Path) -> None:
        load_inputs(
            self.program,
            self.store,
            facts,
            self.warn,
            lambda what, done, total: self._progress("load", what, done, total),
        )

    def _evaluate(self, watch: Watch) -> None:
        self.measures = Measures(on_warning=self.warn)
        limits = {
            d.predicate: int(p.value)
            for d in self.program.directives
            if d.kind == "limitsize"
            for p in d.params
            if p.name == "n"
        }
        evaluation = Evaluation(
            watch,
            self.measures,
            lambda what, done, total: self._progress("evaluate", what, done, total),
            limits,
            self._jobs,
        )
        evaluate(self.program, self.store, evaluation)

    def warn(self, text: str) -> None:
        """Keeps a warning and tells it."""
        self.warnings.append(text)
        if self._tell is not None:
            self._tell(text)

    # Changing

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Commits at the end of the block; an error in it, or in what follows from it, changes nothing.

        After the block `commit_info` of the transaction tells what changed; it is None after a rollback.
        """
        transaction = Transaction(self)
        try:
            yield transaction
        except Rollback:
            return
        self.commit(transaction)

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
        """Calls back after every commit that changes a predicate.  `close()` of what is returned ends it."""
        self.require(predicate)
        subscription = Subscription(predicate, callback, self._subscriptions.remove)
        self._subscriptions.append(subscription)
        return subscription

    def snapshot(self) -> View:
        """The state as it is now, to read while transactions go on."""
        return View(self.tree, self.program, self.store.snapshot(), self.limits, self.version)

    def commit(self, transaction: Transaction) -> Commit:
        """All that a transaction collected, or an error and nothing of it."""
        started = time.perf_counter()
        before = self.store.relations
        self._replace_state(transaction)
        self.version += 1
        changes = self._changes(before)
        commit = Commit(
            self.version,
            changes,
            time.perf_counter() - started,
            sum(m.seeks + m.nexts for m in self.measures.rules.values()),
            [(q.span.text(), self.answer(q)) for q in transaction.queries],
        )
        transaction.commit_info = commit
        for subscription in list(self._subscriptions):
            if subscription.predicate in changes:
                subscription.callback(changes[subscription.predicate])
        return commit

    def _replace_state(self, transaction: Transaction) -> None:
        """The state after a transaction; when that fails, the state as it was."""
        store = self.store
        tree, program = transaction.program_after()
        saved = (self._base, self.measures, self.tree, self.program, store.relations, store.predicates)
        watch = Watch(self.limits)
        try:
            with interruptible(watch):
                watch.doing = "changing facts"
                self.tree, self.program, store.predicates = (
                    tree,
                    program,
                    dict(program.predicates),
                )
                self._base = self._changed_base(transaction)
                store.relations = self._start()
                self._evaluate(watch)
        except BaseException:
            self._base, self.measures, self.tree, self.program, store.relations, store.predicates = saved
            raise

    def _changed_base(self, transaction: Transaction) -> dict[str, Relation]:
        base = {
            name: self._base[name] if name in self._base else Relation(self.store.arena, p.arity)
            for name, p in self.program.predicates.items()
        }
        for op, name, codes in transaction.changes:
            base[name] = with_changes(base[name], op, codes, self.program.predicates[name].n_keys)
        return base

    def _changes(self, before: Mapping[str, Relation]) -> dict[str, Change]:
        """The net change of every predicate that a user knows."""
        changes = {}
        for name in self.predicates():
            inserted, erased = changed_rows(before.get(name), self.store.relations[name])
            if len(inserted) or len(erased):
                columns = self.program.predicates[name].columns
                changes[name] = Change(
                    name,
                    Result(name, columns, inserted, self.store.dictionary),
                    Result(name, columns, erased, self.store.dictionary),
                )
        return changes

    def base(self, predicate: str) -> Result:
        """The base facts of a predicate, without what rules derive."""
        self.require(predicate)
        return self._result(predicate, self.program.predicates[predicate].columns, self._base[predicate])

    def verify(self) -> None:
        """Evaluates everything from scratch; raises VerifyError with the rows that differ, if any do."""
        store, measures = self.store, self.measures
        kept = store.relations
        watch = Watch(self.limits)
        try:
            store.relations = self._start()
            with interruptible(watch):
                self._evaluate(watch)
            differences = self._changes(kept)
        finally:
            store.relations, self.measures = kept, measures
        if differences:
            raise VerifyError(_disagreement(differences))

    def _start(self) -> dict[str, Relation]:
        """Relations to evaluate in.  Those that rules add to are handles of their own on the base facts; all
        others are the base facts themselves, so that column orders made for them stay.
        """
        derived = {name for stratum in self.program.strata for name in stratum.predicates}
        return {name: r.snapshot() if name in derived else r for name, r in self._base.items()}

    # Looking inside

    def explain(self, predicate: str | None = None) -> str:
        """How rules are evaluated, in words.  Never runs a rule."""
        from dlog.engine.explain import explain

        if predicate is not None:
            self.require(predicate)
        return explain(self.program, self.store, predicate)

    def stats(self) -> Measures:
        """What the last evaluation measured, rule by rule."""
        return self.measures

    def check(self) -> None:
        """Assert every invariant of the state.  O(size of the database)."""
        for name, relation in self.store.relations.items():
            assert relation.arity == self.program.predicates[name].arity
            relation.check()


STRATEGIES = ("trace", "delta", "view_tree")
SUPPORTED_STRATEGIES: frozenset[str] = frozenset()


def require_strategy(name: str | None) -> None:
    """Raises for a strategy of maintenance that there is not."""
    if name is not None and name not in STRATEGIES:
        known = f"there are {', '.join(STRATEGIES)}"
        raise DlogError(f"unknown strategy {name}", help=did_you_mean(name, STRATEGIES, known))
    if name is not None and name not in SUPPORTED_STRATEGIES:
        raise UnsupportedError(f"not supported yet: {name}")


def plan_only(path: str | Path, facts: str | Path) -> Database:
    """A database with its base facts loaded, where they are to be had, and no rule run."""
    try:
        return Database(path, facts=facts, evaluated=False)
    except DataError:
        return Database(path, facts=facts, evaluated=False, load=False)


_SHOWN = 10


def _disagreement(differences: Mapping[str, Change]) -> str:
    """What a change would have to be for maintenance to be right, a few rows of it."""
    lines = ["maintenance and evaluation from scratch disagree"]
    for name, change in differences.items():
        for what, result in (("missing", change.inserted), ("should not be there", change.erased)):
            lines += [f"  {name}{row}: {what}" for row in result.rows()[:_SHOWN]]
            if len(result) > _SHOWN:
                lines.append(f"  and {len(result) - _SHOWN:,} more of {name}: {what}")
    return "\n".join(lines)
