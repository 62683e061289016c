"""Owns the facts of a recursion with their stages and support counts, and one transaction's changes to them.

Every fact has a stage and the number of its derivations from lower stages: those all of whose recursive body
facts have a stage below its own.  Base facts and rules without recursive body facts are derivations from
nothing.  Invariant: the count is exact and at least 1.  So every fact has a derivation from facts of lower
stages, and by induction one from the strata below alone: no facts keep each other alive.

If values combine (recursive min and max), a fact is a key with its value, and only derivations of that
value count.

Lifecycle of a transaction.  1 `take`, or `expand_kernels`, applies derivations.  2 `fall` and `births`
return the facts whose derivations come next.  3 `changes` reads the outcome.  4 `keep` or `undo`: the next
transaction knows whether this one was committed.

Knows nothing of rules and relations.  Not versioned, unlike relations: readers never see it, and `undo`
restores what the last transaction changed, in time proportional to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dlog.aggregates import aggregate_named
from dlog.heads.stages import layout as k
from dlog.heads.stages.pending_kernels import next_births, next_deaths
from dlog.heads.stages.support_kernels import take
from dlog.heads.stages.table_kernels import (
    fill,
    read_changes,
    read_facts,
    read_stages,
    rehash,
    settle,
)
from dlog.jit import DISABLED, Words
from dlog.storage.index.batch import Change

CHUNK = 1024  # derivations processed at a time: their rows stay in the first-level cache
_FILLED = 1 << 16  # facts inserted at a time
_LEAST_SLOTS = 4 * CHUNK
_LEAST_RECORDS = 2 * CHUNK
_LISTS = {
    k.FALLEN: 1,
    k.ABSENT_LIST: 1,
    k.BATCH: 1,
    k.HEAP: k.HEAP_WORDS,
}  # words of each
_COUNTERS = [k.N_RECORDS, k.N_FALLEN, k.N_ABSENT, k.N_HEAP, k.WORK, k.SEARCHED]  # of a transaction
NO_IDS: Words = np.zeros(0, np.int64)

# Uncompiled, numpy warns where the hash wraps.
_quietly = np.errstate(all="ignore") if DISABLED else (lambda f: f)
_take, _rehash, _settle, _fill = _quietly(take), _quietly(rehash), _quietly(settle), _quietly(fill)


def _direction(combine: str) -> int:
    """How a kernel decides which of two values of a key is better; 0: values do not combine."""
    if not combine:
        return 0
    return k.MIN if aggregate_named(combine).direction > 0 else k.MAX


@dataclass(frozen=True)
class FactKind:
    """A predicate as the table sees it: its first `identity` columns identify its facts."""

    columns: int
    identity: int
    combine: str = ""  # or min, max


class StageTable:
    """Facts by number of predicate.

    >>> table = StageTable([FactKind(2, 2)])
    >>> shape = table.shape(-1, [(0, [(0, 0), (0, 1)])])           # a head p(column 0, column 1), no body
    >>> table.take(np.array([[1, 1], [5, 6]]), NO_IDS, shape, k.BOUND, 1)
    >>> len(table.births(1)), table.changes(0).inserted.tolist()
    (2, [[1, 5], [1, 6]])
    >>> table.keep()
    >>> table.stages(0).tolist()                                   # row, stage, count
    [[1, 5, 1, 1], [1, 6, 1, 1]]
    """

    def __init__(self, kinds: Sequence[FactKind]):
        self.kinds = tuple(kinds)
        self.width = 2 + max((kind.columns for kind in kinds), default=0)
        self.head = np.zeros(k.HEADER + k.PREDICATE_WORDS * len(kinds) + self.width, np.int64)
        self.head[k.WIDTH] = self.width
        self.head[k.KEY] = k.HEADER + k.PREDICATE_WORDS * len(kinds)
        for number, kind in enumerate(kinds):
            at = k.HEADER + k.PREDICATE_WORDS * number
            combine = _direction(kind.combine)
            self.head[at : at + k.PREDICATE_WORDS] = kind.columns, kind.identity, combine
        self.table = self.records = np.zeros(0, np.int64)
        self.words = self.head.data  # single words are read in a third of the time
        self._resize(_LEAST_SLOTS)
        self._more_records(_LEAST_RECORDS)

    def __len__(self) -> int:
        """The number of entries: facts, and during a transaction those it removes or searches for."""
        return int(self.head[k.LIVE])

    @property
    def touched(self) -> int:
        """How many facts the transaction has touched."""
        return int(self.head[k.N_RECORDS])

    @property
    def work(self) -> int:
        """Derivations and join operations since the transaction began."""
        return self.head.item(k.WORK) + self.head.item(k.SEARCHED)

    @property
    def derivations(self) -> int:
        """Derivations examined since the transaction began."""
        return int(self.head[k.WORK])

    # Room

    def grow(self) -> None:
        """Make room for CHUNK derivations.  O(1) amortised."""
        word = self.head.item  # faster than indexing
        if word(k.LIVE) + CHUNK > word(k.MOST_LIVE):
            self._resize(2 * word(k.SLOTS))
        fullest = max(word(k.N_RECORDS), word(k.N_HEAP)) + CHUNK
        if fullest > word(k.MOST_RECORDS):
            self._more_records(2 * fullest)

    def reserve(self, facts: int, touched: bool) -> None:
        """Make room for this many facts, all of them touched or none.  REQUIRES: it is empty.  O(facts)."""
        self._resize(max(_LEAST_SLOTS, _slots_for(facts + CHUNK)))
        if touched:
            self._more_records(facts + _LEAST_RECORDS)

    def clear(self, facts: int) -> None:
        """Clear the table, and make room for this many facts that no transaction touches.

        Memory of a suitable size is reused, which costs less than allocating new.  O(slots).
        """
        self.head[[k.LIVE, *_COUNTERS]] = 0
        wanted = max(_LEAST_SLOTS, _slots_for(facts + CHUNK))
        if wanted <= self.head[k.SLOTS] <= 2 * wanted:
            self.table[:] = 0
        else:
            self.table = NO_IDS
            self.head[k.SLOTS] = 0
            self._resize(wanted)

    def _resize(self, slots: int) -> None:
        old_slots = int(self.head[k.SLOTS])
        slots = max(2, -(-slots // k.NEIGHBOURS)) * k.NEIGHBOURS
        slots += k.NEIGHBOURS if slots % k.STRIDE == 0 else 0
        self.head[k.SLOTS], self.head[k.INVERSE] = slots, pow(k.STRIDE, -1, slots)
        self.head[k.MOST_LIVE] = slots * 5 // 8
        old, self.table = self.table, np.zeros(slots * self.width, np.int64)
        _rehash(old, old_slots, self.table, self.records, self.head)

    def _more_records(self, n: int) -> None:
        before, old = int(self.head[k.MOST_RECORDS]), self.records
        self.records = np.empty(n * (k.RECORD + sum(_LISTS.values())), np.int64)
        self.records[: before * k.RECORD] = old[: before * k.RECORD]
        end = n * k.RECORD
        for name, words in _LISTS.items():
            start, self.head[name] = int(self.head[name]), end
            self.records[end : end + before * words] = old[start : start + before * words]
            end += n * words
        self.head[k.MOST_RECORDS] = n

    def _shrink(self) -> None:
        """Release the memory of a large transaction."""
        slots = self.head.item(k.SLOTS)
        if slots > _LEAST_SLOTS and len(self) * 8 < slots:
            self._resize(max(_LEAST_SLOTS, _slots_for(2 * len(self))))
        if self.head[k.MOST_RECORDS] > 64 * _LEAST_RECORDS:
            self.records, self.head[k.MOST_RECORDS] = np.zeros(0, np.int64), 0
            self._more_records(_LEAST_RECORDS)

    def fill(self, predicate: int, block: Words) -> None:
        """Insert facts that do not exist, a (columns + 1, n) array with their supports last (see
        `storage.queue.support_kernels`).  REQUIRES: no transaction.  O(n) expected.
        """
        n = block.shape[1]
        if int(self.head[k.LIVE]) + n > int(self.head[k.MOST_LIVE]):
            self._resize(max(2 * int(self.head[k.SLOTS]), _slots_for(len(self) + n + CHUNK)))
        for start in range(0, n, _FILLED):
            part = np.ascontiguousarray(block[:, start : start + _FILLED])
            m = part.shape[1]
            _fill(predicate, part.reshape(-1), m, np.empty(m, np.int64), self.table, self.head)

    # Derivations

    def shape(self, changed: int, facts: Sequence[tuple[int, Sequence[tuple[int, int]]]]) -> Words:
        """The descriptor of derivations: the head, then its recursive body facts.

        A fact is a predicate's number and, for each column, (0, column of the rows) or (1, code).
        """
        room = 1 + 2 * (self.width - 2)
        out = np.zeros(k.SHAPE + room * len(facts), np.int64)
        out[:2] = changed, len(facts) - 1
        for i, (predicate, operands) in enumerate(facts):
            at = k.SHAPE + room * i
            out[at] = predicate
            for c, operand in enumerate(operands):
                out[at + 1 + 2 * c : at + 3 + 2 * c] = operand
        return out

    def take(self, columns: Words, source: Words, shape: Words, mode: int, step: int) -> None:
        """Apply derivations.  `columns` is (columns, n); source[i] is the record of the changed fact of i.

        In step `step` of the births, round `step` of the deaths.  O(n) expected.
        """
        n = columns.shape[1]
        for start in range(0, n, CHUNK):
            part = np.ascontiguousarray(columns[:, start : start + CHUNK])
            ids = np.ascontiguousarray(source[start : start + CHUNK])
            self.take_rows(part.reshape(-1), part.shape[1], part.shape[1], ids, shape, mode, step)

    def take_rows(
        self, rows: Words, stride: int, n: int, source: Words, shape: Words, mode: int, step: int
    ) -> None:
        """The same for n <= CHUNK derivations: column c of row i is rows[c * stride + i]."""
        self.grow()
        _take(rows, stride, n, source, shape, mode, step, self.table, self.records, self.head)

    # Deaths and births

    def fall(self, number: int) -> Words:
        """The facts that die in round `number`, as records; from now on they are dead."""
        out = np.empty(int(self.head[k.N_FALLEN]), np.int64)
        next_deaths(self.records, self.head, number, out)
        return out

    def questions(self) -> Words:
        """Facts that a change may have derived, and that did not exist."""
        n = int(self.head[k.N_ABSENT])
        self.head[k.N_ABSENT] = 0
        return self._list(k.ABSENT_LIST, n).copy()

    def batch(self, n: int) -> Words:
        """The first n records of the last batch; valid until the next one."""
        return self._list(k.BATCH, n)

    def _list(self, name: int, n: int) -> Words:
        start = int(self.head[name])
        return self.records[start : start + n]

    @property
    def has_fallen(self) -> bool:
        return bool(self.head[k.N_FALLEN])

    def births(self, step: int) -> Words:
        """The pending facts of the least value and stage, as records; from now on they exist."""
        pending = int(self.head[k.N_HEAP])
        if not pending:
            return NO_IDS
        out = np.empty(pending, np.int64)
        return out[: next_births(self.records, self.head, step, out)]

    def facts(self, batch: Words, predicate: int) -> tuple[Words, Words]:
        """((n, columns) rows, records) of the facts of a batch that belong to a predicate.  O(batch)."""
        columns = self.kinds[predicate].columns
        rows, ids = np.empty((len(batch), columns), np.int64), np.empty(len(batch), np.int64)
        n = read_facts(batch, predicate, self.table, self.records, self.head, rows.reshape(-1), ids)
        return rows[:n], ids[:n]

    # Outcome

    def changes(self, predicate: int, batch: Words | None = None, *, shown: bool = False) -> Change:
        """Rows of a predicate that were added and removed since the transaction began.

        `shown`: since they were last shown, instead; and from now on they are.  O(touched), or O(batch).
        """
        batch = np.arange(self.touched) if batch is None else batch
        columns = self.kinds[predicate].columns
        new, old = np.empty((2, len(batch), columns), np.int64)
        counts = np.zeros(2, np.int64)
        read_changes(
            batch, predicate, int(shown), self.table, self.records, self.head,
            new.reshape(-1), old.reshape(-1), counts,
        )  # fmt: skip
        return Change(new[: counts[0]], old[: counts[1]])

    def keep(self) -> None:
        """The transaction was committed.  O(touched)."""
        _settle(self.table, self.records, self.head, 0)
        self._shrink()

    def undo(self) -> None:
        """Restore the state before the transaction.  O(touched)."""
        _settle(self.table, self.records, self.head, 1)
        self._shrink()

    def stages(self, predicate: int) -> Words:
        """All facts of a predicate with stage and count, sorted.  REQUIRES: no transaction.  O(slots)."""
        columns = self.kinds[predicate].columns
        out = np.empty((len(self), columns + 2), np.int64)
        out = out[: read_stages(predicate, self.table, self.head, out.reshape(-1))]
        return out[np.lexsort(out.T[::-1])]


def _slots_for(facts: int) -> int:
    """Slots for this many facts: at most five in eight are used.

    >>> _slots_for(100)
    161
    """
    return facts * 8 // 5 + 1
