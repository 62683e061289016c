"""Owns sums of products of cofactors of many rows that go to one element.  See `cofactor_kernels`.

Rows are processed ROWS at a time.  The left sides of their products, and T, are laid out row by row, one
part after the other; then the products of all rows are summed in registers, one tile of the accumulators
after the other, so that an accumulator is read and written once for all rows.
"""

from __future__ import annotations

from dlog.jit import (
    HEIGHT,
    LANES,
    add_gathered,
    add_outer,
    helper,
    scale_four,
)
from dlog.m3.runtime.machine.arithmetic_kernels import (
    to_bits,
    to_float,
)
from dlog.m3.runtime.machine.cofactor_plan import (
    BLOCK,
    FOUR,
    LIFTED,
    P_ADDED,
    P_BLOCK,
    P_HEADER,
    P_PARTS,
    P_VARIABLES,
    P_WIDE,
    Q_BEHIND,
    Q_COLUMN,
    Q_LEFT,
    Q_LENGTH,
    Q_OWN,
    Q_ROWS,
    Q_SIZE,
    Q_START,
    Q_STORE,
    Q_WORDS,
    ROWS,
    TAKEN_MANY,
    ask_for_element,
    element_at,
    words_of,
)


@helper
def clear_rows(code, state, plan, n):
    """Words of no variable were never written: set them to 0."""
    block = code[plan + P_BLOCK]
    for w in range(block, block + min(n, ROWS) * code[plan + P_WIDE]):
        state[w] = 0


@helper
def add_block(arena, maps, code, state, cols, first, n, scale, plan, columns):
    """Add the products of up to ROWS rows to the accumulators."""
    rows = take_rows(code, state, cols, first, min(n, first + ROWS), scale, plan, columns)
    if rows == 0:
        return
    for j in range(code[plan + P_PARTS]):
        take_places(arena, maps, code, state, cols, rows, plan, columns, j)
    take_counts(code, state, rows, plan)
    for j in range(code[plan + P_PARTS] - 1, -1, -1):
        if code[plan + P_HEADER + j * Q_WORDS + Q_STORE] == LIFTED:
            lay_lifted(code, state, cols, rows, plan, columns, j)
        elif code[plan + P_HEADER + j * Q_WORDS + Q_STORE] >= 0:
            lay_out(arena, code, state, rows, plan, j)
            ask_for_part(arena, maps, code, state, cols, rows, n, plan, columns, j)
        else:
            lay_out(state, code, state, rows, plan, j)
        lay_behind(code, state, rows, plan, j)
    for j in range(code[plan + P_PARTS]):
        add_tiles(code, state, rows, plan, j)


@helper
def taken_of(code, plan, j):
    """Where the places of part j's rows are; after them are its counts, and so on."""
    return code[plan + P_BLOCK] - ROWS * (2 + TAKEN_MANY * (j + 1))


@helper
def take_rows(code, state, cols, first, end, scale, plan, columns):
    """List the rows whose product is not 0, and their factors; returns how many."""
    listed, taken = code[plan + P_BLOCK] - 2 * ROWS, 0
    for i in range(first, end):
        is_there = to_float(cols[scale + i]) != 0.0
        for j in range(code[plan + P_PARTS]):
            part = plan + P_HEADER + j * Q_WORDS
            if code[part + Q_STORE] != LIFTED:
                is_there = is_there and cols[code[columns + code[part + Q_COLUMN]] + i] >= 0
        if is_there:
            state[listed + taken] = i
            state[listed + ROWS + taken] = cols[scale + i]
            taken += 1
    return taken


@helper
def take_places(arena, maps, code, state, cols, rows, plan, columns, j):
    """Where the elements of a part are, and their counts."""
    part, at = plan + P_HEADER + j * Q_WORDS, taken_of(code, plan, j)
    store, listed = code[part + Q_STORE], code[plan + P_BLOCK] - 2 * ROWS
    column = code[columns + code[part + Q_COLUMN]]
    if store == LIFTED:
        for k in range(rows):
            state[at + ROWS + k] = to_bits(1.0)
    elif store >= 0:
        for k in range(rows):
            place = element_at(arena, maps, store, cols[column + state[listed + k]])
            state[at + k], state[at + ROWS + k] = place, arena[place]
    else:
        words = words_of(code[part + Q_SIZE])
        for k in range(rows):
            place = BLOCK - store + cols[column + state[listed + k]] * words
            state[at + k], state[at + ROWS + k] = place, state[place]


@helper
def take_counts(code, state, rows, plan):
    """The products of the counts before each part, and of those after it; and the sum of all products."""
    parts, factors, total = code[plan + P_PARTS], code[plan + P_BLOCK] - ROWS, code[plan + P_ADDED]
    for k in range(rows):
        factor, behind = to_float(state[factors + k]), 1.0
        for j in range(parts):
            at = taken_of(code, plan, j) + k
            state[at + 2 * ROWS] = to_bits(factor)
            factor *= to_float(state[at + ROWS])
        state[total] = to_bits(to_float(state[total]) + factor)
        for j in range(parts - 1, -1, -1):
            at = taken_of(code, plan, j) + k
            state[at + 3 * ROWS] = to_bits(behind)
            state[at + 4 * ROWS] = to_bits(to_float(state[at + 2 * ROWS]) * behind)
            behind *= to_float(state[at + ROWS])


@helper
def lay_lifted(code, state, cols, rows, plan, columns, j):
    part, at = plan + P_HEADER + j * Q_WORDS, taken_of(code, plan, j)
    block, wide, listed = code[plan + P_BLOCK], code[plan + P_WIDE], code[plan + P_BLOCK] - 2 * ROWS
    for p in range(code[part + Q_SIZE]):
        column, own = code[columns + code[part + Q_COLUMN] + p], code[part + Q_OWN] + p
        left, right = block + code[part + Q_LEFT] + p, block + code[part + Q_BEHIND] + p
        total = to_float(state[own])
        for k in range(rows):
            x, before = to_float(cols[column + state[listed + k]]), to_float(state[at + 2 * ROWS + k])
            behind = to_float(state[at + 3 * ROWS + k])
            state[left + k * wide] = to_bits(before * x)
            state[right + k * wide] = to_bits(behind * x)
            total += before * behind * x
        state[own] = to_bits(total)


@helper
def lay_out(elements, code, state, rows, plan, j):
    """For elements in maps or blocks; their own words are summed."""
    part, at, wide = plan + P_HEADER + j * Q_WORDS, taken_of(code, plan, j), code[plan + P_WIDE]
    size, own, block = code[part + Q_SIZE], code[part + Q_OWN], code[plan + P_BLOCK]
    left, right = block + code[part + Q_LEFT], block + code[part + Q_BEHIND]
    for k in range(rows):
        before, behind = to_float(state[at + 2 * ROWS + k]), to_float(state[at + 3 * ROWS + k])
        source = state[at + k] + 1
        for q in range(0, size, FOUR):  # what is read and written beyond its sums is ignored
            scale_four(state, left + k * wide + q, elements, source + q, before)
            scale_four(state, right + k * wide + q, elements, source + q, behind)
    for w in range(0, words_of(size) - 1, LANES):
        add_gathered(state, own + w, elements, w + 1, state, at, state, at + 4 * ROWS, rows)


@helper
def lay_behind(code, state, rows, plan, j):
    """T of the parts after part j, times its counts, follows its sums."""
    if j + 1 == code[plan + P_PARTS]:
        return
    part, wide, counts = plan + P_HEADER + j * Q_WORDS, code[plan + P_WIDE], taken_of(code, plan, j) + ROWS
    start = code[part + Q_START] + code[part + Q_SIZE]
    to = code[plan + P_BLOCK] + code[part + Q_BEHIND] + code[part + Q_SIZE]
    source = code[plan + P_BLOCK] + code[part + Q_WORDS + Q_BEHIND]
    length = code[plan + P_VARIABLES] - start
    for k in range(rows):
        count = to_float(state[counts + k])
        for q in range(0, length, FOUR):
            scale_four(state, to + k * wide + q, state, source + k * wide + q, count)


@helper
def add_tiles(code, state, rows, plan, j):
    """Add the products of part j's sums and T to its accumulators; below the diagonal they are undefined."""
    part, wide, block = plan + P_HEADER + j * Q_WORDS, code[plan + P_WIDE], code[plan + P_BLOCK]
    left, length = block + code[part + Q_LEFT], code[part + Q_LENGTH]
    is_lifted = code[part + Q_STORE] == LIFTED
    if length == 0:
        return
    right = block + code[part + (Q_BEHIND if is_lifted else Q_WORDS + Q_BEHIND)]
    for r in range(0, code[part + Q_SIZE], HEIGHT):
        row = code[part + Q_ROWS] + r * length
        for c in range(r // LANES * LANES if is_lifted else 0, length, LANES):
            add_outer(state, row + c, length, state, left + r, wide, state, right + c, wide, rows)


@helper
def ask_for_part(arena, maps, code, state, cols, rows, n, plan, columns, j):
    """The elements of a part that the next rows will need."""
    part, listed = plan + P_HEADER + j * Q_WORDS, code[plan + P_BLOCK] - 2 * ROWS
    store, column = code[part + Q_STORE], code[columns + code[part + Q_COLUMN]]
    for k in range(rows):
        i = state[listed + k] + ROWS
        if i < n and cols[column + i] >= 0:
            ask_for_element(arena, maps, store, cols[column + i])
