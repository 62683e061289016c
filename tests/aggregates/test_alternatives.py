"""Disjunctions under aggregates, with computed values in some branches, against the definition.

The evaluator here knows nothing of rules: a branch is a Python function from the values of x and y to the
assignments of its own variables, those that the user wrote.  An aggregate ranges over the set of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.maintain.strategies import SELECTABLE
from tests.examples import relaxed
from tests.oracle.naive import evaluate

DECLARED = """
t(x, y) -> int(x), int(y).
s(x, y) -> int(x), int(y).
f[x] = y -> int(x), int(y).
d(x, y) -> int(x), decimal[9, 2](y).
"""
Pairs = set[tuple[int, int]]


@dataclass(frozen=True)
class Facts:
    t: Pairs
    s: Pairs
    f: dict[int, int]

    def text(self) -> str:
        rows = [f"t({x}, {y})." for x, y in sorted(self.t)] + [f"s({x}, {y})." for x, y in sorted(self.s)]
        return " ".join(rows + [f"f[{x}] = {y}. d({x}, {y}.5)." for x, y in self.f.items()])


# What a branch adds to an assignment: the values of its own variables, by name.
Own = Iterable[tuple[tuple[str, int], ...]]
Branch = Callable[[Facts, int, int], Own]


def _if(condition: Callable[[Facts, int, int], bool]) -> Branch:
    return lambda facts, x, y: [()] if condition(facts, x, y) else []


BRANCHES: dict[str, Branch] = {
    "s(x, y)": _if(lambda o, x, y: (x, y) in o.s),
    "s(x, x)": _if(lambda o, x, y: (x, x) in o.s),
    "s(y, y + 1)": _if(lambda o, x, y: (y, y + 1) in o.s),
    "x > 1": _if(lambda o, x, y: x > 1),
    "x + 1 > 1": _if(lambda o, x, y: x + 1 > 1),
    "x * y = y + 2": _if(lambda o, x, y: x * y == y + 2),
    "x + y > 2, y - x < 1": _if(lambda o, x, y: x + y > 2 and y - x < 1),
    "f[x] > 1": _if(lambda o, x, y: o.f.get(x, 0) > 1),
    "f[x] = y": _if(lambda o, x, y: o.f.get(x) == y),
    "f[f[x]] + 1 > y": _if(lambda o, x, y: x in o.f and o.f[x] in o.f and o.f[o.f[x]] + 1 > y),
    "d(x, 1.5)": _if(lambda o, x, y: o.f.get(x) == 1),
    "d(x, 1.50)": _if(lambda o, x, y: o.f.get(x) == 1),
    "!s(x, x + 1)": _if(lambda o, x, y: (x, x + 1) not in o.s),
    "count : { s(x, _) } > 0": _if(lambda o, x, y: any(a == x for a, _ in o.s)),
    "1 = count : { s(x, z) }": _if(lambda o, x, y: sum(a == x for a, _ in o.s) == 1),
    "sum z : { s(x, z) } + 1 > y": _if(lambda o, x, y: sum(b for a, b in o.s if a == x) + 1 > y),
    "max z : { s(y, z) } > x": _if(lambda o, x, y: max((b for a, b in o.s if a == y), default=-9) > x),
    "(s(x, y + 1) ; y * 2 > x)": _if(lambda o, x, y: (x, y + 1) in o.s or y * 2 > x),
    # Variables of the user's own: assignments differ.
    "s(x, u), u + 1 > y": lambda o, x, y: [(("u", b),) for a, b in o.s if a == x and b + 1 > y],
    "s(y, w), f[w] > 0": lambda o, x, y: [(("w", b),) for a, b in o.s if a == y and o.f.get(b, 0) > 0],
    "s(x, _), x + y > 1": lambda o, x, y: [(("_", b),) for a, b in o.s if a == x and x + y > 1],
    # The same with a computed value, which another branch may have as a term.
    "u = x + 1, u > 1": lambda o, x, y: [(("u", x + 1),)] if x + 1 > 1 else [],
    "u = y * 2": lambda o, x, y: [(("u", y * 2),)],
    "u = x + 1, w = u + y, w > 2": lambda o, x, y: (
        [(("u", x + 1), ("w", x + 1 + y))] if x + 1 + y > 2 else []
    ),
    "(w = 1 ; w = 2, x > 1)": lambda o, x, y: [(("w", w),) for w in (1, 2) if w == 1 or x > 1],
    "x > 0, (y > 1 ; w = x)": lambda o, x, y: [
        own for own, holds in (((), y > 1), ((("w", x),), True)) if holds and x > 0
    ],
}

OPERATIONS = "c = count(), a = sum(y), b = min(y), g = max(y), h = mean(y), k = count_distinct(y)"
HEAD = "p[x] = c, p1[x] = a, p2[x] = b, p3[x] = g, p4[x] = h, p5[x] = k"
TOTAL = ", ".join(
    name + "[] = " + value for name, value in zip(("q", "q1", "q2", "q3", "q4", "q5"), "cabghk", strict=True)
)


Alternative = str | tuple[str, str]  # a pair is a disjunction in the branch


def written(branch: Alternative) -> str:
    return branch if isinstance(branch, str) else f"x >= 0, ({branch[0]} ; {branch[1]})"


def assignments(
    branch: Alternative, facts: Facts, x: int, y: int, number: int
) -> set[frozenset[tuple[str, int]]]:
    """Each `_` is a variable of its own."""
    if not isinstance(branch, str):
        inside = (assignments(b, facts, x, y, 10 * number + i) for i, b in enumerate(branch, 1))
        return set().union(*inside)
    return {
        frozenset((name if name != "_" else f"_{number}", value) for name, value in own)
        for own in BRANCHES[branch](facts, x, y)
    }


def program(branches: list[Alternative]) -> str:
    body = f"t(x, y), ({' ; '.join(map(written, branches))})"
    return f"""{DECLARED}
    {HEAD} <- agg<<{OPERATIONS}>> {body}.
    {TOTAL} <- agg<<{OPERATIONS}>> {body}.
    words[] = j <- agg<<j = concat(v)>> {body}, v = to_string(y).
    inner(c) <- c = count : {{ {body} }}.
    summed(x, a) <- t(x, _), a = sum y : {{ {body} }}.
    most(x, a) <- a = max y : {{ {body} }}, t(x, _).
    """


def by_definition(branches: list[Alternative], facts: Facts) -> dict[str, set[Any]]:
    found: set[tuple[int, int, Any]] = set()
    for x, y in facts.t:
        for number, branch in enumerate(branches, 1):
            found |= {(x, y, own) for own in assignments(branch, facts, x, y, number)}
    out: dict[str, set[Any]] = {}
    groups = {x: [a for a in found if a[0] == x] for x, _, _ in found}
    out |= {
        name: {(x, v[i]) for x, m in groups.items() for v in [_results(m)]}
        for i, name in enumerate(("p", "p1", "p2", "p3", "p4", "p5"))
    }
    out |= {
        name: {(_results(found)[i],)} if found else set()
        for i, name in enumerate(("q", "q1", "q2", "q3", "q4", "q5"))
    }
    out["words"] = {("".join(sorted(str(y) for _, y, _ in found)),)} if found else set()
    out["inner"] = {(len(found),)}
    out["summed"] = {(x, sum(a[1] for a in groups.get(x, ()))) for x, _ in facts.t}
    out["most"] = {(x, max(a[1] for a in groups[x])) for x in groups}
    return out


def _results(members: Iterable[tuple[int, int, Any]]) -> tuple[Any, ...]:
    values = [y for _, y, _ in members]
    mean = float(Fraction(sum(values), len(values)))
    return len(values), sum(values), min(values), max(values), mean, len(set(values))


def agrees(rows: dict[str, set[Any]], branches: list[Alternative], facts: Facts) -> None:
    expected = by_definition(branches, facts)
    found = {name: set(rows[name]) for name in expected}
    # In which order concat joins is not what these tests are about.
    found["words"] = {("".join(sorted(text)),) for (text,) in found["words"]}
    assert found == expected, (branches, facts)


NUMBERS = st.integers(0, 3)
PAIRS = st.sets(st.tuples(NUMBERS, NUMBERS), max_size=8)
FACTS = st.builds(Facts, PAIRS, PAIRS, st.dictionaries(NUMBERS, NUMBERS))
BRANCH = st.sampled_from(sorted(BRANCHES))
CHOSEN = st.lists(BRANCH | st.tuples(BRANCH, BRANCH), min_size=2, max_size=3)


@relaxed(150)
@given(branches=CHOSEN, facts=FACTS)
def test_the_plain_oracle_agrees_with_the_definition(branches: list[Alternative], facts: Facts) -> None:
    checked = dlog.check(program(branches) + facts.text())
    checked.check()
    agrees(evaluate(checked), branches, facts)


CHANGES = st.lists(FACTS, min_size=1, max_size=4)


def change(db: dlog.Database, old: Facts, new: Facts) -> None:
    with db.transaction() as tx:
        for name, before, after in (
            ("t", old.t, new.t),
            ("s", old.s, new.s),
            ("f", set(old.f.items()), set(new.f.items())),
        ):
            tx.erase(name, sorted(before - after))
            tx.insert(name, sorted(after - before))
        tx.erase("d", [(x, Decimal(y) + Decimal("0.5")) for x, y in old.f.items() if new.f.get(x) != y])
        tx.insert("d", [(x, Decimal(y) + Decimal("0.5")) for x, y in new.f.items() if old.f.get(x) != y])


@pytest.mark.parametrize("strategy", [None, *SELECTABLE])
@relaxed(12)
@given(branches=CHOSEN, steps=CHANGES)
def test_differential_every_strategy_agrees_with_the_definition(
    strategy: str | None, branches: list[Alternative], steps: list[Facts]
) -> None:
    facts = steps[0]
    db = dlog.Database(source=program(branches) + facts.text(), strategy=strategy)
    for after in steps:
        change(db, facts, after)
        facts = after
        agrees({name: set(db[name].rows()) for name in db.predicates()}, branches, facts)
