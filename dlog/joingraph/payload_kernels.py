"""Owns the payload rows of join tuples: adding, removing and finding them.

A join tuple with one payload row has it in its record, with several in a block.  Rows are sought one by one,
in a join tuple with more than G_INDEXED of them by the atom's index.
"""

from __future__ import annotations

from dlog.jit import helper
from dlog.joingraph.layout import (
    G_INDEXED,
    I_BASE,
    I_MASK,
    ID_MASK,
    NUMBER_BITS,
    NUMBER_MASK,
    ROWS,
    T_BLOCKS,
    T_COUNTED,
    T_PAYLOAD,
    T_PAYLOAD_AT,
    T_ROW,
    T_ROW_INDEX,
    T_VERTICES,
)
from dlog.joingraph.memory_kernels import (
    SEED,
    add_entry,
    find_from,
    give_back,
    mix,
    place_of,
    remove_entry,
    take,
)


@helper
def rows_at(A, words, atom, tuple):
    """Where the payload rows of a join tuple are."""
    at = tuple + words[atom + T_VERTICES]
    return at + 1 if A[at] >> NUMBER_BITS == 0 else A[at + 1]


@helper
def given_hash(words, atom, tuple, rows, at):
    """The hash of the payload of a row that is given."""
    hash = mix(SEED, tuple)
    for w in range(words[atom + T_PAYLOAD]):
        hash = mix(hash, rows[at + words[words[atom + T_PAYLOAD_AT] + w]])
    return hash


@helper
def stored_hash(A, words, atom, tuple, row):
    hash = mix(SEED, tuple)
    for w in range(words[atom + T_PAYLOAD]):
        hash = mix(hash, A[row + w])
    return hash


@helper
def is_row(A, words, atom, row, rows, at):
    """Whether the stored row at a place is the payload of the given one."""
    for w in range(words[atom + T_PAYLOAD]):
        if A[row + w] != rows[at + words[words[atom + T_PAYLOAD_AT] + w]]:
            return False
    return True


@helper
def find_row(A, words, atom, tuple, rows, at):
    """The number of the payload row of a given row, or -1."""
    number = A[tuple + words[atom + T_VERTICES]] & NUMBER_MASK
    first, width = rows_at(A, words, atom, tuple), words[atom + T_ROW]
    if number > words[G_INDEXED]:
        return find_indexed(A, words, atom, tuple, rows, at)
    for i in range(number):
        if is_row(A, words, atom, first + i * width, rows, at):
            return i
    return -1


@helper
def find_indexed(A, words, atom, tuple, rows, at):
    """An entry of another join tuple may have the same hash and number: then the row of this one is compared,
    and if it is the right one, it has the same entry.
    """
    number = A[tuple + words[atom + T_VERTICES]] & NUMBER_MASK
    first, width = rows_at(A, words, atom, tuple), words[atom + T_ROW]
    index, hash = atom + T_ROW_INDEX, given_hash(words, atom, tuple, rows, at)
    base, mask = words[index + I_BASE], words[index + I_MASK]
    place = find_from(A, words, index, hash, hash)
    while A[base + place] != 0:
        i = (A[base + place] & ID_MASK) - 1
        if i < number and is_row(A, words, atom, first + i * width, rows, at):
            return i
        place = find_from(A, words, index, hash, (place + 1) & mask)
    return -1


@helper
def add_row(A, words, atom, tuple, rows, at):
    """The payload of a given row, once more."""
    header = tuple + words[atom + T_VERTICES]
    if words[atom + T_PAYLOAD] == 0:
        A[header] += 1
        return
    i = find_row(A, words, atom, tuple, rows, at) if words[atom + T_COUNTED] == 1 else -1
    if i >= 0:
        A[rows_at(A, words, atom, tuple) + i * words[atom + T_ROW] + words[atom + T_PAYLOAD]] += 1
        return
    number, capacity = A[header] & NUMBER_MASK, A[header] >> NUMBER_BITS
    if number == 1 << capacity:
        set_row_capacity(A, words, atom, tuple, capacity + 1)
    row = rows_at(A, words, atom, tuple) + number * words[atom + T_ROW]
    for w in range(words[atom + T_PAYLOAD]):
        A[row + w] = rows[at + words[words[atom + T_PAYLOAD_AT] + w]]
    if words[atom + T_COUNTED] == 1:
        A[row + words[atom + T_PAYLOAD]] = 1
    A[header] += 1
    if number == words[G_INDEXED]:
        index_rows(A, words, atom, tuple, number + 1)
    elif number > words[G_INDEXED]:
        add_entry(A, words, atom + T_ROW_INDEX, stored_hash(A, words, atom, tuple, row), number + 1)


@helper
def index_rows(A, words, atom, tuple, number):
    """Put all rows into the index."""
    first, width = rows_at(A, words, atom, tuple), words[atom + T_ROW]
    for i in range(number):
        hash = stored_hash(A, words, atom, tuple, first + i * width)
        add_entry(A, words, atom + T_ROW_INDEX, hash, i + 1)


@helper
def remove_row(A, words, atom, tuple, rows, at):
    """The payload of a given row, once less; False if it is not there."""
    header = tuple + words[atom + T_VERTICES]
    if words[atom + T_PAYLOAD] == 0:
        A[header] -= 1
        return True
    i = find_row(A, words, atom, tuple, rows, at)
    if i < 0:
        return False
    count = rows_at(A, words, atom, tuple) + i * words[atom + T_ROW] + words[atom + T_PAYLOAD]
    if words[atom + T_COUNTED] == 1 and A[count] > 1:
        A[count] -= 1
    else:
        drop_row(A, words, atom, tuple, i)
    return True


@helper
def drop_row(A, words, atom, tuple, i):
    """Remove a payload row; the last one takes its place."""
    header, width = tuple + words[atom + T_VERTICES], words[atom + T_ROW]
    number, first = A[header] & NUMBER_MASK, rows_at(A, words, atom, tuple)
    row, last = first + i * width, first + (number - 1) * width
    if number == words[G_INDEXED] + 1:
        for j in range(number):
            hash = stored_hash(A, words, atom, tuple, first + j * width)
            remove_entry(A, words, atom + T_ROW_INDEX, hash, j + 1)
    elif number > words[G_INDEXED]:
        index = atom + T_ROW_INDEX
        remove_entry(A, words, index, stored_hash(A, words, atom, tuple, row), i + 1)
        if i != number - 1:
            place = place_of(A, words, index, stored_hash(A, words, atom, tuple, last), number)
            A[words[index + I_BASE] + place] += i + 1 - number
    for w in range(width):
        A[row + w] = A[last + w]
    A[header] -= 1
    capacity = A[header] >> NUMBER_BITS
    if capacity > 0 and 4 * (number - 1) <= 1 << capacity:
        set_row_capacity(A, words, atom, tuple, capacity - 1)


@helper
def set_row_capacity(A, words, atom, tuple, capacity):
    """The payload rows in another block; 0: in the record."""
    header, width = tuple + words[atom + T_VERTICES], words[atom + T_ROW]
    number, before, old = A[header] & NUMBER_MASK, A[header] >> NUMBER_BITS, rows_at(A, words, atom, tuple)
    block = header + 1
    if capacity > 0:
        block = take(A, words, atom + T_BLOCKS + capacity, width << capacity, ROWS)
    for w in range(number * width):
        A[block + w] = A[old + w]
    A[header] = number | (capacity << NUMBER_BITS)
    if capacity > 0:
        A[header + 1] = block
    if before > 0:
        give_back(A, words, atom + T_BLOCKS + before, old, width << before, ROWS)
