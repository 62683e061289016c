"""Owns the leapfrog join of one variable inside the machine: to open, search and advance its participants.

Correct output: each key that all participants hold within the bounds, once, ascending; for each such key the
child range of every participant is the run of that key.  The participant with the fewest rows leads: its keys
are sought in the others, and where another is ahead, the leader seeks to it.

Every operation on an iterator passes through `seek` and `place` below, where traces are
recorded.  Knows nothing of steps other than Leap and Seek.
"""

from __future__ import annotations

from dlog.jit import helper
from dlog.lftj.directory import bucket_end, is_exact, look_up, reach_exact
from dlog.lftj.opcodes import (
    COLUMN,
    DIRECTORY,
    FAR,
    FLAT,
    HI,
    L_COUNT,
    L_LOWER,
    L_OWN,
    L_RANGES,
    L_SLOT,
    L_UPPER,
    LAST,
    LO,
    NEXTS,
    OPENS,
    RANGE,
    ROOT,
    SEEKS,
)
from dlog.storage.index.trie_kernels import (
    MAX_KEY,
    NEAR,
    address_paged,
    lub,
    next_paged,
    rows_estimate,
    seek_beyond_leaf,
    seek_in_leaf,
    seek_lub_paged,
)

NONE, FOUND, SEARCHING = 0, 1, 2
PATIENCE = 1 << 12  # leaps without a match before a search returns for a check of the clock: 0.2 ms


@helper
def key_of(arena, state, block, position):
    """The key of a range block's level at a position.  O(1)."""
    base = state[block + FLAT]
    if base >= 0:
        return arena[base + position]
    return arena[address_paged(arena, state[block + ROOT], state[block + COLUMN], position)]


@helper
def seek(arena, state, block, lo, hi, key):
    """The least upper bound of `key` within [lo, hi) of a range block's level.  O(log distance)."""
    state[SEEKS] += 1
    base = state[block + FLAT]
    root, column = state[block + ROOT], state[block + COLUMN]
    if base < 0:
        found = seek_in_leaf(arena, root, column, lo, hi, key)
        if found >= 0:
            return found
    elif state[block + DIRECTORY] < 0:
        return lub(arena, base + lo, base + hi, key) - base
    elif lo + NEAR < hi and arena[base + lo + NEAR] >= key:
        return lub(arena, base + lo, base + lo + NEAR, key) - base
    if state[block + DIRECTORY] >= 0:
        state[block + FAR] += 1
        if state[block + DIRECTORY] > 0:
            return look_up(arena, state, block, lo, hi, key)
    if base >= 0:
        return lub(arena, base + lo, base + hi, key) - base
    return seek_beyond_leaf(arena, root, column, lo, hi, key)


@helper
def reach(arena, state, block, key):
    """Move the cursor of a level to the least upper bound of `key`; return the key there.

    O(log distance), or O(1) by an exact directory.  At the end of the level the cursor is at its HI.  A
    directory is used alone, without reading the column; if it has no `key`, the key returned is the next
    number: no more than the key there.
    """
    child = block + RANGE
    directory = state[block + DIRECTORY]
    if directory > 0 and is_exact(state, directory):
        state[SEEKS] += 1
        return reach_exact(state, block, key)
    hi = state[block + HI]
    position = seek(arena, state, block, state[child + LO], hi, key)
    state[child + LO] = position
    return key_of(arena, state, block, position) if position < hi else key


@helper
def place(arena, state, block, position, key):
    """Put the cursor of a level on the run of `key`, which begins at `position`.  O(log run)."""
    child = block + RANGE
    state[child + LO] = position
    base = state[block + FLAT]
    if state[block + LAST] == 1:
        if base >= 0:
            state[child + HI] = position + 1
        else:
            state[child + HI] = next_paged(arena, state[block + ROOT], position)
    elif state[block + DIRECTORY] > 0 and is_exact(state, state[block + DIRECTORY]):
        state[child + HI] = bucket_end(state, state[block + DIRECTORY], key)
    elif key == MAX_KEY:
        state[child + HI] = state[block + HI]
    elif base >= 0:
        state[child + HI] = lub(arena, base + position, base + state[block + HI], key + 1) - base
    else:
        root, column = state[block + ROOT], state[block + COLUMN]
        state[child + HI] = seek_lub_paged(arena, root, column, position, state[block + HI], key + 1)


@helper
def seek_key(arena, state, block, key):
    """Narrow a level to `key`; False if it is not there.  O(log rows).

    In a first level, whose range is always the same, the search starts where the last one ended, if that is
    not too far on: keys usually come in order.
    """
    start = state[block + LO]
    directory = state[block + DIRECTORY]
    if directory == 0 or (directory > 0 and not is_exact(state, directory)):
        last = state[block + RANGE + LO]
        if last < state[block + HI] and key_of(arena, state, block, last) <= key:
            start = last
    state[block + RANGE + LO] = start
    if reach(arena, state, block, key) != key or state[block + RANGE + LO] >= state[block + HI]:
        return False
    place(arena, state, block, state[block + RANGE + LO], key)
    return True


@helper
def leap_open(arena, code, at, state):
    """Order the participants by their number of rows and put each at its start; False if one is empty.

    The leader alone is narrowed to the bounds: the others follow it.  O(n log n + bounds * log rows).
    """
    n = code[at + L_COUNT]
    own = code[at + L_OWN]
    state[OPENS] += n
    for j in range(n):
        block = code[at + L_RANGES + j]
        lo = state[block + LO]
        hi = state[block + HI]
        if lo >= hi:
            return False
        state[block + RANGE + LO] = lo
        size = rows_estimate(lo, hi)
        i = j
        while i > 0 and state[own + n + i - 1] > size:
            state[own + i] = state[own + i - 1]
            state[own + n + i] = state[own + n + i - 1]
            i -= 1
        state[own + i] = block
        state[own + n + i] = size
    leader = state[own]
    state[own + 2 * n] = state[leader + HI]
    if code[at + L_LOWER] + code[at + L_UPPER] == 0:
        return True
    return _narrow(arena, code, at, state, leader)


@helper
def _narrow(arena, code, at, state, leader):
    """Narrow the leader of a Leap to its bounds; False if nothing is left."""
    n = code[at + L_COUNT]
    lo = state[leader + LO]
    hi = state[leader + HI]
    bound = at + L_RANGES + n
    for _ in range(code[at + L_LOWER]):
        key = state[code[bound]]
        if code[bound + 1] == 1:
            if key == MAX_KEY:
                return False
            key += 1
        lo = seek(arena, state, leader, lo, hi, key)
        bound += 2
    for _ in range(code[at + L_UPPER]):
        key = state[code[bound]]
        if code[bound + 1] == 1:
            hi = seek(arena, state, leader, lo, hi, key)
        elif key != MAX_KEY:
            hi = seek(arena, state, leader, lo, hi, key + 1)
        bound += 2
    state[leader + RANGE + LO] = lo
    state[code[at + L_OWN] + 2 * n] = hi
    return lo < hi


@helper
def leap(arena, code, at, state, opening):
    """Open a Leap and bind its first common key, or bind the next one: FOUND, NONE, or SEARCHING.

    The leader's next key is after its current run.  A search that continues for long without a match
    stops as if it were before the key it has reached, so that the caller sees its budget.
    """
    n = code[at + L_COUNT]
    own = code[at + L_OWN]
    if opening:
        if not leap_open(arena, code, at, state):
            return NONE
        leader = state[own]
        position = state[leader + RANGE + LO]
    else:
        state[NEXTS] += 1
        leader = state[own]
        position = state[leader + RANGE + HI]
    limit = state[own + 2 * n]
    if position >= limit:
        return NONE
    key = key_of(arena, state, leader, position)
    patience = PATIENCE
    j = 1
    while j < n:
        block = state[own + j]
        other = reach(arena, state, block, key)
        if state[block + RANGE + LO] >= state[block + HI]:
            return NONE
        j += 1
        if other > key:
            position = seek(arena, state, leader, position, limit, other)
            if position >= limit:
                return NONE
            key = key_of(arena, state, leader, position)
            j = 1
            patience -= 1
            if patience == 0:
                state[leader + RANGE + HI] = position
                return SEARCHING
    for j in range(1, n):
        block = state[own + j]
        place(arena, state, block, state[block + RANGE + LO], key)
    place(arena, state, leader, position, key)
    state[code[at + L_SLOT]] = key
    return FOUND
