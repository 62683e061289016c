"""Owns the search for paths, which writes a row of the view for each combination of their payload rows.

A search is a list of steps (`plan`), run with backtracking.  All it knows is in the state, so it stops when
`out` is full and resumes.  Level s + 1 belongs to step s, level 0 to the start.

If a step finds nothing that leads to the step after all that is behind it, no other choice between it and the
step that gave it its vertex value can help: the search goes back to that one directly, whose join tuple leads
nowhere, and marks it.  A comparison that fails says nothing of this kind, since it depends on the whole path.
"""

from __future__ import annotations

from typing import Final

from dlog.jit import helper, prefetch
from dlog.joingraph.graph_kernels import holds
from dlog.joingraph.layout import (
    DONE,
    ENTER,
    FILTERED,
    FULL,
    G_LOOKAHEAD,
    ID_MASK,
    K_ATOM,
    K_END,
    K_KIND,
    K_LOADS,
    K_LOADS_AT,
    K_LOCAL,
    K_LOOK,
    K_NEAR,
    K_OTHERS,
    K_OTHERS_AT,
    K_PARENT,
    K_REGISTER,
    K_TESTS,
    K_TESTS_AT,
    K_TUPLE,
    L_BEST,
    L_COUNT,
    L_CURSOR,
    L_DEEPEST,
    LEAF,
    LEVEL,
    MARKS,
    NONE,
    NUMBER_MASK,
    P_AFTER,
    P_BLOCK,
    P_LOADS,
    P_LOADS_AT,
    P_OUTPUTS,
    P_OUTPUTS_AT,
    P_STEPS,
    P_STEPS_AT,
    S_CAPACITY,
    S_ENTERING,
    S_LEVEL,
    S_LEVELS_AT,
    S_OFFSET,
    S_OUT,
    S_PAIR,
    S_SEARCH,
    S_SIGN,
    S_TOO_MANY,
    S_VISITS,
    STEP,
    T_COUNTED,
    T_PAYLOAD,
    T_ROW,
    T_VERTICES,
    TOO_MANY,
    WATCHED,
)
from dlog.joingraph.list_kernels import alive, entry
from dlog.joingraph.lookahead_kernels import bury, mark
from dlog.joingraph.payload_kernels import rows_at

MOST: Final = (1 << 63) - 1
AHEAD: Final = 4  # entries of a list


@helper
def begin_search(words, state, search):
    """At its first step.  REQUIRES: the registers of the start are set, and its values are loaded."""
    state[S_SEARCH] = search
    state[S_LEVEL] = 0
    state[S_ENTERING] = 1
    state[S_OFFSET] = 0
    state[S_TOO_MANY] = 0
    state[state[S_LEVELS_AT] + L_COUNT] = 1


@helper
def load_row(words, state, search, source, at, after):
    """What the start knows: words at a place, by column.  `after`: 1 for the row after an update, else 0."""
    first, slots = words[search + P_LOADS_AT], after * words[search + P_AFTER]
    for load in range(first, first + 2 * words[search + P_LOADS], 2):
        state[slots + words[load + 1]] = source[at + words[load]]


@helper
def run_search(A, words, state, out):
    """DONE, FULL or TOO_MANY.  O(join tuples entered + rows written)."""
    search = state[S_SEARCH]
    last = words[search + P_STEPS] - words[search + P_BLOCK]
    level, entering = state[S_LEVEL], state[S_ENTERING] == 1
    while level >= 0:
        here = state[S_LEVELS_AT] + (level + 1) * LEVEL
        if level == last:
            if not emit(A, words, state, search, out):
                state[S_LEVEL] = level
                state[S_ENTERING] = 1
                return FULL
            found, best, up = False, words[search + P_STEPS], level - 1
        else:
            step = words[search + P_STEPS_AT] + level * STEP
            if entering:
                state[here + L_CURSOR] = -1
                state[here + L_BEST] = 0
            found = advance(A, words, state, step, here)
            best = state[here + L_BEST]
            is_dead = best < words[step + K_END]
            up = words[step + K_PARENT] if is_dead else level - 1
        if found:
            level += 1
        else:
            there = state[S_LEVELS_AT] + (up + 1) * LEVEL
            state[there + L_DEEPEST] = max(state[there + L_DEEPEST], best, level)
            level = up
        entering = found
    return TOO_MANY if state[S_TOO_MANY] == 1 else DONE


@helper
def advance(A, words, state, step, here):
    """Bind the next choice of a step, if there is any."""
    kind = words[step + K_KIND]
    if kind == ENTER:
        return next_tuple(A, words, state, step, here)
    if kind == LEAF:
        return next_leaf(A, words, state, step, here)
    return next_row(A, words, state, step, here)


@helper
def tried(state, here):
    """How deep the search came with the last choice, which is added to what the step knows; and begin the
    next."""
    deepest = state[here + L_DEEPEST]
    state[here + L_BEST] = max(state[here + L_BEST], deepest)
    state[here + L_DEEPEST] = 0
    return deepest


@helper
def next_tuple(A, words, state, step, here):
    value, local, atom = state[words[step + K_REGISTER]], words[step + K_LOCAL], words[step + K_ATOM]
    near, look = value + words[step + K_NEAR], value + words[step + K_LOOK]
    cursor = state[here + L_CURSOR]
    if cursor < 0:
        state[here + L_DEEPEST] = 0
        cursor = 0
    elif tried(state, here) >= words[step + K_END] or not mark(A, words, atom, near, look, cursor, local):
        cursor += 1
    living = alive(A, near, look)
    while cursor < living:
        tuple = entry(A, near, cursor)
        if cursor + AHEAD < living:
            ask_ahead(A, words, step, A[near] + cursor)
        if enter_tuple(A, words, state, step, tuple):
            state[S_VISITS] += 1
            if bind_tuple(A, words, state, step, here, tuple):
                state[here + L_CURSOR] = cursor
                return True
            state[here + L_BEST] = FILTERED
            cursor += 1
        elif words[G_LOOKAHEAD] == MARKS:
            bury(A, near, look, cursor, living, local)
            living -= 1
        else:
            cursor += 1
    return False


@helper
def ask_ahead(A, words, step, place):
    """Have the memory loaded that a search needs of the next entries of a list: of a far one its record, of a
    nearer one its first further vertex value, of the next but one the list there."""
    prefetch(A, A[place + AHEAD])
    if words[step + K_OTHERS] > 0:
        first = words[step + K_OTHERS_AT]
        prefetch(A, A[A[place + AHEAD // 2] + words[first]] & ID_MASK)
        value = A[A[place + AHEAD // 4] + words[first]] & ID_MASK
        prefetch(A, A[value + words[first + 2] - 1])


@helper
def enter_tuple(A, words, state, step, tuple):
    """Its other vertex values to registers; False if it is a dead end."""
    first, mode = words[step + K_OTHERS_AT], words[G_LOOKAHEAD]
    for other in range(first, first + 4 * words[step + K_OTHERS], 4):
        value = A[tuple + words[other]] & ID_MASK
        look = value + words[other + 3]
        if (A[value + words[other + 2]] - A[look]) & NUMBER_MASK == 0 and mode != NONE:
            if mode == MARKS:
                A[look] |= WATCHED
            return False
        state[words[other + 1]] = value
    return True


@helper
def bind_tuple(A, words, state, step, here, tuple):
    """False if a comparison fails."""
    state[words[step + K_TUPLE]] = tuple
    first = words[step + K_LOADS_AT]
    for load in range(first, first + 3 * words[step + K_LOADS], 3):
        state[words[load + 2]] = A[state[words[load]] + words[load + 1]]
    atom = words[step + K_ATOM]
    count = A[tuple + words[atom + T_VERTICES]] if words[atom + T_PAYLOAD] == 0 else 1
    multiply_count(state, here, count)
    return passes(words, state, step)


@helper
def next_leaf(A, words, state, step, here):
    if state[here + L_CURSOR] >= 0:
        tried(state, here)
        return False
    state[here + L_CURSOR] = 0
    state[here + L_DEEPEST] = 0
    count = A[state[words[step + K_REGISTER]] + words[step + K_NEAR] + 1]
    if count == 0:
        return False
    state[S_VISITS] += 1
    multiply_count(state, here, count)
    if passes(words, state, step):
        return True
    state[here + L_BEST] = FILTERED
    return False


@helper
def next_row(A, words, state, step, here):
    atom, tuple = words[step + K_ATOM], state[words[step + K_TUPLE]]
    number = A[tuple + words[atom + T_VERTICES]] & NUMBER_MASK
    cursor = state[here + L_CURSOR] + 1
    if cursor > 0:
        tried(state, here)
    state[here + L_DEEPEST] = 0
    while cursor < number:
        row = rows_at(A, words, atom, tuple) + cursor * words[atom + T_ROW]
        first = words[step + K_LOADS_AT]
        for load in range(first, first + 2 * words[step + K_LOADS], 2):
            state[words[load + 1]] = A[row + words[load]]
        multiply_count(state, here, A[row + words[atom + T_PAYLOAD]] if words[atom + T_COUNTED] == 1 else 1)
        if passes(words, state, step):
            state[here + L_CURSOR] = cursor
            return True
        state[here + L_BEST] = FILTERED
        cursor += 1
    return False


@helper
def passes(words, state, step):
    first = words[step + K_TESTS_AT]
    for test in range(first, first + 4 * words[step + K_TESTS], 4):
        right = words[test + 2] if words[test + 3] == 1 else state[words[test + 2]]
        if not holds(words[test], state[words[test + 1]], right):
            return False
    return True


@helper
def multiply_count(state, here, count):
    """The product of the numbers of rows up to here."""
    state[here + L_COUNT] = product(state, state[here - LEVEL + L_COUNT], count)


@helper
def product(state, one, other):
    if other > 1 and abs(one) > MOST // other:
        state[S_TOO_MANY] = 1
        return one
    return one * other


# ---- output


@helper
def emit(A, words, state, search, out):
    """Write the rows of a complete path, for an update before and after; False if `out` is full first."""
    is_block, pairs = words[search + P_BLOCK] == 1, state[S_PAIR] >= 0
    last = state[S_LEVELS_AT] + (words[search + P_STEPS] - words[search + P_BLOCK]) * LEVEL
    count = state[S_SIGN] * state[last + L_COUNT]
    if not is_block:
        if state[S_OUT] + pairs >= state[S_CAPACITY]:
            return False
        write_row(A, words, state, search, 0, out, pairs, count)
        return True
    step = words[search + P_STEPS_AT] + (words[search + P_STEPS] - 1) * STEP
    atom, tuple = words[step + K_ATOM], state[words[step + K_TUPLE]]
    number = A[tuple + words[atom + T_VERTICES]] & NUMBER_MASK
    row = rows_at(A, words, atom, tuple) + state[S_OFFSET] * words[atom + T_ROW]
    room = state[S_CAPACITY] - state[S_OUT]
    if number == 1 and words[atom + T_COUNTED] == 0 and room > pairs:
        write_row(A, words, state, search, row, out, pairs, count)
        return True
    n = min(number - state[S_OFFSET], room // 2 if pairs else room)
    write_block(A, words, state, search, atom, row, out, n, 0, count)
    if pairs:
        write_block(A, words, state, search, atom, row, out, n, 1, -count)
    state[S_OFFSET] += n
    if state[S_OFFSET] < number:
        return False
    state[S_OFFSET] = 0
    return True


@helper
def write_row(A, words, state, search, row, out, pairs, count):
    """One row, or one before and one after: without loops over rows, which take long to begin."""
    capacity, to = state[S_CAPACITY], state[S_OUT]
    first, end = words[search + P_OUTPUTS_AT], words[search + P_OUTPUTS_AT] + 3 * words[search + P_OUTPUTS]
    for output in range(first, end, 3):
        word = words[output]
        out[to] = A[row + word] if word >= 0 else state[words[output + 1]]
        if pairs:
            out[to + 1] = out[to] if word >= 0 else state[words[output + 2]]
        to += capacity
    out[to] = count
    if pairs:
        out[to + 1] = -count
    state[S_OUT] += 2 if pairs else 1


@helper
def write_block(A, words, state, search, atom, row, out, n, after, count):
    """n rows, column by column, with an atom's payload from a row on."""
    capacity, to, width = state[S_CAPACITY], state[S_OUT], words[atom + T_ROW]
    first, end = words[search + P_OUTPUTS_AT], words[search + P_OUTPUTS_AT] + 3 * words[search + P_OUTPUTS]
    for output in range(first, end, 3):
        word = words[output]
        if word < 0:
            value = state[words[output + 1 + after]]
            for i in range(to, to + n):
                out[i] = value
        else:
            for i in range(n):
                out[to + i] = A[row + word + i * width]
        to += capacity
    for i in range(n):
        out[to + i] = count
        if words[atom + T_COUNTED] == 1:
            out[to + i] = product(state, count, A[row + words[atom + T_PAYLOAD] + i * width])
    state[S_OUT] += n
