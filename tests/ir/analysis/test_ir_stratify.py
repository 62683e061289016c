"""Strata, cycles, and recursive min and max."""

from __future__ import annotations

import pytest

import dlog
from tests.ir.helpers import check, messages
from tests.oracle.naive import evaluate

ROADS = (
    'road(x, y, w) -> string(x), string(y), int(w). road("a", "b", 5). road("a", "c", 1). road("c", "b", 2). '
)
ROADS += 'road("b", "a", 1). start(x) -> string(x). start("a"). '


def test_strata_come_after_what_they_need() -> None:
    program = check("a(x) <- b(x), !c(x). b(x) <- g(x). c(x) <- d(x). d(x) <- c(x), g(x). c(1).")
    order = {name: i for i, s in enumerate(program.strata) for name in s.predicates}
    assert order["a"] > order["b"] and order["a"] > order["c"] == order["d"]
    assert [s.recursive for s in program.strata if "c" in s.predicates] == [True]


def test_heads_in_different_strata_are_split() -> None:
    """Each stratum has the rule with its own heads, quantified again."""
    program = check("a(x), b(x, y) <- e(x, y). a(y) <- a(x), b(x, y).")
    parts = {str(r) for s in program.strata for r in s.rules}
    assert "b(x, y) <- e(x, y)." in parts and "a(x) <- exists y . e(x, y)." in parts


def test_recursive_aggregations_have_one_head() -> None:
    text = (
        ROADS
        + """
        dist[x] = 0 <- start(x).
        dist[y] = d, seen(y) <- agg<<d = min(e)>> dist[x] = a, road(x, y, w), e = a + w, !blocked(y).
        blocked(x) <- start(x), road(x, x, _).
        dist[x] = d <- seen(x), d = 1000.
    """
    )
    program = check(text)
    stratum = next(s for s in program.strata if "dist" in s.predicates)
    assert set(stratum.predicates) == {"dist", "seen"} and dict(stratum.combine) == {"dist": "min"}
    assert all(len(r.heads) == 1 for r in stratum.rules if r.aggregates)
    assert any(str(r).startswith("seen(y) <- exists") for r in stratum.rules)
    assert evaluate(program)["dist"] == {("a", 0), ("b", 3), ("c", 1)}


# Recursive min and max


@pytest.mark.parametrize(
    "rule",
    [
        "dist[y] = d <- agg<<d = min(e)>> dist[x] = a, road(x, y, w), e = a + w.",
        "dist[y] = d <- agg<<d = min(e)>> road(x, y, w), e = w + a, dist[x] = a.",
        "dist[y] = d <- agg<<d = min(a + w)>> dist[x] = a, road(x, y, w).",
        "dist[y] = d <- agg<<d = min(e)>> dist[x] = a, b = a, road(x, y, w), e = b + w, a < 100, 100 > e.",
        "dist[y] = e <- dist[x] = a, road(x, y, w), e = a + w. "
        "dist[x] = d <- agg<<d = min(z)>> start(x), z = 0.",
        "dist[y] = d <- agg<<d = min(e)>> (start(y), e = 0 ; dist[x] = a, road(x, y, w), e = a + w).",
        "dist[y] = d <- agg<<d = min(e)>> near[x, y] = e. "
        "near[x, y] = d <- agg<<d = min(e)>> dist[x] = a, road(x, y, w), e = a + w.",
        "dist[y] = d <- agg<<d = min(e)>> reached(x), dist[x] = a, road(x, y, w), e = a + w. "
        "reached(x) <- dist[x] = _.",
    ],
)
def test_shortest_paths_in_many_ways(rule: str) -> None:
    program = check(f"{ROADS} dist[x] = 0 <- start(x). {rule}")
    assert evaluate(program)["dist"] == {("a", 0), ("b", 3), ("c", 1)}
    assert next(s for s in program.strata if "dist" in s.predicates).combine["dist"] == "min"


def test_values_without_keys() -> None:
    text = "best[] = 9. best[] = m <- agg<<m = min(v)>> best[] = w, e(k, v), k >= w."
    facts = "e(9, 7). e(7, 8). e(7, 3). e(3, 4)."
    assert evaluate(check(facts + text))["best"] == {(3,)}


def test_facts_of_a_combined_head_are_candidates() -> None:
    """Two facts for one key are not a conflict there: the better one counts."""
    text = (
        ROADS + 'dist["a"] = 4. dist["a"] = 0. dist[y] = d <- agg<<d = min(e)>> dist[x] = a, road(x, y, w), '
    )
    assert evaluate(check(text + "e = a + w."))["dist"] == {("a", 0), ("b", 3), ("c", 1)}


def test_widest_paths() -> None:
    text = 'width["a"] = 99. width[y] = d <- agg<<d = max(e)>> width[x] = a, road(x, y, w), e = min(a, w).'
    assert evaluate(check(ROADS + text))["width"] == {("a", 99), ("b", 5), ("c", 1)}


@pytest.mark.parametrize(
    "flow",
    [
        "e = w - a",  # turns the order around
        "e = a * w",  # the sign of w is not known
        "e = a * -1",
        "e = a % 7",
        "e = a + w, a != 3",  # what holds now may not hold for a better value
        "e = a + w, a > 3",
        "e = a + w, a = w",
        "e = a + w, b = a + 1, b = w",
        "e = a + w, road(_, _, a)",
        "e = a + w, !road(_, _, a)",
        "e = a + w, (a > 3 ; w > 3)",
        "e = a + w, dist[y] = a",
        "e = a + w, dist[y] = 3",
        "e = a + w, n = count : { road(_, _, a) }, n > 0",
    ],
)
def test_flows_that_are_not_monotone(flow: str) -> None:
    rule = f"dist[y] = d <- agg<<d = min(e)>> dist[x] = a, road(x, y, w), {flow}."
    found = messages(f"{ROADS} dist[x] = 0 <- start(x). {rule}")
    assert len(found) == 1 and ("not monotone" in found[0] or "depends on its own count" in found[0]), found


@pytest.mark.parametrize(
    "flow", ["e = a * 2", "e = a / 2", "e = a - w", "e = max(a, w)", "e = a + a, a <= w"]
)
def test_flows_that_are_monotone(flow: str) -> None:
    rule = f"dist[y] = d <- agg<<d = min(e)>> dist[x] = a, road(x, y, w), {flow}."
    assert messages(f"{ROADS} dist[x] = 0 <- start(x). {rule}") == []


# Cycles that are not allowed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p(x) <- g(x), !p(x).", "p depends on its own negation"),
        ("p(x) <- g(x), !q(x). q(x) <- p(x).", "p depends on its own negation"),
        ("p(x) <- g(x), !(e(x, y), p(y)).", "p depends on its own negation"),
        ("p(x, n) <- agg<<n = count()>> p(x, y), e(x, y).", "p depends on its own count"),
        ("p(x, n) <- agg<<n = sum(y)>> q(x, y). q(x, y) <- p(x, y).", "p depends on its own sum"),
        (
            "p[x] = n <- agg<<n = count()>> p[x] = y, e(x, y).",
            "the recursive count is not monotone: the value y is looked up in e",
        ),
        (
            "p[x] = n <- agg<<n = sum(y)>> q(x, y), y > 0. q(x, y) <- p[x] = y.",
            "the recursive sum is not monotone: y, which grows, becomes a key of q",
        ),
        ("p(x) <- g(x), n = count : { p(x) }, n > 0.", None),
        (
            "p(x, n) <- g(x), n = max y : { p(x, y) }.",
            "the recursive max is not monotone: the value n becomes a key of p",
        ),
        ("p[x] = n, q[x] = k <- agg<<n = min(y), k = sum(y)>> p[x] = y.", None),
        ("p[x] = k, q[x] = n <- agg<<n = min(y), k = sum(y)>> p[x] = y.", None),
    ],
)
def test_cycles(text: str, message: str | None) -> None:
    assert messages(text) == ([message] if message else [])


def test_a_cycle_is_shown_step_by_step() -> None:
    text = "g(1).\na(x) <- g(x), !b(x).\nb(x) <- c(x).\nc(x) <- d(x).\nd(x) <- a(x).\n"
    with pytest.raises(dlog.SourceError) as caught:
        dlog.check(text)
    assert caught.value.line == 2
    steps = "a needs not b (line 2), b needs c (line 3), c needs d (line 4), d needs a (line 5)"
    assert caught.value.help == f"the cycle: {steps}"
