"""Owns reading row queues when a recursion is done: sorted rows, with supports, or as relations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np

from dlog.jit import Words
from dlog.storage.arena.arena import Arena
from dlog.storage.index.index import Index
from dlog.storage.index.sort import sorted_with_last, sorted_words
from dlog.storage.queue.row_queue import RowQueues
from dlog.storage.queue.row_queue_kernels import (
    BITMAP,
    CELLS,
    Q_ARITY,
    Q_COUNT,
    Q_COUNTED,
    Q_METHOD,
    Q_SEEN,
    Q_SIZE,
    WIDE,
    clear_bits,
    read_bits,
    unpack_keys,
)
from dlog.storage.queue.support_kernels import read_cells
from dlog.storage.relation.relation import Order, Relation

CELLS_READ: Final = 1 << 14  # at a time


def take(queues: RowQueues, q: int) -> Words:
    """All rows sorted, as a (arity, n) array; afterwards the queue's set cannot be used.

    Those of a counted queue have their supports as one more column.
    """
    if queues[q, Q_COUNTED]:
        return _take_counted(queues, q)
    n, arity = queues.live(q), queues[q, Q_ARITY]
    out = np.empty((arity, n), np.int64)
    if queues[q, Q_METHOD] == WIDE:
        columns = queues.columns(q)
        return columns[:, np.lexsort(columns[::-1])]
    base, size, ranges = queues[q, Q_SEEN], queues[q, Q_SIZE], queues.ranges_of(q)
    if queues[q, Q_METHOD] == BITMAP and size <= 8 * n:
        read_bits(queues.seen, base, size, arity, ranges, out.reshape(-1), n, 0)
        queues.seen[base : base + size] = 0
        queues.is_clear[q] = True
        return out
    runs = queues.runs[q]
    keys = runs.merged() if runs is not None else queues.keys(q)
    if queues[q, Q_METHOD] == BITMAP:
        clear_bits(queues.seen, base, keys, n)
        queues.is_clear[q] = True
    unpack_keys(sorted_words(keys), n, arity, ranges, out.reshape(-1), n)
    return out


def _take_counted(queues: RowQueues, q: int) -> Words:
    n = queues.count(q)
    out = np.empty((queues.width(q), n), np.int64)
    at = 0
    for part in parts(queues, q):
        out[:, at : at + part.shape[1]] = part
        at += part.shape[1]
    assert at == n
    return out


def parts(queues: RowQueues, q: int) -> Iterator[Words]:
    """All rows of a counted queue in order, with their supports, piece by piece: (arity + 1, n) views
    that are valid until the next one."""
    if queues[q, Q_METHOD] != CELLS:
        queues.settle_supports(q)
        yield sorted_with_last(queues.block(q))
        return
    arity, size, ranges = queues[q, Q_ARITY], queues[q, Q_SIZE], queues.ranges_of(q)
    piece = min(size, CELLS_READ)
    out = np.empty((arity + 1) * piece, np.int64)
    for start in range(0, size, piece):
        end = min(size, start + piece)
        n = read_cells(queues.seen, queues[q, Q_SEEN], start, end, arity, ranges, out, piece)
        if n:
            yield out.reshape(arity + 1, piece)[:, :n]


def relation(queues: RowQueues, q: int, arena: Arena, orders: Sequence[Order]) -> Relation:
    """All rows as a relation.  The contents of a bitmap or runs are in order, and go straight to the
    arena.
    """
    natural, runs = tuple(range(queues[q, Q_ARITY])), queues.runs[q] is not None
    bitmap = queues[q, Q_METHOD] == BITMAP and queues[q, Q_SIZE] <= 8 * queues[q, Q_COUNT]
    if natural not in orders or not (bitmap or runs):
        return Relation.from_columns(arena, list(take(queues, q) if runs else queues.columns(q)), orders)
    others = [order for order in orders if order != natural]
    relation = Relation.of_index(
        Index.of_sorted(arena, len(natural), queues.live(q), partial(put, queues, q))
    )
    for order in others:
        relation.add_order(order)
    return relation


def put(queues: RowQueues, q: int, words: Words, at: int) -> None:
    """Write the contents of a bitmap or runs, sorted: column c of row i to words[at + c * live + i]."""
    arity, ranges, runs = queues[q, Q_ARITY], queues.ranges_of(q), queues.runs[q]
    if runs is not None:
        unpack_keys(runs.merged(), len(runs), arity, ranges, words[at:], len(runs))
        return
    found = read_bits(
        queues.seen, queues[q, Q_SEEN], queues[q, Q_SIZE], arity, ranges, words, queues.count(q), at
    )
    assert found == queues.count(q)
