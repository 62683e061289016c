"""Owns batches of operations before they touch an index: merging them and finding their places.

The form of operations is that of `leaf_kernels`.  Changes nothing in an index.
"""

from __future__ import annotations

from dlog.jit import Words, helper
from dlog.storage.arena_kernels import RESULT
from dlog.storage.layout import (
    BASE,
    ENTRY,
    FANOUT,
    FILL,
    N_ENTRIES,
    NODE_HEADER,
    ROOT_HEADER,
    STRIDE,
)
from dlog.storage.leaf_kernels import ERASE, INSERT, OP, ORDINAL, POSITION
from dlog.storage.tree_kernels import compare, copy_rows, entry_bound, leaf_bound, node_bound


@helper
def locate(A: Words, root: int, ops: int, s: int, m: int, k: int) -> int:
    """Keep the operations that have an effect and write where; return their number, inserts in RESULT.

    Operations are sorted and distinct; the search goes on from the last place.  REQUIRES: n_nodes > 0.
    O(m log n), near O(m) when operations are dense.
    """
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
    entry = node + NODE_HEADER + ENTRY * e
    return compare(A, A[entry + BASE], A[entry + STRIDE], 0, kb, ks, j, k) <= 0


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
