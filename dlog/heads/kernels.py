"""Owns the kernels of head maintenance: looking up rows in an index, and sums of many words.

A wide number is four words, the least significant one first: 256 bits, two's complement.
"""

from __future__ import annotations

from typing import Final

from dlog.jit import Words, helper, kernel
from dlog.storage.index.trie_kernels import end_position, key_at, next_position, run_end, seek_lub
from dlog.storage.layout import N_ROWS

WIDE: Final = 4
MIN: Final = -(2**63)


@kernel
def look_up(arena: Words, root: int, d: int, k: int, keys: Words, n: int, found: Words, rest: Words) -> None:
    """For each of n keys of d words: how many rows of an index of arity k begin with it (0, 1, or 2 for
    several), and the words after it in the first of them.  O(n d log rows), less where keys are sorted:
    what begins with the same word as the previous key is not searched again, and what follows is near.
    """
    end = end_position(arena, root)
    rows = arena[root + N_ROWS]
    first, last = 0, 0  # the rows that begin like the previous key
    for i in range(n):
        found[i] = 0
        lo, hi = 0, end
        c = 0
        if d > 0 and rows > 0:
            key = keys[i * d]
            before = keys[(i - 1) * d] if i > 0 else key
            if i == 0 or key != before:
                first = seek_lub(arena, root, 0, last if key > before else 0, end, key)
                last = first
                if first < end and key_at(arena, root, 0, first) == key:
                    last = run_end(arena, root, 0, first, end)
            lo, hi = first, last
            c = 1 if first < last else d + 1
        while c < d:
            key = keys[i * d + c]
            lo = seek_lub(arena, root, c, lo, hi, key)
            if lo >= hi or key_at(arena, root, c, lo) != key:
                c = d + 1
            else:
                hi = run_end(arena, root, c, lo, hi)
                c += 1
        if c > d or rows == 0:
            continue
        found[i] = 1 if next_position(arena, root, lo) >= hi else 2
        for c in range(d, k):
            rest[i * (k - d) + c - d] = key_at(arena, root, c, lo)


@kernel
def fold_rows(rows: Words, n: int, keys: int, sums: int, out: Words) -> int:
    """Add up neighbours that agree in their first `keys` words; return how many rows are left.

    A row is its keys, a count, and `sums` wide numbers.
    """
    width = keys + 1 + WIDE * sums
    m = 0
    for i in range(n):
        same = m > 0
        for c in range(keys):
            if same and rows[i * width + c] != out[(m - 1) * width + c]:
                same = False
        if not same:
            for c in range(width):
                out[m * width + c] = rows[i * width + c]
            m += 1
        else:
            add_row(out, (m - 1) * width + keys, rows, i * width + keys, sums)
    return m


@kernel
def add_rows(a: Words, b: Words, n: int, sums: int) -> None:
    """a += b, row by row: a count and `sums` wide numbers each."""
    width = 1 + WIDE * sums
    for i in range(n):
        add_row(a, i * width, b, i * width, sums)


@helper
def add_row(a: Words, at: int, b: Words, b_at: int, sums: int) -> None:
    a[at] += b[b_at]
    for s in range(sums):
        add_wide(a, at + 1 + WIDE * s, b, b_at + 1 + WIDE * s)


@helper
def add_wide(a: Words, at: int, b: Words, b_at: int) -> None:
    """a += b, with carries; what exceeds 256 bits is lost."""
    carry = 0
    for w in range(WIDE):
        before = a[at + w]
        total = before + b[b_at + w]
        overflow = 1 if (total ^ MIN) < (before ^ MIN) else 0
        if carry == 1:
            total += 1
            if total == 0:
                overflow = 1
        a[at + w] = total
        carry = overflow


@kernel
def negate_wide(words: Words, n: int) -> None:
    """Each of n wide numbers becomes its negative."""
    for i in range(n):
        carry = 1
        for w in range(WIDE):
            value = ~words[i * WIDE + w] + carry
            carry = 1 if carry == 1 and value == 0 else 0
            words[i * WIDE + w] = value
