"""Maps that are not stored change no answer: random definitions, random demotions, the naive evaluator."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.demote import Definitions
from dlog.multilevel.names import canonical
from dlog.multilevel.notation import read, text
from dlog.multilevel.program import Program, compile
from tests.examples import relaxed
from tests.multilevel.running import source
from tests.multilevel.test_program import LIMITS, compiled, follow

SEEDS = st.integers(0, 2**32)
CHAIN = "AggSum([], R(a, b) * S(b, c) * T(c, d) * a * d)"
CHAIN_SOURCES = [source("R(a, b)"), source("S(b, c)"), source("T(c, d)")]


@dataclass(frozen=True)
class Some:
    """A random share of all definitions: always the same for one definition."""

    seed: int
    share: float

    def __contains__(self, definition: object) -> bool:
        assert isinstance(definition, Node)
        return random.Random(f"{self.seed} {canonical(definition)!r}").random() < self.share


@given(SEEDS)
@relaxed(120)
def test_oracle_demotions(seed: int) -> None:
    """Every map that is left contains what its definition says, and is empty in the end."""
    rng = random.Random(seed)
    demoted = Some(seed, rng.choice((0.3, 0.6, 1)))
    tables = ("S",) if rng.random() < 0.2 else ()
    follow(rng, compiled(rng, tables, batch=rng.random() < 0.5, limits=LIMITS, demoted=demoted), tables)


@pytest.mark.fuzz
@given(SEEDS)
@relaxed(1000, random=True)
def test_oracle_demotions_at_length(seed: int) -> None:
    rng = random.Random(seed)
    demoted = Some(seed, rng.choice((0.3, 0.6, 1)))
    depth = rng.choice((None, None, 2))
    follow(rng, compiled(rng, batch=rng.random() < 0.5, depth=depth, limits=LIMITS, demoted=demoted))


def chain(*demoted: str) -> Program:
    found = compile({"q": read(CHAIN)}, CHAIN_SOURCES, demoted=Definitions(tuple(map(read, demoted))))
    assert isinstance(found, Program)
    return found


def shapes(program: Program) -> set[str]:
    return {text(canonical(m.definition)) for m in program.maps if m.level}


def test_a_demoted_map_is_read_from_lower_maps() -> None:
    full, less = chain(), chain("AggSum([b], S(b, c) * T(c, d) * d)")
    assert shapes(less) < shapes(full) and len(shapes(full) - shapes(less)) == 1
    (step,) = (s for s in less.map("q").steps if s.event is not None and s.event.relation == "R")
    assert sum(isinstance(n, ast.MapAccess) for n in step.statement.expression.walk()) == 2


def test_maps_that_nothing_reads_are_dropped() -> None:
    """T's sums serve only the map of S and T; without that of R and S, T's own rows serve both."""
    both = chain("AggSum([b], S(b, c) * T(c, d) * d)", "AggSum([c], R(a, b) * S(b, c) * a)")
    assert len(both.maps) == 4
    for found in both.maps:
        assert found.readers, found.name


def test_everything_demoted_leaves_rows_of_relations() -> None:
    program = compile({"q": read(CHAIN)}, CHAIN_SOURCES, demoted=Some(0, 1))
    assert isinstance(program, Program)
    assert {sum(isinstance(n, ast.Relation) for n in m.definition.walk()) for m in program.maps[1:]} == {1}
    assert len(program.maps) == 4


@pytest.mark.parametrize("share", [0.5, 1])
def test_results_are_never_demoted(share: float) -> None:
    definitions = {"q": read(CHAIN), "p": read("AggSum([b], S(b, c) * T(c, d) * d)")}
    program = compile(definitions, CHAIN_SOURCES, demoted=Some(3, share))
    assert isinstance(program, Program)
    assert [m.name for m in program.maps if m.level == 0] == ["q", "p"]
