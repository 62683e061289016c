"""Owns random programs with subsumption as text.

    @given(subsumptions())
    def test_something(text):
        program = dlog.check(text)

Costs only grow along a recursion, and each order is strict and transitive, so that every fixpoint is reached.
Where nothing is recursive, a condition may be any: then rows may subsume each other, and all of them go.
"""

from __future__ import annotations

from hypothesis import strategies as st

from .bodies import Draw

NODES = (1, 2, 3)
COSTS = (0, 1, 2, 4)
# Of rows (x, y, a, b) and (x, y, c, d): when the second subsumes the first.
ORDERS = (
    "c <= a, d <= b",
    "c < a",
    "c < a ; c = a, d < b",
    "c <= a, d <= b, !n(x)",
    "n(y), c < a",
    "a < c, c < 4",
    "height(x, h), c + h < a",
)
ANY = (*ORDERS, "c = a + 1", "near(c, a)", "c + d <= a + b", "d != b", "near(c, h), near(h, a)")
# Conditions on rows of one column more that is not compared by equality.
WIDE = ("p({x}, y, a, b) <= p({z}, y, c, d) :- c < a.", "p({x}, _, a, b) <= p({z}, _, c, d) :- c < a, d < b.")
STEPS = (
    "p(x, z, a + w, b + v) <- p(x, y, a, b), e(y, z, w, v), a < 5, b < 5.",
    "p(x, z, a + w, b + 1) <- s(x, y, a, b), e(y, z, w, _), a < 5, b < 5.\n"
    "s(x, y, a, b) <- p(x, y, a, b), !n(y).",
    "p(x, z, a + c, b + d) <- p(x, y, a, b), p(y, z, c, d), a + c < 6, b + d < 6.",
    "s(y, x, a, b) <- p(x, y, a, b).\np(x, y, a, b) <- s(x, y, a, b), n(x).",
    "p(x, y, 7 - a, b) <- p(x, y, a, b), e(x, y, _, _).",
)
READERS = (
    "best(x, m) <- agg<<m = min(a)>> p(x, _, a, _).",
    "lost(x, y) <- e(x, y, w, v), !p(x, y, w, v).",
    "all(x, y, k) <- p(x, y, a, b), k = a + b.\nall(x, y, a) <= all(x, y, b) :- b < a.",
    "pairs(x, z) <- p(x, y, _, _), p(y, z, _, _).",
    "closed(x, y) <- p(x, y, _, _).\nclosed(x, z) <- closed(x, y), p(y, z, _, _).",
)
DECLARED = """\
e(x, y, w, v) -> int(x), int(y), int(w), int(v).
n(x) -> int(x).
near(x, y) -> int(x), int(y).
height(x, y) -> int(x), int(y).
p(x, y, a, b) -> int(x), int(y), int(a), int(b).
s(x, y, a, b) -> int(x), int(y), int(a), int(b).
"""


@st.composite
def subsumptions(draw: Draw) -> str:
    node, cost = st.sampled_from(NODES), st.sampled_from(COSTS)
    lines = [DECLARED]
    for name, columns in (("e", (node, node, cost, cost)), ("n", (node,)), ("near", (cost, cost))):
        rows = draw(st.lists(st.tuples(*columns), max_size=5, unique=True))
        lines += [f"{name}({', '.join(map(str, row))})." for row in rows]
    lines += [f"height({x}, {draw(cost)})." for x in NODES[: draw(st.integers(0, 3))]]
    facts = draw(st.lists(st.tuples(node, node, cost, cost), max_size=4, unique=True))
    lines += [f"p{row}." for row in facts]
    is_recursive = draw(st.booleans())
    if draw(st.integers(0, 4)):
        lines.append("p(x, y, w, v) <- e(x, y, w, v).")
    if is_recursive:
        lines += draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=2, unique=True))
    lines += [_clause(draw, ORDERS if is_recursive else ANY)]
    if not is_recursive:
        lines += [_clause(draw, ANY) for _ in range(draw(st.integers(0, 2)))]
        lines += [
            w.format(x="x", z=draw(st.sampled_from("xz")))
            for w in draw(st.lists(st.sampled_from(WIDE), max_size=1))
        ]
    lines += draw(st.lists(st.sampled_from(READERS), max_size=2, unique=True))
    return "\n".join(lines) + "\n"


def _clause(draw: Draw, conditions: tuple[str, ...]) -> str:
    return f"p(x, y, a, b) <= p(x, y, c, d) :- {draw(st.sampled_from(conditions))}."
