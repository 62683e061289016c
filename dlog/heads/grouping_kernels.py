"""Owns the loops of grouping: numbers for groups, and reductions over rows that carry such a number.

Knows nothing of types, except that a float has a code.  A slot is the number of a group: ids[i] - base for
row i.  There may be slots without rows.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.jit import Floats, Words, helper, kernel
from dlog.lftj.primitives import float_of

LOW: Final = (1 << 32) - 1
MIN: Final = -(1 << 63)
MAX: Final = (1 << 63) - 1
FRACTION_BITS: Final = 52  # of a float
UNIT: Final = 1 << FRACTION_BITS
MOST_EXPONENT: Final = 2047
FIRST_TABLE: Final = 1 << 10
PARTS: Final = 256  # so that the table of a part stays in the second cache for a million groups
# Odd, below 2^31 and without pattern: the products below then stay in 63 bits.
SPREAD_LOW: Final = 0x6C8E9CF5
SPREAD_HIGH: Final = 0x4F1BBCDD


@helper
def hash_of(word: int) -> int:
    """32 bits that depend on all bits of the word."""
    mixed = ((word & LOW) * SPREAD_LOW) ^ (((word >> 32) & LOW) * SPREAD_HIGH)
    return (mixed ^ (mixed >> 31)) & LOW


@kernel
def split_by_hash(words: Words, n: int, bounds: Words, out: Words, rows: Words) -> None:
    """Words and their rows in PARTS parts, equal words in the same one; rows are ascending within a part.

    Part p is from bounds[p] to bounds[p + 1].
    """
    bounds[:] = 0
    for i in range(n):
        bounds[(hash_of(words[i]) >> 24) + 1] += 1
    next_place = np.empty(PARTS, np.int64)
    for part in range(PARTS):
        next_place[part] = bounds[part]
        bounds[part + 1] += bounds[part]
    for i in range(n):
        part = hash_of(words[i]) >> 24
        place = next_place[part]
        out[place] = words[i]
        rows[place] = i
        next_place[part] = place + 1


@kernel
def split_along(words: Words, n: int, bounds: Words, values: Words, out: Words) -> None:
    """The values of rows in the order in which `split_by_hash` put the words."""
    next_place = bounds[:PARTS].copy()
    for i in range(n):
        part = hash_of(words[i]) >> 24
        out[next_place[part]] = values[i]
        next_place[part] += 1


@kernel
def gather_pairs(pairs: Words, numbers: Words, out: Words) -> None:
    """Two words for each number."""
    for i in range(len(numbers)):
        out[2 * i] = pairs[2 * numbers[i]]
        out[2 * i + 1] = pairs[2 * numbers[i] + 1]


@kernel
def number_words(words: Words, bounds: Words, parts: int, limit: int, ids: Words, first: Words) -> int:
    """Number distinct words part by part, in order of appearance; no word occurs in two parts.

    ids[i] is the number of word i, first[g] the first place of number g; returns how many there are, or -1
    as soon as there are over `limit` in the first half.  O(n): an open hash table, an entry is the word and
    its number + 1.
    """
    size = FIRST_TABLE
    table = np.zeros(2 * size, np.int64)
    groups = 0
    for part in range(parts):
        base, i, end = groups, bounds[part], bounds[part + 1]
        while i < end:
            i, groups = number_until_full(words, i, end, table, size, base, groups, ids, first)
            if i < end:
                if groups > limit and 2 * i < bounds[parts]:
                    return -1
                table = regrown(table, size)
                size *= 4
        if part + 1 < parts:
            table[:] = 0
    return groups


@helper
def number_until_full(
    words: Words,
    i: int,
    end: int,
    table: Words,
    size: int,
    base: int,
    groups: int,
    ids: Words,
    first: Words,
) -> tuple[int, int]:
    """Continue until the table is half full; returns where it stopped and how many numbers there are.

    This loop, with a table that does not change, is twice as fast as it would be inside its caller.
    """
    last = 2 * size - 1
    while i < end and 2 * (groups - base) < size:
        word = words[i]
        slot = 2 * (hash_of(word) & (size - 1))
        number = table[slot + 1]
        while number != 0 and table[slot] != word:
            slot = (slot + 2) & last
            number = table[slot + 1]
        if number == 0:
            first[groups] = i
            groups += 1
            number = groups
            table[slot] = word
            table[slot + 1] = number
        ids[i] = number - 1
        i += 1
    return i, groups


@helper
def regrown(table: Words, size: int) -> Words:
    """The same entries in a table of four times the size."""
    last = 8 * size - 1
    larger = np.zeros(8 * size, np.int64)
    for old in range(0, 2 * size, 2):
        if table[old + 1] != 0:
            slot = 2 * (hash_of(table[old]) & (4 * size - 1))
            while larger[slot + 1] != 0:
                slot = (slot + 2) & last
            larger[slot] = table[old]
            larger[slot + 1] = table[old + 1]
    return larger


@kernel
def count_rows(ids: Words, base: int, n: int, out: Words) -> None:
    """REQUIRES: out is zero."""
    for i in range(n):
        out[ids[i] - base] += 1


@kernel
def sum_ints(ids: Words, base: int, values: Words, n: int, bias: int, out: Words) -> None:
    """High and low halves of the values (and of `bias` * 2^32) are summed separately, side by side in `out`.

    No sum of fewer than 2^31 values wraps.  REQUIRES: out is zero, two words a slot.
    """
    for i in range(n):
        slot = 2 * (ids[i] - base)
        out[slot] += (values[i] >> 32) + bias
        out[slot + 1] += values[i] & LOW


@kernel
def settle_ints(sums: Words, n: int) -> None:
    """Convert the result of `sum_ints` to 128 bits: the high word, then the low one."""
    for g in range(n):
        low = sums[2 * g + 1]
        high = sums[2 * g] + (low >> 32)
        sums[2 * g] = high >> 32
        sums[2 * g + 1] = ((high & LOW) << 32) | (low & LOW)


@kernel
def least(ids: Words, base: int, values: Words, n: int, out: Words) -> None:
    """REQUIRES: out holds the largest int64."""
    for i in range(n):
        slot = ids[i] - base
        out[slot] = min(out[slot], values[i])


@kernel
def greatest(ids: Words, base: int, values: Words, n: int, out: Words) -> None:
    """REQUIRES: out holds the least int64."""
    for i in range(n):
        slot = ids[i] - base
        out[slot] = max(out[slot], values[i])


@kernel
def extreme_rows(ids: Words, base: int, keys: Words, w: int, sign: int, n: int, out: Words) -> None:
    """The row of each slot whose key is least (sign 1) or greatest (sign -1), the first among equals.

    A key is w words, row by row, the most significant one last and signed.  REQUIRES: out holds -1.
    """
    for i in range(n):
        slot = ids[i] - base
        best = out[slot]
        if best < 0 or compare_keys(keys, w, i, best) * sign < 0:
            out[slot] = i


@helper
def compare_keys(keys: Words, w: int, i: int, j: int) -> int:
    for c in range(w - 1, -1, -1):
        a, b = keys[w * i + c], keys[w * j + c]
        if a != b:
            if c < w - 1:  # unsigned
                a, b = a ^ MIN, b ^ MIN
            return -1 if a < b else 1
    return 0


@kernel
def floats_by_group(ids: Words, base: int, codes: Words, n: int, starts: Words, out: Floats) -> None:
    """The floats of codes, group by group.  starts[slot] moves on to the end of the slot's values."""
    for i in range(n):
        slot = ids[i] - base
        out[starts[slot]] = float_of(codes[i])
        starts[slot] += 1


@kernel
def float_exponents(codes: Words, n: int, out: Words) -> None:
    """The least and the greatest exponent of floats that are not 0, as stored in their bits."""
    least, greatest = MOST_EXPONENT, 0
    for i in range(n):
        code = codes[i]
        exponent = ((code ^ (code >> 63)) >> FRACTION_BITS) & MOST_EXPONENT
        greatest = max(greatest, exponent)
        if code != 0:
            least = min(least, max(exponent, 1))
    out[0], out[1] = least, greatest


@kernel
def sum_floats(ids: Words, base: int, codes: Words, n: int, least: int, bits: int, out: Words) -> None:
    """Floats as whole numbers of the last place that the exponent `least` has; what is below 2^bits of them
    and what is above are summed separately, side by side in `out`.

    REQUIRES: out is zero, two words a slot; no sum of such halves wraps.  Exact.
    """
    mask = (1 << bits) - 1
    for i in range(n):
        sign = codes[i] >> 63
        word = codes[i] ^ (sign & MAX)
        exponent = (word >> FRACTION_BITS) & MOST_EXPONENT
        number = (word & (UNIT - 1)) | (UNIT if exponent > 0 else 0)
        shift = max(exponent, least) - least
        slot = 2 * (ids[i] - base)
        out[slot] += ((number >> (bits - shift)) ^ sign) - sign
        out[slot + 1] += (((number << shift) & mask) ^ sign) - sign
