"""Owns the machine that runs compiled triggers: one loop over an instruction pointer, for every program the
same.

An instruction works on all rows of a frame at once.  Loops over chunks (of a batch, of the entries that rows
are expanded to) are jumps between instructions, with their place in the state; so the machine can stop where
it is and go on later: when a map has no room for what may be added, or when Python is asked for a function.

Knows nothing of programs, names or types.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import Words, helper, kernel, pointer
from dlog.m3.runtime.arithmetic_kernels import (
    add_columns,
    compare_columns,
    convert_column,
    divide_columns,
    multiply_columns,
    multiply_decimals,
    sum_by_row,
)
from dlog.m3.runtime.column_kernels import (
    accumulate,
    add_total,
    chain_found,
    chain_next,
    chain_open,
    erase,
    forget,
    found,
    hash_columns,
    load_slots,
    look_up,
    look_up_product,
    look_up_times,
    make_slots,
    scan_next,
)
from dlog.m3.runtime.layout import (
    ACCUMULATE,
    ADD,
    ASKED,
    CALL,
    CALL_PYTHON,
    CHAIN_FOUND,
    CHAIN_NEXT,
    CHAIN_OPEN,
    CHUNK,
    CLEAR,
    COMPARE,
    CONVERT,
    COUNT,
    DELTA_GATHER,
    DELTA_LOAD,
    DELTA_NEXT,
    DELTA_OPEN,
    DIVIDE,
    DONE,
    E_END,
    E_ENTRY,
    E_FIRST,
    E_INPUT,
    E_STEP,
    E_STRIDE,
    E_WORDS,
    EITHER,
    END,
    ERASE,
    EVENT,
    FILTER,
    FIRST,
    FORGET,
    FOUND,
    GATHER,
    GROW,
    HASH,
    INPUT,
    INPUT_GATHER,
    INVERT,
    JUMP,
    JUMP_EMPTY,
    JUMP_FALSE,
    LOAD,
    LOOK_UP,
    LOOK_UP_PRODUCT,
    LOOK_UP_TIMES,
    M_KEYS,
    M_LIMIT,
    M_USED,
    MULTIPLY,
    MULTIPLY_DECIMAL,
    NONZERO,
    OVERFLOW,
    PAUSE,
    PC,
    RANK,
    ROOM,
    ROOT,
    ROW_SUM,
    SCAN_OPEN,
    SLOT_LOAD,
    SLOTS,
    SPREAD,
    STATUS,
    STRIDE,
    TOTAL,
    ZERO,
)
from dlog.m3.runtime.map_kernels import clear


@kernel
def run(
    arena_words: Words,
    map_words: Words,
    code_words: Words,
    state_words: Words,
    col_words: Words,
    input_words: Words,
    event_words: Words,
    rank_words: Words,
    n_events: int,
    budget: int,
) -> int:
    """Run the triggers of all events, from where the state says.  Returns DONE, GROW, CALL, or PAUSE after
    `budget` instructions, so that the caller hears interrupts.

    After an overflow it is DONE too: the state tells.
    """
    arena, maps, code = pointer(arena_words), pointer(map_words), pointer(code_words)
    state, cols, inputs = pointer(state_words), pointer(col_words), pointer(input_words)
    events, ranks = pointer(event_words), pointer(rank_words)
    pc = state[PC]
    status = np.int64(DONE)
    while True:
        budget -= 1
        if budget < 0:
            status = np.int64(PAUSE)
            break
        op = code[pc]
        a = pc + 2
        if op in (
            LOOK_UP,
            LOOK_UP_TIMES,
            LOOK_UP_PRODUCT,
            HASH,
            FOUND,
            CHAIN_FOUND,
            TOTAL,
            FORGET,
            ACCUMULATE,
            SLOTS,
        ):
            if op in (ACCUMULATE, SLOTS) and is_narrow(maps, code[a + 1], state[code[a]]):
                state[ASKED], state[ROOM] = code[a + 1], state[code[a]]
                status = np.int64(GROW)
                break
            map_step(arena, maps, code, pc, state, cols)
            pc = code[pc + 1]
        elif op in (ADD, MULTIPLY, MULTIPLY_DECIMAL, DIVIDE, CONVERT, COMPARE, ROW_SUM):
            arithmetic_step(code, pc, state, cols)
            pc = code[pc + 1]
        elif op in (GATHER, SPREAD, ZERO, EITHER, INVERT, RANK, NONZERO):
            plain_step(code, pc, state, cols, ranks)
            pc = code[pc + 1]
        elif op in (LOAD, DELTA_LOAD, INPUT_GATHER, DELTA_GATHER):
            input_step(code, pc, state, cols, inputs)
            pc = code[pc + 1]
        elif op in (ROOT, SLOT_LOAD, FILTER, CLEAR, ERASE, DELTA_OPEN, SCAN_OPEN, CHAIN_OPEN):
            frame_step(arena, maps, code, pc, state, cols)
            pc = code[pc + 1]
        elif op == END:
            if state[OVERFLOW] != 0 or not next_rows(events, state, n_events):
                break
            pc = state[PC]
        elif op == CALL_PYTHON:
            state[ASKED] = code[a]
            pc = code[pc + 1]
            status = np.int64(CALL)
            break
        else:
            pc = jump_step(arena, maps, code, pc, state, cols)
    state[PC] = pc
    state[STATUS] = status
    return int(status)


@kernel
def start(state_words: Words, event_words: Words, n_events: int) -> bool:
    """Make the state ready for the first event; False when there is none."""
    state_words[EVENT] = -1
    state_words[FIRST] = 0
    state_words[COUNT] = 0
    return bool(next_rows(pointer(event_words), pointer(state_words), n_events))


@helper
def next_rows(events, state, n_events):
    """Go on to the next rows of the event, or to the next event; False at the end."""
    event = state[EVENT]
    at = event * E_WORDS
    first = state[FIRST] + state[COUNT]
    while event < 0 or first >= events[at + E_END]:
        event += 1
        at = event * E_WORDS
        if event >= n_events:
            return False
        first = events[at + E_FIRST]
    state[EVENT] = event
    state[PC] = events[at + E_ENTRY]
    state[INPUT], state[STRIDE] = events[at + E_INPUT], events[at + E_STRIDE]
    state[FIRST] = first
    state[COUNT] = min(events[at + E_STEP], events[at + E_END] - first)
    return True


@helper
def is_narrow(maps, m, rows):
    """Whether a table may get too full by so many new keys."""
    return maps[m + M_KEYS] > 0 and maps[m + M_USED] + rows > maps[m + M_LIMIT]


@helper
def map_step(arena, maps, code, pc, state, cols):
    """Instructions with a list of columns."""
    op, a = code[pc], pc + 2
    n, m = state[code[a]], code[a + 1]
    if op == LOOK_UP_PRODUCT:
        look_up_product(
            arena,
            maps,
            cols,
            n,
            m,
            code[a + 2],
            code[a + 3],
            code[a + 4],
            code,
            a + 6,
            code[a + 5],
            state,
            pc,
        )
    elif op == LOOK_UP_TIMES:
        look_up_times(arena, maps, m, cols, n, code[a + 2], code, a + 4, code[a + 3], state, pc)
    elif op == LOOK_UP:
        look_up(arena, maps, m, cols, n, code[a + 2], code, a + 4, code[a + 3])
    elif op == HASH:
        hash_columns(cols, n, m, code, a + 3, code[a + 2])
    elif op == ACCUMULATE:
        accumulate(arena, maps, m, cols, n, code[a + 2], code, a + 4, code[a + 3], state, pc)
    elif op == TOTAL:
        add_total(arena, maps, m, cols, n, code, a + 2, state, pc)
    elif op == SLOTS:
        make_slots(arena, maps, m, cols, n, code[a + 2], code, a + 4, code[a + 3])
    elif op == CHAIN_FOUND:
        chain_found(arena, maps, m, cols, n, code[a + 2], code, a + 4, code[a + 3])
    elif op == FOUND:
        found(arena, maps, m, cols, n, code[a + 2], code, a + 4, code[a + 3])
    else:
        forget(arena, maps, m, cols, n, code[a + 2], code, a + 4, code[a + 3])


@helper
def arithmetic_step(code, pc, state, cols):
    op, a = code[pc], pc + 2
    n, how, x, y = state[code[a]], code[a + 1], code[a + 2], code[a + 3]
    if op == MULTIPLY:
        multiply_columns(cols, n, how, x, y, code[a + 4], code, a + 5, state, pc)
    elif op == MULTIPLY_DECIMAL:
        multiply_decimals(cols, n, how, x, y, code[a + 4], state, pc)
    elif op == DIVIDE:
        divide_columns(cols, n, x, y, code[a + 4])
    elif op == ADD:
        add_columns(cols, n, how, x, y, code[a + 4], code, a + 5, state, pc)
    elif op == COMPARE:
        compare_columns(cols, n, how, x, y, code[a + 4])
    elif op == CONVERT:
        convert_column(cols, n, how, x, y, state, pc)
    else:
        sum_by_row(cols, n, how, x, y, code[a + 4], code, a + 5, state, pc)


@helper
def plain_step(code, pc, state, cols, ranks):
    op, a = code[pc], pc + 2
    n, x, y = state[code[a]], code[a + 1], code[a + 2]
    z = code[a + 3]
    if op == GATHER:
        for i in range(n):
            cols[z + i] = cols[x + cols[y + i]]
    elif op == SPREAD:
        for i in range(n):
            cols[y + i] = cols[x]
    elif op == ZERO:
        for i in range(n):
            cols[x + i] = 0
    elif op == EITHER:
        for i in range(n):
            cols[z + i] = cols[x + i] | cols[y + i]
    elif op == INVERT:
        for i in range(n):
            cols[y + i] = 1 - cols[x + i]
    elif op == RANK:
        for i in range(n):
            cols[y + i] = ranks[cols[x + i]]
    else:
        out = code[a + 2 + x]
        for i in range(n):
            cols[out + i] = 0
        for j in range(x):
            column = code[a + 2 + j]
            for i in range(n):
                if cols[column + i] != 0:
                    cols[out + i] = 1


@helper
def input_step(code, pc, state, cols, inputs):
    """Columns of the event's rows."""
    op, a = code[pc], pc + 2
    n, first = state[code[a]], state[INPUT] + state[FIRST]
    if op == LOAD:
        copy(inputs, first + code[a + 2] * state[STRIDE], cols, code[a + 1], n)
        return
    first += code[a + 3] * state[STRIDE]
    if op == DELTA_LOAD:
        copy(inputs, first + state[code[a + 1]] - n, cols, code[a + 2], n)
        return
    if op == DELTA_GATHER:
        first += state[code[a + 5]] - state[code[a + 4]]
    rows, out = code[a + 1], code[a + 2]
    for i in range(n):
        cols[out + i] = inputs[first + cols[rows + i]]


@helper
def frame_step(arena, maps, code, pc, state, cols):
    """Instructions that make frames, and those on slots and whole maps."""
    op, a = code[pc], pc + 2
    if op == ROOT:
        state[code[a]] = 1 if code[a + 1] == 1 else state[COUNT]
    elif op == SLOT_LOAD:
        load_slots(arena, maps, code[a + 1], cols, state[code[a]], code[a + 2], code[a + 3], code[a + 4])
    elif op == FILTER:
        n, condition, rows = state[code[a]], code[a + 1], code[a + 3]
        kept = 0
        for i in range(n):
            cols[rows + kept] = i
            kept += cols[condition + i]
        state[code[a + 2]] = kept
    elif op == CLEAR:
        clear(arena, maps, code[a])
    elif op == ERASE:
        erase(arena, maps, code[a + 1], cols, state[code[a]], code[a + 2])
    elif op == CHAIN_OPEN:
        m, cursor = code[a + 1], code[a + 4]
        state[cursor] = chain_open(
            arena, maps, m, code[a + 2], cols, state[code[a]], code[a + 3], code[a + 5], code[a + 6],
            code, a + 8, code[a + 7],
        )  # fmt: skip
        # All chains are still to come: as if a round had ended that kept them.
        state[cursor + 1], state[cursor + 2] = state[cursor], state[cursor]
    else:  # DELTA_OPEN, SCAN_OPEN
        state[code[a]] = 0
        state[code[a] + 1] = 0


@helper
def copy(source, start, cols, out, n):
    for i in range(n):
        cols[out + i] = source[start + i]


@helper
def jump_step(arena, maps, code, pc, state, cols):
    """Instructions that may go elsewhere: loops over chunks, and what is left out."""
    op, a, following = code[pc], pc + 2, code[pc + 1]
    if op == JUMP:
        return code[a]
    if op == JUMP_EMPTY:
        return code[a + 1] if state[code[a]] == 0 else following
    if op == JUMP_FALSE:
        return code[a + 1] if cols[code[a]] == 0 else following
    if op == DELTA_NEXT:
        cursor, n = code[a + 1], min(state[COUNT] - state[code[a + 1]], CHUNK)
        state[cursor] += n
        leave = code[a + 2]
    elif op == CHAIN_NEXT:
        n = chain_next(
            arena, maps, code[a + 1], code[a + 2], cols, state, code[a + 3], code[a + 4], code[a + 5],
            code[a + 6], code[a + 7],
        )  # fmt: skip
        leave = code[a + 8]
    else:  # SCAN_NEXT
        parent = code[a + 1]
        rows = state[parent] if parent >= 0 else 1
        n = scan_next(arena, maps, code[a + 2], cols, rows, state, code[a + 3], code[a + 4], code[a + 5])
        leave = code[a + 6]
    state[code[a]] = n
    return following if n > 0 else leave
