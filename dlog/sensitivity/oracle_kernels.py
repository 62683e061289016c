"""Owns the kernel that makes guides from contributions: see `dlog.sensitivity.oracle`.  Knows nothing of
plans.

A contribution is a row of width + 2 words: its depth d, then the values of the first d - 1 key variables and
the start of the interval of the d-th, filled up with the least int64, then the end of that interval.
"""

from __future__ import annotations

from dlog.jit import Words, helper, kernel, pointer

FREE = -1
ITEM = 4  # words of an item, as in `dlog.lftj.guide`
GREATEST = 2**63 - 1
LEAST = -(2**63)


@kernel
def flatten(rows: Words, n: int, width: int, wild: int, kept: Words, cursors: Words, out: Words) -> int:
    """Contributions as a guide; returns its number of words.

    `rows` are sorted by values and then by depth; bit d of `wild` says that depth d + 1 may be anything.
    What another contribution holds is left out, intervals that meet are joined.  `kept` has room for n
    numbers, `cursors` for 3 * (width + 2).  O(n * width).
    """
    return int(make_guide(pointer(rows), n, width, wild, pointer(kept), pointer(cursors), pointer(out)))


@helper
def make_guide(rows, n, width, wild, kept, cursors, out):
    """As `flatten`, over pointers, as all helpers here."""
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
def merge(rows, n, width, kept, cursors):
    """The numbers of contributions that no other holds; their ends grow.

    Only the last selected one of each depth can hold the next: those before it end earlier.
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
def holds(rows, r, i, d, width):
    """Whether contribution r, of depth d, holds the start of contribution i."""
    k = width + 2
    if d == 0:
        return True
    return common_prefix(rows, r, i, width) >= d - 1 and rows[i * k + d] <= rows[r * k + 1 + width]


@helper
def common_prefix(rows, i, j, width):
    """The number of first values in which two contributions agree."""
    k = width + 2
    c = 0
    while c < width and rows[i * k + 1 + c] == rows[j * k + 1 + c]:
        c += 1
    return c


@helper
def opened_at(rows, i, width, kept):
    """The depth of the first item that selected contribution i does not share with the one before it."""
    if i == 0:
        return 1
    k = width + 2
    d = rows[kept[i] * k]
    before = rows[kept[i - 1] * k]
    common = common_prefix(rows, kept[i - 1], kept[i], width)
    return min(common + 1, d, before)


@helper
def levels(rows, m, width, kept, cursors):
    """Count the items of each depth."""
    k = width + 2
    for d in range(width + 2):
        cursors[width + 2 + d] = 0
    for i in range(m):
        for d in range(opened_at(rows, i, width, kept), rows[kept[i] * k] + 1):
            cursors[width + 2 + d] += 1


@helper
def write_items(rows, m, width, wild, kept, cursors, out):
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
