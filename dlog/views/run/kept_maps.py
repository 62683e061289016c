"""Owns maps of an M3 program over rows of codes: rows of changes in, the entries that changed out.

What a strategy of the engine needs, whatever has made the program: a view tree, or levels of maps.  Reading
costs what changed, not the size of the maps.  Knows no engine and no query.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from dlog.errors import DataError
from dlog.jit import Words
from dlog.m3.runtime import layout
from dlog.m3.runtime.drain import DrainedMaps
from dlog.m3.runtime.few_rows import FewRows, FewRowsOfParts
from dlog.m3.runtime.runtime import Runtime
from dlog.m3.syntax import ast
from dlog.m3.types.typecheck import check
from dlog.storage.arena.regions import Memory
from dlog.storage.dictionary.dictionary import Dictionary

MOST_ROWS = 1 << 16  # of one batch

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Changes(Generic[Name]):
    """Keys, (n, keys), in any order, with the value of each map before and after, or 0."""

    keys: Words
    before: Mapping[Name, Words]
    after: Mapping[Name, Words]


class KeptMaps(Generic[Name]):
    """The maps of a program, and what changed in some of them: `roots`, by any names.

    REQUIRES: triggers are for batches; roots have integers for values, and all of them `keys`, in any order.
    """

    def __init__(
        self,
        program: ast.Program,
        roots: Mapping[Name, str],
        keys: Sequence[str],
        dictionary: Dictionary | None = None,
        threads: int | None = None,
        arena: Memory | None = None,
    ):
        """`arena`: where one machine has its maps."""
        self.roots, self.keys = dict(roots), tuple(keys)
        drained = DrainedMaps(tuple(dict.fromkeys(self.roots.values())), self.keys)
        program = replace(program, queries=())
        self.threads = threads
        self.runtime = Runtime(
            check(program),
            checked=True,
            dictionary=dictionary,
            threads=threads,
            drained=drained,
            arena=arena,
        )
        self.runtime.ready()
        self.empty = self.runtime.save()
        self.width = len(self.keys) + 2 * len(drained.names)  # words of a row of changes
        # Where in a row of changes the value of each map before is; that after follows.
        self.places = {name: len(keys) + 2 * drained.names.index(root) for name, root in self.roots.items()}

    def reset(self) -> None:
        """Back to the empty state."""
        self.runtime.restore(self.empty)

    def apply(self, relation: str, rows: Words, sign: int) -> None:
        """Rows of codes that are inserted (1) or deleted (-1)."""
        add_rows(self.runtime, relation, rows, sign)

    def changed(self) -> Changes[Name]:
        """What has changed since the last call.  O(changes)."""
        rows = self.runtime.drain()
        return Changes(
            rows[:, : len(self.keys)],
            {name: rows[:, place] for name, place in self.places.items()},
            {name: rows[:, place + 1] for name, place in self.places.items()},
        )

    def few_rows(self, relation: str, most: int) -> FewRows | FewRowsOfParts | None:
        """The same of a few rows at once; None: there is no batch trigger."""
        return self.runtime.few_rows(relation, most)

    def memory(self) -> int:
        """Bytes of all maps."""
        return self.runtime.memory()

    def check(self) -> None:
        self.runtime.check()

    def contents(self, name: str) -> dict[tuple[int, ...], int]:
        """The values of a map by its keys, those of 0 left out.  O(entries) in Python."""
        entries = self.runtime.words_of(self.runtime.compiled.stores.map(name)).T.tolist()
        return {tuple(keys): value for *keys, value in entries if value}


def add_rows(runtime: Runtime, relation: str, rows: Words, sign: int = 1) -> None:
    """Rows of codes that are inserted or deleted, in batches."""
    if (rows == layout.EMPTY).any():
        raise DataError(f"{relation}: {layout.EMPTY} is below the range of view trees")
    runtime.expect(relation, len(rows))
    for start in range(0, len(rows), MOST_ROWS):
        part = rows[start : start + MOST_ROWS]
        words = np.empty((part.shape[1] + 1, len(part)), np.int64)
        words[:-1], words[-1] = part.T, sign
        runtime.apply_words(relation, words)
