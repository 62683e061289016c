"""Owns the lists of join tuples at vertex values: appending, removing, and which part of a list is alive.

A list is [join tuples that are alive | those that are dead]; `lookahead_kernels` decides which are, and LOOK
has the number of the dead.  Each join tuple has its position in each of its lists, so removing it is O(1):
others take its place.
"""

from __future__ import annotations

from dlog.jit import helper
from dlog.joingraph.layout import (
    G_FREE_LISTS,
    ID_BITS,
    ID_MASK,
    J_LOOK,
    J_NEAR,
    LISTS,
    NUMBER_BITS,
    NUMBER_MASK,
)
from dlog.joingraph.memory_kernels import give_back, take


@helper
def number_of(A, near):
    """How many are in the list at a place."""
    return A[near + 1] & NUMBER_MASK


@helper
def alive(A, near, look):
    """How many of a list are alive."""
    return (A[near + 1] & NUMBER_MASK) - (A[look] & NUMBER_MASK)


@helper
def entry(A, near, i):
    return A[near] if A[near + 1] >> NUMBER_BITS == 0 else A[A[near] + i]


@helper
def position_of(A, tuple, local):
    """Where a join tuple is in the list of one of its vertices."""
    return (A[tuple + local] >> ID_BITS) & ID_MASK


@helper
def put_entry(A, near, i, tuple, local):
    if A[near + 1] >> NUMBER_BITS == 0:
        A[near] = tuple
    else:
        A[A[near] + i] = tuple
    A[tuple + local] = (A[tuple + local] & ID_MASK) | (i << ID_BITS)


@helper
def swap_entries(A, near, i, j, local):
    if i != j:
        one, other = entry(A, near, i), entry(A, near, j)
        put_entry(A, near, i, other, local)
        put_entry(A, near, j, one, local)


@helper
def set_capacity(A, words, near, capacity):
    """The entries of a list in another block; `capacity` is a logarithm, 0 for an entry without a block."""
    number, before, old = number_of(A, near), A[near + 1] >> NUMBER_BITS, A[near]
    if capacity == 0:
        A[near] = A[old] if number > 0 else 0
    else:
        block = take(A, words, G_FREE_LISTS + capacity, 1 << capacity, LISTS)
        for i in range(number):
            A[block + i] = old if before == 0 else A[old + i]
        A[near] = block
    A[near + 1] = number | (capacity << NUMBER_BITS)
    if before > 0:
        give_back(A, words, G_FREE_LISTS + before, old, 1 << before, LISTS)


@helper
def append(A, words, join, value, tuple, local):
    """Add a join tuple to those that are alive at a vertex value."""
    near, look = value + words[join + J_NEAR], value + words[join + J_LOOK]
    number, capacity = number_of(A, near), A[near + 1] >> NUMBER_BITS
    if number == 1 << capacity:
        set_capacity(A, words, near, capacity + 1)
    put_entry(A, near, number, tuple, local)
    swap_entries(A, near, alive(A, near, look), number, local)
    A[near + 1] += 1


@helper
def remove(A, words, join, value, tuple, local):
    near, look = value + words[join + J_NEAR], value + words[join + J_LOOK]
    living, number, position = alive(A, near, look), number_of(A, near), position_of(A, tuple, local)
    if position < living:
        swap_entries(A, near, position, living - 1, local)
        position = living - 1
    else:
        A[look] -= 1
    swap_entries(A, near, position, number - 1, local)
    A[near + 1] -= 1
    capacity = A[near + 1] >> NUMBER_BITS
    if capacity > 0 and 4 * (number - 1) <= 1 << capacity:
        set_capacity(A, words, near, capacity - 1)
