"""Explanations of a few programs, whole: what a user reads must not change by accident."""

from __future__ import annotations

from pathlib import Path

import pytest

import dlog

EDGES = " ".join(f"edge({i}, {(7 * i + j) % 40})." for i in range(40) for j in range(3))
RULES = {
    "closure": "reach(x, y) <- edge(x, y).\nreach(x, z) <- reach(x, y), edge(y, z).\n",
    "paths": "paths[a] = n <- agg<<n = count()>> edge(a, b), edge(b, c), edge(c, d).\n",
    "triangles": "triangle(a, b, c) <- edge(a, b), edge(b, c), edge(a, c), !edge(c, a).\n",
    "texts": 'name(1, "a").  label(cat(cat(s, ":"), t)) <- name(x, s), name(y, t), s < t.\n',
    "one source": "reach(x, y) <- edge(x, y).\nreach(x, z) <- reach(x, y), edge(y, z).\n?- reach(0, y).\n",
}


@pytest.mark.parametrize("name", RULES)
def test_golden_explanation(name: str) -> None:
    expected = Path(__file__).parent / "explanations" / f"{name}.txt"
    assert shown(name) == expected.read_text()


def shown(name: str) -> str:
    """Without how changes are followed, which is the strategies' to tell."""
    told = (
        dlog.Database(source=RULES[name] + EDGES, evaluated=False)
        .explain()
        .partition("under transactions")[0]
    )
    lines: list[str] = []
    skipped = False
    for line in told.splitlines():
        skipped = line.startswith("  maintained by") or (skipped and line.startswith("    "))
        lines += [] if skipped else [line]
    return "".join(f"{line}\n" for line in lines)
