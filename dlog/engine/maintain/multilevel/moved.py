"""Owns when the maps of a rule are chosen again: when relations have other sizes, or other relations change,
than when they were chosen, or when rows change many more entries of a map than estimated.

The rule depends on nothing but the rows that transactions have changed: after `FIRST` of them the mix of
relations and their sizes are compared, then after twice as many, and so on up to `MOST`.  So a search, which
takes 20 to 1,300 ms, takes little of the time of the transactions between two of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dlog.multilevel.selection.sizes import Statistics

FIRST = 1 << 10  # rows
MOST = 1 << 16
TIMES = 16  # as large or as small as they were: as for all other plans
LEAST = 64.0  # rows: smaller relations are taken to have as many
MOST_FEWER = 4  # times fewer rows than a comparison needs still show a mix
RARE = 0.01  # the share of relations that have not changed
OFF = 4  # times as many rows of a map as estimated, or as few
SHARE = 0.25  # of the changed rows that are of another relation than before


@dataclass
class Moved:
    """`basis`: what was known when the maps were chosen."""

    basis: Statistics | None = None
    seen: dict[str, int] = field(default_factory=dict)  # changed rows by relation, since the last comparison
    interval: int = field(default_factory=lambda: FIRST)
    left: int = field(default_factory=lambda: FIRST)  # changed rows until the next one

    def add(self, relation: str, rows: int) -> None:
        self.seen[relation] = self.seen.get(relation, 0) + rows
        self.left -= rows

    @property
    def is_due(self) -> bool:
        return self.left <= 0

    def rates(self, relations: Iterable[str]) -> dict[str, float] | None:
        """Shares of relations in the changed rows; None: there are too few yet.  A relation that has not
        changed may change yet, so its rows must not become very expensive.

        >>> Moved(seen={"R": 30, "S": 10}, interval=64).rates("RST")
        {'R': 0.75, 'S': 0.25, 'T': 0.01}
        """
        total = sum(self.seen.values())
        if not total or MOST_FEWER * total < self.interval:
            return None
        return {r: max(self.seen.get(r, 0) / total, RARE) for r in relations}

    def begin_anew(self) -> None:
        """They were compared."""
        self.seen = {}
        self.left = self.interval = min(2 * self.interval, MOST)

    def has_moved(self, now: Statistics) -> bool:
        """REQUIRES: the basis has the same relations."""
        basis = self.basis
        if basis is None or not _alike(basis.rows, now.rows) or _apart(basis, now) > SHARE:
            return True
        factors = [(factor, basis.correction(definition)) for definition, factor in now.written]
        return any(one > OFF * other or other > OFF * one for one, other in factors)


def _alike(before: Mapping[str, float], now: Mapping[str, float]) -> bool:
    pairs = [(max(before[name], LEAST), max(now[name], LEAST)) for name in now]
    return all(one < TIMES * other and other < TIMES * one for one, other in pairs)


def _apart(before: Statistics, now: Statistics) -> float:
    """The share of changed rows that are of another relation."""
    one, other = (_shares(known) for known in (before, now))
    return sum(abs(one[name] - other[name]) for name in now.rows) / 2


def _shares(known: Statistics) -> dict[str, float]:
    """
    >>> _shares(Statistics({"R": 3, "S": 1}, {"R": 9, "S": 5}))
    {'R': 0.75, 'S': 0.25}
    """
    rates = {name: known.rates.get(name, 0.0) if known.rates else 1.0 for name in known.rows}
    total = sum(rates.values()) or 1.0
    return {name: rate / total for name, rate in rates.items()}
