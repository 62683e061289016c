"""Owns the changes of maps of integers that have the same keys, in any order: each changed key with the
values before and after.  See `maps.drain_kernels`.  Knows no rows and no triggers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dlog.jit import Words
from dlog.m3.runtime.compile.stores import Stores
from dlog.m3.runtime.maps.drain_kernels import add_values, drain
from dlog.m3.runtime.maps.maps import Maps

FEW = 1024  # rows that are read at once


@dataclass(frozen=True)
class DrainedMaps:
    """Maps whose changes are drained, and the order in which their keys are read."""

    names: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


class Drain:
    """REQUIRES: values of the maps are integers."""

    def __init__(self, stores: Stores, given: DrainedMaps):
        self.names, self.n_keys = given.names, len(given.keys)
        self.width = len(given.keys) + 2 * len(given.names)  # of a row: keys, then before and after by map
        words = [len(given.names), len(given.keys)]
        for name in given.names:
            assert stores.map(name).is_integer, f"{name} has no integers"
            words += [stores.map(name).address, *_places(stores, name, given.keys)]
        self.words = np.array(words, np.int64)
        self.most = FEW
        self.room = np.zeros(self.most * self.width, np.int64)

    def read(self, maps: Maps) -> Words:
        """(changes, width): what has changed on one machine since the last time.  O(changes)."""
        parts: list[Words] = []
        n = self.most
        while n == self.most:
            n = drain(maps.arena.A, maps.words, self.words, self.room)
            parts.append(self.room[: n * self.width].reshape(n, self.width).copy())
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def read_all(self, machines: Sequence[Maps], shared: Sequence[bool]) -> tuple[Words, str | None]:
        """(The same of several machines, the name of a map with a sum that does not fit).  What they have is
        added up, except for maps that are `shared`: each machine has all of these."""
        found = [self.read(maps) for maps in machines]
        rows, places = _distinct(np.concatenate(found)[:, : self.n_keys])
        out = np.zeros((len(rows), self.width), np.int64)
        out[:, : self.n_keys] = rows
        too_large, end = None, 0
        for number, (maps, own) in enumerate(zip(machines, found, strict=True)):
            at, end = places[end : end + len(own)], end + len(own)
            for r, name in enumerate(self.names):
                if shared[r] and number > 0:
                    continue
                if not add_values(maps.arena.A, maps.words, self.words, r, out.reshape(-1), len(out)):
                    too_large = name
                before = self.n_keys + 2 * r
                out[at, before] -= own[:, before + 1] - own[:, before]
        values = out[:, self.n_keys :]
        return out[(values[:, ::2] != values[:, 1::2]).any(axis=1)], too_large


def _places(stores: Stores, name: str, keys: Sequence[str]) -> list[int]:
    declared = stores.program.map(name)
    assert declared is not None
    names = [column.name for column in (*declared.inputs, *declared.keys)]
    return [names.index(key) for key in keys]


def _distinct(rows: Words) -> tuple[Words, Words]:
    """Each row once, and where each row is among these."""
    if rows.shape[1] == 0:
        return rows[:1], np.zeros(len(rows), np.int64)
    found, places = np.unique(rows, axis=0, return_inverse=True)
    return found, places.reshape(-1)
