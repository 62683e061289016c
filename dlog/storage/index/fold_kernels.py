"""Owns the folds of a root: partial sums over its nodes, so that no query of an interval walks all of them.

Level 0 are the nodes themselves; an entry of each further level is the fold over FOLD entries of the level
below (maintenance paper, 3.1: a scan tree, here of FOLD children instead of two).  Knows nothing of how nodes
change.
"""

from __future__ import annotations

from dlog.jit import Words, helper
from dlog.storage.arena.arena_kernels import fold_words, folds_words, new_block
from dlog.storage.layout import (
    CAPACITY,
    FOLD,
    FOLD_BITS,
    N_NODES,
    NODE_ROWS,
    NODE_SCAN,
    ROOT_FOLDS,
    ROOT_HEADER,
    ROOT_SCAN,
    SCAN_HIGH,
    SCAN_LOW,
    SCAN_MAX,
    SCAN_MIN,
    SCAN_WORDS,
)

FOLD_MASK = FOLD - 1


@helper
def fold_root(A: Words, root: int) -> None:
    """All folds of a root whose nodes are complete.  O(n_nodes).  REQUIRES: memory is reserved."""
    if A[root + CAPACITY] < FOLD:
        return
    if A[root + ROOT_FOLDS] == 0:
        A[root + ROOT_FOLDS] = new_block(A, folds_words(A[root + CAPACITY], A[root + ROOT_SCAN]))
    entries, below, room = A[root + N_NODES], 0, A[root + CAPACITY]
    level = A[root + ROOT_FOLDS]
    while room >= FOLD:
        for i in range((entries + FOLD_MASK) >> FOLD_BITS):
            fold(A, root, below, level, i, entries)
        entries = (entries + FOLD_MASK) >> FOLD_BITS
        room = (room + FOLD_MASK) >> FOLD_BITS
        below, level = level, level + room * fold_words(A[root + ROOT_SCAN])


@helper
def refold(A: Words, root: int, ni: int) -> None:
    """The folds above one node that has changed.  O(FOLD log n_nodes)."""
    entries, below, room = A[root + N_NODES], 0, A[root + CAPACITY]
    level = A[root + ROOT_FOLDS]
    while room >= FOLD:
        ni >>= FOLD_BITS
        fold(A, root, below, level, ni, entries)
        entries = (entries + FOLD_MASK) >> FOLD_BITS
        room = (room + FOLD_MASK) >> FOLD_BITS
        below, level = level, level + room * fold_words(A[root + ROOT_SCAN])


@helper
def fold(A: Words, root: int, below: int, level: int, i: int, entries: int) -> None:
    """Entry i of a level, from the level below (0: the nodes), which has so many entries."""
    scan = A[root + ROOT_SCAN]
    at = level + i * fold_words(scan)
    first, end = i << FOLD_BITS, min((i + 1) << FOLD_BITS, entries)
    rows = 0
    for j in range(first, end):
        rows += rows_of(A, root, below, j)
    A[at] = rows
    if scan > 0:
        for x in range(SCAN_WORDS):
            A[at + 1 + x] = A[scan_of(A, root, below, first) + x]
        for j in range(first + 1, end):
            add_scan(A, at + 1, scan_of(A, root, below, j))


@helper
def add_scan(A: Words, at: int, other: int) -> None:
    """Add the scan words at `other` to those at `at`."""
    A[at + SCAN_MIN] = min(A[at + SCAN_MIN], A[other + SCAN_MIN])
    A[at + SCAN_MAX] = max(A[at + SCAN_MAX], A[other + SCAN_MAX])
    A[at + SCAN_LOW] += A[other + SCAN_LOW]
    A[at + SCAN_HIGH] += A[other + SCAN_HIGH]


@helper
def rows_of(A: Words, root: int, level: int, i: int) -> int:
    """The number of rows of an entry of a level (0: of a node)."""
    if level == 0:
        return A[A[root + ROOT_HEADER + i] + NODE_ROWS]
    return A[level + i * fold_words(A[root + ROOT_SCAN])]


@helper
def scan_of(A: Words, root: int, level: int, i: int) -> int:
    """Where the scan of an entry of a level (0: of a node) is.  REQUIRES: the index has scans."""
    if level == 0:
        return A[root + ROOT_HEADER + i] + NODE_SCAN
    return level + i * fold_words(A[root + ROOT_SCAN]) + 1


@helper
def rows_before(A: Words, root: int, ni: int) -> int:
    """The number of rows of the nodes before one.  O(FOLD log n_nodes)."""
    rows, level, room = 0, 0, A[root + CAPACITY]
    while ni > 0:
        while ni & FOLD_MASK:
            ni -= 1
            rows += rows_of(A, root, level, ni)
        ni >>= FOLD_BITS
        if ni > 0:
            level, room = level_above(A, root, level, room)
    return rows


@helper
def level_above(A: Words, root: int, level: int, room: int) -> tuple[int, int]:
    """The next level and the entries it has room for.  REQUIRES: there is one, so `room` is at least FOLD."""
    if level == 0:
        return A[root + ROOT_FOLDS], (room + FOLD_MASK) >> FOLD_BITS
    return level + room * fold_words(A[root + ROOT_SCAN]), (room + FOLD_MASK) >> FOLD_BITS


@helper
def level_at(A: Words, root: int, number: int) -> int:
    """Where a level begins, by its number."""
    level, room = 0, A[root + CAPACITY]
    for _ in range(number):
        level, room = level_above(A, root, level, room)
    return level


@helper
def node_of_row(A: Words, root: int, row: int) -> int:
    """The node of a row by its number.  O(FOLD log n_nodes).  REQUIRES: row < n_rows."""
    number, i, level = 0, 0, 0
    while True:
        rows = rows_of(A, root, level, i)
        if row >= rows:
            row -= rows
            i += 1
            if i & FOLD_MASK == 0:
                i >>= FOLD_BITS
                number += 1
                level = level_at(A, root, number)
        elif number == 0:
            return i
        else:
            i <<= FOLD_BITS
            number -= 1
            level = level_at(A, root, number)


@helper
def node_reaching(A: Words, root: int, ni: int, last: int, x: int, work: Words, at: int) -> int:
    """The first of the nodes ni..last whose greatest scanned value is at least x, else last + 1.

    O(FOLD log n_nodes); how many entries were examined is added to work[at].
    """
    number, i, level, room = 0, ni, 0, A[root + CAPACITY]
    while i << (FOLD_BITS * number) <= last:
        work[at] += 1
        if A[scan_of(A, root, level, i) + SCAN_MAX] < x:
            i += 1
            while i & FOLD_MASK == 0 and room >= FOLD:
                i >>= FOLD_BITS
                number += 1
                level, room = level_above(A, root, level, room)
        elif number == 0:
            return i
        else:
            i <<= FOLD_BITS
            number -= 1
            level, room = level_at(A, root, number), room_at(A, root, number)
    return last + 1


@helper
def room_at(A: Words, root: int, number: int) -> int:
    """How many entries a level has room for, by its number."""
    room = A[root + CAPACITY]
    for _ in range(number):
        room = (room + FOLD_MASK) >> FOLD_BITS
    return room
