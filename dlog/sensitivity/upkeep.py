"""Owns one cycle of one plan (maintenance paper, 4): from surgeries to changed assignments and intervals.

1 surgeries of each atom, by depth, are matched with the watches of that atom: contributions to the oracle.
2 the old and the new body are evaluated under the oracle; their difference is the change of assignments.
3 what both evaluations noted, clipped to the oracle, is the change of the sensitivity indices.

Nothing that a reader sees is changed: new versions are returned.  Knows nothing of predicates or
rules; an atom is a number, its two versions are indices whose first columns are the atom's levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np

from dlog.jit import Words
from dlog.lftj.plan import Slot
from dlog.lftj.trace_assemble import AssembledTrace, assemble_trace
from dlog.lftj.traced import NO_WORDS, Traced, run_trace
from dlog.lftj.traced_plan import COVER, EACH
from dlog.sensitivity.intervals import Intervals, Spec, covered_changes, recorded
from dlog.sensitivity.oracle import Oracle
from dlog.sensitivity.rows import changes
from dlog.sensitivity.shared import OwnPlan
from dlog.sensitivity.watches import ANY, COARSE, FREE, KEY, PREFIX, TRACED, Watch, Watched, watched
from dlog.storage.arena.arena import Arena
from dlog.storage.diff.surgery import Surgeries, surgeries
from dlog.storage.index.batch import Change
from dlog.storage.index.index import Index

__all__ = ["CycleResult", "Upkeep", "contexts_of"]


NO_POINTS: Mapping[Watch, Words] = {}


@dataclass(frozen=True)
class CycleResult:
    """The result of one cycle: assignments that disappeared and that are new, each once; the new versions of
    the sensitivity indices; the iterator operations that it took, and how many of them were nexts."""

    erased: Words
    inserted: Words
    intervals: tuple[Intervals, ...]
    operations: int
    nexts: int


@dataclass(frozen=True)
class Upkeep:
    """A watched plan, ready to run."""

    watched: Watched
    exact_at: frozenset[Slot] = frozenset()  # the shared leaps whose own traces are exact

    @cached_property
    def whole(self) -> AssembledTrace:
        return assemble_trace(self.watched.traced, guided=False)

    @cached_property
    def guided(self) -> AssembledTrace:
        return assemble_trace(self.watched.traced, guided=True)

    @cached_property
    def shared(self) -> tuple[SharedLeap, ...]:
        return tuple(
            SharedLeap(watch, watch.own, Upkeep(watched(watch.own.plan, COARSE, exact_at=at)))
            for watch in self.watched.watches
            if watch.own is not None
            for at in [[s for s in self.exact_at if s == watch.key]]
        )

    # Recording

    def record(
        self,
        words: Words,
        roots: Sequence[int],
        ranks: Words = NO_WORDS,
        rows: int = 1 << 10,
        between: Callable[[], None] | None = None,
        most_words: float = inf,
    ) -> Traced:
        """Evaluate all of a plan, and record what it is sensitive to."""
        return run_trace(self.whole, words, roots, ranks, rows=rows, between=between, most_words=most_words)

    def intervals(self, arena: Arena, traced: Traced, roots: Sequence[int] = ()) -> tuple[Intervals, ...]:
        """Sensitivity indices of the noted rows; then those of each shared leap.

        REQUIRES: the `roots` of the atoms, if a leap is shared."""
        own = tuple(
            recorded(arena, spec, parts)  # covers, which come last, are in no index
            for spec, parts in zip(self.own_specs, traced.parts[: len(self.own_specs)], strict=True)
        )
        found = [own]
        for leap in self.shared:
            run = leap.upkeep.record(arena.A, [*roots, own[leap.watch.note].tree.root])
            found.append(leap.upkeep.intervals(arena, run))
        return tuple(index for part in found for index in part)

    @cached_property
    def own_specs(self) -> tuple[Spec, ...]:
        return tuple(Spec.of(watch, self.watched.is_exact(watch)) for watch in self.watched.indexed)

    @cached_property
    def specs(self) -> tuple[Spec, ...]:
        """The forms of the sensitivity indices."""
        return (*self.own_specs, *(spec for leap in self.shared for spec in leap.upkeep.specs))

    @cached_property
    def covers(self) -> dict[int, int]:
        """From the number of a note to that of the note of its cover."""
        notes = self.watched.traced.notes
        covers = {(n.atom, n.level): i for i, n in enumerate(notes) if n.form == COVER}
        return {
            i: covers[n.atom, n.level]
            for i, n in enumerate(notes)
            if n.form == EACH and (n.atom, n.level) in covers
        }

    # Maintenance

    def cycle(
        self,
        words: Words,
        changed: Mapping[int, Surgeries],
        roots: tuple[Sequence[int], Sequence[int]],
        intervals: Sequence[Intervals],
        emptied: Sequence[int] = (),
        ranks: Words = NO_WORDS,
        between: Callable[[], None] | None = None,
    ) -> tuple[Oracle, CycleResult]:
        """One cycle, those of shared leaps included.  `changed` are the surgeries of atoms, `roots` those of
        both versions of each atom."""
        own, *parts = self._parted(intervals)
        reached = [own[leap.watch.note].tree for leap in self.shared]
        first = [
            leap.follow(words, changed, roots, (before, before), part)
            for leap, part, before in zip(self.shared, parts, reached, strict=True)
        ]
        points = {leap.watch: leap.points(run) for leap, run in zip(self.shared, first, strict=True)}
        oracle = self.oracle(changed, own, emptied, points)
        result = self.maintain(words, oracle, roots, own, ranks, between)
        second = [
            leap.follow(
                words,
                {},
                (roots[1], roots[1]),
                (before, result.intervals[leap.watch.note].tree),
                run.intervals,
            )
            for leap, run, before in zip(self.shared, first, reached, strict=True)
        ]
        runs = (result, *first, *second)
        later = (*result.intervals, *(index for run in second for index in run.intervals))
        operations, nexts = sum(run.operations for run in runs), sum(run.nexts for run in runs)
        return oracle, CycleResult(result.erased, result.inserted, later, operations, nexts)

    def shared_intervals(
        self, intervals: Sequence[Intervals]
    ) -> Iterator[tuple[SharedLeap, Sequence[Intervals]]]:
        """Each shared leap with its indices, if there are any."""
        return zip(self.shared, self._parted(intervals)[1:], strict=True)

    def _parted(self, intervals: Sequence[Intervals]) -> list[Sequence[Intervals]]:
        """The indices of the plan, and those of each shared leap."""
        parts, start = [], 0
        for specs in (self.own_specs, *(leap.upkeep.specs for leap in self.shared)):
            parts.append(intervals[start : start + len(specs)])
            start += len(specs)
        return parts

    def oracle(
        self,
        surgeries: Mapping[int, Surgeries],
        intervals: Sequence[Intervals],
        emptied: Sequence[int] = (),
        points: Mapping[Watch, Words] = NO_POINTS,
    ) -> Oracle:
        """The contributions of changes of some atoms.  `emptied` are atoms that gained their first row, or
        lost their last; `points` are the rows of shared leaps that changed."""
        oracle = Oracle(len(self.watched.keys))
        for watch in self.watched.watches:
            if watch.own is not None:
                if watch in points and len(points[watch]):
                    self._contribute(oracle, watch, points[watch], intervals)
            elif watch.level < 0:
                if watch.atom in emptied:
                    oracle.add(np.empty((1, 0), np.int64))
            elif watch.atom in surgeries:
                change = surgeries[watch.atom].at_depth(watch.level + 1)
                if change:
                    self._contribute(oracle, watch, _both(change), intervals)
        return oracle

    def _contribute(
        self, oracle: Oracle, watch: Watch, points: Words, intervals: Sequence[Intervals]
    ) -> None:
        if watch.how != TRACED:
            points = self._fitting(watch, points)
            contexts = contexts_of(watch, points, points)
            if watch.how == FREE and self.watched.is_exact(watch):
                oracle.add(*self._widened(watch, contexts, intervals), watch.wild)
            else:
                oracle.add(contexts, None, watch.wild)
            return
        index = intervals[watch.note]
        matches = index.beginning(points) if watch.below else index.stabbing(points)
        contexts = contexts_of(watch, points[matches.points], matches.rows)
        ends: Words | None = None
        if self.watched.is_exact(watch):
            level = len(watch.prefix)
            contexts[:, -1] = matches.rows[:, level]
            ends = matches.rows[:, level + 1]
        oracle.add(contexts, ends, watch.wild)

    def _fitting(self, watch: Watch, points: Words) -> Words:
        """Points that agree with the constants of the plan, and with themselves."""
        slots = (*watch.prefix, *(() if watch.key is None else (watch.key,)))
        fits = np.ones(len(points), bool)
        for column, slot in enumerate(slots):
            if slot in self.watched.constants:
                fits &= points[:, column] == self.watched.constants[slot]
            elif slot in slots[:column]:
                fits &= points[:, column] == points[:, slots.index(slot)]
        return points[fits]

    def _widened(self, watch: Watch, contexts: Words, intervals: Sequence[Intervals]) -> tuple[Words, Words]:
        """Points and the intervals of other participants that hold them: see `dlog.sensitivity.intervals`."""
        low, high = contexts[:, -1].copy(), contexts[:, -1].copy()
        for other in self.watched.widening(watch):
            a, b = intervals[other.note].holding(self._points(other, contexts))
            low, high = np.minimum(low, a), np.maximum(high, b)
        return np.column_stack([contexts[:, :-1], low]), high

    def _points(self, watch: Watch, contexts: Words) -> Words:
        """Contexts as rows of a watch's index, a and b being the last key."""
        keys, constants = self.watched.keys, self.watched.constants
        columns = []
        for word in self.watched.traced.notes[watch.note].words:
            if isinstance(word, str):
                columns.append(contexts[:, -1])
            elif word in keys:
                columns.append(contexts[:, keys.index(word)])
            else:
                columns.append(np.full(len(contexts), constants[word]))
        return np.column_stack(columns)

    def maintain(
        self,
        words: Words,
        oracle: Oracle,
        roots: tuple[Sequence[int], Sequence[int]],
        intervals: Sequence[Intervals],
        ranks: Words = NO_WORDS,
        between: Callable[[], None] | None = None,
    ) -> CycleResult:
        """Old and new under the oracle.  `roots` are those of both versions of each atom."""
        if not oracle:
            none = np.empty((0, self.guided.assembled.n_columns), np.int64)
            return CycleResult(none, none, tuple(intervals), 0, 0)
        old, new = (
            [run_trace(self.guided, words, own, ranks, guide, between=between) for guide in oracle.guides()]
            for own in roots
        )
        erased, inserted = changes(_all(old), _all(new))
        later = []
        for i, index in enumerate(intervals):
            before, after = (_all_notes(runs, i) for runs in (old, new))
            if index.spec.by_context:
                atom = self.watched.indexed[i].atom
                edit = covered_changes(index, words, roots[1][atom], _all_notes(old, self.covers[i]), after)
            else:
                erased_rows, inserted_rows = changes(before, after)
                edit = Change(inserted_rows, erased_rows)
            later.append(index.apply(edit) if edit else index)
        runs = (*old, *new)
        operations, nexts = sum(run.operations for run in runs), sum(run.nexts for run in runs)
        return CycleResult(erased, inserted, tuple(later), operations, nexts)


@dataclass(frozen=True)
class SharedLeap:
    """A leap with a plan of its own; `watch` is that of its leader in the rule's plan."""

    watch: Watch
    own: OwnPlan
    upkeep: Upkeep

    def follow(
        self,
        words: Words,
        changed: Mapping[int, Surgeries],
        roots: tuple[Sequence[int], Sequence[int]],
        reached: tuple[Index, Index],
        intervals: Sequence[Intervals],
    ) -> CycleResult:
        """A cycle of the own plan, `reached` being what the rule's plan reaches before and after."""
        before, after = reached
        found = dict(changed)
        if before.root != after.root:
            found[len(roots[0])] = surgeries(before, after)
        oracle = self.upkeep.oracle(found, intervals)
        both = [*roots[0], before.root], [*roots[1], after.root]
        return self.upkeep.maintain(words, oracle, both, intervals)

    def points(self, run: CycleResult) -> Words:
        """The changed rows of the leader."""
        return self.own.points(np.concatenate([run.erased, run.inserted]))


def _both(change: Change) -> Words:
    return np.concatenate([change.inserted, change.erased])


def contexts_of(watch: Watch, points: Words, rows: Words) -> Words:
    """The contexts that points (prefix, key) lead to, with the rows that hold them."""
    contexts = np.empty((len(points), watch.depth), np.int64)
    level = len(watch.prefix)
    for d, (kind, place) in enumerate(watch.sources):
        if kind == PREFIX:
            contexts[:, d] = points[:, place]
        elif kind == KEY:
            contexts[:, d] = points[:, level]
        else:
            contexts[:, d] = 0 if kind == ANY else rows[:, level + watch.below + 2 + place]
    return contexts


def _all(runs: Sequence[Traced]) -> Words:
    return np.concatenate([run.rows for run in runs]) if len(runs) > 1 else runs[0].rows


def _all_notes(runs: Sequence[Traced], number: int) -> Words:
    return np.concatenate([run.notes[number] for run in runs]) if len(runs) > 1 else runs[0].notes[number]
