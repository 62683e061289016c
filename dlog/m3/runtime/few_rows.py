"""Owns batches of a few rows of one relation, and what they change in drained maps: one call of the machine.

Everything that does not depend on the rows is prepared: a row takes a few microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dlog.jit import Words
from dlog.m3.runtime import layout as o
from dlog.m3.runtime.drain import Drain
from dlog.m3.runtime.feeder import Feeder

Rows = Sequence[tuple[int, ...]] | Words  # of codes
Protected = Callable[[Callable[[], None]], None]  # runs an action: maps are not valid if it fails


class FewRows:
    """REQUIRES: a batch trigger, one machine.  Column c of row i is words[c * most + i]."""

    def __init__(self, feeder: Feeder, drain: Drain, protected: Protected, relation: str, most: int):
        entry, step, by_row = feeder.entry(relation, 1)
        width = len(next(s for s in feeder.compiled.program.sources if s.name == relation).columns)
        self.most, self.width, self.drain = most, width, drain
        self._feeder, self._run = feeder, protected
        self._inputs = np.zeros((width + 1) * most, np.int64)
        self._events = np.array([entry, 0, most, 0, 1, step, -1, 0], np.int64)
        self._by_row = by_row
        self._words, self._event = self._inputs.data, self._events.data
        self.state = feeder.worker.state.data
        self.changed, self.n_changed = drain.room, 0

    def apply(self, rows: Rows, sign: int) -> int:
        """Rows come (1) or go (-1); returns how many keys of drained maps have changed, in `changed`; -1: so
        many that they are still to be drained.

        Raises what `Runtime.apply_words` raises.  REQUIRES: nothing is to be drained yet; 0 < rows <= most.
        """
        n, most = len(rows), self.most
        words, multiplicities = self._words, self.width * most
        if n == 1:
            for place, code in enumerate(rows[0]):
                words[place * most] = code
            words[multiplicities] = sign
        else:
            table = self._inputs.reshape(-1, most)
            table[:-1, :n], table[-1, :n] = np.asarray(rows, np.int64).T, sign
        event = self._event
        event[o.E_END], event[o.E_ROWS] = n, self._by_row if n == 1 else -1
        self._run(self._once)
        found = self.state[o.DRAINED]
        return -1 if found == self.drain.most else found

    def _once(self) -> None:
        feeder = self._feeder
        feeder.worker.run(
            self._events, self._inputs, feeder.coming_to, drained=self.drain.words, changed=self.changed
        )
