"""Owns the reading of an index in the arena by positions: keys, least upper bounds, runs, row counts.

Knows the layout (`dlog.storage.layout`) and nothing of its readers: joins, scans and tools share these
kernels.

A position is a row number (flat index) or leaf_ordinal << OFFSET_BITS | row (paged); ranges of positions are
half-open.  Positions are canonical: the one after the last row of a leaf is the first of the next leaf, so
that equal places are equal numbers.  In a range [lo, hi) given with a column c all rows agree in the columns
before c, hence column c ascends within it.

Costs: a seek over a distance of d rows is O(log d), first by galloping inside the leaf, then over the first
keys of the leaves of a node, then over the nodes; it never walks leaf by leaf.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import Words, helper, kernel, prefetch
from dlog.storage.arena.arena_kernels import LINE
from dlog.storage.arena.pointer import pointer
from dlog.storage.index.fold_kernels import node_of_row, rows_before
from dlog.storage.layout import (
    BASE,
    CAPACITY,
    ENTRY,
    FANOUT,
    FILL,
    FLAT_BASE,
    FLAT_STRIDE,
    N_ENTRIES,
    N_NODES,
    N_ROWS,
    NODE_FIRST,
    NODE_HEADER,
    OFFSET_BITS,
    ROOT_HEADER,
    STRIDE,
)

OFFSET_MASK = (1 << OFFSET_BITS) - 1
FANOUT_BITS = FANOUT.bit_length() - 1  # FANOUT is a power of two
FANOUT_MASK = FANOUT - 1
MAX_KEY = np.iinfo(np.int64).max
NEAR = 8  # rows that a seek examines first: keys sought in order are mostly this near


@kernel
def end_position(arena: Words, root: int) -> int:
    """The position after the last row.  O(1).  The first position is 0 in every index."""
    return int(end_of(pointer(arena), root))


@kernel
def last_position(arena: Words, root: int) -> int:
    """The position of the last row.  O(1).  REQUIRES: there is a row."""
    if arena[root + FLAT_BASE] >= 0:
        return arena[root + N_ROWS] - 1
    n = arena[root + N_NODES] - 1
    node = arena[root + ROOT_HEADER + n]
    e = arena[node + N_ENTRIES] - 1
    return ((n * FANOUT + e) << OFFSET_BITS) + arena[node + NODE_HEADER + ENTRY * e + FILL] - 1


@kernel
def key_at(arena: Words, root: int, column: int, position: int) -> int:
    """The key in `column` of the row at `position`.  O(1)."""
    words = pointer(arena)
    base = words[root + FLAT_BASE]
    if base >= 0:
        return words[base + column * words[root + FLAT_STRIDE] + position]
    return words[address_paged(words, root, column, position)]


@kernel
def next_position(arena: Words, root: int, position: int) -> int:
    """The position of the next row, or the end position.  O(1)."""
    words = pointer(arena)
    if words[root + FLAT_BASE] >= 0:
        return position + 1
    return next_paged(words, root, position)


@kernel
def seek_lub(arena: Words, root: int, column: int, lo: int, hi: int, key: int) -> int:
    """The first position in [lo, hi) whose key in `column` is at least `key`, else hi.  O(log distance)."""
    words = pointer(arena)
    base = words[root + FLAT_BASE]
    if base >= 0:
        base += column * words[root + FLAT_STRIDE]
        return lub(words, base + lo, base + hi, key) - base
    return seek_lub_paged(words, root, column, lo, hi, key)


@kernel
def run_end(arena: Words, root: int, column: int, lo: int, hi: int) -> int:
    """The end of the run of rows that hold, in `column`, the key at `lo`.  O(log run).  REQUIRES: lo < hi."""
    key = key_at(arena, root, column, lo)
    if key == MAX_KEY:
        return hi
    return seek_lub(arena, root, column, lo, hi, key + 1)


@kernel
def position_of(arena: Words, root: int, row: int) -> int:
    """The position of a row by its number, below n_rows.  O(1) if flat, else O(log n + FANOUT)."""
    if arena[root + FLAT_BASE] >= 0:
        return row
    n = node_of_row(pointer(arena), root, row)
    row -= rows_before(pointer(arena), root, n)
    entry = arena[root + ROOT_HEADER + n] + NODE_HEADER
    e = 0
    while row >= arena[entry + ENTRY * e + FILL]:
        row -= arena[entry + ENTRY * e + FILL]
        e += 1
    return ((n * FANOUT + e) << OFFSET_BITS) + row


@kernel
def rows_between(arena: Words, root: int, lo: int, hi: int) -> int:
    """The number of rows in [lo, hi).  O(1) if flat or in one leaf, else O(log n + FANOUT)."""
    return count_rows(pointer(arena), root, lo, hi)


# ---- the same on pointers, for kernels that call often (see `dlog.storage.arena.pointer`)


@helper
def end_of(words, root):
    """As `end_position`."""
    if words[root + FLAT_BASE] >= 0:
        return words[root + N_ROWS]
    return (words[root + N_NODES] * FANOUT) << OFFSET_BITS


@helper
def lub(words, lo, hi, key):
    """The first address in [lo, hi) whose word is at least `key`, else hi.  O(log distance), galloping.

    Steps grow fourfold: fewer probes for far keys than doubling, the same for near ones.
    """
    if lo >= hi or words[lo] >= key:
        return lo
    step = 1
    while lo + step < hi and words[lo + step] < key:
        lo += step
        step <<= 2
    hi = min(hi, lo + step)
    while lo + 1 < hi:
        middle = (lo + hi) >> 1
        if words[middle] < key:
            lo = middle
        else:
            hi = middle
    return hi


@helper
def count_rows(words, root, lo, hi):
    """As `rows_between`."""
    if hi <= lo:
        return np.int64(0)
    if words[root + FLAT_BASE] >= 0 or lo >> OFFSET_BITS == hi >> OFFSET_BITS:
        return hi - lo
    return _rows_before(words, root, hi) - _rows_before(words, root, lo)


@helper
def rows_estimate(lo, hi):
    """About the number of rows in [lo, hi), exact if flat or in one leaf.  O(1)."""
    return (((hi >> OFFSET_BITS) - (lo >> OFFSET_BITS)) << 9) + (hi & OFFSET_MASK) - (lo & OFFSET_MASK)


# ---- paged indices, on pointers


@helper
def entry_of(words, root, ordinal):
    """The address of the entry that describes a leaf."""
    return (
        words[root + ROOT_HEADER + (ordinal >> FANOUT_BITS)] + NODE_HEADER + ENTRY * (ordinal & FANOUT_MASK)
    )


@helper
def address_paged(words, root, column, position):
    """The address of a key; the keys up to the end of its leaf follow it.  O(1)."""
    entry = entry_of(words, root, position >> OFFSET_BITS)
    return words[entry + BASE] + column * words[entry + STRIDE] + (position & OFFSET_MASK)


@helper
def leaf_rest(words, root, position, hi):
    """The number of rows of [position, hi) in the leaf of `position`.  O(1).  REQUIRES: position < hi."""
    ordinal = position >> OFFSET_BITS
    if ordinal == hi >> OFFSET_BITS:
        return hi - position
    return words[entry_of(words, root, ordinal) + FILL] - (position & OFFSET_MASK)


@helper
def _next_leaf(words, root, ordinal):
    """The position of the first row after a leaf."""
    node = ordinal >> FANOUT_BITS
    if (ordinal & FANOUT_MASK) + 1 < words[words[root + ROOT_HEADER + node] + N_ENTRIES]:
        return (ordinal + 1) << OFFSET_BITS
    return ((node + 1) * FANOUT) << OFFSET_BITS


@helper
def next_paged(words, root, position):
    """As `next_position`.  REQUIRES: the index is paged and has a row at `position`."""
    ordinal = position >> OFFSET_BITS
    if (position & OFFSET_MASK) + 1 < words[entry_of(words, root, ordinal) + FILL]:
        return position + 1
    return _next_leaf(words, root, ordinal)


@helper
def advance_paged(words, root, position, count):
    """The position `count` rows on.  REQUIRES: they all lie in the leaf of `position`."""
    ordinal = position >> OFFSET_BITS
    if (position & OFFSET_MASK) + count < words[entry_of(words, root, ordinal) + FILL]:
        return position + count
    return _next_leaf(words, root, ordinal)


@helper
def seek_lub_paged(words, root, column, lo, hi, key):
    """As `seek_lub`.  REQUIRES: the index is paged."""
    found = seek_in_leaf(words, root, column, lo, hi, key)
    return found if found >= 0 else seek_beyond_leaf(words, root, column, lo, hi, key)


@helper
def seek_in_leaf(words, root, column, lo, hi, key):
    """The least upper bound of `key` in [lo, hi), if it lies in the leaf of lo, else -1.  O(log distance).

    Examines the next few rows first, so that a short distance needs no access to the end of the leaf.
    """
    if lo >= hi:
        return lo
    ordinal = lo >> OFFSET_BITS
    start = _address_of_leaf(words, root, column, ordinal)
    at = start + (lo & OFFSET_MASK)
    end = start + _rows_of_leaf(words, root, ordinal, hi)
    if at + NEAR < end and words[at + NEAR] >= key:
        return lo + lub(words, at, at + NEAR, key) - at
    if words[end - 1] < key:
        return np.int64(-1)
    return lo + lub(words, at, end, key) - at


@helper
def seek_beyond_leaf(words, root, column, lo, hi, key):
    """The least upper bound of `key` in [lo, hi).  REQUIRES: the rows in the leaf of lo are below `key`."""
    ordinal = _last_leaf_below(words, root, column, lo >> OFFSET_BITS, hi, key)
    if ordinal != lo >> OFFSET_BITS:
        start = _address_of_leaf(words, root, column, ordinal)
        rows = _rows_of_leaf(words, root, ordinal, hi)
        for line in range(0, rows, LINE):  # at once, not each when the last has been examined
            prefetch(words, start + line)
        row = bisect(words, start, start + rows, key) - start
        prefetch(words, start + words[entry_of(words, root, ordinal) + STRIDE] + row)  # where seeks go next
        if row < rows:
            return (ordinal << OFFSET_BITS) + row
    return hi if ordinal == hi >> OFFSET_BITS else _next_leaf(words, root, ordinal)


@helper
def bisect(words, lo, hi, key):
    """The first address in [lo, hi) whose word is at least `key`, else hi.  O(log(hi - lo))."""
    while lo < hi:
        middle = (lo + hi) >> 1
        if words[middle] < key:
            lo = middle + 1
        else:
            hi = middle
    return lo


@helper
def _address_of_leaf(words, root, column, ordinal):
    entry = entry_of(words, root, ordinal)
    return words[entry + BASE] + column * words[entry + STRIDE]


@helper
def _rows_of_leaf(words, root, ordinal, hi):
    """The number of rows of a leaf before the position hi."""
    return hi & OFFSET_MASK if ordinal == hi >> OFFSET_BITS else words[entry_of(words, root, ordinal) + FILL]


@helper
def _first_key(words, node, e, column):
    if column == 0:
        return words[node + NODE_FIRST + e]
    entry = node + NODE_HEADER + ENTRY * e
    return words[words[entry + BASE] + column * words[entry + STRIDE]]


@helper
def _node_key(words, root, ni, column):
    """The first key of a node."""
    if column == 0:
        return words[root + ROOT_HEADER + words[root + CAPACITY] + ni]
    return _first_key(words, words[root + ROOT_HEADER + ni], 0, column)


@helper
def _last_leaf_below(words, root, column, ordinal, hi, key):
    """The last leaf from `ordinal` on, with a row before hi, whose first key is below `key`.

    REQUIRES: the leaf `ordinal` is such a leaf, or all its rows in question are.
    """
    last = hi >> OFFSET_BITS
    if hi & OFFSET_MASK == 0:  # no row of that leaf comes before hi
        last -= 1
    n = _last_node_below(words, root, column, ordinal >> FANOUT_BITS, last >> FANOUT_BITS, key)
    node = words[root + ROOT_HEADER + n]
    high = words[node + N_ENTRIES]
    if n == last >> FANOUT_BITS:
        high = min(high, (last & FANOUT_MASK) + 1)
    if n == ordinal >> FANOUT_BITS:
        return n * FANOUT + _next_entry_below(words, node, column, ordinal & FANOUT_MASK, high, key)
    return n * FANOUT + _last_entry_below(words, node, column, np.int64(0), high, key)


@helper
def _last_node_below(words, root, column, low, last, key):
    """The last of the nodes low..last whose first key is below `key`, or `low`.  Usually that is `low`."""
    if low == last or _node_key(words, root, low + 1, column) >= key:
        return low
    low += 1
    high = last + 1
    while low + 1 < high:
        middle = (low + high) >> 1
        if _node_key(words, root, middle, column) < key:
            low = middle
        else:
            high = middle
    return low


@helper
def _next_entry_below(words, node, column, low, high, key):
    """As `_last_entry_below`, galloping with fourfold steps, as in `lub`: for keys sought in order."""
    step = 1
    while low + step < high and _first_key(words, node, low + step, column) < key:
        low += step
        step <<= 2
    return _last_entry_below(words, node, column, low, min(high, low + step), key)


@helper
def _last_entry_below(words, node, column, low, high, key):
    """The last of the entries low..high-1 of a node whose first key is below `key`, or `low`."""
    while low + 1 < high:
        middle = (low + high) >> 1
        if _first_key(words, node, middle, column) < key:
            low = middle
        else:
            high = middle
    return low


@helper
def _rows_before(words, root, position):
    """The number of rows before a position.  O(log n + FANOUT)."""
    ordinal = position >> OFFSET_BITS
    rows = (position & OFFSET_MASK) + rows_before(words, root, ordinal >> FANOUT_BITS)
    if ordinal >> FANOUT_BITS < words[root + N_NODES]:
        node = words[root + ROOT_HEADER + (ordinal >> FANOUT_BITS)]
        for e in range(ordinal & FANOUT_MASK):
            rows += words[node + NODE_HEADER + ENTRY * e + FILL]
    return rows
