"""Owns the machine that runs an assembled plan: one loop over a step pointer, for every rule the same.

Every instruction goes to one address when it succeeds and to another when it fails.  The assembler has
wired these so that failure leads to the last instruction with another choice: negation, existence and
disjunction are nothing but such wiring, and no stack is needed, since a step of a plan is active at most once
at a time.

All mutable state is in the state array, so that a run can stop between any two instructions, or in the
middle of a batch, and continue later: when the output is full, or when the budget of operations is spent and
the caller wants to check the clock.  Knows nothing of plans, indices or versions.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import Words, helper, kernel
from dlog.lftj.batch import batch_next, batch_open
from dlog.lftj.leap import FOUND, NONE, PATIENCE, key_of, leap, seek_key
from dlog.lftj.opcodes import (
    ARGS,
    BATCH_NEXT,
    BATCH_OPEN,
    BUDGET,
    COMPARE,
    COMPARISONS,
    COMPUTE,
    COUNT,
    DONE,
    EMIT,
    EMITTED,
    FAIL,
    FIELD,
    FLAT,
    HALT,
    HI,
    HOLDS,
    L_AGAIN,
    L_COLUMNS,
    LEAP_NEXT,
    LEAP_OPEN,
    LEFT,
    LO,
    MAKE,
    NEXT,
    NEXTS,
    OUTPUT_FULL,
    PC,
    RANGE,
    RANGE_NEXT,
    RANGE_OPEN,
    RANK_COMPARE,
    REDO,
    ROOT,
    SEEK,
    SEEKS,
    SET,
    STATUS,
    UNDEFINED,
    VALUE,
)
from dlog.lftj.primitives import compare, compute, range_direction, range_next, range_step
from dlog.lftj.record_steps import make_record, read_field
from dlog.storage.arena.pointer import pointer
from dlog.storage.index.trie_kernels import end_of
from dlog.storage.layout import FLAT_BASE, FLAT_STRIDE, N_ROWS


@kernel
def attach(arena: Words, state: Words, levels: Words, roots: Words) -> None:
    """Write the whole range of each atom, and where its columns are, into a fresh state.  O(levels)."""
    attach_on(pointer(arena), pointer(state), pointer(levels), pointer(roots), len(roots))


@helper
def attach_on(arena, state, levels, roots, n_atoms):
    """As `attach`, for kernels: over pointers."""
    for a in range(n_atoms):
        block, arity, root = levels[2 * a], levels[2 * a + 1], roots[a]
        state[block + ROOT] = root
        state[block + LO] = 0
        state[block + HI] = end_of(arena, root) if arity > 0 else arena[root + N_ROWS]
        for level in range(arity):
            at = block + RANGE * level
            state[at + ROOT] = root
            state[at + FLAT] = arena[root + FLAT_BASE]
            if state[at + FLAT] >= 0:
                state[at + FLAT] += level * arena[root + FLAT_STRIDE]


@kernel
def run(
    arena_words: Words,
    code_words: Words,
    state_words: Words,
    rank_words: Words,
    out_words: Words,
    capacity: int,
    budget: int,
) -> int:
    """Run until the end, until `capacity` rows are in `out`, or until about `budget` operations are done.

    Returns the number of rows written: column c of row i is word c * capacity + i of the output.  Leaves in
    state[STATUS] which of the three it was, and in state everything needed to continue.
    """
    arena, code, state = pointer(arena_words), pointer(code_words), pointer(state_words)
    ranks, out = pointer(rank_words), pointer(out_words)
    return int(run_on(arena, code, state, ranks, out, np.int64(0), capacity, budget))


@helper
def run_on(arena, code, state, ranks, out, rows, capacity, budget):
    """As `run`, for kernels: over pointers, with `rows` rows already in the output; leaves state[LEFT]."""
    pc = state[PC]
    status = np.int64(BUDGET)
    while budget > 0:
        budget -= 1
        op = code[pc]
        if op in (LEAP_NEXT, LEAP_OPEN):
            at = code[pc + ARGS] if op == LEAP_NEXT else pc
            result = leap(arena, code, at, state, op == LEAP_OPEN)
            if result == FOUND:
                pc = code[at + NEXT]
            elif result == NONE:
                pc = code[at + FAIL]
            else:
                pc = code[at + L_AGAIN]
                budget -= PATIENCE
        elif op == BATCH_NEXT:
            at = code[pc + ARGS]
            if rows == capacity and code[code[at + L_COLUMNS]] >= 0:
                status = np.int64(OUTPUT_FULL)
                break
            before = state[NEXTS] + state[SEEKS]
            written = batch_next(arena, code, at, state, out, rows, capacity)
            budget -= state[NEXTS] + state[SEEKS] - before
            if written < 0:
                pc = code[at + FAIL]
                written = -1 - written
            rows += written
        elif op == BATCH_OPEN:
            before = state[NEXTS] + state[SEEKS]
            pc = code[pc + NEXT] if batch_open(arena, code, pc, state) else code[pc + FAIL]
            budget -= state[NEXTS] + state[SEEKS] - before
        elif op == EMIT:
            if rows == capacity:
                status = np.int64(OUTPUT_FULL)
                break
            emit(code, pc, state, out, rows, capacity)
            rows += 1
            pc = code[pc + FAIL]
        elif op == HALT:
            status = np.int64(DONE)
            break
        else:
            pc = step(arena, code, pc, state, ranks)
    state[PC] = pc
    state[STATUS] = status
    state[LEFT] = budget
    return rows


@helper
def step(arena, code, pc, state, ranks):
    """Do one of the simple instructions; return where to continue."""
    op = code[pc]
    a = code[pc + ARGS]
    b = code[pc + ARGS + 1]
    good = True
    if op == SEEK:
        good = seek_key(arena, state, a, state[b])
    elif op == VALUE:
        good = state[a + LO] < state[a + HI]
        if good:
            state[b] = key_of(arena, state, a, state[a + LO])
            state[a + RANGE + LO] = state[a + LO]
            state[a + RANGE + HI] = state[a + HI]
    elif op == COMPARE:
        state[COMPARISONS] += 1
        good = compare(a, state[b], state[code[pc + ARGS + 2]])
    elif op == COMPUTE:
        good = assign(code, pc, state, ranks)
    elif op == FIELD:
        good = read_field(code, pc, state)
    elif op == MAKE:
        make_record(code, pc, state)
    elif op == COUNT:
        state[EMITTED] += 1
        good = False
    elif op == SET:
        state[a] = b
    elif op == REDO:
        return state[a]
    elif op == HOLDS:
        good = state[a + LO] < state[a + HI]
    elif op == RANK_COMPARE:
        state[COMPARISONS] += 1
        good = compare(a, ranks[state[b]], ranks[state[code[pc + ARGS + 2]]])
    elif op == RANGE_OPEN:
        good = open_range(code, pc, state)
    elif op == RANGE_NEXT:
        pc = a
        good = continue_range(code, pc, state)
    return code[pc + NEXT] if good else code[pc + FAIL]


@helper
def emit(code, pc, state, out, row, capacity):
    """Write the slots of an Emit as one row."""
    state[EMITTED] += 1
    for c in range(code[pc + ARGS]):
        out[c * capacity + row] = state[code[pc + ARGS + 1 + c]]


@helper
def assign(code, pc, state, ranks):
    """Do a Compute; False if it is undefined."""
    before = state[UNDEFINED]
    a = state[code[pc + ARGS + 3]]
    b = state[code[pc + ARGS + 4]]
    state[code[pc + ARGS + 2]] = compute(code[pc + ARGS], code[pc + ARGS + 1], a, b, state, ranks)
    return state[UNDEFINED] == before


@helper
def open_range(code, pc, state):
    """Bind the slot of a range to its start; False if the range is empty."""
    slot, own, kind = code[pc + ARGS], code[pc + ARGS + 1], code[pc + ARGS + 5]
    start, end = state[code[pc + ARGS + 2]], state[code[pc + ARGS + 3]]
    given = code[pc + ARGS + 4] >= 0
    by = state[code[pc + ARGS + 4]] if given else np.int64(0)
    state[own] = range_step(start, end, by, given, kind)
    state[own + 1] = range_direction(start, end, by, given, kind)
    state[slot] = start
    return state[own + 1] != 2


@helper
def continue_range(code, pc, state):
    """Bind the slot of a range to its next value; False at its end."""
    slot, own, kind = code[pc + ARGS], code[pc + ARGS + 1], code[pc + ARGS + 5]
    value = state[slot]
    following = range_next(value, state[code[pc + ARGS + 3]], state[own], state[own + 1], kind)
    state[slot] = following
    return following != value
