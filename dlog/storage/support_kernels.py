"""Owns the kernels of counted queues: rows that know by how many derivations they are there.

Behind its columns a row has its *support*: stage << COUNT_BITS | count.  The stage is 1 for a row that is
there from the start, else one more than the greatest stage in the body of the derivation that came first; the
count is the number of its derivations from lower stages.  So all that is asked of a derivation is its top,
the greatest stage in its body, and each must come once.  Knows nothing of plans.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.jit import Words, helper, kernel
from dlog.storage.pointer import pointer
from dlog.storage.row_queue_kernels import (
    CELLS,
    OUT_OF_RANGE,
    Q_ARITY,
    Q_BASE,
    Q_CAPACITY,
    Q_COUNT,
    Q_METHOD,
    Q_PACK,
    Q_SEEN,
    QUEUE,
    find_wide,
    hash_columns,
    pack_rows,
    put_row,
)

COUNT_BITS: Final = 32
SKIPPED: Final = -1  # the top of a derivation that is counted elsewhere


@helper
def absorb_counted(queues, q, rows, seen, out, capacity, n, sources, at, tops, scratch):
    """As `absorb`, for a counted queue: n derivations, out[tops + i] being the top of derivation i.

    Returns how many rows are new, or OUT_OF_RANGE, and then nothing is counted.
    """
    q *= QUEUE
    if queues[q + Q_METHOD] != CELLS:
        return absorb_wide_counted(queues, q, rows, seen, out, capacity, n, sources, at, tops)
    if not pack_rows(queues, q, out, capacity, n, sources, at, scratch):
        return np.int64(OUT_OF_RANGE)
    arity, stride = queues[q + Q_ARITY], queues[q + Q_CAPACITY]
    cells, count = queues[q + Q_SEEN], queues[q + Q_COUNT]
    supports = queues[q + Q_BASE] + arity * stride
    found = np.int64(0)
    for i in range(n):  # without branches: which rows are new cannot be foreseen
        top = out[tops + i]
        cell = cells + scratch[i]
        old = seen[cell]
        counts = top >= 0
        new = counts & (old < 0)
        row = count + found if old < 0 else old
        seen[cell] = row if counts else old
        support = rows[supports + row]
        more = support + (counts & (support >> COUNT_BITS > top))
        rows[supports + row] = (top + 1) << COUNT_BITS | 1 if new else more
        scratch[capacity + found] = i
        found += new
    base = queues[q + Q_BASE] + count
    for c in range(arity):
        source = sources[at + 2 * c]
        for j in range(found):
            i = scratch[capacity + j]
            rows[base + j] = sources[at + 2 * c + 1] if source < 0 else out[capacity * source + i]
        base += stride
    queues[q + Q_COUNT] += found
    return found


@helper
def absorb_wide_counted(queues, q, rows, seen, out, capacity, n, sources, at, tops):
    arity, stride = queues[q + Q_ARITY], queues[q + Q_CAPACITY]
    table = queues[q + Q_SEEN]
    supports = queues[q + Q_BASE] + arity * stride
    before = queues[q + Q_COUNT]
    for i in range(n):
        top = out[tops + i]
        if top < 0:
            continue
        hash, slot = find_output(queues, q, rows, seen, out, capacity, i, sources, at)
        row = seen[table + 2 * slot + 1]
        if row < 0:
            row = queues[q + Q_COUNT]
            seen[table + 2 * slot] = hash
            seen[table + 2 * slot + 1] = row
            rows[supports + row] = (top + 1) << COUNT_BITS | 1
            queues[q + Q_COUNT] = row + 1
        else:
            rows[supports + row] += rows[supports + row] >> COUNT_BITS > top
    return queues[q + Q_COUNT] - before


@helper
def find_output(queues, q, rows, seen, out, capacity, i, sources, at):
    """(Hash, slot) of row i of the output in the table of a queue; the row is written behind the queue's."""
    arity, stride = queues[q + Q_ARITY], queues[q + Q_CAPACITY]
    row = queues[q + Q_COUNT]
    for c in range(arity):
        source = sources[at + 2 * c]
        value = sources[at + 2 * c + 1] if source < 0 else out[capacity * source + i]
        rows[queues[q + Q_BASE] + c * stride + row] = value
    hash = hash_columns(rows, queues[q + Q_BASE] + row, stride, arity)
    return hash, find_wide(queues, q, rows, seen, row, arity, hash)


@helper
def row_of_output(queues, q, rows, seen, out, capacity, i, sources, at):
    """The number of the row of a counted queue that is row i of the output.  REQUIRES: there is one."""
    q *= QUEUE
    if queues[q + Q_METHOD] != CELLS:
        slot = find_output(queues, q, rows, seen, out, capacity, i, sources, at)[1]
        return seen[queues[q + Q_SEEN] + 2 * slot + 1]
    arity, lows = queues[q + Q_ARITY], queues[q + Q_PACK]
    key = np.int64(0)
    for c in range(arity):
        source = sources[at + 2 * c]
        value = sources[at + 2 * c + 1] if source < 0 else out[capacity * source + i]
        key = key * queues[lows + arity + c] + value - queues[lows + c]
    return seen[queues[q + Q_SEEN] + key]


@helper
def stage_of(queues, q, rows, row):
    """The stage of a row of a counted queue."""
    q *= QUEUE
    return rows[queues[q + Q_BASE] + queues[q + Q_ARITY] * queues[q + Q_CAPACITY] + row] >> COUNT_BITS


@kernel
def read_cells(
    queue_words: Words,
    q: int,
    row_words: Words,
    seen: Words,
    words: int,
    lows: Words,
    out: Words,
    stride: int,
) -> int:
    """All rows of a queue whose set are cells, in order, their supports behind them: column c of row i goes
    to out[c * stride + i].  O(words + rows * arity).
    """
    queues, rows, to = pointer(queue_words), pointer(row_words), pointer(out)
    q *= QUEUE
    arity, base = queues[q + Q_ARITY], queues[q + Q_SEEN]
    supports = queues[q + Q_BASE] + arity * queues[q + Q_CAPACITY]
    n = np.int64(0)
    run, run_key, width = np.int64(-1), np.int64(-1), lows[2 * arity - 1]
    for key in range(words):
        row = seen[base + key]
        if row >= 0:
            if key - run_key >= width or run < 0:
                run = key // width
                run_key = run * width
            put_row(run, key - run_key, arity, lows, to, n, stride)
            to[n + arity * stride] = rows[supports + row]
            n += 1
    return int(n)
