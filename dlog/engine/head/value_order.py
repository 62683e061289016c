"""Owns rows in the order of their values, where codes may have another: those of texts and records."""

from __future__ import annotations

import numpy as np

from dlog.engine.state.store import Store
from dlog.jit import Words
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.values import Type
from dlog.values.record import RecordType


def in_value_order(store: Store, name: str, rows: Words) -> Words:
    """Distinct rows, lowest first, column by column.  O(n log n), or O(n) if they are; and the bytes of their
    texts."""
    if not rows.shape[1] or not len(rows):
        return rows[:1]
    types = store.column_types(name)
    keys = [_places(store.dictionary, np.ascontiguousarray(c), t) for c, t in zip(rows.T, types, strict=True)]
    if _are_ascending(keys):
        return rows
    ordered = rows[np.lexsort(keys[::-1])]
    is_first = np.ones(len(ordered), bool)
    is_first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return ordered[is_first]


def _are_ascending(keys: list[Words]) -> bool:
    """Whether each row is greater than the one before."""
    greater, equal = np.zeros(len(keys[0]) - 1, bool), np.ones(len(keys[0]) - 1, bool)
    for key in keys:
        greater |= equal & (key[1:] > key[:-1])
        equal &= key[1:] == key[:-1]
    return bool(greater.all())


def _places(dictionary: Dictionary, codes: Words, type: Type) -> Words:
    """Numbers in the order of the values of a column."""
    if isinstance(type, RecordType):
        return dictionary.records.ranks(codes, type, dictionary)
    if type.ordered_codes:
        return codes
    distinct, back = np.unique(codes, return_inverse=True)
    ordered = dictionary.in_order(distinct)
    places = np.empty(len(distinct), np.int64)
    places[np.searchsorted(distinct, ordered)] = np.arange(len(distinct))
    return places[back.reshape(-1)]
