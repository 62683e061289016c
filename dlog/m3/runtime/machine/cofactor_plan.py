"""Owns the words of plans for sums of cofactors, and what all kernels for them need."""

from __future__ import annotations

from typing import Final

from dlog.jit import add_four, helper, prefetch
from dlog.m3.runtime.layout import DIRECT, LINE, M_BASE, M_VALUES, M_WORDS
from dlog.m3.runtime.machine.arithmetic_kernels import to_bits, to_float
from dlog.m3.runtime.maps.apart_kernels import value_at

# Words of a plan.
P_PARTS: Final = 0
P_VARIABLES: Final = 1  # of the product, part after part; a variable of two parts is there twice
P_WIDTH: Final = 2  # variables of the element that is added to
P_FIRST: Final = 3  # the first of them that the product has, if its variables follow one another; else -1
P_TOTAL: Final = 4  # whether all rows go to one element
P_KEEPS: Final = 5  # whether a word after the element says that it exists
P_WORK: Final = 6  # where in the state its memory is: TAKEN words for each part
P_SUMS: Final = 7  # the sums of all parts, and after them T
P_ADDED: Final = 8  # the accumulators; the first is that of counts
P_END: Final = 9
P_LIFTS: Final = 10  # whether a row's own columns alone make the element, in a map
P_BLOCK: Final = 11  # where ROWS rows are laid out; before it is what was taken of them
P_WIDE: Final = 12  # words of such a row
P_HELD: Final = 13  # the plan by which one row is deferred, or 0; in such a plan, where its memory begins
P_HEADER: Final = 14
# Words of a part, after the header; after all parts is the place of each variable in the element.
Q_STORE: Final = 0  # a map; or LIFTED; or BLOCK - where in the state elements lie row by row
Q_SIZE: Final = 1
Q_COLUMN: Final = 2  # of slots or rows; of a lifted part the first of its columns
Q_START: Final = 3  # its first variable
Q_OWN: Final = 4  # the accumulators of its own words, count left out; of a lifted part of its sums
Q_ROWS: Final = 5  # the accumulators of its rows
Q_LENGTH: Final = 6  # of each of these, and from one to the next
Q_LEFT: Final = 7  # where in a row that is laid out its sums are, times the counts before
Q_BEHIND: Final = 8  # and its sums times the later counts, and then T times its count
Q_WORDS: Final = 9
Q_LIFTED: Final = Q_BEHIND  # in a plan by which rows are deferred: where what is lifted becomes an element
# Words of deferred sums, before their accumulators.
H_NEXT: Final = 0  # the next that is not empty
H_PLAN: Final = 1  # by which it is to be added; 0: it is empty
H_TARGET: Final = 2  # to the element of this map
H_COUNT: Final = 3  # the first accumulator
H_HEADER: Final = 8

TAKEN: Final = 3  # place, count, product of the counts before
TAKEN_MANY: Final = 5  # and of the later ones, and of both: ROWS of each
ROWS: Final = 16

LIFTED: Final = -1
BLOCK: Final = -2
FOUR: Final = 4  # floats at a time
AHEAD: Final = 3  # rows: this far before a row its elements are prefetched
MOST: Final = 96  # words of an element that are prefetched: the processor fetches the rest by itself
DIRECT_ROWS: Final = 4  # rows: their products are added to an element directly


@helper
def words_of(size):
    return 1 + size + size * (size + 1) // 2


@helper
def element_at(arena, maps, m, slot):
    """Where the element of a slot is."""
    if slot >= DIRECT:
        return slot - DIRECT
    return value_at(arena, maps, m, maps[m + M_BASE] + slot * maps[m + M_WORDS])


@helper
def ask_for_element(arena, maps, m, slot):
    """The element of a slot will be needed soon."""
    at = element_at(arena, maps, m, slot)
    for line in range(0, min(maps[m + M_VALUES], MOST), LINE):
        prefetch(arena, at + line)
    prefetch(arena, at + min(maps[m + M_VALUES], MOST) - 1)  # it may begin anywhere in a line


@helper
def add_scaled(out, at, x, x_at, factor, n):
    """out[at:at + n] += factor * x[x_at:x_at + n]."""
    whole = n // FOUR * FOUR
    for q in range(0, whole, FOUR):
        add_four(out, at + q, x, x_at + q, factor)
    for q in range(whole, n):
        out[at + q] = to_bits(to_float(out[at + q]) + factor * to_float(x[x_at + q]))
