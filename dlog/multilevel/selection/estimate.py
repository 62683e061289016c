"""Owns estimates of what a set of maps costs: time for a row of each stream, and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import Names
from dlog.multilevel.costs import UPDATE
from dlog.multilevel.demote import IsStored
from dlog.multilevel.maps import StoredMap
from dlog.multilevel.names import m3_form
from dlog.multilevel.order import maps_in
from dlog.multilevel.program import Program
from dlog.multilevel.selection.sizes import Size, Statistics, size_of
from dlog.multilevel.selection.work import Work, corrected, slot_words, work, written
from dlog.multilevel.universe import Change, Universe
from dlog.multilevel.values import is_zero

MOST = 16.0  # times: the most by which an estimate is corrected
FILLED = 0.45  # of the slots of a table, on average
WORD = 8
MEGABYTE = 1e-3  # microseconds a row for which a megabyte is worth saving


@dataclass(frozen=True)
class Estimate:
    """`maps` are the names of those stored, `time` is microseconds for a row of each stream."""

    maps: tuple[str, ...]
    time: Mapping[str, float]
    bytes: float

    def cost(self, known: Statistics) -> float:
        """Microseconds for a row, on average at the rates of streams, with a surcharge for memory."""
        rates = {name: known.rate(name) for name in self.time}
        spent = sum(rate * self.time[name] for name, rate in rates.items())
        return spent / max(sum(rates.values()), 1e-9) + self.bytes / 1e6 * MEGABYTE


@dataclass(frozen=True)
class Cost:
    """Of a statement: when rows of a relation are inserted it changes `target`, and reads maps."""

    target: str
    relation: str
    work: Work
    reads: Names


@dataclass(frozen=True)
class Kept:
    """A map: how many words its keys have, and its size."""

    keys: int
    size: Size


def total(costs: Sequence[Cost], maps: Mapping[str, Kept], streams: Iterable[str]) -> Estimate:
    """Of a program with these statements and maps."""
    keys = set[tuple[str, tuple[int, ...]]]().union(*(c.work.reads.keys for c in costs))
    ranges = set[tuple[str, int]]().union(*(c.work.reads.ranges for c in costs))
    ordered = {name for name, _ in ranges}
    time = dict.fromkeys(streams, 0.0)
    for c in costs:
        time[c.relation] += c.work.time
        time[c.relation] += written(c.work.rows, c.target in ordered, maps[c.target].size.entries)
    words = 0.0
    for name, kept in maps.items():
        indices, orders = (sum(n == name for n, _ in found) for found in (keys, ranges))
        words += max(kept.size.entries, 1.0) * slot_words(kept.keys, 1, indices, orders)
    return Estimate(tuple(maps), time, words * WORD / FILLED)


def estimated(program: Program, known: Statistics) -> Estimate:
    """Of a program as it is.  Rows that are deleted cost what rows that are inserted cost."""
    maps = {
        m.name: Kept(len(m.keys) + len(m.inputs), size_of(m.definition, m.keys, known)) for m in program.maps
    }
    costs = list(_costs(program, known, {name: kept.size for name, kept in maps.items()}))
    streams = [s.name for s in program.m3.sources if s.kind == ast.STREAM]
    return total(costs, maps, streams)


def _costs(program: Program, known: Statistics, sizes: Mapping[str, Size]) -> Iterator[Cost]:
    for report in program.maps:
        factor = known.correction(report.definition)
        for step in report.steps:
            if step.event is not None and step.event.sign >= 0:
                right, target = step.statement.expression, step.statement.target
                found = corrected(_work(right, step.event.scope, target, sizes), factor)
                yield Cost(report.name, step.event.relation, found, maps_in(right))


def corrections(
    program: Program, known: Statistics, changes: Mapping[str, float], added: Mapping[str, float]
) -> tuple[tuple[Node, float], ...]:
    """How many times as many rows as estimated were added to each map while rows of relations changed; within
    bounds, and only for maps with keys that statements just add to.
    """
    bare = replace(known, written=())
    sizes = {m.name: size_of(m.definition, m.keys, bare) for m in program.maps}
    expected = dict.fromkeys(sizes, 0.0)
    for cost in _costs(program, bare, sizes):
        expected[cost.target] += cost.work.rows * changes.get(cost.relation, 0.0)
    return tuple(
        (m.definition, min(max(added[m.name] / expected[m.name], 1 / MOST), MOST))
        for m in program.maps
        if m.keys and expected[m.name] and m.name in added and all(s.statement.op == UPDATE for s in m.steps)
    )


def _work(right: Node, scope: Names, target: ast.MapAccess, sizes: Mapping[str, Size]) -> Work:
    return work(right, scope, frozenset(v.name for v in target.keys), sizes)


class Estimator:
    """Estimates programs over one universe, statement by statement: what they share is computed once."""

    def __init__(self, universe: Universe, known: Statistics):
        self.universe, self.known = universe, known
        self._kept: dict[str, Kept] = {}
        self._costs: dict[tuple[str, str], list[tuple[dict[str, bool], Cost | None]]] = {}

    def estimate(self, is_stored: IsStored) -> Estimate:
        """Of the program that stores these maps, as far as results need them."""
        maps: dict[str, Kept] = {}
        costs: list[Cost] = []
        waiting = [entry for entry in self.universe.catalogue if entry.level == 0]
        while waiting:
            for entry in waiting:
                maps[entry.name] = self._map(entry)
                costs += self._changes(entry, is_stored)
            read = frozenset().union(*(c.reads for c in costs))
            waiting = [e for e in self.universe.catalogue if e.name in read and e.name not in maps]
        return total(costs, maps, [s.name for s in self.universe.given if s.kind == ast.STREAM])

    def _map(self, entry: StoredMap) -> Kept:
        if entry.name not in self._kept:
            size = size_of(entry.definition, entry.keys, self.known)
            self._kept[entry.name] = Kept(len(entry.keys) + len(entry.inputs), size)
        return self._kept[entry.name]

    def _changes(self, entry: StoredMap, is_stored: IsStored) -> list[Cost]:
        changes = [c for c in self.universe.changes(entry) if c.event.sign >= 0]
        found = [self._cost(entry.name, change, is_stored) for change in changes]
        return [cost for cost in found if cost is not None]

    def _cost(self, name: str, change: Change, is_stored: IsStored) -> Cost | None:
        """It depends on those maps alone that are asked for while the right side is written."""
        known = self._costs.setdefault((name, change.event.relation), [])
        for asked, cost in known:
            if all(is_stored(self.universe.catalogue.maps[n]) == answer for n, answer in asked.items()):
                return cost
        answers: dict[str, bool] = {}
        right = self.universe.right_side(change, _noting(is_stored, answers))
        found = None if is_zero(right) else self._of(name, change, right)
        known.append((answers, found))
        return found

    def _of(self, name: str, change: Change, right: Node) -> Cost:
        stored = self.universe.catalogue.maps
        names = maps_in(right) & stored.keys()
        sizes = {n: self._map(stored[n]).size for n in names}
        right = m3_form(right, change.scope)
        found = _work(right, change.scope, change.target, sizes)
        factor = self.known.correction(stored[name].definition)
        return Cost(name, change.event.relation, corrected(found, factor), names)


def _noting(is_stored: IsStored, answers: dict[str, bool]) -> Callable[[StoredMap], bool]:
    def ask(entry: StoredMap) -> bool:
        answers[entry.name] = is_stored(entry)
        return answers[entry.name]

    return ask


def but(demoted: Iterable[str]) -> IsStored:
    """Stores all maps but some, by their names."""
    names = frozenset(demoted)
    return lambda entry: entry.name not in names
