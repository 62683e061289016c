"""Owns the kernels of sorted runs: arrays of ascending words, their differences and unions."""

from __future__ import annotations

from dlog.jit import Words, kernel
from dlog.storage.arena.pointer import pointer


@kernel
def take_out(batch: Words, n: int, run: Words) -> int:
    """Move those of n words that a run lacks to the front; return how many.  Both ascend strictly.

    O(n log(run / n)): steps through the run double until they reach the next word.
    """
    words, kept, low, end = pointer(batch), 0, 0, len(run)
    for i in range(n):
        word = words[i]
        high, step = low, 1
        while high < end and run[high] < word:
            low = high + 1
            high += step
            step += step
        high = min(high, end)
        while low < high:
            middle = (low + high) >> 1
            if run[middle] < word:
                low = middle + 1
            else:
                high = middle
        words[kept] = word
        kept += low == end or run[low] != word
    return int(kept)


@kernel
def merge_runs(a: Words, b: Words, out: Words) -> int:
    """Both runs merged, common words once; returns how many.  O(a + b).

    Without branches: which run is next is unpredictable.
    """
    i, j, n, last_a, last_b = 0, 0, 0, len(a), len(b)
    while i < last_a and j < last_b:
        x, y = a[i], b[j]
        out[n] = x if x < y else y
        i += x <= y
        j += y <= x
        n += 1
    while i < last_a:
        out[n] = a[i]
        i += 1
        n += 1
    while j < last_b:
        out[n] = b[j]
        j += 1
        n += 1
    return int(n)


@kernel
def repack_keys(keys: Words, n: int, arity: int, before: Words, after: Words, out: Words) -> int:
    """Packed rows in other ranges (lows, then widths, of the columns); their order stays.  O(n * arity)."""
    for i in range(n):
        rest, key, scale = keys[i], 0, 1
        for c in range(arity - 1, -1, -1):
            width = before[arity + c]
            upper = rest // width if c > 0 else 0
            key += (rest - upper * width + before[c] - after[c]) * scale
            scale *= after[arity + c]
            rest = upper
        out[i] = key
    return 0
