"""`agg<<m = cofactor(..)>>`: entries against numpy on the join itself, in transactions under every
strategy, and as M3 in every dialect; models that follow the data.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog import m3
from dlog.ir.check import load_program
from dlog.language.format import format_program
from dlog.language.source import text_source
from dlog.views.m3.export import export
from tests.examples import relaxed

NAMES = ("a", "b", "c")
PROGRAM = """
r(k, i, a, b) -> int(k), int(i), {first}(a), {second}(b).
s(k, i, c)    -> int(k), int(i), int(c).
whole[] = m <- agg<<m = cofactor(a, b, c)>> r(k, _, a, b), s(k, _, c).
by(k, m)    <- agg<<m = cofactor(a, b, c)>> r(k, _, a, b), s(k, _, c).
many[k] = n, part[k] = m <- agg<<n = count(), m = cofactor(c)>> s(k, _, c).
"""
Row = tuple[Any, ...]
small = st.integers(-3, 3)
changes = st.one_of(
    st.tuples(st.booleans(), st.just("r"), st.tuples(st.integers(0, 2), st.integers(0, 2), small, small)),
    st.tuples(st.booleans(), st.just("s"), st.tuples(st.integers(0, 2), st.integers(0, 2), small)),
)
scripts = st.lists(st.lists(changes, min_size=1, max_size=5), min_size=1, max_size=6)


def entries(names: tuple[str, ...], rows: list[Row]) -> set[Row]:
    """The cofactor of rows, by its entries, as a product of matrices."""
    if not rows:
        return set()
    data = np.column_stack([np.ones(len(rows)), np.array(rows, float)])
    found = data.T @ data
    full = ("1", *names)
    return {(x, y, found[i, j]) for i, x in enumerate(full) for j, y in enumerate(full)}


def expected(present: dict[str, set[Row]]) -> dict[str, set[Row]]:
    joined = [(k, (a, b, c)) for (k, _, a, b), (q, _, c) in itertools.product(*present.values()) if k == q]
    groups = {k for k, _ in joined}
    alone = {k for k, _, _ in present["s"]}
    by = {k: entries(NAMES, [row for q, row in joined if q == k]) for k in groups}
    part = {k: entries(("c",), [(c,) for q, _, c in present["s"] if q == k]) for k in alone}
    return {
        "whole": entries(NAMES, [row for _, row in joined]),
        "by": {(k, *entry) for k, found in by.items() for entry in found},
        "part": {(k, *entry) for k, found in part.items() for entry in found},
        "many": {(k, len([1 for q, _, _ in present["s"] if q == k])) for k in alone},
    }


def follow(script: list[list[tuple[bool, str, Row]]], types: tuple[str, str], strategy: str) -> None:
    db = dlog.Database(source=PROGRAM.format(first=types[0], second=types[1]), strategy=strategy)
    present: dict[str, set[Row]] = {"r": set(), "s": set()}
    for batch in script:
        with db.transaction() as tx:
            for is_insert, name, row in batch:
                if name == "r":  # quarters of whole numbers: sums of their products are exact
                    row = (
                        *row[:2],
                        *(v / 4 if t == "float" else v for v, t in zip(row[2:], types, strict=True)),
                    )
                (tx.insert if is_insert else tx.erase)(name, [row])
                (present[name].add if is_insert else present[name].discard)(row)
        for name, rows in expected(present).items():
            assert set(db[name].rows()) == rows, name
    db.check()


TYPES = st.sampled_from((("int", "int"), ("int", "float"), ("float", "float")))
STRATEGIES = st.sampled_from(("delta", "trace", "views"))


@relaxed(12)
@given(script=scripts, types=TYPES, strategy=STRATEGIES)
def test_oracle_numpy_in_transactions(script, types, strategy) -> None:
    follow(script, types, strategy)


@pytest.mark.fuzz
@relaxed(300, random=True)
@given(script=scripts, types=TYPES, strategy=STRATEGIES)
def test_fuzz_numpy_in_transactions(script, types, strategy) -> None:
    follow(script, types, strategy)


def test_views_keep_whole_numbers() -> None:
    db = dlog.Database(source=PROGRAM.format(first="int", second="int"), strategy="views")
    with db.transaction() as tx:
        tx.insert("r", [(1, 1, 2, 3)])
        tx.insert("s", [(1, 1, 5)])
    ways = {s.stratum.predicates[0]: s.way for s in db._maintenance.strategies.values() if s is not None}
    assert ways == dict.fromkeys(("whole", "by", "many", "part"), "views")


def test_decimals_are_exact() -> None:
    db = dlog.Database(
        source="""
        r(a, b) -> int(a), decimal[10, 2](b).
        w[] = m <- agg<<m = cofactor(a, b)>> r(a, b).
        r(1, 0.10). r(2, 0.20). r(3, 0.30)."""
    )
    found = {row[:2]: row[2] for row in db["w"].rows()}
    assert {place: str(found[place]) for place in (("1", "1"), ("a", "b"), ("b", "b"))} == {
        ("1", "1"): "3.000000",
        ("a", "b"): "1.400000",
        ("b", "b"): "0.140000",
    }


def test_printed_as_it_was_written() -> None:
    text = "w[x] = m <- agg<<m = cofactor(y, z)>> r(x, y, z).\n"
    tree, _ = load_program(text_source(text + "r(1, 2, 3)."))
    assert format_program(tree).startswith(text)


@pytest.mark.parametrize("consumer", ["fivm", "dbtoaster", "a5"])
def test_exported_m3_gives_the_same(consumer: str, tmp_path: Path) -> None:
    """As one element of the ring for F-IVM, as the sums elsewhere; what is computed is lifted, too."""
    path = tmp_path / "p.dl"
    rule = "whole[] = m <- agg<<m = cofactor(d, c)>> r(k, a), s(k, c), d = a + a * k."
    path.write_text("r(k, a) -> int(k), int(a). s(k, c) -> int(k), int(c).\n" + rule)
    text = export(path, consumer=consumer)
    in_ring = consumer == "fivm"
    assert ("RingCofactor" in text) == in_ring
    runtime = m3.Runtime(m3.parse(text, dialect="a5" if consumer == "a5" else "dbtoaster"))
    r, s = [(1, 2), (1, 5), (2, -1)], [(1, 4), (2, 3), (2, 6)]
    prefix = "" if consumer == "a5" else "REL_"
    runtime.apply(f"{prefix}R", r)
    runtime.apply(f"{prefix}S", s)
    data = np.array([(1, a + a * k, c) for (k, a), (q, c) in itertools.product(r, s) if k == q])
    found = dict(runtime.results())
    if in_ring:
        (row,) = found["m_m"].to_pylist()
        if "[lift<0>: RingCofactor<0, double, 1>](v_c)" in text:
            data = data[:, [0, 2, 1]]
        assert row["value"]["1"] == len(data)
        assert row["value"]["2"] == data.sum(axis=0)[1:].tolist()
        assert np.array_equal(row["value"]["3"], data[:, 1:].T @ data[:, 1:])
        return
    expected = {
        f"m_{x}_{y}": (data[:, i] * data[:, j]).sum()
        for (i, x), (j, y) in itertools.combinations_with_replacement(enumerate(("1", "d", "c")), 2)
    }
    assert {name: table.to_pylist()[0]["value"] for name, table in found.items()} == expected


def test_models_follow_the_data() -> None:
    declared = "p(x, y, z) -> int(x), int(y), float(z). "
    db = dlog.Database(source=declared + "m[x] = c <- agg<<c = cofactor(y, z)>> p(x, y, z).")
    points = np.array([(0, y, 3.0 * y - 2) for y in range(5)] + [(1, y, float(y * y)) for y in range(6)])
    with db.transaction() as tx:
        tx.insert("p", [(int(x), int(y), float(z)) for x, y, z in points])
    line = dlog.regression(db, "m", "z", [0])
    assert (round(line.intercept, 9), round(line.slopes["y"], 9)) == (-2, 3)
    with db.transaction() as tx:
        tx.erase("p", [(1, 5, 25.0)])
    curve = dlog.regression(db, "m", "z", [1])
    kept = points[(points[:, 0] == 1) & (points[:, 1] < 5)]
    slope, intercept = np.polyfit(kept[:, 1], kept[:, 2], 1)
    assert [curve.intercept, curve.slopes["y"]] == pytest.approx([intercept, slope])
    for arguments, message in (
        (("m", "z", [7]), "m has no rows to fit for"),
        (("m", "z"), "m has groups of 1 values, not 0"),
        (("m", "w", [0]), "w is not among y, z"),
        (("m", "z", 0), "a group is a list of values"),
        (("p", "z"), "p is not a cofactor"),
    ):
        with pytest.raises(dlog.DlogError, match=message):
            dlog.regression(db, *arguments)
