"""Owns the alternatives to derive a head, and running one of them for a few goals: the body joined with the
goals.

An alternative is a rule with one branch of each disjunction chosen, so its forms are atoms, primitives and
negations, and a binding of its variables is one derivation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from dlog.engine.body.bodies import ROW, BodyRunner
from dlog.engine.body.post_join_filters import passing_rows
from dlog.engine.body.table import Table
from dlog.engine.evaluate.evaluate import as_plain
from dlog.engine.head.heads import aggregate_table, body_outputs, head_rows
from dlog.engine.state.limits import Watch
from dlog.engine.state.measure import Measures
from dlog.engine.state.store import Store
from dlog.ir.analysis.projection import stored_as
from dlog.ir.rules import Atom, Const, Disjunction, Form, Primitive, Rule, Stratum, Var
from dlog.lftj.triejoin import Join as JoinRun
from dlog.planning.compile import CompiledJoin
from dlog.planning.pipeline import Pipeline, plan_pipeline

FIRST_LIMIT = 1 << 16  # rows of one join; if a search fails with it, it begins again with more


@dataclass(eq=False)
class Alternative:
    """`head <- forms`: one alternative to derive a predicate.

    In `joined`, which is run, functions of a recursive min or max are relations: a search may have to examine
    values that a key had before.
    """

    rule: Rule
    head: Atom
    forms: tuple[Form, ...]
    combined: frozenset[str] = frozenset()
    pipeline: Pipeline | None = field(default=None, repr=False)
    runner: LimitedRunner | None = field(default=None, repr=False)

    @property
    def joined(self) -> tuple[Form, ...]:
        return tuple(
            replace(f, n_keys=len(f.args)) if isinstance(f, Atom) and f.predicate in self.combined else f
            for f in self.forms
        )

    @property
    def atoms(self) -> list[Atom]:
        return [f for f in self.forms if isinstance(f, Atom)]

    def variables(self) -> tuple[str, ...]:
        """Those that a binding has: all outside negations."""
        args = (a for f in self.forms if isinstance(f, Atom | Primitive) for a in f.args)
        heads = self.head.args
        return tuple(dict.fromkeys(a.name for a in (*args, *heads) if isinstance(a, Var)))


def alternatives(stratum: Stratum, predicate: str) -> list[Alternative]:
    """Every alternative by which plain rules, and recursive min and max, derive a predicate."""
    found = []
    for rule in stratum.rules:
        combined = bool(rule.aggregates) and rule.heads[0].predicate in stratum.combine
        if rule.aggregates and not combined:
            continue
        plain = as_plain(rule) if combined else rule
        for head in plain.heads:
            if head.predicate == predicate:
                names = frozenset(stratum.combine)
                found += [Alternative(plain, head, forms, names) for forms in _choices(plain.body.forms)]
    return found


def aggregations(stratum: Stratum, predicate: str) -> list[tuple[Rule, Atom]]:
    """Rules that derive a predicate by aggregates, outside any recursion."""
    return [
        (rule, head)
        for rule in stratum.rules
        if rule.aggregates and rule.heads[0].predicate not in stratum.combine
        for head in rule.heads
        if head.predicate == predicate
    ]


def _choices(forms: tuple[Form, ...]) -> Iterator[tuple[Form, ...]]:
    """The conjunctions that a body's disjunctions stand for."""
    for index, form in enumerate(forms):
        if isinstance(form, Disjunction):
            for branch in form.branches:
                yield from _choices((*forms[:index], *branch.forms, *forms[index + 1 :]))
            return
    yield forms


class LimitedRunner(BodyRunner):
    """Stops a join that has given enough rows; `truncated` says that there was more."""

    limit = FIRST_LIMIT
    truncated = False

    def collect(self, run: JoinRun, join: CompiledJoin) -> list[np.ndarray]:
        parts, rows = [], 0
        for part in run.batches(between=self.watch.check):
            parts.append(passing_rows(join, part.T, self.store.dictionary))
            rows += parts[-1].shape[1]
            if rows >= self.limit:
                self.truncated = True
                break
        return parts


class Bodies:
    """Runs alternatives over one state."""

    def __init__(self, store: Store, watch: Watch):
        self.store = store.under(dict(store.predicates))
        self.store.relations = dict(store.relations)
        self.watch = watch
        self.limit = FIRST_LIMIT
        self.truncated = False

    def instances(self, alternative: Alternative, goals: np.ndarray) -> tuple[np.ndarray, Table]:
        """(Which goal, its binding) of derivations of these rows of the head; all of them up to a limit."""
        table = self._goal_table(alternative, goals)
        if alternative.pipeline is None or alternative.runner is None:
            bound = [v for v in table.columns if v != ROW]
            alternative.pipeline = plan_pipeline(
                alternative.joined, alternative.variables(), alternative.rule.types, False, bound
            )
            alternative.runner = LimitedRunner(self.store, alternative.rule, self.watch, Measures())
        runner = alternative.runner
        runner.limit, runner.truncated = self.limit, False
        self.watch.doing = f"looking for derivations by {place(alternative.rule)}"
        found = runner.run(alternative.pipeline, table) if table.n else _empty(alternative)
        self.truncated |= runner.truncated
        which = found.columns[ROW]
        same = head_rows(self.store, alternative.head, found, alternative.rule) == goals[which]
        kept = np.flatnonzero(same.all(axis=1))
        return which[kept], found.take(kept)

    def derived(self, alternative: Alternative) -> np.ndarray:
        """All rows that an alternative derives."""
        self.watch.doing = f"looking for derivations by {place(alternative.rule)}"
        rule = alternative.rule
        names = tuple(a.name for a in alternative.head.args if isinstance(a, Var))
        pipeline = plan_pipeline(alternative.joined, names, rule.types, False)
        table = BodyRunner(self.store, rule, self.watch, Measures()).run(pipeline)
        return head_rows(self.store, alternative.head, table, rule)

    def _goal_table(self, alternative: Alternative, goals: np.ndarray) -> Table:
        """The variables that a goal binds, for the goals that match the head's literals."""
        head, fits = alternative.head, np.ones(len(goals), bool)
        columns = self.store.predicates[head.predicate].columns
        bound: dict[str, np.ndarray] = {}
        for index, (operand, column) in enumerate(zip(head.args, columns, strict=True)):
            if isinstance(operand, Const):
                fits &= goals[:, index] == self.store.encode(operand, column.type)
            elif operand.name in bound:
                fits &= goals[:, index] == bound[operand.name]
            elif stored_as(alternative.rule, operand, column.type):
                bound[operand.name] = goals[:, index]
        kept = np.flatnonzero(fits)
        return Table(len(kept), {**{v: codes[kept] for v, codes in bound.items()}, ROW: kept})

    def atom_rows(self, alternative: Alternative, atom: Atom, table: Table) -> np.ndarray:
        """The rows that an atom of the body has under each binding."""
        return head_rows(self.store, atom, table, alternative.rule)

    # Aggregates

    def aggregates_to(self, rule: Rule, head: Atom, goal: np.ndarray) -> bool:
        """Whether an aggregation gives this row of its head."""
        runner = BodyRunner(self.store, rule, self.watch, Measures())
        table = self._in_group(runner, rule, head, goal, body_outputs(rule))
        rows = head_rows(self.store, head, aggregate_table(runner, rule, table), rule)
        return bool((rows == goal).all(axis=1).any())

    def assignments(self, rule: Rule, head: Atom, goal: np.ndarray) -> Table:
        """All assignments of the body in the group of a row."""
        names = tuple(v.name for v in (*rule.groups, *rule.body.exists))
        runner = BodyRunner(self.store, rule, self.watch, Measures())
        table = self._in_group(runner, rule, head, goal, names)
        results = {a.result.name: np.zeros(table.n, np.int64) for a in rule.aggregates}
        rows = head_rows(self.store, head, Table(table.n, {**table.columns, **results}), rule)
        kept = np.ones(table.n, bool)
        for index, operand in enumerate(head.args):
            if not isinstance(operand, Var) or operand.name not in results:
                kept &= rows[:, index] == goal[index]
        return table.filter(kept)

    def _in_group(
        self, runner: BodyRunner, rule: Rule, head: Atom, goal: np.ndarray, outputs: tuple[str, ...]
    ) -> Table:
        """The body's bindings in the group of a row, as far as the row's values are the group's own."""
        self.watch.doing = f"looking for derivations by {place(rule)}"
        columns = self.store.predicates[head.predicate].columns
        groups = {v.name for v in rule.groups}
        given = {
            a.name: goal[index : index + 1]
            for index, (a, c) in enumerate(zip(head.args, columns, strict=True))
            if isinstance(a, Var) and a.name in groups and stored_as(rule, a, c.type)
        }
        pipeline = plan_pipeline(rule.body.forms, outputs, rule.types, True, given)
        return runner.run(pipeline, Table(1, {**given, ROW: np.zeros(1, np.int64)}))

    def extension(self, rule: Rule, head: Atom, assignment: Table) -> tuple[Alternative, Table]:
        """The branches that hold under an assignment, with the variables that they add: one row."""
        for forms in _choices(rule.body.forms):
            way = Alternative(rule, replace(head, args=()), forms)
            given = Table(1, {**assignment.columns, ROW: np.zeros(1, np.int64)})
            pipeline = plan_pipeline(forms, way.variables(), rule.types, False, assignment.columns)
            runner = LimitedRunner(self.store, rule, self.watch, Measures())
            found = runner.run(pipeline, given)
            if found.n:
                return way, found
        raise AssertionError("an assignment satisfies the body")


def _empty(alternative: Alternative) -> Table:
    names = (*alternative.variables(), ROW)
    return Table(0, {name: np.empty(0, np.int64) for name in names})


def place(rule: Rule) -> str:
    return f"{rule.span.file}:{rule.span.line}" if rule.span else "a rule"
