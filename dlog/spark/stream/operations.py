"""Owns the operation of a streamed row: insert a fact, delete it, or replace the value of its key.

Rows come in order, and the last operation on a fact counts, as in a transaction.  Correct output of
`last_words`: statements that, taken one after the other, do what all rows do in their order.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dlog.engine.head.grouping import sorted_rows

INSERT, ERASE, UPSERT, UNKNOWN = "+", "-", "^", "?"

# Names of a column of operations, unless the predicate has a column of that name.
COLUMN_NAMES = ("op", "_op", "__op", "_change_type", "sign")

# A sign, or the operation of a change-data-capture feed: whole words, Debezium's letters, Delta's types of
# changes and Flink's kinds of rows.  Case does not matter.
WORDS = {
    INSERT: ("+", "1", "+1", "i", "insert", "c", "create", "r", "read", "+i", "+u"),
    ERASE: ("-", "-1", "d", "delete", "-d", "-u"),
    UPSERT: ("^", "u", "update", "upsert"),
}
_IMAGES = {
    "update_preimage": ERASE,
    "update_before": ERASE,
    "update_postimage": INSERT,
    "update_after": INSERT,
}
MEANINGS = {word: meaning for meaning, words in WORDS.items() for word in words} | _IMAGES

Statement = tuple[str, np.ndarray]  # INSERT, ERASE or UPSERT, and rows of codes


def meanings(column: pa.ChunkedArray) -> np.ndarray:
    """The operation of each row of a column of operations, UNKNOWN if it is none.  O(rows).

    >>> meanings(pa.chunked_array([["+", "D", "u", "x"]])).tolist()
    ['+', '-', '^', '?']
    """
    if not len(column):
        return np.empty(0, "U1")
    encoded = column.combine_chunks().dictionary_encode()
    known = [MEANINGS.get(str(word).strip().lower(), UNKNOWN) for word in encoded.dictionary.to_pylist()]
    return np.array(known, "U1")[encoded.indices.to_numpy(zero_copy_only=False)]


def last_operations(rows: np.ndarray, signs: np.ndarray, n_keys: int) -> list[Statement]:
    """A few statements instead of many rows.  O(rows).

    The last upsert of a key overrides everything before it; of the rest the last of each row counts.

    >>> rows = np.array([[1, 5], [1, 6], [2, 7], [1, 5]])
    >>> [(op, found.tolist()) for op, found in last_operations(rows, np.array(["+", "^", "+", "-"]), 1)]
    [('^', [[1, 6]]), ('-', [[1, 5]]), ('+', [[2, 7]])]
    """
    statements: list[Statement] = []
    upserts = signs == UPSERT
    if upserts.any():
        keeps = _since_last(rows[:, :n_keys], upserts)
        rows, signs, upserts = rows[keeps], signs[keeps], upserts[keeps]
        statements.append((UPSERT, rows[upserts]))
        rows, signs = rows[~upserts], signs[~upserts]
    if len(rows) and not (signs == signs[0]).all():
        is_last = _is_last(rows)
        rows, signs = rows[is_last], signs[is_last]
    found = ((op, rows[signs == op]) for op in (ERASE, INSERT))
    return statements + [(op, some) for op, some in found if len(some)]


def _groups(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The order that puts equal rows together, the earlier first, and where in it a group begins."""
    order = sorted_rows([np.ascontiguousarray(column) for column in rows.T], len(rows))
    placed = rows[order]
    begins = np.ones(len(rows), bool)
    begins[1:] = (placed[1:] != placed[:-1]).any(axis=1)
    return order, begins


def _is_last(rows: np.ndarray) -> np.ndarray:
    order, begins = _groups(rows)
    found = np.zeros(len(rows), bool)
    found[order] = np.append(begins[1:], True)
    return found


def _since_last(keys: np.ndarray, marked: np.ndarray) -> np.ndarray:
    """Rows that no marked row of the same key follows."""
    order, begins = _groups(keys)
    group = np.cumsum(begins) - 1
    last = np.full(group[-1] + 1, -1)
    places = order[marked[order]]
    np.maximum.at(last, group[marked[order]], places)
    found = np.empty(len(keys), bool)
    found[order] = order >= last[group]
    return found
