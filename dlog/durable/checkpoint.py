"""Owns checkpoints: everything needed to start, in one file that is written once.

The dictionary's texts and values with fields, then every retained moment: its name, its program, its base
facts.  Those of the first moment are complete and sorted, so that they are loaded without sorting; the others
are differences from it, which versions in memory give in time proportional to the difference.  The last
record marks the file as complete.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dlog.durable.columns import pack, unpack
from dlog.durable.files import Files, synced
from dlog.durable.frames import (
    CHECKPOINT,
    FRAME_BYTES,
    HEADER_BYTES,
    Framed,
    corruption,
    frame_of,
    header,
    read_header,
)
from dlog.durable.frames import records as framed_records
from dlog.durable.records import (
    END,
    ROWS,
    STATE,
    TEXTS,
    VALUES,
    Texts,
    Values,
    change_parts,
    read_change,
    read_texts,
    read_values,
    texts_parts,
    values_parts,
)
from dlog.durable.replay import Facts
from dlog.durable.timeline import Batches, Moment, Timeline
from dlog.engine.maintain.strategy import net_difference
from dlog.jit import Words
from dlog.storage.arena.arena import Arena
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.index.index import Index
from dlog.storage.relation.relation import Relation

CHUNK_ROWS = 1 << 20
CHUNK_TEXTS = 1 << 20
_ROWS = struct.Struct("<QHHQB")  # version, bytes of the name, arity, rows, 1 if whole
_WHOLE, _DIFFERENCE = 1, 0

Base = Mapping[str, Relation]


@dataclass
class Image:
    """The contents of a checkpoint."""

    timeline: Timeline
    facts: Mapping[int, tuple[str, Base]]  # program and base facts of each retained moment, by version
    dictionary: Dictionary
    n_texts: int  # of its texts: readers in other threads may add more meanwhile
    n_records: int  # numbers of records
    origin: str  # identifies the program that the database was created from


def write_checkpoint(files: Files, path: Path, generation: int, image: Image) -> int:
    """The file, synced; its bytes.  O(bytes of the first moment + differences of the others)."""
    handle = files.open(path)
    try:
        files.truncate(handle, 0)
        files.write(handle, [header(CHECKPOINT, generation)], 0)
        size, n = HEADER_BYTES, 0
        for parts in _contents(image):
            length, checksum = sum(map(len, parts)), 0
            for part in parts:
                checksum = zlib.crc32(part, checksum)
            files.write(handle, [frame_of(length, checksum, 0), *parts], size)
            size, n = size + FRAME_BYTES + length, n + 1
        end = bytes([END]) + n.to_bytes(8, "little")
        files.write(handle, [frame_of(len(end), zlib.crc32(end), 0), end], size)
        synced(files, handle)
    finally:
        files.close(handle)
    return size + FRAME_BYTES + len(end)


def _contents(image: Image) -> Iterator[Sequence[bytes]]:
    yield from _texts(image.dictionary, image.n_texts)
    if image.n_records:
        yield [bytes([VALUES]), *values_parts(values_of(image.dictionary, 0, image.n_records))]
    moments = image.timeline.moments()
    moments.sort(key=lambda moment: moment is not image.timeline.heads["main"])
    first: Base = {}
    for number, moment in enumerate(moments):
        text, base = image.facts[moment.version]
        yield _state(image, moment, text, list(base), number == 0)
        for name, relation in base.items():
            if number == 0:
                yield from _whole(moment.version, name, relation)
            else:
                yield from _differing(moment.version, name, first.get(name), relation)
        if number == 0:
            first = base


def _texts(dictionary: Dictionary, n: int) -> Iterator[Sequence[bytes]]:
    for first in range(0, n, CHUNK_TEXTS):
        lengths, data = dictionary.since(first, min(n, first + CHUNK_TEXTS))
        yield [bytes([TEXTS]), *texts_parts(Texts(first, lengths, data))]


def values_of(dictionary: Dictionary, first: int, last: int) -> Values:
    """The values with fields whose numbers are from `first` to before `last`."""
    table = dictionary.records
    stored = table.stored(first, last)
    used, places = np.unique(stored.shapes, return_inverse=True)
    known = table.shapes()
    return Values(last, [known[shape] for shape in used.tolist()], stored._replace(shapes=places))


def _state(image: Image, moment: Moment, text: str, predicates: list[str], is_first: bool) -> Sequence[bytes]:
    names = [name for name, head in image.timeline.heads.items() if head is moment]
    state = {
        "version": moment.version,
        "parents": [parent.version for parent in moment.parents],
        "branches": names,
        "program": text,
        "predicates": predicates,
        "batches": sorted(moment.batches.all()),
    }
    if is_first:
        state |= {"last": image.timeline.last, "origin": image.origin}
    return [bytes([STATE]), json.dumps(state).encode()]


def _whole(version: int, name: str, relation: Relation) -> Iterator[Sequence[bytes]]:
    columns, n, encoded = _sorted_columns(relation), len(relation), name.encode()
    for start in range(0, n, CHUNK_ROWS):
        stop = min(n, start + CHUNK_ROWS)
        head = _ROWS.pack(version, len(encoded), relation.arity, stop - start, _WHOLE)
        packed = [part for column in columns for part in pack(column[start:stop])]
        yield [bytes([ROWS]), head, encoded, *packed]


def _sorted_columns(relation: Relation) -> Sequence[Words]:
    """Rows in the predicate's own order, column by column, without a copy if they are contiguous."""
    index = relation.find(tuple(range(relation.arity)))
    if index is None:
        return list(np.ascontiguousarray(relation.rows().T))
    flat = index.flat_columns() if relation.arity and len(index) else None
    return flat if flat is not None else list(index.columns())


def _differing(
    version: int, name: str, first: Relation | None, relation: Relation
) -> Iterator[Sequence[bytes]]:
    if first is None or first.arity != relation.arity:
        yield from _whole(version, name, relation)
        return
    change = net_difference(first, relation)
    if change:
        encoded = name.encode()
        head = _ROWS.pack(version, len(encoded), relation.arity, 0, _DIFFERENCE)
        yield [bytes([ROWS]), head, encoded, *change_parts(name, change)]


# Reading


@dataclass
class _Part:
    """Rows of one predicate at one moment, still packed."""

    arity: int
    n: int
    whole: bool
    data: memoryview


@dataclass
class Loaded:
    """A checkpoint that has been checked, its rows still packed."""

    path: Path
    size: int
    states: list[dict[str, Any]] = field(default_factory=list)
    texts: list[Texts] = field(default_factory=list)
    values: list[Values] = field(default_factory=list)
    rows: dict[tuple[int, str], list[_Part]] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return str(self.states[0]["origin"])

    def timeline(self) -> Timeline:
        """Branches and moments; the states have programs, and no rows yet."""
        known: dict[int, Moment] = {}
        for state in sorted(self.states, key=lambda state: int(state["version"])):
            parents = tuple(known[version] for version in state["parents"])
            moment = Moment(state["version"], parents, Facts(state["program"], {}), Batches())
            for batch_id in state["batches"]:
                moment.batches.add(batch_id)
            for parent in parents:
                parent.shared = True
            known[moment.version] = moment
        timeline = Timeline(known[self.states[0]["version"]])
        timeline.heads = {name: known[s["version"]] for s in self.states for name in s["branches"]}
        timeline.last = self.states[0]["last"]
        for state in self.states:
            if len(state["branches"]) > 1:
                known[state["version"]].shared = True
        return timeline

    def fill(self, timeline: Timeline, arena: Arena) -> None:
        """Give the states of a timeline their rows.  O(rows of the first moment + differences)."""
        by_version = {moment.version: moment for moment in timeline.moments()}
        first: dict[str, Relation] = {}
        for number, state in enumerate(self.states):
            version = state["version"]
            facts = by_version[version].state
            facts.relations |= {name: first[name] for name in state["predicates"] if name in first}
            for (owner, name), parts in self.rows.items():
                if owner == version:
                    facts.relations[name] = _relation(arena, parts, first.get(name))
            if not number:
                first = dict(facts.relations)


def read_checkpoint(files: Files, path: Path, generation: int) -> Loaded:
    """Checks every byte; raises if the file is incomplete.  O(bytes)."""
    data = files.map(path)
    if read_header(data, path, CHECKPOINT) != generation:
        raise corruption(path, 0, "its name and its header do not agree")
    found, tail = framed_records(data, path)
    if tail.end < len(memoryview(data)) or not found or found[-1].payload[0] != END:
        raise corruption(path, tail.end, tail.reason or "its end is missing")
    if int.from_bytes(found[-1].payload[1:9], "little") != len(found) - 1:
        raise corruption(path, found[-1].offset, "records are missing")
    loaded = Loaded(path, len(memoryview(data)))
    for one in found[:-1]:
        try:
            _take(loaded, one)
        except (ValueError, KeyError, IndexError, struct.error) as error:
            raise corruption(path, one.offset, str(error)) from None
    return loaded


def _take(loaded: Loaded, one: Framed) -> None:
    kind, data = one.payload[0], one.payload[1:]
    if kind == TEXTS:
        loaded.texts.append(read_texts(data))
    elif kind == VALUES:
        loaded.values.append(read_values(data))
    elif kind == STATE:
        loaded.states.append(json.loads(bytes(data)))
    elif kind == ROWS:
        version, length, arity, n, whole = _ROWS.unpack_from(data)
        at = _ROWS.size + length
        part = _Part(arity, n, bool(whole), data[at:])
        loaded.rows.setdefault((version, str(data[_ROWS.size : at], "utf-8")), []).append(part)
    else:
        raise ValueError(f"a record of kind {kind}")


def _relation(arena: Arena, parts: list[_Part], first: Relation | None) -> Relation:
    if not parts[0].whole:
        first = Relation(arena, parts[0].arity) if first is None else first  # an empty one has no record
        _, change = read_change(parts[0].data)
        return first.apply(inserts=change.inserted, erases=change.erased)[0]
    arity, n = parts[0].arity, sum(part.n for part in parts)
    if arity == 0:
        return Relation.build(arena, np.empty((n, 0), np.int64), 0)

    def put(words: Words, at: int) -> None:
        row = at
        for part in parts:
            offset = 0
            for column in range(arity):
                start = row + column * n
                words[start : start + part.n], offset = unpack(part.data, offset)
            row += part.n

    return Relation.of_index(Index.of_sorted(arena, arity, n, put))
