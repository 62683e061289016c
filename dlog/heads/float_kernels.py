"""Owns the kernels of stored exact float sums: digits in rows, added to and rounded.

A sum is a number in base 2^32 with balanced digits and three counters (`dlog.algebra`).  Of its words only
those that are not 0 are rows: (keys, number of the sum, place of the word, word).
"""

from __future__ import annotations

from dlog.algebra import LIMBS, LOOSE_ADDITIONS, WORDS_PER_SUM, add_loosely, mean_of_sum, round_sum, settle
from dlog.heads.scan_kernels import find_run
from dlog.jit import Words, helper, kernel
from dlog.lftj.primitives import code_of
from dlog.storage.index.trie_kernels import key_at, next_position

MAX = (1 << 63) - 1


@kernel
def change_sums(
    arena: Words,
    root: int,
    d: int,
    keys: Words,
    n: int,
    bounds: Words,
    codes: Words,
    signs: Words,
    work: Words,
    erased: Words,
    inserted: Words,
    out: Words,
) -> None:
    """Add to n sums: those at keys of d words, each the codes[bounds[i]:bounds[i + 1]], with their signs.

    The removed and the added rows are written; their numbers to out[0] and out[1].  REQUIRES: room for
    WORDS_PER_SUM rows of d + 2 words for each sum; `work` is 2 * WORDS_PER_SUM zeros.
    O(n (d log rows + WORDS_PER_SUM) + codes).
    """
    out[0] = 0
    out[1] = 0
    for i in range(n):
        load_sum(arena, root, d, keys, i * d, work)
        for k in range(WORDS_PER_SUM):
            work[WORDS_PER_SUM + k] = work[k]
        for block in range(bounds[i], bounds[i + 1], LOOSE_ADDITIONS):
            first, last = LIMBS, 0
            for j in range(block, min(block + LOOSE_ADDITIONS, bounds[i + 1])):
                bits = codes[j] if codes[j] >= 0 else codes[j] ^ MAX
                limb = add_loosely(work, 0, bits, signs[j])
                first = min(first, limb)
                last = max(last, limb)
            settle(work, 0, first, min(last + 2, LIMBS))
        for k in range(WORDS_PER_SUM):
            before, after = work[WORDS_PER_SUM + k], work[k]
            if before != after:
                if before != 0:
                    put_word(keys, i * d, d, k, before, erased, out[0])
                    out[0] += 1
                if after != 0:
                    put_word(keys, i * d, d, k, after, inserted, out[1])
                    out[1] += 1
            work[k] = 0
            work[WORDS_PER_SUM + k] = 0


@helper
def put_word(keys: Words, at: int, d: int, place: int, word: int, rows: Words, row: int) -> None:
    for c in range(d):
        rows[row * (d + 2) + c] = keys[at + c]
    rows[row * (d + 2) + d] = place
    rows[row * (d + 2) + d + 1] = word


@helper
def load_sum(arena: Words, root: int, d: int, keys: Words, at: int, work: Words) -> None:
    """The words of one sum, to `work`."""
    lo, hi = find_run(arena, root, d, keys, at)
    while lo < hi:
        work[key_at(arena, root, d, lo)] = key_at(arena, root, d + 1, lo)
        lo = next_position(arena, root, lo)


@kernel
def read_words(arena: Words, root: int, d: int, keys: Words, n: int, out: Words) -> None:
    """The words of n sums, WORDS_PER_SUM each.  REQUIRES: out is zero."""
    for i in range(n):
        lo, hi = find_run(arena, root, d, keys, i * d)
        while lo < hi:
            place = key_at(arena, root, d, lo)
            out[i * WORDS_PER_SUM + place] = key_at(arena, root, d + 1, lo)
            lo = next_position(arena, root, lo)


@kernel
def read_sums(
    arena: Words,
    root: int,
    d: int,
    keys: Words,
    n: int,
    counts: Words,
    work: Words,
    quotient: Words,
    out: Words,
) -> None:
    """The codes of n sums, correctly rounded; of means, where counts are positive.

    REQUIRES: `work` is WORDS_PER_SUM zeros, `quotient` LIMBS zeros.
    """
    for i in range(n):
        load_sum(arena, root, d, keys, i * d, work)
        if counts[i] > 0:
            out[i] = code_of(mean_of_sum(work, 0, LIMBS, counts[i], quotient))
        else:
            out[i] = code_of(round_sum(work, 0, LIMBS))
        for k in range(WORDS_PER_SUM):
            work[k] = 0
