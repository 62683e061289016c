"""Owns changes of single leaves and nodes.  Knows nothing of whole batches or roots.

Changes come as operations sorted by row, laid out as a leaf of k + 3 columns: the row, then OP (1 insert, 0
erase), then ORDINAL (node index * FANOUT + entry index) and POSITION (row in the leaf) where the row is or
belongs.  A rebuilt node is collected in a list of items of ITEM words.

A leaf may be changed in place if nothing else can see it: its extent has one reference and begins with
the leaf.  Otherwise it is copied.  Two neighbours of one node that fit half a page together become one page.
"""

from __future__ import annotations

from typing import Final

from dlog.jit import Words, helper, move_four
from dlog.storage.arena.arena_kernels import COUNT, EXTENT_BASE, RESULT, new_extent, release_extent
from dlog.storage.index.fold_kernels import add_scan
from dlog.storage.index.tree_kernels import copy_rows
from dlog.storage.layout import (
    BASE,
    ENTRY,
    FILL,
    LEAF_ROWS,
    NODE_FIRST,
    NODE_HEADER,
    NODE_SCAN,
    OWNER,
    SCAN_HIGH,
    SCAN_LOW,
    SCAN_MAX,
    SCAN_MIN,
    SCAN_WORDS,
    STRIDE,
)

# Columns of an operation, after the k columns of its row.
OP: Final = 0
ORDINAL: Final = 1
POSITION: Final = 2
OP_COLUMNS: Final = 3
INSERT: Final = 1
ERASE: Final = 0

# An item: an entry, its first key, its scan.
ITEM_FIRST: Final = ENTRY
ITEM_SCAN: Final = ENTRY + 1
ITEM: Final = ITEM_SCAN + SCAN_WORDS


@helper
def page_rows(rows: int) -> int:
    """Room of a new page: a quarter more than it holds now, as 16, 64, 256, ... up to LEAF_ROWS."""
    room = 16
    while room < rows + rows // 4:
        room *= 4
    return min(room, LEAF_ROWS)


@helper
def is_private(A: Words, base: int, owner: int) -> bool:
    """Whether the leaf may be changed in place.  REQUIRES: its node is private."""
    return A[owner + COUNT] == 1 and A[owner + EXTENT_BASE] == base


@helper
def scan_leaf(A: Words, base: int, fill: int, at: int) -> None:
    """Write min, max and the two halves of the sum of `fill` words from base.  O(fill)."""
    low, high = 0, 0
    least, most = A[base], A[base]
    for i in range(base, base + fill):
        value = A[i]
        least = min(least, value)
        most = max(most, value)
        low += value & 0xFFFFFFFF
        high += value >> 32
    A[at + SCAN_MIN] = least
    A[at + SCAN_MAX] = most
    A[at + SCAN_LOW] = low
    A[at + SCAN_HIGH] = high


@helper
def put_item(
    A: Words, items: int, n: int, base: int, stride: int, fill: int, owner: int, k: int, scan: int
) -> int:
    """Append a leaf that was just written; its scan is computed."""
    item = items + ITEM * n
    A[item + BASE] = base
    A[item + STRIDE] = stride
    A[item + FILL] = fill
    A[item + OWNER] = owner
    A[item + ITEM_FIRST] = A[base]
    if scan > 0:
        scan_leaf(A, base + (scan - 1) * stride, fill, item + ITEM_SCAN)
    return join_last(A, items, n + 1, k, scan)


@helper
def put_entry(A: Words, items: int, n: int, node: int, e: int, k: int, scan: int) -> int:
    """Append an entry of a node unchanged."""
    item = items + ITEM * n
    for x in range(ENTRY):
        A[item + x] = A[node + NODE_HEADER + ENTRY * e + x]
    A[item + ITEM_FIRST] = A[node + NODE_FIRST + e]
    if scan > 0:
        for x in range(SCAN_WORDS):
            A[item + ITEM_SCAN + x] = A[node + NODE_SCAN + SCAN_WORDS * (e + 1) + x]
    return join_last(A, items, n + 1, k, scan)


@helper
def join_last(A: Words, items: int, n: int, k: int, scan: int) -> int:
    """Make one leaf of the last two items when both fit half a page.  Returns the number of items."""
    if n < 2:
        return n
    left = items + ITEM * (n - 2)
    right = left + ITEM
    fill = A[left + FILL]
    total = fill + A[right + FILL]
    if total > LEAF_ROWS // 2:
        return n
    if not is_private(A, A[left + BASE], A[left + OWNER]) or A[left + STRIDE] < total:
        stride = page_rows(total)
        owner = new_extent(A, stride * k, 1)
        base = A[owner + EXTENT_BASE]
        copy_rows(A, A[left + BASE], A[left + STRIDE], 0, fill, base, stride, 0, k)
        release_extent(A, A[left + OWNER], 1)
        A[left + BASE] = base
        A[left + STRIDE] = stride
        A[left + OWNER] = owner
    copy_rows(
        A, A[right + BASE], A[right + STRIDE], 0, total - fill, A[left + BASE], A[left + STRIDE], fill, k
    )
    release_extent(A, A[right + OWNER], 1)
    A[left + FILL] = total
    if scan > 0:
        add_scan(A, left + ITEM_SCAN, right + ITEM_SCAN)
    return n - 1


@helper
def change_leaf(
    A: Words,
    items: int,
    n: int,
    node: int,
    e: int,
    ops: int,
    s: int,
    i: int,
    j: int,
    k: int,
    scan: int,
    last: int,
) -> int:
    """Append the result of operations [i, j) on entry e: nothing, one leaf or several.  O(rows + operations).

    `last` says that no rows follow the leaf: pages are then filled up, for rows that arrive in order.
    """
    entry = node + NODE_HEADER + ENTRY * e
    base, stride, fill, owner = A[entry + BASE], A[entry + STRIDE], A[entry + FILL], A[entry + OWNER]
    inserts = 0
    for x in range(i, j):
        inserts += A[ops + (k + OP) * s + x]
    total = fill + inserts - (j - i - inserts)
    if total == 0:
        release_extent(A, owner, 1)
        return n
    if total <= min(stride, LEAF_ROWS) and is_private(A, base, owner):
        edit_rows(A, base, stride, fill, ops, s, i, j, k)
        return put_item(A, items, n, base, stride, total, owner, k, scan)
    in_order = last == 1 and A[ops + (k + POSITION) * s + i] == fill
    n = write_pages(A, items, n, base, stride, fill, ops, s, i, j, total, k, scan, in_order)
    release_extent(A, owner, 1)
    return n


@helper
def rewrite_leaf(A: Words, entry: int, ops: int, s: int, i: int, j: int, total: int, k: int) -> None:
    """Operations [i, j) on a leaf of a private node, which stays one leaf of `total` rows."""
    base, stride, fill, owner = A[entry + BASE], A[entry + STRIDE], A[entry + FILL], A[entry + OWNER]
    if total <= stride and is_private(A, base, owner):
        edit_rows(A, base, stride, fill, ops, s, i, j, k)
    else:
        room = page_rows(total)
        copy = new_extent(A, room * k, 1)
        A[RESULT] = 0
        A[RESULT + 1] = i
        merge_rows(A, base, stride, fill, ops, s, j, k, A[copy + EXTENT_BASE], room, total)
        release_extent(A, owner, 1)
        A[entry + BASE] = A[copy + EXTENT_BASE]
        A[entry + STRIDE] = room
        A[entry + OWNER] = copy
    A[entry + FILL] = total


@helper
def write_pages(
    A: Words,
    items: int,
    n: int,
    base: int,
    stride: int,
    fill: int,
    ops: int,
    s: int,
    i: int,
    j: int,
    total: int,
    k: int,
    scan: int,
    in_order: bool,
) -> int:
    """Append a leaf after operations [i, j), `total` rows, as new pages.

    More than one page: full ones when rows arrive in order, else even ones of at most three quarters.
    """
    target = LEAF_ROWS if in_order or total <= LEAF_ROWS else LEAF_ROWS * 3 // 4
    pages = (total + target - 1) // target
    A[RESULT] = 0
    A[RESULT + 1] = i
    written = 0
    for p in range(pages):
        end = min(written + LEAF_ROWS, total) if in_order else total * (p + 1) // pages
        room = page_rows(total) if pages == 1 else LEAF_ROWS
        owner = new_extent(A, room * k, 1)
        to = A[owner + EXTENT_BASE]
        merge_rows(A, base, stride, fill, ops, s, j, k, to, room, end - written)
        n = put_item(A, items, n, to, room, end - written, owner, k, scan)
        written = end
    return n


@helper
def merge_rows(
    A: Words,
    base: int,
    stride: int,
    fill: int,
    ops: int,
    s: int,
    j: int,
    k: int,
    to: int,
    room: int,
    limit: int,
) -> int:
    """Write the next `limit` rows of a leaf after operations up to j to another place.  O(limit).

    RESULT holds how many rows of the leaf are done and the next operation, before and after.
    """
    taken = A[RESULT]
    x = A[RESULT + 1]
    at = 0
    while at < limit:
        position = A[ops + (k + POSITION) * s + x] if x < j else fill
        if taken < position:
            n = min(position - taken, limit - at)
            copy_rows(A, base, stride, taken, n, to, room, at, k)
            taken += n
            at += n
            continue
        if A[ops + (k + OP) * s + x] == INSERT:
            copy_rows(A, ops, s, x, 1, to, room, at, k)
            at += 1
        else:
            taken += 1
        x += 1
    A[RESULT] = taken
    A[RESULT + 1] = x
    return at


@helper
def edit_rows(A: Words, base: int, stride: int, fill: int, ops: int, s: int, i: int, j: int, k: int) -> None:
    """The same in place.  O(operations + rows that move).

    Rows between two operations move by the surplus of inserted over erased rows before them, and most do not
    move: those that move down from left to right, then those that move up from right to left, so that none is
    overwritten before it has moved; then the inserted rows are written into their gaps.
    """
    op, place = ops + (k + OP) * s, ops + (k + POSITION) * s
    by, start = 0, 0
    for x in range(i, j):
        if by < 0:
            shift_left(A, base, stride, start, A[place + x], -by, k)
        by += 2 * A[op + x] - 1
        start = A[place + x] + 1 - A[op + x]
    if by < 0:
        shift_left(A, base, stride, start, fill, -by, k)
    end = fill
    for x in range(j - 1, i - 1, -1):
        if by > 0:
            shift_right(A, base, stride, A[place + x] + 1 - A[op + x], end, by, k)
        by -= 2 * A[op + x] - 1
        end = A[place + x]
    for x in range(i, j):
        if A[op + x] == INSERT:
            copy_rows(A, ops, s, x, 1, base, stride, A[place + x] + by, k)
        by += 2 * A[op + x] - 1


@helper
def shift_left(A: Words, base: int, stride: int, start: int, end: int, by: int, k: int) -> None:
    """Move rows [start, end) down."""
    for c in range(k):
        x, stop = base + c * stride + start, base + c * stride + end
        while x + 4 <= stop:
            move_four(A, x - by, x)
            x += 4
        while x < stop:
            A[x - by] = A[x]
            x += 1


@helper
def shift_right(A: Words, base: int, stride: int, start: int, end: int, by: int, k: int) -> None:
    """Move rows [start, end) up."""
    for c in range(k):
        x, stop = base + c * stride + end, base + c * stride + start
        while x - 4 >= stop:
            x -= 4
            move_four(A, x + by, x)
        while x > stop:
            x -= 1
            A[x + by] = A[x]
