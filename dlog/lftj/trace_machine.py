"""Owns the machine that runs traced plans: as `machine`, with which it shares all other steps, with notes.

Knows nothing of the purpose of notes.  A plan that is not traced runs in `machine` and pays nothing.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import Words, helper, kernel
from dlog.lftj.batch import batch_next, batch_open
from dlog.lftj.leap import FOUND, NONE, PATIENCE, leap
from dlog.lftj.machine import emit, step
from dlog.lftj.opcodes import (
    ARGS,
    BATCH_NEXT,
    BATCH_OPEN,
    BUDGET,
    DONE,
    EMIT,
    EXACT_NEXT,
    EXACT_OPEN,
    FAIL,
    GUIDED_NEXT,
    GUIDED_OPEN,
    HALT,
    L_AGAIN,
    L_COLUMNS,
    LEAP_NEXT,
    LEAP_OPEN,
    LEFT,
    NEXT,
    NEXTS,
    NOTE,
    OUTPUT_FULL,
    PC,
    SEEKS,
    SPAN,
    STATUS,
    TRACE_FULL,
)
from dlog.lftj.trace_leap import FULL, exact_leap, exact_open, guided_leap, note, span
from dlog.storage.arena.pointer import pointer


@kernel
def run_traced(
    arena_words: Words,
    code_words: Words,
    state_words: Words,
    rank_words: Words,
    out_words: Words,
    capacity: int,
    trace_words: Words,
    room: int,
    budget: int,
) -> int:
    """As `machine.run`; stops also when a note has no room, each having `room` rows in the trace.

    Note i begins at word room * (words of a row of the notes before it); its number of rows is in the state.
    """
    arena, code, state = pointer(arena_words), pointer(code_words), pointer(state_words)
    ranks, out, trace = pointer(rank_words), pointer(out_words), pointer(trace_words)
    return int(run_traced_on(arena, code, state, ranks, out, np.int64(0), capacity, trace, room, budget))


@helper
def run_traced_on(arena, code, state, ranks, out, rows, capacity, trace, room, budget):
    """As `run_traced`, for kernels: over pointers, with `rows` rows already in the output.

    BATCH_NEXT to HALT are as in `machine.run_on`, written out: each may change the address, the number of
    rows, the budget and the status, which stay in registers as long as no call hands them back and forth.
    """
    pc = state[PC]
    status = np.int64(BUDGET)
    while budget > 0:
        budget -= 1
        op = code[pc]
        if op == NOTE:
            if state[code[pc + ARGS]] == room:
                status = np.int64(TRACE_FULL)
                break
            note(code, pc, state, trace, room)
            pc = code[pc + NEXT]
        elif op in (LEAP_NEXT, LEAP_OPEN, GUIDED_NEXT, GUIDED_OPEN):
            opening = op in (LEAP_OPEN, GUIDED_OPEN)
            at = pc if opening else code[pc + ARGS]
            before = state[SEEKS]
            if op in (LEAP_NEXT, LEAP_OPEN):
                result = leap(arena, code, at, state, opening)
            else:
                result = guided_leap(arena, code, at, state, opening)
            budget -= state[SEEKS] - before
            pc = (
                code[at + NEXT]
                if result == FOUND
                else code[at + FAIL]
                if result == NONE
                else code[at + L_AGAIN]
            )
        elif op == EXACT_OPEN:
            pc = code[pc + L_AGAIN] if exact_open(code, pc, state) else code[pc + FAIL]
        elif op == EXACT_NEXT:
            at = code[pc + ARGS]
            result = exact_leap(arena, code, at, state, trace, room)
            if result == FULL:
                status = np.int64(TRACE_FULL)
                break
            if result == FOUND:
                pc = code[at + NEXT]
            elif result == NONE:
                pc = code[at + FAIL]
            else:
                budget -= PATIENCE
        elif op == SPAN:
            pc = code[pc + NEXT] if span(arena, code, pc, state) else code[pc + FAIL]
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
