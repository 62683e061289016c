"""Owns the kernels of counted queues: rows with the number of their derivations.

After its columns a row has its *support*: stage << COUNT_BITS | count.  The stage is 1 for a row that
exists from the start, else one more than the greatest stage in the body of the derivation that came first;
the count is the number of its derivations from lower stages.  So the only property needed of a derivation is
its top, the greatest stage in its body, and each must come once.  If the set is cells or pairs, they have the
supports, and the word after the row has only the right stage, until `settle_supports`: so a derivation
accesses one place of memory.  Knows nothing of plans.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.jit import Words, helper, kernel
from dlog.storage.arena.pointer import pointer
from dlog.storage.queue.row_queue_kernels import (
    CELLS,
    OUT_OF_RANGE,
    Q_ARITY,
    Q_BASE,
    Q_CAPACITY,
    Q_COUNT,
    Q_METHOD,
    Q_SEEN,
    Q_SIZE,
    QUEUE,
    WIDE,
    find_key,
    find_wide,
    hash_columns,
    pack_row,
    pack_rows,
    put_row,
    support_of,
)

COUNT_BITS: Final = 32


@helper
def absorb_counted(queues, q, rows, seen, out, capacity, n, sources, at, tops, scratch):
    """As `absorb`, for a counted queue: n derivations, out[tops + i] being the top of derivation i.

    Returns how many rows are new, or OUT_OF_RANGE, and then nothing is counted.
    """
    q *= QUEUE
    if queues[q + Q_METHOD] == WIDE:
        return absorb_wide_counted(queues, q, rows, seen, out, capacity, n, sources, at, tops)
    if not pack_rows(queues, q, out, capacity, n, sources, at, scratch):
        return np.int64(OUT_OF_RANGE)
    if queues[q + Q_METHOD] == CELLS:
        found = count_cells(seen, queues[q + Q_SEEN], scratch, n, capacity, out, tops)
    else:
        found = count_keys(
            seen, queues[q + Q_SEEN], (queues[q + Q_SIZE] >> 1) - 1, scratch, n, capacity, out, tops
        )
    arity, stride, count = queues[q + Q_ARITY], queues[q + Q_CAPACITY], queues[q + Q_COUNT]
    base = queues[q + Q_BASE] + count
    for c in range(arity):
        source = sources[at + 2 * c]
        for j in range(found):
            i = scratch[capacity + j]
            rows[base + j] = sources[at + 2 * c + 1] if source < 0 else out[capacity * source + i]
        base += stride
    for j in range(found):
        rows[base + j] = (out[tops + scratch[capacity + j]] + 1) << COUNT_BITS
    queues[q + Q_COUNT] += found
    return found


@helper
def count_cells(seen, base, keys, n, positions, out, tops):
    """Count derivations of n keys in cells; positions of new ones go after the keys.  Returns their number.

    Without branches: which rows are new is unpredictable.
    """
    found = np.int64(0)
    for i in range(n):
        top = out[tops + i]
        cell = base + keys[i]
        old = seen[cell]
        more = old + (old >> COUNT_BITS > top)
        seen[cell] = (top + 1) << COUNT_BITS | 1 if old == 0 else more
        keys[positions + found] = i
        found += old == 0
    return found


@helper
def count_keys(seen, base, mask, keys, n, positions, out, tops):
    """As `count_cells`, for a hash table of mask + 1 pairs."""
    found = np.int64(0)
    for i in range(n):
        top = out[tops + i]
        slot = base + 2 * find_key(seen, base, mask, keys[i])
        if seen[slot] < 0:
            seen[slot] = keys[i]
            seen[slot + 1] = (top + 1) << COUNT_BITS | 1
            keys[positions + found] = i
            found += 1
        else:
            seen[slot + 1] += seen[slot + 1] >> COUNT_BITS > top
    return found


@helper
def absorb_wide_counted(queues, q, rows, seen, out, capacity, n, sources, at, tops):
    arity, stride = queues[q + Q_ARITY], queues[q + Q_CAPACITY]
    table = queues[q + Q_SEEN]
    supports = queues[q + Q_BASE] + arity * stride
    before = queues[q + Q_COUNT]
    for i in range(n):
        top = out[tops + i]
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
    """(Hash, slot) of row i of the output in the table of a queue; the row is written after the queue's."""
    arity, stride = queues[q + Q_ARITY], queues[q + Q_CAPACITY]
    row = queues[q + Q_COUNT]
    for c in range(arity):
        source = sources[at + 2 * c]
        value = sources[at + 2 * c + 1] if source < 0 else out[capacity * source + i]
        rows[queues[q + Q_BASE] + c * stride + row] = value
    hash = hash_columns(rows, queues[q + Q_BASE] + row, stride, arity)
    return hash, find_wide(queues, q, rows, seen, row, arity, hash)


@helper
def stage_of(queues, q, rows, row):
    """The stage of a row of a counted queue."""
    return support_of(queues, q * QUEUE, rows, row) >> COUNT_BITS


@kernel
def settle_supports(queue_words: Words, q: int, row_words: Words, seen_words: Words) -> int:
    """Let all rows of a queue have their supports after them, if cells or pairs have them.  O(rows)."""
    queues, rows, seen = pointer(queue_words), pointer(row_words), pointer(seen_words)
    q *= QUEUE
    base, mask = queues[q + Q_SEEN], (queues[q + Q_SIZE] >> 1) - 1
    supports = queues[q + Q_BASE] + queues[q + Q_ARITY] * queues[q + Q_CAPACITY]
    for i in range(queues[q + Q_COUNT]):
        key = pack_row(queues, q, rows, i)
        at = key if queues[q + Q_METHOD] == CELLS else 2 * find_key(seen, base, mask, key) + 1
        rows[supports + i] = seen[base + at]
    return 0


@kernel
def rehash_pairs(old: Words, old_pairs: int, seen: Words, base: int, pairs: int) -> int:
    """Put all pairs of a table into a larger, empty one.  O(pairs)."""
    mask = pairs - 1
    for i in range(old_pairs):
        if old[2 * i] >= 0:
            slot = base + 2 * find_key(seen, base, mask, old[2 * i])
            seen[slot], seen[slot + 1] = old[2 * i], old[2 * i + 1]
    return 0


@kernel
def read_cells(
    seen: Words, base: int, start: int, end: int, arity: int, lows: Words, out: Words, stride: int
) -> int:
    """The rows of some of the cells, in order, their supports after them: column c of row i goes to
    out[c * stride + i].  Returns how many.  O(cells + rows * arity).
    """
    to = pointer(out)
    n = np.int64(0)
    run, run_key, width = np.int64(-1), np.int64(-1), lows[2 * arity - 1]
    for key in range(start, end):
        support = seen[base + key]
        if support != 0:
            if key - run_key >= width or run < 0:
                run = key // width
                run_key = run * width
            put_row(run, key - run_key, arity, lows, to, n, stride)
            to[n + arity * stride] = support
            n += 1
    return int(n)
