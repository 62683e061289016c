"""Owns the effect of each instruction of the machine, on all rows of its frame at once.  Knows no
programs.
"""

from __future__ import annotations

from typing import Final

from dlog.jit import helper
from dlog.m3.runtime.layout import (
    ACCUMULATE,
    ADD,
    ASKED,
    BLOCK_NONZERO,
    BLOCK_ZERO,
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
    DIVIDE,
    EITHER,
    ELEMENTS,
    ERASE,
    FILTER,
    FIND,
    FIRST,
    FORGET,
    FOUND,
    GATHER,
    HASH,
    INPUT,
    INPUT_GATHER,
    INVERT,
    JUMP,
    JUMP_EMPTY,
    JUMP_FALSE,
    LINKS,
    LOAD,
    LOOK_UP,
    LOOK_UP_PRODUCT,
    LOOK_UP_TIMES,
    M_KEYS,
    M_LIMIT,
    M_ROOM,
    M_USED,
    MULTIPLY,
    MULTIPLY_DECIMAL,
    NONZERO,
    RANGE_NEXT,
    RANK,
    ROOM,
    ROOT,
    ROW_SUM,
    SCAN_NEXT,
    SELECTED,
    SLOT_LOAD,
    SLOTS,
    SPREAD,
    STRIDE,
    TOTAL,
    ZERO,
)
from dlog.m3.runtime.machine.arithmetic_kernels import (
    add_columns,
    compare_columns,
    convert_column,
    divide_columns,
    multiply_columns,
    multiply_decimals,
    sum_by_row,
)
from dlog.m3.runtime.machine.chain_kernels import (
    chain_found,
    chain_next,
    chain_open,
    lacks_links,
    load_slots,
    scan_next,
)
from dlog.m3.runtime.machine.cofactor_kernels import add_elements, is_nonzero
from dlog.m3.runtime.machine.column_kernels import (
    accumulate,
    add_total,
    erase,
    find_slots,
    forget,
    found,
    hash_columns,
    look_up,
    look_up_product,
    look_up_times,
    make_slots,
)
from dlog.m3.runtime.machine.range_scan_kernels import range_next
from dlog.m3.runtime.maps.map_kernels import empty_table

# Instructions by their operands: the rest makes frames, or works on slots and whole maps.
MAPS: Final = (
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
)
ARITHMETIC: Final = (ADD, MULTIPLY, MULTIPLY_DECIMAL, DIVIDE, CONVERT, COMPARE, ROW_SUM)
PLAIN: Final = (GATHER, SPREAD, ZERO, EITHER, INVERT, RANK, NONZERO)
ELEMENT_STEPS: Final = (FIND, ELEMENTS, BLOCK_ZERO, BLOCK_NONZERO)
INPUTS: Final = (LOAD, DELTA_LOAD, INPUT_GATHER, DELTA_GATHER)
JUMPS: Final = (JUMP, JUMP_EMPTY, JUMP_FALSE, DELTA_NEXT, CHAIN_NEXT, SCAN_NEXT, RANGE_NEXT)


@helper
def is_narrow(maps, m, rows):
    """Whether a table may get too full by this many new keys."""
    return maps[m + M_KEYS] > 0 and maps[m + M_USED] + rows > maps[m + M_LIMIT]


@helper
def is_asking(maps, code, pc, state):
    """Whether an instruction has to wait for memory of a map; then the state says which."""
    op, m = code[pc], code[pc + 3]
    if op in (ACCUMULATE, SLOTS):
        rows = state[code[pc + 2]]
        maps[m + M_ROOM] = max(maps[m + M_ROOM], rows)
        if is_narrow(maps, m, rows):
            state[ASKED], state[ROOM] = m, rows
            return True
    if op in (CHAIN_OPEN, CHAIN_FOUND) and lacks_links(maps, m):
        state[ASKED], state[ROOM] = m, LINKS
        return True
    return False


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
def element_step(arena, maps, code, pc, state, cols):
    """Cofactors."""
    op, a = code[pc], pc + 2
    n, m = state[code[a]], code[a + 1]
    if op == FIND:
        find_slots(arena, maps, m, cols, n, code[a + 2], code, a + 4, code[a + 3])
    elif op == ELEMENTS:
        add_elements(arena, maps, code, state, cols, n, m, code[a + 2], code[a + 3], code[a + 4], a + 5)
    elif op == BLOCK_ZERO:
        for w in range(n * code[a + 2]):
            state[m + w] = 0
    else:
        is_nonzero(state, m, n, code[a + 2], cols, code[a + 3])


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
def input_step(code, pc, state, cols, inputs, selected):
    """Columns of the event's rows: those that `selected` lists, or consecutive ones."""
    op, a = code[pc], pc + 2
    n, first = state[code[a]], state[FIRST]
    column = state[INPUT] + code[a + (2 if op == LOAD else 3)] * state[STRIDE]
    if op in (LOAD, DELTA_LOAD):
        out = code[a + 1] if op == LOAD else code[a + 2]
        first += 0 if op == LOAD else state[code[a + 1]] - n
        if state[SELECTED] == 0:
            copy(inputs, column + first, cols, out, n)
        else:
            for i in range(n):
                cols[out + i] = inputs[column + selected[first + i]]
        return
    if op == DELTA_GATHER:
        first += state[code[a + 5]] - state[code[a + 4]]
    rows, out = code[a + 1], code[a + 2]
    for i in range(n):
        row = first + cols[rows + i]
        cols[out + i] = inputs[column + (row if state[SELECTED] == 0 else selected[row])]


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
        empty_table(arena, maps, code[a])
    elif op == ERASE:
        erase(arena, maps, code[a + 1], cols, state[code[a]], code[a + 2])
    elif op == CHAIN_OPEN:
        m, cursor = code[a + 1], code[a + 4]
        state[cursor] = chain_open(
            arena, maps, m, code[a + 2], cols, state[code[a]], code[a + 3], code[a + 5], code[a + 6],
            code, a + 8, code[a + 7],
        )  # fmt: skip
        # All chains are still to come: as if a round had ended that left them all.
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
    """Instructions that may jump: loops over chunks, and skipped code."""
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
    elif op == RANGE_NEXT:
        n, leave = range_next(arena, maps, code, pc, state, cols), code[a + 7]
    else:  # SCAN_NEXT
        parent = code[a + 1]
        rows = state[parent] if parent >= 0 else 1
        n = scan_next(arena, maps, code[a + 2], cols, rows, state, code[a + 3], code[a + 4], code[a + 5])
        leave = code[a + 6]
    state[code[a]] = n
    return following if n > 0 else leave
