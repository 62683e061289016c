"""Owns the last level of a join in batches: the keys of a Leap right before Emit or Count, many at a time.

Correct output: as the Leap followed by its terminal.  The leader's keys are processed in chunks that are
contiguous in the arena; a chunk is intersected with the second participant into scratch, and the result
there with the third, and so on.  All participants are at the last column of their index, so that no key
repeats within a range.

On triangles nearly all time goes into `intersect`.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import helper
from dlog.lftj.leap import leap_open, seek
from dlog.lftj.opcodes import (
    CHUNK,
    COLUMN,
    EMITTED,
    FLAT,
    HI,
    L_COLUMNS,
    L_COUNT,
    L_LOWER,
    L_OWN,
    L_RANGES,
    L_UPPER,
    LO,
    NEXTS,
    OPENS,
    RANGE,
    ROOT,
    SCRATCH,
    SCRATCH_END,
    SCRATCH_NEXT,
    SEEKS,
    TAKEN_A,
    TAKEN_B,
)
from dlog.storage.index.trie_kernels import address_paged, advance_paged, count_rows, leaf_rest, lub
from dlog.storage.layout import OFFSET_BITS

# Measured on triangles of a power-law graph: ratios from 2 to 6 are equal, 16 takes a quarter longer;
# searching for the first common key before merging saves a sixth, if runs are not short.
GALLOP_RATIO = 4  # from this ratio of sizes on, seeking each key beats merging
SHORT = 16


@helper
def batch_open(arena, code, at, state):
    """Begin a batch; False if there is nothing left to write or count.

    Two contiguous participants, the common case, are intersected at once.
    """
    if code[at + L_COUNT] == 2 and code[at + L_LOWER] + code[at + L_UPPER] == 0:
        a, b = code[at + L_RANGES], code[at + L_RANGES + 1]
        if is_contiguous(state, a) and is_contiguous(state, b):
            a_rows = state[a + HI] - state[a + LO]
            b_rows = state[b + HI] - state[b + LO]
            if min(a_rows, b_rows) <= CHUNK:
                state[OPENS] += 2
                if b_rows < a_rows:
                    a, b, a_rows, b_rows = b, a, b_rows, a_rows
                return _open_pair(arena, code, at, state, a, a_rows, b, b_rows)
    return leap_open(arena, code, at, state)


@helper
def _open_pair(arena, code, at, state, a, a_rows, b, b_rows):
    a_lo = address(arena, state, a, state[a + LO])
    b_lo = address(arena, state, b, state[b + LO])
    scratch = state[SCRATCH]
    found = intersect(arena, a_lo, a_lo + a_rows, arena, b_lo, b_lo + b_rows, state, scratch, state)
    if code[code[at + L_COLUMNS]] < 0:
        state[EMITTED] += found
        return False
    own = code[at + L_OWN]
    state[own] = a
    state[a + RANGE + LO] = state[own + 4] = state[a + HI]  # all of the leader is in scratch
    state[SCRATCH_NEXT] = scratch
    state[SCRATCH_END] = scratch + found
    return found > 0


@helper
def batch_next(arena, code, at, state, out, row, capacity):
    """Write or count the next keys of a batch; return the number of rows written.

    At the end of the batch it is -1 - that number.  REQUIRES: row < capacity, if the batch writes.
    """
    own = code[at + L_OWN]
    n = code[at + L_COUNT]
    writes = code[code[at + L_COLUMNS]] >= 0
    written = np.int64(0)
    if n > 1:
        if state[SCRATCH_NEXT] == state[SCRATCH_END]:
            next_chunk(arena, code, at, state)
        if writes:
            written = write_scratch(code, at, state, out, row, capacity)
        else:
            state[EMITTED] += state[SCRATCH_END] - state[SCRATCH_NEXT]
            state[SCRATCH_NEXT] = state[SCRATCH_END]
    elif writes:
        written = write_single(arena, code, at, state, out, row, capacity)
    else:
        count_single(arena, code, at, state)
    more = state[state[own] + RANGE + LO] < state[own + 2 * n] or state[SCRATCH_NEXT] < state[SCRATCH_END]
    return written if more else -1 - written


@helper
def next_chunk(arena, code, at, state):
    """Collect the next common keys in scratch.  O(chunk * participants) or less.

    REQUIRES: the leader is before its end.
    """
    n = code[at + L_COUNT]
    own = code[at + L_OWN]
    scratch = state[SCRATCH]
    leader = state[own]
    position = state[leader + RANGE + LO]
    limit = state[own + 2 * n]
    rows = min(np.int64(CHUNK), segment(arena, state, leader, position, limit))
    start = address(arena, state, leader, position)
    state[leader + RANGE + LO] = advance(arena, state, leader, position, rows)
    found = _meet(arena, start, start + rows, arena, state, state[own + 1], scratch)
    for j in range(2, n):
        found = _meet(state, scratch, scratch + found, arena, state, state[own + j], scratch)
    for j in range(1, n):
        if state[state[own + j] + RANGE + LO] >= state[state[own + j] + HI]:
            state[leader + RANGE + LO] = limit  # no later key of the leader can be in all
    state[SCRATCH_NEXT] = scratch
    state[SCRATCH_END] = scratch + found


@helper
def _meet(a, lo, hi, arena, state, block, out):
    """Intersect a run of keys with what is left of a participant, leaf by leaf; return the count."""
    position = state[block + RANGE + LO]
    end = state[block + HI]
    base = state[block + FLAT]
    if base >= 0:
        found = intersect(a, lo, hi, arena, base + position, base + end, state, out, state)
        state[block + RANGE + LO] = position + state[TAKEN_B]
        return found
    found = np.int64(0)
    while lo < hi and position < end:
        rows = segment(arena, state, block, position, end)
        start = address(arena, state, block, position)
        found += intersect(a, lo, hi, arena, start, start + rows, state, out + found, state)
        lo += state[TAKEN_A]
        position = advance(arena, state, block, position, state[TAKEN_B])
        if lo < hi and position < end:
            position = seek(arena, state, block, position, end, a[lo])
    state[block + RANGE + LO] = position
    return found


@helper
def intersect(a, a_lo, a_hi, b, b_lo, b_hi, out, at, state):
    """Write the common keys of two ascending runs to `out` from `at` on; return how many.

    Leaves in state how many keys of each were passed; all those of one run.  `out` may be `a`, if `at` is
    not after `a_lo`.  O(min(m + n, m log n)).
    """
    i, j, n = a_lo, b_lo, at
    if b_hi - b_lo > GALLOP_RATIO * (a_hi - a_lo):
        while i < a_hi and j < b_hi:
            key = a[i]
            j = lub(b, j, b_hi, key)
            if j < b_hi:
                out[n] = key
                n += b[j] == key
                i += 1
        state[SEEKS] += i - a_lo
    elif i < a_hi and j < b_hi:
        if a_hi - i > SHORT:
            i = lub(a, i, a_hi, b[j])
            state[SEEKS] += 1
        if b_hi - j > SHORT and i < a_hi:
            j = lub(b, j, b_hi, a[i])
            state[SEEKS] += 1
        state[NEXTS] -= i + j
        while i < a_hi and j < b_hi:
            x = a[i]
            y = b[j]
            out[n] = x
            n += x == y
            i += x <= y
            j += y <= x
        state[NEXTS] += i + j
    state[TAKEN_A] = i - a_lo
    state[TAKEN_B] = j - b_lo
    return n - at


@helper
def segment(arena, state, block, position, end):
    """How many rows from `position` to `end` are contiguous.  O(1)."""
    if state[block + FLAT] >= 0:
        return end - position
    return leaf_rest(arena, state[block + ROOT], position, end)


@helper
def is_contiguous(state, block):
    """Whether all rows of a range are known to be contiguous.  O(1)."""
    return state[block + FLAT] >= 0 or state[block + LO] >> OFFSET_BITS == state[block + HI] >> OFFSET_BITS


@helper
def address(arena, state, block, position):
    """Where the key of a position lies in the arena.  O(1)."""
    base = state[block + FLAT]
    if base >= 0:
        return base + position
    return address_paged(arena, state[block + ROOT], state[block + COLUMN], position)


@helper
def advance(arena, state, block, position, rows):
    """The position `rows` on; they lie in one segment.  O(1)."""
    if state[block + FLAT] >= 0:
        return position + rows
    return advance_paged(arena, state[block + ROOT], position, rows)


@helper
def write_keys(keys, lo, n, code, at, state, out, row, capacity):
    """Write n rows: the columns of a batch that are its key from `keys`, the others from their slots."""
    state[EMITTED] += n
    columns = code[at + L_COLUMNS]
    start = row
    for c in range(code[columns]):
        slot = code[columns + 1 + c]
        if slot < 0:
            for i in range(n):
                out[start + i] = keys[lo + i]
        else:
            value = state[slot]
            for i in range(n):
                out[start + i] = value
        start += capacity


@helper
def write_scratch(code, at, state, out, row, capacity):
    """Write what fits of the keys in scratch; return the number of rows."""
    lo = state[SCRATCH_NEXT]
    rows = min(capacity - row, state[SCRATCH_END] - lo)
    write_keys(state, lo, rows, code, at, state, out, row, capacity)
    state[SCRATCH_NEXT] = lo + rows
    return rows


@helper
def write_single(arena, code, at, state, out, row, capacity):
    """Write what fits of the next segment of a batch with one participant; return the number of rows."""
    own = code[at + L_OWN]
    block = state[own]
    position = state[block + RANGE + LO]
    rows = min(capacity - row, segment(arena, state, block, position, state[own + 2]))
    write_keys(arena, address(arena, state, block, position), rows, code, at, state, out, row, capacity)
    state[block + RANGE + LO] = advance(arena, state, block, position, rows)
    state[NEXTS] += rows
    return rows


@helper
def count_single(arena, code, at, state):
    """Count all keys of a batch with one participant.  O(1) if flat."""
    own = code[at + L_OWN]
    block = state[own]
    state[EMITTED] += count_rows(arena, state[block + ROOT], state[block + RANGE + LO], state[own + 2])
    state[block + RANGE + LO] = state[own + 2]
