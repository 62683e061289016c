"""The shipped workload (`programs/finance`, `programs/tpch`): what levels of maps maintain is what DuckDB
gives, along streams that insert and delete and end with nothing, with all options; and from shipped files.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from dlog import m3
from dlog.m3.runtime.runtime import Runtime
from dlog.m3.runtime.streams import Reader, run_files
from dlog.m3.syntax import ast
from dlog.views.levels.explain import explain
from dlog.views.levels.export import level_text
from dlog.views.levels.program import Column, Options, levels
from dlog.views.levels.sampled import sampled
from dlog.views.m3.export import target
from dlog.views.nested import NestedQuery
from dlog.views.sql.files import read_sql
from tests.test_errors import command
from tests.views.levels.workload import QUERIES, Workload, batches, expected

SIZES = (1, 7, 100, 1, 100, 7, 1000)
ROWS = Options(batch=False)
INPUTS = Options(inputs=True, batch=False)
ASKED = [
    name for name in QUERIES if name.startswith("finance") or name in ("tpch/q11a", "tpch/q17a", "tpch/q22a")
]
A5 = [*ASKED, "tpch/q4", "tpch/q11", "tpch/q13"]


@pytest.mark.parametrize("options", [Options(), ROWS], ids=["batches", "rows"])
@pytest.mark.parametrize("name", QUERIES)
def test_oracle_duckdb_streams(name: str, options: Options) -> None:
    """Batches of 1, 7, 100 and 1,000 rows, shuffled."""
    follow(Workload(name, options), SIZES, seed=1)


@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("name", QUERIES)
def test_oracle_duckdb_depths(name: str, depth: int) -> None:
    follow(Workload(name, Options(depth=depth)), (7, 1000, 1, 100), seed=2)


@pytest.mark.parametrize("name", ASKED)
def test_oracle_duckdb_inputs(name: str) -> None:
    follow(Workload(name, INPUTS), (1, 100, 7, 1000), seed=3)


def follow(workload: Workload, sizes: tuple[int, ...], seed: int, rows: int = 500, checks: int = 12) -> None:
    """Events in batches of these sizes, one after the other; compared at most so often, and at the end."""
    workload.check()
    given = list(batches(workload.stream(rows, seed), sizes, random.Random(seed)))
    step = max(1, len(given) // checks)
    for number, batch in enumerate(given, 1):
        workload.apply(batch)
        if number % step == 0 or number == len(given):
            workload.check()
    workload.check_empty()


@pytest.mark.parametrize("name", ["tpch/q2", "tpch/q15", "tpch/q18"])
def test_what_equals_a_parameter_is_looked_up(name: str) -> None:
    """No condition compares all entries of a map with a parameter: a row would cost O(entries)."""
    for trigger in levels(nested(name), ROWS).m3.triggers:
        equalities = [n for n in trigger.walk() if isinstance(n, ast.Comparison) and n.op == "="]
        assert not [n for n in equalities if {type(n.left), type(n.right)} == {ast.Variable}]


@pytest.mark.fuzz
@pytest.mark.parametrize("size", [1, 7, 100, 1000])
@pytest.mark.parametrize("name", QUERIES)
def test_oracle_duckdb_long_streams(name: str, size: int) -> None:
    """After every percent, with all options."""
    for options in (Options(), ROWS, Options(depth=1), INPUTS, Options(depth=0)):
        follow(Workload(name, options), (size,), random.randrange(1 << 30), rows=700, checks=100)


@pytest.mark.parametrize(
    ("name", "consumer"),
    [(name, "fivm") for name in QUERIES] + [(name, "a5") for name in A5],
)
def test_oracle_duckdb_shipped(name: str, consumer: str) -> None:
    """The program that `dlog m3 --levels` writes, run over the shipped files."""
    query = nested(name)
    found, text = level_text(query, target(consumer), Options())
    check_shipped(name, text, found.columns)


def check_shipped(name: str, text: str, columns: Sequence[Column]) -> None:
    """The text of a program that maintains a shipped query gives what DuckDB gave over the shipped files."""
    runtime = Runtime(m3.check(m3.parse(text)))
    run_files(runtime, Reader(QUERIES[name].parent), 10)
    results = {query: table.to_pylist() for query, table in runtime.results()}
    wanted = expected(name)
    assert any(cell not in ("0", "0.0") for row in wanted for cell in row), "there is nothing to compare"
    groups = {place: column.group for place, column in enumerate(columns) if column.group is not None}
    for place, column in enumerate(columns):
        if column.group is None:
            rows = results[column.value]
            mine = {tuple(str(row[g]) for g in groups.values()): float(row["value"]) for row in rows}
            theirs = {tuple(row[i] for i in groups): float(row[place]) for row in wanted}
            assert {k for k, v in theirs.items() if v} <= mine.keys() <= theirs.keys()
            assert all(math.isclose(mine.get(k, 0.0), v, rel_tol=1e-9) for k, v in theirs.items())


@pytest.mark.parametrize(
    ("name", "consumer"), [("tpch/ssb4", "fivm"), ("tpch/q3", "a5"), ("finance/axf", "a5")]
)
def test_oracle_duckdb_shipped_by_chosen_maps(name: str, consumer: str) -> None:
    """The program that `dlog m3 --levels --chosen` writes."""
    query = nested(name)
    known = sampled(query.sources, (QUERIES[name].parent,)).known
    found = level_text(query, target(consumer), Options(statistics=known))[0]
    said, errors, status = command("m3", str(QUERIES[name]), "--levels", "--chosen", "--for", consumer)
    assert (errors, status) == ("", 0)
    check_shipped(name, said, found.columns)
    every = command("m3", str(QUERIES[name]), "--levels", "--for", consumer)[0]
    assert (said.count("DECLARE MAP") < every.count("DECLARE MAP")) == (name != "finance/axf")


def test_chosen_maps_of_a_command() -> None:
    """`--chosen` is enough for levels of maps, and goes with no depth; rules have chosen maps, too."""
    query, rule = "programs/tpch/ssb4.sql", "programs/finance/vwap.dl"
    assert command("m3", query, "--chosen") == command("m3", query, "--levels", "--chosen")
    assert command("m3", rule, "vwap", "--chosen")[2] == 0
    said = command("explain", query, "--chosen")[0]
    (maps,) = [line.split() for line in said.splitlines() if line.startswith("  maps ")]
    assert said.count("\n  level ") == int(maps[-1]) < int(maps[-2])
    for option in (("--depth", "1"), ("--inputs", "--for", "a5")):
        what = "depth" if option[0] == "--depth" else "input variables"
        said, errors, status = command("m3", query, "--chosen", *option)
        assert (said, status) == ("", 1)
        assert f"maps that are chosen by cost have no {what}" in errors and "help: leave it out" in errors


def nested(name: str) -> NestedQuery:
    query = read_sql(QUERIES[name], levels=True)
    assert isinstance(query, NestedQuery)
    return query


@pytest.mark.parametrize("name", ["finance/mst", "finance/psp", "tpch/q18a", "tpch/q22"])
def test_every_map_is_explained(name: str) -> None:
    """Its definition, what it contains at first, and each statement that changes it, with the reason."""
    found = levels(nested(name))
    text = explain(found)
    for report in found.program.maps:
        assert f"\n{report.name}[{', '.join(report.keys)}] := " in text
        assert report.initial.reason in text
        assert all(step.reason in text for step in report.steps)
    assert text.count(" since ") >= sum(len(report.steps) for report in found.program.maps)
