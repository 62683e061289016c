"""Owns batches of a few rows of one relation, and what they change in drained maps: one call of the machine.

Everything that does not depend on the rows is prepared: a row takes a few microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dlog.errors import DataError
from dlog.jit import Words
from dlog.m3.runtime import layout as o
from dlog.m3.runtime.drain import Drain
from dlog.m3.runtime.feeder import Feeder, Step
from dlog.m3.runtime.maps.drain_kernels import add_values
from dlog.m3.runtime.parts import Parts

Rows = Sequence[tuple[int, ...]] | Words  # of codes
Protected = Callable[[Callable[[], None]], None]  # runs an action: maps are not valid if it fails


class FewRows:
    """REQUIRES: a batch trigger, one machine.  Column c of row i is words[c * most + i]."""

    def __init__(
        self,
        feeder: Feeder,
        drain: Drain,
        protected: Protected,
        relation: str,
        most: int,
        room: Words | None = None,
    ):
        """`room`: for what has changed; default: that of the drain."""
        entry, step, by_row = feeder.entry(relation, 1)
        width = len(next(s for s in feeder.compiled.program.sources if s.name == relation).columns)
        self.most, self.width, self.drain = most, width, drain
        self._feeder, self._run = feeder, protected
        self._inputs = np.zeros((width + 1) * most, np.int64)
        self._events = np.array([entry, 0, most, 0, 1, step, -1, 0], np.int64)
        self._by_row = by_row
        self._words, self._event = self._inputs.data, self._events.data
        self.state = feeder.worker.state.data
        self.changed = drain.room if room is None else room

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


class FewRowsOfParts:
    """The same on several machines.  A row that only one of them has runs there, and what the others have is
    added to what changed; other rows run on all.

    REQUIRES: a batch trigger.
    """

    def __init__(self, parts: Parts, drain: Drain, protected: Protected, relation: str, most: int):
        self.most, self.drain, self.relation = most, drain, relation
        self._parts, self._run, self._one = parts, protected, dict[int, FewRows]()
        self._runs_alone = parts.runs_alone(relation, drain.names)
        self._added = [r for r, is_shared in enumerate(parts.shared(drain)) if not is_shared]
        self.changed = drain.room

    def apply(self, rows: Rows, sign: int) -> int:
        """See `FewRows.apply`."""
        self._parts.forget_sums()
        part = None
        if len(rows) == 1 and self._runs_alone:
            part = self._parts.machine_of(self.relation, rows[0])
        if part is None:
            return self._on_all(rows, sign)
        one = self._one.get(part) or self._of(part)
        found = one.apply(rows, sign)
        self.changed = one.changed
        if found > 0:
            self._add_others(part, found)
        return found

    def _of(self, part: int) -> FewRows:
        feeder, room = self._parts.feeders[part], np.zeros_like(self.drain.room)
        self._one[part] = FewRows(feeder, self.drain, self._run, self.relation, 1, room)
        return self._one[part]

    def _add_others(self, part: int, n: int) -> None:
        """What the other machines have for the same keys."""
        words = self.drain.words
        for number, worker in enumerate(self._parts.workers):
            for r in self._added if number != part else ():
                if not add_values(worker.maps.arena.A, worker.maps.words, words, r, self.changed, n):
                    raise DataError(f"an integer does not fit 64 bits in a value of {self.drain.names[r]}")

    def _on_all(self, rows: Rows, sign: int) -> int:
        given = np.asarray(rows, np.int64)
        words = np.empty((given.shape[1] + 1, len(given)), np.int64)
        words[:-1], words[-1] = given.T, sign
        nothing = np.zeros(len(given), np.int64)
        self._run(lambda: self._parts.apply_steps([Step(self.relation, words)], nothing, nothing))
        found, too_large = self._parts.drain(self.drain)
        if too_large is not None:
            raise DataError(f"an integer does not fit 64 bits in a value of {too_large}")
        self.changed = found.reshape(-1)
        return len(found) if len(found) < self.drain.most else -1
