"""Owns the choice of the maps that are stored, by estimated cost.

There are as many choices as subsets of the maps, so the search is greedy.  It begins with full compilation,
with rows of relations alone, and with maps of so many relations at most in between; then maps are demoted and
promoted, one at a time, wherever that is cheaper, until nothing is.  The cheapest of what it ends with, of
depth 0 and of depth 1 is chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from dlog.garbage import seldom_collected
from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import degree
from dlog.multilevel.demote import can_be_demoted
from dlog.multilevel.program import LIMITS, Limits, Program, Refusal, compile, or_refusal, universe_of, write
from dlog.multilevel.selection.estimate import Estimate, Estimator, but, estimated
from dlog.multilevel.selection.sizes import Statistics

Names = frozenset[str]
SWEEPS = 8
LEAST = 1e-3  # the share by which a change must be cheaper
PAIRS = 12  # maps, up to which two are tried together
WIDER = 100  # times the rewrites of one program: those of the search
DEPTHS = {"depth 0": 0, "depth 1": 1, "full": None}
CHOSEN = "chosen"


@dataclass(frozen=True)
class Selection:
    """A program with its estimate."""

    program: Program
    estimate: Estimate


@seldom_collected
def selections(
    definitions: Mapping[str, Node],
    sources: Iterable[ast.Source],
    known: Statistics,
    batch: bool = True,
    limits: Limits = LIMITS,
) -> dict[str, Selection | Refusal]:
    """Depth 0, depth 1, full compilation, and the cheapest: one of these or what the search finds."""
    sources = tuple(sources)
    programs = {
        name: compile(definitions, sources, depth=depth, batch=batch, limits=limits)
        for name, depth in DEPTHS.items()
    }
    found = {name: _selection(program, known) for name, program in programs.items()}
    search = or_refusal(lambda: _searched(definitions, sources, known, batch, limits), limits)
    every = [p for p in (_selection(search, known), *found.values()) if isinstance(p, Selection)]
    cheapest = min(every, key=lambda p: p.estimate.cost(known), default=found["full"])
    return {**found, CHOSEN: cheapest}


def _selection(program: Program | Refusal, known: Statistics) -> Selection | Refusal:
    return program if isinstance(program, Refusal) else Selection(program, estimated(program, known))


def _searched(
    definitions: Mapping[str, Node],
    sources: tuple[ast.Source, ...],
    known: Statistics,
    batch: bool,
    limits: Limits,
) -> Program:
    wider = replace(limits, rewrites=WIDER * limits.rewrites)
    universe = universe_of(definitions, sources, None, False, batch, wider)
    demoted, _ = choose(Estimator(universe, known))
    return write(universe, but(demoted), limits)


def choose(estimator: Estimator) -> tuple[Names, Estimate]:
    """The maps to be demoted, by their names, and the estimate without them."""
    every = everything(estimator)
    joined = {name: degree(estimator.universe.catalogue.maps[name].definition) for name in every}
    starts = [frozenset(n for n in every if joined[n] > most) for most in {0, *joined.values()}]
    found = [_descended(estimator, demoted) for demoted in dict.fromkeys(starts)]
    return min(found, key=lambda f: f[1].cost(estimator.known))


def everything(estimator: Estimator) -> Names:
    """All that can be demoted: of full compilation, and what is read in its place."""
    estimator.estimate(but(()))
    estimator.estimate(lambda entry: False)
    return frozenset(entry.name for entry in estimator.universe.catalogue if can_be_demoted(entry))


def _descended(estimator: Estimator, demoted: Names) -> tuple[Names, Estimate]:
    """Demotes or promotes one map after the other while that pays; where none alone does, two together."""
    at = demoted, estimator.estimate(but(demoted))
    for _ in range(SWEEPS):
        before = at[0]
        for entry in estimator.universe.catalogue:
            at = _cheaper(estimator, at, frozenset([entry.name]))
        names = [e.name for e in estimator.universe.catalogue if can_be_demoted(e)]
        if at[0] == before and len(names) <= PAIRS:
            for pair in combinations(names, 2):
                at = _cheaper(estimator, at, frozenset(pair))
        if at[0] == before:
            break
    return at


def _cheaper(estimator: Estimator, at: tuple[Names, Estimate], toggled: Names) -> tuple[Names, Estimate]:
    """The choice with some maps demoted that were not, or the other way round, if it costs less."""
    demoted, best = at
    stored = estimator.universe.catalogue.maps
    if not all(can_be_demoted(stored[n]) and (n in best.maps or n in demoted) for n in toggled):
        return at
    other = demoted ^ toggled
    found = estimator.estimate(but(other))
    known = estimator.known
    return (other, found) if found.cost(known) < best.cost(known) * (1 - LEAST) else at
