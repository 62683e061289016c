"""Owns queries on interval trees.  Knows nothing of the meaning of intervals.

An interval tree is an index of rows (prefix of d columns, a, b, others), with scans of column b
(`layout`): every node and entry has the greatest b below it.  Rows are sorted by a within a prefix, so the
rows that can hold a point x are those from the prefix's first row to the last with a <= x; of these, nodes
and leaves whose greatest b is below x are skipped.

A query stops when its output is full and continues from its state.
"""

from __future__ import annotations

from typing import Final

from dlog.jit import Words, helper, kernel
from dlog.storage.arena.pointer import pointer
from dlog.storage.index.fold_kernels import node_reaching
from dlog.storage.layout import (
    BASE,
    CAPACITY,
    ENTRY,
    FILL,
    N_ENTRIES,
    N_NODES,
    NODE_FIRST,
    NODE_HEADER,
    NODE_SCAN,
    ROOT_HEADER,
    SCAN_MAX,
    SCAN_WORDS,
    STRIDE,
)

# Words of the state: the current point, whether its place is known, where its rows continue and
# end, and how many nodes, entries, blocks and rows were examined.
POINT: Final = 0
IS_PLACED: Final = 1
PLACE: Final = 2  # node, entry, row
END: Final = 5  # node, entry, row: the first that cannot match
WORK: Final = 8
STATE_WORDS: Final = 16

BLOCK: Final = 32  # rows whose ends are compared at once

LEAST: Final = -(2**63)
GREATEST: Final = 2**63 - 1


@kernel
def stab_points(
    A: Words,
    root: int,
    d: int,
    k: int,
    points: Words,
    n: int,
    state: Words,
    out: Words,
    which: Words,
    room: int,
) -> int:
    """For n points of d + 1 words (prefix, x): the rows of that prefix with a <= x <= b.

    Rows of k words go to `out`, the number of the point of each to `which`.  Returns how many; all is done
    when state[POINT] is n, else the next call continues.  A point of m matches: O((m + 1) (log n + a page)).
    """
    return stab(
        pointer(A), root, d, k, pointer(points), n, pointer(state), pointer(out), pointer(which), room
    )


@helper
def stab(
    A: Words,
    root: int,
    d: int,
    k: int,
    points: Words,
    n: int,
    state: Words,
    out: Words,
    which: Words,
    room: int,
) -> int:
    """As `stab_points`, for kernels."""
    count = 0
    if A[root + N_NODES] == 0:
        state[POINT] = n
    while state[POINT] < n:
        at = state[POINT] * (d + 1)
        if state[IS_PLACED] == 0:
            find_key(A, root, points, at, d, 0, state, PLACE)
            find_key(A, root, points, at, d + 1, 1, state, END)
            state[IS_PLACED] = 1
        count = stab_one(A, root, d, k, points[at + d], state, out, which, count, room)
        if count == room:
            return count
        state[POINT] += 1
        state[IS_PLACED] = 0
    return count


@helper
def stab_one(
    A: Words, root: int, d: int, k: int, x: int, state: Words, out: Words, which: Words, count: int, room: int
) -> int:
    """Append the rows from PLACE to END with b >= x until there is no more room; return their number."""
    ni, ei, row = state[PLACE], state[PLACE + 1], state[PLACE + 2]
    last, last_entry, last_row = state[END], state[END + 1], state[END + 2]
    while ni < last or (ni == last and ei <= last_entry):
        if ei == 0:
            reaching = node_reaching(A, root, ni, last, x, state, WORK)
            if reaching > last:
                break
            if reaching > ni:
                ni, row = reaching, 0
        node = A[root + ROOT_HEADER + ni]
        state[WORK] += 1
        stop = last_entry + 1 if ni == last else A[node + N_ENTRIES]
        while ei < stop:
            state[WORK] += 1
            if A[node + NODE_SCAN + SCAN_WORDS * (ei + 1) + SCAN_MAX] >= x:
                entry = node + NODE_HEADER + ENTRY * ei
                end = last_row if ni == last and ei == last_entry else A[entry + FILL]
                count = stab_leaf(A, entry, d, k, x, row, end, state, out, which, count, room)
                if count == room:
                    state[PLACE] = ni
                    state[PLACE + 1] = ei
                    return count
            ei, row = ei + 1, 0
        ni, ei = ni + 1, 0
    return count


@helper
def stab_leaf(
    A: Words,
    entry: int,
    d: int,
    k: int,
    x: int,
    row: int,
    end: int,
    state: Words,
    out: Words,
    which: Words,
    count: int,
    room: int,
) -> int:
    """Append the rows [row, end) of a leaf with b >= x; the first one left goes to the state."""
    base, stride = A[entry + BASE], A[entry + STRIDE]
    ends = base + (d + 1) * stride
    while row < end:
        stop = min(row + BLOCK, end)
        most = LEAST
        for i in range(ends + row, ends + stop):
            most = max(most, A[i])
        state[WORK] += 1
        if most >= x:
            state[WORK] += stop - row
            for i in range(row, stop):
                if A[ends + i] >= x:
                    if count == room:
                        state[PLACE + 2] = i
                        return count
                    for c in range(k):
                        out[count * k + c] = A[base + c * stride + i]
                    which[count] = state[POINT]
                    count += 1
        row = stop
    state[PLACE + 2] = end
    return count


@helper
def find_key(A: Words, root: int, keys: Words, at: int, d: int, bias: int, state: Words, place: int) -> None:
    """The place of the first row not before the d words at keys[at] (bias 0), or after them (bias 1)."""
    lo, hi = 1, A[root + N_NODES]
    while lo < hi:
        middle = (lo + hi) >> 1
        first = A[root + ROOT_HEADER + A[root + CAPACITY] + middle]
        if d > 0 and first != keys[at]:
            order = -1 if first < keys[at] else 1
        else:
            order = compare_first_key(A, A[root + ROOT_HEADER + middle], 0, keys, at, d)
        if order < bias:
            lo = middle + 1
        else:
            hi = middle
    state[place] = lo - 1
    node = A[root + ROOT_HEADER + lo - 1]
    lo, hi = 1, A[node + N_ENTRIES]
    while lo < hi:
        middle = (lo + hi) >> 1
        if compare_first_key(A, node, middle, keys, at, d) < bias:
            lo = middle + 1
        else:
            hi = middle
    state[place + 1] = lo - 1
    entry = node + NODE_HEADER + ENTRY * (lo - 1)
    lo, hi = 0, A[entry + FILL]
    while lo < hi:
        middle = (lo + hi) >> 1
        if compare_key(A, A[entry + BASE] + middle, A[entry + STRIDE], keys, at, d) < bias:
            lo = middle + 1
        else:
            hi = middle
    state[place + 2] = lo


@helper
def compare_first_key(A: Words, node: int, e: int, keys: Words, at: int, d: int) -> int:
    """As `compare_key`, of the first row of a node's entry."""
    if d > 0 and A[node + NODE_FIRST + e] != keys[at]:
        return -1 if A[node + NODE_FIRST + e] < keys[at] else 1
    entry = node + NODE_HEADER + ENTRY * e
    return compare_key(A, A[entry + BASE], A[entry + STRIDE], keys, at, d)


@helper
def compare_key(A: Words, row: int, stride: int, keys: Words, at: int, d: int) -> int:
    """-1, 0 or 1: the row whose first column is at `row` against d words of keys."""
    for c in range(d):
        a = A[row + c * stride]
        b = keys[at + c]
        if a != b:
            return -1 if a < b else 1
    return 0
