"""Owns what follows from power sums: the results of aggregates that the number of a group's values, their
exact sum and the exact sum of their squares determine.  Knows nothing of rules or of groups' keys.

Correct output: the aggregate of the values themselves, rounded once.  Sums are Abelian groups, so
the order of insertions and deletions does not matter.

    of ints, decimals, durations ...   a sum is 256 bits, (n, 4) words, the least significant one first,
                                       without regard to the point
    of floats                          a sum is exact (`dlog.algebra`), (n, WORDS_PER_SUM) words; of squares
                                       three such sums, (n, SCALES, WORDS_PER_SUM) words
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.algebra import WORDS_PER_SUM
from dlog.arithmetic import wide_kernels
from dlog.arithmetic.digit_kernels import HALF_EVEN, POWERS
from dlog.column_functions.columns import (
    WORDS_PER_DECIMAL,
    Column,
    decimal_column,
    decimal_words,
    float_codes,
)
from dlog.column_functions.decimals import divide, quotients
from dlog.errors import DataError
from dlog.heads import power_kernels as kernels
from dlog.heads.power_kernels import SCALES
from dlog.jit import Floats, Words
from dlog.values import BUILTIN_TYPES, FLOAT, INT, Type

MIN = -(2**63)
MAX_DECIMAL = 10**76 - 1
SUMS_AT_ONCE = 1024  # float sums whose words are in memory: 2.4 MB with their squares
_SPLITTER = 2.0**27 + 1

# Squares of floats need twice the range of floats.  A float is scaled by a power of two, by its size, so that
# its square is the sum of two floats.  The powers are 2^704 apart, so digits of their sums are 44 places
# apart; 2^9 makes these digits fall on the digits of the square of a sum.
_BORDERS = (0.0, 2.0**-400, 2.0**400, np.inf)
_EXPONENTS = (9 + 704, 9, 9 - 704)


SUM, SQUARES = ("sum", "76 digits"), ("sum of squares", "76 digits")  # of decimals: what does not fit what


class SumOverflow(DataError):
    """A sum that its type cannot hold; `row` is the number of a row of that group."""

    def __init__(self, row: int, what: str = SUM[0], room: str = SUM[1]):
        super().__init__(f"a {what} does not fit {room}")
        self.row, self.what, self.room = row, what, room


# ---- sums


def sums_of_float(power: int) -> int:
    """How many exact sums a sum of this power of floats takes."""
    return SCALES if power == 2 else 1


def float_terms(values: Floats, power: int) -> list[Floats]:
    """For each of these sums the floats that it adds up: as many for each value as the power says.

    Infinities and NaN have no squares here: the sum of values shows them.

    >>> [terms.tolist() for terms in float_terms(np.array([3.0]), 2)]
    [[0.0, 0.0], [2359296.0, 0.0], [0.0, 0.0]]
    """
    if power == 1:
        return [values]
    sizes = np.abs(values)
    return [
        _squares(np.where((sizes >= low) & (sizes < high), values, 0.0), exponent)
        for low, high, exponent in zip(_BORDERS[:-1], _BORDERS[1:], _EXPONENTS, strict=True)
    ]


def _squares(values: Floats, exponent: int) -> Floats:
    """The square of each value * 2^exponent as a float and its rounding error, both exact (Dekker)."""
    out = np.zeros((len(values), 2))
    if values.any():
        scaled = np.ldexp(values, exponent)
        split = scaled * _SPLITTER
        high = split - (split - scaled)
        low = scaled - high
        out[:, 0] = scaled * scaled
        out[:, 1] = ((high * high - out[:, 0]) + 2.0 * high * low) + low * low
    return out.reshape(-1)


def float_words(values: Floats, bounds: Words, power: int) -> Words:
    """The words of the sums of values[bounds[i]:bounds[i + 1]] to this power.  O(values + sums)."""
    found = [segment_words(terms, bounds * power) for terms in float_terms(values, power)]
    return found[0] if power == 1 else np.stack(found, axis=1)


def segment_words(values: Floats, bounds: Words) -> Words:
    """The words of the sum of each segment, (n, WORDS_PER_SUM)."""
    out = np.zeros((len(bounds) - 1, WORDS_PER_SUM), np.int64)
    if values.any():
        bits = np.array(values, np.float64).view(np.int64)
        kernels.segment_words(bits, np.ascontiguousarray(bounds), len(out), out.reshape(-1))
    return out


def squared_words(words: Words) -> Words:
    """The squares of numbers of 256 bits.  Raises SumOverflow where one has more than 76 digits."""
    n = len(words) // 4
    out, defined = np.empty(4 * n, np.int64), np.empty(n, np.int64)
    wide_kernels.combine(wide_kernels.MUL, words, 0, words, 0, 0, HALF_EVEN, 0, n, POWERS, out, defined)
    require(defined == 1, *SQUARES)
    return out


# ---- results: (type of the argument, counts, the words of each sum) -> a column.  They are what folding all
# values gives.  Raise SumOverflow, whose row is the number of a group.


def count_of_sums(type: Type, counts: Words, sums: Sequence[Words]) -> Column:
    return Column(counts.copy(), INT)


def mean_of_sums(type: Type, counts: Words, sums: Sequence[Words]) -> Column:
    (words,) = sums
    if type == FLOAT:
        return _rounded(words, counts)
    if type.is_decimal:
        require(fits_decimal(words))
    flat = np.ascontiguousarray(words).reshape(-1)
    mean = BUILTIN_TYPES[type.mean]
    if mean == FLOAT:
        return Column(float_codes(quotients(flat, counts, type.scale)), FLOAT)
    whole = Type("decimal", 0, 38)
    exact, _ = divide([decimal_column(flat, whole), Column(np.ascontiguousarray(counts), INT)], whole, None)
    return Column(decimal_words(exact)[::WORDS_PER_DECIMAL].copy(), mean)


def sum_of_sums(type: Type, counts: Words, sums: Sequence[Words]) -> Column:
    (words,) = sums
    if type == FLOAT:
        return _rounded(words, np.zeros(len(words), np.int64))
    if type.is_decimal:
        require(fits_decimal(words))
        return decimal_column(np.ascontiguousarray(words).reshape(-1), Type("decimal", type.scale, 38))
    low, above = words[:, 0], words.T[1:]  # of ints two words are enough
    if type.codes_add_up:
        codes = low.copy()
        high = codes >> 63
    else:
        codes, high = low ^ np.int64(MIN), np.zeros(1, np.int64)
    fits = above[0] == high
    for word in above[1:]:
        fits &= word == high
    inside = type.defined(codes)
    require(fits if inside is None else fits & inside, room=type.room)
    return Column(codes, type)


def sample_variance_of_sums(type: Type, counts: Words, sums: Sequence[Words]) -> Column:
    return _deviations(type, counts, sums, freedom=1)


def population_variance_of_sums(type: Type, counts: Words, sums: Sequence[Words]) -> Column:
    return _deviations(type, counts, sums, freedom=0)


def sample_deviation_of_sums(type: Type, counts: Words, sums: Sequence[Words]) -> Column:
    return _deviations(type, counts, sums, freedom=1, root=True)


def population_deviation_of_sums(type: Type, counts: Words, sums: Sequence[Words]) -> Column:
    return _deviations(type, counts, sums, freedom=0, root=True)


def _deviations(type: Type, counts: Words, sums: Sequence[Words], freedom: int, root: bool = False) -> Column:
    """The mean square deviation of each group, or its root; NaN where it has no value."""
    total, squares = (np.ascontiguousarray(words).reshape(-1) for words in sums)
    n, out = len(counts), np.empty(len(counts))
    counts = np.ascontiguousarray(counts)
    if type == FLOAT:
        kernels.float_deviations(total, squares, counts, freedom, int(root), n, out)
    else:
        require(fits_decimal(squares.reshape(-1, 4)), *SQUARES)
        kernels.exact_deviations(total, squares, counts, type.scale, freedom, int(root), n, POWERS, out)
    return Column(float_codes(out), FLOAT)


def _rounded(words: Words, divisors: Words) -> Column:
    out = np.empty(len(words))
    flat = np.ascontiguousarray(words).reshape(-1)
    kernels.round_sums(flat, np.ascontiguousarray(divisors), len(out), out)
    return Column(float_codes(out), FLOAT)


def fits_decimal(words: Words) -> np.ndarray:
    """Whether wide numbers have at most 76 digits: for nearly all, the highest word decides."""
    high = words[:, 3]
    clear = np.abs(high) < MAX_DECIMAL >> 192
    for i in np.flatnonzero(~clear | (high == MIN)):  # the least int64 has no absolute value
        number = int.from_bytes(np.ascontiguousarray(words[i]).tobytes(), "little", signed=True)
        clear[i] = abs(number) <= MAX_DECIMAL
    return clear


def require(fits: np.ndarray, what: str = SUM[0], room: str = SUM[1]) -> None:
    if not fits.all():
        raise SumOverflow(int(np.flatnonzero(~fits)[0]), what, room)
