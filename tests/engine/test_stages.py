"""Recursion under insertion and deletion: after each transaction everything is as from scratch."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from dlog.errors import ConstraintError, DataError
from tests.engine.staged import Staged, check_counts
from tests.oracle.accepted import accepted
from tests.oracle.changes import Transaction, apply_all, transactions
from tests.oracle.compare import same_program
from tests.oracle.naive import base_facts, evaluate_base
from tests.oracle.programs import ALL, programs


def relaxed(examples: int, random: bool = False) -> settings:
    return settings(
        max_examples=examples,
        derandomize=not random,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        print_blob=True,
    )


LOWER = """
e(x, y) -> int(x), int(y).   f(x, y) -> int(x), int(y).   n(x) -> int(x).
g(x, y, w) -> int(x), int(y), int(w).
r(x, y) -> int(x), int(y).   s(x, y) -> int(x), int(y).
q(x, y) <- e(x, y), !n(y).
c[x] = k <- agg<<k = count()>> e(x, _).
"""
PLAIN = (
    "r(x, y) <- e(x, y).",
    "r(x, z) <- r(x, y), e(y, z).",
    "r(x, z) <- r(x, y), r(y, z).",
    "r(x, z) <- e(x, y), r(y, z), !n(x).",
    "r(x, y) <- s(y, x).",
    "r(x, y) <- s(x, y), n(x).",
    "r(x, z) <- s(x, y), r(y, z).",
    "r(x, y) <- r(y, x), (e(x, _) ; n(y)).",
    "r(x, z) <- (r(x, y) ; s(y, x)), f(y, z).",
    "r(x, x) <- r(x, y), r(y, x), s(x, y).",
    "r(x, z) <- r(x, y), f(y, z), !(e(z, w), n(w)).",
    "r(x, y) <- r(x, z), y = z + 1, y < 5.",
    "r(x, y) <- r(x, z), f(z, y), g(x, y, _).",
    "r(x, y), s(y, x) <- s(x, y), q(x, y).",
    "s(x, y) <- r(x, y), f(x, y).",
    "s(x, y) <- q(x, y).",
    "s(x, z) <- r(x, y), s(y, z), y != z.",
    "s(1, y) <- r(y, y).",
    "s(x, x) <- r(x, 2), c[x] = k, k > 1.",
    "t() <- r(x, x), n(x).",
    "r(x, y) <- t(), f(x, y).",
    "s(x, y) <- r(x, y), (f(x, y) ; !n(x)).",
)
LEAST = (
    "d[y] = m <- agg<<m = min(b)>> d[x] = a, g(x, y, w), w >= 0, b = a + w.",
    "d[y] = m <- agg<<m = min(b)>> d[x] = a, e(x, y), b = a + 1.",
    "d[y] = m <- agg<<m = min(b)>> d[x] = b, f(x, y).",
    "d[y] = m <- agg<<m = min(b)>> d[x] = a, g(x, y, w), b = max(a, w).",
    "d[y] = m <- agg<<m = min(b)>> d[x] = a, g(x, y, w), x < y, b = a + w.",
    "d[y] = m <- agg<<m = min(b)>> d[x] = a, d[z] = a2, g(x, y, z), b = max(a, a2).",
    "d[y] = m <- agg<<m = min(b)>> k[x] = b, f(x, y).",
    "k[y] = m <- agg<<m = min(b)>> d[x] = a, e(x, y), b = a + 2.",
    "k[y] = m <- agg<<m = min(b)>> g(x, y, b), near(x).",
    "near(x) <- d[x] = a, a < 3.",
    "near(x) <- near(y), e(y, x), n(x).",
    "d[x] = m <- agg<<m = min(b)>> near(x), b = 2.",
    "d[x] = m <- agg<<m = min(w)>> g(x, _, w).",
)
# Values that improve themselves: no derivation from lower stages.
CLAMPED = "d[y] = m <- agg<<m = min(b)>> d[x] = a, g(x, y, w), b = max(a - 1, w)."
MOST = (
    "d[y] = m <- agg<<m = max(b)>> d[x] = a, g(x, y, w), b = min(a, w).",
    "d[y] = m <- agg<<m = max(b)>> d[x] = a, e(x, y), b = a - 1.",
    "d[y] = m <- agg<<m = max(b)>> d[x] = b, f(x, y), !n(y).",
    "d[x] = m <- agg<<m = max(w)>> g(x, _, w).",
)
SMALL = st.integers(0, 4)
_ROWS = {"e": 2, "f": 2, "n": 1, "g": 3}


@st.composite
def recursions(draw: st.DrawFn, rules: tuple[str, ...], declared: str = "") -> str:
    """A program with some of the rules, at least one of them recursive, and facts."""
    chosen = draw(st.lists(st.sampled_from(rules), min_size=2, max_size=6, unique=True))
    lines = [LOWER, declared, *chosen]
    for name, arity in _ROWS.items():
        rows = draw(st.lists(st.tuples(*[SMALL] * arity), max_size=8, unique=True))
        lines.append(" ".join(f"{name}({', '.join(map(str, row))})." for row in rows))
    if "d[" in declared:
        lines += [f"d[{x}] = {v}." for x, v in draw(st.dictionaries(SMALL, SMALL, max_size=2)).items()]
    return "\n".join(lines)


def follow(text: str, changes: list[Transaction], *, counts: bool = True) -> Staged:
    """Apply transactions one by one; after each the naive evaluator, and the counts by definition, agree."""
    program = accepted(text)
    base = base_facts(program)
    try:
        evaluate_base(program, base)
    except (ConstraintError, DataError):
        reject()
    staged = Staged(text)
    for transaction in changes:
        trial = {name: set(rows) for name, rows in base.items()}
        apply_all(trial, transaction)
        try:
            expected = evaluate_base(program, trial)
        except (ConstraintError, DataError):
            with pytest.raises((ConstraintError, DataError)):
                staged.apply(transaction)
            continue
        staged.apply(transaction)
        base = trial
        same_program({name: staged.rows(name) for name in program.predicates}, expected, program)
        staged.check()
        if counts:
            check_counts(staged, expected)
    return staged


@relaxed(150)
@given(st.data())
def test_oracle_plain_recursion(data: st.DataObject) -> None:
    text = data.draw(recursions(PLAIN))
    follow(text, data.draw(transactions(accepted(text), most=8, derived=True)))


@relaxed(120)
@given(st.data())
def test_oracle_least_values(data: st.DataObject) -> None:
    text = data.draw(recursions(LEAST, "d[x] = v -> int(x), int(v).  k[x] = v -> int(x), int(v)."))
    follow(text, data.draw(transactions(accepted(text), most=8, derived=True)))


@relaxed(80)
@given(st.data())
def test_oracle_greatest_values(data: st.DataObject) -> None:
    text = data.draw(recursions(MOST, "d[x] = v -> int(x), int(v)."))
    follow(text, data.draw(transactions(accepted(text), most=8, derived=True)))


@relaxed(60)
@given(st.data())
def test_oracle_values_that_improve_themselves(data: st.DataObject) -> None:
    declared = f"d[x] = v -> int(x), int(v).  k[x] = v -> int(x), int(v).  {CLAMPED}"
    text = data.draw(recursions(LEAST, declared))
    follow(text, data.draw(transactions(accepted(text), most=5, derived=True)))


@relaxed(150)
@given(st.data())
def test_oracle_random_programs(data: st.DataObject) -> None:
    """All types, column primitives in recursive rules among them."""
    text = data.draw(programs(ALL, derived=3))
    follow(text, data.draw(transactions(accepted(text), most=4, derived=True)), counts=False)
