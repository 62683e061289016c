"""The runtime against the naive interpreter: random programs, after every event, every map and query."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dlog.io import to_arrow
from dlog.m3.runtime.encoding import columns_of, one_by_one
from dlog.m3.runtime.runtime import Runtime, Step
from dlog.m3.syntax import ast
from dlog.m3.types.typecheck import check
from tests.examples import relaxed
from tests.oracle.m3_naive import Naive
from tests.oracle.m3_programs import Case, cases, run_naive

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def rows_of(table: Any) -> dict[tuple[Any, ...], Any]:
    """An Arrow table as keys and values that are not 0."""
    columns = [column.to_pylist() for column in table.columns]
    return {row[:-1]: row[-1] for row in zip(*columns, strict=True) if row[-1] != 0}


def assert_same(runtime: Runtime, oracle: Naive) -> None:
    for declared in oracle.program.maps:
        assert rows_of(runtime[declared.name]) == pytest.approx(oracle.map(declared.name)), declared.name
    for query in oracle.program.queries:
        assert rows_of(runtime[query.name]) == pytest.approx(oracle.query(query.name)), query.name


def compare(case: Case, row_code: bool = True) -> None:
    program = check(case.program)
    case = Case(program, case.tables, case.events)
    runtime = Runtime(program, checked=True)
    if not row_code:
        runtime.compiled.row_entries.clear()
    for table, rows in case.tables.items():
        runtime.load(table, rows)
    runtime.ready()
    events = iter(case.events)
    started = False

    def after_each(oracle: Naive) -> None:
        nonlocal started
        if started:
            event = next(events)
            runtime.apply(event.relation, [row for row, _ in event.rows], [n for _, n in event.rows])
        started = True
        runtime.check()
        assert_same(runtime, oracle)

    run_naive(case, after_each)


@relaxed(80)
@given(cases(batch=False))
def test_oracle_single_tuples(case: Case) -> None:
    compare(case)


@relaxed(50)
@given(cases())
def test_oracle_without_code_for_one_row(case: Case) -> None:
    compare(case, row_code=False)


@relaxed(50)
@given(cases(batch=False))
def test_oracle_all_events_in_one_run(case: Case) -> None:
    """Rows of all relations as they come, handed over at once, are taken as if one by one."""
    program = check(case.program)
    runtime = Runtime(program, checked=True)
    for table, rows in case.tables.items():
        runtime.load(table, rows)
    steps, which = [], []
    for event in case.events:
        source = next(s for s in program.sources if s.name == event.relation)
        rows = to_arrow([row for row, _ in event.rows], columns_of(source), source.name)
        counts = np.array([n for _, n in event.rows], np.int64)
        words = one_by_one(runtime.encode_table(source, rows, counts))
        which += [len(steps)] * words.shape[1]
        steps.append(Step(event.relation, words))
    if steps:
        order = np.array(which, np.int64)
        runtime.apply_steps(steps, order, order)
    runtime.check()
    assert_same(runtime, run_naive(Case(program, case.tables, case.events)))


@relaxed(80)
@given(cases(dialect=ast.DBTOASTER, batch=True))
def test_oracle_batches(case: Case) -> None:
    compare(case)


@relaxed(40)
@given(cases(), st.data())
def test_saved_maps_come_back(case: Case, data: st.DataObject) -> None:
    """After a save and more events, going back gives what the events before it gave."""
    program = check(case.program)
    cut = data.draw(st.integers(0, len(case.events)))
    before = Case(program, case.tables, case.events[:cut])
    oracle, runtime = run_naive(before), Runtime(program, checked=True)
    for table, rows in case.tables.items():
        runtime.load(table, rows)
    runtime.ready()
    saved = runtime.save() if cut == 0 else None
    for number, event in enumerate(case.events, 1):
        runtime.apply(event.relation, [row for row, _ in event.rows], [n for _, n in event.rows])
        saved = runtime.save() if number == cut else saved
    assert saved is not None
    runtime.restore(saved)
    runtime.check()
    assert_same(runtime, oracle)


@pytest.mark.fuzz
@settings(max_examples=5000, suppress_health_check=SLOW)
@given(cases())
def test_oracle_any_program(case: Case) -> None:
    compare(case)
