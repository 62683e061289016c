"""Owns sums of products of cofactors that are deferred while rows go one by one: see `cofactor_kernels`.

All products go to one element that no trigger reads.  So they are summed in accumulators aligned for
the processor, whole vectors that cross no cache line, and are added to the element when the rows are
done.  Triggers whose products have the same parts share accumulators.

A row: 1. what is lifted becomes an element, so that all parts have the same form; 2. the elements of parts,
times the counts of all others, are added to the accumulators, and the T of each part is made, from the sums
of those after it; 3. the products of sums and T are added.  What is read and written beyond the end of an
element is ignored.
"""

from __future__ import annotations

from dlog.jit import add_four, helper, scale_four
from dlog.m3.runtime.layout import HELD, M_BASE, M_USED
from dlog.m3.runtime.machine.arithmetic_kernels import to_bits, to_float
from dlog.m3.runtime.machine.cofactor_kernels import add_sum_at, rounded
from dlog.m3.runtime.machine.cofactor_plan import (
    BLOCK,
    FOUR,
    H_NEXT,
    H_PLAN,
    H_TARGET,
    LIFTED,
    P_ADDED,
    P_END,
    P_HEADER,
    P_HELD,
    P_PARTS,
    P_SUMS,
    P_VARIABLES,
    P_WORK,
    Q_COLUMN,
    Q_LEFT,
    Q_LENGTH,
    Q_LIFTED,
    Q_OWN,
    Q_ROWS,
    Q_SIZE,
    Q_START,
    Q_STORE,
    Q_WORDS,
    TAKEN,
    element_at,
    words_of,
)


@helper
def hold(arena, maps, code, state, cols, target, scale, plan, columns):
    """Add the product of one row to accumulators."""
    factor = to_float(cols[scale])
    if factor == 0.0 or not take_elements(arena, maps, code, state, cols, plan, columns):
        return
    note_held(code, state, target, plan)
    take_counts_of_row(code, state, plan, factor)
    work = code[plan + P_WORK]
    T, other, behind = (
        code[plan + P_SUMS],
        code[plan + P_SUMS] + rounded(code[plan + P_VARIABLES]) + FOUR,
        1.0,
    )
    for j in range(code[plan + P_PARTS] - 1, -1, -1):
        if code[plan + P_HEADER + j * Q_WORDS + Q_STORE] >= 0:
            add_part(arena, code, state, plan, j, T, other, behind)
        else:
            add_part(state, code, state, plan, j, T, other, behind)
        T, other, behind = other, T, behind * to_float(state[work + TAKEN * j + 1])


@helper
def release_held(arena, maps, code, state):
    """Add all that is deferred to the elements that it belongs to."""
    held = state[HELD]
    while held != 0:
        plan, target = state[held + H_PLAN], state[held + H_TARGET]
        maps[target + M_USED] = 1
        add_sum_at(arena, maps[target + M_BASE], code, state, plan, True)
        for w in range(code[plan + P_ADDED], code[plan + P_END]):
            state[w] = 0
        state[held + H_PLAN] = 0
        held = state[held + H_NEXT]
    state[HELD] = 0


@helper
def note_held(code, state, target, plan):
    """There is something in the accumulators of a plan."""
    held = code[plan + P_HELD]
    if state[held + H_PLAN] == 0:
        state[held + H_PLAN], state[held + H_TARGET] = plan, target
        state[held + H_NEXT], state[HELD] = state[HELD], held


@helper
def take_elements(arena, maps, code, state, cols, plan, columns):
    """Where the elements of a row are; False if one is missing, which is 0."""
    work, parts = code[plan + P_WORK], code[plan + P_PARTS]
    for j in range(parts):
        part = plan + P_HEADER + j * Q_WORDS
        store = code[part + Q_STORE]
        if store != LIFTED:
            row = cols[code[columns + code[part + Q_COLUMN]]]
            if row < 0:
                return False
            if store >= 0:
                at = element_at(arena, maps, store, row)
                state[work + TAKEN * j + 1] = arena[at]
            else:
                at = BLOCK - store + row * words_of(code[part + Q_SIZE])
                state[work + TAKEN * j + 1] = state[at]
            state[work + TAKEN * j] = at
    for j in range(parts):
        part = plan + P_HEADER + j * Q_WORDS
        if code[part + Q_STORE] == LIFTED:
            at = code[part + Q_LIFTED]
            lift(code, state, cols, at, columns + code[part + Q_COLUMN], code[part + Q_SIZE])
            state[work + TAKEN * j], state[work + TAKEN * j + 1] = at, to_bits(1.0)
    return True


@helper
def lift(code, state, cols, at, column, size):
    """(1, x, x x')"""
    state[at] = to_bits(1.0)
    for p in range(size):
        state[at + 1 + p] = cols[code[column + p]]
    to = at + 1 + size
    for p in range(size):
        x = to_float(cols[code[column + p]])
        for q in range(p, size, FOUR):
            scale_four(state, to + q - p, state, at + 1 + q, x)
        to += size - p


@helper
def take_counts_of_row(code, state, plan, factor):
    """For each part the product of the counts before it; that of all is added up."""
    work, parts, total = code[plan + P_WORK], code[plan + P_PARTS], code[plan + P_ADDED]
    for j in range(parts):
        state[work + TAKEN * j + 2] = to_bits(factor)
        factor *= to_float(state[work + TAKEN * j + 1])
    state[total] = to_bits(to_float(state[total]) + factor)


@helper
def add_part(elements, code, state, plan, j, T, new, behind):
    """Add part j's element, and the products of its sums and T, to their accumulators; then T after the part
    before it.
    """
    part, taken, variables = (
        plan + P_HEADER + j * Q_WORDS,
        code[plan + P_WORK] + TAKEN * j,
        code[plan + P_VARIABLES],
    )
    at, count, before = state[taken], to_float(state[taken + 1]), to_float(state[taken + 2])
    size, start = code[part + Q_SIZE], code[part + Q_START]
    end = start + size
    add_vectors(state, code[part + Q_OWN] - 1, elements, at, before * behind, code[part + Q_LEFT])
    if j + 1 < code[plan + P_PARTS]:
        add_rows(
            state, code[part + Q_ROWS], code[part + Q_LENGTH], state, T + end, elements, at + 1, before, size
        )
    if j > 0:
        for q in range(0, size, FOUR):
            scale_four(state, new + start + q, elements, at + 1 + q, behind)
        for q in range(end, variables, FOUR):
            scale_four(state, new + q, state, T + q, count)


@helper
def add_vectors(out, at, x, x_at, factor, n):
    """out[at:at + n] += factor * x[x_at:x_at + n].  REQUIRES: whole vectors."""
    while n >= 16:
        add_eight(out, at, x, x_at, factor)
        add_eight(out, at + 8, x, x_at + 8, factor)
        at, x_at, n = at + 16, x_at + 16, n - 16
    if n & 8 != 0:
        add_eight(out, at, x, x_at, factor)
        at, x_at = at + 8, x_at + 8
    if n & 4 != 0:
        add_four(out, at, x, x_at, factor)


@helper
def add_eight(out, at, x, x_at, factor):
    add_four(out, at, x, x_at, factor)
    add_four(out, at + 4, x, x_at + 4, factor)


@helper
def add_rows(out, at, length, x, x_at, factors, f_at, factor, rows):
    """Add to each row its factor times x: strip by strip of columns."""
    n = length
    while n >= 16:
        for r in range(rows):
            weight = factor * to_float(factors[f_at + r])
            add_eight(out, at + r * length, x, x_at, weight)
            add_eight(out, at + r * length + 8, x, x_at + 8, weight)
        at, x_at, n = at + 16, x_at + 16, n - 16
    if n & 8 != 0:
        for r in range(rows):
            add_eight(out, at + r * length, x, x_at, factor * to_float(factors[f_at + r]))
        at, x_at = at + 8, x_at + 8
    if n & 4 != 0:
        for r in range(rows):
            add_four(out, at + r * length, x, x_at, factor * to_float(factors[f_at + r]))
