"""Owns batches of operations before they touch an index: merging them and finding their places.

The form of operations is that of `leaf_kernels`.  Changes nothing in an index.
"""

from __future__ import annotations

from typing import Final

from dlog.jit import Words, helper, prefetch
from dlog.storage.arena.arena_kernels import LINE, RESULT
from dlog.storage.index.leaf_kernels import ERASE, INSERT, OP, OP_COLUMNS, ORDINAL, POSITION
from dlog.storage.index.tree_kernels import (
    compare,
    compare_first,
    compare_node,
    copy_rows,
    count_keys,
    entry_bound,
    leaf_bound,
    node_bound,
    place_of,
)
from dlog.storage.layout import (
    BASE,
    ENTRY,
    FANOUT,
    FILL,
    LEAF_ROWS,
    N_ENTRIES,
    N_NODES,
    N_ROWS,
    NODE_FIRST,
    NODE_HEADER,
    ROOT_HEADER,
    STRIDE,
)

# Operations that are searched for together, one step of all of them after the other: the processor waits for
# the memory of many at once.  Scattered over an index of 40 MB, 250 of them took a quarter of the time.
TOGETHER: Final = 256
DENSE: Final = 4  # operations for each leaf from which on the next place is near the last one
FEW_LEAVES: Final = 4  # that are examined one after the other before one is sought from the root
NOT_SOUGHT: Final = -1  # instead of a position: the leaf is known, or not sought yet


@helper
def locate(A: Words, root: int, ops: int, s: int, m: int, k: int) -> int:
    """Select the operations that have an effect and write where; return their number, inserts in RESULT.

    REQUIRES: operations are sorted and distinct; n_nodes > 0.  O(m log n), near O(m) when they are dense.
    """
    if m * LEAF_ROWS > DENSE * A[root + N_ROWS]:
        return locate_dense(A, root, ops, s, m, k)
    find_places(A, root, ops, s, m, k)
    return keep_effective(A, root, ops, s, m, k)


@helper
def find_places(A: Words, root: int, ops: int, s: int, m: int, k: int) -> None:
    """Write where operations belong, whether they have an effect or not.  As `locate`, O(m log n)."""
    for start in range(0, m, TOGETHER):
        end = min(m, start + TOGETHER)
        find_leaves(A, root, ops, s, start, end, k)
        find_positions(A, root, ops, s, start, end, k)
        ask_for_rows(A, root, ops, s, start, end, k)


@helper
def find_leaves(A: Words, root: int, ops: int, s: int, start: int, end: int, k: int) -> None:
    """Write to ORDINAL the last leaf whose first row is not after an operation's.

    First for those whose first word differs from the last one's; most of the others are in the same leaf
    or in one of the next few, and only those that are not are sought, too.
    """
    leaf, sought = ops + (k + ORDINAL) * s, ops + (k + POSITION) * s
    for j in range(start, end):
        A[leaf + j] = 0
        A[sought + j] = 0 if j == start or A[ops + j] != A[ops + j - 1] else NOT_SOUGHT
    find_nodes(A, root, ops, s, start, end, k)
    find_entries(A, root, ops, s, start, end, k)
    ordinal, others = A[leaf + start], 0
    for j in range(start, end):
        if A[sought + j] != NOT_SOUGHT:
            ordinal = A[leaf + j]
            A[sought + j] = NOT_SOUGHT
            continue
        steps = 0
        while steps < FEW_LEAVES and is_beyond(A, root, ordinal, ops, s, j, k):
            ordinal = next_leaf(A, root, ordinal)
            steps += 1
        A[leaf + j] = ordinal
        if steps == FEW_LEAVES:
            A[sought + j] = 0
            others += 1
    if others > 0:
        find_nodes(A, root, ops, s, start, end, k)
        find_entries(A, root, ops, s, start, end, k)


@helper
def is_beyond(A: Words, root: int, ordinal: int, ops: int, s: int, j: int, k: int) -> bool:
    """Whether an operation belongs to a leaf after this one.  REQUIRES: not to one before it."""
    node, e = A[root + ROOT_HEADER + ordinal // FANOUT], ordinal % FANOUT + 1
    if e < A[node + N_ENTRIES]:
        return starts_by(A, node, e, ops, s, j, k)
    if ordinal // FANOUT + 1 < A[root + N_NODES]:
        return starts_by(A, A[root + ROOT_HEADER + ordinal // FANOUT + 1], 0, ops, s, j, k)
    return False


@helper
def next_leaf(A: Words, root: int, ordinal: int) -> int:
    """The ordinal of the leaf after this one.  REQUIRES: there is one."""
    if ordinal % FANOUT + 1 < A[A[root + ROOT_HEADER + ordinal // FANOUT] + N_ENTRIES]:
        return ordinal + 1
    return (ordinal // FANOUT + 1) * FANOUT


@helper
def find_nodes(A: Words, root: int, ops: int, s: int, start: int, end: int, k: int) -> None:
    """For operations [start, end) that are sought, write to ORDINAL the last node whose first row is not
    after theirs."""
    low, high = ops + (k + ORDINAL) * s, ops + (k + POSITION) * s
    n_nodes = A[root + N_NODES]
    for j in range(start, end):
        if A[high + j] != NOT_SOUGHT:
            A[low + j] = 1
            A[high + j] = n_nodes
    width = n_nodes - 1
    while width > 0:
        for j in range(start, end):
            lo, hi = A[low + j], A[high + j]
            if lo < hi:
                middle = (lo + hi) >> 1
                after = compare_node(A, root, middle, ops, s, j, k) > 0
                A[low + j] = lo if after else middle + 1
                A[high + j] = middle if after else hi
        width >>= 1
    for j in range(start, end):
        if A[high + j] != NOT_SOUGHT:
            A[low + j] -= 1


@helper
def find_entries(A: Words, root: int, ops: int, s: int, start: int, end: int, k: int) -> None:
    """Nodes in ORDINAL become ordinals: of the last leaf whose first row is not after an operation's."""
    leaf, sought = ops + (k + ORDINAL) * s, ops + (k + POSITION) * s
    for j in range(start, end):
        if A[sought + j] != NOT_SOUGHT:
            first = A[root + ROOT_HEADER + A[leaf + j]] + NODE_FIRST
            for x in range(0, FANOUT, LINE):
                prefetch(A, first + x)
    for j in range(start, end):
        if A[sought + j] == NOT_SOUGHT:
            continue
        node = A[root + ROOT_HEADER + A[leaf + j]]
        first = node + NODE_FIRST
        lo, equal = count_keys(A, first, first + A[node + N_ENTRIES], A[ops + j])
        hi = lo + equal
        while lo < hi:  # only leaves that begin with the same key
            middle = (lo + hi) >> 1
            if compare_first(A, node, middle, ops, s, j, k) > 0:
                hi = middle
            else:
                lo = middle + 1
        A[leaf + j] = A[leaf + j] * FANOUT + max(lo - 1, 0)


@helper
def find_positions(A: Words, root: int, ops: int, s: int, start: int, end: int, k: int) -> None:
    """Write to POSITION the first row of the leaf at ORDINAL that is not before an operation's.

    All leaves are prefetched first; in each the search continues from the operation before."""
    leaf, place = ops + (k + ORDINAL) * s, ops + (k + POSITION) * s
    for j in range(start, end):
        if j == start or A[leaf + j] != A[leaf + j - 1]:
            entry = entry_at(A, root, A[leaf + j])
            for x in range(0, A[entry + FILL], LINE):
                prefetch(A, A[entry + BASE] + x)
    position, alike = 0, 0  # rows [position, alike) begin as the operation before does
    for j in range(start, end):
        entry = entry_at(A, root, A[leaf + j])
        base, stride, fill = A[entry + BASE], A[entry + STRIDE], A[entry + FILL]
        if j == start or A[leaf + j] != A[leaf + j - 1]:
            position, alike = 0, -1
        if alike < 0 or A[ops + j] != A[ops + j - 1]:
            below, equal = count_keys(A, base + position, base + fill, A[ops + j])
            position += below
            alike = position + equal
        position = place_of(A, base + stride, stride, position, alike, A, ops + s + j, s, k - 1)
        A[place + j] = position


@helper
def ask_for_rows(A: Words, root: int, ops: int, s: int, start: int, end: int, k: int) -> None:
    """Prefetch all columns of the rows that were found, many at once."""
    for j in range(start, end):
        entry = entry_at(A, root, A[ops + (k + ORDINAL) * s + j])
        row = A[entry + BASE] + A[ops + (k + POSITION) * s + j]
        for c in range(1, k):
            prefetch(A, row + c * A[entry + STRIDE])


@helper
def entry_at(A: Words, root: int, ordinal: int) -> int:
    return A[root + ROOT_HEADER + ordinal // FANOUT] + NODE_HEADER + ENTRY * (ordinal % FANOUT)


@helper
def keep_effective(A: Words, root: int, ops: int, s: int, m: int, k: int) -> int:
    """Of operations whose places are known, select those that change something; as `locate`."""
    kept, inserts = 0, 0
    for j in range(m):
        ordinal, position = A[ops + (k + ORDINAL) * s + j], A[ops + (k + POSITION) * s + j]
        entry = entry_at(A, root, ordinal)
        present = (
            position < A[entry + FILL]
            and compare(A, A[entry + BASE], A[entry + STRIDE], position, ops, s, j, k) == 0
        )
        if present == (A[ops + (k + OP) * s + j] == INSERT):
            continue
        inserts += A[ops + (k + OP) * s + j]
        if kept < j:
            for c in range(k + OP_COLUMNS):
                A[ops + c * s + kept] = A[ops + c * s + j]
        kept += 1
    A[RESULT] = inserts
    return kept


@helper
def locate_dense(A: Words, root: int, ops: int, s: int, m: int, k: int) -> int:
    """As `locate`: the search continues from the last place."""
    kept, inserts, ni, ei, position = 0, 0, 0, 0, 0
    node = A[root + ROOT_HEADER]
    for j in range(m):
        if ei + 1 == A[node + N_ENTRIES] or starts_by(A, node, ei + 1, ops, s, j, k):
            to = node_bound(A, root, ni, ops, s, j, k, 1)
            if to != ni:
                ni, ei, position = to, 0, 0
                node = A[root + ROOT_HEADER + ni]
            to = entry_bound(A, node, ei, ops, s, j, k, 1)
            if to != ei:
                ei, position = to, 0
        entry = node + NODE_HEADER + ENTRY * ei
        base, stride, fill = A[entry + BASE], A[entry + STRIDE], A[entry + FILL]
        position = leaf_bound(A, base, stride, position, fill, ops, s, j, k, 0)
        present = position < fill and compare(A, base, stride, position, ops, s, j, k) == 0
        op = A[ops + (k + OP) * s + j]
        if present == (op == INSERT):
            continue
        for c in range(k + 1):
            A[ops + c * s + kept] = A[ops + c * s + j]
        A[ops + (k + ORDINAL) * s + kept] = ni * FANOUT + ei
        A[ops + (k + POSITION) * s + kept] = position
        inserts += op
        kept += 1
    A[RESULT] = inserts
    return kept


@helper
def starts_by(A: Words, node: int, e: int, kb: int, ks: int, j: int, k: int) -> bool:
    """Whether the first row of entry e is not after the key."""
    return compare_first(A, node, e, kb, ks, j, k) <= 0


@helper
def merge_ops(A: Words, a: int, sa: int, n: int, b: int, sb: int, m: int, k: int, ops: int, s: int) -> int:
    """Operations from n sorted inserts and m sorted erases; a row that is in both is an insert.  O(n + m)."""
    i, j, out = 0, 0, 0
    while i < n or j < m:
        order = -1 if j == m else (1 if i == n else compare(A, a, sa, i, b, sb, j, k))
        if order <= 0:
            copy_rows(A, a, sa, i, 1, ops, s, out, k)
            i += 1
        else:
            copy_rows(A, b, sb, j, 1, ops, s, out, k)
        if order >= 0:
            j += 1
        A[ops + (k + OP) * s + out] = INSERT if order <= 0 else ERASE
        out += 1
    return out


@helper
def set_ops(A: Words, ops: int, s: int, m: int, k: int, op: int) -> None:
    """Make sorted rows operations of one kind."""
    for j in range(m):
        A[ops + (k + OP) * s + j] = op


@helper
def select_ops(A: Words, ops: int, s: int, m: int, k: int, op: int, out: Words) -> int:
    """The rows of all inserts, or of all erases, row-major; returns their number."""
    at = 0
    for j in range(m):
        if A[ops + (k + OP) * s + j] == op:
            for c in range(k):
                out[at * k + c] = A[ops + c * s + j]
            at += 1
    return at
