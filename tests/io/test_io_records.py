"""Records from Python, Arrow and files, and back."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import dlog
from dlog import Branch
from dlog.engine.run import run_program
from dlog.errors import DataError
from tests.examples import relaxed

TYPES = """
    .type Pair = [a: number, b: symbol]
    .type Line = [from: Pair, length: float]
    .type Shape = Circle {r: float} | Polygon {corners: Corners} | Point {}
    .type Corners = [first: Pair, others: Corners]
    .decl p(k: number, l: Line, s: Shape)
"""
TRIANGLE = ((1, "a, b"), ((2, 'say "c"'), ((3, "]"), None)))
ROWS = [
    (1, ((1, "x"), 1.5), Branch("Circle", (1.0,))),
    (2, (None, 2.0), Branch("Point")),
    (3, None, Branch("Polygon", (TRIANGLE,))),
    (4, ((0, ""), -0.25), Branch("Polygon", (None,))),
]


def database() -> dlog.Database:
    return dlog.Database(source=TYPES)


def test_python_rows() -> None:
    db = database()
    db.apply(insert={"p": ROWS})
    assert db["p"].rows() == ROWS
    db.apply(erase={"p": [(k, list(l) if l else l, s) for k, l, s in ROWS[:2]]})
    assert db["p"].rows() == ROWS[2:]


PAIR = pa.struct([("a", pa.int64()), ("b", pa.string())])
LINE = pa.struct([("from", PAIR), ("length", pa.float64())])
CIRCLE, POLYGON = pa.struct([("r", pa.float64())]), pa.struct([("corners", pa.large_string())])
SHAPE = pa.struct([("branch", pa.string()), ("Circle", CIRCLE), ("Polygon", POLYGON)])


def test_arrow_tables_have_structs() -> None:
    db = database()
    db.apply(insert={"p": ROWS})
    table = db["p"].to_arrow()
    assert table.schema.field("l").type == LINE and table.schema.field("s").type == SHAPE
    assert table.column("l").to_pylist() == [
        {"from": {"a": 1, "b": "x"}, "length": 1.5},
        {"from": None, "length": 2.0},
        None,
        {"from": {"a": 0, "b": ""}, "length": -0.25},
    ]
    assert table.column("s").to_pylist() == [
        {"branch": "Circle", "Circle": {"r": 1.0}, "Polygon": None},
        {"branch": "Point", "Circle": None, "Polygon": None},
        {
            "branch": "Polygon",
            "Circle": None,
            "Polygon": {"corners": '[[1, "a, b"], [[2, "say \\"c\\""], [[3, "]"], nil]]]'},
        },
        {"branch": "Polygon", "Circle": None, "Polygon": {"corners": "nil"}},
    ]
    table.validate(full=True)
    assert database()["p"].to_arrow().schema == table.schema


def test_recursive_types_and_enumerations_are_texts_in_arrow() -> None:
    db = dlog.Database(
        source="""
        .type List = [head: number, tail: List]
        .type A = X {b: B} | Y {}    .type B = [a: A]    .type C = Red {} | Green {}    .type branch_ = [c: C]
        .type D = branch {c: branch_}
        .decl p(l: List, a: A, c: C, d: D)
        p([1, nil], $X([$Y]), $Green, $branch([$Red])).
        """
    )
    (row,) = db["p"].to_arrow().to_pylist()
    assert row == {
        "l": "[1, nil]",
        "a": "$X([$Y])",
        "c": "$Green",
        "d": {"branch_": "branch", "branch": {"c": {"c": "$Red"}}},
    }
    db.apply(erase={"p": db["p"].to_arrow()})
    assert db["p"].rows() == []


@pytest.mark.parametrize("mode", ["arrow", "dense", "sparse", "pandas", "polars", "texts"])
def test_arrow_tables_are_read_again(mode: str) -> None:
    db, other = database(), database()
    db.apply(insert={"p": ROWS})
    table = db["p"].to_arrow()
    if mode == "pandas":
        table = db["p"].to_pandas()
    elif mode == "polars":
        table = pytest.importorskip("polars").from_arrow(table)
    elif mode == "texts":
        table = db["p"].exact_table()
    elif mode != "arrow":
        table = table.set_column(2, "s", as_union(table.column("s").combine_chunks(), mode))
    other.apply(insert={"p": table})
    assert other["p"].rows() == ROWS
    other.apply(erase={"p": table.head(2) if mode == "pandas" else table[:2]})
    assert other["p"].rows() == ROWS[2:]


def as_union(shapes: pa.StructArray, mode: str) -> pa.UnionArray:
    """Members in another order than that of the declaration."""
    names = ["Point", "Polygon", "Circle"]
    types = pa.array([names.index(name) for name in shapes.field("branch").to_pylist()], pa.int8())
    members = [pa.nulls(len(shapes)), shapes.field("Polygon"), shapes.field("Circle")]
    if mode == "sparse":
        return pa.UnionArray.from_sparse(types, members, names)
    return pa.UnionArray.from_dense(types, pa.array(range(len(shapes)), pa.int32()), members, names)


def test_unions_within_structs() -> None:
    db = dlog.Database(
        source=""".type S = N {n: number} | T {t: symbol, u: number} | Z {} .type P = [s: S, k: number]
        .decl p(x: P)"""
    )
    numbers = pa.StructArray.from_arrays([pa.array([7, 8])], names=["n"])
    texts = pa.StructArray.from_arrays([pa.array(["a"]), pa.array([1])], names=["t", "u"])
    codes, places = pa.array([0, 1, 0, 2, 2], pa.int8()), pa.array([1, 0, 0, 0, 0], pa.int32())
    union = pa.UnionArray.from_dense(codes, places, [numbers, texts, pa.nulls(1)], ["N", "T", "Z"])
    column = pa.StructArray.from_arrays(
        [union, pa.array([1, 2, 3, 4, 5])], names=["s", "k"], mask=pa.array([False] * 4 + [True])
    )
    db.apply(insert={"p": pa.table({"x": column})})
    n, t = Branch("N", (8,)), Branch("T", ("a", 1))
    assert db["p"].rows() == [(None,), ((Branch("N", (7,)), 3),), ((n, 1),), ((t, 2),), ((Branch("Z"), 4),)]


@dataclass(frozen=True)
class Circle:
    r: float


class Point(NamedTuple):
    pass


class Pair(NamedTuple):
    a: int
    b: str


@dataclass
class Corner:
    b: str
    a: int


def test_classes_are_records_and_branches() -> None:
    db = database()
    db.apply(insert={"p": [(1, (Pair(1, "x"), 1.5), Circle(1.0)), (2, [None, 2.0], Point())]})
    assert db["p"].rows() == ROWS[:2]
    db.apply(erase={"p": [(1, (Corner("x", 1), 1.5), Circle(1.0))]})
    assert db["p"].rows() == ROWS[1:2]
    with pytest.raises(DataError, match="is a Pair, Shape expected"):
        db.apply(insert={"p": [(1, None, Pair(1, "x"))]})


def test_bad_structs_are_refused() -> None:
    for value, reason in [
        ({"branch": "Square"}, "Shape has no branch Square"),
        ({"branch": "Circle"}, r"Circle has 1 field, not 0"),
        ({"branch": None, "Circle": {"r": 1.0}}, "Shape expected"),
        ({"branch": "Circle", "Circle": {"x": 1.0}}, "Shape expected"),
    ]:
        with pytest.raises(DataError, match=reason):
            database().apply(insert={"p": pa.table({"k": [1], "l": pa.array([None], LINE), "s": [value]})})


def test_columns_of_texts_and_of_structs() -> None:
    db = database()
    db.apply(insert={"p": ROWS})
    structs = pa.table(
        {
            "k": [1, 2, 3],
            "l": [{"from": {"a": 1, "b": "x"}, "length": 1.5}, {"from": None, "length": 2.0}, None],
            "s": ["$Circle(1)", "$Point", "$Point"],
        }
    )
    third = database()
    third.apply(insert={"p": structs})
    assert third["p"].rows() == [*ROWS[:2], (3, None, Branch("Point"))]
    third.apply(insert={"p": third["p"].to_arrow().slice(0, 0)})
    frame = db["p"].to_pandas()
    fourth = database()
    fourth.apply(insert={"p": frame})
    assert fourth["p"].rows() == ROWS


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ((1, (1, 2), Branch("Point")), "column l: 1 is an int, Pair expected"),
        ((1, ((1, "a"),), Branch("Point")), "column l: Line has 2 fields, not 1"),
        ((1, ((1, 2), 1.0), Branch("Point")), "column l: 2 is an int, string expected"),
        ((1, None, None), "column s: is null, Shape expected"),
        ((1, None, Branch("Square")), "column s: Shape has no branch Square"),
        ((1, None, Branch("Circle")), r"column s: \$Circle has 1 field, not 0"),
        ((1, None, "$Circle"), r"column s: \$Circle needs 1 argument"),
        ((1, "[[1, a]", Branch("Point")), "column l: `,` expected"),
        ((1, 5, Branch("Point")), "column l: 5 is an int, Line expected"),
    ],
)
def test_bad_values_are_refused_with_their_reason(row: tuple[object, ...], reason: str) -> None:
    db = database()
    with pytest.raises(DataError, match=reason):
        db.apply(insert={"p": [row]})
    assert db["p"].rows() == [] and len(db.store.dictionary.records) == 0


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("file", "p.csv"),
        ("json", "p.json"),
        ("jsonfile", "q.json"),
        ("parquet", "p.parquet"),
        ("arrow", "p.arrow"),
    ],
)
def test_files_are_read_again(tmp_path: Path, kind: str, name: str) -> None:
    """Strings in text files have no quotes, so only plain ones."""
    facts = [fact for fact in map(_fact, ROWS) if kind != "file" or "say" not in fact]
    source = tmp_path / "write.dl"
    source.write_text(f'{TYPES}\n{" ".join(facts)}\n.output p(IO={kind}, filename="{name}")\n')
    written = run_program(source, tmp_path, tmp_path)
    source.write_text(f'{TYPES}\n.input p(IO={kind}, filename="{name}")\n.output p(filename="again.csv")\n')
    read = run_program(source, tmp_path, tmp_path)
    assert not read.warnings
    assert read["p"].rows() == written["p"].rows() and len(read["p"]) == len(facts)


def _fact(row: tuple[object, ...]) -> str:
    from tests.oracle.domains import fact

    return f"{fact('p', row, False)}."


def test_text_files_are_those_of_souffle(tmp_path: Path) -> None:
    good = "1\t[[1, x y], 2]\t$Polygon([[1, a], nil])\n2\tnil\t$Point\n"
    (tmp_path / "p.facts").write_text(f"{good}3\t[nil\t$Point\n")
    source = tmp_path / "p.dl"
    source.write_text(f"{TYPES}\n.input p\n.output p\n")
    database = run_program(source, tmp_path, tmp_path)
    text = (tmp_path / "p.csv").read_text()
    assert text == good
    assert "p.facts:3: warning: row rejected: l: " in database.warnings[0]


@pytest.mark.parametrize("form", ["IO=csv", "rfc4180=true", "IO=sqlite", "IO=json"])
def test_forms_with_quotes_keep_every_record(tmp_path: Path, form: str) -> None:
    written = tmp_path / "write.dl"
    written.write_text(
        TYPES + f'.decl q(s: Shape)\nq(s) :- p(_, _, s).\np(9, [[1, "a, \\"b\\"]\\n"], 0.5], $Point).\n'
        'p(7, nil, $Polygon([[1, "a)"], nil])).\n'
        f'.output p({form}, filename="p.f")\n.output q({form}, filename="q.f")\n'
    )
    run_program(written, out=tmp_path)
    again = tmp_path / "read.dl"
    given = f'.decl q(s: Shape)\n.input p({form}, filename="p.f")\n.input q({form}, filename="q.f")\n'
    again.write_text(TYPES + given)
    first, second = dlog.Database(written), dlog.Database(again, facts=tmp_path)
    assert second["p"].rows() == first["p"].rows() and len(second["p"]) == 2
    assert second["q"].rows() == first["q"].rows() and not second.warnings


PAIRS = st.none() | st.tuples(
    st.integers(-(2**63), 2**63 - 1), st.text(st.characters(exclude_categories=["Cs"]))
)
LINES = st.none() | st.tuples(PAIRS, st.floats(allow_nan=False))
CORNERS = st.recursive(st.none(), lambda others: st.tuples(PAIRS, others), max_leaves=3)
SHAPES = st.one_of(
    st.just(Branch("Point")),
    st.floats(allow_nan=False).map(lambda r: Branch("Circle", (r,))),
    CORNERS.map(lambda corners: Branch("Polygon", (corners,))),
)


@relaxed(60)
@given(
    st.lists(st.tuples(st.integers(0, 9), LINES, SHAPES), max_size=6), st.sampled_from(["dense", "sparse"])
)
def test_random_records_are_read_again(rows: list[tuple[Any, ...]], mode: str) -> None:
    db, structs, unions, file = database(), database(), database(), io.BytesIO()
    db.apply(insert={"p": rows})
    table = db["p"].to_arrow()
    structs.apply(insert={"p": table})
    parquet.write_table(table, file)
    structs.apply(erase={"p": parquet.read_table(file).slice(0, 1)})
    union = as_union(table.column("s").combine_chunks(), mode) if len(table) else table.column("s")
    unions.apply(insert={"p": table.set_column(2, "s", union).slice(1)})
    assert structs["p"].rows() == unions["p"].rows() == db["p"].rows()[1:]
