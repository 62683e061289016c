"""Owns operations between columns and maps: looking up and adding.  Knows no statements.

Each works on one frame: `n` rows, column values at offsets in `cols`.  The keys of an operation are listed in
the code, as offsets of their columns.  Hashes come as a column, so that the probes of different rows do not
wait for each other.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import helper, prefetch
from dlog.lftj.primitives import multiply
from dlog.m3.rings.kernels import sum_of_doubled
from dlog.m3.runtime.layout import (
    DIRECT,
    DOUBLED,
    EMPTY,
    FLOAT,
    INT,
    LINE,
    M_APART,
    M_BASE,
    M_DRAINED,
    M_INDEX,
    M_INDICES,
    M_KEYS,
    M_KINDS,
    M_LINKED,
    M_LOGGED,
    M_MASK,
    M_SHIFT,
    M_UPDATES,
    M_USED,
    M_VALUES,
    M_WORDS,
)
from dlog.m3.runtime.machine.arithmetic_kernels import add_ints, multiply_ints, to_bits, to_float
from dlog.m3.runtime.maps.apart_kernels import value_at
from dlog.m3.runtime.maps.change_kernels import keep_before
from dlog.m3.runtime.maps.exact_kernels import is_exact, make_exact_zero
from dlog.m3.runtime.maps.map_kernels import (
    AHEAD,
    MULTIPLIER,
    hash_more,
    hash_one,
    is_live,
    link,
    make_zero,
    place_of,
    place_of_few,
    shifted,
    take_slot,
)
from dlog.m3.runtime.maps.order_kernels import note


@helper
def hash_columns(cols, n, out, code, at, count):
    """REQUIRES: at least one column."""
    first = code[at]
    for i in range(n):
        key = cols[first + i]
        cols[out + i] = multiply(key ^ shifted(key, 32), MULTIPLIER)
    for j in range(1, count):
        column = code[at + j]
        for i in range(n):
            cols[out + i] = hash_more(cols[out + i], cols[column + i])


@helper
def find(arena, maps, m, cols, hash, i, code, at, count):
    """The slot of row i's key, or -1 - the empty slot where it would be."""
    base, words, mask = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_MASK]
    slot = shifted(cols[hash + i], maps[m + M_SHIFT])
    while True:
        place = base + slot * words
        if arena[place] == EMPTY:
            return -1 - slot
        j = 0
        while j < count and arena[place + j] == cols[code[at + j] + i]:
            j += 1
        if j == count:
            return slot
        slot = (slot + 1) & mask


@helper
def find_slots(arena, maps, m, cols, n, hash, code, at, count):
    """The slot of each row's key, or a negative number where there is none."""
    out = code[at + count]
    if maps[m + M_APART] != 0:
        find_elements(arena, maps, m, cols, n, hash, code, at, count, out)
        return
    if count == 1:
        find_ones(arena, maps, m, cols, n, hash, code[at], out)
        return
    for i in range(n):
        cols[out + i] = np.int64(0) if count == 0 else find(arena, maps, m, cols, hash, i, code, at, count)


@helper
def find_ones(arena, maps, m, cols, n, hash, keys, out):
    """Of one key."""
    base, words, shift = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_SHIFT]
    for i in range(n):
        if i + AHEAD < n:
            prefetch(arena, base + words * shifted(cols[hash + i + AHEAD], shift))
        cols[out + i] = find_one(arena, maps, m, shifted(cols[hash + i], shift), cols[keys + i])


@helper
def find_elements(arena, maps, m, cols, n, hash, code, at, count, out):
    """Of a map whose elements lie apart."""
    base, words, mask, shift = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_MASK], maps[m + M_SHIFT]
    for i in range(n):
        if i + AHEAD < n:
            prefetch(arena, base + words * shifted(cols[hash + i + AHEAD], shift))
        if count == 1:
            slot, key = shifted(cols[hash + i], shift), cols[code[at] + i]
            cols[out + i] = direct(arena, place_of(arena, base, words, mask, slot, key), 1)
        else:
            slot = find(arena, maps, m, cols, hash, i, code, at, count)
            cols[out + i] = direct(arena, base + slot * words, count) if slot >= 0 else np.int64(-1)


@helper
def find_element(arena, maps, m, slot, key):
    """The same of one row and one key."""
    place = place_of(arena, maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_MASK], slot, key)
    return direct(arena, place, 1)


@helper
def direct(arena, place, keys):
    """The element of the slot at a place; -1 if that is empty."""
    return np.int64(-1) if arena[place] == EMPTY else DIRECT + arena[place + keys]


@helper
def find_one(arena, maps, m, slot, key):
    """The slot of a key, from that of its hash on; -1 if there is none."""
    base, words, mask = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_MASK]
    found = arena[base + slot * words]
    while found != key and found != EMPTY:
        slot = (slot + 1) & mask
        found = arena[base + slot * words]
    return slot if found == key else np.int64(-1)


@helper
def look_up(arena, maps, m, cols, n, hash, code, at, count):
    """Values of the entries, 0 where there is none.  Value columns are listed after the keys."""
    values, base, words = maps[m + M_VALUES], maps[m + M_BASE], maps[m + M_WORDS]
    out = at + count
    if count == 0:
        for v in range(values):
            for i in range(n):
                cols[code[out + v] + i] = arena[base + v]
        return
    if count == 1 and values == 1:
        look_up_one(arena, maps, m, cols, n, hash, code[at], code[out])
        return
    if count <= 3 and values == 1:
        look_up_few(arena, maps, m, cols, n, hash, code, at, count, code[out])
        return
    for i in range(n):
        slot = find(arena, maps, m, cols, hash, i, code, at, count)
        for v in range(values):
            word = arena[base + slot * words + count + v] if slot >= 0 else np.int64(0)
            cols[code[out + v] + i] = word


@helper
def ask_for(arena, place):
    """A slot will be needed soon, and those after it: in a table that is half full a new key goes past two
    others.
    """
    prefetch(arena, place)
    prefetch(arena, place + LINE)


@helper
def ask_for_chains(arena, maps, m, cols, n, code, at, i, is_near):
    """Row i may reach chains: prefetch where they begin; if it is near, the slots there."""
    if i >= n:
        return
    base, words, slots = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_MASK] + 1
    places = maps[m + M_INDEX]
    for index in range(maps[m + M_INDICES]):
        hash = np.int64(0)
        for j in range(maps[places]):
            key = cols[code[at + maps[places + 1 + j]] + i]
            hash = hash_one(key) if j == 0 else hash_more(hash, key)
        head = base + slots * (words + index) + shifted(hash, maps[m + M_SHIFT])
        if not is_near:
            prefetch(arena, head)
        elif arena[head] != 0:
            prefetch(arena, base + (arena[head] - 1) * words + maps[places + 1])
        places += 1 + maps[places]


@helper
def look_up_one(arena, maps, m, cols, n, hash, keys, out):
    base, words, mask, shift = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_MASK], maps[m + M_SHIFT]
    for i in range(n):
        place = place_of(arena, base, words, mask, shifted(cols[hash + i], shift), cols[keys + i])
        cols[out + i] = arena[place + 1]


@helper
def look_up_few(arena, maps, m, cols, n, hash, code, at, count, out):
    """Up to three keys, one word."""
    base, words, mask, shift = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_MASK], maps[m + M_SHIFT]
    first, second, third = code[at], code[at + min(count, 2) - 1], code[at + count - 1]
    for i in range(n):
        if i + AHEAD < n:
            ask_for(arena, base + words * shifted(cols[hash + i + AHEAD], shift))
        a, b, c = cols[first + i], cols[second + i], cols[third + i]
        place = place_of_few(arena, base, words, mask, shifted(cols[hash + i], shift), count, a, b, c)
        cols[out + i] = arena[place + count] if arena[place] != EMPTY else np.int64(0)


@helper
def look_up_times(arena, maps, m, cols, n, hash, code, at, count, state, pc):
    """A column times the values of entries: a row that is already 0 is not looked up.

    REQUIRES: values are one integer.
    """
    given, out = code[at + count], code[at + count + 1]
    base, words, mask, shift = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_MASK], maps[m + M_SHIFT]
    if count == 1:
        keys = code[at]
        for i in range(n):
            value = cols[given + i]
            if value == 0:
                cols[out + i] = 0
            else:
                place = place_of(arena, base, words, mask, shifted(cols[hash + i], shift), cols[keys + i])
                cols[out + i] = multiply_ints(value, arena[place + 1], state, pc)
        return
    if count == 2 or count == 3:
        look_up_few(arena, maps, m, cols, n, hash, code, at, count, out)
        for i in range(n):
            cols[out + i] = multiply_ints(cols[given + i], cols[out + i], state, pc)
        return
    for i in range(n):
        if cols[given + i] == 0:
            cols[out + i] = 0
        else:
            slot = np.int64(0) if count == 0 else find(arena, maps, m, cols, hash, i, code, at, count)
            other = arena[base + slot * words + count] if slot >= 0 else np.int64(0)
            cols[out + i] = multiply_ints(cols[given + i], other, state, pc)


@helper
def look_up_product(arena, maps, cols, n, hash, keys, given, out, code, at, count, state, pc):
    """A column times the values of entries of several maps with the same key.

    REQUIRES: each map has one key and one integer.
    """
    for i in range(n):
        value, key, whole_hash = cols[given + i], cols[keys + i], cols[hash + i]
        j = 0
        while value != 0 and j < count:
            m = code[at + j]
            base, words, mask = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_MASK]
            place = place_of(arena, base, words, mask, shifted(whole_hash, maps[m + M_SHIFT]), key)
            value = multiply_ints(value, arena[place + 1], state, pc)
            j += 1
        cols[out + i] = value


@helper
def found(arena, maps, m, cols, n, hash, code, at, count):
    """1 where there is an entry; without keys, where there is any."""
    base, words, values, keys = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_VALUES], maps[m + M_KEYS]
    out = code[at + count]
    if count == 0:
        some = np.int64(0)
        for slot in range(maps[m + M_MASK] + 1):
            place = base + slot * words
            if (keys == 0 or arena[place] != EMPTY) and is_live(
                arena, value_at(arena, maps, m, place), values
            ):
                some = np.int64(1)
                break
        for i in range(n):
            cols[out + i] = some
        return
    for i in range(n):
        slot = find(arena, maps, m, cols, hash, i, code, at, count)
        is_there = slot >= 0 and is_live(arena, value_at(arena, maps, m, base + slot * words), values)
        cols[out + i] = 1 if is_there else 0


@helper
def accumulate(arena, maps, m, cols, n, hash, code, at, count, state, pc):
    """Add a value to the entry of each row.  REQUIRES: room for n more slots."""
    base, words, values = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_VALUES]
    linked, vals = maps[m + M_LINKED], at + count
    maps[m + M_UPDATES] += n
    drained = maps[m + M_DRAINED]
    is_plain = linked == 0 and drained == 0 and maps[m + M_LOGGED] < 0
    if count == 1 and values == 1 and is_plain and maps[maps[m + M_KINDS]] == INT:
        accumulate_one(arena, maps, m, cols, n, hash, code[at], code[vals], state, pc)
        return
    if count <= 3 and values == 1 and maps[maps[m + M_KINDS]] == INT:
        accumulate_few(arena, maps, m, cols, n, hash, code, at, count, state, pc)
        return
    for i in range(n):
        if i + AHEAD < n:
            prefetch(arena, base + words * shifted(cols[hash + i + AHEAD], maps[m + M_SHIFT]))
        slot = find(arena, maps, m, cols, hash, i, code, at, count)
        is_new = slot < 0
        slot = -1 - slot if is_new else slot
        place = base + slot * words
        if is_new:
            make_zero(arena, maps, m, place)
            for j in range(count):
                arena[place + j] = cols[code[at + j] + i]
        if drained != 0:
            keep_before(arena, maps, m, slot)
        was_live = is_live(arena, place + count, values)
        add_value(arena, place + count, maps, m, cols, i, code, vals, state, pc)
        note(arena, maps, m, slot)
        if is_new:
            take_slot(arena, maps, m, slot)
        elif linked != 0 and not was_live:
            link(arena, maps, m, slot)


@helper
def accumulate_one(arena, maps, m, cols, n, hash, keys, vals, state, pc):
    base, words, mask, shift = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_MASK], maps[m + M_SHIFT]
    used = np.int64(0)
    for i in range(n):
        key = cols[keys + i]
        place = place_of(arena, base, words, mask, shifted(cols[hash + i], shift), key)
        if arena[place] == EMPTY:
            arena[place] = key
            used += 1
        arena[place + 1] = add_ints(arena[place + 1], cols[vals + i], state, pc)
    maps[m + M_USED] += used


@helper
def accumulate_few(arena, maps, m, cols, n, hash, code, at, count, state, pc):
    """Up to three keys, one integer."""
    base, words, mask, shift = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_MASK], maps[m + M_SHIFT]
    first, second, third = code[at], code[at + min(count, 2) - 1], code[at + count - 1]
    vals, linked, used = code[at + count], maps[m + M_LINKED], np.int64(0)
    drained = maps[m + M_DRAINED]
    for i in range(n):
        if i + AHEAD < n:
            ask_for(arena, base + words * shifted(cols[hash + i + AHEAD], shift))
        if linked != 0:
            ask_for_chains(arena, maps, m, cols, n, code, at, i + AHEAD, False)
            ask_for_chains(arena, maps, m, cols, n, code, at, i + AHEAD // 2, True)
        a, b, c = cols[first + i], cols[second + i], cols[third + i]
        place = place_of_few(arena, base, words, mask, shifted(cols[hash + i], shift), count, a, b, c)
        was = arena[place + count]
        if arena[place] == EMPTY:
            was = np.int64(0)
            if linked != 0 or drained != 0:
                make_zero(arena, maps, m, place)
            arena[place] = a
            if count > 1:
                arena[place + count - 1] = c
                arena[place + 1] = b
            used += 1
        if drained != 0 and arena[place + drained] == 0:
            keep_before(arena, maps, m, (place - base) // words)
        arena[place + count] = add_ints(was, cols[vals + i], state, pc)
        note(arena, maps, m, (place - base) // words)
        if linked != 0 and was == 0:
            link(arena, maps, m, (place - base) // words)
    maps[m + M_USED] += used


@helper
def add_total(arena, maps, m, cols, n, code, vals, state, pc):
    """Add all rows to the one entry of a map without keys."""
    base = maps[m + M_BASE]
    if n > 0:
        maps[m + M_USED] = 1
        if maps[m + M_DRAINED] != 0:
            keep_before(arena, maps, m, 0)
    if maps[m + M_VALUES] == 1 and maps[maps[m + M_KINDS]] == INT:
        total, column = arena[base], code[vals]
        for i in range(n):
            total = add_ints(total, cols[column + i], state, pc)
        arena[base] = total
    else:
        for i in range(n):
            add_value(arena, base, maps, m, cols, i, code, vals, state, pc)


@helper
def add_value(arena, at, maps, m, cols, i, code, vals, state, pc):
    """Add row i's value to the words at a place."""
    kinds = maps[m + M_KINDS]
    for v in range(maps[m + M_VALUES]):
        kind, word = maps[kinds + v], cols[code[vals + v] + i]
        if kind == INT:
            arena[at + v] = add_ints(arena[at + v], word, state, pc)
        elif kind == FLOAT:
            arena[at + v] = to_bits(to_float(arena[at + v]) + to_float(word) + 0.0)
        elif kind == DOUBLED:
            low = to_float(cols[code[vals + v + 1] + i])
            high, low = sum_of_doubled(
                to_float(arena[at + v]), to_float(arena[at + v + 1]), to_float(word), low
            )
            arena[at + v] = to_bits(high)
            arena[at + v + 1] = to_bits(low)


@helper
def make_slots(arena, maps, m, cols, n, hash, code, at, count):
    """The slot of each row, made where there is none.  REQUIRES: room for n more slots."""
    base, words, out, apart = maps[m + M_BASE], maps[m + M_WORDS], code[at + count], maps[m + M_APART]
    maps[m + M_UPDATES] += n
    if apart != 0 and count == 1:
        make_elements(arena, maps, m, cols, n, hash, code[at], out)
        return
    if apart == 0 and 0 < count <= 3:
        make_few_slots(arena, maps, m, cols, n, hash, code, at, count, out)
        return
    for i in range(n):
        if count > 0 and i + AHEAD < n:
            prefetch(arena, base + words * shifted(cols[hash + i + AHEAD], maps[m + M_SHIFT]))
        slot = np.int64(0) if count == 0 else find(arena, maps, m, cols, hash, i, code, at, count)
        is_new = slot < 0
        slot = -1 - slot if is_new else slot
        if is_new:
            make_zero(arena, maps, m, base + slot * words)
            for j in range(count):
                arena[base + slot * words + j] = cols[code[at + j] + i]
            take_slot(arena, maps, m, slot)
        elif maps[m + M_LINKED] != 0:
            link(arena, maps, m, slot)
        note(arena, maps, m, slot)
        cols[out + i] = slot if apart == 0 else direct(arena, base + slot * words, count)
    if count == 0 and n > 0:
        maps[m + M_USED] = 1


@helper
def make_few_slots(arena, maps, m, cols, n, hash, code, at, count, out):
    """Of a map with up to three keys whose values are in its slots."""
    base, words, mask, shift = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_MASK], maps[m + M_SHIFT]
    first, second, third = code[at], code[at + min(count, 2) - 1], code[at + count - 1]
    linked = maps[m + M_LINKED]
    for i in range(n):
        if i + AHEAD < n:
            ask_for(arena, base + words * shifted(cols[hash + i + AHEAD], shift))
        a, b, c = cols[first + i], cols[second + i], cols[third + i]
        place = place_of_few(arena, base, words, mask, shifted(cols[hash + i], shift), count, a, b, c)
        slot = (place - base) // words
        if arena[place] == EMPTY:
            make_zero(arena, maps, m, place)
            arena[place] = a
            if count > 1:
                arena[place + count - 1] = c
                arena[place + 1] = b
            take_slot(arena, maps, m, slot)
        elif linked != 0:
            link(arena, maps, m, slot)
        note(arena, maps, m, slot)
        cols[out + i] = slot


@helper
def make_elements(arena, maps, m, cols, n, hash, keys, out):
    """Of a map with one key whose elements lie apart."""
    base, words, shift = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_SHIFT]
    for i in range(n):
        if i + AHEAD < n:
            prefetch(arena, base + words * shifted(cols[hash + i + AHEAD], shift))
        cols[out + i] = make_slot(arena, maps, m, cols[hash + i], cols[keys + i])


@helper
def make_slot(arena, maps, m, hash, key):
    """The slot of a key, or its element if that lies apart, made if there is none.

    REQUIRES: one key, no index, room for one more slot.
    """
    base, words = maps[m + M_BASE], maps[m + M_WORDS]
    place = place_of(arena, base, words, maps[m + M_MASK], shifted(hash, maps[m + M_SHIFT]), key)
    if arena[place] == EMPTY:
        make_zero(arena, maps, m, place)
        arena[place] = key
        maps[m + M_USED] += 1
    return direct(arena, place, 1) if maps[m + M_APART] != 0 else (place - base) // words


@helper
def forget(arena, maps, m, cols, n, hash, code, at, count):
    """Make the entries of rows 0."""
    base, words = maps[m + M_BASE], maps[m + M_WORDS]
    maps[m + M_UPDATES] += n
    for i in range(n):
        slot = np.int64(0) if count == 0 else find(arena, maps, m, cols, hash, i, code, at, count)
        if slot >= 0:
            make_value_zero(arena, maps, m, base + slot * words)
            note(arena, maps, m, slot)


@helper
def erase(arena, maps, m, cols, n, slots):
    """Make the entries in slots 0."""
    base, words = maps[m + M_BASE], maps[m + M_WORDS]
    maps[m + M_UPDATES] += n
    for i in range(n):
        make_value_zero(arena, maps, m, base + cols[slots + i] * words)
        note(arena, maps, m, cols[slots + i])


@helper
def make_value_zero(arena, maps, m, at):
    """The value of the slot at a place."""
    if maps[m + M_DRAINED] != 0:
        keep_before(arena, maps, m, (at - maps[m + M_BASE]) // maps[m + M_WORDS])
    value = value_at(arena, maps, m, at)
    if is_exact(maps, m):
        make_exact_zero(arena, maps, m, value)
        return
    for v in range(maps[m + M_VALUES]):
        arena[value + v] = 0
