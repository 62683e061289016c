"""Explanations of a few programs, whole: what a user reads must not change by accident."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.evaluate import column_orders
from tests.examples import relaxed
from tests.oracle.programs import ALL, programs

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
    reported = (
        dlog.Database(source=RULES[name] + EDGES, evaluated=False)
        .explain()
        .partition("under transactions")[0]
    )
    lines: list[str] = []
    skipped = False
    for line in reported.splitlines():
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


BEHIND = {
    "a negation behind a disjunction": "n[v] = r <- agg<<r = count()>> (g(v) ; h(v)), !k(v).",
    "a comparison behind a disjunction": "n[v] = r <- agg<<r = sum(w)>> (e(v, w) ; e(w, v)), g(u), v < u.",
    "a negation behind a computed text": 's(x) -> string(x).  t(y) <- s(x), y = cat(x, "a"), !s(y).',
    "an atom behind a computed text": 's(x) -> string(x).  t(y) <- s(x), y = cat(x, "a"), s(y).',
    "an atom behind a range": "t(x, y) <- g(x), y = range(0, x), h(y).",
}


@pytest.mark.parametrize("name", BEHIND)
def test_later_stages_are_planned_with_the_variables_of_earlier_ones(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where column orders are chosen beforehand, as for large relations."""
    source = 'g(1). g(4). h(2). k(3). e(1, 2). e(2, 1). s("a").' + BEHIND[name]
    if "string" not in source:
        source = source.replace('s("a").', "")
    db = dlog.Database(source=source)
    assert "key order" in db.explain()
    monkeypatch.setattr(column_orders, "LARGE", 1)
    again = dlog.Database(source=source)
    again.apply(insert={"g": [(7,)]})
    again.verify()


@relaxed(40)
@given(programs(ALL, derived=4), st.sampled_from((None, "trace", "trace-exact", "views", "multilevel")))
def test_every_program_is_explained(text: str, strategy: str | None) -> None:
    """With nothing evaluated, and without an error."""
    db = dlog.Database(source=text, evaluated=False, strategy=strategy)
    reported = db.explain()
    assert ("stratum 1: " in reported) == any(stratum.rules for stratum in db.program.strata)


def test_explanation_names_all_sums_that_aggregates_store() -> None:
    """A variance needs the sum of squares, too."""
    source = """
        item(g, x, y) -> string(g), int(x), float(y).
        total[g] = s <- agg<<s = sum(x)>> item(g, x, _).
        spread[g] = v <- agg<<v = variance(x)>> item(g, x, _).
        wide[g] = d <- agg<<d = stddev_pop(y)>> item(g, _, y).
    """
    explained = dlog.Database(source=source).explain()
    lines = [line for line in explained.splitlines() if "stores for each group" in line]
    stored = [line.partition(" and ")[2] for line in lines]
    assert stored[:2] == ["the sum for s = sum(x)", "the sums of values and of squares for v = variance(x)"]
    assert "the exact float sums of values and of squares for d = stddev_pop(y)" in explained
