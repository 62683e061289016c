"""Records from Python, Arrow and files, and back."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import dlog
from dlog import Branch
from dlog.engine.run import run_program
from dlog.errors import DataError

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


def test_arrow_tables_of_texts_and_of_structs() -> None:
    db, other = database(), database()
    db.apply(insert={"p": ROWS})
    table = db["p"].to_arrow()
    assert table.column("l").to_pylist() == ['[[1, "x"], 1.5]', "[nil, 2.0]", "nil", '[[0, ""], -0.25]']
    other.apply(insert={"p": table})
    assert other["p"].rows() == ROWS
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
        ((1, None, Branch("Circle")), r"column s: \$Circle has 1 fields, not 0"),
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
    [("file", "p.csv"), ("json", "p.json"), ("jsonfile", "q.json"), ("parquet", "p.parquet")],
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
