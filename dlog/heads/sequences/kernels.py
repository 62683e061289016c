"""Owns the kernel of sequences: rows of an index by their numbers."""

from __future__ import annotations

from dlog.jit import Words, kernel
from dlog.storage.index.fold_kernels import node_of_row, rows_before
from dlog.storage.layout import BASE, ENTRY, FILL, N_ENTRIES, NODE_HEADER, ROOT_HEADER, STRIDE


@kernel
def read_range(A: Words, root: int, k: int, first: int, n: int, out: Words) -> int:
    """Writes rows first, first + 1, .. of an index of arity k, one after the other; returns how many: n.

    O(n * k + log rows + a node).  REQUIRES: n > 0 and first + n <= rows.
    """
    ni = node_of_row(A, root, first)
    skipped = first - rows_before(A, root, ni)
    at = 0
    while at < n:
        node = A[root + ROOT_HEADER + ni]
        for ei in range(A[node + N_ENTRIES]):
            entry = node + NODE_HEADER + ENTRY * ei
            fill = A[entry + FILL]
            if skipped >= fill:
                skipped -= fill
                continue
            many = min(fill - skipped, n - at)
            for c in range(k):
                source = A[entry + BASE] + c * A[entry + STRIDE] + skipped
                for i in range(many):
                    out[(at + i) * k + c] = A[source + i]
            at += many
            skipped = 0
            if at == n:
                break
        ni += 1
    return at
