"""View trees over a ring that does not commute: random joins, orders and changes, against products of
numpy's matrices, one combination of rows after the other, in the order in which they are written.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.errors import UnsupportedError
from dlog.m3 import register_ring
from dlog.m3.rings.matrices import matrix_ring
from dlog.m3.rings.rings import INTEGER_RING
from dlog.m3.runtime.runtime import Runtime
from dlog.m3.syntax import ast
from dlog.m3.syntax.parse import parse
from dlog.views.m3.export import export
from dlog.views.m3.program import ALL, NONE, ONCE, Style, m3_text
from dlog.views.orders.dtree import parse_dtree
from dlog.views.orders.orders import find_order
from dlog.views.query import Aggregate, Query, Term
from dlog.views.run.maintained import Maintained
from dlog.views.sql.files import parse_sql
from dlog.views.tree.build import NEEDED, PATHS, view_tree
from tests.examples import relaxed
from tests.oracle.views_naive import assignment, value
from tests.views.random_queries import Case, cases
from tests.views.schemas import var

RING = matrix_ring(2, INTEGER_RING)
LIFTS = {
    "f": lambda x: [[x, 1], [0, 1]],
    "g": lambda x: [[1, 0], [x, 2]],
    "h": lambda x, y: [[0, x], [1, y]],
}
TYPE = ast.TypeRef("Matrix")


def words(function: Any) -> Any:
    """A function of whole columns from one of numbers."""
    return lambda _, columns: RING.column([function(*map(int, row)) for row in zip(*columns, strict=True)])


def register() -> None:
    ring = RING
    for name, function in LIFTS.items():
        ring = ring.with_lift(name, words(function))
    register_ring("Matrix", ring)


register()


@st.composite
def matrix_cases(draw: Any) -> Case:
    """A random join, whose aggregates are sums of products of matrices, some of them times numbers."""
    case = draw(cases(cyclic=draw(st.integers(0, 3)) == 0))
    names = case.query.variables

    def factor() -> ast.Node:
        kind = draw(st.sampled_from("fffggghx"))
        x, y = var(draw(st.sampled_from(names))), var(draw(st.sampled_from(names)))
        if kind == "x":
            return x
        return ast.Call(kind, TYPE, (x, y) if kind == "h" else (x,))

    def term() -> Term:
        return Term(
            (ast.Call("f", TYPE, (var(names[0]),)), *(factor() for _ in range(draw(st.integers(1, 4)))))
        )

    found = tuple(
        Aggregate(f"m{i}", tuple(term() for _ in range(draw(st.integers(1, 2)))))
        for i in range(draw(st.integers(1, 2)))
    )
    types = (ast.TypeDefinition("Matrix", "matrix.hpp"),)
    return replace(case, query=replace(case.query, aggregates=found, types=types))


def product(term: Term, binding: dict[str, Any]) -> np.ndarray:
    out = np.eye(2, dtype=object)
    for factor in term.factors:
        if isinstance(factor, ast.Call):
            matrix = LIFTS[factor.function](*(value(a, binding) for a in factor.arguments))
            out = out @ np.array(matrix, dtype=object)
        else:
            out = out * value(factor, binding)
    return out


def expected(query: Query, relations: dict[str, Counter]) -> dict[tuple, list]:
    """Groups whose sums are not all 0."""
    groups: dict[tuple, list] = {}
    for rows in itertools.product(*(relations[atom.relation].items() for atom in query.atoms)):
        binding = assignment(query, [row for row, _ in rows])
        if binding is None or not all(value(c, binding) for c in query.conditions):
            continue
        weight = int(np.prod([times for _, times in rows]))
        found = groups.setdefault(tuple(binding[v] for v in query.free), [0] * len(query.aggregates))
        for i, aggregate in enumerate(query.aggregates):
            found[i] = found[i] + weight * sum(product(term, binding) for term in aggregate.terms)
    return {
        (*key, i): found.tolist()
        for key, sums in groups.items()
        for i, found in enumerate(sums)
        if np.any(found)
    }


def stored(runtime: Runtime, query: Query, names: list[str]) -> dict[tuple, list]:
    """The queries of the program, without zeros, groups as the query has them."""
    found = {}
    for i, name in enumerate(names):
        for row in runtime[name].to_pylist():
            *_, (_, matrix) = row.items()
            if np.any(np.array(matrix, dtype=object)):
                found[(*(row[v] for v in query.free), i)] = matrix
    return found


def shown(kept: Maintained) -> dict[tuple, list]:
    """The result, without zeros."""
    rows = (tuple(row.values()) for row in kept.result().to_pylist())
    n = len(kept.query.free)
    found = {(*row[:n], i): matrix for row in rows for i, matrix in enumerate(row[n:])}
    return {key: matrix for key, matrix in found.items() if np.any(np.array(matrix, dtype=object))}


@pytest.mark.parametrize("style", [NONE, ONCE, ALL, "single"])
@relaxed(15)
@given(case=matrix_cases())
def test_oracle_matrices(style: str, case: Case) -> None:
    register()
    kept = Maintained(
        case.query, case.order, Style(batch=False) if style == "single" else Style(inline=style)
    )
    present = {s.name: Counter(case.tables.get(s.name, ())) for s in case.query.sources}
    names = [a.name for a in case.query.aggregates]
    for table, rows in case.tables.items():
        kept.load(table, rows)
    kept.runtime.ready()
    for relation, rows, times in case.batches:
        kept.apply(relation, rows, times)
        for row, n in zip(rows, times, strict=True):
            present[relation][row] += n
        present[relation] = +present[relation]
        assert stored(kept.runtime, case.query, names) == expected(case.query, present)
        assert shown(kept) == expected(case.query, present)
        kept.runtime.check()


@relaxed(6)
@given(case=matrix_cases())
def test_differential_texts_of_matrices(case: Case) -> None:
    """Every way of writing the program, read back from its text."""
    register()
    order = case.order or find_order(case.query)
    present = {s.name: Counter(case.tables.get(s.name, ())) for s in case.query.sources}
    for relation, rows, times in case.batches:
        for row, n in zip(rows, times, strict=True):
            present[relation][row] += n
    wanted = expected(case.query, {name: +rows for name, rows in present.items()})
    for compress, keep, style in (
        (True, NEEDED, Style()),
        (False, NEEDED, Style(inline=ALL)),
        (False, PATHS, Style(inline=NONE)),
        (True, NEEDED, Style(batch=False)),
    ):
        text = m3_text(case.query, view_tree(case.query, order, compress, keep), style)
        runtime = Runtime(parse(text))
        for table, rows in case.tables.items():
            runtime.load(table, rows)
        runtime.ready()
        for batch in case.batches:
            runtime.apply(*batch)
        assert stored(runtime, case.query, [a.name for a in case.query.aggregates]) == wanted


SQL = """
    CREATE TYPE Matrix FROM FILE 'matrix.hpp';
    CREATE STREAM R(a int, b int);
    CREATE STREAM S(b int, c int);
    SELECT SUM([f: Matrix](a) * [g: Matrix](c) * [h: Matrix](b, a)) FROM R NATURAL JOIN S;
"""


def test_a_factor_between_two_of_another_relation_moves_up() -> None:
    """f(a) and h(b, a) enclose g(c): a view over R alone cannot have both."""
    register()
    order = "3 2\n0 b int -1 {} 0\n1 a int 0 {0} 0\n2 c int 0 {0} 0\nR 1 a,b\nS 2 b,c\n"
    query = parse_sql(SQL)
    tree = view_tree(query, parse_dtree(order, query))
    top = tree.root
    assert [len(view.factors) for view in (top, *(v for v in top.children if not v.is_leaf))] == [1, 1, 1]
    kept = Maintained(query, parse_dtree(order, query))
    kept.apply("R", [(1, 2), (3, 2)])
    kept.apply("S", [(2, 5), (2, 7)])
    wanted = sum(
        np.array(LIFTS["f"](a)) @ np.array(LIFTS["g"](c)) @ np.array(LIFTS["h"](2, a))
        for a in (1, 3)
        for c in (5, 7)
    )
    assert kept.result()[0][0].as_py() == wanted.tolist()


def test_updates_that_factorise_are_refused() -> None:
    register()
    with pytest.raises(UnsupportedError, match="need a ring that commutes"):
        Maintained(parse_sql(SQL), products={"R": [["a"], ["b"]]})


def test_programs_for_compilers_keep_the_order(tmp_path: Path) -> None:
    """As `dlog m3` writes them for F-IVM and DBToaster: the same result."""
    register()
    (tmp_path / "query.sql").write_text(SQL, encoding="utf-8")
    left, right = [(1, 2), (3, 2), (4, 5)], [(2, 5), (2, 7), (5, -1)]
    relations = {"R": Counter(left), "S": Counter(right)}
    wanted = expected(parse_sql(SQL), relations)[(0,)]
    for consumer in ("fivm", "dbtoaster"):
        runtime = Runtime(parse(export(tmp_path / "query.sql", consumer=consumer)))
        for source, rows in zip(runtime.program.sources, (left, right), strict=True):
            runtime.apply(source.name, rows)
        assert [row["value"] for row in runtime["sum"].to_pylist()] == [wanted]
