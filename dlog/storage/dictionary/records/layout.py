"""Owns the arrays of a table of records, for kernels.  Knows no types.

A record has a number, which is its code less FIRST_ID.  Numbers rise and are never given out again.  The heap
has the records one after the other: [number, shape, field, ..].  A page of PAGE numbers has a block of
`places`, which says where in the heap each record is (ABSENT: it is gone), or none (ABSENT) if all its
records are gone; so what is left of records that are gone is a word for each page.

The hash table has a power of two of slots, each 0 or (part of the hash << NUMBER_BITS) | (number + 1).
"""

from __future__ import annotations

from typing import Final

from dlog.values.record import EMPTY, FIRST_ID, RECORD

__all__ = ["EMPTY", "FIRST_ID", "RECORD"]

ABSENT: Final = -1
PAGE_BITS: Final = 10
PAGE: Final = 1 << PAGE_BITS
NUMBER_BITS: Final = 40
NUMBER_MASK: Final = (1 << NUMBER_BITS) - 1
AHEAD: Final = 32  # records whose slots are loaded while others are looked up
TAG_SHIFT: Final = 8  # a slot has the upper bits of a hash of 31
HEADER: Final = 2  # words of the heap before the fields: number, shape

# Words of `meta`
NEXT: Final = 0  # the next number
USED: Final = 1  # words of the heap
LIVE: Final = 2  # records in the heap
META: Final = 3

# A table as one array, for kernels that have no parameter for it: addresses of its arrays, and the mask
AT_SLOTS: Final = 0
AT_MASK: Final = 1
AT_DIRECTORY: Final = 2
AT_PLACES: Final = 3
AT_HEAP: Final = 4
AT_META: Final = 5
AT_CONSTRUCTORS: Final = 6  # of each shape
ADDRESSES: Final = 7
