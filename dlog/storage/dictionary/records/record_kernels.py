"""Owns the kernels of a table of records: storing, taking apart, marking and sweeping.  See `layout`.

A record that is gone has no place: no field of it is defined.  Nothing here recurses.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import Bytes, Words, helper, kernel, prefetch
from dlog.storage.arena.pointer import pointer
from dlog.storage.dictionary.byte_kernels import FACTOR_END, HASH_MASK, mixed
from dlog.storage.dictionary.records.layout import (
    ABSENT,
    AHEAD,
    FIRST_ID,
    HEADER,
    LIVE,
    NEXT,
    NUMBER_BITS,
    NUMBER_MASK,
    PAGE,
    PAGE_BITS,
    RECORD,
    TAG_SHIFT,
    USED,
)


@helper
def place_of(number: int, directory: Words, places: Words) -> int:
    """Where in the heap a record is, or ABSENT.  REQUIRES: the number was given out."""
    block = directory[number >> PAGE_BITS]
    return places[(block << PAGE_BITS) + (number & (PAGE - 1))] if block >= 0 else ABSENT


@helper
def hash_fields(shape: int, data: Words, base: int, stride: int, arity: int) -> int:
    """31 bits.  Field c is data[base + c * stride]."""
    h = mixed(0, shape)
    for c in range(arity):
        h = mixed(h, data[base + c * stride])
    product = (h ^ (h >> 15)) * FACTOR_END
    return (product ^ (product >> 31)) & HASH_MASK


@helper
def slot_word(hashed: int, number: int) -> int:
    return ((hashed >> TAG_SHIFT) << NUMBER_BITS) | (number + 1)


@helper
def slot_of(
    shape: int, data: Words, base: int, stride: int, arity: int, hashed: int, slots: Words, mask: int,
    directory: Words, places: Words, heap: Words,
) -> int:  # fmt: skip
    """The slot of the record with these fields, or the empty one where it belongs.  O(1) expected."""
    at = hashed & mask
    while slots[at] != 0:
        if slots[at] >> NUMBER_BITS == hashed >> TAG_SHIFT:
            place = place_of((slots[at] & NUMBER_MASK) - 1, directory, places)
            if heap[place + 1] == shape:
                c = 0
                while c < arity and heap[place + HEADER + c] == data[base + c * stride]:
                    c += 1
                if c == arity:
                    return at
        at = (at + 1) & mask
    return at


@helper
def code_of(
    shape: int, data: Words, base: int, stride: int, arity: int, hashed: int, slots: Words, mask: int,
    directory: Words, places: Words, heap: Words, meta: Words,
) -> int:  # fmt: skip
    """The code of a record, which is stored if it is new.  REQUIRES: there is room for it."""
    at = slot_of(shape, data, base, stride, arity, hashed, slots, mask, directory, places, heap)
    if slots[at] == 0:
        number, used = meta[NEXT], meta[USED]
        heap[used] = number
        heap[used + 1] = shape
        for c in range(arity):
            heap[used + HEADER + c] = data[base + c * stride]
        places[(directory[number >> PAGE_BITS] << PAGE_BITS) + (number & (PAGE - 1))] = used
        slots[at] = slot_word(hashed, number)
        meta[NEXT] = number + 1
        meta[USED] = used + HEADER + arity
        meta[LIVE] += 1
    return (slots[at] & NUMBER_MASK) - 1 + FIRST_ID


@kernel
def store_rows(
    shape: int,
    columns: Words,
    arity: int,
    n: int,
    slot_words: Words,
    directory: Words,
    place_words: Words,
    heap_words: Words,
    meta_words: Words,
    out: Words,
) -> None:
    """Codes of n records of one shape: field c of record i is word c * n + i.  REQUIRES: there is room."""
    slots, places, heap = pointer(slot_words), pointer(place_words), pointer(heap_words)
    pages, data, meta = pointer(directory), pointer(columns), pointer(meta_words)
    mask = len(slot_words) - 1
    for first in range(0, n, AHEAD):
        last = min(n, first + AHEAD)
        for i in range(first, last):
            out[i] = hash_fields(shape, data, i, n, arity)
            prefetch(slots, out[i] & mask)
        for i in range(first, last):
            out[i] = code_of(shape, data, i, n, arity, out[i], slots, mask, pages, places, heap, meta)


@kernel
def store_nodes(
    shapes: Words,
    starts: Words,
    words: Words,
    is_node: Bytes,
    n: int,
    slot_words: Words,
    directory: Words,
    place_words: Words,
    heap_words: Words,
    meta_words: Words,
    out: Words,
) -> None:
    """Codes of n records of any shapes, each after the records that are its fields.  REQUIRES: there is room.

    The fields of node i are words[starts[i]:starts[i + 1]]; one that is a node has its place among the nodes.
    """
    slots, places, heap = pointer(slot_words), pointer(place_words), pointer(heap_words)
    pages, data, meta = pointer(directory), pointer(words), pointer(meta_words)
    mask = len(slot_words) - 1
    for i in range(n):
        for j in range(starts[i], starts[i + 1]):
            if is_node[j] != 0:
                words[j] = out[words[j]]
        arity = starts[i + 1] - starts[i]
        hashed = hash_fields(shapes[i], data, starts[i], 1, arity)
        out[i] = code_of(shapes[i], data, starts[i], 1, arity, hashed, slots, mask, pages, places, heap, meta)


@kernel
def restore_rows(
    numbers: Words,
    shapes: Words,
    words: Words,
    shape_starts: Words,
    directory: Words,
    place_words: Words,
    heap_words: Words,
    meta_words: Words,
) -> None:
    """Put records back under their numbers, where they are not known.  REQUIRES: there is room; the hash
    table is made afterwards."""
    pages, places, heap = pointer(directory), pointer(place_words), pointer(heap_words)
    at = 0
    for i in range(len(numbers)):
        number, size = numbers[i], shape_starts[shapes[i] + 1] - shape_starts[shapes[i]]
        if place_of(number, pages, places) == ABSENT:
            used = meta_words[USED]
            heap[used] = number
            heap[used + 1] = shapes[i]
            for c in range(size):
                heap[used + HEADER + c] = words[at + c]
            places[(pages[number >> PAGE_BITS] << PAGE_BITS) + (number & (PAGE - 1))] = used
            meta_words[USED] = used + HEADER + size
            meta_words[LIVE] += 1
        at += size


@kernel
def read_fields(
    codes: Words,
    number: int,
    index: int,
    constructors: Words,
    directory: Words,
    place_words: Words,
    heap_words: Words,
    out: Words,
    defined: Bytes,
) -> int:
    """Field `index` of each record that the constructor with this number made; returns how many are."""
    pages, places, heap = pointer(directory), pointer(place_words), pointer(heap_words)
    found = 0
    for i in range(len(codes)):
        defined[i] = 0
        out[i] = 0
        if codes[i] >= FIRST_ID:
            place = place_of(codes[i] - FIRST_ID, pages, places)
            if place >= 0 and constructors[heap[place + 1]] == number:
                out[i] = heap[place + HEADER + index]
                defined[i] = 1
                found += 1
    return found


# Collection


@kernel
def mark(
    codes: Words,
    kinds: Words,
    shape_starts: Words,
    directory: Words,
    place_words: Words,
    heap_words: Words,
    marked: Bytes,
    stack: Words,
) -> None:
    """Mark the records with these codes and all that are in their fields, by their places in the heap.

    REQUIRES: the stack has room for every record of the heap; each is on it at most once.
    """
    pages, places, heap = pointer(directory), pointer(place_words), pointer(heap_words)
    todo, seen = pointer(stack), pointer(marked)
    for i in range(len(codes)):
        depth = with_unmarked(codes[i], pages, places, seen, todo, 0)
        while depth > 0:
            depth -= 1
            place = todo[depth]
            shape = heap[place + 1]
            first = shape_starts[shape]
            for c in range(shape_starts[shape + 1] - first):
                if kinds[first + c] == RECORD:
                    depth = with_unmarked(heap[place + HEADER + c], pages, places, seen, todo, depth)


@helper
def with_unmarked(code: int, pages: Words, places: Words, marked: Bytes, stack: Words, depth: int) -> int:
    """The depth of the stack with a record on it, if it was not marked."""
    if code < FIRST_ID:
        return depth
    place = place_of(code - FIRST_ID, pages, places)
    if place < 0 or marked[place] != 0:
        return depth
    marked[place] = 1
    stack[depth] = place
    return depth + 1


@kernel
def sweep(
    heap: Words,
    used: int,
    marked: Bytes,
    shape_starts: Words,
    new_heap: Words,
    directory: Words,
    new_places: Words,
    meta: Words,
) -> None:
    """Copy the marked records to an empty heap, and note their places.  The hash table is made afterwards."""
    at, to, live = 0, 0, 0
    while at < used:
        number, shape = heap[at], heap[at + 1]
        size = HEADER + shape_starts[shape + 1] - shape_starts[shape]
        if marked[at] != 0:
            for c in range(size):
                new_heap[to + c] = heap[at + c]
            new_places[(directory[number >> PAGE_BITS] << PAGE_BITS) + (number & (PAGE - 1))] = to
            to += size
            live += 1
        at += size
    meta[USED] = to
    meta[LIVE] = live


@kernel
def fill_slots(heap_words: Words, used: int, shape_starts: Words, slot_words: Words) -> None:
    """Fill an empty hash table with all records of a heap, which are distinct."""
    heap, slots, mask = pointer(heap_words), pointer(slot_words), len(slot_words) - 1
    words = np.empty(AHEAD, np.int64)
    hashes = np.empty(AHEAD, np.int64)
    at = 0
    while at < used:
        n = 0
        while at < used and n < AHEAD:
            shape = heap[at + 1]
            arity = shape_starts[shape + 1] - shape_starts[shape]
            hashes[n] = hash_fields(shape, heap, at + HEADER, 1, arity)
            words[n] = slot_word(hashes[n], heap[at])
            prefetch(slots, hashes[n] & mask)
            at += HEADER + arity
            n += 1
        for i in range(n):
            slot = hashes[i] & mask
            while slots[slot] != 0:
                slot = (slot + 1) & mask
            slots[slot] = words[i]
