"""Owns the kernels of packed rows: all words of a row but the first in one word, in the same order.

Rows are row-major, k words each; their first words are dense, so that they are counted instead of compared.
The code of a word is its distance from the least of its column, plus 1.  The least and the greatest int64,
which stand for infinities and would make ranges too wide, have code 0 and the code after all others.
"""

from __future__ import annotations

from dlog.jit import Words, helper, kernel, pointer, prefetch

LEAST = -(2**63)
GREATEST = 2**63 - 1
BLOCK = 256  # rows that stay in the cache while all their columns are examined
AHEAD = 12  # rows after which prefetched memory has arrived
SHORT = 24  # rows of a run that are sorted by insertion


@kernel
def survey(rows: Words, n: int, k: int, ends: Words, counts: Words) -> int:
    """Widen ends[2 c] and ends[2 c + 1] to the least and the greatest word of column c, without infinities,
    and count rows by their first words, that of i after place i; 0 if one has no place there.  O(n k)."""
    most_first, inside = len(counts) - 1, 1
    for start in range(0, n, BLOCK):
        end = min(start + BLOCK, n)
        for i in range(start, end):
            first = rows[i * k]
            if first < 0 or first >= most_first:
                inside = 0
            elif inside == 1:
                counts[first + 1] += 1
        for c in range(k):
            least, most = ends[2 * c], ends[2 * c + 1]
            for i in range(start * k + c, end * k, k):
                word = rows[i]
                if word != LEAST and word != GREATEST:
                    least, most = min(least, word), max(most, word)
            ends[2 * c] = least
            ends[2 * c + 1] = most
    return inside


@kernel
def count_first(rows: Words, n: int, k: int, least: int, counts: Words) -> int:
    """Count rows by their first words, that of least + i after place i; 0 if one is an infinity.  O(n)."""
    for i in range(n):
        if rows[i * k] == LEAST or rows[i * k] == GREATEST:
            return 0
        counts[rows[i * k] - least + 1] += 1
    return 1


@kernel
def place_packed(rows: Words, n: int, k: int, ends: Words, shifts: Words, starts: Words, out: Words) -> None:
    """Put each row, packed, where the run of its first word begins, and that start after it.  O(n k)."""
    words, start_of, to, least = pointer(rows), pointer(starts), pointer(out), ends[0]
    for i in range(n):
        if i + AHEAD < n:
            prefetch(to, start_of[words[(i + AHEAD) * k] - least])
        packed = 0
        for c in range(1, k):
            word = words[i * k + c]
            code = word - ends[2 * c] + 1
            if word == LEAST:
                code = 0
            elif word == GREATEST:
                code = ends[2 * c + 1] - ends[2 * c] + 2
            packed |= code << shifts[c]
        run = words[i * k] - least
        to[start_of[run]] = packed
        start_of[run] += 1


@kernel
def sort_runs(packed: Words, run_ends: Words) -> int:
    """Sort each run by itself and leave each word once, in place, the ends set again; returns the number
    left.

    The last of the ends is of no run.  O(n) if runs are short."""
    words = pointer(packed)
    start, kept = 0, 0
    for i in range(len(run_ends) - 1):
        end = run_ends[i]
        if end - start > SHORT:
            sort_words(words, start, end)
        else:
            sort_short(words, start, end)
        for j in range(start, end):
            if j == start or words[j] != words[kept - 1]:
                words[kept] = words[j]
                kept += 1
        start = end
        run_ends[i] = kept
    return kept


@helper
def sort_short(words, start, end):
    """O(n^2): for very few."""
    for i in range(start + 1, end):
        word = words[i]
        j = i
        while j > start and words[j - 1] > word:
            words[j] = words[j - 1]
            j -= 1
        words[j] = word


@helper
def sort_words(words, start, end):
    """O(n^1.5): for a few."""
    gap = 1
    while 3 * gap + 1 < end - start:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(start + gap, end):
            word = words[i]
            j = i
            while j >= start + gap and words[j - gap] > word:
                words[j] = words[j - gap]
                j -= gap
            words[j] = word
        gap //= 3


@kernel
def put_columns(
    packed: Words, run_ends: Words, n: int, k: int, ends: Words, shifts: Words, arena: Words, at: int
) -> None:
    """Write n rows by columns: column c of row i to at + c * n + i.  O(n k)."""
    words, A = pointer(packed), pointer(arena)
    start = 0
    for run in range(len(run_ends) - 1):
        for i in range(start, run_ends[run]):
            A[at + i] = ends[0] + run
        start = run_ends[run]
    for c in range(1, k):
        mask = (1 << (shifts[c - 1] - shifts[c])) - 1
        least, most = ends[2 * c] - 1, ends[2 * c + 1] - ends[2 * c] + 2
        for i in range(n):
            code = (words[i] >> shifts[c]) & mask
            A[at + c * n + i] = LEAST if code == 0 else GREATEST if code == most else least + code
