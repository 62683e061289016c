"""Owns past versions: which commits led where, and earlier base facts, from the log backwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dlog.durable.checkpoint import Loaded
from dlog.durable.folder import LogEntry
from dlog.durable.frames import HEADER_BYTES
from dlog.durable.records import BranchRecord, CommitRecord, read_record
from dlog.durable.replay import Facts
from dlog.durable.timeline import Timeline
from dlog.storage.arena.arena import Arena
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import Relation


class Entry(NamedTuple):
    """One commit of the past."""

    version: int
    time: float  # seconds since 1970
    branch: str
    changes: Mapping[str, tuple[int, int]]  # base facts: rows inserted, rows erased
    program: bool  # whether the program changed
    batch_id: str | None
    merged: int | None


@dataclass
class Past:
    """The versions that a checkpoint has, and the commits of its log, as far as it was read.

    Commits stay encoded until they are needed: a log takes no more memory than its bytes.
    """

    heads: dict[str, int]
    programs: dict[int, str]  # of the versions in the checkpoint, and those that changed the program
    commits: dict[int, memoryview] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    end: int = HEADER_BYTES  # of what was read

    @classmethod
    def of(cls, checkpoint: Loaded) -> Past:
        states = checkpoint.states
        heads = {name: state["version"] for state in states for name in state["branches"]}
        return cls(heads, {state["version"]: state["program"] for state in states})

    @classmethod
    def of_timeline(cls, timeline: Timeline, programs: Mapping[int, str]) -> Past:
        """In the form of its checkpoint."""
        return cls({name: head.version for name, head in timeline.heads.items()}, dict(programs))

    def take(self, records: Iterable[LogEntry], end: int) -> Past:
        """Itself with more records of the log, up to an offset.  O(records)."""
        for _, payload, record in records:
            if isinstance(record, CommitRecord):
                self.commits[record.version] = payload
                self.parents[record.version] = self.heads[record.branch]
                self.heads[record.branch] = record.version
                if record.program is not None:
                    self.programs[record.version] = record.program
            elif record.of is None:
                self.heads.pop(record.name, None)
            else:
                self.heads[record.name] = self.heads[record.of]
        self.end = end
        return self

    def commit(self, version: int) -> CommitRecord:
        """REQUIRES: the version is in the log."""
        record = read_record(self.commits[version])
        assert not isinstance(record, BranchRecord)
        return record

    def entries(self) -> list[Entry]:
        """O(bytes of the log)."""
        return [_entry(self.commit(version)) for version in self.commits]

    def way_back(self, head: int, version: int) -> list[int] | None:
        """The commits from a head down to a version, the latest first; None if it did not come from it."""
        way = []
        while head != version:
            if head not in self.commits:
                return None
            way.append(head)
            head = self.parents[head]
        return way

    def program(self, version: int) -> str:
        """REQUIRES: the version is in the log or in the checkpoint."""
        while version not in self.programs:
            version = self.parents[version]
        return self.programs[version]


def undone(
    program: str, relations: Mapping[str, Relation], way: Sequence[CommitRecord], arena: Arena
) -> Facts:
    """Base facts before some commits, the latest of which comes first.  O(rows that changed log rows)."""
    facts = Facts(program, dict(relations))
    by_name: dict[str, list[Change]] = {}
    for record in way:
        for name, change in record.changes.items():
            by_name.setdefault(name, []).append(Change(change.erased, change.inserted))
    facts.waiting = by_name
    return facts.settle(arena)


def _entry(record: CommitRecord) -> Entry:
    changes = {name: (len(c.inserted), len(c.erased)) for name, c in record.changes.items()}
    return Entry(
        record.version,
        record.time,
        record.branch,
        changes,
        record.program is not None,
        record.batch_id,
        record.merged,
    )
