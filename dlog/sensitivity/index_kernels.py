"""Owns the kernels of sensitivity indices: rows by prefix and by context, and how a cycle changes them.

An index has rows (prefix, a, b, others); ordered by context they are (prefix, others, a, b), see
`dlog.sensitivity.intervals`.  Rows are row-major, k words each.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.jit import Words, helper, kernel, pointer, shifted
from dlog.sensitivity.cover_kernels import find_covers
from dlog.sensitivity.oracle_kernels import GREATEST, LEAST
from dlog.sensitivity.row_kernels import after_same, compare_at, compare_rows
from dlog.storage.index.leaf_kernels import ERASE, INSERT, OP, OP_COLUMNS, ORDINAL, POSITION
from dlog.storage.index.trie_kernels import (
    address_paged,
    end_of,
    entry_of,
    lub,
    next_paged,
    seek_lub_paged,
)
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

# Marks of rows between one version of an index and the next: the rest of an interval, and one
# that is known to end at a key of the atom, so that nothing after it is in the same gap.
PIECE: Final = 1
AT_KEY: Final = 2


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
    """The change of an index by context: covered parts are removed, noted rows are added.

    `root` is that of the index by context, `atom` that of the new version of the atom it watches, p the
    number of columns of a prefix.  Covers and noted rows are sorted rows (context, a, b), each once; noted
    rows are followed by a mark, AT_KEY or 0.  Writes to `edit` the rows to insert and then those to erase, in
    the index's own columns, and their numbers to `sizes`.  Returns how many rows meet the covers: more than
    `room` is too many, and nothing is written.  `work` and `edit` have `work_words` and (2 room + m) k words;
    n is at most `room`.
    O((covers + found + noted) log rows).
    """
    asked, fresh, ops = pointer(covers), pointer(noted), pointer(work)
    rest = shifted(ops, (2 * room + m) * (k + OP_COLUMNS))
    out, counts = pointer(edit), pointer(sizes)
    return int(find_covered(pointer(A), root, atom, p, k, asked, n, fresh, m, room, rest, ops, out, counts))


@helper
def find_covered(words, root, atom, p, k, covers, n, noted, m, room, work, ops, edit, sizes):
    """As `covered`, over pointers.  `ops` becomes the same change by context: see `put_ops`."""
    d = k - 2
    positions = shifted(work, room * k)
    places = shifted(positions, room)
    pieces = shifted(places, 2 * room)
    marked = shifted(pieces, room * k)
    found = find_overlapping(words, root, d, covers, n, work, positions, places, room, True)
    if found > room:
        return found
    left = clip(work, found, d, covers, n, pieces)
    later = merged(pieces, left, noted, m, k, marked)
    later = unmarked(marked, glue(words, atom, p, marked, later, d), k)
    count = put_ops(words, root, work, found, positions, marked, later, places, k, ops, sizes)
    put_natural(ops, count, p, k, sizes[0], edit)
    return found


def work_words(k: int, room: int, m: int) -> int:
    """How much work space `covered` needs, operations included."""
    return room * (2 * k + 3) + (room + m) * (k + 1) + op_words(k, room, m)


def op_words(k: int, room: int, m: int) -> int:
    """The same for operations alone."""
    return (2 * room + m) * (k + OP_COLUMNS)


@helper
def put_ops(words, root, rows, n, positions, later, m, place, k, ops, sizes):
    """The operations that turn n rows of an index into m later ones, in order, k + OP_COLUMNS words each, and
    their number.  The numbers of those that insert and of those that erase go to `sizes`.

    A new row comes after the last of the n rows that is before it, if that has its context: between the two
    there is none, since what a cover meets and its direct neighbours are among the n.  Else it comes before
    the first after it; in a context without rows its place is sought.  `place` is two words of work space.
    """
    d = k - 2
    i, j, count, inserts, sought = 0, 0, 0, 0, -1
    while i < n or j < m:
        order = -1 if j == m else 1 if i == n else compare_rows(rows, i, later, j, k)
        at = count * (k + OP_COLUMNS)
        if order < 0:
            put_op(words, root, rows, i, k, ERASE, positions[i], 0, ops, at)
        elif order > 0:
            if i > 0 and compare_contexts(rows, i - 1, later, j, k, d) == 0:
                put_op(words, root, later, j, k, INSERT, positions[i - 1], 1, ops, at)
            elif i < n and compare_contexts(rows, i, later, j, k, d) == 0:
                put_op(words, root, later, j, k, INSERT, positions[i], 0, ops, at)
            else:
                is_known = sought >= 0 and compare_contexts(later, sought, later, j, k, d) == 0
                if not is_known and words[root + N_NODES] > 0:
                    find_covers(words, root, d, shifted(later, j * k), 1, place)
                    sought = j
                put_op(words, root, later, j, k, INSERT, 0, 0, ops, at)
                ops[at + k + ORDINAL] = place[0]
                ops[at + k + POSITION] = place[1]
            inserts += 1
        count += 1 if order != 0 else 0
        if order <= 0:
            i += 1
        if order >= 0:
            j = after_same(later, j, m, k)
    sizes[0] = inserts
    sizes[1] = count - inserts
    return count


@helper
def put_op(words, root, rows, i, k, op, position, behind, ops, at):
    """Row i as an operation at a position of the index, or right after it."""
    for c in range(k):
        ops[at + c] = rows[i * k + c]
    ops[at + k + OP] = op
    if words[root + FLAT_BASE] >= 0:
        ops[at + k + ORDINAL] = 0
        ops[at + k + POSITION] = position + behind
    else:
        ops[at + k + ORDINAL] = position >> OFFSET_BITS
        ops[at + k + POSITION] = (position & ((1 << OFFSET_BITS) - 1)) + behind


@helper
def are_located(words, root):
    """Whether `put_ops` knows the leaves of an index: not if several are flat."""
    if words[root + FLAT_BASE] < 0:
        return True
    return words[root + N_NODES] == 1 and words[words[root + ROOT_HEADER] + N_ENTRIES] == 1


@helper
def merged(pieces, n, noted, m, k, out):
    """Pieces, and rows that were noted with their marks, as one sorted list with marks; returns n + m."""
    i, j = 0, 0
    for at in range(0, (n + m) * (k + 1), k + 1):
        if j == m or (i < n and compare_at(pieces, i * k, noted, j * (k + 1), k) < 0):
            for c in range(k):
                out[at + c] = pieces[i * k + c]
            out[at + k] = PIECE
            i += 1
        else:
            for c in range(k + 1):
                out[at + c] = noted[j * (k + 1) + c]
            j += 1
    return n + m


@helper
def unmarked(rows, n, k):
    """Rows without the word after them, in place; returns n."""
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
def put_natural(ops, n, p, k, inserts, out):
    """The rows of operations by context in the index's own columns: those to insert, then those to erase."""
    step = k + OP_COLUMNS
    to_insert, to_erase = 0, inserts * k
    for i in range(n):
        to = to_insert if ops[i * step + k + OP] == INSERT else to_erase
        for c in range(k):
            out[to + c] = ops[i * step + by_context(c, p, k)]
        if ops[i * step + k + OP] == INSERT:
            to_insert += k
        else:
            to_erase += k


@helper
def put_by_context(rows, n, p, k, out):
    """Rows in the index's own columns as rows by context."""
    for i in range(n):
        for c in range(k):
            out[i * k + by_context(c, p, k)] = rows[i * k + c]


@helper
def put_marked(rows, n, covers, n_covers, p, k, out):
    """The same with marks, for rows that a run noted; both lists are in the order in which it noted them.

    What was noted ends at a key of the atom unless it ends where its cover does.
    """
    cover = 0
    for i in range(n):
        while cover < n_covers and not is_inside(rows, i, covers, cover, p, k):
            cover += 1
        for c in range(k):
            out[i * (k + 1) + by_context(c, p, k)] = rows[i * k + c]
        is_open = cover == n_covers or rows[i * k + p + 1] == covers[cover * k + p + 1]
        out[i * (k + 1) + k] = 0 if is_open else AT_KEY


@helper
def is_inside(rows, i, covers, j, p, k):
    """Whether an interval lies in a cover of its context."""
    inside = covers[j * k + p] <= rows[i * k + p] and rows[i * k + p + 1] <= covers[j * k + p + 1]
    for c in range(k):
        inside = inside and (p <= c < p + 2 or rows[i * k + c] == covers[j * k + c])
    return inside


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
    context the last row before and the first row after.

    Writes at most `room` of them, some maybe several times, with the number of the cover of each, and returns
    how many there are.  `places` are 2 n words of work space.  All intervals of one context end in the order
    in which they begin.  O(n d log rows + found).
    """
    words, asked, to = pointer(A), pointer(covers), pointer(out)
    return int(find_overlapping(words, root, d, asked, n, to, pointer(which), pointer(places), room, False))


@helper
def find_overlapping(words, root, d, covers, n, out, which, places, room, once):
    """As `overlapping`, over pointers.  `once`: each row is written for the first cover that it meets, with
    its position instead of the cover's number; then all are in order if the covers are."""
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
                    which[found] = at if once else i
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
    """The position of the next row."""
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
    """The range of rows that begin with the d words at prefixes[at].  O(d log rows)."""
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
    """Rows (d columns of context, a, b) without the parts at their ends that are covered; returns how many
    are left.

    Both are sorted, and the covers of one context are disjoint.  A cover inside an interval leaves it
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
    """Join intervals that are in one gap of an atom, and leave out those inside a piece; returns how many are
    left.

    Rows are (d columns of context, a, b, mark), sorted; the first p columns of the context
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
        is_piece = rows[i * k + k - 1] & PIECE != 0
        if has_piece and not is_piece and rows[i * k + d + 1] <= piece_end:
            continue
        last, first = rows[(m - 1) * k + d + 1] if same else GREATEST, rows[i * k + d]
        joins = same and last < first and rows[(m - 1) * k + k - 1] & AT_KEY == 0
        if joins:
            if at != m - 1:
                lo, hi = beginning(words, root, p, rows, i * k)
                at = m - 1
            gap = seek(words, root, p, lo, hi, last)
            joins = gap >= hi or key(words, root, p, gap) >= first
        if joins:
            rows[(m - 1) * k + d + 1] = rows[i * k + d + 1]
            rows[(m - 1) * k + k - 1] = rows[(m - 1) * k + k - 1] & PIECE | rows[i * k + k - 1]
        else:
            at = m if 0 <= at == m - 1 and compare_contexts(rows, at, rows, i, k, p) == 0 else -1
            for c in range(k):
                rows[m * k + c] = rows[i * k + c]
            m += 1
        if is_piece:
            has_piece, piece_end = True, rows[(m - 1) * k + d + 1]
    return m
