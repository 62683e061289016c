"""Owns where the trace of a rule is exact and where it is coarse.  Knows nothing of transactions.

A changed row leads a coarse leap to every context that has the row's prefix, be the row of use there or not.
So a leap is coarse only where few contexts have a prefix in common.  Where many have, it is a *crowd*:

    shared    if it does not depend on all of its context: it is traced once for all contexts that are alike
    exact     otherwise, if that takes no more memory than the rule's relations allow
    coarse    if it does: then nothing bounds the contexts that are looked up in vain but their number

A coarse leap from which an atom is taken out, and sought, is a *walk*: it visits all keys that the others
have, though few of them may be found.  It is exact where it would visit far more keys than it does then.

In all other cases  operations <= c * (trace edit distance + CONTEXTS * changed rows) * log n,  where a search
that ends at its first match, or is inside a negation, counts as a whole in each context that changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dlog.engine.state.store import Store
from dlog.jit import Words
from dlog.lftj.plan import Emit, Leap, Plan, Slot, walk
from dlog.lftj.traced import run_trace
from dlog.lftj.traced_plan import ALL, POINT, SPAN
from dlog.sensitivity.intervals import Intervals
from dlog.sensitivity.oracle import Oracle
from dlog.sensitivity.run_kernels import longest_run
from dlog.sensitivity.upkeep import Upkeep, contexts_of
from dlog.sensitivity.watches import COARSE, TRACED, WILD, MayRoam, Watch, watched

CONTEXTS = 16  # that a changed row of a coarse leap may lead to in vain
MEMORY = 4.0  # times the relations that the rule reads: for all of its sensitivity indices
SPARE = 4e6  # bytes that are always there
SAMPLE = 200  # contexts in which the size of an exact trace is measured
WALKS = 20  # contexts in which a walk is measured
FAR_MORE = 4.0  # times the operations of an exact leap, from which on a walk is exact


@dataclass(frozen=True)
class Crowd:
    """A leap in which one changed row of an atom may lead to many contexts, or which is a walk.

    `bytes` is the expected size of its exact trace, `room` what is there for it; a walk takes `walk` times
    the operations of an exact leap."""

    slot: Slot
    contexts: int
    is_shared: bool = False
    bytes: float = 0.0
    room: float = 0.0
    walk: float = 0.0

    @property
    def is_exact(self) -> bool:
        return not self.is_shared and self.bytes <= self.room


@dataclass(frozen=True)
class Evidence:
    """A coarse trace: a plan, what its atoms read, and what was noted."""

    plan: Plan
    may_roam: MayRoam
    upkeep: Upkeep
    words: Words
    roots: Sequence[int]
    ranks: Words
    intervals: Sequence[Intervals]
    noted: Callable[[int], Sequence[Words]]  # the rows of an index, in parts


def crowds(evidence: Evidence, room: float, known: Collection[Slot] = ()) -> tuple[Crowd, ...]:
    """The crowded leaps whose slots are not known, those of small exact traces first, then walks.

    O(rows of the indices), without a Python loop."""
    found = {slot: n for slot, n in _contexts(evidence).items() if n > CONTEXTS and slot not in known}
    walks = [Crowd(slot, 0, walk=by) for slot, by in _walks(evidence, {*known, *found}) if by > FAR_MORE]
    return (*_crowded(evidence, found, room), *walks)


def _crowded(evidence: Evidence, found: dict[Slot, int], room: float) -> tuple[Crowd, ...]:
    if not found:
        return ()
    plan = watched(evidence.plan, COARSE, evidence.may_roam, shared_at=found)
    shared = {watch.key for watch in plan.watches if watch.own is not None}
    crowded = [Crowd(slot, n, True) for slot, n in found.items() if slot in shared]
    room -= sum(index.bytes for index in evidence.intervals)
    for size, slot in sorted((_exact_bytes(evidence, slot), slot) for slot in found if slot not in shared):
        crowded.append(Crowd(slot, found[slot], False, size, max(room, 0.0)))
        room -= size if crowded[-1].is_exact else 0.0
    return tuple(crowded)


def own_crowds(evidence: Evidence, room: float) -> tuple[Crowd, ...]:
    """The crowds in the own plans of shared leaps.  `evidence` is that of the trace with them."""
    found: list[Crowd] = []
    for leap, intervals in evidence.upkeep.shared_intervals(evidence.intervals):
        reached = evidence.intervals[leap.watch.note].tree.root
        own = replace(
            evidence,
            plan=leap.own.plan,
            upkeep=leap.upkeep,
            roots=[*evidence.roots, reached],
            intervals=intervals,
            noted=rows_of(intervals),
        )
        others = sum(i.bytes for i in evidence.intervals) - sum(i.bytes for i in intervals)
        found += crowds(own, room - others)
    return tuple(found)


def room_for(store: Store, reads: Collection[str]) -> float:
    """Bytes for all sensitivity indices of a rule that reads some predicates."""
    return max(SPARE, MEMORY * sum(8.0 * store.predicates[n].arity * store.rows(n) for n in reads))


def rows_of(intervals: Sequence[Intervals]) -> Callable[[int], Sequence[Words]]:
    """The rows of an index, where they are not at hand in parts."""
    return lambda note: [intervals[note].rows()]


# How many contexts a changed row may lead to


def _contexts(evidence: Evidence) -> dict[Slot, int]:
    """For each coarse leap in which it may lead to some of them in vain."""
    found: dict[Slot, int] = {}
    leaps = {
        p: step for step in walk(evidence.plan.steps) if isinstance(step, Leap) for p in step.participants
    }
    for watch in evidence.upkeep.watched.watches:
        leap = leaps.get((watch.atom, watch.level))
        if leap is None or not (len(leap.participants) > 1 or leap.lower or leap.upper):
            continue  # each row of a leap's only participant counts
        n = _of_watch(evidence, watch, leap)
        found[leap.slot] = max(n, found.get(leap.slot, 0))
    return found


def _of_watch(evidence: Evidence, watch: Watch, leap: Leap) -> int:
    watched_plan, words = evidence.upkeep.watched, evidence.words
    if (watch.atom, watch.level) in watched_plan.traced.exact or watch.own is not None:
        return 0
    if watch.how == WILD:
        return int(np.prod([_open(evidence, depth) for depth in watch.wild], dtype=float))
    if watch.how != TRACED:
        return 1
    form = watched_plan.traced.notes[watch.note].form
    root = evidence.intervals[watch.note].tree.root
    if form in (ALL, SPAN) and not watch.below:
        return longest_run(words, root, watch.level)
    sought = [p for p in leap.participants if p not in _in_leaps(watched_plan.traced.plan)]
    return longest_run(words, root, watch.level + 1) if len(sought) > 1 else 1


def _in_leaps(plan: Plan) -> set[tuple[int, int]]:
    return {p for step in walk(plan.steps) if isinstance(step, Leap) for p in step.participants}


def _open(evidence: Evidence, depth: int) -> float:
    """The most values of an open variable that go with one prefix."""
    key = evidence.upkeep.watched.keys[depth]
    bound = [
        (atom, level)
        for step in walk(evidence.plan.steps)
        if isinstance(step, Leap) and step.slot == key
        for atom, level in step.participants
        if level > 0
    ]
    return min((longest_run(evidence.words, evidence.roots[a], level) for a, level in bound), default=1)


# How many keys a leap visits in vain


def _walks(evidence: Evidence, known: Collection[Slot]) -> Iterator[tuple[Slot, float]]:
    """The leaps from which atoms are taken out, and how many times the operations of exact ones they take."""
    plan, roams = evidence.plan, evidence.may_roam
    for slot, watch in _sought(evidence).items():
        guide = _guide_to(evidence, slot, watch)
        if slot in known or guide is None:
            continue
        coarse, exact = (
            run_trace(
                Upkeep(watched(_up_to(plan, slot), COARSE, roams, exact_at=at)).guided,
                evidence.words,
                evidence.roots,
                evidence.ranks,
                guide,
            ).operations
            for at in ((), (slot,))
        )
        yield slot, coarse / max(exact, 1)


def _sought(evidence: Evidence) -> dict[Slot, Watch]:
    """For each leap from which atoms are taken out, the watch of one of them."""
    watched_plan = evidence.upkeep.watched
    leaps = {
        p: step.slot
        for step in walk(evidence.plan.steps)
        if isinstance(step, Leap)
        for p in step.participants
    }
    stay = _in_leaps(watched_plan.traced.plan)
    return {
        leaps[watch.atom, watch.level]: watch
        for watch in watched_plan.watches
        if watch.how == TRACED
        and (watch.atom, watch.level) in leaps.keys() - stay
        and (watch.below or watched_plan.traced.notes[watch.note].form == POINT)
    }


def _guide_to(evidence: Evidence, slot: Slot, watch: Watch) -> Words | None:
    """A guide to some contexts of a leap from which an atom is taken out; None if it has none."""
    keys, parts = evidence.upkeep.watched.keys, evidence.noted(watch.note)
    n, depth = sum(map(len, parts)), keys.index(slot) if slot in keys else watch.depth
    if not n or not depth:
        return None
    rows = np.concatenate(list(_rows_at(parts, np.arange(0, n, max(1, n // WALKS)))))
    oracle = Oracle(len(keys))
    oracle.add(contexts_of(watch, rows, rows)[:, :depth])
    (guide,) = oracle.guides()
    return guide


# How large an exact trace would be


def _exact_bytes(evidence: Evidence, slot: Slot) -> float:
    """The expected size of the indices of one leap, from a sample of its contexts."""
    upkeep = Upkeep(watched(_up_to(evidence.plan, slot), COARSE, evidence.may_roam, exact_at=(slot,)))
    guide, share = _sample(evidence, slot)
    run = run_trace(upkeep.guided, evidence.words, evidence.roots, evidence.ranks, guide)
    exact = upkeep.watched.traced.exact
    words = sum(
        len(run.notes[w.note]) * upkeep.specs[w.note].arity * (2 if upkeep.specs[w.note].by_context else 1)
        for w in upkeep.watched.indexed
        if (w.atom, w.level) in exact
    )
    return 8.0 * words * share


def _up_to(plan: Plan, slot: Slot) -> Plan:
    """A plan that ends with the leap of a slot; the whole of it if that is inside a step."""
    for i, step in enumerate(plan.steps):
        if isinstance(step, Leap) and step.slot == slot:
            return replace(plan, steps=(*plan.steps[: i + 1], Emit((slot,))))
    return plan


def _sample(evidence: Evidence, slot: Slot) -> tuple[Words, float]:
    """A guide to some of a leap's contexts, and how many each of them stands for."""
    everything = np.array([-1, -1], np.int64)
    for watch in _noted_watches(evidence, slot):
        parts = evidence.noted(watch.note)
        n = sum(map(len, parts))
        depth = watch.depth - watch.is_leap
        if not n or not depth:
            continue
        places = np.arange(0, n, max(1, n // SAMPLE))
        rows = np.concatenate(list(_rows_at(parts, places)))
        oracle = Oracle(len(evidence.upkeep.watched.keys))
        oracle.add(contexts_of(watch, rows, rows)[:, :depth])
        (guide,) = oracle.guides()
        return guide, n / len(rows)
    return everything, 1.0


def _noted_watches(evidence: Evidence, slot: Slot) -> Iterator[Watch]:
    """The watches of a leap's participants that have a row for each context."""
    traced = evidence.upkeep.watched.traced
    own = {
        p for s in walk(traced.plan.steps) if isinstance(s, Leap) and s.slot == slot for p in s.participants
    }
    for watch in evidence.upkeep.watched.indexed:
        if (watch.atom, watch.level) in own and traced.notes[watch.note].form in (ALL, SPAN):
            yield watch


def _rows_at(parts: Sequence[Words], places: np.ndarray) -> Iterator[Words]:
    """The rows at some places, counted through all parts."""
    start = 0
    for part in parts:
        yield part[places[(places >= start) & (places < start + len(part))] - start]
        start += len(part)
