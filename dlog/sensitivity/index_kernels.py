"""Owns the kernels of sensitivity indices: rows by prefix and by context, and what a cycle makes of them.

An index has rows (prefix, a, b, others); kept by context they are (prefix, others, a, b), see
`dlog.sensitivity.intervals`.  Rows are row-major, k words each.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import Words, helper, kernel, pointer, shifted
from dlog.sensitivity.cover_kernels import find_covers
from dlog.sensitivity.oracle_kernels import GREATEST, LEAST
from dlog.sensitivity.row_kernels import compare_rows, find_changes
from dlog.storage.layout import (
    BASE,
    ENTRY,
    FANOUT,
    FILL,
    FLAT_BASE,
    FLAT_STRIDE,
    N_ENTRIES,
    N_NODES,
    NODE_HEADER,
    OFFSET_BITS,
    ROOT_HEADER,
    STRIDE,
)
from dlog.storage.trie_kernels import (
    address_paged,
    end_of,
    entry_of,
    lub,
    next_paged,
    seek_lub_paged,
)


@kernel
def covered(
    A: Words,
    root: int,
    atom: int,
    p: int,
    k: int,
    covers: Words,
    n: int,
    noted: Words,
    m: int,
    room: int,
    work: Words,
    edit: Words,
    sizes: Words,
) -> int:
    """What becomes of an index kept by context: covered parts go, what was noted comes.

    `root` is that of the index by context, `atom` that of the new version of what it watches, p the number of
    columns of a prefix.  Covers and what was noted are sorted rows (context, a, b), each once.  Writes to
    `edit` the rows to insert and then those to erase, in the index's own columns, and their numbers to
    `sizes`.  Returns how many rows meet the covers: more than `room` is too many, and nothing is written.
    `work` and `edit` have `work_words` and (2 room + m) k words; n is at most `room`.
    O((covers + found + noted) log rows).
    """
    asked, fresh, rest = pointer(covers), pointer(noted), pointer(work)
    out, counts = pointer(edit), pointer(sizes)
    return int(find_covered(pointer(A), root, atom, p, k, asked, n, fresh, m, room, rest, out, counts))


@helper
def find_covered(words, root, atom, p, k, covers, n, noted, m, room, work, edit, sizes):
    """As `covered`, over pointers."""
    d = k - 2
    which = shifted(work, room * k)
    found = find_overlapping(words, root, d, covers, n, work, which, shifted(which, room), room, True)
    if found > room:
        return found
    pieces, marked = which, shifted(work, 2 * room * k)
    left = clip(work, found, d, covers, n, pieces)
    later = merged(pieces, left, noted, m, k, marked)
    later = unmarked(marked, glue(words, atom, p, marked, later, d), k)
    change = shifted(marked, (room + m) * (k + 1))
    find_changes(work, found, marked, later, k, change, shifted(change, room * k), sizes)
    erased, inserted = sizes[0], sizes[1]
    put_natural(shifted(change, room * k), inserted, p, k, edit)
    put_natural(change, erased, p, k, shifted(edit, inserted * k))
    sizes[0] = inserted
    sizes[1] = erased
    return found


def work_words(k: int, room: int, m: int) -> int:
    """How much room `covered` needs to work."""
    return 3 * room * k + (room + m) * (2 * k + 1) + room


@helper
def merged(pieces, n, noted, m, k, out):
    """Two sorted lists of rows as one, each row followed by whether it is a piece; returns n + m."""
    i, j = 0, 0
    while i < n or j < m:
        is_piece = j == m or (i < n and compare_rows(pieces, i, noted, j, k) < 0)
        at = (i + j) * (k + 1)
        for c in range(k):
            out[at + c] = pieces[i * k + c] if is_piece else noted[j * k + c]
        out[at + k] = 1 if is_piece else 0
        if is_piece:
            i += 1
        else:
            j += 1
    return n + m


@helper
def unmarked(rows, n, k):
    """Rows without the word behind them, in place; returns n."""
    for i in range(n):
        for c in range(k):
            rows[i * k + c] = rows[i * (k + 1) + c]
    return n


@helper
def by_context(c, p, k):
    """The place in a row (prefix, others, a, b) of column c of a row (prefix, a, b, others)."""
    if c < p:
        return c
    return k - 2 + c - p if c < p + 2 else c - 2


@helper
def put_natural(rows, n, p, k, out):
    """Rows by context as rows in the index's own columns."""
    for i in range(n):
        for c in range(k):
            out[i * k + c] = rows[i * k + by_context(c, p, k)]


@helper
def put_by_context(rows, n, p, k, out):
    """The other way round."""
    for i in range(n):
        for c in range(k):
            out[i * k + by_context(c, p, k)] = rows[i * k + c]


@kernel
def overlapping(
    A: Words,
    root: int,
    d: int,
    covers: Words,
    n: int,
    out: Words,
    which: Words,
    places: Words,
    room: int,
) -> int:
    """Rows (d columns of context, a, b) of an index that meet one of n covers of the same form, and in its
    context the last row before and the first row behind.

    Writes at most `room` of them, some maybe several times, with the number of the cover of each, and returns
    how many there are.  `places` are 2 n words to work in.  All intervals of one context end in the order in
    which they begin.  O(n d log rows + found).
    """
    words, asked, to = pointer(A), pointer(covers), pointer(out)
    return int(find_overlapping(words, root, d, asked, n, to, pointer(which), pointer(places), room, False))


@helper
def find_overlapping(words, root, d, covers, n, out, which, places, room, once):
    """As `overlapping`, over pointers.  `once`: each row is written for the first cover that it meets; then
    all are in order if the covers are."""
    if words[root + N_NODES] == 0:
        return 0
    find_covers(words, root, d, covers, n, places)
    k = d + 2
    found, last_at = 0, np.int64(-1)
    end = end_of(words, root)
    for i in range(n):
        first, last = covers[i * k + d], covers[i * k + d + 1]
        at = position_of(words, root, places[2 * i], places[2 * i + 1])
        inside = at < end and has_context(words, root, at, d, covers, i * k)
        while inside and key(words, root, d, at) <= last:
            at = following(words, root, at)
            inside = at < end and has_context(words, root, at, d, covers, i * k)
        rows = 1 if inside else 0
        meets = True
        while meets and at > 0:
            before = previous_position(words, root, at)
            if not has_context(words, root, before, d, covers, i * k):
                break
            meets = key(words, root, d + 1, before) >= first
            at = before
            rows += 1
        for _ in range(rows):
            if not once or at > last_at:
                if found < room:
                    which[found] = i
                found = put_found(words, root, at, k, out, found, room)
                last_at = at
            at = following(words, root, at)
    return found


@helper
def position_of(words, root, ordinal, row):
    """The position of a row of a leaf, or of what follows the last one."""
    entry = entry_of(words, root, ordinal)
    if words[root + FLAT_BASE] >= 0:
        return words[entry + BASE] - words[root + FLAT_BASE] + row
    if row < words[entry + FILL]:
        return (ordinal << OFFSET_BITS) + row
    return next_paged(words, root, (ordinal << OFFSET_BITS) + row - 1)


@helper
def following(words, root, position):
    """The position of the row behind."""
    return position + 1 if words[root + FLAT_BASE] >= 0 else next_paged(words, root, position)


@helper
def has_context(words, root, position, d, covers, at):
    """Whether a row begins with the d words at covers[at]."""
    base, stride = words[root + FLAT_BASE] + position, words[root + FLAT_STRIDE]
    if words[root + FLAT_BASE] < 0:
        entry = entry_of(words, root, position >> OFFSET_BITS)
        base, stride = words[entry + BASE] + (position & ((1 << OFFSET_BITS) - 1)), words[entry + STRIDE]
    same = True
    for c in range(d):
        same = same and words[base + c * stride] == covers[at + c]
    return same


@kernel
def prefixed(
    A: Words, root: int, d: int, k: int, prefixes: Words, n: int, out: Words, which: Words, room: int
) -> int:
    """Rows of k words of an index that begin with one of n prefixes of d words, and the number of the prefix.

    Writes at most `room` of them, and returns how many there are.  O(n d log rows + found)."""
    return int(
        find_prefixed(pointer(A), root, d, k, pointer(prefixes), n, pointer(out), pointer(which), room)
    )


@helper
def find_prefixed(words, root, d, k, prefixes, n, out, which, room):
    """As `prefixed`, over pointers."""
    found = 0
    for i in range(n):
        lo, hi = beginning(words, root, d, prefixes, i * d)
        while lo < hi:
            if found < room:
                which[found] = i
            found = put_found(words, root, lo, k, out, found, room)
            lo = following(words, root, lo)
    return found


@helper
def beginning(words, root, d, prefixes, at):
    """From where to where rows begin with the d words at prefixes[at].  O(d log rows)."""
    lo, hi = np.int64(0), end_of(words, root)
    for c in range(d):
        lo, hi = narrowed(words, root, c, lo, hi, prefixes[at + c])
    return lo, hi


@helper
def narrowed(words, root, column, lo, hi, word):
    """The part of rows [lo, hi) that have a word in a column; they agree in those before it."""
    lo = seek(words, root, column, lo, hi, word)
    if lo >= hi or key(words, root, column, lo) != word:
        return hi, hi
    return lo, hi if word == GREATEST else seek(words, root, column, lo, hi, word + 1)


@helper
def seek(words, root, column, lo, hi, word):
    """As `seek_lub`, on a pointer."""
    base = words[root + FLAT_BASE]
    if base >= 0:
        base += column * words[root + FLAT_STRIDE]
        return lub(words, base + lo, base + hi, word) - base
    return seek_lub_paged(words, root, column, lo, hi, word)


@helper
def key(words, root, column, position):
    """As `key_at`, on a pointer."""
    base = words[root + FLAT_BASE]
    if base >= 0:
        return words[base + column * words[root + FLAT_STRIDE] + position]
    return words[address_paged(words, root, column, position)]


@helper
def put_found(words, root, at, k, out, found, room):
    if found < room:
        start, stride = words[root + FLAT_BASE] + at, words[root + FLAT_STRIDE]
        if words[root + FLAT_BASE] < 0:
            entry = entry_of(words, root, at >> OFFSET_BITS)
            start, stride = words[entry + BASE] + (at & ((1 << OFFSET_BITS) - 1)), words[entry + STRIDE]
        for x in range(k):
            out[found * k + x] = words[start + x * stride]
    return found + 1


@helper
def previous_position(words, root, position):
    """The position of the row before.  O(1).  REQUIRES: there is one."""
    if words[root + FLAT_BASE] >= 0 or position & ((1 << OFFSET_BITS) - 1) > 0:
        return position - 1
    ordinal = position >> OFFSET_BITS
    node = ordinal // FANOUT
    entry = ordinal % FANOUT - 1
    if entry < 0:
        node -= 1
        entry = words[words[root + ROOT_HEADER + node] + N_ENTRIES] - 1
    fill = words[words[root + ROOT_HEADER + node] + NODE_HEADER + ENTRY * entry + FILL]
    return ((node * FANOUT + entry) << OFFSET_BITS) + fill - 1


@helper
def clip(rows, n, d, covers, n_covers, out):
    """Rows (d columns of context, a, b) without what covers their ends; returns how many are left.

    Both are sorted, and the covers of one context are disjoint.  A cover inside of an interval leaves it
    whole.  O(covers of each row's context).
    """
    k = d + 2
    m, start = 0, 0
    for i in range(n):
        while start < n_covers and compare_contexts(covers, start, rows, i, k, d) < 0:
            start += 1
        end = start
        while end < n_covers and compare_contexts(covers, end, rows, i, k, d) == 0:
            end += 1
        a, b = rows[i * k + d], rows[i * k + d + 1]
        left = True
        for j in range(start, end):
            low, high = covers[j * k + d], covers[j * k + d + 1]
            if low <= a and high >= a:
                if high >= b:
                    left = False
                    break
                a = high + 1
        j = end - 1
        while left and j >= start:
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


@helper
def compare_contexts(a, i, b, j, k, d):
    """Of two rows of k words, by their first d."""
    for c in range(d):
        if a[i * k + c] != b[j * k + c]:
            return -1 if a[i * k + c] < b[j * k + c] else 1
    return 0


@helper
def glue(words, root, p, rows, n, d):
    """Join intervals that lie in one gap of an atom, and leave out what a piece holds; returns how many are
    left.

    Rows are (d columns of context, a, b, whether it is a piece), sorted; the first p columns of the context
    are the first of the atom's index.  In place.  O(n (d + log rows of the atom) + contexts p log rows).
    """
    k = d + 3
    m = 0
    piece_end = LEAST
    has_piece = False
    lo, hi, at = np.int64(0), np.int64(0), -1  # the atom's rows of the prefix of row `at`
    for i in range(n):
        same = m > 0 and compare_contexts(rows, m - 1, rows, i, k, d) == 0
        has_piece = has_piece and same
        is_piece = rows[i * k + k - 1] == 1
        if has_piece and not is_piece and rows[i * k + d + 1] <= piece_end:
            continue
        last, first = rows[(m - 1) * k + d + 1] if same else GREATEST, rows[i * k + d]
        joins = same and last < first
        if joins:
            if at != m - 1:
                lo, hi = beginning(words, root, p, rows, i * k)
                at = m - 1
            gap = seek(words, root, p, lo, hi, last)
            joins = gap >= hi or key(words, root, p, gap) >= first
        if joins:
            rows[(m - 1) * k + d + 1] = rows[i * k + d + 1]
            rows[(m - 1) * k + k - 1] = max(rows[(m - 1) * k + k - 1], rows[i * k + k - 1])
        else:
            at = m if 0 <= at == m - 1 and compare_contexts(rows, at, rows, i, k, p) == 0 else -1
            for c in range(k):
                rows[m * k + c] = rows[i * k + c]
            m += 1
        if is_piece:
            has_piece, piece_end = True, rows[(m - 1) * k + d + 1]
    return m
