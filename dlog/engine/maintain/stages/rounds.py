"""Owns the deaths and births of a recursion all of whose bodies are single joins: many rounds in one call.

The kernel is given all plans, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dlog.engine.maintain.stages.expansion import Expansion, Plans, Recursion
from dlog.heads.stages import expand_kernels as kernels
from dlog.heads.stages import layout as k
from dlog.heads.stages.table import CHUNK
from dlog.jit import DISABLED, Words

_drive = np.errstate(all="ignore")(kernels.drive) if DISABLED else kernels.drive


class Rounds:
    """`expansions` are those through facts of the recursion, each with the number of its predicate."""

    def __init__(self, recursion: Recursion, expansions: Sequence[tuple[int, Expansion]]):
        self.recursion = recursion
        self.expansions = expansions
        self.possible = all(e.in_kernel for _, e in expansions)
        self.plans = Plans(recursion, [e for _, e in expansions])
        self.job = np.zeros(kernels.JOB, np.int64)

    def deaths(self, number: int, limit: int, look: Callable[[], None]) -> tuple[Words, int]:
        """(All facts that die, in rounds from `number` + 1 on; the number of the last round)."""
        last = self._run(k.LOSE, number, limit, look)
        return self.recursion.table.batch(int(self.job[kernels.LAST_FACT])).copy(), last

    def births(self, number: int, limit: int, look: Callable[[], None]) -> int:
        """All facts that are pending, and those derived from them, are born; the number of the last step."""
        return self._run(k.GAIN, number, limit, look)

    def _run(self, mode: int, number: int, limit: int, look: Callable[[], None]) -> int:
        """`look` is called from time to time, and when the work exceeds the limit; it may raise."""
        shared, table, job = self.recursion, self.recursion.table, self.job
        plans, n_plans = self.plans.bring(), len(self.expansions)
        job[:] = 0
        job[kernels.CURRENT] = job[kernels.LAST_PLAN] = n_plans
        job[kernels.NUMBER], job[kernels.LIMIT], job[kernels.MODE] = number, limit, mode
        job[kernels.FROM_BATCH], job[kernels.SLICE], job[kernels.CAPACITY] = 1, kernels.OPERATIONS, CHUNK
        arena, ranks = shared.store.arena.A, self.plans.ranks
        out = shared.output(max(1, max(len(e.outputs) for _, e in self.expansions)))
        while True:
            answer = _drive(arena, ranks, plans, job, table.table, table.records, table.head, out)
            if answer == kernels.FINISHED:
                return int(job[kernels.NUMBER])
            if answer == kernels.NEEDS_ROOM:
                table.grow()
            look()
