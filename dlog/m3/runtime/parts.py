"""Owns a program that several machines run at the same time, each on its part of the rows, and the sum of
what they have.  `compile.partition` says which rows and maps these are.

The same results, to the bit, for any number of threads: sums of integers and exact sums do not depend on how
rows are divided.  Where sums are rounded, rows are divided into ROUNDED_PARTS always, whatever the number of
threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np

from dlog.jit import Words
from dlog.m3.runtime.compile.compiler import Compiled
from dlog.m3.runtime.compile.partition import SHARED, Partition
from dlog.m3.runtime.compile.stores import Store
from dlog.m3.runtime.drain import Drain
from dlog.m3.runtime.feeder import Feeder, Step, flat, has_batch_trigger
from dlog.m3.runtime.layout import M_LIMIT, M_SPARE, M_USED, S_INSERT, S_WORDS
from dlog.m3.runtime.machine.partition_kernels import add_map, list_part, order_part, take_part
from dlog.m3.runtime.maps.maps import Maps
from dlog.m3.runtime.worker import Stopped, Worker
from dlog.storage.arena.arena import Arena
from dlog.storage.dictionary.dictionary import Dictionary

ROUNDED_PARTS = 4
WORTH_THREADS = 1 << 12  # rows: fewer take less time than it takes to wake a thread
_NO_MARKS = np.empty(0, np.int64)


class Parts:
    """REQUIRES: a partition of the program, and no calls of Python in it."""

    def __init__(self, compiled: Compiled, dictionary: Dictionary, partition: Partition, threads: int):
        arena = Arena(in_large_pages=True)
        number = threads if is_exact(compiled) else ROUNDED_PARTS
        self.compiled, self.partition = compiled, partition
        self.workers = [Worker(compiled, dictionary, arena) for _ in range(number)]
        self.feeders = [Feeder(worker) for worker in self.workers]
        self.total = Worker(compiled, dictionary, arena)  # the sums of maps, where they were asked for
        self._memory = [_Memory() for _ in self.workers]
        self._summed: set[int] = set()  # maps whose sums are up to date
        self._threads = min(threads, number)
        self._pool: ThreadPoolExecutor | None = None

    # ---- changes

    def once(self, entry: int) -> None:
        self._all(lambda part: self.feeders[part].once(entry), 0)

    def load(self, table: str, words: Words) -> None:
        def load(part: int) -> None:
            self.feeders[part].load(table, self._rows(Step(table, words), part))

        self._all(load, words.shape[1])

    def expect(self, relation: str, rows: int) -> None:
        share = 1 if self.partition.columns[relation] is None else len(self.feeders)
        for feeder in self.feeders:
            feeder.coming[relation] = -(-rows // share)

    def apply_steps(self, steps: Sequence[Step], which: Words, batch: Words) -> None:
        """Rows of several relations: see `Runtime.apply_steps`."""
        is_one = len(batch) == 0 or (len(steps) == 1 and batch[0] == batch[-1])
        if not is_one and any(self._clears(step.relation) for step in steps):
            self._apply_one_by_one(steps, which, batch)
            return
        self._all(lambda part: self._apply(part, steps, which, batch), len(which))

    def _apply(self, part: int, steps: Sequence[Step], which: Words, batch: Words) -> None:
        """The share of one machine."""
        if len(steps) == 1 and (len(batch) == 0 or batch[0] == batch[-1]):
            self._apply_one(part, steps[0])
            return
        feeder, memory = self.feeders[part], self._memory[part]
        inputs = memory.inputs(sum(step.words.size for step in steps))
        marks, following = memory.marks(len(which)), np.zeros(len(steps), np.int64)
        table = np.zeros((len(steps), S_WORDS), np.int64)
        base = row = 0
        for number, step in enumerate(steps):
            width, n = step.words.shape
            taken = self._take(step, part, inputs, base, marks, row)
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

    def _apply_one(self, part: int, step: Step) -> None:
        """One batch: its rows stay where they are, if they are processed together."""
        key, n = self.partition.columns[step.relation], step.words.shape[1]
        if key is None or not has_batch_trigger(self.compiled, step.relation):
            self.feeders[part].apply(step.relation, self._rows(step, part))
            return
        rows, (given, stride) = self._memory[part].rows(n), flat(step.words)
        taken = list_part(given, key * stride, n, part, len(self.feeders), rows)
        if taken:
            self.feeders[part].apply_selected(step.relation, step.words, rows[:taken])
        elif self._clears(step.relation):  # a row of multiplicity 0, so that the trigger runs
            self.feeders[part].apply(step.relation, np.zeros((step.words.shape[0], 1), np.int64))

    def _clears(self, relation: str) -> bool:
        """Whether machines that have no row of a batch run its trigger, too."""
        return relation in self.partition.clearing and self.partition.columns[relation] is not None

    def _apply_one_by_one(self, steps: Sequence[Step], which: Words, batch: Words) -> None:
        ends = np.flatnonzero((np.diff(which) != 0) | (np.diff(batch) != 0)) + 1
        done = [0] * len(steps)
        for first, end in zip([0, *ends.tolist()], [*ends.tolist(), len(which)], strict=True):
            s = int(which[first])
            words = steps[s].words[:, done[s] : done[s] + end - first]
            done[s] += end - first
            nothing = np.zeros(end - first, np.int64)
            self.apply_steps([Step(steps[s].relation, words)], nothing, nothing)

    def _rows(self, step: Step, part: int) -> Words:
        """The rows of a step that a part has."""
        if self.partition.columns[step.relation] is None:
            return step.words
        width, n = step.words.shape
        memory = self._memory[part]
        out = memory.inputs(width * n)
        taken = self._take(step, part, out, 0, _NO_MARKS, 0)
        return out[: width * n].reshape(width, n)[:, :taken]

    def _take(self, step: Step, part: int, out: Words, to: int, marks: Words, row: int) -> int:
        """Put those of its columns that are read from a place on; returns how many rows a part has."""
        key, (width, n) = self.partition.columns[step.relation], step.words.shape
        read = self.compiled.columns_read.get(step.relation, range(width - 1))
        columns = np.array(sorted({*read, width - 1}), np.int64)
        given, stride = flat(step.words)
        rows = self._memory[part].rows(n)
        part, parts = (0, 1) if key is None else (part, len(self.feeders))
        return take_part(given, stride, n, key or 0, part, parts, columns, rows, marks, row, out, to)

    # ---- threads

    def _all(self, job: Callable[[int], None], rows: int) -> None:
        """Do something for each machine, by its number; raises what the first of them raised."""
        self._summed.clear()
        waiting, errors = deque(range(len(self.workers))), list[tuple[int, BaseException]]()
        for worker in self.workers:
            worker.stop = False

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
                    waiting.clear()
                    for worker in self.workers:
                        worker.stop = True

        helpers = self._threads - 1 if rows >= WORTH_THREADS else 0
        futures = [self._helpers().submit(run) for _ in range(helpers)]
        run()
        wait(futures)
        raised = [pair for pair in errors if not isinstance(pair[1], Stopped)]
        if raised:
            raise min(raised, key=lambda pair: pair[0])[1]

    def _helpers(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads - 1, thread_name_prefix="dlog-m3")
        return self._pool

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
        shared = [self.partition.maps.get(name) == SHARED for name in drain.names]
        return drain.read_all([worker.maps for worker in self.workers], shared)

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
                    self._add(worker, store.address)

    def _is_shared(self, store: Store) -> bool:
        """Of a map or a table."""
        if store.name in self.partition.maps:
            return self.partition.maps[store.name] == SHARED
        return self.partition.columns[store.name.removeprefix("table ")] is None

    def _add(self, worker: Worker, address: int) -> None:
        maps, total = worker.maps, self.total.maps
        entries = int(maps.words[address + M_USED])
        if int(total.words[address + M_USED]) + entries > int(total.words[address + M_LIMIT]):
            total.grow(address, entries)
        slot = 0
        while slot >= 0:
            slot = add_map(total.arena.A, total.words, address, maps.words, address, slot, self.total.state)
            if slot >= 0:
                assert total.words[address + M_SPARE] == 0
                total.give_wide(address)

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
        if len(self._found.get(name, _NO_MARKS)) < n + 1:
            self._found[name] = np.empty(max(n + 1, 2 * n), np.int64)
        return self._found[name]

    def inputs(self, n: int) -> Words:
        return self._room("inputs", n)

    def rows(self, n: int) -> Words:
        return self._room("rows", n)

    def marks(self, n: int) -> Words:
        return self._room("marks", n)

    def order(self, n: int) -> tuple[Words, Words]:
        return self._room("which", n), self._room("batch", n)


def is_exact(compiled: Compiled) -> bool:
    """Whether no sum is rounded."""
    return all(store.ring.is_exact for store in compiled.stores.all)
