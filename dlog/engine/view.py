"""Owns reading: rows of predicates and answers of queries over one state.  Changes nothing visible.

A `View` of a database is a snapshot; the database itself reads in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dlog.engine.commit.record_uses import codes_in_relations
from dlog.engine.commit.result import Result
from dlog.engine.evaluate.demand import derived_predicates, evaluate_goals, rewriting_for
from dlog.engine.evaluate.evaluate import Evaluation, evaluate_stratum
from dlog.engine.maintain.cones import stale_predicates
from dlog.engine.state.closure import closure
from dlog.engine.state.limits import Limits, Watch
from dlog.engine.state.store import Store
from dlog.errors import DataError, Interrupted, LimitError, SourceError, did_you_mean
from dlog.interrupts import uninterrupted
from dlog.ir.check import check_program
from dlog.ir.goals.materialize import DIRECTIVE
from dlog.ir.goals.narrowed import reads_of
from dlog.ir.lower.scope import answer_columns
from dlog.ir.rules import Column, Program, Rule
from dlog.jit import Words
from dlog.language import ast
from dlog.language.parse import parse
from dlog.planning.versions import facts_name
from dlog.storage.dictionary.records.uses import in_use
from dlog.storage.relation.deferred import NO_TEXTS, DeferredRelation
from dlog.storage.relation.relation import Relation


class View:
    """A program and a state of its predicates, for reading."""

    def __init__(self, tree: ast.Program, program: Program, store: Store, limits: Limits, version: int):
        self.tree = tree
        self.program = program
        self.store = store
        self.limits = limits
        self.version = version
        self.store.dictionary.records.holders.add(self)
        self.pending: frozenset[str] = frozenset()  # derived predicates that hold their base facts only

    @property
    def unevaluated(self) -> frozenset[str]:
        """Derived predicates whose rows are not there: pending or stale ones.  O(1) without modes."""
        if not self.program.directed(DIRECTIVE):
            return self.pending
        return self.pending | stale_predicates(self.program, self.store.relations)

    def require(self, predicate: str) -> None:
        """Raises if there is no such predicate."""
        if predicate not in self.program.predicates:
            help = did_you_mean(predicate, self.predicates())
            raise DataError(f"unknown predicate {predicate}", help=help)

    def held_records(self) -> Iterator[Words]:
        """The codes of records in its relations."""
        yield from codes_in_relations(self.store.relations, self.store.predicates)

    @in_use()
    def __getitem__(self, predicate: str) -> Result:
        self.require(predicate)
        return self._result(predicate, self.program.predicates[predicate].columns, self.relation(predicate))

    @uninterrupted
    def relation(self, predicate: str) -> Relation:
        """All rows of a predicate, computed now if necessary."""
        classes = self.program.equivalences.get(predicate)
        if classes is not None:
            return closure(self.relation(classes))
        if predicate in self.unevaluated:
            return self._computed(self.program, predicate, self.store, self.unevaluated)
        return self.store.relations[predicate]

    def __contains__(self, predicate: object) -> bool:
        return predicate in self.program.predicates

    def predicates(self) -> list[str]:
        """Names of the predicates of the program, in source order."""
        return [name for name, p in self.program.predicates.items() if not p.auxiliary]

    @uninterrupted
    @in_use()
    def _result(self, name: str, columns: tuple[Column, ...], relation: Relation) -> Result:
        shown = relation.shown() if isinstance(relation, DeferredRelation) else None
        rows, texts = (relation.rows(), NO_TEXTS) if shown is None else shown
        return Result(name, columns, rows, self.store.dictionary, texts)

    def query(self, text: str) -> Result:
        """The answer of `?- body.` over the current state: one column per variable.  Its `?-` and its `.`
        are optional."""
        text = text if text.lstrip().startswith("?-") else f"?- {text}"
        statements = parse(text if text.rstrip().endswith(".") else f"{text}.", "<query>").statements
        if len(statements) != 1 or not isinstance(statements[0], ast.Query):
            raise SourceError(
                "a query is one statement `?- body.`", span=statements[-1].span if statements else None
            )
        return self.answer(statements[0])

    @uninterrupted
    @in_use()
    def answer(self, query: ast.Query) -> Result:
        """The same for a query that is parsed."""
        earlier = tuple(s for s in self.tree.statements if not isinstance(s, ast.Query))
        return self._answer(check_program(ast.Program((*earlier, query), span=self.tree.span)), query)

    def queries(self) -> Iterator[tuple[str, Result]]:
        """The program's own queries: (text, answer) of each."""
        for query, node in zip(
            self.program.queries, (s for s in self.tree.statements if isinstance(s, ast.Query)), strict=True
        ):
            columns = self._query_columns(self.program, query.predicate, node)
            with in_use():
                result = self._result(query.text, columns, self.relation(query.predicate))
            yield query.text, result

    def _query_columns(self, program: Program, name: str, node: ast.Query) -> tuple[Column, ...]:
        names = answer_columns(node)
        return tuple(Column(v, c.type) for v, c in zip(names, program.predicates[name].columns, strict=True))

    def _answer(self, program: Program, node: ast.Query) -> Result:
        """Evaluates the predicates that the query adds on top of the state, which does not change."""
        name = program.queries[-1].predicate
        store = self.store.under(dict(program.predicates))
        store.relations = dict(self.store.relations)
        wanted = [s for s in program.strata if any(_stands_in(rule, node) for rule in s.rules)]
        added = {predicate for stratum in wanted for predicate in stratum.predicates}
        for predicate in added:  # a query of the program may have the same name
            store.clear(predicate)
            store.relations.pop(facts_name(predicate), None)
        unevaluated = self.unevaluated
        if unevaluated and not unevaluated.isdisjoint(reads_of(program, name)):
            relation = self._computed(program, name, store, unevaluated | added)
            return self._result(name, self._query_columns(program, name, node), relation)
        watch = Watch(self.limits)
        with interruptible(watch):
            for stratum in wanted:
                evaluate_stratum(program, stratum, store, Evaluation(watch))
        return self._result(name, self._query_columns(program, name, node), store.relations[name])

    def _computed(self, program: Program, name: str, store: Store, unevaluated: frozenset[str]) -> Relation:
        """A predicate that is not evaluated yet, or a query, computed with as little else as it needs."""
        own = derived_predicates(program) - set(self.program.predicates)
        pending = unevaluated | own | {name}
        rewriting = rewriting_for(program, store, pending, {name: "it is requested"})
        watch = Watch(self.limits)
        with interruptible(watch):
            return evaluate_goals(program, rewriting, store, Evaluation(watch))[name]


def _stands_in(rule: Rule, node: ast.Node) -> bool:
    return rule.span is not None and rule.span.source is node.span.source


@contextmanager
def interruptible(watch: Watch) -> Iterator[None]:
    """Ctrl-C becomes an error that says what was in progress."""
    try:
        with in_use():
            yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted while {watch.doing}") from None
    except MemoryError:
        raise LimitError(f"out of memory while {watch.doing}") from None
