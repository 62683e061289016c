"""Subtypes and unions: what a rule may pass where.

The oracle takes types for sets: one that is no union has one value of its own and those of its subtypes.
Then a rule is right if what its atoms have in common is not empty and a part of what its head takes.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.errors import DlogError
from dlog.ir.check import load_program
from dlog.language.source import text_source

Sets = dict[str, frozenset[str]]


@st.composite
def hierarchies(draw: st.DrawFn) -> tuple[list[str], Sets]:
    """Declarations in any order, and the values of each type."""
    bases: dict[str, str] = {}
    unions: dict[str, list[str]] = {}
    for index in range(draw(st.integers(1, 6))):
        bases[f"S{index}"] = draw(st.sampled_from(["number", *bases]))
    for index in range(draw(st.integers(0, 3))):
        members = st.lists(st.sampled_from([*bases, *unions]), min_size=1, max_size=3, unique=True)
        unions[f"U{index}"] = draw(members)
    sets = {name: {name} for name in ("number", *bases)}
    for name in reversed(bases):
        sets[bases[name]] |= sets[name]
    for name, members in unions.items():
        sets[name] = set().union(*(sets[member] for member in members))
    lines = [f".type {name} <: {base}" for name, base in bases.items()]
    lines += [f".type {name} = {' | '.join(members)}" for name, members in unions.items()]
    return draw(st.permutations(lines)), {name: frozenset(values) for name, values in sets.items()}


def rejected(text: str) -> bool:
    try:
        load_program(text_source(text))
    except DlogError as error:
        assert "type conflict" in error.message
        return True
    return False


@given(st.data())
def test_oracle_what_atoms_give_and_heads_take(data: st.DataObject) -> None:
    declarations, sets = data.draw(hierarchies())
    names = st.sampled_from(sorted(sets))
    head, given_types = data.draw(names), data.draw(st.lists(names, min_size=1, max_size=3))
    variables = [data.draw(st.sampled_from("xy")) for _ in given_types]
    predicates = [f".decl p{i}(x: {name})" for i, name in enumerate(given_types)]
    atoms = [f"p{i}({variable})" for i, variable in enumerate(variables)]
    joined = len(set(variables)) == 2 and data.draw(st.booleans())
    equal = [data.draw(st.sampled_from(["x = y", "y < x", "x != y"]))] if joined else []
    shown = variables[0]
    body = data.draw(st.permutations([*atoms, *equal]))
    text = "\n".join([*declarations, *predicates, f".decl h(x: {head})", f"h({shown}) :- {', '.join(body)}."])
    common: dict[str, frozenset[str]] = {}
    for variable, name in zip(variables, given_types, strict=True):
        same = "x" if equal else variable
        common[same] = common.get(same, sets["number"]) & sets[name]
    right = all(common.values()) and common["x" if equal else shown] <= sets[head]
    assert rejected(text) == (not right)


TYPES = """
.type Even <: number
.type Odd <: number
.type Name <: symbol
.type Whole = Even | Odd
.type Pair = [first: Even, second: Whole]
.type Shape = Point {at: Even} | Line {from: Even, to: Odd}
.decl even(x: Even)
.decl odd(x: Odd)
.decl whole(x: Whole)
.decl plain(x: number)
.decl pair(p: Pair)
.decl shape(s: Shape)
.decl name(x: Name)
.decl text(x: symbol)
even(2). odd(3). whole(4). plain(5). text("a"). pair([2, 3]). shape($Point(2)).
"""


@pytest.mark.parametrize(
    "rule",
    [
        "even(x + 1) :- odd(x).",
        "even(y) :- odd(x), y = x * 2.",
        "even(as(x, Even)) :- odd(x).",
        "even(x) :- odd(y), x = as(y, Even).",
        "even(x) :- plain(x), even(x).",
        "even(x) :- whole(x), !odd(x), even(x).",
        "even(x) :- even(x), !odd(x).",
        "even(n) :- n = count : odd(_).",
        "plain(max x : odd(x)).",
        "plain(n) :- n = sum x : { even(x) }, n > 0.",
        "plain(a + b) :- a = max x : { even(x) }, b = max x : { odd(x) }.",
        "even(x) :- pair([x, _]).",
        "pair([x, y]) :- plain(x), odd(y), even(x).",
        "even(x) :- shape($Line(x, _)).",
        "shape($Line(x, y)) :- even(x), odd(y).",
        "name(cat(x, x)) :- text(x).",
        'name(x) :- text(y), x = "a", y = "b".',
        "whole(x) :- even(x) ; odd(x).",
        "undeclared(x) :- even(x) ; odd(x).",
        "even(7).",
    ],
)
def test_allowed(rule: str) -> None:
    assert not rejected(TYPES + rule)


@pytest.mark.parametrize(
    "rule",
    [
        "even(x) :- plain(x).",
        "even(x) :- odd(x).",
        "even(x) :- whole(x), plain(x).",
        "plain(x) :- even(x), odd(x).",
        "plain(x) :- even(x), odd(y), x != y.",
        "even(x), odd(x) :- even(x).",
        "even(as(x, Odd)) :- plain(x).",
        "odd(x) :- pair([x, _]).",
        "odd(x) :- pair(p), p = [x, _].",
        "odd(x) :- shape($Line(x, _)).",
        "pair([x, x]) :- odd(x).",
        "shape($Point(x)) :- odd(x).",
        "odd(max x : even(x)).",
        "plain(1) :- max x : { even(x) } = max x : { odd(x) }.",
        "name(x) :- text(x).",
        "plain(c) :- c = count : { even(x), odd(x) }.",
        "even(x) :- (even(x) ; odd(x)), plain(x).",
    ],
)
def test_refused(rule: str) -> None:
    assert rejected(TYPES + rule)
    assert not rejected('.pragma "legacy"\n' + TYPES + rule)
