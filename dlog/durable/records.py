"""Owns the meaning of records: a commit, a new branch, and the parts of a checkpoint.  Knows nothing of
files.

A payload is a kind and sections, each a tag, a length and bytes.  Rows are codes, never texts: new texts of
the dictionary come with the first record after them, and so do new records of the language, here called
values with fields.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dlog.durable.columns import pack, unpack
from dlog.jit import Words
from dlog.storage.dictionary.records.table import Stored
from dlog.storage.index.batch import Change

COMMIT, BRANCH, DROP, STATE, ROWS, TEXTS, END, VALUES = range(1, 9)
UNPACKED_VALUES = 64  # up to this many values are written unpacked: packing costs more than it saves

_SECTION = struct.Struct("<cQ")
_COMMIT = struct.Struct("<Qd")
_BEGINNING = struct.Struct("<BcQQd")  # the kind and the first section of a commit at once
_FEW_ROWS = struct.Struct("<cQHHQQB")  # the head of a section of a few rows at once
_CHANGE = struct.Struct("<HHQQB")  # bytes of the name, arity, inserted rows, erased rows, 1 if packed
_TEXTS = struct.Struct("<QQ")
_WORD = struct.Struct("<Q")


class Texts(NamedTuple):
    """Texts of the dictionary with neighbouring codes: the first code, lengths in bytes, all bytes."""

    first: int
    lengths: Words
    data: bytes | memoryview


class Values(NamedTuple):
    """Values with fields from the dictionary's table of records.  `given`: how many numbers were given out.
    The shapes of `stored` are places among `shapes`, pairs of a constructor and the kinds of its fields."""

    given: int
    shapes: list[tuple[int, tuple[int, ...]]]
    stored: Stored


@dataclass
class CommitRecord:
    """A transaction: everything needed to redo or undo it."""

    version: int
    time: float  # seconds since 1970
    branch: str
    changes: Mapping[str, Change] = field(default_factory=dict)  # net, of base facts
    program: str | None = None  # the program from then on, when the transaction changed it
    batch_id: str | None = None
    merged: int | None = None  # the head of the branch whose changes these are
    texts: Texts | None = None
    values: Values | None = None

    def parts(self) -> list[bytes]:
        """The parts of small commits are assembled with few calls: 4 us for one row."""
        sections = [_BEGINNING.pack(COMMIT, b"v", _COMMIT.size, self.version, self.time), _name(self.branch)]
        if self.texts is not None:
            sections += _section(b"t", texts_parts(self.texts))
        if self.values is not None:
            sections += _section(b"f", values_parts(self.values))
        for name, change in self.changes.items():
            sections += _few_rows(name, change) or _section(b"c", change_parts(name, change))
        if self.program is not None:
            sections += _section(b"p", [self.program.encode()])
        if self.batch_id is not None:
            sections += _section(b"i", [self.batch_id.encode()])
        if self.merged is not None:
            sections += _section(b"m", [_WORD.pack(self.merged)])
        return sections


@dataclass
class BranchRecord:
    """A new name for the head of a branch, or, without a head, a removed name."""

    name: str
    of: str | None

    def parts(self) -> list[bytes]:
        if self.of is None:
            return [bytes([DROP]), *_section(b"n", [self.name.encode()])]
        return [bytes([BRANCH]), *_section(b"n", [self.name.encode()]), *_section(b"b", [self.of.encode()])]


Record = CommitRecord | BranchRecord


def read_record(payload: memoryview) -> Record:
    """A record of a log.  Raises ValueError if it is not one."""
    kind = payload[0]
    if kind == COMMIT:
        return _read_commit(payload)
    if kind not in (BRANCH, DROP):
        raise ValueError(f"a record of kind {kind}")
    found = {tag: str(data, "utf-8") for tag, data in sections(payload)}
    return BranchRecord(found[b"n"], found.get(b"b"))


def _read_commit(payload: memoryview) -> CommitRecord:
    changes: dict[str, Change] = {}
    record = CommitRecord(0, 0.0, "", changes)
    for tag, data in sections(payload):
        if tag == b"v":
            record.version, record.time = _COMMIT.unpack(data)
        elif tag == b"b":
            record.branch = str(data, "utf-8")
        elif tag == b"t":
            record.texts = read_texts(data)
        elif tag == b"f":
            record.values = read_values(data)
        elif tag == b"c":
            name, change = read_change(data)
            changes[name] = change
        elif tag == b"p":
            record.program = str(data, "utf-8")
        elif tag == b"i":
            record.batch_id = str(data, "utf-8")
        elif tag == b"m":
            (record.merged,) = _WORD.unpack(data)
    return record


# Sections


def sections(payload: memoryview, at: int = 1) -> Iterator[tuple[bytes, memoryview]]:
    while at < len(payload):
        tag, length = _SECTION.unpack_from(payload, at)
        at += _SECTION.size
        yield tag, payload[at : at + length]
        at += length


def _section(tag: bytes, parts: Sequence[bytes]) -> list[bytes]:
    return [_SECTION.pack(tag, sum(map(len, parts))), *parts]


@lru_cache(maxsize=1024)
def _name(branch: str) -> bytes:
    return b"".join(_section(b"b", [branch.encode()]))


def _few_rows(name: str, change: Change) -> tuple[bytes, ...] | None:
    """A section of rows that are not packed; None if they are too many for that."""
    inserted, erased = change
    n_inserted, arity = inserted.shape
    n_erased = len(erased)
    if (n_inserted + n_erased) * arity > UNPACKED_VALUES:
        return None
    head = _few_rows_head(name, arity, n_inserted, n_erased)
    return (head, inserted.tobytes(), erased.tobytes()) if n_erased else (head, inserted.tobytes())


@lru_cache(maxsize=1024)
def _few_rows_head(name: str, arity: int, n_inserted: int, n_erased: int) -> bytes:
    encoded = name.encode()
    length = _CHANGE.size + len(encoded) + (n_inserted + n_erased) * arity * 8
    return _FEW_ROWS.pack(b"c", length, len(encoded), arity, n_inserted, n_erased, 0) + encoded


def change_parts(name: str, change: Change) -> list[bytes]:
    """Rows one after the other if they are few, else packed column by column."""
    inserted, erased = change
    arity, encoded = inserted.shape[1], name.encode()
    packed = (len(inserted) + len(erased)) * arity > UNPACKED_VALUES
    head = _CHANGE.pack(len(encoded), arity, len(inserted), len(erased), packed)
    if not packed:
        return [head, encoded, inserted.tobytes(), erased.tobytes()]
    columns = [pack(np.ascontiguousarray(rows[:, c])) for rows in change for c in range(arity)]
    return [head, encoded, *(part for parts in columns for part in parts)]


def read_change(data: memoryview) -> tuple[str, Change]:
    length, arity, n_inserted, n_erased, packed = _CHANGE.unpack_from(data)
    at = _CHANGE.size + length
    name = str(data[_CHANGE.size : at], "utf-8")
    if not packed:
        rows = np.empty((n_inserted + n_erased, arity), np.int64)
        rows.reshape(-1)[:] = np.frombuffer(bytes(data[at:]), "<i8")
        return name, Change(rows[:n_inserted], rows[n_inserted:])
    tables = []
    for n in (n_inserted, n_erased):
        rows = np.empty((n, arity), np.int64)
        for c in range(arity):
            rows[:, c], at = unpack(data, at)
        tables.append(rows)
    return name, Change(*tables)


def texts_parts(texts: Texts) -> list[bytes]:
    return [_TEXTS.pack(texts.first, len(texts.lengths)), *pack(texts.lengths), bytes(texts.data)]


def read_texts(data: memoryview) -> Texts:
    first, _ = _TEXTS.unpack_from(data)
    lengths, at = unpack(data, _TEXTS.size)
    return Texts(first, lengths, data[at:])


def values_parts(values: Values) -> list[bytes]:
    flat = [word for constructor, kinds in values.shapes for word in (constructor, len(kinds), *kinds)]
    head = np.array([values.given, len(values.shapes), *flat], np.int64)
    return [part for words in (head, *values.stored) for part in pack(words)]


def read_values(data: memoryview) -> Values:
    arrays, at = [], 0
    for _ in range(4):
        words, at = unpack(data, at)
        arrays.append(words)
    head, shapes, place = arrays[0].tolist(), [], 2
    for _ in range(head[1]):
        end = place + 2 + head[place + 1]
        shapes.append((head[place], tuple(head[place + 2 : end])))
        place = end
    return Values(head[0], shapes, Stored(*arrays[1:]))
