"""Owns records as texts, column by column: one kernel finds the tokens of all rows, Arrow joins them.  Owns
their order, too, which needs the same arrays of types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dlog.errors import DataError
from dlog.jit import Words
from dlog.storage.dictionary.records.order_kernels import sort_records
from dlog.storage.dictionary.records.text_kernels import FULL, GONE, OTHERS, write_tokens
from dlog.storage.index.sort import as_words
from dlog.values import RecordType, Type
from dlog.values.heavy import pc
from dlog.values.quoting import quoted
from dlog.values.record import TEXT

if TYPE_CHECKING:
    from dlog.storage.dictionary.records.table import Arrays

FIRST_STACK = 1 << 10
MOST_TOKENS = 1 << 30


@dataclass
class _TypeArrays:
    """The arrays that `text_kernels` explains."""

    signs: list[str]
    leaves: list[Type]
    is_adt: Words
    types: Words
    fields: Words
    slots: Words

    @classmethod
    def of(cls, type: RecordType) -> _TypeArrays:
        known: list[RecordType] = [type]
        leaves: list[Type] = []
        signs, types, fields, slots = ["nil", ", ", "?"], [], [0], []
        for of in known:  # grows
            types.append(len(fields) - 1)
            for constructor in of.constructors:
                signs += _signs(constructor.name)
                for field in constructor.types:
                    among: list[Any] = known if isinstance(field, RecordType) else leaves
                    if field not in among:
                        among.append(field)
                    place = among.index(field)
                    slots.append(place if among is known else ~place)
                fields.append(len(slots))
        types.append(len(fields) - 1)
        arrays = (np.array(words, np.int64) for words in ([t.is_adt for t in known], types, fields, slots))
        return cls(signs, leaves, *arrays)


def _signs(name: str) -> list[str]:
    return [f"${name}(", ")", f"${name}"] if name else ["[", "]", "[]"]


def record_texts(
    codes: Words, type: RecordType, arrays: Arrays, constructors: Words, dictionary: Any
) -> pa.Array:
    """The text of each value.  O(length of the texts)."""
    layout = _TypeArrays.of(type)
    tokens, leaves, ends = _tokens(as_words(codes), layout, arrays, constructors)
    assert not (tokens == GONE).any(), "a record was collected that is in use"
    texts = [pa.array(layout.signs, pa.string())]
    size = len(layout.signs)
    for number, leaf in enumerate(layout.leaves):
        rows = np.flatnonzero(tokens == ~number)
        distinct, places = np.unique(leaves[rows], return_inverse=True)
        texts.append(_leaf_texts(leaf, as_words(distinct), dictionary))
        tokens[rows] = size + places
        size += len(distinct)
    pieces = pa.concat_arrays(texts).take(pa.array(tokens))
    lists = pa.LargeListArray.from_arrays(pa.array(ends), pieces.cast(pa.large_string()))
    return pc.binary_join(lists, pa.scalar("", pa.large_string()))


def in_order(codes: Words, type: RecordType, arrays: Arrays, constructors: Words, dictionary: Any) -> Words:
    """Distinct codes in the order of their values."""
    layout = _TypeArrays.of(type)
    is_text = np.array([of.field_kind == TEXT for of in layout.leaves], np.uint8)
    ranks = dictionary.rank if is_text.any() else np.empty(0, np.int64)
    codes, depth = codes.copy(), FIRST_STACK
    while sort_records(
        codes, layout.types, layout.fields, layout.slots, is_text, ranks, constructors, arrays.directory,
        arrays.places, arrays.heap, np.empty(depth, np.int64), np.empty_like(codes),
    ):  # fmt: skip
        depth *= 2
    return codes


def _leaf_texts(type: Type, codes: Words, dictionary: Any) -> pa.Array:
    values = type.python_values(type.decode(codes, dictionary))
    texts = [type.literal_text(value) for value in values]
    return pa.array([quoted(text) for text in texts] if type.quoted_literal else texts, pa.string())


def _tokens(
    codes: Words, layout: _TypeArrays, arrays: Arrays, constructors: Words
) -> tuple[Words, Words, Words]:
    """Counted first, then written."""
    ends, room, depth = np.zeros(len(codes) + 1, np.int64), 0, FIRST_STACK
    tokens = leaves = np.empty(0, np.int64)
    while True:
        found = write_tokens(
            codes, 0, layout.is_adt, layout.types, layout.fields, layout.slots, constructors,
            arrays.directory, arrays.places, arrays.heap, np.empty(depth, np.int64), tokens, leaves, ends,
        )  # fmt: skip
        if found == FULL:
            depth *= 2
        elif found > MOST_TOKENS:
            raise DataError(f"the texts of these records have more than {MOST_TOKENS:,} parts")
        elif found > room:
            room = found
            tokens, leaves = np.empty(room, np.int64), np.empty(room, np.int64)
        else:
            return tokens, leaves, ends


assert OTHERS == 3, "the signs that no constructor has"
