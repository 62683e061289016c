"""Owns the kernels of oracles and of sets of rows.  Knows nothing of plans.

Rows are row-major, k words each.
"""

from __future__ import annotations

from dlog.jit import Words, helper, kernel
from dlog.storage.layout import (
    ENTRY,
    FANOUT,
    FILL,
    FLAT_BASE,
    N_ENTRIES,
    N_ROWS,
    NODE_HEADER,
    OFFSET_BITS,
    ROOT_HEADER,
)
from dlog.storage.trie_kernels import end_position, key_at, next_position, run_end, seek_lub

FREE = -1
ITEM = 4  # words of an item, as in `dlog.lftj.guide`
GREATEST = 2**63 - 1
LEAST = -(2**63)


@kernel
def row_changes(
    old: Words, n: int, new: Words, m: int, k: int, erased: Words, inserted: Words, sizes: Words
) -> None:
    """Rows only in `old` and only in `new`, each once; both are sorted, and may have rows several times.

    Leaves the numbers of rows written in `sizes`.  O((n + m) k).
    """
    i, j, e, a = 0, 0, 0, 0
    while i < n or j < m:
        order = -1 if j == m else 1 if i == n else compare_rows(old, i, new, j, k)
        if order < 0:
            e = put_row(old, i, k, erased, e)
        elif order > 0:
            a = put_row(new, j, k, inserted, a)
        if order <= 0:
            i = after_same(old, i, n, k)
        if order >= 0:
            j = after_same(new, j, m, k)
    sizes[0] = e
    sizes[1] = a


@kernel
def sort_few(rows: Words, n: int, k: int) -> None:
    """Sort rows in place.  O(n^1.5 k): for a few."""
    gap = 1
    while 3 * gap + 1 < n:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            j = i
            while j >= gap and compare_rows(rows, j, rows, j - gap, k) < 0:
                for c in range(k):
                    word = rows[j * k + c]
                    rows[j * k + c] = rows[(j - gap) * k + c]
                    rows[(j - gap) * k + c] = word
                j -= gap
        gap //= 3


@kernel
def sort_dense(rows: Words, n: int, k: int, least: int, counts: Words, out: Words) -> int:
    """Sort rows whose first word is from `least` to below least + len(counts) - 1, without repeats; returns
    how many there are.

    By counting, then each run of one first word by itself.  O(n k + range) if runs are short."""
    for i in range(len(counts)):
        counts[i] = 0
    for i in range(n):
        counts[rows[i * k] - least + 1] += 1
    for i in range(1, len(counts)):
        counts[i] += counts[i - 1]
    for i in range(n):
        to = counts[rows[i * k] - least]
        counts[rows[i * k] - least] = to + 1
        for c in range(k):
            out[to * k + c] = rows[i * k + c]
    start, kept = 0, 0
    for i in range(len(counts) - 1):  # each count is now the end of its run
        end = counts[i]
        if end - start > 1:
            sort_few(out[start * k :], end - start, k)
        for j in range(start, end):
            if j == start or compare_rows(out, j, out, kept - 1, k) != 0:
                if kept < j:
                    put_row(out, j, k, out, kept)
                kept += 1
        start = end
    return kept


@kernel
def put_columns(rows: Words, n: int, k: int, A: Words, at: int) -> None:
    """Write rows by columns: column c of row i to at + c * n + i.  O(n k)."""
    for i in range(n):
        for c in range(k):
            A[at + c * n + i] = rows[i * k + c]


@helper
def compare_rows(a: Words, i: int, b: Words, j: int, k: int) -> int:
    for c in range(k):
        if a[i * k + c] != b[j * k + c]:
            return -1 if a[i * k + c] < b[j * k + c] else 1
    return 0


@helper
def after_same(rows: Words, i: int, n: int, k: int) -> int:
    """The first row behind those that are the same as row i."""
    j = i + 1
    while j < n and compare_rows(rows, i, rows, j, k) == 0:
        j += 1
    return j


@helper
def put_row(rows: Words, i: int, k: int, out: Words, at: int) -> int:
    for c in range(k):
        out[at * k + c] = rows[i * k + c]
    return at + 1


# ---- oracles
#
# A contribution is a row of width + 2 words: its depth d, then the values of the first d - 1 key variables
# and the start of the interval of the d-th, filled up with the least int64, then the end of that interval.


@kernel
def flatten(rows: Words, n: int, width: int, wild: int, kept: Words, cursors: Words, out: Words) -> int:
    """Contributions as a guide; returns its number of words.

    `rows` are sorted by values and then by depth; bit d of `wild` says that depth d + 1 may be anything.
    What another contribution holds is left out, intervals that meet are joined.  `kept` has room for n
    numbers, `cursors` for 3 * (width + 2).  O(n * width).
    """
    m = merge(rows, n, width, kept, cursors)
    levels(rows, m, width, kept, cursors)
    at = 2
    for d in range(1, width + 1):  # where the items of each depth begin
        cursors[d] = at
        at += ITEM * cursors[width + 2 + d]
    out[0], out[1] = FREE, FREE
    if m > 0 and rows[kept[0] * (width + 2)] > 0:
        out[0], out[1] = cursors[1], cursors[1] + ITEM * cursors[width + 2 + 1]
        write_items(rows, m, width, wild, kept, cursors, out)
    return at


@helper
def merge(rows: Words, n: int, width: int, kept: Words, cursors: Words) -> int:
    """The numbers of contributions that no other holds; their ends grow.

    Only the last one kept of each depth can hold the next: those before it end earlier.
    """
    k = width + 2
    last = 2 * (width + 2)
    for d in range(width + 1):
        cursors[last + d] = -1
    m = 0
    for i in range(n):
        held = False
        for d in range(rows[i * k] + 1):
            r = cursors[last + d]
            if r >= 0 and not held and holds(rows, r, i, d, width):
                held = True
                if rows[i * k] == d:
                    rows[r * k + 1 + width] = max(rows[r * k + 1 + width], rows[i * k + 1 + width])
        if not held:
            cursors[last + rows[i * k]] = i
            kept[m] = i
            m += 1
    return m


@helper
def holds(rows: Words, r: int, i: int, d: int, width: int) -> bool:
    """Whether contribution r, of depth d, holds the start of contribution i."""
    k = width + 2
    if d == 0:
        return True
    return common_prefix(rows, r, i, width) >= d - 1 and rows[i * k + d] <= rows[r * k + 1 + width]


@helper
def common_prefix(rows: Words, i: int, j: int, width: int) -> int:
    """In how many first values two contributions agree."""
    k = width + 2
    c = 0
    while c < width and rows[i * k + 1 + c] == rows[j * k + 1 + c]:
        c += 1
    return c


@helper
def opened_at(rows: Words, i: int, width: int, kept: Words) -> int:
    """The depth of the first item that kept contribution i does not share with the one before it."""
    if i == 0:
        return 1
    k = width + 2
    d = rows[kept[i] * k]
    before = rows[kept[i - 1] * k]
    common = common_prefix(rows, kept[i - 1], kept[i], width)
    return min(common + 1, d, before)


@helper
def levels(rows: Words, m: int, width: int, kept: Words, cursors: Words) -> None:
    """Count the items of each depth."""
    k = width + 2
    for d in range(width + 2):
        cursors[width + 2 + d] = 0
    for i in range(m):
        for d in range(opened_at(rows, i, width, kept), rows[kept[i] * k] + 1):
            cursors[width + 2 + d] += 1


@helper
def write_items(rows: Words, m: int, width: int, wild: int, kept: Words, cursors: Words, out: Words) -> None:
    """Depth first; the last item of each depth is open at its end until the next one begins."""
    k = width + 2
    last = 2 * (width + 2)  # cursors of the open items
    for i in range(m):
        at = kept[i] * k
        depth = rows[at]
        for d in range(opened_at(rows, i, width, kept), depth + 1):
            item = cursors[d]
            cursors[d] += ITEM
            is_wild = (wild >> (d - 1)) & 1 == 1
            out[item] = LEAST if is_wild else rows[at + d]
            out[item + 1] = GREATEST if is_wild else rows[at + d] if d < depth else rows[at + 1 + width]
            out[item + 2] = cursors[d + 1] if d < depth else FREE
            out[item + 3] = FREE
            cursors[last + d] = item
        for d in range(1, depth):
            out[cursors[last + d] + 3] = cursors[d + 1]


# ---- sensitivity indices, by context


@kernel
def overlapping(
    A: Words, root: int, d: int, covers: Words, n: int, out: Words, which: Words, room: int
) -> int:
    """Rows (d columns of context, a, b) of an index that meet one of n covers of the same form, and in its
    context the last row before and the first row behind.

    Writes at most `room` of them, some maybe several times, with the number of the cover of each, and returns
    how many there are.  All intervals of one context end in the order in which they begin.
    O(n d log rows + found).
    """
    k = d + 2
    found = 0
    end = end_position(A, root)
    if A[root + N_ROWS] == 0:
        return 0
    for i in range(n):
        lo, hi = 0, end
        c = 0
        while c < d:
            key = covers[i * k + c]
            lo = seek_lub(A, root, c, lo, hi, key)
            if lo >= hi or key_at(A, root, c, lo) != key:
                break
            hi = run_end(A, root, c, lo, hi)
            c += 1
        if c < d:
            continue
        last = covers[i * k + d + 1]
        at = hi if last == GREATEST else seek_lub(A, root, d, lo, hi, last + 1)
        if at < hi:
            if found < room:
                which[found] = i
            found = put_found(A, root, at, k, out, found, room)
        meets = True
        while at > lo and meets:
            at = previous_position(A, root, at)
            meets = key_at(A, root, d + 1, at) >= covers[i * k + d]
            if found < room:
                which[found] = i
            found = put_found(A, root, at, k, out, found, room)
    return found


@kernel
def prefixed(
    A: Words, root: int, d: int, k: int, prefixes: Words, n: int, out: Words, which: Words, room: int
) -> int:
    """Rows of k words of an index that begin with one of n prefixes of d words, and the number of the prefix.

    Writes at most `room` of them, and returns how many there are.  O(n d log rows + found)."""
    found = 0
    if A[root + N_ROWS] == 0:
        return 0
    for i in range(n):
        lo, hi = 0, end_position(A, root)
        c = 0
        while c < d:
            key = prefixes[i * d + c]
            lo = seek_lub(A, root, c, lo, hi, key)
            if lo >= hi or key_at(A, root, c, lo) != key:
                break
            hi = run_end(A, root, c, lo, hi)
            c += 1
        while c == d and lo < hi:
            if found < room:
                which[found] = i
            found = put_found(A, root, lo, k, out, found, room)
            lo = next_position(A, root, lo)
    return found


@helper
def put_found(A: Words, root: int, at: int, k: int, out: Words, found: int, room: int) -> int:
    if found < room:
        for x in range(k):
            out[found * k + x] = key_at(A, root, x, at)
    return found + 1


@helper
def previous_position(A: Words, root: int, position: int) -> int:
    """The position of the row before.  O(1).  REQUIRES: there is one."""
    if A[root + FLAT_BASE] >= 0 or position & ((1 << OFFSET_BITS) - 1) > 0:
        return position - 1
    ordinal = position >> OFFSET_BITS
    node = ordinal // FANOUT
    entry = ordinal % FANOUT - 1
    if entry < 0:
        node -= 1
        entry = A[A[root + ROOT_HEADER + node] + N_ENTRIES] - 1
    fill = A[A[root + ROOT_HEADER + node] + NODE_HEADER + ENTRY * entry + FILL]
    return ((node * FANOUT + entry) << OFFSET_BITS) + fill - 1


@kernel
def clip(rows: Words, n: int, d: int, starts: Words, ends: Words, covers: Words, out: Words) -> int:
    """Rows (d columns of context, a, b) without what covers their ends; returns how many are left.

    What covers row i are the rows starts[i] <= j < ends[i] of the same form, sorted and disjoint.  A cover
    inside of an interval leaves it whole.  O(covers of each row).
    """
    k = d + 2
    m = 0
    for i in range(n):
        a, b = rows[i * k + d], rows[i * k + d + 1]
        left = True
        for j in range(starts[i], ends[i]):
            low, high = covers[j * k + d], covers[j * k + d + 1]
            if low <= a and high >= a:
                if high >= b:
                    left = False
                    break
                a = high + 1
        j = ends[i] - 1
        while left and j >= starts[i]:
            low, high = covers[j * k + d], covers[j * k + d + 1]
            if low <= b and high >= b:
                if low <= a:
                    left = False
                    break
                b = low - 1
            j -= 1
        if left:
            for c in range(d):
                out[m * k + c] = rows[i * k + c]
            out[m * k + d] = a
            out[m * k + d + 1] = b
            m += 1
    return m


@kernel
def glue(A: Words, root: int, p: int, rows: Words, n: int, d: int) -> int:
    """Join intervals that lie in one gap of an atom, and leave out what a piece holds; returns how many are
    left.

    Rows are (d columns of context, a, b, whether it is a piece), sorted; the first p columns of the context
    are the first of the atom's index.  In place.  O(n (d + p log rows of the atom)).
    """
    k = d + 3
    m = 0
    piece_end = LEAST
    has_piece = False
    for i in range(n):
        same = m > 0
        for c in range(d):
            same = same and rows[(m - 1) * k + c] == rows[i * k + c]
        has_piece = has_piece and same
        is_piece = rows[i * k + k - 1] == 1
        if has_piece and not is_piece and rows[i * k + d + 1] <= piece_end:
            continue
        last, first = rows[(m - 1) * k + d + 1] if same else GREATEST, rows[i * k + d]
        if same and last < first and is_gap(A, root, p, rows, i * k, last, first):
            rows[(m - 1) * k + d + 1] = rows[i * k + d + 1]
            rows[(m - 1) * k + k - 1] = max(rows[(m - 1) * k + k - 1], rows[i * k + k - 1])
        else:
            for c in range(k):
                rows[m * k + c] = rows[i * k + c]
            m += 1
        if is_piece:
            has_piece, piece_end = True, rows[(m - 1) * k + d + 1]
    return m


@helper
def is_gap(A: Words, root: int, p: int, prefix: Words, at: int, low: int, high: int) -> bool:
    """Whether an index has, behind the p words of a prefix, no key from low to below high."""
    if A[root + N_ROWS] == 0:
        return True
    lo, hi = 0, end_position(A, root)
    for c in range(p):
        key = prefix[at + c]
        lo = seek_lub(A, root, c, lo, hi, key)
        if lo >= hi or key_at(A, root, c, lo) != key:
            return True
        hi = run_end(A, root, c, lo, hi)
    lo = seek_lub(A, root, p, lo, hi, low)
    return lo >= hi or key_at(A, root, p, lo) >= high
