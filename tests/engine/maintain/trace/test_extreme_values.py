"""Values at the ends of their types: the same answers as the naive evaluator, whatever maintains the rules.

The random programs of `tests.oracle` do not hold such values: their arithmetic would wrap around, and a
recursive max that counts downwards from the least int begins again at the greatest, and never ends.  Here are
joins, comparisons, negation, disjunction, and the aggregates that cannot overflow.  The least and the
greatest int have the codes that stand for the ends of open intervals; NaN comes after all other floats.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.maintain.trace.offer import TRACE, TRACE_EXACT
from tests.engine.followed import commit
from tests.examples import relaxed
from tests.oracle.changes import Change
from tests.oracle.naive import base_facts
from tests.oracle.values import NAN, Value

VALUES: dict[str, tuple[Value, ...]] = {
    "int": (0, 1, -1, -(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1),
    "unsigned": (0, 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1),
    "float": (0.0, 1.5, -1.5, float("inf"), float("-inf"), NAN, 1.7976931348623157e308, 5e-324),
}
DECLARED = "e(x, y) -> {0}(x), {0}(y).  g(x) -> {0}(x).  f[x] = y -> {0}(x), {0}(y).\n"
RULES = {
    "triangles": "t(x, y, z) <- e(x, y), e(y, z), e(x, z).",
    "path": "t(x, z) <- e(x, y), e(y, z), g(y).",
    "comparison": "t(x, y) <- e(x, z), e(z, y), x < y, g(z).  u(x, y) <- g(x), g(y), x >= y, e(x, _).",
    "bounds by constants": "t(x, y) <- e(x, y), g(y), y > {low}, y <= {high}.  u(x) <- e({high}, x), g(x).",
    "unequal": "t(x, y) <- e(x, y), e(y, x), x != y, x != {low}.",
    "negation": "t(x, y) <- e(x, y), !g(y).  u(x) <- g(x), !e(x, x).",
    "negated conjunction": "t(x, y) <- e(x, y), !(e(y, z), g(z)).  u(x) <- g(x), !(e(x, z), z < x).",
    "disjunction": "t(x, y) <- (e(x, y) ; e(y, x), g(x)), g(y).",
    "functions": "t(x, z) <- f[x] = y, f[y] = z, !e(x, z).",
    "min and max": (
        "t[x] = m <- agg<<m = min(z)>> e(x, y), e(y, z).  u[x] = m <- agg<<m = max(y)>> e(x, y), g(y).\n"
        "v(x) <- t[x] = m, u[x] = m."
    ),
    "min and max of all": "t[] = m <- agg<<m = min(x)>> g(x).  u[] = m <- agg<<m = max(y)>> e(_, y), !g(y).",
    "count": "t[x] = n <- agg<<n = count()>> e(x, y), g(y).",
    "closure": "t(x, y) <- e(x, y).  t(x, z) <- t(x, y), e(y, z).  u(x) <- t(x, x).",
    "closure through itself": "t(x, y) <- e(x, y).  t(x, z) <- t(x, y), t(y, z), g(y).",
    "same generation": "t(x, x) <- g(x).  t(x, y) <- e(x, v), t(v, w), e(y, w).",
    "recursive max": "t[x] = y <- f[x] = y.  t[y] = m <- agg<<m = max(v)>> t[x] = v, e(x, y).",
}
ENDS = {
    "int": ("-9223372036854775808", "9223372036854775807"),
    "unsigned": ("0", "18446744073709551615u"),
    "float": ('"-inf"', '"inf"'),
}


@st.composite
def changes(draw: st.DrawFn, type: str) -> list[tuple[str, tuple[Value, ...]]]:
    value = st.sampled_from(VALUES[type])
    row = st.one_of(
        st.tuples(st.just("e"), st.tuples(value, value)),
        st.tuples(st.just("g"), st.tuples(value)),
        st.tuples(st.just("f"), st.tuples(value, value)),
    )
    return draw(st.lists(row, max_size=14))


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("type", VALUES)
@pytest.mark.parametrize("strategy", ["delta", TRACE, TRACE_EXACT])
def test_oracle_extreme_values(strategy: str, type: str, rules: str) -> None:
    """Rows come, and go where they are there, first many at once and then one by one."""
    low, high = ENDS[type]
    text = DECLARED.format(type) + RULES[rules].format(low=low, high=high)
    program = dlog.check(text)

    @relaxed(8)
    @given(changes(type), changes(type))
    def check(first: list[tuple[str, tuple[Value, ...]]], then: list[tuple[str, tuple[Value, ...]]]) -> None:
        db, base = dlog.Database(source=text, strategy=strategy), base_facts(program)
        for rows in (first, *([row] for row in then)):
            transaction = []
            for name, row in rows:
                function = name == "f"
                op = "-" if row in base[name] else "^" if function else "+"
                transaction.append(Change(op, name, row, function))
            if transaction:
                base = commit(db, program, base, transaction)
        db.verify()

    check()
