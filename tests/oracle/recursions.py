"""Owns random recursive programs as text: nearly all of them derive rows from derived rows, many times over.

    @given(recursions())
    def test_something(text):
        program = dlog.check(text)

Base relations and exits are fixed; the recursive rules, the facts and the values are drawn.  Values are few,
so that rows are derived again and again, and near each other or far apart, so that every kind of set is met.
"""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from .bodies import Draw

DOMAINS = ((0, 1, 2, 3, 4), (-7, -1, 0, 1, 60), (-(1 << 62), -3, 0, 1 << 40, (1 << 62) + 1))
BASE = {"e": 2, "n": 1, "g": 3}
DERIVED = {"p": 2, "q": 2, "r": 3}
EXITS = "p(x, y) <- e(x, y).\nq(x, y) <- e(y, x), n(x).\nr(x, y, z) <- g(x, y, z)."
CONDITIONS = ("{0} < {1}", "{0} != {1}", "!n({0})", "!e({0}, {1})")
CLOSURES = (
    "p(x, z) <- p(x, y), e(y, z).",
    "q(y, z) <- q(x, y), p(x, z).",
    "r(y, w, x) <- r(x, y, z), p(z, w).\np(x, y) <- r(x, y, z).",
)
VARIABLES = ("x", "y", "z", "w")


@st.composite
def recursions(draw: Draw) -> str:
    values = st.sampled_from(draw(st.sampled_from(DOMAINS)))
    lines = []
    for name, arity in BASE.items():
        lines.append(
            f"{name}({_listed(f'c{i}' for i in range(arity))}) -> "
            f"{_listed(f'int(c{i})' for i in range(arity))}."
        )
        rows = draw(st.lists(st.tuples(*[values] * arity), min_size=4, max_size=9, unique=True))
        lines += [f"{name}({_listed(row)})." for row in rows]
    lines += [EXITS, draw(st.sampled_from(CLOSURES))]
    lines += [_rule(draw, values) for _ in range(draw(st.integers(1, 4)))]
    return "\n".join(lines) + "\n"


def _rule(draw: Draw, values: st.SearchStrategy[int]) -> str:
    """A rule with one or two recursive atoms, perhaps a base atom, perhaps a condition on what they bind."""
    names = draw(st.lists(st.sampled_from(sorted(DERIVED)), min_size=1, max_size=2))
    names += draw(st.lists(st.sampled_from(sorted(BASE)), max_size=1))
    atoms = [(name, _arguments(draw, (BASE | DERIVED)[name], values)) for name in names]
    bound = sorted({arg for _, args in atoms for arg in args if arg in VARIABLES})
    body = [f"{name}({_listed(args)})" for name, args in atoms]
    if draw(st.integers(0, 3)) == 3:
        some = st.sampled_from(bound)
        body.append(draw(st.sampled_from(CONDITIONS)).format(draw(some), draw(some)))
    head = draw(st.sampled_from(sorted(DERIVED)))
    terms = [*draw(st.permutations(bound)), *bound, *bound][: DERIVED[head]]
    if draw(st.integers(0, 9)) == 9:
        terms[0] = str(draw(values))
    return f"{head}({_listed(terms)}) <- {', '.join(body)}."


def _arguments(draw: Draw, arity: int, values: st.SearchStrategy[int]) -> list[str]:
    """Mostly different variables; now and then one twice, or a constant."""
    args = list(draw(st.permutations(VARIABLES)))[:arity]
    odd = draw(st.integers(0, 9))
    if odd == 8 and arity > 1:
        args[1] = args[0]
    elif odd == 9 and arity > 1:
        args[0] = str(draw(values))
    return args


def _listed(terms: Iterable[object]) -> str:
    return ", ".join(map(str, terms))
