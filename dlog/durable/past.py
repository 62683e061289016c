"""Owns versions of the past: which commits led where, and base facts as they were, from the log backwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dlog.durable.folder import Found
from dlog.durable.records import BranchRecord, CommitRecord
from dlog.durable.replay import Facts, net_change
from dlog.storage.arena import Arena
from dlog.storage.batch import Change
from dlog.storage.relation import Relation


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
    """The commits of a log, and the versions that its checkpoint has."""

    commits: dict[int, CommitRecord]
    parents: dict[int, int]
    heads: dict[str, int]
    programs: dict[int, str]  # of the versions in the checkpoint

    @classmethod
    def of(cls, found: Found) -> Past:
        """O(records)."""
        states = found.checkpoint.states
        heads = {name: state["version"] for state in states for name in state["branches"]}
        past = cls({}, {}, heads, {state["version"]: state["program"] for state in states})
        for _, record in found.records:
            if isinstance(record, BranchRecord):
                if record.of is None:
                    heads.pop(record.name, None)
                else:
                    heads[record.name] = heads[record.of]
            else:
                past.commits[record.version] = record
                past.parents[record.version] = heads[record.branch]
                heads[record.branch] = record.version
        return past

    def entries(self) -> list[Entry]:
        return [_entry(record) for record in self.commits.values()]

    def way_back(self, head: int, version: int) -> list[CommitRecord] | None:
        """The commits from a head down to a version, the latest first; None when it did not come from it."""
        way = []
        while head != version:
            if head not in self.commits:
                return None
            way.append(self.commits[head])
            head = self.parents[head]
        return way

    def program(self, version: int) -> str:
        """REQUIRES: the version is in the log or in the checkpoint."""
        while version in self.commits:
            record = self.commits[version]
            if record.program is not None:
                return record.program
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
    facts.waiting = {name: [net_change(changes)] for name, changes in by_name.items()}
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
