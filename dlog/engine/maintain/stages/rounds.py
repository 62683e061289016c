"""Owns the deaths and births of a recursion all of whose bodies are single joins: many rounds in one call.

The plans' code, state, parameters and shapes lie one after the other in one array, which the kernel is given;
an expansion's state is a view of its part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dlog.engine.maintain.stages import expand_kernels as kernels
from dlog.engine.maintain.stages import layout as k
from dlog.engine.maintain.stages.expansion import Expansion, Recursion
from dlog.engine.maintain.stages.table import CHUNK
from dlog.jit import DISABLED, Words
from dlog.lftj.assemble import Assembled
from dlog.lftj.triejoin import NO_WORDS

_drive = np.errstate(all="ignore")(kernels.drive) if DISABLED else kernels.drive


class Rounds:
    """`expansions` are those through facts of the recursion, each with the number of its predicate."""

    def __init__(self, recursion: Recursion, expansions: Sequence[tuple[int, Expansion]]):
        self.recursion = recursion
        self.expansions = expansions
        self.possible = all(e.in_kernel for _, e in expansions)
        self.words: Words = np.zeros(0, np.int64)
        self.assembled: list[Assembled] = []
        self.generation = -1
        self.job = np.zeros(kernels.JOB, np.int64)

    def deaths(self, number: int, limit: int, look: Callable[[], None]) -> tuple[Words, int]:
        """(All facts that die, in rounds from `number` + 1 on; the number of the last round)."""
        last = self._run(k.LOSE, number, limit, look)
        return self.recursion.table.batch[: self.job[kernels.LAST_FACT]].copy(), last

    def births(self, number: int, limit: int, look: Callable[[], None]) -> int:
        """All facts that are pending, and those derived from them, are born; the number of the last step."""
        return self._run(k.GAIN, number, limit, look)

    def _run(self, mode: int, number: int, limit: int, look: Callable[[], None]) -> int:
        """`look` is called now and then, and when the work is beyond the limit; it may raise."""
        shared, table, job = self.recursion, self.recursion.table, self.job
        if self.generation != shared.generation:
            self._attach()
        job[:] = 0
        job[kernels.PLAN], job[kernels.NUMBER], job[kernels.LIMIT] = len(self.expansions), number, limit
        out = shared.output(max(1, max(len(e.outputs) for _, e in self.expansions)))
        while True:
            answer = _drive(
                shared.store.arena.A, self.ranks, self.words, len(self.expansions), job, table.batch,
                out, shared.sources, CHUNK, mode, table.table, table.records, table.head,
                table.fallen, table.absent, table.heap,
            )  # fmt: skip
            if answer == kernels.FINISHED:
                return int(job[kernels.NUMBER])
            if answer == kernels.NEEDS_ROOM:
                table.grow()
            look()

    def _attach(self) -> None:
        for _, expansion in self.expansions:
            expansion.attach()
        assembled = [e.assembled for _, e in self.expansions]
        if list(map(id, assembled)) != list(map(id, self.assembled)):
            self._lay_out()
            self.assembled = assembled
        uses_ranks = any(e.compiled is not None and e.compiled.uses_ranks for _, e in self.expansions)
        self.ranks = self.recursion.store.dictionary.rank if uses_ranks else NO_WORDS
        self.generation = self.recursion.generation

    def _lay_out(self) -> None:
        parts: list[Words] = []
        plans, at = [], kernels.PLAN_WORDS * len(self.expansions)
        for number, e in self.expansions:
            plans.append(number)
            for part in (e.assembled.code, e.state, e.parameters, e.shape):
                plans.append(at)
                parts.append(part)
                at += len(part)
        self.words = np.concatenate([np.array(plans, np.int64), *parts])
        for i, (_, e) in enumerate(self.expansions):
            start = plans[kernels.PLAN_WORDS * i + 2]
            e.state = self.words[start : start + len(e.state)]
