"""Owns the restriction of a program to some of its rules.  Knows nothing of how they are evaluated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dlog.ir.rules import Program, Stratum


def narrowed(program: Program, strata: Iterable[Stratum]) -> Program:
    """The program with the rules of these strata only, in order; other derived predicates have only their
    base facts.  No constraints, queries or changes of facts.  O(size of its rules).
    """
    wanted = {id(stratum) for stratum in strata}
    chosen = tuple(stratum for stratum in program.strata if id(stratum) in wanted)
    return replace(
        program,
        rules=tuple(rule for stratum in chosen for rule in stratum.rules),
        strata=chosen,
        constraints=(),
        queries=(),
        deltas=(),
        maintained=None,
        written=None,
    )


def read_by(program: Program, predicate: str) -> list[Stratum]:
    """The strata of a predicate and of all that it depends on, in order.  O(size of the program)."""
    wanted = {predicate}
    found = []
    for stratum in reversed(program.strata):
        if not wanted.isdisjoint(stratum.predicates):
            wanted |= stratum.reads
            found.append(stratum)
    return found[::-1]


def reads_of(program: Program, predicate: str) -> set[str]:
    """A predicate and all that it depends on.  O(size of the program)."""
    return {predicate}.union(*(stratum.reads for stratum in read_by(program, predicate)))
