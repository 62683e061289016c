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


@pytest.mark.plan
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


@pytest.mark.parametrize(
    ("why", "text"),
    [
        ("r has a limited size", "r(x, y) <- e(x, y).  r(x, z) <- r(x, y), e(y, z).  .limitsize r(n=9)\n"),
        (
            "keys of half are rounded",
            "d(x) -> decimal[10, 1](x).  half(x, y) -> decimal[10, 1](x), decimal[10, 1](y)."
            "  half(x, x) <- d(x).  half(x, z) <- half(x, y), z = y * 0.5, y > 0.1.",
        ),
        (
            "s combines strings",
            "s[x] = t -> int(x), string(t).  s[y] = m <- agg<<m = min(t)>> s[x] = t, e(x, y).",
        ),
    ],
)
def test_recursions_that_are_evaluated_again_say_why(why: str, text: str) -> None:
    """They still follow every transaction."""
    db = dlog.Database(source="e(x, y) -> int(x), int(y).  e(1, 2).  " + text)
    assert f"maintained from scratch whenever it is touched, because {why}\n" in db.explain()
    db.apply(insert={"e": [(2, 3)]})
    db.verify()
