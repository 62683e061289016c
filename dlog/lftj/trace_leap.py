"""Owns the special parts of leaps in traced runs: notes, spans, guided leaps and exact ones.

A note is written before the step that it belongs to.  Exact leaps follow the maintenance paper, 4.1: atoms in
the order of the rule, the first one advanced after a match, each operation noted separately, from the key
sought to the key found.  Within one item of a guide, the first iterator is put at the least upper bound of
its start, each other one at that of the key that the one before it found, and what is noted ends at its end.
Of an item that only leads to others below it nothing is noted.

Infinities need no values: a note is a closed interval, and an operation that begins before the first key, or
runs off the end, is noted from the least or up to the greatest int64, which may be keys themselves.
"""

from __future__ import annotations

from typing import Final

from dlog.jit import helper
from dlog.lftj.guide import AT, CHILD, LOWER, MIN_KEY, UPPER, first_item, next_item
from dlog.lftj.leap import FOUND, NONE, PATIENCE, SEARCHING, key_of, leap, place, seek
from dlog.lftj.opcodes import (
    ARGS,
    COLUMN,
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
)
from dlog.storage.index.trie_kernels import FANOUT_BITS, FANOUT_MASK, MAX_KEY, OFFSET_MASK, entry_of
from dlog.storage.layout import FILL, N_ENTRIES, OFFSET_BITS, ROOT_HEADER

FULL: Final = 3  # there is no room for a note
PHASE: Final = 4  # own words of an exact leap, after those of a guided one
NOTE_A: Final = 5
NOTE_B: Final = 6
MOST: Final = 7


@helper
def note(code, at, state, trace, room):
    """Write a note.  REQUIRES: there is room."""
    fill = code[at + ARGS]
    n = code[at + ARGS + 2]
    to = code[at + ARGS + 1] * room + state[fill] * n
    for i in range(n):
        trace[to + i] = state[code[at + ARGS + 3 + i]]
    state[fill] += 1


@helper
def span(arena, code, at, state):
    """From the greatest first to the least last key of some ranges, within bounds; False if it is empty."""
    own, n = code[at + ARGS], code[at + ARGS + 1]
    low, high = MIN_KEY, MAX_KEY
    for j in range(n):
        block = code[at + ARGS + 4 + j]
        if state[block + LO] >= state[block + HI]:
            return False
        low = max(low, key_of(arena, state, block, state[block + LO]))
        high = min(high, key_of(arena, state, block, last_position(arena, state, block)))
    low = lower_bound(code, at + ARGS + 4 + n, code[at + ARGS + 2], state, low)
    high = upper_bound(code, at + ARGS + 4 + n + 2 * code[at + ARGS + 2], code[at + ARGS + 3], state, high)
    state[own] = low
    state[own + 1] = high
    return low <= high


@helper
def lower_bound(code, at, n, state, low):
    """The greatest of a key and n lower bounds; there is nothing above the greatest one."""
    for i in range(n):
        key = state[code[at + 2 * i]]
        low = max(low, key + 1 if code[at + 2 * i + 1] == 1 and key != MAX_KEY else key)
    return low


@helper
def upper_bound(code, at, n, state, high):
    """The least of a key and n upper bounds."""
    for i in range(n):
        key = state[code[at + 2 * i]]
        high = min(high, key - 1 if code[at + 2 * i + 1] == 1 and key != MIN_KEY else key)
    return high


@helper
def is_beyond(code, at, n, state, end):
    """Whether one of n bounds excludes everything: a strict one at the end of all keys."""
    beyond = False
    for i in range(n):
        beyond = beyond or (code[at + 2 * i + 1] == 1 and state[code[at + 2 * i]] == end)
    return beyond


@helper
def last_position(arena, state, block):
    """The position of the last row of a range.  O(1).  REQUIRES: there is a row."""
    end = state[block + HI]
    if state[block + FLAT] >= 0 or end & OFFSET_MASK > 0:
        return end - 1
    ordinal = end >> OFFSET_BITS
    if ordinal & FANOUT_MASK > 0:
        ordinal -= 1
    else:
        node = (ordinal >> FANOUT_BITS) - 1
        last = arena[arena[state[block + ROOT] + ROOT_HEADER + node] + N_ENTRIES] - 1
        ordinal = (node << FANOUT_BITS) + last
    return (ordinal << OFFSET_BITS) + arena[entry_of(arena, state[block + ROOT], ordinal) + FILL] - 1


@helper
def guided_leap(arena, code, at, state, opening):
    """As `leap`, item by item of the guide's node.  O(items + the cost of the leaps)."""
    n = code[at + L_COUNT]
    own = code[at + L_OWN] + 2 * n + 1
    depth = code[at + L_RANGES + n + 2 * (code[at + L_LOWER] + code[at + L_UPPER])]
    if opening:
        if not first_item(state, own, depth):
            return NONE
        result = leap(arena, code, at, state, True)
    else:
        result = leap(arena, code, at, state, False)
    while result == NONE and next_item(state, own, depth):
        result = leap(arena, code, at, state, True)
    return result


# ---- exact leaps.  Phases: -n .. -1 note what is covered, for each participant; 0 .. n - 1 put a participant
# at its start; n search; n + 1 advance the first.


@helper
def exact_open(code, at, state):
    """Begin an exact leap; False if the guide excludes everything."""
    own = code[at + L_OWN]
    if not first_item(state, own, exact_depth(code, at)):
        return False
    return narrowed(code, at, state)


@helper
def exact_depth(code, at):
    return code[at + L_RANGES + code[at + L_COUNT] + 2 * (code[at + L_LOWER] + code[at + L_UPPER])]


@helper
def narrowed(code, at, state):
    """Narrow the item's bounds by those of the leap, going to the next item while nothing is left."""
    own = code[at + L_OWN]
    bounds = at + L_RANGES + code[at + L_COUNT]
    lowers, uppers = code[at + L_LOWER] - 1, code[at + L_UPPER] - 1  # without those of the guide
    more = not (
        is_beyond(code, bounds, lowers, state, MAX_KEY)
        or is_beyond(code, bounds + 2 * lowers + 2, uppers, state, MIN_KEY)
    )
    while more:
        low = lower_bound(code, bounds, lowers, state, state[own + LOWER])
        high = upper_bound(code, bounds + 2 * lowers + 2, uppers, state, state[own + UPPER])
        if low <= high:
            state[own + LOWER] = low
            state[own + UPPER] = high
            state[own + PHASE] = 0 if is_passed(state, own) else -code[at + L_COUNT]
            return True
        more = next_item(state, own, exact_depth(code, at))
    return False


@helper
def is_passed(state, own):
    """Whether the guide leads through the item to what is below it: nothing has changed at its own key, so
    what is known of that key stays valid."""
    return state[own + AT] >= 0 and state[state[own + AT] + CHILD] >= 0


@helper
def exact_leap(arena, code, at, state, trace, room):
    """Continue an exact leap up to the next match: FOUND, NONE, SEARCHING, or FULL before a note."""
    n = code[at + L_COUNT]
    own = code[at + L_OWN]
    patience = PATIENCE
    while patience > 0:
        patience -= 1
        phase = state[own + PHASE]
        if phase < 0:
            if not note_cover(code, at, state, phase + n, trace, room):
                return FULL
            state[own + PHASE] = phase + 1
            continue
        if phase == n:
            moving = least_participant(arena, code, at, state)
            if moving == n:
                state[own + PHASE] = n + 1
                return FOUND
        elif phase > n and state[code[at + L_SLOT]] == state[own + UPPER]:
            moving = -1  # the item's last key is done
        else:
            moving = phase if phase < n else 0
        if moving == -1:
            if not next_item(state, own, exact_depth(code, at)) or not narrowed(code, at, state):
                return NONE
            continue
        if not move(arena, code, at, state, moving, phase, trace, room):
            return FULL
        if phase < n and not has_passed(arena, code, at, state, moving):
            state[own + PHASE] = phase + 1
        else:
            state[own + PHASE] = n
    return SEARCHING


@helper
def has_passed(arena, code, at, state, j):
    """Whether participant j is past the item: it lacks all of its keys, so no other need be examined."""
    block = code[at + L_RANGES + j]
    position = state[block + RANGE + LO]
    if position >= state[block + HI]:
        return True
    return key_of(arena, state, block, position) > state[code[at + L_OWN] + UPPER]


@helper
def note_cover(code, at, state, j, trace, room):
    """Note for participant j what the item covers; False if there is no room."""
    own, n = code[at + L_OWN], code[at + L_COUNT]
    template = code[at + L_RANGES + 2 * n + 2 * (code[at + L_LOWER] + code[at + L_UPPER]) + 1 + j]
    if template > 0:
        if state[code[template + ARGS]] == room:
            return False
        state[own + NOTE_A] = state[own + LOWER]
        state[own + NOTE_B] = state[own + UPPER]
        note(code, template, state, trace, room)
    return True


@helper
def least_participant(arena, code, at, state):
    """The first participant with the least key; n if all have the same, which is then bound; -1 if one has
    passed the end of its level or of the item.  Leaves the greatest key where the next note begins."""
    n = code[at + L_COUNT]
    own = code[at + L_OWN]
    least, greatest, which = MAX_KEY, MIN_KEY, 0
    for j in range(n):
        block = code[at + L_RANGES + j]
        position = state[block + RANGE + LO]
        if position >= state[block + HI]:
            return -1
        key = key_of(arena, state, block, position)
        if key > state[own + UPPER]:
            return -1
        if key < least or j == 0:
            least, which = key, j
        greatest = max(greatest, key)
    if least < greatest:
        state[own + NOTE_A] = greatest
        return which
    first = code[at + L_RANGES]
    for j in range(n):
        block = code[at + L_RANGES + j]
        if j > 0 and are_twins(state, first, block):
            state[block + RANGE + LO] = state[first + RANGE + LO]
            state[block + RANGE + HI] = state[first + RANGE + HI]
        else:
            place(arena, state, block, state[block + RANGE + LO], least)
    state[code[at + L_SLOT]] = least
    return n


@helper
def are_twins(state, a, b):
    """Whether two range blocks are the same rows of the same index, as those of atoms with the same prefix: a
    key is then at the same place in both."""
    same = state[a + LO] == state[b + LO] and state[a + HI] == state[b + HI]
    same = same and state[a + ROOT] == state[b + ROOT] and state[a + COLUMN] == state[b + COLUMN]
    return same and state[a + LAST] == state[b + LAST]


@helper
def move(arena, code, at, state, j, phase, trace, room):
    """One operation on the iterator of participant j, and its note; False if that has no room."""
    n = code[at + L_COUNT]
    own = code[at + L_OWN]
    depth = at + L_RANGES + n + 2 * (code[at + L_LOWER] + code[at + L_UPPER])
    template = 0 if is_passed(state, own) else code[depth + 1 + j]
    if template > 0 and state[code[template + ARGS]] == room:
        return False
    block = code[at + L_RANGES + j]
    low, high = state[own + LOWER], state[own + UPPER]
    if phase < n:
        state[OPENS] += 1
        first = code[at + L_RANGES]
        is_twin = j > 0 and low != MIN_KEY and are_twins(state, first, block)
        position = state[first + RANGE + LO] if is_twin else state[block + LO]
        state[own + NOTE_A] = low if phase == 0 or low == MIN_KEY else state[own + MOST]
        if low != MIN_KEY:
            position = seek(arena, state, block, position, state[block + HI], state[own + NOTE_A])
    elif phase == n:
        position = state[block + RANGE + LO]
        position = seek(arena, state, block, position, state[block + HI], state[own + NOTE_A])
    else:
        state[NEXTS] += 1
        key = state[code[at + L_SLOT]]
        state[own + NOTE_A] = key
        position = state[block + RANGE + HI]
        if position < state[block + HI] and key_of(arena, state, block, position) == key:
            # Columns after the atom's last level are not read: rows that differ there are one key.
            position = (
                seek(arena, state, block, position, state[block + HI], key + 1)
                if key != MAX_KEY
                else state[block + HI]
            )
    state[block + RANGE + LO] = position
    found = key_of(arena, state, block, position) if position < state[block + HI] else MAX_KEY
    if phase < n:
        state[own + MOST] = found
    if template > 0:
        state[own + NOTE_B] = min(found, high)
        note(code, template, state, trace, room)
    return True
