"""Owns sums of products of cofactors inside kernels.  Knows nothing of types, names or statements.

A cofactor of n variables is (count c, sums s, sums of products Q, the upper triangle by rows) as floats, n of
them those of its variables alone.  The product of parts e_1 .. e_m with a factor f is, without any part
being multiplied with another,

    count            f c_1 .. c_m
    sums, Q of part j   f (c_1 .. without c_j .. c_m) times those of e_j
    between j < k    f (c_1 .. without c_j and c_k .. c_m) s_j s_k'

A row walks its parts from the last to the first with T, the sums of the product of the later parts: row p
of part j is f c_1 .. c_(j-1) s_j[p] times T.  The rows of all parts are summed in accumulators, as long as
they go to the same element, and then added to it.  O(numbers of the product) for a row, four at a time.

If all rows go to one element they are processed several at a time: see `cofactor_block_kernels`; or, if they
come one by one, deferred: see `cofactor_held_kernels`.

A part that is lifted from columns is (1, x, x x'): its rows begin in its own variables.

The plan of a sum is a list of words: see `cofactor_plan`.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import add_four, helper
from dlog.m3.runtime.layout import M_USED
from dlog.m3.runtime.machine.arithmetic_kernels import (
    to_bits,
    to_float,
)
from dlog.m3.runtime.machine.cofactor_block_kernels import add_block, clear_rows
from dlog.m3.runtime.machine.cofactor_plan import (
    AHEAD,
    BLOCK,
    DIRECT_ROWS,
    FOUR,
    LIFTED,
    P_ADDED,
    P_END,
    P_FIRST,
    P_HEADER,
    P_KEEPS,
    P_LIFTS,
    P_PARTS,
    P_SUMS,
    P_TOTAL,
    P_VARIABLES,
    P_WIDTH,
    P_WORK,
    Q_COLUMN,
    Q_LENGTH,
    Q_OWN,
    Q_ROWS,
    Q_SIZE,
    Q_START,
    Q_STORE,
    Q_WORDS,
    ROWS,
    TAKEN,
    add_scaled,
    ask_for_element,
    element_at,
    words_of,
)


@helper
def add_elements(arena, maps, code, state, cols, n, target, slots, scale, plan, columns):
    """Add, for each of n rows, its scale times the product of its parts to an element: in the slots of a map,
    or of a block, where `target` is BLOCK - its place.  `columns` is where the parts' columns are listed.
    """
    if code[plan + P_LIFTS] != 0:
        add_lifted(arena, maps, code, state, cols, n, target, slots, scale, plan, columns)
        return
    total = code[plan + P_TOTAL] != 0
    if total and n > 0 and target >= 0:
        maps[target + M_USED] = 1
    if code[plan + P_FIRST] >= 0 and (not total or n < DIRECT_ROWS):
        add_each(arena, maps, code, state, cols, n, target, slots, scale, plan, columns)
        return
    if total:
        clear_accumulators(code, state, plan)
        clear_rows(code, state, plan, n)
        for first in range(0, n, ROWS):
            add_block(arena, maps, code, state, cols, first, n, scale, plan, columns)
        if n > 0:
            add_sum(arena, maps, code, state, target, np.int64(0), plan)
        return
    for i in range(n):
        ask_ahead(arena, maps, code, cols, plan, columns, i, n)
        factor = to_float(cols[scale + i])
        if factor != 0.0 and take_parts(arena, maps, code, state, cols, plan, columns, i):
            clear_accumulators(code, state, plan)
            add_product(arena, code, state, plan, factor)
            add_sum(arena, maps, code, state, target, cols[slots + i], plan)


@helper
def ask_ahead(arena, maps, code, cols, plan, columns, i, n):
    if i + AHEAD >= n:
        return
    for j in range(code[plan + P_PARTS]):
        part = plan + P_HEADER + j * Q_WORDS
        store = code[part + Q_STORE]
        if store >= 0:
            slot = cols[code[columns + code[part + Q_COLUMN]] + i + AHEAD]
            if slot >= 0:
                ask_for_element(arena, maps, store, slot)


@helper
def clear_accumulators(code, state, plan):
    for w in range(code[plan + P_ADDED], code[plan + P_END]):
        state[w] = 0


@helper
def take_parts(arena, maps, code, state, cols, plan, columns, i):
    """Where the elements of row i are, and their counts and sums; False if one is missing, which is 0."""
    work, sums = code[plan + P_WORK], code[plan + P_SUMS]
    for j in range(code[plan + P_PARTS]):
        part = plan + P_HEADER + j * Q_WORDS
        store, size, column = code[part + Q_STORE], code[part + Q_SIZE], columns + code[part + Q_COLUMN]
        mine = sums + code[part + Q_START]
        if store == LIFTED:
            state[work + TAKEN * j + 1] = to_bits(1.0)
            for p in range(size):
                state[mine + p] = cols[code[column + p] + i]
            continue
        row = cols[code[column] + i]
        if row < 0:
            return False
        if store >= 0:
            at = element_at(arena, maps, store, row)
            state[work + TAKEN * j + 1] = arena[at]
            for p in range(size):
                state[mine + p] = arena[at + 1 + p]
        else:
            at = BLOCK - store + row * words_of(size)
            state[work + TAKEN * j + 1] = state[at]
            for p in range(size):
                state[mine + p] = state[at + 1 + p]
        state[work + TAKEN * j] = at
    return True


@helper
def add_product(arena, code, state, plan, factor):
    """Add the product of the parts that were taken to the accumulators."""
    parts, variables = code[plan + P_PARTS], code[plan + P_VARIABLES]
    work, sums, behind = code[plan + P_WORK], code[plan + P_SUMS], 1.0
    T = sums + rounded(variables)
    count, total = multiply_counts(state, work, parts, factor), code[plan + P_ADDED]
    state[total] = to_bits(to_float(state[total]) + count)
    for j in range(parts - 1, -1, -1):
        part = plan + P_HEADER + j * Q_WORDS
        size, start, store = code[part + Q_SIZE], code[part + Q_START], code[part + Q_STORE]
        count, before = to_float(state[work + TAKEN * j + 1]), to_float(state[work + TAKEN * j + 2])
        own, at, first = code[part + Q_OWN], state[work + TAKEN * j] + 1, start + size
        if store == LIFTED:
            add_scaled(state, own, state, sums + start, before * behind, size)
            first = start
        elif store >= 0:
            add_scaled(state, own, arena, at, before * behind, words_of(size) - 1)
        else:
            add_scaled(state, own, state, at, before * behind, words_of(size) - 1)
        scale_to(state, sums + start, T + start, size, behind)
        row = code[part + Q_ROWS]
        for p in range(start, start + size):
            weight = before * to_float(state[sums + p])
            add_row(state, row, T + first, weight, rounded(variables - first))
            row += code[part + Q_LENGTH]
        if count != 1.0 and j > 0:
            scale_to(state, T + start + size, T + start + size, variables - start - size, count)
        behind *= count


@helper
def multiply_counts(state, work, parts, factor):
    """The product of all counts; and, stored for each part, that of the counts before it."""
    for j in range(parts):
        state[work + TAKEN * j + 2] = to_bits(factor)
        factor *= to_float(state[work + TAKEN * j + 1])
    return factor


@helper
def scale_to(state, source, target, n, factor):
    for q in range(n):
        state[target + q] = to_bits(to_float(state[source + q]) * factor)


@helper
def rounded(n):
    return (n + FOUR - 1) // FOUR * FOUR


@helper
def add_row(state, row, source, weight, length):
    for q in range(0, length, FOUR):
        add_four(state, row + q, state, source + q, weight)


@helper
def add_sum(arena, maps, code, state, target, row, plan):
    """Add the accumulators to an element."""
    width = code[plan + P_WIDTH]
    if target >= 0:
        at = element_at(arena, maps, target, row)
        if code[plan + P_KEEPS] != 0:
            arena[at + words_of(width)] += 1
        add_sum_at(arena, at, code, state, plan, False)
    else:
        add_sum_at(state, BLOCK - target + row * words_of(width), code, state, plan, False)


@helper
def add_sum_at(out, at, code, state, plan, is_whole):
    """`is_whole`: what is lifted became an element, so that its accumulators are as those of others."""
    parts, variables = code[plan + P_PARTS], code[plan + P_VARIABLES]
    places = plan + P_HEADER + parts * Q_WORDS
    width, in_order = code[plan + P_WIDTH], code[plan + P_FIRST] >= 0
    out[at] = to_bits(to_float(out[at]) + to_float(state[code[plan + P_ADDED]]))
    for j in range(parts):
        part = plan + P_HEADER + j * Q_WORDS
        size, start, own = code[part + Q_SIZE], code[part + Q_START], code[part + Q_OWN]
        row, is_lifted = code[part + Q_ROWS], code[part + Q_STORE] == LIFTED and not is_whole
        add_placed(out, at + 1, state, own, code, places + start, size)
        triangle, first, begun = own + size, start + size, 0
        for p in range(size):
            if is_lifted:
                first, begun = start + p, p
            else:
                add_pairs(
                    out, at, state, triangle, code, places, start + p, start + p, size - p, width, in_order
                )
                triangle += size - p
            source, length = row + begun, variables - first
            add_pairs(out, at, state, source, code, places, start + p, first, length, width, in_order)
            row += code[part + Q_LENGTH]


@helper
def add_placed(out, at, state, source, code, places, n):
    for q in range(n):
        to = at + code[places + q]
        out[to] = to_bits(to_float(out[to]) + to_float(state[source + q]))


@helper
def add_pairs(out, at, state, source, code, places, p, first, n, width, in_order):
    """Add sums of products of variable p with n variables from `first` on, whose places may be anywhere.

    A pair of the same variable, from two parts, counts twice: there is its product with either part's.
    """
    a = code[places + p]
    if in_order:
        if n > 0:
            to = at + pair_at(width, a, code[places + first])
            add_scaled(out, to, state, source, 1.0, n)
        return
    for q in range(n):
        b = code[places + first + q]
        to = at + pair_at(width, min(a, b), max(a, b))
        times = 2.0 if a == b and first + q != p else 1.0
        out[to] = to_bits(to_float(out[to]) + times * to_float(state[source + q]))


@helper
def pair_at(width, a, b):
    """Where in an element the product of variables a <= b is."""
    return 1 + width + a * (2 * width - a - 1) // 2 + b


# ---- products that are added to an element directly: if few go to the same one


@helper
def add_each(arena, maps, code, state, cols, n, target, slots, scale, plan, columns):
    """REQUIRES: a product whose variables follow one another in the element."""
    words = words_of(code[plan + P_WIDTH])
    for i in range(n):
        ask_ahead(arena, maps, code, cols, plan, columns, i, n)
        factor = to_float(cols[scale + i])
        if factor == 0.0 or not take_parts(arena, maps, code, state, cols, plan, columns, i):
            continue
        if target >= 0:
            row = np.int64(0) if code[plan + P_TOTAL] != 0 else cols[slots + i]
            at = element_at(arena, maps, target, row)
            if code[plan + P_KEEPS] != 0:
                arena[at + words] += 1
            add_product_to(arena, at, arena, code, state, plan, factor)
        else:
            add_product_to(state, BLOCK - target + cols[slots + i] * words, arena, code, state, plan, factor)


@helper
def add_product_to(out, at, arena, code, state, plan, factor):
    """As `add_product`, except for where the rows are."""
    parts, variables, width = code[plan + P_PARTS], code[plan + P_VARIABLES], code[plan + P_WIDTH]
    work, sums, behind = code[plan + P_WORK], code[plan + P_SUMS], 1.0
    T, moved = sums + rounded(variables), code[plan + P_FIRST]
    out[at] = to_bits(to_float(out[at]) + multiply_counts(state, work, parts, factor))
    for j in range(parts - 1, -1, -1):
        part = plan + P_HEADER + j * Q_WORDS
        size, start, store = code[part + Q_SIZE], code[part + Q_START], code[part + Q_STORE]
        count, before = to_float(state[work + TAKEN * j + 1]), to_float(state[work + TAKEN * j + 2])
        triangle, first = state[work + TAKEN * j] + 1 + size, start + size
        add_scaled(out, at + 1 + moved + start, state, sums + start, before * behind, size)
        scale_to(state, sums + start, T + start, size, behind)
        for p in range(start, start + size):
            if store == LIFTED:
                first = p
            else:
                own = at + pair_at(width, moved + p, moved + p)
                if store >= 0:
                    add_scaled(out, own, arena, triangle, before * behind, start + size - p)
                else:
                    add_scaled(out, own, state, triangle, before * behind, start + size - p)
                triangle += start + size - p
            row = at + pair_at(width, moved + p, moved + first)
            add_scaled(out, row, state, T + first, before * to_float(state[sums + p]), variables - first)
        if count != 1.0 and j > 0:
            scale_to(state, T + start + size, T + start + size, variables - start - size, count)
        behind *= count


# ---- the element of a row's own columns, into the map of a view


@helper
def add_lifted(arena, maps, code, state, cols, n, m, slots, scale, plan, columns):
    """REQUIRES: one part, lifted, with the variables of the map's elements."""
    size, x = code[plan + P_VARIABLES], code[plan + P_SUMS]
    for i in range(n):
        if i + AHEAD < n:
            ask_for_element(arena, maps, m, cols[slots + i + AHEAD])
        at, factor = element_at(arena, maps, m, cols[slots + i]), to_float(cols[scale + i])
        for p in range(size):
            state[x + p] = cols[code[columns + p] + i]
        arena[at] = to_bits(to_float(arena[at]) + factor)
        add_scaled(arena, at + 1, state, x, factor, size)
        if code[plan + P_KEEPS] != 0:
            arena[at + words_of(size)] += 1
        at += 1 + size
        for p in range(size):
            add_scaled(arena, at, state, x + p, factor * to_float(state[x + p]), size - p)
            at += size - p


# ---- blocks: an element for each row, in the state


@helper
def is_nonzero(state, at, n, words, cols, out):
    """For each row whether its element is not 0."""
    for i in range(n):
        w = 0
        while w < words and to_float(state[at + i * words + w]) == 0.0:
            w += 1
        cols[out + i] = 1 if w < words else 0
