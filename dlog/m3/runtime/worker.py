"""Owns one machine with its maps: code and input in, maps up to date.  Knows no names of relations.

Workers of one runtime share a range of memory, compiled code and a dictionary, nothing else: several can run
at the same time, in threads.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dlog.jit import Words
from dlog.m3.runtime import layout as o
from dlog.m3.runtime.compile.code import Label, Word
from dlog.m3.runtime.compile.compiler import Compiled
from dlog.m3.runtime.machine.addition_kernels import add_map
from dlog.m3.runtime.machine.event_kernels import start
from dlog.m3.runtime.machine.machine import run
from dlog.m3.runtime.maps.maps import Maps
from dlog.storage.arena.regions import Memory
from dlog.storage.dictionary.dictionary import Dictionary

BUDGET = 1 << 16  # instructions before Python can handle interrupts: less than a second
_NO_RANKS: Words = np.zeros(1, np.int64)
_NO_MAPS: Words = np.zeros(o.D_FIRST, np.int64)

Coming = Callable[[int], int]  # by the address of a map: rows to come that may bring keys to it


class Stopped(Exception):
    """Another worker failed, or there was an interrupt: the rows are not needed any more."""


class Worker:
    """`stop` is checked now and then while it runs."""

    def __init__(self, compiled: Compiled, dictionary: Dictionary, arena: Memory | None = None):
        self.compiled, self.dictionary = compiled, dictionary
        self.maps = Maps([store.shape for store in compiled.stores.all], arena)
        self.state = _in_lines(max(compiled.state_words, 64))
        self._columns = compiled.columns.copy()
        self._registers = self._columns[:: o.CHUNK].copy()
        self._arrays = _Arrays(self._columns, self.state, self.maps)
        self.stop = False

    def run(
        self,
        events: Words,
        inputs: Words,
        coming: Coming,
        selected: Words = _NO_RANKS,
        drained: Words = _NO_MAPS,
        changed: Words = _NO_RANKS,
    ) -> None:
        """Run the triggers of all events to the end, or to an overflow.  O(what they cost).

        `selected`: the rows of events that say so.  `drained`: maps that write their changes to `changed` in
        the end; the state says how many, if these fill it there may be more.
        """
        maps, state, n = self.maps, self.state, len(events) // o.E_WORDS
        code, columns = self.compiled.code, self._columns
        if not start(state, events, n):
            return
        while True:
            ranks = self.dictionary.rank if self.compiled.stores.uses_ranks else _NO_RANKS
            ranks = ranks if len(ranks) else _NO_RANKS
            status = run(
                maps.arena.A, maps.words, code, state, columns, self._registers, inputs, selected, events,
                ranks, drained, changed, n, BUDGET,
            )  # fmt: skip
            if status == o.DONE:
                break
            if self.stop:
                raise Stopped
            if status == o.PAUSE:
                continue
            if status == o.GROW:
                self._give_memory(int(state[o.ASKED]), int(state[o.ROOM]), coming)
            else:
                self._call(int(state[o.ASKED]))
        if not state[o.OVERFLOW]:
            maps.settle()

    @property
    def overflow(self) -> int | None:
        """The address of the instruction whose result did not fit."""
        at = int(self.state[o.OVERFLOW])
        return at - 1 if at else None

    def restore(self, copies: list[Words]) -> None:
        self.maps.put_back(copies)
        self.state[:] = 0

    def _give_memory(self, address: int, room: int, coming: Coming) -> None:
        """To a map that the machine asks it for."""
        if room == o.LINKS:
            self.maps.give_links(address)
        elif room == o.WIDE:
            self.maps.give_wide(address)
        elif room == o.TREES:
            self.maps.give_trees(address)
        elif room == o.PAGES:
            self.maps.give_pages(address)
        else:
            self.maps.grow(address, room, coming(address))

    def _call(self, which: int) -> None:
        call = self.compiled.calls[which]
        self._arrays.rows = int(self.state[call.frame])
        if self._arrays.rows:
            call.run(self._arrays)


class _Arrays:
    """The arguments of a call to Python: columns of the current frame, and tables of maps."""

    def __init__(self, columns: Words, state: Words, maps: Maps):
        self._columns, self._state, self._maps = columns, state, maps
        self.rows = 0

    def __call__(self, column: Word, rows: int | None = None) -> Words:
        at = column.address if isinstance(column, Label) else column
        return self._columns[at : at + (self.rows if rows is None else rows)]

    def block(self, base: int, words: int) -> Words:
        """(rows, words): elements of cofactors."""
        return self._state[base : base + self.rows * words].reshape(self.rows, words)

    def table(self, number: int) -> Words:
        return self._maps.table(number)


def add_entries(worker: Worker, address: int, given: Maps, there: int) -> None:
    """Add all that one map has, by its address there, to a map of a machine.  O(slots).

    REQUIRES: an arena and a shape that both have, but for indices and orders.
    """
    maps = worker.maps
    entries = int(given.words[there + o.M_USED])
    if int(maps.words[address + o.M_USED]) + entries > int(maps.words[address + o.M_LIMIT]):
        maps.grow(address, entries)
    slot = 0
    while slot >= 0:
        slot = add_map(maps.arena.A, maps.words, address, given.words, there, slot, worker.state)
        if slot >= 0:
            assert maps.words[address + o.M_SPARE] == 0
            maps.give_wide(address)


def _in_lines(n: int) -> Words:
    """Zeros aligned to a cache line."""
    words = np.zeros(n + o.LINE, np.int64)
    first = -words.ctypes.data // words.itemsize % o.LINE
    return words[first : first + n]
