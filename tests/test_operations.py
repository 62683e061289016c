"""What docs/operations.md says about the operations of one row is what is counted, here with few rows."""

from __future__ import annotations

import pytest

from benchmarks.operations import CASES, SIZES, Case, operations
from tests.test_cli import ROOT

LINES = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8").splitlines()
COUNTED = SIZES[:2]


def documented(case: Case, strategy: str) -> list[int]:
    (line,) = [line for line in LINES if line.startswith(f"| {case.name} | `{strategy}` |")]
    return [int(cell.replace(",", "")) for cell in line.split("|")[3:-1]]


@pytest.mark.plan
@pytest.mark.parametrize("case", CASES, ids=[case.name.replace("`", "") for case in CASES])
def test_operations_are_as_documented(case: Case) -> None:
    """In all sizes; those of exact traces of a hub follow its contexts."""
    for strategy in case.strategies:
        found = documented(case, strategy)
        assert [operations(case, strategy, n) for n in COUNTED] == pytest.approx(found[:2], rel=0.1, abs=1)
        if strategy != "trace-exact":
            assert max(found) <= case.most
