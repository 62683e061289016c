"""Owns cones, the auxiliary strata below a stratum, which its strategy may absorb; and stale predicates.

    # top <- bids(_, v, p), s = sum w : {bids(_, w, q), q > p}, v > s.     the sum is an auxiliary predicate

A strategy *over the cone* reads what the auxiliary predicates are derived from, not these themselves.  While
all that reads an auxiliary predicate is maintained so, nothing updates it: it is *stale*, and is evaluated
before anything reads it.  Its old rows stay, as statistics for estimates.

The mark of a stale predicate is an empty relation in the store: a commit keeps it, an abort removes it, and
other versions of the database have their own.  Predicates that the user named are never absorbed; those
that need not be stored are stale, too, without rows (`dlog.engine.maintain.modes`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from dlog.engine.evaluate.evaluate import Evaluation, evaluate_stratum
from dlog.engine.maintain.strategy import Cycle, start_from_facts
from dlog.engine.state.store import Store
from dlog.ir.rules import Program, Stratum
from dlog.planning.versions import stale_name
from dlog.storage.relation.relation import Relation


@dataclass(frozen=True)
class Cones:
    """By numbers of strata, in ascending order.  A stratum that is not auxiliary ends the search."""

    above: Mapping[int, tuple[int, ...]]  # auxiliary stratum -> others that read it, by auxiliary ones, too
    below: Mapping[int, tuple[int, ...]]  # stratum -> auxiliary strata that it reads in the same sense

    @classmethod
    def of(cls, program: Program, readers: Mapping[str, Collection[int]]) -> Cones:
        """O(program)."""
        above: dict[int, tuple[int, ...]] = {}
        reached: dict[int, set[int]] = {}  # from an auxiliary stratum upwards
        below: dict[int, list[int]] = {}
        for number in reversed(range(len(program.strata))):
            stratum = program.strata[number]
            if stratum.recursive or not _is_auxiliary(program, stratum):
                continue
            direct = {n for name in stratum.predicates for n in readers.get(name, ())} - {number}
            if direct:
                reached[number] = direct.union(*(reached.get(n, ()) for n in direct))
                above[number] = tuple(sorted(reached[number] - reached.keys()))
                for reader in reached[number]:
                    below.setdefault(reader, []).insert(0, number)
        return cls(above, {reader: tuple(numbers) for reader, numbers in below.items()})


def _is_auxiliary(program: Program, stratum: Stratum) -> bool:
    predicates = [program.predicates[name] for name in stratum.predicates]
    return all(p.auxiliary and p.equivalence is None and not p.has_memory for p in predicates)


def cone_reads(program: Program, stratum: Stratum) -> frozenset[str]:
    """What a stratum reads, with what auxiliary predicates are derived from in their place."""
    found: set[str] = set()
    waiting, seen = list(stratum.reads), set(stratum.reads)
    while waiting:
        name = waiting.pop()
        below = program.stratum_of.get(name)
        if below is None or below.recursive or not _is_auxiliary(program, below):
            found.add(name)
            continue
        waiting += below.reads - seen
        seen |= below.reads
    return frozenset(found)


def is_stale(store: Store, names: Iterable[str]) -> bool:
    return any(stale_name(name) in store.relations for name in names)


def mark_stale(store: Store, stratum: Stratum) -> None:
    for name in stratum.predicates:
        store.relations[stale_name(name)] = Relation(store.arena, 0)


def is_now_fresh(cycle: Cycle, stratum: Stratum) -> None:
    """Its predicates have been evaluated, other than by what changed: so must be what reads them."""
    for name in stratum.predicates:
        cycle.store.relations.pop(stale_name(name), None)
        cycle.refreshed.add(name)


def evaluate_stale(cycle: Cycle, stratum: Stratum) -> None:
    """REQUIRES: it is stale, and what it reads is not."""
    start_from_facts(cycle, stratum)
    evaluate_stratum(cycle.program, stratum, cycle.store, cycle.evaluation)
    is_now_fresh(cycle, stratum)


def stale_predicates(program: Program, relations: Mapping[str, Relation]) -> frozenset[str]:
    """O(derived predicates)."""
    return frozenset(name for name in program.stratum_of if stale_name(name) in relations)


def without_stale(program: Program, relations: Mapping[str, Relation]) -> Program:
    """The program without the rules of stale predicates, but for those that others need."""
    stale = stale_predicates(program, relations)
    if not stale:
        return program
    needed, strata = set[str](), list[Stratum]()
    for stratum in reversed(program.strata):
        if not stale.issuperset(stratum.predicates) or not needed.isdisjoint(stratum.predicates):
            strata.append(stratum)
            needed |= stratum.reads
    return replace(program, strata=tuple(reversed(strata)))


def with_fresh(
    program: Program, strata: Iterable[Stratum], store: Store, evaluation: Evaluation
) -> dict[str, Relation]:
    """The relations of a store with these strata evaluated if they are stale; the store stays as it is.

    REQUIRES: the strata are in order, and have all that is stale of what they read.
    """
    found = [stratum for stratum in strata if is_stale(store, stratum.predicates)]
    if not found:
        return store.relations
    fresh = store.under(store.predicates)
    fresh.relations = store.relations.copy()
    cycle = Cycle(program, fresh, evaluation)
    for stratum in found:
        evaluate_stale(cycle, stratum)
    return fresh.relations


def all_fresh(given: Program, maintained: Program, store: Store, names: Iterable[str]) -> dict[str, Relation]:
    """The same for these predicates and all that they depend on.  What a program has in addition when it is
    maintained comes last."""
    own, wanted, found = given.stratum_of.keys(), set(names), list[Stratum]()
    added = [stratum for stratum in maintained.strata if own.isdisjoint(stratum.predicates)]
    for stratum in reversed((*given.strata, *added)):
        if not wanted.isdisjoint(stratum.predicates):
            wanted |= stratum.reads
            found.append(stratum)
    return with_fresh(maintained, found[::-1], store, Evaluation())
