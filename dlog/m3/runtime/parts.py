"""Owns a program that several machines run at the same time, each on its part of the rows, and the sum of
what they have.  `compile.partition` says which rows and maps these are.

The same results, to the bit, for any number of threads: sums of integers and exact sums do not depend on how
rows are divided, which `division` does.  Where sums are rounded, rows are divided into ROUNDED_PARTS always,
whatever the number of threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from dlog.jit import Words
from dlog.m3.runtime.compile.compiler import Compiled
from dlog.m3.runtime.compile.partition import SHARED, Partition, replaces_for_itself
from dlog.m3.runtime.compile.stores import Store
from dlog.m3.runtime.division import NO_WORDS, Division
from dlog.m3.runtime.drain import Drain
from dlog.m3.runtime.feeder import Feeder, Step, has_batch_trigger
from dlog.m3.runtime.layout import S_INSERT, S_WORDS
from dlog.m3.runtime.machine.partition_kernels import BLOCK, order_part
from dlog.m3.runtime.maps.maps import Maps
from dlog.m3.runtime.team import Team
from dlog.m3.runtime.waiting import MOST_WAITING, SMALL_BATCH, Waiting
from dlog.m3.runtime.worker import Stopped, Worker, add_entries
from dlog.storage.arena.regions import regions
from dlog.storage.dictionary.dictionary import Dictionary

ROUNDED_PARTS = 4
WORTH_THREADS = 1 << 12  # rows: fewer take less time than it takes to wake a thread


class Parts:
    """REQUIRES: a partition of the program, and no calls of Python in it."""

    def __init__(self, compiled: Compiled, dictionary: Dictionary, partition: Partition, threads: int):
        exact = is_exact(compiled)
        number = threads if exact else ROUNDED_PARTS
        *own, summed = regions(number + 1)
        self.compiled, self.partition = compiled, partition
        self.workers = [Worker(compiled, dictionary, region) for region in own]
        self.feeders = [Feeder(worker) for worker in self.workers]
        self.total = Worker(compiled, dictionary, summed)  # the sums of maps, where they were asked for
        self._division = Division(compiled, partition, number, is_fixed=not exact)
        self.waiting = Waiting(compiled, self._division, self.feeders)
        self._memory = [_Memory() for _ in self.workers]
        self._summed: set[int] = set()  # maps whose sums are up to date
        self._threads = min(threads, number)
        self._team = Team(self._threads - 1)

    # ---- changes

    def once(self, entry: int) -> None:
        self._all(lambda part: self.feeders[part].once(entry), 0)

    def load(self, table: str, words: Words) -> None:
        self._division.see(table, words)
        step = Step(table, words)
        self._all(lambda part: self.feeders[part].load(table, self._rows(step, part)), words.shape[1])

    def expect(self, relation: str, rows: int) -> None:
        share = 1 if self._division.key(relation) is None else len(self.feeders)
        for feeder in self.feeders:
            feeder.coming[relation] = -(-rows // share)

    def wait(self, relation: str, words: Words) -> int | None:
        """Let a batch wait for others.  Returns the sum of its multiplicities; None: it cannot wait now."""
        return self.waiting.add(relation, words) if words.shape[1] < SMALL_BATCH else None

    @property
    def is_worth_it(self) -> bool:
        """Whether enough rows wait."""
        return self.waiting.rows >= MOST_WAITING

    def apply_waiting(self) -> None:
        waiting = self.waiting
        try:
            self._all(waiting.apply, waiting.divided())
        finally:
            waiting.clear()

    def apply(self, step: Step) -> None:
        """One batch."""
        relation, n = step.relation, step.words.shape[1]
        if n == 0:
            return
        self._division.see(relation, step.words)
        if not self._division.is_listed(relation):
            self._all(lambda part: self.feeders[part].apply(relation, self._rows(step, part)), n)
            return
        self._all(lambda part: self._apply_listed(part, step), n)

    def _apply_listed(self, part: int, step: Step) -> None:
        """The share of one machine: its rows stay where they are."""
        feeder, memory = self.feeders[part], self._memory[part].rows(step.words.shape[1])
        rows = self._division.list(step, part, memory)
        if len(rows):
            feeder.apply_selected(step.relation, step.words, rows)
        elif self._division.clears(step.relation):  # a row of multiplicity 0, so that the trigger runs
            feeder.apply(step.relation, np.zeros((step.words.shape[0], 1), np.int64))

    def apply_steps(self, steps: Sequence[Step], which: Words, batch: Words) -> None:
        """Rows of several relations: see `Runtime.apply_steps`."""
        if len(steps) == 1 and (len(batch) == 0 or batch[0] == batch[-1]):
            self.apply(steps[0])
            return
        if any(self._division.clears(step.relation) for step in steps):
            self._apply_one_by_one(steps, which, batch)
            return
        for step in steps:
            self._division.see(step.relation, step.words)
        self._all(lambda part: self._apply(part, steps, which, batch), len(which))

    def _apply(self, part: int, steps: Sequence[Step], which: Words, batch: Words) -> None:
        """The share of one machine."""
        feeder, memory = self.feeders[part], self._memory[part]
        inputs = memory.inputs(sum(step.words.size for step in steps))
        marks, following = memory.marks(len(which)), np.zeros(len(steps), np.int64)
        table = np.zeros((len(steps), S_WORDS), np.int64)
        base = row = 0
        for number, step in enumerate(steps):
            width, n = step.words.shape
            taken = self._division.take(step, part, inputs, base, memory.rows(n), marks, row)
            signs = -1 if has_batch_trigger(self.compiled, step.relation) else base + (width - 1) * n
            table[number, :S_INSERT] = base, n, signs, 0
            following[number] = row
            feeder.coming[step.relation] = max(feeder.coming[step.relation], taken)
            base, row = base + width * n, row + n
        own_which, own_batch = memory.order(len(which))
        n = order_part(which, batch, marks, following, own_which, own_batch, len(which))
        feeder.apply_inputs([s.relation for s in steps], table, own_which[:n], own_batch[:n], inputs)
        for step, came in zip(steps, np.bincount(own_which[:n], minlength=len(steps)).tolist(), strict=True):
            feeder.coming[step.relation] -= came

    def machine_of(self, relation: str, row: Sequence[int]) -> int | None:
        """The machine that has a row; None: the relation is not split."""
        return None if self._division.key(relation) is None else self._division.machine_of(relation, row)

    def runs_alone(self, relation: str, drained: Sequence[str]) -> bool:
        """Whether a row changes nothing on machines that do not have it, but for maps that are
        scratch and not drained."""
        program = self.compiled.program
        is_clear = relation not in self.partition.clearing
        return is_clear or replaces_for_itself(program, relation, drained)

    def _apply_one_by_one(self, steps: Sequence[Step], which: Words, batch: Words) -> None:
        ends = np.flatnonzero((np.diff(which) != 0) | (np.diff(batch) != 0)) + 1
        done = [0] * len(steps)
        for first, end in zip([0, *ends.tolist()], [*ends.tolist(), len(which)], strict=True):
            s = int(which[first])
            words = steps[s].words[:, done[s] : done[s] + end - first]
            done[s] += end - first
            self.apply(Step(steps[s].relation, words))

    def _rows(self, step: Step, part: int) -> Words:
        """The rows of a step that a part has."""
        if self._division.key(step.relation) is None:
            return step.words
        width, n = step.words.shape
        memory = self._memory[part]
        out = memory.inputs(width * n)
        taken = self._division.take(step, part, out, 0, memory.rows(n), NO_WORDS, 0)
        return out[: width * n].reshape(width, n)[:, :taken]

    # ---- threads

    def _all(self, job: Callable[[int], None], rows: int) -> None:
        """Do something for each machine, by its number; raises what the first of them raised."""
        self._summed.clear()
        waiting, errors = deque(range(len(self.workers))), list[tuple[int, BaseException]]()
        for worker in self.workers:
            worker.stop = False

        def stop() -> None:
            waiting.clear()
            for worker in self.workers:
                worker.stop = True

        def run() -> None:
            while waiting:
                try:
                    number = waiting.popleft()
                except IndexError:
                    return
                try:
                    job(number)
                except BaseException as error:
                    errors.append((number, error))
                    stop()

        if rows >= WORTH_THREADS:
            self._team.run(run, stop)
        else:
            run()
        raised = [pair for pair in errors if not isinstance(pair[1], Stopped)]
        if raised:
            raise min(raised, key=lambda pair: pair[0])[1]

    # ---- results

    def maps_with(self, store: Store) -> Maps:
        """Maps of which this one is the sum over all machines.  O(entries), unless nothing changed."""
        if self.partition.maps.get(store.name) == SHARED:
            return self.workers[0].maps
        if store.name in self.partition.maps:
            self._sum([store])
        return self.total.maps

    def drain(self, drain: Drain) -> tuple[Words, str | None]:
        """See `Drain.read_all`."""
        return drain.read_all([worker.maps for worker in self.workers], self.shared(drain))

    def shared(self, drain: Drain) -> list[bool]:
        """Of drained maps, whether each machine has all of them."""
        return [self.partition.maps.get(name) == SHARED for name in drain.names]

    def query(self, entry: int, reads: Sequence[Store]) -> None:
        """Compute a query that reads these maps; its result is a map of `total`."""
        self._sum(reads)
        Feeder(self.total).once(entry)

    def _sum(self, stores: Sequence[Store]) -> None:
        for store in stores:
            if store.number not in self._summed:
                self._summed.add(store.number)
                self.total.maps.empty(store.number)
                for worker in self.workers[:1] if self._is_shared(store) else self.workers:
                    add_entries(self.total, store.address, worker.maps, store.address)

    def _is_shared(self, store: Store) -> bool:
        """Of a map or a table."""
        if store.name in self.partition.maps:
            return self.partition.maps[store.name] == SHARED
        return self._division.key(store.name.removeprefix("table ")) is None

    def forget_sums(self) -> None:
        """Machines change without `apply_steps`."""
        self._summed.clear()

    def forget(self) -> None:
        """What was summed is not valid any more."""
        self._summed.clear()
        self.total.state[:] = 0

    def memory(self) -> int:
        return sum(worker.maps.memory() for worker in (*self.workers, self.total))


class _Memory:
    """What a thread needs besides the rows; used again, since new memory would cost more than its use."""

    def __init__(self) -> None:
        self._found: dict[str, Words] = {}

    def _room(self, name: str, n: int) -> Words:
        if len(self._found.get(name, NO_WORDS)) < n + 1:
            self._found[name] = np.empty(max(n + 1, 2 * n), np.int64)
        return self._found[name]

    def inputs(self, n: int) -> Words:
        return self._room("inputs", n)

    def rows(self, n: int) -> Words:
        return self._room("rows", n + BLOCK)

    def marks(self, n: int) -> Words:
        return self._room("marks", n)

    def order(self, n: int) -> tuple[Words, Words]:
        return self._room("which", n), self._room("batch", n)


def is_exact(compiled: Compiled) -> bool:
    """Whether no sum is rounded."""
    return all(store.ring.is_exact for store in compiled.stores.all)
