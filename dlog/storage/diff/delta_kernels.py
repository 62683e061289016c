"""Owns walking two versions side by side.  Knows nothing of handles.

The walk has a place (node, entry, row) in each version and a count of what it examined, in a state array,
so that it can stop when a buffer is full and continue.  Whatever both versions share starts at the same key,
so both places reach its start together, and it is skipped as a whole.
"""

from __future__ import annotations

from typing import Final

from dlog.jit import Words, helper
from dlog.storage.index.tree_kernels import compare, entry_bound, leaf_bound, node_bound
from dlog.storage.layout import (
    BASE,
    ENTRY,
    FILL,
    N_ENTRIES,
    N_NODES,
    N_ROWS,
    NODE_HEADER,
    ROOT_HEADER,
    STRIDE,
)

# The state: two places, the rows written so far, and the work done (nodes, entries and rows examined).
OLD: Final = 0
NEW: Final = 3
N_INSERTED: Final = 6
N_ERASED: Final = 7
WORK: Final = 8
STATE_WORDS: Final = 9


@helper
def walk_difference(A: Words, old: int, new: int, k: int, state: Words, room: int, out: Words) -> int:
    """Rows only in `new` to out[0], rows only in `old` to out[room * k], row-major; 1 when done, 0 when full.

    O(nodes + changed nodes * FANOUT + rows of changed leaves).
    """
    state[N_INSERTED] = 0
    state[N_ERASED] = 0
    while state[OLD] < A[old + N_NODES] and state[NEW] < A[new + N_NODES]:
        state[WORK] += 1
        if skip_shared(A, old, new, state):
            continue
        a, b = entry_at(A, old, state, OLD), entry_at(A, new, state, NEW)
        i, j = state[OLD + 2], state[NEW + 2]
        same = equal_rows(A, a, i, b, j, k)
        if same > 0:
            state[WORK] += same
            advance(A, old, state, OLD, same)
            advance(A, new, state, NEW, same)
            continue
        order = compare(A, A[a + BASE], A[a + STRIDE], i, A[b + BASE], A[b + STRIDE], j, k)
        if order < 0:
            if not put_row(A, a, i, k, state, N_ERASED, room, out):
                return 0
        elif order > 0 and not put_row(A, b, j, k, state, N_INSERTED, room, out):
            return 0
        if order < 0:
            advance(A, old, state, OLD, 1)
        else:
            advance(A, new, state, NEW, 1)
    if not put_rest(A, old, k, state, OLD, N_ERASED, room, out):
        return 0
    return 1 if put_rest(A, new, k, state, NEW, N_INSERTED, room, out) else 0


@helper
def skip_shared(A: Words, old: int, new: int, state: Words) -> bool:
    """Skip a node, or an entry, that both versions share and both places are at the start of."""
    if state[OLD + 2] != 0 or state[NEW + 2] != 0:
        return False
    at_start = state[OLD + 1] == 0 and state[NEW + 1] == 0
    if at_start and A[old + ROOT_HEADER + state[OLD]] == A[new + ROOT_HEADER + state[NEW]]:
        state[OLD] += 1
        state[NEW] += 1
        return True
    a, b = entry_at(A, old, state, OLD), entry_at(A, new, state, NEW)
    for x in range(ENTRY):
        if A[a + x] != A[b + x]:
            return False
    next_entry(A, old, state, OLD)
    next_entry(A, new, state, NEW)
    return True


@helper
def entry_at(A: Words, root: int, state: Words, at: int) -> int:
    """The entry of a place."""
    return A[root + ROOT_HEADER + state[at]] + NODE_HEADER + ENTRY * state[at + 1]


@helper
def next_entry(A: Words, root: int, state: Words, at: int) -> None:
    """To the start of the next leaf."""
    state[at + 2] = 0
    state[at + 1] += 1
    if state[at + 1] == A[A[root + ROOT_HEADER + state[at]] + N_ENTRIES]:
        state[at + 1] = 0
        state[at] += 1


@helper
def equal_rows(A: Words, a: int, i: int, b: int, j: int, k: int) -> int:
    """How many rows of leaf a from i on equal those of leaf b from j on, up to the end of one leaf."""
    n = min(A[a + FILL] - i, A[b + FILL] - j)
    for c in range(k):
        left = A[a + BASE] + c * A[a + STRIDE] + i
        right = A[b + BASE] + c * A[b + STRIDE] + j
        x = 0
        while x < n and A[left + x] == A[right + x]:
            x += 1
        n = x
    return n


@helper
def advance(A: Words, root: int, state: Words, at: int, rows: int) -> None:
    """Some rows on, within the leaf or to the start of the next."""
    state[at + 2] += rows
    if state[at + 2] == A[entry_at(A, root, state, at) + FILL]:
        next_entry(A, root, state, at)


@helper
def put_row(A: Words, entry: int, i: int, k: int, state: Words, which: int, room: int, out: Words) -> bool:
    """Write one row; false when there is no room."""
    n = state[which]
    if n == room:
        return False
    to = ((which - N_INSERTED) * room + n) * k
    for c in range(k):
        out[to + c] = A[A[entry + BASE] + c * A[entry + STRIDE] + i]
    state[which] = n + 1
    return True


@helper
def put_rest(A: Words, root: int, k: int, state: Words, at: int, which: int, room: int, out: Words) -> bool:
    """Write what one version has after the end of the other."""
    while state[at] < A[root + N_NODES]:
        if not put_row(A, entry_at(A, root, state, at), state[at + 2], k, state, which, room, out):
            return False
        state[WORK] += 1
        advance(A, root, state, at, 1)
    return True


@helper
def deepest(A: Words, root: int, kb: int, ks: int, k: int) -> int:
    """The length of the longest prefix of a key (row 0) that the index has.  O(log n + k).

    Only the last row not after the key and the first one after it can share it.
    """
    if A[root + N_ROWS] == 0:
        return 0
    ni = node_bound(A, root, 0, kb, ks, 0, k, 1)
    node = A[root + ROOT_HEADER + ni]
    ei = entry_bound(A, node, 0, kb, ks, 0, k, 1)
    entry = node + NODE_HEADER + ENTRY * ei
    base, stride, fill = A[entry + BASE], A[entry + STRIDE], A[entry + FILL]
    i = leaf_bound(A, base, stride, 0, fill, kb, ks, 0, k, 1)
    best = common_prefix(A, base, stride, i - 1, kb, ks, k) if i > 0 else 0
    if i < fill:
        return max(best, common_prefix(A, base, stride, i, kb, ks, k))
    if ei + 1 < A[node + N_ENTRIES]:
        entry += ENTRY
    elif ni + 1 < A[root + N_NODES]:
        entry = A[root + ROOT_HEADER + ni + 1] + NODE_HEADER
    else:
        return best
    return max(best, common_prefix(A, A[entry + BASE], A[entry + STRIDE], 0, kb, ks, k))


@helper
def common_prefix(A: Words, base: int, stride: int, i: int, kb: int, ks: int, k: int) -> int:
    """In how many first columns row i agrees with the key."""
    c = 0
    while c < k and A[base + c * stride + i] == A[kb + c * ks]:
        c += 1
    return c


@helper
def count_missing(A: Words, root: int, rows: Words, n: int, k: int, key: int, out: Words) -> None:
    """For each of n rows (row-major) the length of its longest prefix in the index.  O(n log n_rows).

    `key` is room for one row in the arena.
    """
    for i in range(n):
        for c in range(k):
            A[key + c] = rows[i * k + c]
        out[i] = deepest(A, root, key, 1, k)


@helper
def write_surgeries(
    inserted: Words, kept: Words, n: int, erased: Words, left: Words, m: int, k: int, out: Words
) -> int:
    """Surgeries in the order of their rows, as (sign, depth, row) of k + 2 words; returns their number.

    `kept[i]` is how deep the old version already had inserted row i, `left[j]` how deep the new version still
    has erased row j.  A branch is inserted from the top down, before its first row, and erased from the
    bottom up, after its last.  O((n + m) k).
    """
    i, j, at = 0, 0, 0
    while i < n or j < m:
        if j == m or (i < n and row_before(inserted, i, erased, j, k)):
            shared = shared_prefix(inserted, i - 1, i, k) if i > 0 else 0
            for d in range(max(kept[i], shared) + 1, k + 1):
                at = put_surgery(inserted, i, 1, d, k, out, at)
            i += 1
        else:
            shared = shared_prefix(erased, j, j + 1, k) if j + 1 < m else 0
            for d in range(k, max(left[j], shared), -1):
                at = put_surgery(erased, j, -1, d, k, out, at)
            j += 1
    return at


@helper
def row_before(a: Words, i: int, b: Words, j: int, k: int) -> bool:
    """Whether row i of a is before row j of b."""
    for c in range(k):
        if a[i * k + c] != b[j * k + c]:
            return a[i * k + c] < b[j * k + c]
    return False


@helper
def shared_prefix(rows: Words, i: int, j: int, k: int) -> int:
    """In how many first columns two rows agree."""
    c = 0
    while c < k and rows[i * k + c] == rows[j * k + c]:
        c += 1
    return c


@helper
def put_surgery(rows: Words, i: int, sign: int, depth: int, k: int, out: Words, at: int) -> int:
    """Write one surgery; columns below its depth are 0."""
    to = at * (k + 2)
    out[to] = sign
    out[to + 1] = depth
    for c in range(k):
        out[to + 2 + c] = rows[i * k + c] if c < depth else 0
    return at + 1
