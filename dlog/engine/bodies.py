"""Owns the evaluation of rule bodies: a pipeline of joins and column primitives over tables of bindings.

Knows nothing of heads, strata or recursion: relations are looked up by name in the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dlog.engine import batch
from dlog.engine.limits import Watch
from dlog.engine.measure import Measures, RuleMeasure
from dlog.engine.parallel import in_parallel, parts_of
from dlog.engine.store import Store
from dlog.engine.table import Table, distinct_rows
from dlog.ir.rules import Atom, Const, Form, Operand, Primitive, Rule, Var
from dlog.lftj.assemble import Assembled, assemble
from dlog.lftj.triejoin import NO_WORDS
from dlog.lftj.triejoin import Join as JoinRun
from dlog.planning.compile import CompiledJoin, compile_join
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
from dlog.storage.index import Index
from dlog.types import INT, MAX_PRECISION, Type

TABLE = "$table"
ROW = "$row"
_REPLAN = 16  # a plan is made anew when an atom has grown or shrunk by this factor
_CROSS_PRODUCT_ROWS = 100_000


@dataclass
class _Planned:
    compiled: CompiledJoin
    assembled: Assembled
    sizes: tuple[int, ...]


class BodyRunner:
    """Runs pipelines of one rule.  Plans are kept between runs, so iterations do not plan again."""

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
        self.plans: dict[tuple[int, bool, tuple[str, ...]], _Planned] = {}

    def run(self, pipeline: Pipeline, table: Table | None = None) -> Table:
        """Bindings of the pipeline's outputs (with `$row` of the given table, if it has one)."""
        for operation in pipeline.operations:
            table = self.operation(operation, table)
        assert table is not None
        return table

    def count(self, join: Join) -> int:
        """The number of assignments of a single join's variables."""
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
        forms: list[Form] = list(join.forms)
        if table is None:
            return self.rows(join, forms, join.outputs, None)
        used = {v for f in forms for v in form_variables(f)}
        shared = tuple(v for v in table.columns if v in used and v != ROW)
        outputs = tuple(v for v in (*join.outputs, *((ROW,) if ROW in table.columns else ())))
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

    def rows(self, join: Join, forms: list[Form], outputs: tuple[str, ...], table: Table | None) -> Table:
        planned = self.planned(join, forms, outputs, table)
        runs = self.join_runs(planned, table)
        self.watch.pending(0)
        found = in_parallel([partial(self.collect, run) for run in runs], self.watch)
        self.watch.check()
        for run in runs:
            self.measure.count(run.counters())
        parts = [part for parts in found for part in parts]
        total = sum(part.shape[1] for part in parts)
        if not outputs:
            return Table(total, {})
        rows = np.concatenate(parts, axis=1).T if parts else np.empty((0, len(outputs)), np.int64)
        return Table.of_rows(outputs, rows)

    def collect(self, run: JoinRun) -> list[np.ndarray]:
        """All output of a join, in (columns, rows) parts."""
        parts = []
        for part in run.batches(between=self.watch.check):
            parts.append(part.T.copy())
            self.watch.pending(self.watch.pending_rows + len(part))
        return parts

    def planned(
        self,
        join: Join,
        forms: list[Form],
        outputs: tuple[str, ...],
        table: Table | None,
        count: bool = False,
    ) -> _Planned:
        """The plan for a join, made anew when sizes have changed so much that another order may be better."""
        key = (id(join), count, () if table is None else tuple(table.columns))
        known = self.plans.get(key)
        view = _TableView(self.store, table)
        if known is not None:
            sizes = tuple(view.rows(use.predicate) for use in known.compiled.atoms)
            if all(_alike(a, b) for a, b in zip(sizes, known.sizes, strict=True)):
                return known
        types = {**self.types, "$number": INT}
        compiled = compile_join(
            forms, outputs, types, view.column_types, view, self.store.encode, bag=join.bag, count=count
        )
        self.warn_cross_product(compiled, view)
        sizes = tuple(view.rows(use.predicate) for use in compiled.atoms)
        planned = _Planned(compiled, assemble(compiled.plan), sizes)
        self.plans[key] = planned
        self.measure.planned(compiled)
        return planned

    def warn_cross_product(self, compiled: CompiledJoin, view: _TableView) -> None:
        if not compiled.cross_products:
            return
        expected = 1
        for part in compiled.cross_products:
            expected *= max(view.rows(name) for name in part)
        if expected >= _CROSS_PRODUCT_ROWS:
            parts = " and ".join(", ".join(dict.fromkeys(part)) for part in compiled.cross_products)
            where = f"{self.rule.span.file}:{self.rule.span.line}: " if self.rule.span else ""
            self.measures.warn(
                f"{where}warning: {parts} share no variable: a cross product of about {expected:,} rows"
            )

    def join_runs(self, planned: _Planned, table: Table | None) -> list[JoinRun]:
        """The join, cut by ranges of its first key when several cores help; together they give all rows."""
        roots, keep = [], []
        for use in planned.compiled.atoms:
            if use.predicate == TABLE:
                assert table is not None
                names = list(table.columns)
                columns = [np.ascontiguousarray(table.columns[names[c]]) for c in use.columns]
                index = self.table_index(columns, table.n)
            else:
                index = self.store.index(use.predicate, use.columns)
            roots.append(index.root)
            keep.append(index)
        ranks = self.store.dictionary.rank if planned.compiled.uses_ranks else NO_WORDS
        run = JoinRun(planned.assembled, self.store.arena.A, roots, ranks)
        run.indices = keep  # type: ignore[attr-defined]  # as long as the run, or a part of it, reads them
        return parts_of(run, max(map(len, keep), default=0), self.jobs)

    def table_index(self, columns: list[np.ndarray], n: int) -> Index:
        if columns:
            return Index.from_columns(self.store.arena, columns)
        return Index.build(self.store.arena, np.empty((min(n, 1), 0), np.int64), 0)

    # Column primitives

    def column(self, operand: Operand, table: Table) -> batch.Column:
        if isinstance(operand, Const):
            assert operand.type is not None
            type = operand.type
            code = self.store.encode(operand, type)
            values: np.ndarray = np.full(table.n, code, np.int64)
            return batch.widen(values, type) if type.is_decimal else batch.Column(values, type)
        values, type = table.columns[operand.name], self.types[operand.name]
        if type.is_decimal and not table.is_wide(operand.name):
            return batch.widen(values, type)
        return batch.Column(values, type)

    def compute(self, form: Primitive, table: Table) -> Table:
        if form.output is None:  # an equality that gives one side its value
            a, b = form.inputs
            target, source = (b, a) if isinstance(b, Var) and b.name not in table.columns else (a, b)
            assert isinstance(target, Var)
            column, defined = self.column(source, table), None
        else:
            target = form.output
            inputs = [self.column(a, table) for a in form.inputs]
            column, defined = batch.compute(
                form.name, inputs, self.output_type(target), self.store.dictionary
            )
        if defined is not None and not defined.all():
            self.measure.undefined += int(np.count_nonzero(~defined))
            rows = np.flatnonzero(defined)
            table, column = table.take(rows), _take_column(column, rows)
        return self.receive(target, column, table)

    def output_type(self, target: Operand) -> Type:
        if isinstance(target, Const):
            assert target.type is not None
            return target.type
        type = self.types[target.name]
        return Type("decimal", type.scale, 38) if type.is_decimal else type

    def receive(self, target: Operand, column: batch.Column, table: Table) -> Table:
        """Binds a computed column, or keeps the rows where it equals what is bound."""
        if isinstance(target, Const) or target.name in table.columns:
            mask = batch.test("eq", [column, self.column(target, table)], self.store.dictionary)
            return table.filter(mask)
        type = self.types[target.name]
        if type.is_decimal and type.precision <= MAX_PRECISION:
            codes, fits = batch.narrow(column, type)
            exact = batch.test("eq", [batch.widen(codes, type), column], self.store.dictionary) & fits
            rows = np.flatnonzero(exact)
            return table.take(rows).with_column(target.name, codes[rows])
        return table.with_column(target.name, column.values)

    def test(self, form: Primitive, table: Table) -> Table:
        inputs = [self.column(a, table) for a in form.inputs]
        return table.filter(batch.test(form.name, inputs, self.store.dictionary))

    def generate(self, form: Primitive, table: Table) -> Table:
        assert form.output is not None
        inputs = [self.column(a, table) for a in form.inputs]
        rows, column = batch.generate(form.name, inputs, self.output_type(form.output), self.store.dictionary)
        return self.receive(form.output, column, table.take(rows))

    # Nested bodies, told apart by the row they belong to

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


class _TableView:
    """The store as the planner sees it, with the table of bindings as one more relation."""

    def __init__(self, store: Store, table: Table | None):
        self.store, self.table = store, table

    def rows(self, name: str) -> int:
        return self.table.n if name == TABLE and self.table else self.store.rows(name)

    def distinct(self, name: str, column: int) -> float:
        return max(1.0, self.rows(name) / 2) if name == TABLE else self.store.distinct(name, column)

    def partners(self, name: str, column: int) -> float:
        return 2.0 if name == TABLE else self.store.partners(name, column)

    def orders(self, name: str) -> list[tuple[int, ...]]:
        return [] if name == TABLE else list(self.store.orders(name))

    def column_types(self, name: str) -> list[Type]:
        if name == TABLE:
            assert self.table is not None
            return [INT] * len(self.table.columns)
        return list(self.store.column_types(name))


def _alike(a: int, b: int) -> bool:
    return a <= _REPLAN * max(b, 64) and b <= _REPLAN * max(a, 64)


def _take_column(column: batch.Column, rows: np.ndarray) -> batch.Column:
    values = column.values[rows] if isinstance(column.values, np.ndarray) else column.values.take(rows)
    return batch.Column(values, column.type)


def concatenate(parts: list[Any]) -> Any:
    if all(isinstance(p, np.ndarray) for p in parts):
        return np.concatenate(parts)
    import pyarrow as pa

    return pa.concat_arrays([p.combine_chunks() if hasattr(p, "combine_chunks") else p for p in parts])


def sortable(values: object) -> np.ndarray:
    if isinstance(values, np.ndarray):
        return values
    encoded = values.dictionary_encode()  # type: ignore[attr-defined]
    encoded = encoded.combine_chunks() if hasattr(encoded, "combine_chunks") else encoded
    return encoded.indices.to_numpy(zero_copy_only=False)
