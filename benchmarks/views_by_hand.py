"""Kernels for exactly the queries of `views`: the cofactor of the star, and the sum over the snowflake.

Their tables are as large as they will ever need to be, keys are small numbers if that helps, and nothing
is checked.
"""

from __future__ import annotations

import numpy as np

from benchmarks.m3 import BATCH
from dlog.jit import Floats, Words, add_four, helper, kernel, pointer, prefetch

# The cofactor

AHEAD = 16  # rows whose postcodes are prefetched before they are looked up; elements a quarter of that

# Of each relation its variables, and where its element is among those of a postcode, a count before its sums.
SIZES = (10, 5, 2, 2, 4, 3)
PLACES = (0, 66, 87, 93, 99, 114)
ELEMENTS, LIFTED, RESULT = 124, 66, 406


def cofactor_by_hand(batches: list[tuple[int, Words]], turn: int, postcodes: int) -> list[float]:
    """The elements of a postcode side by side, and a table from postcodes to their numbers."""
    size = 1 << int(4 * postcodes).bit_length()
    table, elements = np.full(2 * size + 1, -1, np.int64), np.zeros(ELEMENTS * postcodes + LIFTED)
    table[-1] = 0  # how many postcodes there are
    result = np.zeros(RESULT)
    if turn:
        words, n = np.concatenate([part.reshape(-1) for _, part in batches]), batches[0][1].shape[1]
        cofactor_rows(words, n, 0, 1, 6 * n, table, elements, size, result)
    else:
        for relation, part in batches:
            n = part.shape[1]
            cofactor_rows(part.reshape(-1), n, relation, 0, n, table, elements, size, result)
    return result.tolist()


@kernel
def cofactor_rows(
    rows: Words, stride: int, relation: int, turn: int, n: int, table: Words, element: Floats, size: int,
    result: Floats,
) -> None:  # fmt: skip
    """Rows of one relation, a batch; with `turn` 1, of all in turns, which then lie one after the other in
    `rows`.

    For a batch first all postcodes are looked up, then elements are multiplied: so both can be
    prefetched.  Rows in turns are looked up and done one after the other; memory is prefetched in the same
    way.
    """
    keys, elements, out, given = pointer(table), pointer(element), pointer(result), pointer(rows)
    scratch = np.zeros(64)
    x = pointer(scratch)
    shift, mask, lifted = 64, size - 1, len(element) - LIFTED
    while (1 << (64 - shift)) < size:
        shift -= 1
    places = np.zeros(n if turn == 0 else 1, np.int64)
    for i in range(n if turn == 0 else 0):
        if i + AHEAD < n:
            prefetch(keys, 2 * slot_of(given[i + AHEAD], shift))
        places[i] = place_of(keys, given[i], shift, mask, size)
    for i in range(n):
        near = i + AHEAD // 4
        if turn == 0 and near < n:
            ask_for(elements, places[near])
        if turn != 0 and i + AHEAD < n:
            own, row, base = where(i + AHEAD, relation, turn, stride)
            prefetch(keys, 2 * slot_of(given[base + row], shift))
        if turn != 0 and near < n:
            own, row, base = where(near, relation, turn, stride)
            slot = find_slot(keys, given[base + row], shift, mask)
            if keys[2 * slot] != -1:
                ask_for(elements, ELEMENTS * keys[2 * slot + 1])
        own, row, base = where(i, relation, turn, stride)
        key, width = given[base + row], SIZES[own]
        mine = places[i] if turn == 0 else place_of(keys, key, shift, mask, size)
        words = 1 + width + width * (width + 1) // 2
        lift(elements, lifted, given, base + stride + row, stride, width)
        times = float(given[base + (width + 1) * stride + row])
        add_times(elements, mine + PLACES[own], elements, lifted, times, words)
        e0 = lifted if own == 0 else mine
        e1 = lifted if own == 1 else mine + 66
        e2 = lifted if own == 2 else mine + 87
        e3 = lifted if own == 3 else mine + 93
        e4 = lifted if own == 4 else mine + 99
        e5 = lifted if own == 5 else mine + 114
        c0, c1, c2 = elements[e0], elements[e1], elements[e2]
        c3, c4, c5 = elements[e3], elements[e4], elements[e5]
        b1 = times * c0
        b2 = b1 * c1
        b3 = b2 * c2
        b4 = b3 * c3
        b5 = b4 * c4
        every = b5 * c5
        if every == 0.0:
            continue
        a4 = c5
        a3 = a4 * c4
        a2 = a3 * c3
        a1 = a2 * c2
        a0 = a1 * c1
        # T, the sums of the product of the later relations: of x[24:27], then of more and more.
        behind(out, elements, e5, 3, 24, b5, 1.0, x)
        behind(out, elements, e4, 4, 20, b4, a4, x)
        scaled(x, 24, 3, c4)
        behind(out, elements, e3, 2, 18, b3, a3, x)
        scaled(x, 20, 7, c3)
        behind(out, elements, e2, 2, 16, b2, a2, x)
        scaled(x, 18, 9, c2)
        behind(out, elements, e1, 5, 11, b1, a1, x)
        scaled(x, 16, 11, c1)
        behind(out, elements, e0, 10, 1, times, a0, x)
        scaled(x, 11, 16, c0)
        postcode = float(key)
        out[0] += every
        out[1] += every * postcode
        out[28] += every * postcode * postcode
        add_times(out, 29, x, 1, times * postcode, 26)


@helper
def where(i, relation, turn, stride):
    """Its relation, the row there, and where the relation's rows begin."""
    if turn == 0:
        return relation, i, 0
    own, base = i % 6, 0
    for r in range(own):
        base += (SIZES[r] + 2) * stride
    return own, i // 6, base


@helper
def slot_of(key, shift):
    start = np.uint64(np.int64(key * np.int64(-7046029254386353131)).view(np.uint64) >> np.uint64(shift))
    return np.uint64(start).view(np.int64)


@helper
def find_slot(keys, key, shift, mask):
    """That of a postcode, or the empty one where it would be."""
    slot = slot_of(key, shift)
    while keys[2 * slot] != key and keys[2 * slot] != -1:
        slot = (slot + 1) & mask
    return slot


@helper
def place_of(keys, key, shift, mask, size):
    """Where the elements of a postcode begin, which may be new."""
    slot = find_slot(keys, key, shift, mask)
    if keys[2 * slot] == -1:
        keys[2 * slot], keys[2 * slot + 1] = key, keys[2 * size]
        keys[2 * size] += 1
    return ELEMENTS * keys[2 * slot + 1]


@helper
def ask_for(elements, place):
    for line in range(0, ELEMENTS, 8):
        prefetch(elements, place + line)


@helper
def add_times(out, at, x, x_at, factor, n):
    for q in range(0, n - 3, 4):
        add_four(out, at + q, x, x_at + q, factor)
    for q in range(n // 4 * 4, n):
        out[at + q] += factor * x[x_at + q]


@helper
def lift(elements, at, rows, first, stride, width):
    elements[at] = 1.0
    for p in range(width):
        elements[at + 1 + p] = float(rows[first + p * stride])
    to = at + 1 + width
    for p in range(width):
        for q in range(p, width):
            elements[to] = elements[at + 1 + p] * elements[at + 1 + q]
            to += 1


@helper
def behind(out, elements, at, width, first, before, after, x):
    """Add the contribution of one relation: its own numbers, and its sums times those after it."""
    weight, rest, triangle = before * after, 27 - first - width, at + 1 + width
    for p in range(width):
        out[1 + first + p] += weight * elements[at + 1 + p]
        a = first + p
        row = 28 + a * (53 - a) // 2
        add_times(out, row + a, elements, triangle, weight, width - p)
        triangle += width - p
        behind_p = row + first + width
        add_times(out, behind_p, x, first + width, before * elements[at + 1 + p], rest)
    for p in range(width):
        x[first + p] = after * elements[at + 1 + p]


@helper
def scaled(x, first, n, factor):
    for q in range(n):
        x[first + q] *= factor


# The snowflake


def snowflake_by_hand(data: dict[str, Words]) -> int:
    """Counts of the dimensions in arrays by their keys, and one pass over the facts that also computes what
    changes of the dimensions would need: sums of units by location, date and item, and, times what is known
    of items and of weather, by location and date and by location.
    """
    location, census, item, weather = (data[n] for n in ("LOCATION", "CENSUS", "ITEM", "WEATHER"))
    facts = data["INVENTORY"]
    places, days, items = (int(facts[j].max()) + 1 for j in range(3))
    places = max(places, int(location[0].max()) + 1, int(weather[0].max()) + 1)
    days, items = max(days, int(weather[1].max()) + 1), max(items, int(item[0].max()) + 1)
    of_zip = np.bincount(census[0], minlength=int(location[1].max()) + 1)
    of_place = np.bincount(location[0], of_zip[location[1]], places).astype(np.int64)
    of_item = np.bincount(item[0], minlength=items)
    of_day = np.bincount(weather[0] * days + weather[1], minlength=places * days)
    size = 1 << int(4 * facts.shape[1]).bit_length()
    table = np.full(2 * size, -1, np.int64)
    by_day, by_place = np.zeros_like(of_day), np.zeros_like(of_place)
    result = 0
    for start in range(0, facts.shape[1], BATCH):
        part = np.ascontiguousarray(facts[:, start : start + BATCH])
        n = part.shape[1]
        rows = part.reshape(-1)
        result += facts_by_hand(
            rows, n, days, items, of_place, of_item, of_day, by_day, by_place, table, size
        )
    return result


@kernel
def facts_by_hand(
    rows: Words, n: int, days: int, items: int, of_place: Words, of_item: Words, of_day: Words, by_day: Words,
    by_place: Words, words: Words, size: int,
) -> int:  # fmt: skip
    table = pointer(words)
    shift, mask, result = 64, size - 1, 0
    while (1 << (64 - shift)) < size:
        shift -= 1
    for i in range(n):
        place, day, item, units = rows[i], rows[n + i], rows[2 * n + i], rows[3 * n + i]
        pair = place * days + day
        key = pair * items + item
        slot = slot_of(key, shift)
        while table[2 * slot] != key and table[2 * slot] != -1:
            slot = (slot + 1) & mask
        if table[2 * slot] == -1:
            table[2 * slot], table[2 * slot + 1] = key, 0
        table[2 * slot + 1] += units
        units *= of_item[item]
        by_day[pair] += units
        units *= of_day[pair]
        by_place[place] += units
        result += units * of_place[place]
    return result
