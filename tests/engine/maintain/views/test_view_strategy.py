"""Aggregation rules kept by view trees in transactions: the answers of the other strategies, after every
commit and after those that are taken back.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.maintain.views.keep import ViewStrategy
from dlog.errors import DataError
from tests.examples import relaxed

PROGRAM = """
r(a, b) -> int(a), int(b). s(b, c) -> int(b), int(c). name(a, n) -> int(a), string(n).
price(a, p) -> int(a), decimal[9, 2](p).
far(x, z) <- r(x, y), s(y, z).
pairs[a] = x, many[a] = n <- agg<<x = sum(b * c), n = count()>> r(a, b), s(b, c).
whole[] = x   <- agg<<x = sum(b - c)>> r(_, b), s(b, c), b < 3.
loops[] = n   <- agg<<n = count()>> r(a, b), r(b, a).
named[n] = x  <- agg<<x = sum(b)>> name(a, n), r(a, b), s(b, _).
above[a] = n  <- agg<<n = count()>> far(a, z), s(z, _).
worth[a] = x, sold[a] = n <- agg<<x = sum(p * b - 0.5), n = count()>> price(a, p), r(a, b).
square[] = x  <- agg<<x = sum(p * p * b)>> price(_, p), r(_, b), p > 1.125.
equal[] = n   <- agg<<n = count()>> price(a, p), price(b, p), r(a, b), p != 0.25.
corners[] = n <- agg<<n = count()>> r(x, y), r(y, z), s(x, z).
least[] = p, some[] = n <- agg<<p = min(x), n = count()>> price(a, x), r(a, _).
big(a)        <- pairs[a] = x, x > 6.
whole[] = x -> x > -9.
"""
DERIVED = ("pairs", "many", "whole", "loops", "named", "above", "big")
DERIVED += ("worth", "sold", "square", "equal", "least", "some", "corners")

values = st.integers(0, 3)
changes = st.one_of(
    st.tuples(st.booleans(), st.sampled_from(("r", "s")), st.tuples(values, values)),
    st.tuples(st.booleans(), st.just("name"), st.tuples(values, st.sampled_from(("x", "y")))),
    st.tuples(
        st.booleans(), st.just("price"), st.tuples(values, st.integers(-9, 9).map(lambda n: Decimal(n) / 4))
    ),
)
transactions = st.lists(st.lists(changes, min_size=1, max_size=5), max_size=8)


def follow(script: list[list[tuple[bool, str, tuple[Any, ...]]]], facts: bool) -> None:
    source = PROGRAM + ('r(1, 2). r(2, 1). s(2, 2). s(1, 3). name(1, "x").\n' if facts else "")
    databases = [dlog.Database(source=source, strategy=way) for way in ("views", "delta")]
    for changes in script:
        results = []
        for db in databases:
            try:
                with db.transaction() as tx:
                    for is_insert, predicate, row in changes:
                        (tx.insert if is_insert else tx.erase)(predicate, [row])
            except dlog.ConstraintError:
                results.append("refused")
            results += [db[name].rows() for name in DERIVED]
            db.check()
        half = len(results) // 2
        assert results[:half] == results[half:]


@relaxed(8)
@given(script=transactions, facts=st.booleans())
def test_differential_deltas(script, facts) -> None:
    follow(script, facts)


@pytest.mark.fuzz
@relaxed(1000, random=True)
@given(script=transactions, facts=st.booleans())
def test_fuzz_deltas(script, facts) -> None:
    follow(script, facts)


def ways(db: dlog.Database) -> dict[str, str]:
    found = db._maintenance.strategies
    return {s.stratum.predicates[0]: s.way for s in found.values() if s is not None}


def test_views_are_used_and_survive_a_refusal() -> None:
    """A transaction that is taken back leaves nothing in the views."""
    db = dlog.Database(source=PROGRAM, strategy="views")
    with db.transaction() as tx:
        tx.insert("r", [(1, 2), (2, 1)])
        tx.insert("s", [(2, 2), (1, 2)])
    kept = (
        "pairs",
        "many",
        "whole",
        "loops",
        "named",
        "above",
        "worth",
        "sold",
        "square",
        "equal",
        "some",
        "corners",
    )
    assert {ways(db)[name] for name in kept} == {"views"} and ways(db)["least"] == "delta"
    with pytest.raises(dlog.ConstraintError), db.transaction() as tx:
        tx.insert("s", [(2, 50)])
    with db.transaction() as tx:
        tx.insert("r", [(3, 2)])
    assert db["pairs"].rows() == [(1, 4), (2, 2), (3, 4)]
    strategy = next(s for s in db._maintenance.strategies.values() if isinstance(s, ViewStrategy))
    assert strategy.ready(db.store)
    db.check()


def test_values_outside_the_range_of_views_are_evaluated() -> None:
    """A sum of a view that is beyond 64 bits where the result is not."""
    source = """
        r(a, b) -> int(a), int(b). s(a, c) -> int(a), int(c).
        t[] = x <- agg<<x = sum(b)>> r(a, b), s(a, _), a > 1.
        n[a] = x <- agg<<x = sum(b)>> r(a, b), s(a, _)."""
    db = dlog.Database(source=source, strategy="views")
    large = 2**62
    with db.transaction() as tx:
        tx.insert("r", [(2, 1)])
        tx.insert("s", [(2, 1)])
    with db.transaction() as tx:
        tx.insert("r", [(1, large), (1, large - 1), (1, large - 2)])
    assert db["t"].rows() == [(1,)] and db["n"].rows() == [(2, 1)]
    with db.transaction() as tx:
        tx.insert("r", [(2, 5)])
    assert db["t"].rows() == [(6,)] and ways(db)["t"] == ways(db)["n"] == "delta"
    assert "views cannot hold its values" in db.explain("t")
    db.check()


def test_heads_of_a_rule_share_their_views() -> None:
    """One pass over a change, whatever the number of aggregates."""
    db = dlog.Database(source=PROGRAM, strategy="views")
    db.apply(insert={"r": [(1, 2)], "s": [(2, 2)], "price": [(1, Decimal("1.50"))]})
    found = {s.name: s.views for s in db._maintenance.strategies.values() if isinstance(s, ViewStrategy)}
    assert found["pairs"] is found["many"] and found["worth"] is found["sold"]
    assert found["some"] is not found["sold"]
    assert len(found["pairs"].changes) == 0  # all rows at first
    commit = db.apply(insert={"r": [(2, 2)]})
    assert len(found["pairs"].changes) == 1
    assert commit.costs["pairs"] > 0 and commit.costs["many"] == 0


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (
            "t[a] = x <- agg<<x = max(b)>> r(a, b).",
            "a view tree maintains counts and sums, not max",
        ),
        ("t[a] = x <- agg<<x = sum(f)>> g(a, f).", "sums of floats are rounded"),
        ("t[a] = n <- agg<<n = count()>> r(a, b), !r(b, a).", "view trees have no negation"),
        ("t[a] = n <- agg<<n = count()>> g(a, f), f > 1.5.", "it compares values that are not integers"),
        ("t[a] = n <- agg<<n = count()>> r(a, b). t[7] = 7 <- r(_, _).", "several rules derive it"),
        ("t(a, n), t(n, a) <- agg<<n = count()>> r(a, b).", "two of its heads may derive the same row"),
    ],
)
def test_other_rules_stay_with_deltas(rule: str, why: str) -> None:
    db = dlog.Database(
        source=f"r(a, b) -> int(a), int(b). g(a, f) -> int(a), float(f). {rule}", strategy="views"
    )
    with db.transaction() as tx:
        tx.insert("r", [(1, 2), (1, 5)])
        tx.insert("g", [(1, 2.5), (2, 0.5)])
    assert "views" not in ways(db).values() and len(db["t"].rows()) >= 1
    assert f"it has no view tree: {why}" in db.explain("t")


def star(strategy: str | None) -> dlog.Database:
    """Six relations with one column in common, 8 rows for each value: a row is part of 8^5 assignments."""
    atoms = ", ".join(f"r{i}(k, x{i})" for i in range(6))
    declared = " ".join(f"r{i}(k, x) -> int(k), int(x)." for i in range(6))
    rule = f"q[] = s <- agg<<s = sum(x0)>> {atoms}."
    db = dlog.Database(source=f"{declared} {rule}", strategy=strategy)
    db.apply(insert={f"r{i}": [(x % 40, x) for x in range(320)] for i in range(6)})
    return db


def test_views_are_chosen_for_stars() -> None:
    db, other = star(None), star("delta")
    for change in ({"insert": {"r3": [(3, 999)]}}, {"erase": {"r0": [(3, 3), (4, 4)]}}):
        assert db.apply(**change).ways["q"] in ("views", "from scratch")
        other.apply(**change)
        assert db["q"].rows() == other["q"].rows()
    assert ways(db)["q"] == "views" and ways(other)["q"] == "delta"
    assert "a row is part of about" in db.explain("q")
    db.check()


def test_the_shipped_market_is_maintained_by_views() -> None:
    """Without a wish: a stop more is one part in 26 more for its postcode, whatever it is joined with."""
    folder = Path(__file__).parents[4] / "programs" / "views"
    db = dlog.Database(folder / "market.dl", facts=folder / "facts")
    assert "a view tree, because a row is part of about" in db.explain("demand")
    rows = {name: dict(db[name].rows()) for name in ("demand", "offers")}
    for name, found in rows.items():
        lines = (folder / "expected" / f"{name}.csv").read_text().split()
        assert found == {int(p): Decimal(v) for p, v in zip(lines[::2], lines[1::2], strict=True)}
    for change in ({"insert": {"stop": [(1000, 1, 5)]}}, {"insert": {"stop": [(1001, 1, 9)]}}):
        assert db.apply(**change).ways["offers"] in ("views", "from scratch")
    for name, before in rows.items():
        assert dict(db[name].rows()) == before | {1: before[1] * 28 / 26}
    assert ways(db) == {"demand": "views", "offers": "views"}


def test_variables_have_names_that_maps_have_not() -> None:
    """Upper case, as in Souffle's dialect, and question marks."""
    source = """.decl r(X: number, ?y: number)
        .decl s(?y: number, Z: number)
        pairs[X, ?y] = n <- agg<<n = sum(Z)>> r(X, ?y), s(?y, Z)."""
    db = dlog.Database(source=source, strategy="views")
    for rows in ([(1, 2)], [(2, 2), (1, 3)]):
        db.apply(insert={"r": rows, "s": rows})
        db.check()
        db.verify()
    assert db["pairs"].rows() == [(1, 2, 2), (2, 2, 2)]
    assert {type(s) for s in db._maintenance.strategies.values()} == {ViewStrategy}


@pytest.mark.parametrize("strategy", ["views", "multilevel", "delta"])
def test_a_total_of_sums_that_fit_is_refused_if_it_does_not_fit(strategy: str) -> None:
    """The sum of a + b is the sum of a plus that of b: each may fit, and what they add up to may not."""
    db = dlog.Database(
        source="""
        r(k, j, a) -> int(k), int(j), int(a). s(k, j, b) -> int(k), int(j), int(b).
        t[k] = x <- agg<<x = sum(c)>> r(k, j, a), s(k, j, b), c = a + b.
        """,
        strategy=strategy,
    )
    db.apply(insert={"r": [(1, 1, 2**62), (1, 2, 0)], "s": [(1, 1, 0)]})
    db.apply(insert={"s": [(2, 1, 1)]})
    with pytest.raises(DataError, match="does not fit 64 bits"):
        db.apply(insert={"s": [(1, 2, 2**62)]})
    db.apply(insert={"s": [(1, 2, 5)]})
    assert db["t"].rows() == [(1, 2**62 + 5)]
    db.check()
    db.verify()
