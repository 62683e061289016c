"""Owns batches that wait for others, so that several machines get enough rows to be worth their threads.

Rows are divided when they come, since they are copied anyway: one kernel puts the columns that are read into
the inputs of machines and writes their events.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import Words
from dlog.m3.runtime import layout as o
from dlog.m3.runtime.compile.compiler import Compiled
from dlog.m3.runtime.division import Division
from dlog.m3.runtime.feeder import Feeder, flat, has_batch_trigger
from dlog.m3.runtime.machine.partition_kernels import BLOCK, NO_ROOM, W_EVENTS, W_WORDS, add_waiting

MOST_WAITING = 1 << 16  # rows; as many as one machine needs a few milliseconds for
SMALL_BATCH = 1 << 14  # rows: larger batches wait for none


class Waiting:
    """Copies of batches, in order."""

    def __init__(self, compiled: Compiled, division: Division, feeders: list[Feeder]):
        self._division, self._feeders = division, feeders
        self._relations = {
            stream.name: _words(compiled, division, stream.name, len(stream.columns) + 1, feeders[0])
            for stream in compiled.program.sources
        }
        widest = max((len(stream.columns) + 1 for stream in compiled.program.sources), default=1)
        machines = len(feeders)
        self._room = max(SMALL_BATCH, MOST_WAITING // machines) * widest
        self._events = max(SMALL_BATCH, MOST_WAITING // machines)
        self._inputs = self._event_words = self._rows = np.empty(0, np.int64)
        self._used = np.zeros(machines * W_WORDS, np.int64)
        self._came = {name: np.zeros(machines, np.int64) for name in self._relations}
        self.rows = 0

    def add(self, relation: str, words: Words) -> int | None:
        """Returns the sum of multiplicities; None: there is no room.  REQUIRES: SMALL_BATCH rows at most."""
        if not len(self._rows):
            self._make_room()
        self._division.see(relation, words)
        given, stride = flat(words)
        n, how, came = words.shape[1], self._relations[relation], self._came[relation]
        total = add_waiting(
            given, stride, n, how, self._division.shares, self._rows, self._inputs, self._event_words,
            self._used, came,
        )  # fmt: skip
        if total == NO_ROOM:
            return None
        self.rows += n
        return total

    def _make_room(self) -> None:
        machines = len(self._feeders)
        self._inputs = np.empty(machines * self._room, np.int64)
        self._event_words = np.empty(machines * self._events * o.E_WORDS, np.int64)
        self._rows = np.empty(SMALL_BATCH + BLOCK, np.int64)

    def divided(self) -> int:
        """Rows of all machines together."""
        return sum(int(rows.sum()) for rows in self._came.values())

    def apply(self, part: int) -> None:
        """The share of one machine."""
        feeder, events = self._feeders[part], int(self._used[part * W_WORDS + W_EVENTS]) * o.E_WORDS
        came = {name: int(rows[part]) for name, rows in self._came.items() if rows[part]}
        for name, n in came.items():
            feeder.coming[name] = max(feeder.coming[name], n)
        first = part * self._events * o.E_WORDS
        feeder.apply_events(self._event_words[first : first + events], self._inputs)
        for name, n in came.items():
            feeder.coming[name] -= n

    def clear(self) -> None:
        """None wait any more.  Their memory is used again."""
        self.rows = 0
        self._used[:] = 0
        for rows in self._came.values():
            rows[:] = 0


def _words(compiled: Compiled, division: Division, relation: str, width: int, feeder: Feeder) -> Words:
    """What `add_waiting` needs to know of a relation."""
    key, read = division.key(relation), division.read(relation, width)
    words = [-1 if key is None else key, width, has_batch_trigger(compiled, relation)]
    words += [division.clears(relation), *feeder.entry(relation, 1), *feeder.entry(relation, -1)]
    return np.array([*words, len(read), *read], np.int64)
