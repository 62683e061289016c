"""Owns going over to another set of maps: maps that stay keep their contents, and only new ones are computed
from rows.  Knows neither what chooses the maps nor where rows come from.

New maps are the results of a program of their own, which has maps of single relations besides (depth 1).  It
is dropped when it has run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dlog.m3.runtime.runtime import Runtime
from dlog.m3.syntax import ast
from dlog.multilevel.binding import reads
from dlog.multilevel.names import same
from dlog.multilevel.program import MapReport, Program, compile
from dlog.views.levels.program import Levels

Feed = Callable[[Runtime, ast.Source], None]  # gives a runtime all rows that a relation has now


@dataclass(frozen=True)
class Refilled:
    """What was done: maps that kept their contents, maps that were computed, and from which relations."""

    kept: tuple[str, ...]
    new: tuple[str, ...]
    relations: tuple[str, ...]


def stay(before: Program, now: Program) -> dict[str, str]:
    """Maps that both programs have, with their names before.  O(maps of both)."""
    pairs = ((m, next((b for b in before.maps if _is_same(b, m)), None)) for m in now.maps)
    return {m.name: b.name for m, b in pairs if b is not None}


def _is_same(one: MapReport, other: MapReport) -> bool:
    """With keys in the same order."""
    if (one.level == 0 or other.level == 0) and one.name != other.name:
        return False
    names = same(one.definition, other.definition)
    return names is not None and tuple(names[key] for key in one.keys) == other.keys


def refill(
    before: Levels,
    given: Runtime,
    now: Levels,
    runtime: Runtime,
    run: Callable[[ast.Program], Runtime],
    feed: Feed,
) -> Refilled:
    """Fill the maps of a new runtime from those of another one, and from rows.  What is given stays as it is.

    `run` makes a runtime in the arena of the two.  REQUIRES: `runtime` has had no rows.  Raises what `feed`
    raises.  O(maps that stay), and what it costs to load the rows of the relations that new maps read.
    """
    names = stay(before.program, now.program)
    names = {name: there for name, there in names.items() if runtime.takes(name, given, there)}
    new = tuple(m for m in now.program.maps if m.name not in names)
    relations = _relations(now, new)
    filled = _filled(now, new, relations, run, feed) if new and names else None
    if new and (filled is None or not all(runtime.takes(m.name, filled, m.name) for m in new)):
        _release(filled)
        feed_all(runtime, now.program.m3.sources, feed)
        runtime.changes.clear()
        return Refilled((), tuple(m.name for m in now.program.maps), _names(now.program.m3.sources))
    found = [(name, given, there) for name, there in names.items()]
    runtime.take_over([*found, *((m.name, filled, m.name) for m in new if filled is not None)])
    runtime.sizes.update(given.sizes)
    _release(filled)
    return Refilled(tuple(names), tuple(m.name for m in new), _names(relations))


def feed_all(runtime: Runtime, sources: tuple[ast.Source, ...], feed: Feed) -> None:
    """All rows of some relations, tables first."""
    for source in sorted(sources, key=lambda s: s.kind != ast.TABLE):
        feed(runtime, source)
    runtime.ready()


def _relations(now: Levels, new: tuple[MapReport, ...]) -> tuple[ast.Source, ...]:
    return tuple(s for s in now.program.m3.sources if any(reads(m.definition, s.name) for m in new))


def _filled(
    now: Levels,
    new: tuple[MapReport, ...],
    relations: tuple[ast.Source, ...],
    run: Callable[[ast.Program], Runtime],
    feed: Feed,
) -> Runtime | None:
    """A runtime that has new maps; None: they have no program of their own."""
    found = compile({m.name: m.definition for m in new}, relations, depth=1)
    if not isinstance(found, Program) or any(found.map(m.name).keys != m.keys for m in new):
        return None
    runtime = run(replace(found.m3, types=now.m3.types, queries=()))
    try:
        feed_all(runtime, relations, feed)
    except BaseException:
        runtime.release()
        raise
    return runtime


def _release(runtime: Runtime | None) -> None:
    if runtime is not None:
        runtime.release()


def _names(sources: tuple[ast.Source, ...]) -> tuple[str, ...]:
    return tuple(source.name for source in sources)
