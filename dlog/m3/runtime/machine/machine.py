"""Owns the machine that runs compiled triggers: one loop over an instruction pointer, for every program the
same.

An instruction works on all rows of a frame at once.  Loops over chunks (of a batch, of the entries that rows
are expanded to) are jumps between instructions, with their place in the state; so the machine can stop where
it is and continue later: when a map has no room for what may be added, or when Python is asked for a
function.

Knows nothing of programs, names or types.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import Words, helper, kernel, pointer
from dlog.m3.runtime.layout import (
    ASKED,
    BUDGET,
    BY_ROW,
    CALL,
    CALL_PYTHON,
    D_MAPS,
    DONE,
    DRAINED,
    END,
    GROW,
    OVERFLOW,
    PAUSE,
    PC,
    STATUS,
    SWITCH,
)
from dlog.m3.runtime.machine.event_kernels import next_rows
from dlog.m3.runtime.machine.exact_kernels import EXACT_STEPS, exact_step
from dlog.m3.runtime.machine.instructions import (
    ARITHMETIC,
    ELEMENT_STEPS,
    INPUTS,
    JUMPS,
    MAPS,
    PLAIN,
    arithmetic_step,
    element_step,
    frame_step,
    input_step,
    is_asking,
    jump_step,
    map_step,
    plain_step,
)
from dlog.m3.runtime.machine.range_kernels import RANGE_STEPS, range_step
from dlog.m3.runtime.machine.row_machine import run_rows
from dlog.m3.runtime.maps.drain_kernels import drain_on


@kernel
def run(
    arena_words: Words,
    map_words: Words,
    code_words: Words,
    state_words: Words,
    col_words: Words,
    register_words: Words,
    input_words: Words,
    selected_words: Words,
    event_words: Words,
    rank_words: Words,
    drained: Words,
    changed: Words,
    n_events: int,
    budget: int,
) -> int:
    """Run the triggers of all events, from where the state says.  Returns DONE, GROW, CALL, or PAUSE after
    about `budget` instructions, so that the caller can handle interrupts.

    After an overflow it returns DONE as well: the state says so.  When it is done, maps that are `drained`
    write their changes to `changed`, as `drain` does; the state says how many.
    """
    arena, maps, code = pointer(arena_words), pointer(map_words), pointer(code_words)
    state, inputs, selected = pointer(state_words), pointer(input_words), pointer(selected_words)
    events, ranks = pointer(event_words), pointer(rank_words)
    state[BUDGET] = budget
    status = np.int64(SWITCH)
    while status == SWITCH:
        if state[BY_ROW] != 0:
            registers = pointer(register_words)
            status = run_rows(arena, maps, code, state, registers, inputs, events, ranks, n_events)
        else:
            cols = pointer(col_words)
            status = run_columns(arena, maps, code, state, cols, inputs, selected, events, ranks, n_events)
    state[STATUS] = status
    if status == DONE and state[OVERFLOW] == 0 and drained[D_MAPS] > 0:
        state[DRAINED] = drain_on(arena, maps, pointer(drained), pointer(changed), len(changed))
    return int(status)


@helper
def run_columns(arena, maps, code, state, cols, inputs, selected, events, ranks, n_events):
    """Run the code of events whose rows are processed together.

    Returns SWITCH when an event comes whose rows go one by one.
    """
    pc, budget = state[PC], state[BUDGET]
    status = np.int64(PAUSE)
    while budget > 0:
        budget -= 1
        op, a = code[pc], pc + 2
        if op in MAPS:
            if is_asking(maps, code, pc, state):
                status = np.int64(GROW)
                break
            map_step(arena, maps, code, pc, state, cols)
        elif op in ARITHMETIC:
            arithmetic_step(code, pc, state, cols)
        elif op in PLAIN:
            plain_step(code, pc, state, cols, ranks)
        elif op in INPUTS:
            input_step(code, pc, state, cols, inputs, selected)
        elif op in JUMPS:
            pc = jump_step(arena, maps, code, pc, state, cols)
            continue
        elif op == END:
            if state[OVERFLOW] != 0 or not next_rows(events, state, n_events):
                status = np.int64(DONE)
                break
            pc = state[PC]
            if state[BY_ROW] != 0:
                status = np.int64(SWITCH)
                break
            continue
        elif op == CALL_PYTHON:
            state[ASKED] = code[a]
            pc = code[pc + 1]
            status = np.int64(CALL)
            break
        elif op in EXACT_STEPS:
            if not exact_step(arena, maps, code, pc, state, cols):
                status = np.int64(GROW)
                break
        elif op in RANGE_STEPS:
            if not range_step(arena, maps, code, pc, state, cols):
                status = np.int64(GROW)
                break
        elif op in ELEMENT_STEPS:
            element_step(arena, maps, code, pc, state, cols)
        else:
            if is_asking(maps, code, pc, state):
                status = np.int64(GROW)
                break
            frame_step(arena, maps, code, pc, state, cols)
        pc = code[pc + 1]
    state[PC], state[BUDGET] = pc, budget
    return status
