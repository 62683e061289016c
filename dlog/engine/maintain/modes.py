"""Owns which strata need not be stored, by the modes of their predicates (`dlog.ir.goals.materialize`).

    changes    the change of the predicate is computed while it has subscribers, its rows never
    on_read    the stratum is maintained like others from a read on, until it has not been read for a while

A stratum is *idle* while no transaction updates it; its predicates are stale (`dlog.engine.maintain.cones`).
A predicate that a stored one depends on is stored, too, whatever its mode.  The program's queries are read
like predicates: those over a predicate that need not be stored need not be stored either.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from dlog.engine.maintain.cones import Cones, cone_reads
from dlog.ir.goals.materialize import CHANGES, ON_READ, modes, query_strata
from dlog.ir.rules import Program, Stratum

UNREAD = 64  # transactions without a read after which a predicate is idle again


@dataclass(frozen=True)
class Modes:
    """By numbers of strata."""

    changes: frozenset[int] = frozenset()
    on_read: frozenset[int] = frozenset()
    queries: frozenset[int] = frozenset()  # those of mode changes that are queries: evaluated at each read
    at_first: frozenset[str] = frozenset()  # predicates that are not evaluated before the first read

    def __bool__(self) -> bool:
        return bool(self.changes or self.on_read)

    @classmethod
    def of(cls, program: Program, readers: Mapping[str, Collection[int]], cones: Cones) -> Modes:
        """O(program) if it has modes, else O(directives)."""
        said = modes(program)
        if not said:
            return NO_MODES
        changes, on_read = set[int](), set[int]()
        queries = query_strata(program)
        for number, stratum in enumerate(program.strata):
            mode_of = _mode_of_query if number in queries else _mode
            mode = mode_of(program, stratum, said)
            if mode == CHANGES:
                changes.add(number)
            elif mode == ON_READ:
                on_read.add(number)
        queries &= changes
        for number in sorted(on_read, reverse=True):
            names = program.strata[number].predicates
            if not tops(names, number, readers, cones) <= on_read | queries:
                on_read.discard(number)
        idle = changes | on_read
        absorbed = {number for number, above in cones.above.items() if idle.issuperset(above)}
        at_first = (name for number in idle | absorbed for name in program.strata[number].predicates)
        return cls(frozenset(changes), frozenset(on_read), queries, frozenset(at_first))


NO_MODES = Modes()


def explain_mode(known: Modes, program: Program, number: int, is_idle: bool) -> Iterator[str]:
    """What the mode of a stratum means for it, as text; nothing where there is none."""
    if number in known.changes and is_idle:
        yield "not stored, and its changes are not computed: it has no subscribers (mode changes)"
    elif number in known.on_read and is_idle:
        yield "not stored: it is evaluated when it is read (mode on_read)"
    elif number in known.on_read:
        yield f"stored from a read on, until {UNREAD} transactions pass without another one (mode on_read)"
    elif number not in known.changes and not modes(program).keys().isdisjoint(
        program.strata[number].predicates
    ):
        yield "stored although its mode is on_read, since what is stored depends on it"


def tops(
    names: Collection[str], number: int, readers: Mapping[str, Collection[int]], cones: Cones
) -> set[int]:
    """The strata that read predicates of one, also over auxiliary strata.  O(readers)."""
    direct = {n for name in names for n in readers.get(name, ())} - {number}
    return {top for n in direct for top in cones.above.get(n, (n,))}


def _mode(program: Program, stratum: Stratum, said: Mapping[str, str]) -> str | None:
    """The mode that all predicates of a stratum have which the user named."""
    found = {said.get(name) for name in stratum.predicates if not program.predicates[name].auxiliary}
    return next(iter(found)) if len(found) == 1 else None


def _mode_of_query(program: Program, stratum: Stratum, said: Mapping[str, str]) -> str | None:
    queries = {query.predicate for query in program.queries}
    if queries.isdisjoint(stratum.predicates):  # auxiliary: absorbed with what reads it
        return None
    found = {said.get(name) for name in cone_reads(program, stratum)}
    return CHANGES if CHANGES in found else ON_READ if ON_READ in found else None
