"""Owns Python values as records to be stored: all at once, fields before the records that have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from dlog.jit import Words
from dlog.storage.index.sort import as_words
from dlog.values import Branch, Constructor, RecordType, Type

if TYPE_CHECKING:
    from dlog.storage.dictionary.records.table import RecordTable


class Nodes(NamedTuple):
    """Records as `record_kernels.store_nodes` takes them."""

    shapes: Words
    starts: Words
    words: Words
    is_node: Any

    @classmethod
    def encoded(cls, values: Sequence[Any], type: RecordType, table: RecordTable, dictionary: Any) -> Words:
        """The codes of values of a type.  O(size)."""
        walk = _Walk(table)
        roots = [walk.value(value, type) for value in values]
        nodes = table.store_nodes(walk.nodes(dictionary))
        codes = np.array([word for word, _ in roots], np.int64)
        is_node = np.array([node for _, node in roots], np.bool_)
        codes[is_node] = nodes[codes[is_node]]
        return codes


class _Walk:
    """Collects the records of values; strings, dates and the like are encoded together at the end."""

    def __init__(self, table: RecordTable):
        self.table = table
        self.shapes: list[int] = []
        self.starts = [0]
        self.words: list[int] = []
        self.is_node: list[bool] = []
        self.leaves: dict[Type, tuple[list[int], list[Any]]] = {}  # places among the words, values
        self.known_shapes: dict[tuple[str, int], int] = {}

    def value(self, value: Any, type: RecordType) -> tuple[int, bool]:
        """(A code or the place of a node, whether it is a node)."""
        open: list[tuple[RecordType, int, Constructor, tuple[Any, ...], list[tuple[Any, bool]]]] = []
        wanted: Type = type
        while True:
            done: tuple[Any, bool]
            if not isinstance(wanted, RecordType):
                done = value, False
            elif value is None:
                done = 0, False
            else:
                name, fields = (value.name, value.fields) if isinstance(value, Branch) else ("", value)
                number = wanted.numbers[name]
                if fields:
                    constructor = wanted.constructors[number]
                    open.append((wanted, number, constructor, fields, []))
                    value, wanted = fields[0], constructor.fields[0][1]
                    continue
                done = wanted.immediate(number) or 0, False
            while open:
                of, number, constructor, fields, made = open[-1]
                made.append(done)
                if len(made) < len(fields):
                    value, wanted = fields[len(made)], constructor.fields[len(made)][1]
                    break
                open.pop()
                done = self.node(of, number, made)
            else:
                return done

    def node(self, type: RecordType, number: int, fields: list[tuple[Any, bool]]) -> tuple[int, bool]:
        constructor = type.constructors[number]
        for (word, is_node), (_, of) in zip(fields, constructor.fields, strict=True):
            if not of.is_record:
                places, values = self.leaves.setdefault(of, ([], []))
                places.append(len(self.words))
                values.append(word)
                word = 0
            self.words.append(word)
            self.is_node.append(is_node)
        if (type.name, number) not in self.known_shapes:
            self.known_shapes[type.name, number] = self.table.shape(number, constructor.kinds)
        self.shapes.append(self.known_shapes[type.name, number])
        self.starts.append(len(self.words))
        return len(self.shapes) - 1, True

    def nodes(self, dictionary: Any) -> Nodes:
        words = np.array(self.words, np.int64)
        for type, (places, values) in self.leaves.items():
            words[places] = as_words(type.encode(pa.array(values, type.arrow()), dictionary))
        return Nodes(
            np.array(self.shapes, np.int64), np.array(self.starts, np.int64), words,
            np.array(self.is_node, np.uint8),
        )  # fmt: skip
