"""Owns the order of records: field by field from the left, `nil` first, branches as they are declared.

Rules do not compare records; results are sorted in this order.  The arrays of types are those of
`text_kernels`; texts are compared by `ranks`.
"""

from __future__ import annotations

from dlog.jit import Bytes, Words, helper, kernel
from dlog.storage.arena.pointer import pointer
from dlog.storage.dictionary.records.layout import FIRST_ID, HEADER
from dlog.storage.dictionary.records.record_kernels import place_of


@helper
def compared(
    a: int, b: int, types: Words, fields: Words, slots: Words, is_text: Bytes, ranks: Words,
    constructors: Words, directory: Words, places: Words, heap: Words, stack: Words, room: int,
) -> int:  # fmt: skip
    """-1, 0 or 1; 2 if the stack is too small.  O(fields before the first that differs)."""
    stack[0] = a
    stack[1] = b
    stack[2] = 0
    depth = 3
    while depth > 0:
        depth -= 3
        a, b, slot = stack[depth], stack[depth + 1], stack[depth + 2]
        if a == b:
            continue
        if slot < 0:
            if is_text[~slot] != 0:
                a, b = ranks[a], ranks[b]
            return -1 if a < b else 1
        number_a, number_b = a, b
        place_a, place_b = 0, 0
        if a >= FIRST_ID:
            place_a = place_of(a - FIRST_ID, directory, places)
            number_a = constructors[heap[place_a + 1]]
        if b >= FIRST_ID:
            place_b = place_of(b - FIRST_ID, directory, places)
            number_b = constructors[heap[place_b + 1]]
        if number_a != number_b or a < FIRST_ID or b < FIRST_ID:
            if number_a != number_b and types[slot] + 1 < types[slot + 1]:
                return -1 if number_a < number_b else 1
            return -1 if a < b else 1  # `nil`, `[]`, then records
        k = types[slot] + number_a
        arity = fields[k + 1] - fields[k]
        if depth + 3 * arity > room:
            return 2
        for c in range(arity - 1, -1, -1):
            stack[depth] = heap[place_a + HEADER + c]
            stack[depth + 1] = heap[place_b + HEADER + c]
            stack[depth + 2] = slots[fields[k] + c]
            depth += 3
    return 0


@kernel
def sort_records(
    codes: Words,
    types: Words,
    fields: Words,
    slots: Words,
    is_text: Bytes,
    rank_words: Words,
    constructor_words: Words,
    directory: Words,
    place_words: Words,
    heap_words: Words,
    stack_words: Words,
    other: Words,
) -> int:
    """Sort distinct codes of one type, in place; 1 if the stack is too small.  O(n log n) comparisons.

    `other` has room for as many.  The number of a type is followed by that of the next one's constructors.
    """
    pages, places, heap = pointer(directory), pointer(place_words), pointer(heap_words)
    ranks, constructors, stack = pointer(rank_words), pointer(constructor_words), pointer(stack_words)
    n, width = len(codes), 1
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for k in range(low, high):
                take_left = 1 if i < middle else 0
                if i < middle and j < high:
                    order = compared(
                        codes[i], codes[j], types, fields, slots, is_text, ranks, constructors, pages, places,
                        heap, stack, len(stack_words),
                    )  # fmt: skip
                    if order == 2:
                        return 1
                    take_left = 1 if order <= 0 else 0
                if take_left == 1:
                    other[k] = codes[i]
                    i += 1
                else:
                    other[k] = codes[j]
                    j += 1
        for k in range(n):
            codes[k] = other[k]
        width *= 2
    return 0
