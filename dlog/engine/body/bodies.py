"""Owns the evaluation of rule bodies: a pipeline of joins and column primitives over tables of bindings.

Knows nothing of heads, strata or recursion: relations are looked up by name in the store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dlog import column_functions
from dlog.engine.body.complements import Complement, find_complement
from dlog.engine.body.decomposed import WEIGHT, Parts, Planned
from dlog.engine.body.parallel import in_parallel, parts_of
from dlog.engine.body.post_join_filters import is_ranked, is_scan, passing_rows, scanned_rows
from dlog.engine.body.pushed_filters import SHARE, PushedFilter, pushed_filters
from dlog.engine.body.readable import TABLE, Passing, Readable
from dlog.engine.body.replan import alike
from dlog.engine.body.shared_subjoin_choice import Body
from dlog.engine.body.table import Table, distinct_rows
from dlog.engine.state.limits import Watch
from dlog.engine.state.measure import Measures, RuleMeasure
from dlog.engine.state.store import Store
from dlog.errors import FunctionError
from dlog.ir.record_forms import is_record_form
from dlog.ir.rules import Atom, Const, Form, Operand, Primitive, Rule, Var
from dlog.lftj.assemble import assemble
from dlog.lftj.triejoin import NO_WORDS
from dlog.lftj.triejoin import Join as JoinRun
from dlog.planning.compile import CompiledJoin, compile_join
from dlog.planning.cross_products import cross_products
from dlog.planning.key_order import Implied
from dlog.planning.options import ALWAYS, NEVER
from dlog.planning.pipeline import (
    Anti,
    Compute,
    Generate,
    Join,
    Operation,
    Pipeline,
    Test,
    Union,
    form_variables,
)
from dlog.planning.sub_joins import Decomposition
from dlog.values import INT, MAX_PRECISION, Type

ROW = "$row"
_MANY = 1024  # rows of each atom from which on a join leaves its last comparisons to arrays


class BodyRunner:
    """Runs pipelines of one rule.  Plans are cached between runs, so iterations do not plan again."""

    def __init__(
        self,
        store: Store,
        rule: Rule,
        watch: Watch,
        measures: Measures,
        measure: RuleMeasure | None = None,
        jobs: int = 1,
    ):
        self.store = store
        self.rule = rule
        self.types: Mapping[str, Type] = {**rule.types, ROW: INT}
        self.watch = watch
        self.measures = measures
        self.measure = measure or RuleMeasure(rule)
        self.jobs = jobs
        self.plans: dict[tuple[int, bool, bool, tuple[str, ...]], Planned] = {}
        self.parts: dict[tuple[int, bool], Parts | tuple[int, ...]] = {}
        self.complements: dict[int, Complement | None] = {}
        self.filters: dict[int, tuple[PushedFilter, ...]] = {}
        self.weighted = False

    def run(self, pipeline: Pipeline, table: Table | None = None, weighted: bool = False) -> Table:
        """Bindings of the pipeline's outputs (with `$row` of the given table, if it has one).

        If `weighted`, a bag may come with a column WEIGHT: how many assignments each row stands for.
        """
        self.weighted = weighted
        if table is None:
            table = self.tested_values(pipeline)
        for operation in pipeline.operations:
            table = self.operation(operation, table)
        assert table is not None
        return table

    def tested_values(self, pipeline: Pipeline) -> Table | None:
        """Values that pass tests on columns, for the first join to read; None if that would not pay."""
        if id(pipeline) not in self.filters:
            self.filters[id(pipeline)] = pushed_filters(pipeline, self.store)
        best, least = None, 1.0 if self.store.options.semijoins == ALWAYS else SHARE
        for filters in self.filters[id(pipeline)]:
            values = self.join(filters.values, None)
            values = values.take(distinct_rows(list(values.columns.values()), values.n))
            passed = values
            for test in filters.tests:
                passed = self.test(test.primitive, passed)
            if passed.n <= least * values.n:
                best, least = passed, passed.n / max(values.n, 1)
        return best

    def count(self, join: Join) -> int:
        """The number of assignments of a single join's variables."""
        if parts := self.decomposed(join, (), count=True):
            return parts.count()
        planned = self.planned(join, list(join.forms), (), None, count=True)
        runs = self.join_runs(planned, None)
        total = sum(in_parallel([partial(run.count, between=self.watch.check) for run in runs], self.watch))
        for run in runs:
            self.measure.count(run.counters())
        return total

    def operation(self, operation: Operation, table: Table | None) -> Table:
        if isinstance(operation, Join):
            return self.join(operation, table)
        if table is None:
            table = Table(1, {})
        match operation:
            case Compute():
                return self.compute(operation.primitive, table)
            case Test():
                return self.test(operation.primitive, table)
            case Generate():
                return self.generate(operation.primitive, table)
            case Anti():
                return self.anti(operation, table)
            case Union():
                return self.union(operation, table)

    # Joins

    def join(self, join: Join, table: Table | None) -> Table:
        if table is None and (sparse := self.complement(join)) is not None:
            return self.join(sparse.rest, sparse.table(self.store))
        forms: list[Form] = list(join.forms)
        if table is None:
            if parts := self.decomposed(join, join.outputs):
                return parts.table()
            return self.rows(join, forms, join.outputs, None)
        used = {v for f in forms for v in form_variables(f)}
        shared = tuple(v for v in table.columns if v in used and v not in (ROW, WEIGHT))
        outputs = (*join.outputs, *(v for v in (ROW, WEIGHT) if v in table.columns))
        carried = tuple(v for v in outputs if v in table.columns and v not in shared)
        if not forms:
            return table.only(tuple(v for v in outputs if v in table.columns))
        numbered = table.with_column("$number", np.arange(table.n))
        keys = (*shared, "$number") if join.bag or carried else shared
        atom = Atom(TABLE, tuple(Var(v) for v in keys), len(keys))
        found_outputs = tuple(v for v in outputs if v not in carried)
        if "$number" in keys:
            found_outputs = (*found_outputs, "$number")
        found = self.rows(join, [atom, *forms], found_outputs, numbered.only(keys))
        if not carried:
            return found.only(outputs)
        kept = table.only(carried).take(found.columns["$number"])
        return Table(found.n, {v: (kept if v in carried else found).columns[v] for v in outputs})

    def complement(self, join: Join) -> Complement | None:
        """Two of the join's forms that are a sparse complement, and the join without them."""
        if id(join) not in self.complements:
            self.complements[id(join)] = find_complement(join) if self.store.inclusions else None
        found = self.complements[id(join)]
        return found if found is not None and found.is_sparse(self.store) else None

    def rows(self, join: Join, forms: list[Form], outputs: tuple[str, ...], table: Table | None) -> Table:
        view = self.view(table)
        many = min((view.rows(f.predicate) for f in forms if isinstance(f, Atom)), default=0) >= _MANY
        planned = self.planned(join, forms, outputs, table, post_join=many and bool(outputs))
        self.watch.pending(0)
        parts = self.scanned(planned.compiled, view) if many else None
        if parts is None:
            runs = self.join_runs(planned, table)
            found = in_parallel([partial(self.collect, run, planned.compiled) for run in runs], self.watch)
            for run in runs:
                self.measure.count(run.counters())
            parts = [part for parts in found for part in parts]
        self.watch.check()
        if not outputs:
            return Table(sum(part.shape[1] for part in parts), {})
        empty = np.empty((len(outputs), 0), np.int64)
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts or [empty], axis=1)
        return Table.of_rows(outputs, rows.T)

    def scanned(self, join: CompiledJoin, view: Readable) -> list[np.ndarray] | None:
        """All output of a join that reads one relation from end to end, if its rows are contiguous."""
        if not is_scan(join):
            return None
        use = join.atoms[0]
        index = view.index(use.predicate, use.columns)
        parts = scanned_rows(join, index, self.store.dictionary)
        if parts is None:
            return None
        found = []
        for part in parts:
            self.watch.check()
            found.append(part)
            self.watch.pending(self.watch.pending_rows + part.shape[1])
        self.measure.nexts += len(index)
        return found

    def collect(self, run: JoinRun, join: CompiledJoin) -> list[np.ndarray]:
        """All output of a join, in (columns, rows) parts."""
        parts = []
        for part in run.batches(between=self.watch.check):
            parts.append(passing_rows(join, part.T, self.store.dictionary))
            self.watch.pending(self.watch.pending_rows + parts[-1].shape[1])
        return parts

    def planned(
        self,
        join: Join,
        forms: list[Form],
        outputs: tuple[str, ...],
        table: Table | None,
        count: bool = False,
        post_join: bool = False,
    ) -> Planned:
        """The plan for a join, rebuilt when sizes have changed so much that another order may be better."""
        key = (id(join), count, post_join, () if table is None else tuple(table.columns))
        known = self.plans.get(key)
        view = self.view(table)
        if known is not None:
            sizes = tuple(view.rows(use.predicate) for use in known.compiled.atoms)
            if alike(sizes, known.sizes):
                return known
        planned = self.compile(forms, outputs, view, join.bag, count, post_join=post_join)
        self.warn_cross_product(planned.compiled, view)
        self.plans[key] = planned
        self.measure.planned(planned.compiled)
        return planned

    def view(self, table: Table | None) -> Readable:
        return Readable(self.store, {} if table is None else {TABLE: Passing.of(table)})

    def compile(
        self,
        forms: Sequence[Form],
        outputs: tuple[str, ...],
        view: Readable,
        bag: bool,
        count: bool,
        first: str | None = None,
        implied: Implied | None = None,
        post_join: bool = False,
    ) -> Planned:
        compiled = compile_join(
            forms,
            outputs,
            {**self.types, "$number": INT},
            view.column_types,
            view,
            self.store.encode,
            bag=bag,
            count=count,
            first=first,
            implied=implied,
            post_join=post_join,
        )
        sizes = tuple(view.rows(use.predicate) for use in compiled.atoms)
        return Planned(compiled, assemble(compiled.plan), sizes)

    def decomposed(self, join: Join, outputs: tuple[str, ...], count: bool = False) -> Parts | None:
        """The join in parts, if that is expected to cost less.  Decided again when sizes have changed."""
        key = (id(join), count)
        names = [f.predicate for f in join.forms if isinstance(f, Atom)]
        if len(names) < 2:
            return None
        sizes = tuple(self.store.rows(name) for name in names)
        known = self.parts.get(key)
        if known is not None:
            before = known.sizes if isinstance(known, Parts) else known
            if alike(sizes, before):
                return known if isinstance(known, Parts) else None
        found = self.decomposition(join, outputs, count, sizes)
        parts = Parts(self, found, sizes) if found is not None else None
        if parts is not None and not join.bag:  # in a bag it is counted, not made
            readable = Readable(self.store, {})
            self.warn_of(cross_products(join.forms, readable.rows), readable)
        self.parts[key] = parts or sizes
        return parts

    def decomposition(
        self, join: Join, outputs: tuple[str, ...], count: bool, sizes: tuple[int, ...]
    ) -> Decomposition | None:
        """The planner's choice, or its earlier choice for another runner of the same body on data as
        large.
        """
        options = self.store.options
        if join.bag and not (count or self.weighted):
            options = replace(options, sub_joins=NEVER)
        key = (join.forms, outputs, join.bag, count, options)
        known = self.store.decompositions.get(key)
        if known is None or not alike(sizes, known[0]):
            made = self.store.shared_subjoins.texts(self.store) if options.sharing != NEVER else ()
            body = Body(join.forms, outputs, join.bag, count, options)
            subjoin_choice = self.store.subjoin_choice
            found = (
                subjoin_choice.plan(body, made) if subjoin_choice is not None else body.plan(self.store, made)
            )
            known = self.store.decompositions[key] = (sizes, found)
        return known[1]

    def warn_cross_product(self, compiled: CompiledJoin, view: Readable) -> None:
        self.warn_of(compiled.cross_products, view)

    def warn_of(self, cross_products: tuple[tuple[str, ...], ...], view: Readable) -> None:
        self.measures.warn_cross_product(self.rule, cross_products, view.rows)

    def join_runs(self, planned: Planned, table: Table | None) -> list[JoinRun]:
        """The join, split by ranges of its first key if several cores help; together they give all rows."""
        return self.split(self.start(planned, self.view(table)))

    def start(self, planned: Planned, view: Readable) -> JoinRun:
        uses = planned.compiled.atoms
        for use in sorted(
            uses, key=lambda use: -len(use.columns)
        ):  # shallower reads share an index with deeper ones
            view.index(use.predicate, use.columns)
        keep = [view.index(use.predicate, use.columns) for use in uses]
        ranks = self.store.dictionary.rank if is_ranked(planned.compiled) else NO_WORDS
        run = JoinRun(planned.assembled, self.store.arena.A, [index.root for index in keep], ranks)
        run.indices = keep
        return run

    def split(self, run: JoinRun) -> list[JoinRun]:
        return parts_of(run, max(map(len, run.indices), default=0), self.jobs)

    # Column primitives

    def column(self, operand: Operand, table: Table) -> column_functions.Column:
        if isinstance(operand, Const):
            assert operand.type is not None
            type = operand.type
            code = self.store.encode(operand, type)
            values: np.ndarray = np.full(table.n, code, np.int64)
            return (
                column_functions.widen(values, type)
                if type.is_decimal
                else column_functions.Column(values, type)
            )
        values, type = table.columns[operand.name], self.types[operand.name]
        if type.is_decimal and not table.is_wide(operand.name):
            return column_functions.widen(values, type)
        return column_functions.Column(values, type)

    def compute(self, form: Primitive, table: Table) -> Table:
        if form.output is None:  # an equality that binds one side
            a, b = form.inputs
            target, source = (b, a) if isinstance(b, Var) and b.name not in table.columns else (a, b)
            assert isinstance(target, Var)
            column, defined = self.column(source, table), None
        else:
            target = form.output
            inputs = [self.column(a, table) for a in form.inputs]
            column, defined = self.computed(form, inputs, self.output_type(target))
        if defined is not None and not defined.all():
            if not is_record_form(form.name):  # a pattern that does not match
                self.measure.undefined += int(np.count_nonzero(~defined))
            rows = np.flatnonzero(defined)
            table, column = table.take(rows), _take_column(column, rows)
        return self.receive(target, column, table)

    def computed(
        self, form: Primitive, inputs: list[column_functions.Column], type: Type
    ) -> column_functions.Result:
        try:
            return column_functions.compute(form.name, inputs, type, self.store.dictionary)
        except FunctionError as error:
            error.span = error.span or form.span
            raise

    def output_type(self, target: Operand) -> Type:
        if isinstance(target, Const):
            assert target.type is not None
            return target.type
        type = self.types[target.name]
        return Type("decimal", type.scale, 38) if type.is_decimal else type

    def receive(self, target: Operand, column: column_functions.Column, table: Table) -> Table:
        """Binds a computed column, or selects the rows where it equals what is bound."""
        if isinstance(target, Const) or target.name in table.columns:
            mask = column_functions.test("eq", [column, self.column(target, table)], self.store.dictionary)
            return table.filter(mask)
        type = self.types[target.name]
        if type.is_decimal and type.precision <= MAX_PRECISION:
            codes, fits = column_functions.narrow(column, type)
            exact = (
                column_functions.test(
                    "eq", [column_functions.widen(codes, type), column], self.store.dictionary
                )
                & fits
            )
            rows = np.flatnonzero(exact)
            return table.take(rows).with_column(target.name, codes[rows])
        return table.with_column(target.name, column.values)

    def test(self, form: Primitive, table: Table) -> Table:
        inputs = [self.column(a, table) for a in form.inputs]
        self.measure.undefined += column_functions.undefined(form.name, inputs, self.store.dictionary)
        return table.filter(column_functions.test(form.name, inputs, self.store.dictionary))

    def generate(self, form: Primitive, table: Table) -> Table:
        assert form.output is not None
        inputs = [self.column(a, table) for a in form.inputs]
        rows, column = column_functions.generate(
            form.name, inputs, self.output_type(form.output), self.store.dictionary
        )
        return self.receive(form.output, column, table.take(rows))

    # Nested bodies, distinguished by the row they belong to

    def anti(self, operation: Anti, table: Table) -> Table:
        numbered = table.with_column(ROW, np.arange(table.n))
        matched = self.run(operation.body, numbered.only((*operation.shared, ROW)))
        mask = np.ones(table.n, bool)
        mask[matched.columns[ROW]] = False
        return table.filter(mask)

    def union(self, operation: Union, table: Table) -> Table:
        """Every row with each binding that some branch gives it, once."""
        numbered = table.with_column(ROW, np.arange(table.n))
        fresh = tuple(v for v in operation.outputs if v not in table.columns)
        found = [self.run(branch, numbered).only((ROW, *fresh)) for branch in operation.branches]
        merged = {v: concatenate([t.columns[v] for t in found]) for v in (ROW, *fresh)}
        total = Table(sum(t.n for t in found), merged)
        first = distinct_rows([sortable(total.columns[v]) for v in (ROW, *fresh)], total.n)
        total = total.take(first)
        base = table.take(total.columns[ROW])
        return Table(total.n, {**base.columns, **{v: total.columns[v] for v in fresh}})


def _take_column(column: column_functions.Column, rows: np.ndarray) -> column_functions.Column:
    values = column.values[rows] if isinstance(column.values, np.ndarray) else column.values.take(rows)
    return column_functions.Column(values, column.type)


def concatenate(parts: list[Any]) -> Any:
    if all(isinstance(p, np.ndarray) for p in parts):
        return np.concatenate(parts)
    import pyarrow as pa

    return pa.concat_arrays([p.combine_chunks() if hasattr(p, "combine_chunks") else p for p in parts])


def sortable(values: Any) -> np.ndarray:
    if isinstance(values, np.ndarray):
        return values
    encoded = values.dictionary_encode()
    encoded = encoded.combine_chunks() if hasattr(encoded, "combine_chunks") else encoded
    return encoded.indices.to_numpy(zero_copy_only=False)
