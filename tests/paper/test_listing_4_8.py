"""Listing 4.8 of the thesis, to the letter: an element of a user's ring times doubles; run over its files,
and over streams with deletions, for rings of kernels, of functions on columns, and of the thesis's own pair.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.errors import UnsupportedError
from dlog.m3 import register_ring
from dlog.m3.rings.matrices import matrix_ring
from dlog.m3.rings.rings import FLOAT_RING, INTEGER_RING, Ring, cofactor_ring, product_ring
from dlog.m3.runtime.runtime import Runtime
from dlog.m3.runtime.streams import Reader, run_files
from dlog.m3.syntax.parse import parse
from dlog.views.m3.export import export
from dlog.views.m3.program import NATIVE, Style
from dlog.views.run.maintained import Maintained
from dlog.views.sql.files import parse_sql
from tests.examples import relaxed

LISTING = """\
CREATE TYPE Ring
FROM FILE "'ring.hpp'";

CREATE TABLE R(A int, B double)
FROM FILE './datasets/thesis/R.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE TABLE S(A int, C int, E int)
FROM FILE './datasets/thesis/S.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE TABLE T(C int, D int)
FROM FILE './datasets/thesis/T.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT E, D, SUM([f_A: Ring](A) * (A * 2) * (B + 1) * C * C)
FROM R NATURAL JOIN S NATURAL JOIN T
GROUP BY E, D
"""
PAIR, MATRICES = product_ring(FLOAT_RING, FLOAT_RING), matrix_ring(2)


def opaque(ring: Ring) -> Ring:
    """The same ring as functions on columns."""
    return Ring(
        "pairs", ring.layout, ring.encode, ring.decode, plus=ring.add, times=ring.multiply, minus=ring.negate,
        one=ring.one, is_exact=False, by_float=ring.multiply_by_floats, sample=ring.sample,
    )  # fmt: skip


def of_pairs(ring: Ring) -> Ring:
    """f_A(a) = (a, a + 1)"""
    return ring.with_lift("f_A", lambda _, columns: ring.elements(columns[0], 0, columns[0] + 1, 0))


# A ring, its element for a as fractions, and the numbers of an element as results show it.
RINGS: dict[str, tuple[Ring, Any, Any]] = {
    "floats": (
        FLOAT_RING.with_lift("f_A", lambda _, columns: FLOAT_RING.elements(columns[0] - 3, 0)),
        lambda a: (a - 3,),
        lambda element: (element,),
    ),
    "pairs": (of_pairs(PAIR), lambda a: (a, a + 1), lambda e: (e["1"], e["2"])),
    "pairs of a user": (of_pairs(opaque(PAIR)), lambda a: (a, a + 1), lambda e: (e["1"], e["2"])),
    "matrices": (
        MATRICES.with_lift(
            "f_A", lambda _, columns: MATRICES.column([[[a, 1], [2, -a]] for a in columns[0].tolist()])
        ),
        lambda a: (a, 1, 2, -a),
        lambda e: (*e[0], *e[1]),
    ),
    "cofactors": (
        cofactor_ring(1).with_lift("f_A", lambda _, columns: cofactor_ring(1).lift((0,), [columns[0]])),
        lambda a: (1, a, a * a),
        lambda e: (e["1"], e["2"][0], e["3"][0][0]),
    ),
}
Row = tuple[Any, ...]


def expected(name: str, rows: dict[str, Counter[Row]]) -> dict[Row, tuple[Fraction, ...]]:
    """Every combination of rows, in fractions; groups without rows are left out."""
    out: dict[Row, list[Fraction]] = {}
    counts: Counter[Row] = Counter()
    for (a, b), n in rows["R"].items():
        for (a2, c, e), m in rows["S"].items():
            for (c2, d), k in rows["T"].items():
                if a == a2 and c == c2:
                    number = n * m * k * (a * 2) * (Fraction(b) + 1) * c * c
                    one = [number * x for x in RINGS[name][1](a)]
                    counts[e, d] += n * m * k
                    out[e, d] = [
                        x + y for x, y in zip(out.get((e, d), [Fraction(0)] * len(one)), one, strict=True)
                    ]
    return {key: tuple(value) for key, value in out.items() if counts[key]}


def shown(name: str, table: Any) -> dict[Row, tuple[float, ...]]:
    rows = (tuple(row.values()) for row in table.to_pylist())
    return {row[:-1]: RINGS[name][2](row[-1]) for row in rows}


A, C, GROUP = st.integers(-2, 2), st.integers(-2, 2), st.integers(0, 1)
ROWS = {
    "R": st.tuples(A, st.integers(-6, 6).map(lambda n: n / 4)),
    "S": st.tuples(A, C, GROUP),
    "T": st.tuples(C, GROUP),
}
EVENTS = st.lists(
    st.one_of(*(st.tuples(st.just(n), st.lists(row, min_size=1, max_size=4)) for n, row in ROWS.items())),
    max_size=7,
)


@pytest.mark.parametrize("style", [NATIVE, Style(), Style(batch=False)], ids=["native", "exported", "single"])
@pytest.mark.parametrize("name", RINGS)
@relaxed(8)
@given(events=EVENTS, data=st.data())
def test_oracle_streams(name: str, style: Style, events: list[Any], data: st.DataObject) -> None:
    """With streams instead of tables: insertions and deletions."""
    register_ring("Ring", RINGS[name][0])
    kept = Maintained(parse_sql(LISTING.replace("CREATE TABLE", "CREATE STREAM")), style=style)
    present: dict[str, Counter[Row]] = {relation: Counter() for relation in ROWS}
    for relation, new in events:
        there = sorted(present[relation].elements())
        places = data.draw(st.lists(st.sampled_from(range(len(there))), unique=True)) if there else []
        old = [there[i] for i in places]
        kept.apply(relation, new + old, [1] * len(new) + [-1] * len(old))
        present[relation].update(new)
        present[relation].subtract(old)
        assert shown(name, kept.result()) == expected(name, present)
        kept.runtime.check()


@pytest.mark.parametrize("batch", [True, False])
@pytest.mark.parametrize("name", RINGS)
def test_the_listing_compiles_and_runs(name: str, batch: bool, tmp_path: Path) -> None:
    """As a file, through `dlog m3`, over the files that it names."""
    register_ring("Ring", RINGS[name][0])
    rng = np.random.default_rng(5)
    rows = {
        "R": [(int(a), float(b) / 2) for a, b in rng.integers(-3, 4, (12, 2))],
        "S": [tuple(map(int, row)) for row in rng.integers(-3, 4, (25, 3))],
        "T": [tuple(map(int, row)) for row in rng.integers(-3, 4, (12, 2))],
    }
    folder = tmp_path / "datasets" / "thesis"
    folder.mkdir(parents=True)
    for relation, some in rows.items():
        text = "".join("|".join(map(str, row)) + "\n" for row in some)
        (folder / f"{relation}.tbl").write_text(text, encoding="utf-8")
    (tmp_path / "example.sql").write_text(LISTING, encoding="utf-8")
    text = export(tmp_path / "example.sql", batch=batch)
    assert "[f_A: Ring](v_a)" in text
    runtime = Runtime(parse(text))
    run_files(runtime, Reader(tmp_path), 10)
    wanted = {
        key: value
        for key, value in expected(name, {r: Counter(some) for r, some in rows.items()}).items()
        if any(value)
    }
    table = runtime["sum"]
    *keys, value = table.column_names  # names of one letter have a prefix in programs for C++
    found = shown(name, table.select([*sorted(keys, reverse=True), value]))
    assert found == wanted and wanted


def test_a_ring_of_integers_has_no_product_with_a_double() -> None:
    register_ring(
        "Ring", INTEGER_RING.with_lift("f_A", lambda _, columns: columns[0].astype(np.int64)[:, None])
    )
    with pytest.raises(UnsupportedError, match="Ring has no product with a double"):
        Maintained(parse_sql(LISTING))
