"""Owns scan predicates (maintenance paper, 2.3.3): the values of groups in order, for semigroups.

A scan predicate is a relation of rows (keys, value, count): how many assignments give a group this value.
Min and max have no inverse; here they are the first and the last row of a group, and of a group of fewer keys
a scan over its interval (`dlog.storage.scan.scan_tree`), so that rules at several levels of detail share it.

Codes of strings are not ordered.  A string's value is TEXT_WORDS words of its first bytes, then the code:
what agrees in the words is compared text by text.  No rank is stored, so none can go stale.
"""

from __future__ import annotations

import numpy as np

from dlog.heads import scan_kernels as kernels
from dlog.heads.counts import net_rows
from dlog.heads.lookup import look_up
from dlog.jit import Words
from dlog.storage.arena.arena import Arena
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.index.index import Index
from dlog.storage.relation.relation import Relation

TEXT_WORDS = 4  # of seven bytes each


def no_values(arena: Arena, keys: int, words: int, *, levels: bool) -> Relation:
    """An empty scan predicate of `keys` key columns and values of this many words.

    `levels`: it is also asked for groups of fewer keys, so scans of its values are maintained.
    """
    return Relation.of_index(Index.build(arena, (), keys + words + 1, scan=keys if levels else None))


def apply_values(state: Relation, rows: Words, signs: Words) -> Relation:
    """Add (+n) and remove (-n) assignments of rows (keys, value).  O(m log n)."""
    rows, change = net_rows(rows, signs)
    if not len(rows):
        return state
    found, counts = look_up(state, rows)
    before = np.where(found > 0, counts[:, 0], 0)
    after = before + change
    assert (after >= 0).all(), "a group loses a value that it does not have"
    erased = np.column_stack([rows, before])[before > 0]
    inserted = np.column_stack([rows, after])[after > 0]
    return state.apply(erases=erased, inserts=inserted)[0]


def extremes(state: Relation, keys: Words, key_columns: int) -> tuple[np.ndarray, Words, Words]:
    """For each group: whether it has values, its least and its greatest value (n, words).

    `keys` is (n, d); d less than the key columns asks for a group of fewer keys, whose values are single
    words.  O(n log rows), O(n (log rows + a page)) for fewer keys.
    """
    index = state.index(tuple(range(state.arity)))
    n, d = keys.shape
    words = state.arity - key_columns - 1
    found = np.zeros(n, np.int64)
    flat = np.ascontiguousarray(keys, np.int64).reshape(-1)
    if d < key_columns:
        least, greatest = np.zeros((2, n, 1), np.int64)
        with index.arena.lock:
            kernels.scan_prefixes(
                index.arena.A, index.root, d, flat, n, key_columns, found, least[:, 0], greatest[:, 0]
            )
        return found > 0, least, greatest
    first, last = np.zeros((2, n, words + 1), np.int64)
    kernels.edge_rows(
        index.arena.A, index.root, d, state.arity, flat, n, found, first.reshape(-1), last.reshape(-1)
    )
    return found > 0, first[:, :words], last[:, :words]


def runs(state: Relation, keys: Words) -> tuple[Words, Words]:
    """(What follows the keys in all rows that begin with them, where each key's rows begin).  O(found)."""
    index = state.index(tuple(range(state.arity)))
    n, d = keys.shape
    flat, bounds = np.ascontiguousarray(keys, np.int64).reshape(-1), np.zeros(n + 1, np.int64)
    kernels.count_runs(index.arena.A, index.root, d, flat, n, bounds)
    out = np.empty((int(bounds[-1]), state.arity - d), np.int64)
    kernels.read_runs(index.arena.A, index.root, d, state.arity, flat, n, out.reshape(-1))
    return out, bounds


def run_lengths(state: Relation, keys: Words) -> Words:
    """How many rows begin with each key.  O(n log rows)."""
    index = state.index(tuple(range(state.arity)))
    n, d = keys.shape
    flat, bounds = np.ascontiguousarray(keys, np.int64).reshape(-1), np.zeros(n + 1, np.int64)
    kernels.count_runs(index.arena.A, index.root, d, flat, n, bounds)
    return np.diff(bounds)


# Strings


def text_values(dictionary: Dictionary, codes: Words) -> Words:
    """Values of strings, (n, TEXT_WORDS + 1).  O(n)."""
    words = np.empty((len(codes), TEXT_WORDS), np.int64)
    text, ends = dictionary.buffers()
    kernels.text_words(text, ends, np.ascontiguousarray(codes), len(codes), TEXT_WORDS, words.reshape(-1))
    return np.column_stack([words, codes])


def extreme_texts(
    state: Relation, keys: Words, dictionary: Dictionary, sign: int
) -> tuple[np.ndarray, Words]:
    """For each group: whether it has values, and the code of its least (sign 1) or greatest (-1) text.

    O(n log rows), and what is in the group and agrees with that text in its first 28 bytes.
    """
    found, *edges = extremes(state, keys, keys.shape[1])
    edge = edges[0 if sign > 0 else 1][found]
    tied, bounds = runs(state, np.column_stack([keys[found], edge[:, :TEXT_WORDS]]))
    codes, chosen = np.ascontiguousarray(tied[:, 0]), np.zeros(len(edge), np.int64)
    text, ends = dictionary.buffers()
    kernels.extreme_texts(text, ends, codes, bounds, len(edge), sign, chosen)
    out = np.zeros(len(keys), np.int64)
    out[found] = chosen
    return found, out


def check_values(state: Relation) -> None:
    """Assert that every value is stored once, and has assignments.  O(rows log rows)."""
    rows = state.rows()
    assert (rows[:, -1] > 0).all(), "a value without assignments"
    assert (look_up(state, rows[:, :-1])[0] == 1).all(), "a value is stored twice"
    for order in state.orders:
        state.index(order).check()
