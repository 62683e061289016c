"""Owns exact sums of floats under insertion and erasure (maintenance paper, 2.3.4).

Sums form an Abelian group in which nothing is rounded: erasing a float gives exactly the sum without it,
also after infinities and NaN, and the order or grouping of changes does not matter.  It is rounded when it is
read.

A sum is stored in a relation as rows (keys, number of the sum, place, word), one for each word that is not 0:
a handful for most sums, so that a change touches a few rows.  Digits are unique, so equal sums are equal
rows, and a group without floats, or whose floats cancel, has none.
"""

from __future__ import annotations

import numpy as np

from dlog.algebra import LIMBS, WORDS_PER_SUM
from dlog.heads import float_kernels as kernels
from dlog.jit import Words
from dlog.storage.arena.arena import Arena
from dlog.storage.relation.relation import Relation

CHUNK = 1024  # sums that are changed in one call: their rows may take 5 MB


def no_sums(arena: Arena, keys: int) -> Relation:
    return Relation(arena, keys + 3)


def apply_floats(
    state: Relation, keys: Words, number: int, bounds: Words, codes: Words, signs: Words
) -> Relation:
    """Add to one sum of each of n groups: codes of floats with their signs, group by group.

    `keys` is (n, g), distinct; group i has codes[bounds[i]:bounds[i + 1]].  O(codes + n (log rows + 72)).
    """
    named = _named(keys, number)
    erased, inserted = [], []
    for start in range(0, len(named), CHUNK):
        gone, come = _changed(state, named[start : start + CHUNK], bounds[start:], codes, signs)
        erased.append(gone)
        inserted.append(come)
    if not erased:
        return state
    return state.apply(erases=np.concatenate(erased), inserts=np.concatenate(inserted))[0]


def _changed(state: Relation, named: Words, bounds: Words, codes: Words, signs: Words) -> tuple[Words, Words]:
    n, d = named.shape
    index = state.index(tuple(range(state.arity)))
    erased, inserted = np.empty((2, n * WORDS_PER_SUM, d + 2), np.int64)
    work, out = np.zeros(2 * WORDS_PER_SUM, np.int64), np.zeros(2, np.int64)
    kernels.change_sums(
        index.arena.A,
        index.root,
        d,
        named.reshape(-1),
        n,
        np.ascontiguousarray(bounds),
        codes,
        signs,
        work,
        erased.reshape(-1),
        inserted.reshape(-1),
        out,
    )
    return erased[: out[0]], inserted[: out[1]]


def words_of_sums(state: Relation, keys: Words, number: int) -> Words:
    """The words of one sum of each group, (n, WORDS_PER_SUM).  O(n (log rows + 72))."""
    named = _named(keys, number)
    n, d = named.shape
    index = state.index(tuple(range(state.arity)))
    out = np.zeros((n, WORDS_PER_SUM), np.int64)
    kernels.read_words(index.arena.A, index.root, d, named.reshape(-1), n, out.reshape(-1))
    return out


def _named(keys: Words, number: int) -> Words:
    return np.column_stack([keys, np.full(len(keys), number, np.int64)])


def check_sums(state: Relation) -> None:
    """Assert that words are not 0, have a place, and that digits are balanced.  O(rows)."""
    rows = state.rows()
    place, word = rows[:, -2], rows[:, -1]
    assert ((place >= 0) & (place < WORDS_PER_SUM)).all() and (word != 0).all(), "a word of a sum that is 0"
    digits = word[place < LIMBS]
    assert ((digits >= -(2**31)) & (digits < 2**31)).all(), "a digit of a sum is not balanced"
    same = (rows[1:, :-1] == rows[:-1, :-1]).all(axis=1)
    assert not same.any(), "a word of a sum is stored twice"
