"""Owns random programs with choice domains and `autoinc()` as text.

@given(choices())
def test_something(text):
    program = dlog.check(text)
"""

from __future__ import annotations

from hypothesis import strategies as st

from .bodies import Draw

NODES = (1, 2, 3, 4)
DOMAINS = ("y", "x", "x, y", "(x, y)", "(x, y), z", "z", "(y, z)", "x, y, z")
DECLARED = """\
e(x, y, z) -> int(x), int(y), int(z).
n(x) -> int(x).
.decl q(x: number, y: number, z: number) choice-domain {0}
.decl r(x: number, y: number, z: number) choice-domain {1}
s(x, y) -> int(x), int(y).
id(x, i) -> int(x), int(i).
"""
CANDIDATES = (
    "q(x, y, z) <- e(x, y, z).",
    "q(x, y, z) <- e(x, y, z), !n(y).",
    "q(x, y, y) <- e(x, y, _), n(x).",
    "q(x, y, x) <- e(x, y, _).",
    "q(x, x, z) <- e(x, _, z) ; e(_, x, z).",
)
CHOSEN_TWICE = (
    "r(x, y, z) <- q(x, y, z).",
    "r(y, x, z) <- q(x, y, z), e(_, _, z).",
    "r(x, y, k) <- q(x, y, _), k = count : { e(x, _, _) }.",
    "r(x, y, z) <- e(x, y, z), !q(x, y, z).",
)
RECURSIVE = (
    "q(y, z, x) <- q(_, y, x), e(y, z, _).",
    "q(x, w, z) <- q(x, y, z), q(y, w, z).",
    "q(x, y, z) <- s(x, y), n(z).\ns(y, x) <- q(x, y, _).",
    "r(x, y, z) <- q(y, x, z).\nq(x, y, x) <- r(x, z, _), e(z, y, _).",
    "s(x, y) <- e(x, y, _).\ns(x, z) <- s(x, y), q(y, z, _).\nq(x, y, x) <- s(x, y).",
)
READERS = (
    "id(x, autoinc()) <- q(x, _, _).",
    "id(i, $ + y) <- r(_, y, i), n(y).",
    "id(autoinc(), autoinc()) <- n(x), q(x, _, _) ; e(x, x, _).",
    "id(x, i) <- e(x, _, _), i = autoinc(), !n(i).",
    "id(x, $) <- t(x).\nt(x) <- e(x, _, _).\nt(x) <- e(_, x, _).",
    "left(x, y, z) <- e(x, y, z), !q(x, y, z).",
    "size(k) <- k = count : { q(_, _, _) }.",
    "far(x, y) <- q(x, y, _).\nfar(x, z) <- far(x, y), r(y, z, _).",
    "after(x, y) <- id(x, i), id(y, j), i < j.",
)


@st.composite
def choices(draw: Draw) -> str:
    node, domain = st.sampled_from(NODES), st.sampled_from(DOMAINS)
    lines = [DECLARED.format(draw(domain), draw(domain))]
    rows = draw(st.lists(st.tuples(node, node, node), max_size=9, unique=True))
    lines += [f"e{row}." for row in rows]
    lines += [f"n({x})." for x in draw(st.lists(node, max_size=3, unique=True))]
    for name in draw(st.sampled_from(("", "", "q", "qr"))):
        facts = draw(st.lists(st.tuples(node, node, node), min_size=1, max_size=3, unique=True))
        lines += [f"{name}{row}." for row in facts]
    lines += draw(st.lists(st.sampled_from(CANDIDATES), min_size=1, max_size=2, unique=True))
    if draw(st.booleans()):
        lines += draw(st.lists(st.sampled_from(RECURSIVE), min_size=1, max_size=2, unique=True))
    else:
        lines += draw(st.lists(st.sampled_from(CHOSEN_TWICE), max_size=2, unique=True))
    lines += draw(st.lists(st.sampled_from(READERS), max_size=4, unique=True))
    return "\n".join(lines) + "\n"
