"""Owns the change of a few rows in all indices of a relation, in one call from Python.

The steps of a batch (`batch`), for a batch that is small compared with the index: rows are sorted
by comparing them, and nothing is rebuilt.  Rows come row-major, in the relation's own columns: those to
insert, then those to erase.  A row that is in both is inserted.
"""

from __future__ import annotations

from typing import Final

from dlog.jit import Words, helper, kernel
from dlog.storage.arena.arena_kernels import (
    BUMP,
    EXTENT_BASE,
    LARGE_WORDS,
    LIMIT,
    RECORD,
    RECORD_SLAB,
    RESULT,
    clone_root,
    new_extent,
    node_words,
    release_extent,
    release_root,
)
from dlog.storage.arena.pointer import pointer
from dlog.storage.index.change_kernels import apply_ops
from dlog.storage.index.leaf_kernels import ERASE, INSERT, ITEM, OP, OP_COLUMNS
from dlog.storage.index.ops_kernels import find_places, locate
from dlog.storage.layout import FANOUT, LEAF_ROWS, N_NODES, N_ROWS, ROOT_REFERENCES

NEEDS_BATCH: Final = -1  # result of `change_rows`: nothing has been done
RUN: Final = 8  # rows that are sorted by insertion


@kernel
def change_rows(
    arena: Words,
    k: int,
    n_orders: int,
    orders: Words,
    roots: Words,
    rows: Words,
    n_inserts: int,
    n_erases: int,
    in_place: int,
    net: Words,
) -> int:
    """See `change_all`."""
    A = pointer(arena)
    return change_all(
        A,
        k,
        n_orders,
        pointer(orders),
        pointer(roots),
        pointer(roots),
        pointer(rows),
        n_inserts,
        n_erases,
        in_place,
        pointer(net),
    )


@helper
def change_all(A, k, n_orders, orders, roots, new_roots, rows, n_inserts, n_erases, in_place, net):
    """How many rows are inserted or erased, the number of inserted ones in RESULT; or NEEDS_BATCH.

    Writes the roots after the change, unless nothing changes, and the net rows, inserted ones first, both
    parts in the order of the first index.  In place the caller's references to `roots` are used up.
    O(m log m + m log n + touched pages) for each order.
    """
    m = n_inserts + n_erases
    for o in range(n_orders):
        if not is_small(A, roots[o], m, k):
            return NEEDS_BATCH
    work = new_extent(A, m * (k + OP_COLUMNS + 2), 1)
    ops = A[work + EXTENT_BASE]
    found = load_ops(A, ops, m, rows, n_inserts, k, orders, 0)
    found = locate(A, roots[0], ops, m, found, k)
    inserted = A[RESULT]
    if found > 0:
        write_net(A, ops, m, found, k, orders, inserted, net)
        new_roots[0] = edited(A, roots[0], ops, m, found, k, in_place)
        for o in range(1, n_orders):
            load_ops(A, ops, found, net, inserted, k, orders, o * k)
            locate(A, roots[o], ops, found, found, k)
            new_roots[o] = edited(A, roots[o], ops, found, found, k, in_place)
    release_extent(A, work, 1)
    A[RESULT] = inserted
    return found


@helper
def change_located(A, k, orders, roots, rows, n_inserts, n_erases, located, in_place):
    """As `change_all`, for an index of two orders, in the second of which places are known.

    `located` are the operations in that order, k + OP_COLUMNS words each.  REQUIRES: each has an effect, and
    the batch is small compared with the index.
    """
    m = n_inserts + n_erases
    work = new_extent(A, m * (k + OP_COLUMNS + 2), 1)
    ops = A[work + EXTENT_BASE]
    load_ops(A, ops, m, rows, n_inserts, k, orders, 0)
    find_places(A, roots[0], ops, m, m, k)
    roots[0] = edited(A, roots[0], ops, m, m, k, in_place)
    for c in range(k + OP_COLUMNS):
        for j in range(m):
            A[ops + c * m + j] = located[j * (k + OP_COLUMNS) + c]
    roots[1] = edited(A, roots[1], ops, m, m, k, in_place)
    release_extent(A, work, 1)


@helper
def is_small(A, root, m, k):
    """Whether a batch of m rows is small compared with an index, and certain to find enough memory."""
    n, n_nodes = A[root + N_ROWS], A[root + N_NODES]
    if n == 0 or (m > n and n + m > LEAF_ROWS):  # to be merged into a new flat extent
        return False
    if m * (k + OP_COLUMNS + 2) >= LARGE_WORDS:
        return False
    if list_words(m, n_nodes) >= LARGE_WORDS:
        return False
    return A[LIMIT] - A[BUMP] > fresh_words(A, root, m, k)


@helper
def fresh_words(A, root, m, k):
    """An upper bound of the fresh memory that a batch of m rows takes."""
    n_nodes = A[root + N_NODES]
    leaf = LEAF_ROWS * k * 9 // 8 + 16 + 2 * RECORD
    words = leaf * pages_bound(m, n_nodes) + nodes_bound(m, n_nodes) * node_words(1) * 9 // 8
    return words + 2 * RECORD_SLAB * RECORD + 4 * LARGE_WORDS


@helper
def pages_bound(m, n_nodes):
    """A touched leaf is written again and may join both neighbours; splits make half-full pages."""
    return 3 * min(m, n_nodes * FANOUT) + m // (LEAF_ROWS // 4) + 4


@helper
def nodes_bound(m, n_nodes):
    return 2 * min(m, n_nodes) + pages_bound(m, n_nodes) // (FANOUT // 2) + 4


@helper
def items_bound(m):
    """An upper bound of the number of items one node is split into."""
    return 4 * FANOUT + m // (LEAF_ROWS // 4) + 8


@helper
def list_words(m, n_nodes):
    """Words of the lists of items and nodes that `apply_ops` needs."""
    return items_bound(m) * ITEM + 2 * n_nodes + nodes_bound(m, n_nodes)


@helper
def edited(A, root, ops, s, m, k, in_place):
    """The root after located operations."""
    if in_place == 0 or A[root + ROOT_REFERENCES] > 1:
        copy = clone_root(A, root)
        if in_place != 0:
            release_root(A, root)
        root = copy
    work = new_extent(A, list_words(m, A[root + N_NODES]), 1)
    items = A[work + EXTENT_BASE]
    root = apply_ops(A, root, ops, s, m, k, items, items + items_bound(m) * ITEM)
    release_extent(A, work, 1)
    return root


@helper
def load_ops(A, ops, m, rows, n_inserts, k, orders, at):
    """Sort rows in the column order at `at` into operations, each row once; return their number.

    Two lists of m words after the operations are the work space.
    """
    numbers = ops + m * (k + OP_COLUMNS)
    first = sorted_numbers(A, numbers, m, rows, k, orders, at)
    n, last = 0, 0
    for i in range(m):
        number = A[first + i]
        if i > 0 and not is_before(rows, last, number, k, orders, at):
            continue
        last = number
        for c in range(k):
            A[ops + c * m + n] = rows[number * k + orders[at + c]]
        A[ops + (k + OP) * m + n] = INSERT if number < n_inserts else ERASE
        n += 1
    return n


@helper
def sorted_numbers(A, numbers, m, rows, k, orders, at):
    """The numbers of rows in sorted order, equal ones in their original order; returns where they are.  O(m
    log m), or O(m) if they are in order."""
    in_order = True
    for i in range(m):
        A[numbers + i] = i
        in_order = in_order and (i == 0 or not is_before(rows, i, i - 1, k, orders, at))
    if in_order:
        return numbers
    for start in range(0, m, RUN):
        for i in range(start + 1, min(start + RUN, m)):
            number, x = A[numbers + i], i
            while x > start and is_before(rows, number, A[numbers + x - 1], k, orders, at):
                A[numbers + x] = A[numbers + x - 1]
                x -= 1
            A[numbers + x] = number
    source, target, width = numbers, numbers + m, RUN
    while width < m:
        for start in range(0, m, 2 * width):
            merge_runs(
                A,
                source,
                target,
                start,
                min(start + width, m),
                min(start + 2 * width, m),
                rows,
                k,
                orders,
                at,
            )
        source, target = target, source
        width *= 2
    return source


@helper
def merge_runs(A, source, target, start, middle, end, rows, k, orders, at):
    a, b = start, middle
    for to in range(start, end):
        if b >= end or (a < middle and not is_before(rows, A[source + b], A[source + a], k, orders, at)):
            A[target + to] = A[source + a]
            a += 1
        else:
            A[target + to] = A[source + b]
            b += 1


@helper
def is_before(rows, a, b, k, orders, at):
    """Whether row a comes before row b in a column order."""
    for c in range(k):
        column = orders[at + c]
        x, y = rows[a * k + column], rows[b * k + column]
        if x != y:
            return x < y
    return False


@helper
def write_net(A, ops, s, m, k, orders, inserted, net):
    """Operations as rows in the relation's own columns: inserts, then erases."""
    at_insert, at_erase = 0, inserted
    for j in range(m):
        if A[ops + (k + OP) * s + j] == INSERT:
            to = at_insert
            at_insert += 1
        else:
            to = at_erase
            at_erase += 1
        for c in range(k):
            net[to * k + orders[c]] = A[ops + c * s + j]
