"""Owns searching, counting and reading whole indices.  Knows nothing of how they change.

A key is given as a row of something that is laid out as a leaf: column c of key j is at kb + c * ks + j.
Comparisons use the first d columns only, so that a prefix is a key too.
"""

from __future__ import annotations

from dlog.jit import Words, helper
from dlog.storage.index.fold_kernels import rows_before
from dlog.storage.layout import (
    BASE,
    CAPACITY,
    ENTRY,
    FILL,
    FLAT_BASE,
    FLAT_STRIDE,
    N_ENTRIES,
    N_NODES,
    N_ROWS,
    NODE_FIRST,
    NODE_HEADER,
    ROOT_HEADER,
    STRIDE,
)


@helper
def compare(A: Words, base: int, stride: int, i: int, kb: int, ks: int, j: int, d: int) -> int:
    """-1, 0 or 1: row i of one leaf against row j of another on their first d columns."""
    for c in range(d):
        a = A[base + c * stride + i]
        b = A[kb + c * ks + j]
        if a != b:
            return -1 if a < b else 1
    return 0


@helper
def compare_first(A: Words, node: int, e: int, kb: int, ks: int, j: int, d: int) -> int:
    """The same of the first row of a node's entry: the leaf is examined only if the first keys are equal."""
    if d > 0 and A[node + NODE_FIRST + e] != A[kb + j]:
        return -1 if A[node + NODE_FIRST + e] < A[kb + j] else 1
    entry = node + NODE_HEADER + ENTRY * e
    return compare(A, A[entry + BASE], A[entry + STRIDE], 0, kb, ks, j, d)


@helper
def compare_node(A: Words, root: int, ni: int, kb: int, ks: int, j: int, d: int) -> int:
    """The same of the first row of a root's node."""
    first = A[root + ROOT_HEADER + A[root + CAPACITY] + ni]
    if d > 0 and first != A[kb + j]:
        return -1 if first < A[kb + j] else 1
    return compare_first(A, A[root + ROOT_HEADER + ni], 0, kb, ks, j, d)


@helper
def leaf_bound(
    A: Words, base: int, stride: int, lo: int, hi: int, kb: int, ks: int, j: int, d: int, bias: int
) -> int:
    """The first row in [lo, hi) that is not before the key (bias 0), or is after it (bias 1); else hi.

    Gallops from lo, then halves: O(log(result - lo)).
    """
    step = 1
    end = lo
    while end < hi and compare(A, base, stride, end, kb, ks, j, d) < bias:
        lo = end + 1
        end += step
        step *= 2
    hi = min(end, hi)
    while lo < hi:
        middle = (lo + hi) >> 1
        if compare(A, base, stride, middle, kb, ks, j, d) < bias:
            lo = middle + 1
        else:
            hi = middle
    return lo


@helper
def count_keys(A, lo, hi, key):
    """(How many words in [lo, hi) are below `key`, how many equal it.)

    The processor compares several words at a time and never mispredicts: for the keys of a node and the
    rows of a leaf that takes less time than halving.  O(hi - lo).
    """
    below, equal = 0, 0
    for i in range(lo, hi):
        below += 1 if A[i] < key else 0
        equal += 1 if A[i] == key else 0
    return below, equal


@helper
def place_of(A, base, stride, lo, hi, keys, at, step, d):
    """The first row in [lo, hi) of a leaf that is not before a key of d words, each `step` after the last.

    Column by column, by counting.  O(rows).
    """
    for c in range(d):
        column = base + c * stride
        below, equal = count_keys(A, column + lo, column + hi, keys[at + c * step])
        lo += below
        hi = lo + equal
        if equal == 0:
            break
    return lo


@helper
def node_bound(A: Words, root: int, lo: int, kb: int, ks: int, j: int, d: int, bias: int) -> int:
    """The last node from lo on whose first row is before the key (bias 0) or not after it (1); else lo."""
    hi = A[root + N_NODES]
    lo += 1
    while lo < hi:
        middle = (lo + hi) >> 1
        if compare_node(A, root, middle, kb, ks, j, d) < bias:
            lo = middle + 1
        else:
            hi = middle
    return lo - 1


@helper
def entry_bound(A: Words, node: int, lo: int, kb: int, ks: int, j: int, d: int, bias: int) -> int:
    """The last entry from lo on whose first row is before the key (bias 0) or not after it (1); else lo."""
    hi = A[node + N_ENTRIES]
    lo += 1
    while lo < hi:
        middle = (lo + hi) >> 1
        if compare_first(A, node, middle, kb, ks, j, d) < bias:
            lo = middle + 1
        else:
            hi = middle
    return lo - 1


@helper
def rank(A: Words, root: int, kb: int, ks: int, j: int, d: int, bias: int) -> int:
    """How many rows are before the key (bias 0), or not after it (bias 1).

    O(log n) if flat, else O(log n + FANOUT).
    """
    if A[root + FLAT_BASE] >= 0:
        base = A[root + FLAT_BASE]
        return leaf_bound(A, base, A[root + FLAT_STRIDE], 0, A[root + N_ROWS], kb, ks, j, d, bias)
    ni = node_bound(A, root, 0, kb, ks, j, d, bias)
    node = A[root + ROOT_HEADER + ni]
    ei = entry_bound(A, node, 0, kb, ks, j, d, bias)
    entry = node + NODE_HEADER + ENTRY * ei
    before = leaf_bound(A, A[entry + BASE], A[entry + STRIDE], 0, A[entry + FILL], kb, ks, j, d, bias)
    before += rows_before(A, root, ni)
    for e in range(ei):
        before += A[node + NODE_HEADER + ENTRY * e + FILL]
    return before


@helper
def count_prefix(A: Words, root: int, kb: int, ks: int, j: int, d: int) -> int:
    """How many rows begin with the first d columns of the key.  As `rank`."""
    return rank(A, root, kb, ks, j, d, 1) - rank(A, root, kb, ks, j, d, 0)


@helper
def has_prefix(A: Words, root: int, kb: int, ks: int, j: int, d: int) -> int:
    """1 if some row begins with the first d columns of the key, else 0.  O(log n)."""
    if A[root + FLAT_BASE] >= 0:
        base, stride, fill = A[root + FLAT_BASE], A[root + FLAT_STRIDE], A[root + N_ROWS]
        i = leaf_bound(A, base, stride, 0, fill, kb, ks, j, d, 0)
        return 1 if i < fill and compare(A, base, stride, i, kb, ks, j, d) == 0 else 0
    # The last row that is not after the key: if any row matches, that one does.
    node = A[root + ROOT_HEADER + node_bound(A, root, 0, kb, ks, j, d, 1)]
    entry = node + NODE_HEADER + ENTRY * entry_bound(A, node, 0, kb, ks, j, d, 1)
    base, stride = A[entry + BASE], A[entry + STRIDE]
    i = leaf_bound(A, base, stride, 0, A[entry + FILL], kb, ks, j, d, 1)
    return 1 if i > 0 and compare(A, base, stride, i - 1, kb, ks, j, d) == 0 else 0


@helper
def read_rows(A: Words, root: int, k: int, row_step: int, column_step: int, out: Words) -> int:
    """Write value c of row i to out[i * row_step + c * column_step]; return the number of rows.  O(n * k)."""
    at = 0
    for ni in range(A[root + N_NODES]):
        node = A[root + ROOT_HEADER + ni]
        for ei in range(A[node + N_ENTRIES]):
            entry = node + NODE_HEADER + ENTRY * ei
            base, stride, fill = A[entry + BASE], A[entry + STRIDE], A[entry + FILL]
            for c in range(k):
                for i in range(fill):
                    out[(at + i) * row_step + c * column_step] = A[base + c * stride + i]
            at += fill
    return at


@helper
def copy_rows(
    A: Words, base: int, stride: int, i: int, n: int, to: int, to_stride: int, j: int, k: int
) -> None:
    """Rows [i, i + n) of one leaf to rows j on of another.  REQUIRES: they do not overlap."""
    for c in range(k):
        source = base + c * stride + i
        target = to + c * to_stride + j
        for x in range(n):
            A[target + x] = A[source + x]


@helper
def flatten(A: Words, root: int, k: int, to: int, to_stride: int) -> int:
    """Copy all rows to one flat leaf; return their number.  O(n * k)."""
    at = 0
    for ni in range(A[root + N_NODES]):
        node = A[root + ROOT_HEADER + ni]
        for ei in range(A[node + N_ENTRIES]):
            entry = node + NODE_HEADER + ENTRY * ei
            copy_rows(A, A[entry + BASE], A[entry + STRIDE], 0, A[entry + FILL], to, to_stride, at, k)
            at += A[entry + FILL]
    return at


@helper
def count_changes(A: Words, root: int, k: int, every: int, out: Words) -> int:
    """In each `every`-th leaf, count at which neighbours the first d columns differ: into out[d - 1].

    Returns the number of pairs examined; pairs across leaves are left out.  O(leaves + examined * k).
    """
    pairs = 0
    leaf = 0
    for ni in range(A[root + N_NODES]):
        node = A[root + ROOT_HEADER + ni]
        for ei in range(A[node + N_ENTRIES]):
            if leaf % every == 0:
                entry = node + NODE_HEADER + ENTRY * ei
                pairs += leaf_changes(A, A[entry + BASE], A[entry + STRIDE], A[entry + FILL], k, out)
            leaf += 1
    return pairs


@helper
def leaf_changes(A: Words, base: int, stride: int, fill: int, k: int, out: Words) -> int:
    """Add one to out[c ..] for each row whose first difference from the row before is in column c."""
    for i in range(1, fill):
        c = 0
        while c < k - 1 and A[base + c * stride + i] == A[base + c * stride + i - 1]:
            c += 1
        for x in range(c, k):
            out[x] += 1
    return fill - 1
