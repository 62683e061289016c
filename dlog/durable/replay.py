"""Owns the restoring of base facts: those of a moment, forwards or backwards through the records of a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dlog.durable.records import BranchRecord, CommitRecord, Record, Texts, Values
from dlog.durable.timeline import Timeline
from dlog.heads.counts import net_change
from dlog.storage.arena.arena import Arena
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import Relation


@dataclass
class Facts:
    """The program and the base facts of a moment, as stored in files.

    Changes of neighbouring commits are combined: rows are looked up once for all of them.
    """

    program: str
    relations: dict[str, Relation]
    waiting: dict[str, list[Change]] = field(default_factory=dict)

    def add(self, record: CommitRecord) -> None:
        for name, change in record.changes.items():
            self.waiting.setdefault(name, []).append(change)
        if record.program is not None:
            self.program = record.program

    def settle(self, arena: Arena) -> Facts:
        """Itself, with all pending changes applied."""
        for name, changes in self.waiting.items():
            arity = changes[-1].inserted.shape[1]
            change = net_change([c for c in changes if c.inserted.shape[1] == arity])
            relation = or_empty(self.relations, name, arity, arena)
            self.relations[name] = relation.apply(inserts=change.inserted, erases=change.erased)[0]
        self.waiting = {}
        return self

    def copy(self) -> Facts:
        assert not self.waiting
        return Facts(self.program, dict(self.relations))


def or_empty(relations: Mapping[str, Relation], name: str, arity: int, arena: Arena) -> Relation:
    """A relation; an empty one when there is none of that name, or one of another arity."""
    found = relations.get(name)
    return found if found is not None and found.arity == arity else Relation(arena, arity)


def replay(timeline: Timeline, records: Iterable[Record], arena: Arena) -> None:
    """Bring a timeline to the end of the records.  O(rows that changed log rows)."""
    for record in records:
        if isinstance(record, BranchRecord):
            if record.of is None:
                timeline.drop(record.name)
            else:
                timeline.require(record.of).state.settle(arena)
                timeline.branch(record.name, record.of)
        else:
            _redo(timeline, record, arena)
    for moment in timeline.moments():
        moment.state.settle(arena)


def _redo(timeline: Timeline, record: CommitRecord, arena: Arena) -> None:
    head = timeline.require(record.branch)
    merged = None
    if record.merged is not None:
        merged = next(m for m in timeline.heads.values() if m.version == record.merged)
        merged.state.settle(arena)
    state = head.state.settle(arena).copy() if head.shared else head.state
    state.add(record)
    timeline.commit(record.branch, record.version, state, merged, record.batch_id)
    if merged is not None:
        timeline.prune()


def restore_values(dictionary: Dictionary, found: Sequence[Values]) -> None:
    """Give values with fields the numbers that they had.  O(their size)."""
    table = dictionary.records
    for values in found:
        shapes = np.array([table.shape(*shape) for shape in values.shapes], np.int64)
        table.restore(values.stored._replace(shapes=shapes[values.stored.shapes]), values.given)
    table.collected_at = len(table)


def restore_texts(dictionary: Dictionary, found: Sequence[Texts]) -> None:
    """Give texts the codes that they had.  Raises ValueError if that is impossible.  O(bytes)."""
    first = n = len(dictionary)
    for texts in found:
        if texts.first != n:
            raise ValueError(f"texts begin with code {texts.first} instead of {n}")
        n += len(texts.lengths)
    if n == first:
        return
    ends = np.zeros(n - first + 1, np.int64)
    np.cumsum(np.concatenate([texts.lengths for texts in found]), out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts.data for texts in found))]
    codes = dictionary.encode(pa.Array.from_buffers(pa.large_string(), n - first, buffers))
    if not np.array_equal(codes, np.arange(first, n)):
        raise ValueError("a text has two codes")
