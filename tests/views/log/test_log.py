"""`dlog m3 --log FILE`: what was decided at every stage, and why, also of runs that fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given

from dlog.views.orders.considered import considered
from dlog.views.orders.orders import find_order
from dlog.views.tree.build import NEEDED, PATHS, materialised_because, view_tree
from tests.examples import relaxed
from tests.test_errors import ROOT, command
from tests.views.random_queries import Case, cases
from tests.views.sql.test_sql_files import QUERIES

SECTIONS = [
    "Run",
    "Query",
    "Variable order",
    "View tree",
    "Materialised views",
    "Optimiser",
    "Program",
    "End",
]


def logged(tmp_path: Path, *arguments: str) -> str:
    path = tmp_path / "run.log"
    assert command("m3", *arguments, "--log", str(path), "-o", str(tmp_path / "out.m3"))[1:] == ("", 0)
    return path.read_text(encoding="utf-8")


def section(text: str, title: str) -> str:
    found = re.search(rf"^== {title}[^\n]*\n(.*?)(?=^== |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("name", QUERIES)
def test_every_stage_has_a_section(name: str, tmp_path: Path) -> None:
    text = logged(tmp_path, f"programs/sql/{name}.sql", "--for", "fivm")
    assert re.findall(r"^== ([A-Z][a-z]+(?: [a-z]+)?)", text, re.MULTILINE) == SECTIONS
    assert (ROOT / "programs" / "sql" / f"{name}.sql").exists()


def test_levels_of_maps_have_their_own_sections(tmp_path: Path) -> None:
    query = tmp_path / "query.sql"
    query.write_text(
        "CREATE STREAM R(a int) FROM FILE 'r.tbl' LINE DELIMITED CSV (delimiter := '|');"
        "SELECT SUM(a) AS total FROM R WHERE 2 * a > (SELECT SUM(a) FROM R);"
    )
    text = logged(tmp_path, str(query), "--for", "fivm")
    assert re.findall(r"^== ([A-Z][a-z]+(?: [a-z]+)*)", text, re.MULTILINE) == [
        "Run", "Query", "Levels of maps", "Program", "End",
    ]  # fmt: skip
    assert "levels of maps: it has a query in a query" in section(text, "Query")
    assert re.search(r"rows of R: \+?:?= since", section(text, "Levels of maps"))
    assert "relation R is REL_R" in section(text, "Program")


def test_alternatives_have_costs(tmp_path: Path) -> None:
    text = logged(tmp_path, "programs/sql/segments.sql")
    order = section(text, "Variable order")
    assert "free variables on top: 252,600; anywhere: 151,600" in order
    assert "   below segment: custkey (151,400)\n     instead of orderkey (243,200)\n" in order
    given = section(
        logged(tmp_path, "programs/sql/update_r.sql", "--order", "programs/sql/update_r.dtree"),
        "Variable order",
    )
    assert "given by programs/sql/update_r.dtree:" in given and "without it, dlog would choose:" in given


def test_choices_have_reasons(tmp_path: Path) -> None:
    text = logged(tmp_path, "programs/sql/housing_lifted.sql", "--batch")
    views = section(text, "Materialised views")
    assert "HOUSE" in views and "yes, as it is the result" in views
    assert "no, as all changes of its parent come through it" in views
    steps = section(text, "Optimiser")
    assert "chain compressed: h2 also sums out h3, h4" in steps
    assert "with the functions (h2 + 1), h3" in steps
    assert "inlined, as it is read once" in steps
    assert "DELTA_AGG_VIEW_h2, as it is read several times" in steps
    plain = section(logged(tmp_path, "programs/sql/housing_lifted.sql", "--batch", "--plain"), "Optimiser")
    assert "off: every view and every change is a map" in plain and "chain compressed" not in plain
    assert "indicator ∃R[a, b] bounds the view at c" in logged(tmp_path, "programs/sql/triangles.sql")
    assert "map AGG_VIEW_A is sum" in logged(tmp_path, "programs/sql/update_r.sql")


def test_runs_that_fail_are_logged(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    out = command("m3", "programs/sql/errors/left_join.sql", "--log", str(path))
    assert out[2] == 1 and "LEFT JOIN is not supported" in section(path.read_text(encoding="utf-8"), "Error")
    command("m3", "programs/sql/update_r_ring.sql", "--for", "a5", "--log", str(path))
    text = path.read_text(encoding="utf-8")
    assert "help: choose dbtoaster or fivm" in section(text, "Error")
    assert "a5 has no user-defined types" in section(text, "Error") and "chain compressed" in text
    said = command("m3", "programs/sql/hybrid.sql", "--log", str(tmp_path / "none" / "x.log"))[1]
    assert said.startswith("error: cannot write")


@relaxed(60)
@given(case=cases() | cases(cyclic=True))
def test_invariant_the_log_says_what_was_done(case: Case) -> None:
    """The choices that are listed are those of the order; every materialised view has a reason, no other."""
    order = find_order(case.query)
    chosen: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for part in considered(case.query):
        for choice in part.choices:
            costs = [c.cost for c in choice.candidates if c.cost is not None]
            assert choice.chosen.cost == min(costs)
            chosen.setdefault(choice.above, []).append(choice.chosen.variables)
    for above, below in chosen.items():
        for variables in below:
            assert order.path(variables[-1]) == (*above, *variables)
    for compress, keep in ((True, NEEDED), (False, PATHS)):
        tree = view_tree(case.query, order, compress, keep)
        for view, reasons in materialised_because(tree, case.query, keep):
            assert bool(reasons) == view.materialised


def test_the_example_in_the_documents_is_right(tmp_path: Path) -> None:
    document = (ROOT / "docs" / "views.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```text\n(.*?)^```", document, re.DOTALL | re.MULTILINE)
    text = logged(tmp_path, "programs/sql/segments.sql", "--for", "fivm")
    lines = [line for line in block.splitlines() if line.strip() and line.strip() != "..."]
    assert len(lines) > 10
    for line in lines:
        assert line in text, line
