"""Owns how many rows were added to each map while how many rows of relations changed: what estimates of work
are corrected by.  It counts operations, which is as good as time and the same in every run.

    a transaction begins    `note`: what has been counted so far belongs to the rows that were seen so far
    maps are compared       `since`, then `begin_anew`
    other maps are there    `forget`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Counts = Mapping[str, int]


@dataclass
class Writes:
    """`added` by map, `seen` by relation."""

    now: Counts = field(default_factory=dict)
    added: Counts = field(default_factory=dict)  # when counting began; empty: it has not
    seen: Counts = field(default_factory=dict)

    def note(self, added: Counts, seen: Counts) -> None:
        self.now = added
        if not self.added:
            self.added, self.seen = added, dict(seen)

    def since(self, seen: Counts) -> tuple[dict[str, float], dict[str, float]]:
        """(Changed rows by relation, added rows by map) since counting began.

        >>> writes = Writes()
        >>> writes.note({"M": 100}, {"R": 3})
        >>> writes.note({"M": 160}, {"R": 5})
        >>> writes.since({"R": 5})
        ({'R': 2.0}, {'M': 60.0})
        """
        changes = {relation: float(n - self.seen.get(relation, 0)) for relation, n in seen.items()}
        return changes, {name: float(n - self.added[name]) for name, n in self.now.items()}

    def begin_anew(self) -> None:
        """Nothing has been seen."""
        self.added, self.seen = self.now, {}

    def forget(self) -> None:
        self.now, self.added = {}, {}
