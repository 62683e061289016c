"""View trees against the definition of a query: random schemas, orders, aggregates and changes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.m3.runtime.runtime import Runtime
from dlog.m3.syntax import ast
from dlog.m3.syntax.parse import parse
from dlog.views.m3.program import ALL, NONE, ONCE, Style, m3_text
from dlog.views.orders.orders import find_order
from dlog.views.run.maintained import Maintained
from dlog.views.tree.build import NEEDED, PATHS, view_tree
from tests.examples import relaxed
from tests.oracle.views_naive import naive
from tests.views.random_queries import Case, cases

STYLES = [Style(inline=NONE), Style(inline=ONCE), Style(inline=ALL), Style(batch=False)]


def rows_of(kept: Maintained) -> dict:
    table = kept.result()
    columns = [column.to_pylist() for column in table.columns]
    n = len(kept.query.free)
    return {row[:n]: row[n:] for row in zip(*columns, strict=True)}


def follow(case: Case, style: Style, threads: int | None = None) -> None:
    """After every batch, the result of the views is that of the query on what the relations hold."""
    kept = Maintained(case.query, case.order, style, threads=threads)
    present = {s.name: Counter(case.tables.get(s.name, ())) for s in case.query.sources}
    for table, rows in case.tables.items():
        kept.load(table, rows)
    assert rows_of(kept) == naive(case.query, present)
    for relation, rows, times in case.batches:
        kept.apply(relation, rows, times)
        for row, n in zip(rows, times, strict=True):
            present[relation][row] += n
        present[relation] = +present[relation]
        assert rows_of(kept) == naive(case.query, present)
        kept.runtime.check()


@pytest.mark.parametrize("style", STYLES, ids=["none", "once", "all", "single"])
@relaxed(20)
@given(case=cases())
def test_oracle_trees(style: Style, case: Case) -> None:
    follow(case, style)


@pytest.mark.parametrize("style", STYLES, ids=["none", "once", "all", "single"])
@relaxed(20)
@given(case=cases(), threads=st.integers(2, 5))
def test_oracle_several_machines(style: Style, case: Case, threads: int) -> None:
    follow(case, style, threads)


@relaxed(20)
@given(case=cases(cyclic=True), threads=st.integers(2, 5))
def test_oracle_cycles_on_several_machines(case: Case, threads: int) -> None:
    follow(case, Style(inline=ALL), threads)


@pytest.mark.parametrize("style", STYLES, ids=["none", "once", "all", "single"])
@relaxed(20)
@given(case=cases(cyclic=True))
def test_oracle_cycles(style: Style, case: Case) -> None:
    follow(case, style)


@pytest.mark.parametrize("cyclic", [False, True])
@relaxed(6)
@given(data=st.data())
def test_differential_texts(cyclic: bool, data: st.DataObject) -> None:
    """Every way of writing the program, read back from its text, gives the same root."""
    case = data.draw(cases(cyclic=cyclic))
    order = case.order or find_order(case.query)
    found = []
    for compress, keep, style in (
        (True, NEEDED, Style()),
        (False, NEEDED, Style(inline=ALL)),
        (False, PATHS, Style(inline=NONE)),
        (True, PATHS, Style(inline=ONCE)),
        (True, NEEDED, Style(batch=False)),
        (False, PATHS, Style(dialect=ast.A5, batch=False)),
    ):
        tree = view_tree(case.query, order, compress, keep)
        program = parse(m3_text(case.query, tree, style), dialect=style.dialect)
        runtime = Runtime(program)
        for table, rows in case.tables.items():
            runtime.load(table, rows)
        runtime.ready()
        for batch in case.batches:
            runtime.apply(*batch)
        found.append([sorted(runtime[q.name].to_pylist(), key=str) for q in program.queries])
    assert all(other == found[0] for other in found[1:])


@pytest.mark.fuzz
@pytest.mark.parametrize("style", STYLES, ids=["none", "once", "all", "single"])
@relaxed(2000, random=True)
@given(case=cases())
def test_fuzz_trees(style: Style, case: Case) -> None:
    follow(case, style)


@pytest.mark.fuzz
@pytest.mark.parametrize("style", STYLES, ids=["none", "once", "all", "single"])
@relaxed(2000, random=True)
@given(case=cases(cyclic=True))
def test_fuzz_cycles(style: Style, case: Case) -> None:
    follow(case, style)
