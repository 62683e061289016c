"""Owns the database: a program, its state, and the ways to change and read it from Python.

A transaction changes base facts; derived predicates follow when it commits.  A failure of any kind leaves
everything as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dlog.engine.evaluate import Evaluation, evaluate, evaluate_stratum
from dlog.engine.limits import Limits, Watch
from dlog.engine.loading import apply_deltas, load_facts, load_inputs, python_codes
from dlog.engine.measure import Measures
from dlog.engine.result import Result
from dlog.engine.store import Store
from dlog.errors import DataError, Interrupted, LimitError, SourceError
from dlog.ir.check import check_program
from dlog.ir.rules import Column, Program
from dlog.language import ast
from dlog.language.parse import expand_includes, load_file, parse
from dlog.storage.relation import Relation

Progress = Callable[[str, str, int, int], None]  # phase, what, done, total


@dataclass
class Transaction:
    """Changes to base facts, kept until commit.  Later ones win over earlier ones on the same row."""

    database: Database
    changes: list[tuple[str, bool, Any]] = field(default_factory=list)

    def insert(self, predicate: str, rows: Any) -> None:
        """Rows as tuples, a pyarrow Table, a pandas or polars frame, or a numpy array."""
        self.changes.append((predicate, True, self._codes(predicate, rows)))

    def erase(self, predicate: str, rows: Any) -> None:
        self.changes.append((predicate, False, self._codes(predicate, rows)))

    def _codes(self, predicate: str, rows: Any) -> Any:
        self.database.require(predicate)
        return python_codes(self.database.store, predicate, rows)


class Database:
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
    ):
        """From a program file or a text.  `facts` is the folder of its `.input` files.
        `jobs` cores are used where they help.

        `warn` is told at once of rows that are not taken and of joins that look too large; `warnings` keeps
        what it was told.  Without `evaluated` only the base facts are there, for `explain`.
        """
        self.limits = limits or Limits()
        self.measures = Measures()
        self.warnings: list[str] = []
        self._tell = warn
        self._jobs = jobs
        self._progress = progress or (lambda phase, what, done, total: None)
        self._tree = load_file(path) if path is not None else expand_includes(parse(source or ""))
        self.program: Program = check_program(self._tree)
        self.store = Store(self.program.predicates)
        watch = Watch(self.limits)
        load_facts(self.program, self.store)
        with _interruptible(watch):
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
            self._warn,
            lambda what, done, total: self._progress("load", what, done, total),
        )

    def _evaluate(self, watch: Watch) -> None:
        self.measures = Measures(on_warning=self._warn)
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

    def _warn(self, text: str) -> None:
        self.warnings.append(text)
        if self._tell is not None:
            self._tell(text)

    # Reading

    def require(self, predicate: str) -> None:
        """Raises when there is no such predicate."""
        if predicate not in self.program.predicates:
            raise DataError(f"unknown predicate {predicate}")

    def __getitem__(self, predicate: str) -> Result:
        self.require(predicate)
        return self._result(
            predicate, self.program.predicates[predicate].columns, self.store.relations[predicate]
        )

    def __contains__(self, predicate: object) -> bool:
        return predicate in self.program.predicates

    def predicates(self) -> list[str]:
        """Names of the predicates of the program, in source order."""
        return [name for name, p in self.program.predicates.items() if not p.auxiliary]

    def _result(self, name: str, columns: tuple[Column, ...], relation: Relation) -> Result:
        return Result(name, columns, relation.rows(), self.store.dictionary)

    def query(self, text: str) -> Result:
        """The answer of `?- body.` over the current state: one column per variable."""
        statements = parse(text if text.lstrip().startswith("?-") else f"?- {text}", "<query>").statements
        if len(statements) != 1 or not isinstance(statements[0], ast.Query):
            raise SourceError(
                "a query is one statement `?- body.`", span=statements[-1].span if statements else None
            )
        earlier = tuple(s for s in self._tree.statements if not isinstance(s, ast.Query))
        program = check_program(ast.Program((*earlier, statements[0]), span=self._tree.span))
        return self._answer(program, statements[0])

    def queries(self) -> Iterator[tuple[str, Result]]:
        """The program's own queries: (text, answer) of each."""
        for query, node in zip(
            self.program.queries, (s for s in self._tree.statements if isinstance(s, ast.Query)), strict=True
        ):
            relation = self.store.relations[query.predicate]
            yield (
                query.text,
                self._result(query.text, self._query_columns(self.program, query.predicate, node), relation),
            )

    def _query_columns(self, program: Program, name: str, node: ast.Query) -> tuple[Column, ...]:
        names = dict.fromkeys(n.name for n in node.body.walk() if isinstance(n, ast.Variable))
        return tuple(Column(v, c.type) for v, c in zip(names, program.predicates[name].columns, strict=True))

    def _answer(self, program: Program, node: ast.Query) -> Result:
        """Evaluates the predicates that the query adds, on top of the state, and forgets them again."""
        name = program.queries[-1].predicate
        wanted = [
            s
            for s in program.strata
            if not set(s.predicates) <= set(self.program.predicates) or name in s.predicates
        ]
        saved, predicates = dict(self.store.relations), self.store.predicates
        watch = Watch(self.limits)
        try:
            self.store.predicates = dict(program.predicates)
            for stratum in wanted:
                for predicate in stratum.predicates:
                    self.store.clear(predicate)
            with _interruptible(watch):
                for stratum in wanted:
                    evaluate_stratum(program, stratum, self.store, Evaluation(watch))
            return self._result(name, self._query_columns(program, name, node), self.store.relations[name])
        finally:
            self.store.relations, self.store.predicates = saved, predicates

    # Changing

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Commits at the end of the block; an error in it, or in what follows from it, changes nothing."""
        transaction = Transaction(self)
        yield transaction
        self._commit(transaction)

    def _commit(self, transaction: Transaction) -> None:
        base = dict(self._base)
        for name, present, codes in transaction.changes:
            base[name], _ = base[name].apply(inserts=codes) if present else base[name].apply(erases=codes)
        saved, measures = self.store.relations, self.measures
        before, self._base = self._base, base
        self.store.relations = self._start()
        watch = Watch(self.limits)
        try:
            with _interruptible(watch):
                self._evaluate(watch)
        except BaseException:
            self._base, self.store.relations, self.measures = before, saved, measures
            raise

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


@contextmanager
def _interruptible(watch: Watch) -> Iterator[None]:
    """Ctrl-C becomes an error that says what was going on."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted while {watch.doing}") from None
    except MemoryError:
        raise LimitError(f"out of memory while {watch.doing}") from None


def plan_only(path: str | Path, facts: str | Path) -> Database:
    """A database with its base facts loaded, where they are to be had, and no rule run."""
    try:
        return Database(path, facts=facts, evaluated=False)
    except DataError:
        return Database(path, facts=facts, evaluated=False, load=False)
