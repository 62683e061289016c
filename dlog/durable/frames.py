"""Owns how a file is split into records, each with its length and checksums.  Knows nothing of what they
mean.

A file begins with a header that names its format, and will not change in later formats.  A record is a
frame (what follows, how long, and up to which offset the file was on the disk when this was written) and its
payload.

Space that is reserved after the last record is zeros, and no record begins with a zero.  A file that ends in
the middle of a record, or with one whose checksum is wrong, was being written when the machine stopped: that
tail is cut off.  Of several records that were never synced the disk may have later ones
without earlier ones, so a bad record with good ones after it is a tail as well, unless one of these was
written when the bad one was on the disk already.  Then a record was lost that had been safe: corruption.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from dlog.durable.files import Buffer
from dlog.errors import StoreError

FORMAT = 1  # the newest that can be read, and the one that is written
LOG, CHECKPOINT = 1, 2

_MAGIC = b"dlogdata"
_HEADER = struct.Struct("<8sIIQII")  # magic, format, kind, generation, unused, checksum
HEADER_BYTES = _HEADER.size
_MARK = b"\x9edlR"
_FRAME = struct.Struct("<4sQQII")  # mark, length, synced, checksum of the payload, checksum of the frame
_UNCHECKED = struct.Struct("<4sQQI")  # the same without the last
FRAME_BYTES = _FRAME.size
_CHECKSUM = struct.Struct("<I")


def header(kind: int, generation: int, format: int = FORMAT) -> bytes:
    unchecked = _HEADER.pack(_MAGIC, format, kind, generation, 0, 0)[:-4]
    return unchecked + _CHECKSUM.pack(crc32(unchecked))


def read_header(data: Buffer, path: Path, kind: int) -> int:
    """The generation.  Raises if the file is not ours, damaged, or from a newer dlog."""
    head = bytes(memoryview(data)[:HEADER_BYTES])
    if len(head) < HEADER_BYTES or head[:8] != _MAGIC:
        raise corruption(path, 0, "this is not the beginning of such a file")
    _, format, found, generation, _, checksum = _HEADER.unpack(head)
    if checksum != crc32(head[:-4]):
        raise corruption(path, 0, "the checksum of its header is wrong")
    if format > FORMAT:
        help = "open it with the dlog that wrote it, or a later one"
        raise StoreError(f"{path} has format {format}, but this dlog reads up to format {FORMAT}", help=help)
    if found != kind:
        raise corruption(path, 0, "this is another kind of file")
    return generation


def frame_of(length: int, checksum: int, synced: int) -> bytes:
    """The frame before a payload, from its length and checksum."""
    unchecked = _UNCHECKED.pack(_MARK, length, synced, checksum)
    return unchecked + _CHECKSUM.pack(crc32(unchecked))


class Framed(NamedTuple):
    """One record of a file."""

    offset: int
    payload: memoryview


@dataclass
class Tail:
    """Where the good records of a file end, and what follows them, except zeros at its end."""

    end: int
    size: int
    reason: str = ""

    @property
    def cut(self) -> int:
        """Bytes that are not a record."""
        return self.size - self.end


def records(data: Buffer, path: Path, at: int = HEADER_BYTES) -> tuple[list[Framed], Tail]:
    """All records from an offset on, up to the tail.  Raises for corruption before the tail.  O(bytes)."""
    view = memoryview(data)
    found: list[Framed] = []
    size = len(view)
    while at < size:
        one = _read(view, at)
        if isinstance(one, str):
            size = at + len(bytes(view[at:]).rstrip(b"\0"))
            if size > at:
                _require_tail(view, path, at, one)
            return found, Tail(at, size, one if size > at else "")
        found.append(Framed(at, one[0]))
        at += FRAME_BYTES + len(one[0])
    return found, Tail(at, size)


def _read(view: memoryview, at: int) -> tuple[memoryview, int] | str:
    """(Payload, synced) of the record at an offset, or what is wrong with it."""
    frame = view[at : at + FRAME_BYTES]
    if len(frame) < FRAME_BYTES:
        return "the record ends too early"
    mark, length, synced, checksum, frame_checksum = _FRAME.unpack(frame)
    if mark != _MARK or frame_checksum != crc32(frame[:-4]):
        return "the frame of the record is damaged"
    payload = view[at + FRAME_BYTES : at + FRAME_BYTES + length]
    if len(payload) < length:
        return "the record ends too early"
    if checksum != crc32(payload):
        return "the checksum of the record is wrong"
    return payload, synced


def _require_tail(view: memoryview, path: Path, at: int, reason: str) -> None:
    """Raises if a later record was written at a time when the one at this offset was on the disk."""
    for synced in _later(view, at + 1):
        if synced > at:
            raise corruption(path, at, f"{reason}, and good records come after it")


def _later(view: memoryview, at: int) -> Iterator[int]:
    """`synced` of every good record that begins at an offset or after it, wherever it begins."""
    data = bytes(view[at:])
    start = data.find(_MARK)
    while start >= 0:
        one = _read(memoryview(data), start)
        if not isinstance(one, str):
            yield one[1]
        start = data.find(_MARK, start + 1)


def corruption(path: Path, offset: int, reason: str) -> StoreError:
    return StoreError(f"{path} is damaged at offset {offset}: {reason}", help="restore it from a copy")
