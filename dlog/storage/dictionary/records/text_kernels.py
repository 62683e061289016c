"""Owns the walk through records that writes them: tokens, from which texts are joined.  Knows no texts.

A type has a number; its constructors are `types[t]` and those after it.  Constructor k has the fields
slots[fields[k]:fields[k + 1]]: the number of a type of records, or ~n for the n-th type of other values.  Its
tokens are 4 * k + (BEGIN, END, ALONE); NIL and COMMA come before all of them.
"""

from __future__ import annotations

from typing import Final

from dlog.jit import Words, kernel
from dlog.storage.arena.pointer import pointer
from dlog.storage.dictionary.records.layout import EMPTY, FIRST_ID, HEADER
from dlog.storage.dictionary.records.record_kernels import place_of

NIL: Final = 0
COMMA: Final = 1
GONE: Final = 2  # a record that was collected
OTHERS: Final = 3  # tokens that no constructor has
BEGIN: Final = 0
END: Final = 1
ALONE: Final = 2
PER_CONSTRUCTOR: Final = 3
FULL: Final = -1


@kernel
def write_tokens(
    codes: Words,
    type_number: int,
    is_adt: Words,
    types: Words,
    fields: Words,
    slots: Words,
    constructors: Words,
    directory: Words,
    place_words: Words,
    heap_words: Words,
    stack: Words,
    tokens: Words,
    leaves: Words,
    ends: Words,
) -> int:
    """The tokens of each value, up to ends[i]; those of other values are ~n, with the code among `leaves`.

    Returns how many there are; only as many as there is room for are written.  FULL: the stack is too small.
    """
    pages, places, heap = pointer(directory), pointer(place_words), pointer(heap_words)
    n, room = 0, len(tokens)
    for i in range(len(codes)):
        stack[0] = codes[i]
        stack[1] = type_number
        depth = 2
        while depth > 0:  # pairs of a code and its slot, or of a token and the number of types
            depth -= 2
            code, slot = stack[depth], stack[depth + 1]
            token = code
            if slot < 0:
                token = slot
            elif slot < len(is_adt):
                token = NIL
                if code < FIRST_ID and is_adt[slot] != 0:
                    token = OTHERS + PER_CONSTRUCTOR * (types[slot] + code) + ALONE
                elif code == EMPTY:
                    token = OTHERS + PER_CONSTRUCTOR * types[slot] + ALONE
                elif code >= FIRST_ID:
                    place = place_of(code - FIRST_ID, pages, places)
                    token = GONE
                    if place >= 0:
                        k = types[slot] + constructors[heap[place + 1]]
                        token = OTHERS + PER_CONSTRUCTOR * k + BEGIN
                        arity = fields[k + 1] - fields[k]
                        if depth + 4 * arity + 2 > len(stack):
                            return FULL
                        stack[depth] = OTHERS + PER_CONSTRUCTOR * k + END
                        stack[depth + 1] = len(is_adt)
                        depth += 2
                        for c in range(arity - 1, -1, -1):
                            stack[depth] = heap[place + HEADER + c]
                            stack[depth + 1] = slots[fields[k] + c]
                            depth += 2
                            if c > 0:
                                stack[depth] = COMMA
                                stack[depth + 1] = len(is_adt)
                                depth += 2
            if n < room:
                tokens[n] = token
                leaves[n] = code
            n += 1
        ends[i + 1] = n
    return n
