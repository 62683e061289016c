"""The shipped queries in SQL: what `dlog m3` writes for them is accepted by `m3-check` and run by `m3-run` to
what DuckDB gave, in both dialects, for batches and for single rows, along given orders and found ones.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dlog import m3
from dlog.errors import UnsupportedError
from dlog.m3.rings.registry import register_ring
from dlog.m3.rings.rings import FLOAT_RING
from dlog.m3.runtime.runtime import Runtime
from dlog.m3.runtime.streams import Reader, run_files
from dlog.views.m3.export import export, read_query, read_tree
from dlog.views.picture.notation import explain
from dlog.views.picture.picture import draw
from tests.test_errors import ROOT, command
from tests.views.picture.test_pictures import check_picture

FOLDER = ROOT / "programs" / "sql"
QUERIES = {path.stem: path for path in sorted(FOLDER.glob("*.sql"))}
FILES = sorted(FOLDER.glob("*.dtree"))
ORDERS = {name: next((f for f in FILES if name.startswith(f.stem)), None) for name in QUERIES}
NUMBERS = [name for name in QUERIES if name != "update_r_ring"]
WAYS = (
    {"consumer": "fivm"},
    {"consumer": "dbtoaster"},
    {"consumer": "dbtoaster", "batch": True},
    {"batch": True, "optimise": False},
    {"consumer": "a5"},
)
RULES = (
    ("order_book", "spread", ("spread", "pairs")),
    ("open_orders", "revenue", ("revenue",)),
    ("open_orders", "sales", ("sales", "lines", "mean_discount")),
)


def results(text: str, folder: Path) -> dict[str, dict[tuple[str, ...], float]]:
    """Every query of a program: keys, as text, and values."""
    runtime = Runtime(m3.check(m3.parse(text)))
    run_files(runtime, Reader(folder), 10)
    found = {}
    for name, table in runtime.results():
        rows = [list(row.values()) for row in table.to_pylist()]
        values = {tuple(map(str, row[:-1])): float(row[-1]) for row in rows}
        found[name.removeprefix("m_")] = values  # which C++ names of one letter have
    return found


def expected(name: str, keys: int) -> list[dict[tuple[str, ...], float]]:
    """What DuckDB gave: for each aggregate, the values by key."""
    with open(FOLDER / "expected" / f"{name}.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="|"))
    return [{tuple(row[:keys]): float(row[at]) for row in rows} for at in range(keys, len(rows[0]))]


def same(found: dict[tuple[str, ...], float], wanted: dict[tuple[str, ...], float]) -> None:
    """A group of sum 0 is not in a map of sums."""
    assert {key for key, value in wanted.items() if value} <= set(found) <= set(wanted)
    for key, value in wanted.items():
        assert math.isclose(found.get(key, 0.0), value, rel_tol=1e-12), key


@pytest.mark.parametrize("name", NUMBERS)
def test_oracle_duckdb(name: str) -> None:
    query = read_query(QUERIES[name])
    wanted = expected(name, len(query.free))
    shown = [aggregate.name for aggregate in query.aggregates if not aggregate.hidden]
    ways = [(ORDERS[name], way) for way in WAYS] + [(None, WAYS[0])] * (ORDERS[name] is not None)
    for order, way in ways:
        found = results(export(QUERIES[name], dtree=order, **way), FOLDER)  # type: ignore[arg-type]
        for aggregate, values in zip(shown, wanted, strict=True):
            same(found[aggregate], values)


@pytest.mark.parametrize(("program", "predicate", "outputs"), RULES, ids=[rule[1] for rule in RULES])
def test_oracle_duckdb_rules(program: str, predicate: str, outputs: tuple[str, ...]) -> None:
    """The same questions in rules."""
    path = ROOT / "programs" / f"{program}.dl"
    query = read_query(path, predicate, path.with_suffix("") / "facts")
    shown = [aggregate.name for aggregate in query.aggregates if not aggregate.hidden]
    for way in WAYS:
        text = export(path, predicate, facts=path.with_suffix("") / "facts", **way)  # type: ignore[arg-type]
        found = results(text, path.parent)
        for aggregate, output in zip(shown, outputs, strict=True):
            file = path.with_suffix("") / "expected" / f"{output}.csv"
            rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
            wanted = {tuple(row[:-1]): float(row[-1]) for row in rows}
            assert set(found[aggregate]) == set(wanted)
            for key, value in wanted.items():  # nine digits are written
                assert math.isclose(found[aggregate][key], value, rel_tol=1e-8), key


def test_ring_of_ones_own() -> None:
    """The running example over a ring that lifts numbers as they are gives what plain numbers give."""
    ring = FLOAT_RING
    for name in ("f_A", "f_B", "f_F", "f_D"):
        ring = ring.with_lift(name, lambda _, columns: FLOAT_RING.elements(columns[0], 0))
    register_ring("Ring", ring)
    text = export(QUERIES["update_r_ring"], dtree=FOLDER / "update_r.dtree", batch=True)
    assert "AGG_VIEW_C(Ring)[][v_a]" in text
    runtime = Runtime(m3.check(m3.parse(text)))
    run_files(runtime, Reader(FOLDER), 10)
    (_, table), *_ = runtime.results()
    assert table.to_pylist()[0]["value"] == pytest.approx(next(iter(expected("update_r", 0)[0].values())))


def test_ring_in_a5_is_reported_with_its_place() -> None:
    with pytest.raises(UnsupportedError) as found:
        export(QUERIES["update_r_ring"], consumer="a5")
    assert found.value.span is not None and found.value.span.text() == "Ring"


@pytest.mark.parametrize("name", QUERIES)
def test_pictures_of_shipped_queries(name: str) -> None:
    query = read_query(QUERIES[name])
    tree = read_tree(query, ORDERS[name])
    check_picture(draw(tree, name, query), len(list(tree.walk())))


def test_picture_of_many_variables() -> None:
    """Houses, each of the 27 variables with its own view."""
    tree = read_tree(read_query(QUERIES["housing"]), ORDERS["housing"], optimise=False)
    assert sum(not view.is_leaf for view in tree.walk()) == 27
    check_picture(draw(tree), 27 + 6)


def test_commands_draw_and_explain(tmp_path: Path) -> None:
    query, order = "programs/sql/hybrid.sql", "programs/sql/hybrid.dtree"
    picture, program = tmp_path / "tree.svg", tmp_path / "hybrid.m3"
    out = command("m3", query, "--order", order, "--batch", "--tree", str(picture), "-o", str(program))
    assert out == ("", "", 0)
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    assert command("m3-check", str(program)) == ("", "", 0)
    out, err, status = command("explain", query, "--order", order, "--tree", str(tmp_path / "tree.pdf"))
    assert (err, status) == ("", 0)
    assert out.splitlines()[0] == "V@A_{R,S,T,U}[]  materialised, changes with R"
    assert "δV@B_{R,S}[A] = ⊕_B (δV@C_R[A, B] ⊗ V@D_S[A, B])" in out
    assert (tmp_path / "tree.pdf").read_bytes().startswith(b"%PDF")
    rule = ("explain", "programs/order_book.dl", "spread", "-F", "programs/order_book/facts")
    out, err, status = command(*rule, "--svg", str(tmp_path / "rule.dot"))
    assert (err, status) == ("", 0) and (tmp_path / "rule.dot").read_text().startswith("digraph")


def test_definitions_say_what_each_aggregate_needs() -> None:
    query = read_query(QUERIES["segments"])
    text = explain(read_tree(query), query)
    assert (
        "LINEITEM[orderkey, line, price, discount, shipdate] ⊗ <price * (1 - discount), 1, discount>)" in text
    )
    assert text.endswith("where C = CUSTOMER, O = ORDERS, L = LINEITEM\n")
    query = read_query(QUERIES["order_book"])
    assert explain(read_tree(query), query).endswith("where b = BIDS, a = ASKS\n")


def test_commands_report_what_they_cannot_write(tmp_path: Path) -> None:
    query = "programs/sql/hybrid.sql"
    assert command("m3", query, "--tree", "x.png")[1].startswith("error: cannot draw into x.png\nhelp: name")
    said = command("m3", query, "-o", str(tmp_path / "none" / "x.m3"))[1]
    assert said.startswith("error: cannot write")
