"""Owns the reports on change oracles: where rules that keep traces were re-examined in a transaction.

Knows nothing of how oracles are made.  Nothing is computed before it is requested.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dlog.engine.commit.printed_facts import literal_text
from dlog.sensitivity.oracle import SHOWN, Oracle
from dlog.sensitivity.oracle_kernels import GREATEST, LEAST
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.values import decode_value
from dlog.values import Type

SHOWN_INTERVALS = 4  # intervals of one variable that are shown


@dataclass(frozen=True)
class OracleReport:
    """Of one rule of `predicate`.  `keys` are its key variables with their types, None if they are not
    known.  An oracle that is too large to be shown is not stored: `places` is its number of contributions."""

    predicate: str
    keys: tuple[tuple[str, Type | None], ...]
    places: int
    oracle: Oracle | None
    dictionary: Dictionary

    @classmethod
    def of(
        cls, predicate: str, keys: tuple[tuple[str, Type | None], ...], oracle: Oracle, dictionary: Dictionary
    ) -> OracleReport:
        places = len(oracle)
        return cls(predicate, keys, places, oracle if places < SHOWN else None, dictionary)

    def intervals(self) -> dict[str, list[tuple[int, int]]]:
        """For each key variable the codes that were re-examined, as closed intervals; a variable that
        could have any value is not among them.  REQUIRES: the oracle is stored."""
        assert self.oracle is not None
        found = self.oracle.intervals([type is None or type.ordered_codes for _, type in self.keys])
        everything = [(LEAST, GREATEST)]
        pairs = zip(self.keys, found, strict=True)
        return {name: intervals for (name, _), intervals in pairs if intervals != everything}

    def __str__(self) -> str:
        """`p re-examined at x in [2, 2], [6, +inf]`."""
        if self.places == 0:
            return f"{self.predicate}: nothing re-examined"
        if self.oracle is None:
            return f"{self.predicate} re-examined at {self.places:,} places"
        types = dict(self.keys)
        parts = [f"{name} in {self._listed(found, types[name])}" for name, found in self.intervals().items()]
        return f"{self.predicate} re-examined at {'; '.join(parts) or 'everything'}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def _listed(self, intervals: Sequence[tuple[int, int]], type: Type | None) -> str:
        shown = [
            f"[{self._end(a, type, a == b)}, {self._end(b, type, a == b)}]"
            for a, b in intervals[:SHOWN_INTERVALS]
        ]
        more = [f"and {len(intervals) - SHOWN_INTERVALS:,} more"] if len(intervals) > SHOWN_INTERVALS else []
        return ", ".join([*shown, *more])

    def _end(self, code: int, type: Type | None, is_point: bool) -> str:
        """A value as it is written in programs.  A string that ends an interval has no meaning as a text,
        since codes of strings are in no order: #code."""
        if type is not None and is_point:
            return literal_text(decode_value(code, type, self.dictionary), type)
        if code in (LEAST, GREATEST):
            return "-inf" if code == LEAST else "+inf"
        if type is None or not type.ordered_codes:
            return f"#{code}"
        return literal_text(decode_value(code, type, self.dictionary), type)


ReportsOnRequest = Callable[[], Sequence[OracleReport]]  # computed on request


def no_reports() -> Sequence[OracleReport]:
    """The reports if there is no trace."""
    return ()
