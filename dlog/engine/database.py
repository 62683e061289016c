"""Owns the database: a program, its state, and the ways to change and read it from Python.

A transaction changes base facts; derived predicates follow when it commits.  A failure of any kind leaves
everything as it was.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from dlog.engine.demand import derived_predicates, described, evaluate_goals, rewriting_for
from dlog.engine.evaluate import Evaluation, evaluate
from dlog.engine.facts import change_facts
from dlog.engine.few_rows import combined, follow_rows
from dlog.engine.layers import Layers, in_layers
from dlog.engine.limits import Limits, Watch
from dlog.engine.loading import apply_deltas, load_facts, load_inputs
from dlog.engine.looked import Asked, nowhere
from dlog.engine.maintain import Maintenance, change_program, check_tables, maintain
from dlog.engine.measure import Measures
from dlog.engine.result import Result
from dlog.engine.statements import settled
from dlog.engine.store import Store
from dlog.engine.strategy import FROM_SCRATCH, Cycle, net_difference
from dlog.engine.transaction import (
    Change,
    Changes,
    Commit,
    Subscribers,
    Subscription,
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
    UnsupportedError,
    VerifyError,
    did_you_mean,
)
from dlog.interrupts import begin, end, poll, uninterrupted
from dlog.ir.check import load_program
from dlog.ir.rules import Program, Stratum
from dlog.language import ast
from dlog.language.parse import expand_includes, parse
from dlog.language.source import Source, read_source, text_source
from dlog.planning.options import Options
from dlog.planning.versions import facts_name, is_change, is_old
from dlog.storage.batch import Change as Difference
from dlog.storage.relation import Relation

VERIFY = os.environ.get("DLOG_VERIFY", "0") not in ("", "0")  # check everything after each transaction
Progress = Callable[[str, str, int, int], None]  # phase, what, done, total

Differences = Mapping[str, Difference] | Callable[[], Mapping[str, Difference]]  # or a way to find them


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

    @uninterrupted
    def __init__(
        self,
        path: str | Path | None = None,
        *,
        source: str | Source | None = None,
        facts: str | Path = ".",
        limits: Limits | None = None,
        progress: Progress | None = None,
        warn: Callable[[str], None] | None = None,
        jobs: int = 1,
        evaluated: bool = True,
        load: bool = True,
        strategy: str | None = None,
        goals_only: bool = False,
        traced: bool = False,
    ):
        """From a program file or a text.  `facts` is the folder of its `.input` files.
        `jobs` cores are used where they help.

        `warn` is told at once of rows that are not taken and of joins that look too large; `warnings` keeps
        what it was told.  Without `evaluated` only the base facts are there at first: rules run when someone
        asks, and only as far as the question needs.  With `goals_only` what the program itself asks for is
        evaluated that way.
        `strategy` forces one way of maintenance on all rules, whatever a transaction changes; without it
        rules are evaluated from scratch where that is expected to be cheaper.  It never changes an answer.
        `traced` keeps every run of every rule in `measures`, for a profile.
        """
        require_strategy(strategy)
        if path is not None and source is not None:
            raise DlogError("a database has one program: give its path or its source, not both")
        self.measures = Measures()
        self.facts_folder = facts
        self.warnings: list[str] = []
        self._tell = warn
        self._jobs = jobs
        self._traced = traced
        self._progress = progress or (lambda phase, what, done, total: None)
        self._subscribers = Subscribers()
        self._lock = threading.RLock()  # of whoever changes the state, or reads it in place
        self._costs: Mapping[str, int] = {}
        self._ways: Mapping[str, str] = {}
        self._looked: Asked = nowhere
        self._short: Collection[int] = ()  # the strata of the last transaction that went the short way
        if path is not None:
            source = read_source(path)
        tree, program = load_program(source if isinstance(source, Source) else text_source(source or ""))
        super().__init__(settled(tree, program), program, Store(program.predicates), limits or Limits(), 0)
        self._maintenance = Maintenance.of(program, strategy)
        self.store.options = Options.of(program.pragmas)
        watch = Watch(self.limits)
        load_facts(self.program, self.store)
        with interruptible(watch):
            watch.doing = "loading facts"
            if load:
                self._load_inputs(facts)
            apply_deltas(self.program.deltas, self.store)
            self._restore()
            for name in self._maintenance.owner:
                self.store.relations[facts_name(name)] = self.store.relations[name]
            self.store.relations = self._start()
            self.pending = derived_predicates(self.program)
            if goals_only:
                self._evaluate_goals(watch)
            elif evaluated:
                self._evaluate(watch)
        self.store.relations = in_layers(self.store.relations)
        self._show()

    # What a database that survives does besides: see `dlog.durable`

    def _restore(self) -> None:
        """Base facts from elsewhere, before rules run."""

    def _next_version(self) -> int:
        return self.version + 1

    def _keep(self, transaction: Transaction, differences: Differences) -> None:
        """The last thing before others see a commit.  When it raises, the commit does not take place."""

    def _acknowledge(self) -> None:
        """After a commit, outside of the lock, before anyone is told."""

    def _show(self) -> None:
        """Let snapshots have the state as it is now: all of it at once.  O(1); see `Layers.settle`."""
        if type(self.store.relations) is Layers:
            self.store.relations.settle()
        self._shown = (
            self.tree,
            self.program,
            self.store.relations,
            self.store.predicates,
            self.version,
            self.pending,
        )

    def __repr__(self) -> str:
        names = [name for name, predicate in self.program.predicates.items() if not predicate.auxiliary]
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        return f"<dlog.Database: {shown}>" if names else "<dlog.Database: empty>"

    def _load_inputs(self, facts: str | Path) -> None:
        load_inputs(
            self.program,
            self.store,
            facts,
            self.warn,
            lambda what, done, total: self._progress("load", what, done, total),
        )

    def _evaluate(self, watch: Watch) -> None:
        evaluate(self.program, self.store, self._evaluation(self.program, watch))
        self.pending = frozenset()

    def _evaluate_goals(self, watch: Watch) -> None:
        """What the program asks for, and of the rest as little as that needs."""
        rewriting = rewriting_for(self.program, self.store, self.pending)
        computed = evaluate_goals(self.program, rewriting, self.store, self._evaluation(self.program, watch))
        self.store.relations |= computed
        self.pending -= computed.keys()

    @uninterrupted
    def complete(self) -> None:
        """Evaluates what is still pending."""
        if self.pending:
            watch = Watch(self.limits)
            with interruptible(watch):
                self.store.relations = self._start()
                self._evaluate(watch)
            self.store.relations = in_layers(self.store.relations)
            self._show()

    def _evaluation(self, program: Program, watch: Watch) -> Evaluation:
        self.measures = Measures(on_warning=self.warn, traced=self._traced)
        limits = {
            d.predicate: int(p.value)
            for d in program.directives
            if d.kind == "limitsize"
            for p in d.params
            if p.name == "n"
        }
        return Evaluation(
            watch,
            self.measures,
            lambda what, done, total: self._progress("evaluate", what, done, total),
            limits,
            self._jobs,
        )

    def warn(self, text: str) -> None:
        """Keeps a warning and tells it."""
        self.warnings.append(text)
        if self._tell is not None:
            self._tell(text)

    # Changing

    def transaction(self, batch_id: str | None = None) -> Transaction:
        """For a `with` block: commits at its end; an error in it, or in what follows from it, changes
        nothing.

        After the block `commit_info` of the transaction tells what changed; it is None after a rollback.
        A `batch_id` names what is delivered: the same one is applied once, however often it comes.
        """
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
        tree, program, relations, predicates, version, pending = self._shown
        view = View(tree, program, self.store.snapshot_of(relations, predicates), self.limits, version)
        view.pending = pending
        return view

    def relation(self, predicate: str) -> Relation:
        with self._lock:
            return super().relation(predicate)

    def answer(self, query: ast.Query) -> Result:
        with self._lock:
            return super().answer(query)

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
        self._keep(transaction, differences)
        self._show()
        seconds = time.perf_counter() - started
        for number in self._short:
            strategy = self._maintenance.strategies[number]
            self._maintenance.note(number, FROM_SCRATCH if strategy is None else strategy.way, seconds)
        changes = Changes(differences, self.program.predicates, self.store.dictionary)
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

    def base(self, predicate: str) -> Result:
        """The base facts of a predicate, without what rules derive."""
        self.require(predicate)
        columns = self.program.predicates[predicate].columns
        with self._lock:
            relation = self.base_relation(predicate)
            assert relation is not None
            return self._result(predicate, columns, relation)

    def base_relation(self, predicate: str) -> Relation | None:
        """The same as a version; None if the predicate is new to the database."""
        name = facts_name(predicate) if predicate in self._maintenance.owner else predicate
        return self.store.relations.get(name)

    def verify(self) -> None:
        """Evaluates everything from scratch; raises VerifyError with the rows that differ, if any do."""
        with self._lock:
            self._verify()

    @uninterrupted
    def _verify(self) -> None:
        self.complete()
        store, measures = self.store, self.measures
        kept = store.relations
        watch = Watch(self.limits)
        try:
            store.relations = self._start()
            with interruptible(watch):
                self._evaluate(watch)
            derived = {n for n in self._maintenance.owner if not self.program.predicates[n].auxiliary}
            found = {name: net_difference(kept[name], store.relations[name]) for name in sorted(derived)}
            differences = Changes(found, self.program.predicates, store.dictionary)
        finally:
            store.relations, self.measures = kept, measures
        if differences:
            raise VerifyError(_disagreement(differences))

    def _start(self) -> dict[str, Relation]:
        """Relations to evaluate in.  Those that rules add to are handles of their own on the base facts; all
        others are the base facts themselves, so that column orders made for them stay.
        """
        relations = self.store.relations
        derived = self._maintenance.owner
        return {
            **{name: relations[name] for name in self.program.predicates if name not in derived},
            **{name: relations[facts_name(name)].snapshot() for name in derived},
            **{facts_name(name): relations[facts_name(name)] for name in derived},
        }

    # Looking inside

    @uninterrupted
    def explain(self, predicate: str | None = None) -> str:
        """How rules are evaluated, in words.  Never runs a rule.

        What is not evaluated yet is explained as the program's own outputs and queries will need it.
        """
        from dlog.engine.explain import explain

        if predicate is not None:
            self.require(predicate)
        rewriting = rewriting_for(self.program, self.store, self.pending)
        if not self.pending or not rewriting.full or predicate in rewriting.left_out:
            return explain(self.program, self.store, predicate, self._maintained)
        store = self.store.under(dict(rewriting.program.predicates))
        parts = rewriting.restricted.get(predicate, (predicate,)) if predicate else (None,)
        told = [explain(rewriting.program, store, part, self._maintained) for part in parts]
        rest = self._maintained_elsewhere(rewriting.program, predicate)
        return "\n".join([*described(rewriting), *told, *rest])

    def _maintained(self, stratum: Stratum) -> list[str]:
        """How a stratum follows transactions, in words; nothing of what a rewriting adds."""
        maintenance = self._maintenance
        if self.pending:  # what is chosen before the data is there is not kept
            maintenance = Maintenance.of(self.program, maintenance.wanted)
        number = maintenance.owner.get(stratum.predicates[0])
        return [] if number is None else maintenance.explain(number, self.store)

    def _maintained_elsewhere(self, shown: Program, predicate: str | None) -> list[str]:
        """The same for strata of which a rewriting has only parts, or nothing: transactions keep all."""
        known = derived_predicates(shown)
        lines = []
        for stratum in self.program.strata:
            names = [n for n in stratum.predicates if not self.program.predicates[n].auxiliary]
            if names and not known.intersection(names) and predicate in (None, *names):
                lines.append(f"  {', '.join(names)}")
                lines += [f"    {line}" for line in self._maintained(stratum)]
        return ["under transactions, in full:", *lines] if lines else []

    @uninterrupted
    def why(self, fact: str) -> str:
        """One well-founded derivation of a fact, as a tree in words.  Raises when the fact does not hold."""
        from dlog.engine.why import derivation_tree

        return derivation_tree(self, fact)

    def stats(self) -> Measures:
        """What the last evaluation or transaction measured, rule by rule; `print` shows it as a table.

        Empty after a transaction of a few rows that ran no rule by itself: `costs` of its commit tells more.
        """
        return self.measures

    @uninterrupted
    def check(self) -> None:
        """Assert every invariant of the state.  O(size of the database)."""
        for relation in self.store.relations.values():
            relation.check()
        for name, predicate in self.program.predicates.items():
            assert self.store.relations[name].arity == predicate.arity
        assert not any(is_old(name) or is_change(name) for name in self.store.relations)
        for strategy in self._maintenance.strategies.values():
            if strategy is not None:
                strategy.check(self.store)


NOT_MEASURED = Measures()
STRATEGIES = ("delta", "trace", "trace-exact", "view_tree", "multilevel", "join_graph")
SUPPORTED_STRATEGIES = frozenset({"delta", "trace", "trace-exact"})


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
    except DlogError as error:
        errors = error if isinstance(error, DlogErrors) else (error,)
        if not all(isinstance(e, DataError) for e in errors):
            raise
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
