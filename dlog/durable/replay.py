"""Owns base facts on the way back: those of a moment, forwards through the records of a log, or backwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dlog.durable.records import BranchRecord, CommitRecord, Record, Texts
from dlog.durable.timeline import Timeline
from dlog.heads.counts import net_rows
from dlog.storage.arena import Arena
from dlog.storage.batch import Change
from dlog.storage.dictionary import Dictionary
from dlog.storage.relation import Relation


@dataclass
class Facts:
    """The program and the base facts of a moment, as files have them.

    Changes of neighbouring commits are put together: rows are looked up once for all of them.
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
        """Itself, with nothing waiting."""
        for name, changes in self.waiting.items():
            change = net_change(changes)
            arity = change.inserted.shape[1]
            relation = self.relations.get(name)
            if relation is None or relation.arity != arity:
                relation = Relation(arena, arity)
            self.relations[name] = relation.apply(inserts=change.inserted, erases=change.erased)[0]
        self.waiting = {}
        return self

    def copy(self) -> Facts:
        assert not self.waiting
        return Facts(self.program, dict(self.relations))


def replay(timeline: Timeline, records: Iterable[Record], arena: Arena) -> None:
    """Bring a timeline to where the records end.  O(rows that changed log rows)."""
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


def net_change(changes: Sequence[Change]) -> Change:
    """Of net changes that follow each other: a row that came and went again counts for nothing.

    O(rows log rows)."""
    if len(changes) == 1:
        return changes[0]
    arity = changes[-1].inserted.shape[1]
    changes = [c for c in changes if c.inserted.shape[1] == arity]
    signs = np.concatenate([np.repeat((1, -1), (len(c.inserted), len(c.erased))) for c in changes])
    rows = np.concatenate([part for change in changes for part in change])
    if not arity:
        total = int(signs.sum())
        return Change(rows[: max(total, 0)], rows[: max(-total, 0)])
    distinct, totals = net_rows(np.ascontiguousarray(rows), signs)
    return Change(distinct[totals > 0], distinct[totals < 0])


def restore_texts(dictionary: Dictionary, found: Sequence[Texts]) -> None:
    """Give texts the codes that they had.  Raises ValueError when that cannot be.  O(bytes)."""
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
