"""Averages and quotients without rows, and by 0, are 0: in results, in M3 programs of both dialects, and for
rows that were deleted.  SQL has NULL there.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dlog.m3.runtime.runtime import Runtime
from dlog.m3.syntax.ast import A5, DBTOASTER
from dlog.m3.syntax.parse import parse
from dlog.views.m3.program import Style, m3_text
from dlog.views.orders.orders import find_order
from dlog.views.run.maintained import Maintained
from dlog.views.run.one_payload import OnePayload
from dlog.views.sql.files import parse_sql
from dlog.views.tree.build import view_tree
from tests.test_errors import command

SQL = "CREATE STREAM R(A int, B int) FROM FILE 'r.csv' LINE DELIMITED CSV(delimiter := '|');"
AVERAGE = f"{SQL} SELECT AVG(B) AS mean, SUM(A) / SUM(B) AS ratio FROM R;"
GROUPS = f"{SQL} SELECT A, AVG(B) AS mean, SUM(A) / SUM(B) AS ratio FROM R GROUP BY A;"


@pytest.mark.parametrize("kind", [Maintained, OnePayload])
def test_results(kind: type) -> None:
    kept = kind(parse_sql(AVERAGE))
    assert kept.result().to_pylist() == [{"mean": 0.0, "ratio": 0.0}]
    kept.apply("R", [(1, 3), (2, 5)])
    assert kept.result().to_pylist() == [{"mean": 4.0, "ratio": 3 / 8}]
    kept.apply("R", [(1, 3), (2, 5)], [-1, -1])
    assert kept.result().to_pylist() == [{"mean": 0.0, "ratio": 0.0}]
    kept.apply("R", [(1, 3), (2, -3)])
    assert kept.result().to_pylist() == [{"mean": 0.0, "ratio": 0.0}]


def test_groups() -> None:
    """A group whose divisor is 0 has 0; one without rows is not there."""
    kept = Maintained(parse_sql(GROUPS))
    assert kept.result().num_rows == 0
    kept.apply("R", [(1, 3), (1, -3), (2, 4)])
    rows = [{"A": 1, "mean": 0.0, "ratio": 0.0}, {"A": 2, "mean": 4.0, "ratio": 0.5}]
    assert kept.result().to_pylist() == rows
    kept.apply("R", [(1, 3), (1, -3)], [-1, -1])
    assert kept.result().to_pylist() == rows[1:]


@pytest.mark.parametrize(
    "style", [Style(), Style(batch=False), Style(dialect=A5, batch=False)], ids=["batch", "single", "a5"]
)
def test_programs(style: Style) -> None:
    query = parse_sql(AVERAGE)
    text = m3_text(query, view_tree(query, find_order(query)), style)
    runtime = Runtime(parse(text, dialect=style.dialect))
    for rows, signs in (([], []), ([(1, 3), (2, 5)], [1, 1]), ([(1, 3), (2, 5)], [-1, -1])):
        runtime.apply("R", rows, signs)
        found = [runtime[name]["value"].to_pylist() for name in ("mean", "ratio")]
        assert found == ([[4.0], [3 / 8]] if signs and signs[0] > 0 else [[0.0], [0.0]])


@pytest.mark.parametrize("dialect", [DBTOASTER, A5])
def test_commands(dialect: str, tmp_path: Path) -> None:
    """`dlog m3` and `dlog m3-run` over an empty file."""
    (tmp_path / "query.sql").write_text(AVERAGE, encoding="utf-8")
    (tmp_path / "r.csv").write_text("", encoding="utf-8")
    program = str(tmp_path / "query.m3")
    assert command("m3", str(tmp_path / "query.sql"), "--dialect", dialect, "-o", program)[2] == 0
    out, err, status = command("m3-run", program, "--dialect", dialect, "--format", "json")
    assert (err, status) == ("", 0)
    import json

    found = json.loads(out)
    assert found["mean"] == [{"value": 0.0}] and found["ratio"] == [{"value": 0.0}]
