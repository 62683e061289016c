"""Owns the change of one rule's assignments in a transaction: its delta variants, planned once and run often.

Correct output: see `dlog.planning.deltas`.  Each plan begins with the change, so its work follows the change;
the column orders it needs are added to the relations once and kept in all their later versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dlog.engine.body.bodies import BodyRunner, concatenate, sortable
from dlog.engine.body.default_statistics import DefaultStatistics, GrowingStatistics
from dlog.engine.body.readable import TABLE
from dlog.engine.body.replan import alike
from dlog.engine.body.table import Table, distinct_rows
from dlog.engine.head.heads import body_outputs
from dlog.engine.maintain.strategy import Cycle
from dlog.engine.state.limits import Watch
from dlog.engine.state.measure import Measures
from dlog.engine.state.store import Store
from dlog.ir.rules import Conj, Form, Rule
from dlog.lftj.assemble import Assembled, assemble
from dlog.planning.arrange import AtomUse, arrangement
from dlog.planning.compile import CompiledJoin, compile_join, estimate_join
from dlog.planning.decompose import SECONDS
from dlog.planning.deltas import ERASE, INSERT, Variant, in_old_version
from dlog.planning.pipeline import Anti, Join, Operation, Pipeline, Union, plan_pipeline
from dlog.planning.versions import base_name, is_change, is_old
from dlog.types import INT, Type

_TABLE_ROWS = 16  # what a plan takes a table of bindings to have: few


@dataclass(frozen=True)
class Planned:
    variant: Variant
    pipeline: Pipeline


@dataclass
class _Plan:
    compiled: CompiledJoin
    assembled: Assembled
    sizes: tuple[int, ...]


class RuleDeltas:
    """The variants of one rule over one store."""

    def __init__(
        self,
        store: Store,
        rule: Rule,
        variants: Sequence[Variant],
        bag: bool,
        outputs: tuple[str, ...] = (),
    ):
        """`bag`: every assignment counts, so that signed sums are exact.  `outputs`: the variables that are
        wanted, where these are not what the rule itself needs."""
        self.rule = rule
        self.outputs = outputs or body_outputs(rule)
        self.reads = rule.body.predicates()
        types = {name: type for v in variants for name, type in v.types.items()}
        self.runner = DeltaRunner(store, replace(rule, types={**rule.types, **types}))
        self.variants = [Planned(v, self._pipeline(v, bag)) for v in variants]
        self._bodies: dict[tuple[bool, tuple[str, ...]], Pipeline] = {}

    def _pipeline(self, variant: Variant, bag: bool) -> Pipeline:
        outputs = self.outputs
        if variant.group >= 0:
            outputs = tuple(dict.fromkeys((*variant.outer, *outputs)))
        return plan_pipeline(variant.forms, outputs, variant.types, bag and variant.group < 0)

    def begin(self, cycle: Cycle) -> None:
        """Take a cycle's limits and measures.  O(1)."""
        evaluation = cycle.evaluation
        self.runner.watch = evaluation.watch
        self.runner.measures = evaluation.measures
        self.runner.jobs = evaluation.jobs
        self.runner.measure = evaluation.measures.measure(self.rule)

    def all_assignments(self, cycle: Cycle, weighted: bool = False) -> tuple[BodyRunner, Table]:
        """Of the body in the new version, with what runs on its tables.  `weighted`: a row may stand for
        several, and have their number."""
        rule = self.rule
        runner = body_runner(cycle, rule)
        pipeline = plan_pipeline(rule.body.forms, self.outputs, rule.types, True)
        with cycle.evaluation.measures.of(rule):
            return runner, runner.run(pipeline, weighted=weighted)

    def uses(self) -> Iterator[tuple[AtomUse, ...]]:
        """What each plan reads, of all variants that begin with a join; one is made after the other."""
        for planned in self.variants:
            first = planned.pipeline.operations[0]
            if isinstance(first, Join) and first.forms:
                yield self.runner.planned(first, list(first.forms), first.outputs, None).compiled.atoms

    def explain(self) -> Iterator[str]:
        """For each predicate that may change, how the rest of the body is joined with a row that is
        inserted, and what that is expected to cost."""
        for planned in self.variants:
            first = planned.pipeline.operations[0]
            if planned.variant.change.predicate.startswith("+") and isinstance(first, Join) and first.forms:
                compiled = self.runner.planned(first, list(first.forms), first.outputs, None).compiled
                uses = [u for u in compiled.atoms if not is_change(u.predicate)]
                reads = ", ".join(f"{u.predicate} by {self._columns(u)}" for u in uses) or "nothing else"
                shown = re.sub(
                    r"~\d+", "", str(planned.variant.change)
                )  # a copy of a variable is the variable
                later = dict.fromkeys(_read(planned.pipeline.operations[1:]))
                then = f", then row by row {', '.join(later)}" if later else ""
                yield f"{shown}: reads {reads}{then}; {self._estimate(first)}"

    def _estimate(self, join: Join) -> str:
        """What one changed row costs, in words."""
        order = estimate_join(
            join.forms, join.outputs, join.bag, DefaultStatistics(Standing(self.runner.store, None))
        )
        bindings = order.sizes[-1] if order.sizes else 1.0
        shown = f"{bindings:.2g}" if bindings < 10 else f"{bindings:,.0f}"
        microseconds = order.cost * SECONDS * 1e6
        time = f"~{microseconds:,.0f} us" if microseconds >= 1 else "under 1 us"
        return f"per row ~{shown} bindings, {time}"

    def _columns(self, use: AtomUse) -> str:
        columns = self.runner.store.predicates[base_name(use.predicate)].columns
        return "(" + ", ".join(columns[c].name for c in use.columns) + ")" if use.columns else "any row"

    def active(self, cycle: Cycle) -> Iterator[Planned]:
        """The variants whose change is not empty."""
        return (planned for planned in self.variants if _given(planned.variant, cycle))

    def share(self, cycle: Cycle) -> float:
        """The work that a change makes, as a share of what is read; a guess."""
        share = 0.0
        for planned in self.active(cycle):
            share += _given(planned.variant, cycle) / max(1, cycle.store.rows(planned.variant.changed))
        return share

    def signed(self, cycle: Cycle) -> Iterator[tuple[int, Table]]:
        """(sign, assignments) of each variant or group of variants, with the columns that the rule needs."""
        groups: dict[int, list[Table]] = {}
        for planned in self.active(cycle):
            table = self.runner.run(planned.pipeline)
            self.runner.measure.rows += table.n
            if planned.variant.group < 0:
                yield planned.variant.sign, table
            else:
                groups.setdefault(planned.variant.group, []).append(table.only(planned.pipeline.outputs))
        for group, tables in groups.items():
            yield (INSERT if group % 2 else ERASE), _once(tables, self.variants[0].variant.outer)

    def body(self, bound: tuple[str, ...], table: Table | None, old: bool, bag: bool) -> Table:
        """Assignments of the whole body in one version, for the bindings of a table."""
        if (old, bound) not in self._bodies:
            forms: Sequence[Form] = self.rule.body.forms
            if old:
                forms = [in_old_version(f, self.reads) for f in forms]
            pipeline = plan_pipeline(forms, self.outputs, self.rule.types, bag, bound)
            self._bodies[old, bound] = pipeline
        return self.runner.run(self._bodies[old, bound], table)


def _read(operations: Iterable[Operation]) -> Iterator[str]:
    """The predicates that later operations of a pipeline read."""
    for operation in operations:
        match operation:
            case Join():
                yield from (atom.predicate for atom, _ in Conj((), operation.forms).atoms())
            case Anti():
                yield from _read(operation.body.operations)
            case Union():
                for branch in operation.branches:
                    yield from _read(branch.operations)


def body_runner(cycle: Cycle, rule: Rule) -> BodyRunner:
    """For a rule's whole body in a cycle."""
    evaluation, measures = cycle.evaluation, cycle.evaluation.measures
    return BodyRunner(cycle.store, rule, evaluation.watch, measures, measures.measure(rule), evaluation.jobs)


def _given(variant: Variant, cycle: Cycle) -> int:
    """How many rows a variant begins with: under a negation those of the other sign."""
    change = cycle.changes.get(variant.changed)
    if change is None:
        return 0
    return len(change.inserted if variant.change.predicate.startswith("+") else change.erased)


def _once(tables: list[Table], outer: tuple[str, ...]) -> Table:
    """Each assignment of the outer variables once.  O(n log n)."""
    names = tuple(tables[0].columns)
    merged = {v: concatenate([t.columns[v] for t in tables]) for v in names}
    total = Table(sum(t.n for t in tables), merged)
    return total.take(distinct_rows([sortable(merged[v]) for v in outer], total.n))


class DeltaRunner(BodyRunner):
    """A body runner for plans that are kept from transaction to transaction."""

    def __init__(self, store: Store, rule: Rule):
        super().__init__(store, rule, Watch(), Measures())
        self.kept: dict[tuple[int, bool, tuple[str, ...]], _Plan] = {}

    def arrange(self) -> None:
        """Forget the plans that would read other column orders now; they are made anew when they run."""
        self.kept = {key: plan for key, plan in self.kept.items() if self._is_arranged(plan.compiled)}

    def _is_arranged(self, compiled: CompiledJoin) -> bool:
        view = Standing(self.store, None)
        uses = [use for use in compiled.atoms if use.predicate != TABLE]
        return all(arrangement(use, view.known_orders(use.predicate)) == use.columns for use in uses)

    def tested_values(self, pipeline: Pipeline) -> Table | None:
        return None  # deltas are small

    def join(self, join: Join, table: Table | None) -> Table:
        if table is None:
            return self.rows(join, list(join.forms), join.outputs, None)
        return super().join(join, table)

    def planned(  # type: ignore[override]
        self,
        join: Join,
        forms: list[Form],
        outputs: tuple[str, ...],
        table: Table | None,
        count: bool = False,
        late: bool = False,
    ) -> _Plan:
        """The plan of a join; made anew when a relation has grown or shrunk a lot.  It is never `late`: a
        single row is given to the same plans."""
        key = (id(join), count, () if table is None else tuple(table.columns))
        plan = self.kept.get(key)
        statistics = Standing(self.store, table)
        if plan is not None:
            sizes = tuple(statistics.rows(use.predicate) for use in plan.compiled.atoms)
            if alike(sizes, plan.sizes):
                return plan
        types = {**self.types, "$number": INT}
        compiled = compile_join(
            forms,
            outputs,
            types,
            statistics.column_types,
            GrowingStatistics(statistics),
            self.store.encode,
            bag=join.bag,
            count=count,
        )
        sizes = tuple(statistics.rows(use.predicate) for use in compiled.atoms)
        self.kept[key] = plan = _Plan(compiled, assemble(compiled.plan), sizes)
        return plan


class Standing:
    """The store as a plan that is kept sees it: any index may be had, since it will be kept, too.

    An old version has the statistics of the new one.  Changes and tables of bindings are small, with no value
    twice: so a plan begins with them.
    """

    def __init__(self, store: Store, table: Table | None):
        self.store, self.table = store, table

    def rows(self, name: str) -> int:
        if name == TABLE:
            return _TABLE_ROWS
        return max(1, self.store.rows(name)) if is_change(name) else self.store.rows(_measured(name))

    def distinct(self, name: str, column: int) -> float:
        if name == TABLE or is_change(name):
            return max(1.0, self.rows(name))
        return self.store.distinct(_measured(name), column)

    def partners(self, name: str, column: int) -> float:
        if name == TABLE or is_change(name):
            return 1.0
        return self.store.partners(_measured(name), column)

    def orders(self, name: str) -> list[tuple[int, ...]]:
        return []

    def known_orders(self, name: str, foreseen: bool = True) -> Sequence[tuple[int, ...]]:
        stored = name != TABLE and not is_change(name)
        return self.store.known_orders(_measured(name), foreseen) if stored else ()

    def column_types(self, name: str) -> list[Type]:
        if name == TABLE:
            assert self.table is not None
            return [INT] * len(self.table.columns)
        return list(self.store.column_types(name))


def _measured(name: str) -> str:
    return base_name(name) if is_old(name) else name
