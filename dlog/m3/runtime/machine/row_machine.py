"""Owns the machine for one row at a time: it runs the code of `row_code`, event after event.

The instructions that make up nearly all such triggers are written out here, without loops over rows; the
others are those of the machine for columns, on columns of one row.

Knows nothing of programs, names or types.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import helper, prefetch
from dlog.lftj.primitives import add, multiply
from dlog.m3.runtime.layout import (
    ACCUMULATE,
    AHEAD,
    ASKED,
    BUDGET,
    COUNT,
    DONE,
    E_END,
    E_FIRST,
    E_INPUT,
    E_ROWS,
    E_STRIDE,
    E_WORDS,
    EMPTY,
    END,
    EVENT,
    FIRST,
    GROW,
    HELD,
    INPUT,
    LINE,
    M_APART,
    M_BASE,
    M_LIMIT,
    M_MASK,
    M_SHIFT,
    M_UPDATES,
    M_USED,
    M_WORDS,
    NEAR,
    OVERFLOW,
    PAUSE,
    PC,
    ROOM,
    ROW_ADD,
    ROW_AHEAD,
    ROW_FINDS,
    ROW_FLOATS,
    ROW_HOLD,
    ROW_LOADS,
    ROW_PRODUCT,
    ROW_SLOT,
    ROW_TOTAL,
    SLOTS,
    STRIDE,
    SWITCH,
)
from dlog.m3.runtime.machine.arithmetic_kernels import SMALL, add_ints, multiply_ints, to_bits
from dlog.m3.runtime.machine.cofactor_held_kernels import hold, release_held
from dlog.m3.runtime.machine.cofactor_plan import ask_for_element
from dlog.m3.runtime.machine.column_kernels import find_element, find_one, make_slot
from dlog.m3.runtime.machine.event_kernels import next_rows
from dlog.m3.runtime.machine.exact_kernels import EXACT_STEPS, exact_step
from dlog.m3.runtime.machine.instructions import (
    ARITHMETIC,
    ELEMENT_STEPS,
    JUMPS,
    MAPS,
    PLAIN,
    arithmetic_step,
    element_step,
    frame_step,
    is_narrow,
    jump_step,
    map_step,
    plain_step,
)
from dlog.m3.runtime.machine.range_kernels import RANGE_STEPS, range_step
from dlog.m3.runtime.maps.map_kernels import hash_more, hash_one, place_of, shifted


@helper
def run_rows(arena, maps, code, state, registers, inputs, events, ranks, n_events):
    """Run the code of events whose rows go one by one, from where the state says.

    Returns DONE, GROW, PAUSE, or SWITCH when an event comes whose rows are processed together.
    """
    pc, budget = state[PC], state[BUDGET]
    event, row = state[EVENT], state[FIRST]
    first, stride = state[INPUT] + row, state[STRIDE]
    end = events[event * E_WORDS + E_END]
    status = np.int64(PAUSE)
    while budget > 0:
        op, a = code[pc], pc + 2
        if op == ROW_LOADS:
            a += 1
            pc = a + 2 * code[a - 1]
            while a < pc:
                registers[code[a]] = inputs[first + code[a + 1] * stride]
                a += 2
        elif op == ROW_FLOATS:
            a += 1
            pc = a + 2 * code[a - 1]
            while a < pc:
                registers[code[a + 1]] = to_bits(float(registers[code[a]]))
                a += 2
        elif op == ROW_FINDS:
            key, pc = registers[code[a]], a + 2 + 2 * code[a + 1]
            hash = hash_one(key)
            for j in range(a + 2, pc, 2):
                m, slot = code[j], shifted(hash, maps[code[j] + M_SHIFT])
                if maps[m + M_APART] != 0:
                    registers[code[j + 1]] = find_element(arena, maps, m, slot, key)
                else:
                    registers[code[j + 1]] = find_one(arena, maps, m, slot, key)
        elif op == ROW_SLOT:
            m, key = code[a], registers[code[a + 1]]
            if maps[m + M_USED] >= maps[m + M_LIMIT]:
                state[ASKED], state[ROOM] = m, 1
                status = np.int64(GROW)
                break
            registers[code[a + 2]] = make_slot(arena, maps, m, hash_one(key), key)
            maps[m + M_UPDATES] += 1
            pc = a + 3
        elif op == ROW_PRODUCT:
            registers[code[a + 2]] = product(arena, maps, code, a, registers, state, pc)
            pc = a + 4 + code[a + 3]
        elif op == ROW_TOTAL:
            m = code[a]
            base = maps[m + M_BASE]
            maps[m + M_USED] = 1
            arena[base] = add_ints(arena[base], registers[code[a + 1]], state, pc)
            pc = a + 2
        elif op == ROW_ADD:
            m = code[a]
            if maps[m + M_USED] >= maps[m + M_LIMIT]:
                state[ASKED], state[ROOM] = m, 1
                status = np.int64(GROW)
                break
            add_to_entry(arena, maps, m, code, a, registers, state, pc)
            pc = a + 3
        elif op == END:
            budget -= 1
            row += 1
            if row < end:
                first += 1
                pc = events[event * E_WORDS + E_ROWS]
            elif event + 1 < n_events and events[(event + 1) * E_WORDS + E_ROWS] >= 0:
                event += 1
                at = event * E_WORDS
                row, end, stride = events[at + E_FIRST], events[at + E_END], events[at + E_STRIDE]
                first = events[at + E_INPUT] + row
                pc = events[at + E_ROWS]
            else:
                state[EVENT], state[FIRST] = event, row - 1
                has_more = next_rows(events, state, n_events)
                status = np.int64(SWITCH if has_more else DONE)
                pc = state[PC]
                break
            if state[OVERFLOW] != 0:
                status = np.int64(DONE)
                break
        elif op == ROW_HOLD:
            hold(arena, maps, code, state, registers, code[a], code[a + 1], code[a + 2], a + 3)
            pc = code[pc + 1]
        elif op == ROW_AHEAD:
            if event + AHEAD < n_events:
                look_ahead(arena, maps, code, inputs, events, (event + AHEAD) * E_WORDS, False)
            if code[a] != 0 and event + NEAR < n_events:
                look_ahead(arena, maps, code, inputs, events, (event + NEAR) * E_WORDS, True)
            pc = code[pc + 1]
        elif op in JUMPS:
            pc = jump_step(arena, maps, code, pc, state, registers)
        else:
            if op in (ACCUMULATE, SLOTS) and is_narrow(maps, code[a + 1], 1):
                state[ASKED], state[ROOM] = code[a + 1], 1
                status = np.int64(GROW)
                break
            if op in EXACT_STEPS:
                if not exact_step(arena, maps, code, pc, state, registers):
                    status = np.int64(GROW)
                    break
                pc = code[pc + 1]
                continue
            if op in RANGE_STEPS:
                if not range_step(arena, maps, code, pc, state, registers):
                    status = np.int64(GROW)
                    break
                pc = code[pc + 1]
                continue
            other_step(arena, maps, code, pc, state, registers, ranks)
            pc = code[pc + 1]
    if status != SWITCH and status != DONE:
        state[EVENT], state[FIRST], state[COUNT] = event, row, 1
        state[INPUT], state[STRIDE] = first - row, stride
    if state[HELD] != 0:
        release_held(arena, maps, code, state)
    state[PC], state[BUDGET] = pc, budget
    return status


@helper
def look_ahead(arena, maps, code, inputs, events, at, is_near):
    """Prefetch the slots that the first row of a later event will need; for one that is near, elements
    that are apart from them.
    """
    a = events[at + E_ROWS]
    if a < 0 or code[a] != ROW_AHEAD or (is_near and code[a + 2] == 0):
        return
    first, stride = events[at + E_INPUT] + events[at + E_FIRST], events[at + E_STRIDE]
    a += 3
    while code[a] > 0:
        keys, key = code[a], inputs[first + code[a + 1] * stride]
        hash = hash_one(key)
        for j in range(2, keys + 1):
            hash = hash_more(hash, inputs[first + code[a + j] * stride])
        a += keys + 2
        last = a + code[a - 1]
        while a < last:
            m = code[a]
            slot, words = shifted(hash, maps[m + M_SHIFT]), maps[m + M_WORDS]
            if is_near:
                if maps[m + M_APART] != 0 and keys == 1:
                    element = find_element(arena, maps, m, slot, key)
                    if element >= 0:
                        ask_for_element(arena, maps, m, element)
            else:
                at = maps[m + M_BASE] + words * slot
                prefetch(arena, at)
                for line in range(LINE, words, LINE):
                    prefetch(arena, at + line)
            a += 1


@helper
def product(arena, maps, code, a, registers, state, pc):
    """A value times the entries of maps.  The value of an empty slot is 0, so that no case distinction is
    needed; while all factors are small no product overflows, so that this is checked once.
    """
    key, value = registers[code[a]], registers[code[a + 1]]
    hash, result, wide = hash_one(key), value, np.int64(0)
    last = a + 4 + code[a + 3]
    for j in range(a + 4, last):
        factor = arena[find_plain(arena, maps, code[j], key, hash) + 1]
        wide |= add(result, SMALL) | add(factor, SMALL)
        result = multiply(result, factor)
    if wide >> 31 != 0:
        result = value
        for j in range(a + 4, last):
            factor = arena[find_plain(arena, maps, code[j], key, hash) + 1]
            result = multiply_ints(result, factor, state, pc)
    return result


@helper
def find_plain(arena, maps, m, key, hash):
    """Where the slot of a key is, or the empty one where it would be."""
    slot = shifted(hash, maps[m + M_SHIFT])
    return place_of(arena, maps[m + M_BASE], 2, maps[m + M_MASK], slot, key)


@helper
def add_to_entry(arena, maps, m, code, a, registers, state, pc):
    """REQUIRES: room for one more slot."""
    key = registers[code[a + 1]]
    place = find_plain(arena, maps, m, key, hash_one(key))
    maps[m + M_UPDATES] += 1
    if arena[place] == EMPTY:
        arena[place] = key
        maps[m + M_USED] += 1
    arena[place + 1] = add_ints(arena[place + 1], registers[code[a + 2]], state, pc)


@helper
def other_step(arena, maps, code, pc, state, registers, ranks):
    op = code[pc]
    if op in ARITHMETIC:
        arithmetic_step(code, pc, state, registers)
    elif op in PLAIN:
        plain_step(code, pc, state, registers, ranks)
    elif op in MAPS:
        map_step(arena, maps, code, pc, state, registers)
    elif op in ELEMENT_STEPS:
        element_step(arena, maps, code, pc, state, registers)
    else:
        frame_step(arena, maps, code, pc, state, registers)
