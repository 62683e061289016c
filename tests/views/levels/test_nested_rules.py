"""What rules derive, kept up to date by levels of maps: after every batch what the naive evaluator derives,
and what a database that maintains the program has.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.views.levels.program import Options
from tests.examples import relaxed
from tests.views.levels.random_rules import DECLARATIONS, RandomRules
from tests.views.levels.rules_followed import follow

CASES = {
    "vwap": """q[] = s <- agg<<s = sum(a)>> r(v, p), a = p * v, t = sum w : { r(w, _) },
        o = sum w : { r(w, x), x > p }, t > 4 * o.""",
    "count of nothing": "q[x] = n <- u(x), n = count : { r(x, y), y > 0 }.",
    "sum of nothing": "q(x) <- u(x), 0 = sum y : { r(x, y) }.",
    "no group of nothing": "q[x] = s <- agg<<s = sum(y)>> r(x, y).",
    "no row of nothing": "q[] = n <- agg<<n = count()>> r(x, y), x < y.",
    "aggregates in aggregates": """q[x] = n <- agg<<n = count()>> r(x, y),
        y < count : { s(x, z), z <= sum w : { r(z, w), w != y } }.""",
    "aggregate given": "q(x, y) <- r(x, y), y = count : { s(x, _) }.",
    "aggregate of decimals": """q[x] = n <- agg<<n = count()>> r(x, y), d(y, p),
        t = sum v : { d(_, v) }, p * 2 > t - 0.5.""",
    "sum of decimals": "q[x] = t <- agg<<t = sum(v)>> u(x), r(x, y), d(y, p), v = p * y - 0.125.",
    "negated atom": "q[y] = s <- agg<<s = sum(x)>> r(x, y), !s(y, x).",
    "negated conjunction": "q(x) <- r(x, y), !(s(y, z), z > x, !u(z)).",
    "negated disjunction": "q(x, y) <- u(x), u(y), !(r(x, y) ; s(y, x) ; x = y).",
    "twice negated": "q(x) <- u(x), !(!r(x, _)).",
    "either condition": "q[x] = n <- agg<<n = count()>> r(x, y), (y > x ; y + x < 1 ; x = 2).",
    "either atom": "q[x] = n <- agg<<n = count()>> r(x, y), (s(y, _) ; u(y)).",
    "either binds": "q[x] = s <- agg<<s = sum(z)>> r(x, y), (s(y, z) ; z = y + 1).",
    "either in an aggregate": "q[x] = n <- u(x), n = count : { r(y, z), (s(x, y) ; u(z), z > x) }.",
    "either with its own": "q(x) <- u(x), (r(x, y), y > 0 ; s(y, x), y < 1).",
    "apart": "q(k, x) <- u(x), (k = 1, x > 0 ; k = 2, x < 2).",
    "several rules": "q(x, y) <- r(x, y), x < y.\nq(x, y) <- s(y, x), u(x).\nq(1, 1) <- u(_).",
    "apart by constants": """q["small"] = n <- agg<<n = count()>> r(x, y), x < y.
        q["large"] = n <- agg<<n = count()>> r(x, y), x > y.""",
    "derived": "p(x, y) <- r(x, z), s(z, y).\nq[x] = n <- agg<<n = count()>> p(x, y), p(y, x).",
    "derived function": """f[y] = t <- agg<<t = sum(x)>> r(x, y).
        q[x] = n <- agg<<n = count()>> s(x, y), f[y] = t, t > x.""",
    "derived is not there": "p(x) <- r(x, y), y > 0.\np(x) <- s(x, x).\nq(x) <- u(x), !p(x).",
    "sum of sums": "f[y] = t <- agg<<t = sum(x)>> r(x, y).\nq[] = m <- agg<<m = sum(t)>> f[_] = t.",
    "self-join": "q[y] = s <- agg<<s = sum(m)>> r(x, y), r(z, y), m = x * z.",
    "self-join by order": "q[y] = s <- agg<<s = sum(m)>> r(x, y), r(z, y), x > z, m = x - z.",
    "twice in an atom": "q[] = n <- agg<<n = count()>> r(x, x), s(1, _).",
    "computed group": "q[k] = s <- agg<<s = sum(y)>> r(x, y), k = x + y.",
    "distinct": "q[x] = n <- agg<<n = count_distinct(k)>> r(x, y), s(y, z), k = y * z.",
    "mean": "q[x] = m <- agg<<m = mean(y)>> r(x, y), y < count : { u(_) }.",
    "group twice": "q[x, x] = n <- agg<<n = count()>> r(x, _).",
    "nothing to show": "q() <- r(x, y), !s(y, x).",
    "wildcards": "q(x) <- r(x, _), !s(x, _), count : { r(_, x) } < 2.",
}
BATCHES, ROWS = Options(), Options(batch=False)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_oracle_cases(case: str) -> None:
    follow(DECLARATIONS + case, "q", BATCHES, seed=1, sizes=(4,), rows=14)


@pytest.mark.parametrize("options", [ROWS, Options(depth=0), Options(depth=1)], ids=["rows", "0", "1"])
@pytest.mark.parametrize("case", ["vwap", "aggregates in aggregates", "negated conjunction", "either binds"])
def test_oracle_options(case: str, options: Options) -> None:
    follow(DECLARATIONS + CASES[case], "q", options, seed=2, sizes=(3,))


@pytest.mark.parametrize(
    "case", ["vwap", "count of nothing", "several rules", "derived function", "sum of decimals"]
)
def test_differential_engine(case: str) -> None:
    follow(DECLARATIONS + CASES[case], "q", BATCHES, seed=3, sizes=(3,), engine=True)


@pytest.mark.parametrize("first", [0, 300, 400])
def test_oracle_random(first: int) -> None:
    """Most programs derive rows at some time, or they would test nothing."""
    derived = 0
    for seed in range(first, first + 8):
        rng = random.Random(seed)
        options = rng.choice((BATCHES, ROWS, Options(depth=1)))
        text = RandomRules(rng, derived=1).text()
        derived += follow(text, "q", options, seed, (rng.choice((1, 3, 8)),), rows=14, engine=seed % 8 == 0)
    assert derived >= 4


@pytest.mark.fuzz
@relaxed(150, random=True)
@given(seed=st.integers(0, 10**9))
def test_fuzz_random(seed: int) -> None:
    rng = random.Random(seed)
    options = rng.choice((BATCHES, ROWS, Options(depth=1), Options(depth=0)))
    follow(RandomRules(rng).text(), "q", options, seed, (rng.choice((1, 3, 8)),), engine=seed % 4 == 0)
