"""Owns finding an input, its bytes and its lines: files, gzip, standard input.  Knows no format.

A plain file is memory-mapped, so its bytes cost nothing until they are parsed; a compressed file, a pipe
and standard input are read into memory whole.
"""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from dlog.errors import DataError
from dlog.io.options import ARROW, InputOptions

# Large enough for pyarrow's threads, small enough that one bad row costs little to find.
BLOCK_BYTES = 32 << 20

NEWLINE = ord("\n")

_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Source:
    """The bytes of an input and its name in errors."""

    name: str
    data: pa.Buffer


def open_source(options: InputOptions, stdin: BinaryIO | None = None, name: str = "<stdin>") -> Source:
    """The bytes that `options` names, decompressed, without a byte order mark; `name` is that of `stdin`."""
    if options.path is None:
        raw = pa.py_buffer((stdin or sys.stdin.buffer).read())
    else:
        path = find_file(options)
        name, raw = str(path), _file_bytes(path, options)
    data = _decompressed(raw, name)
    has_mark = data[:3].to_pybytes() == _BYTE_ORDER_MARK
    return Source(name, data[3:] if has_mark else data)


def find_file(options: InputOptions) -> Path:
    """The file of the options; if it is missing, the same name with `.gz` if that exists."""
    assert options.path is not None
    compressed = options.path.with_name(options.path.name + ".gz")
    for path in (options.path, compressed):
        if path.exists():
            return path
    missing, folder = options.path.name, options.path.parent
    message = f'cannot read the facts of {options.relation}: there is no file "{missing}" in "{folder}"'
    if not folder.is_dir():
        message = f'cannot read the facts of {options.relation}: there is no folder "{folder}"'
    raise DataError(message, help="give the facts folder with -F")


def _file_bytes(path: Path, options: InputOptions) -> pa.Buffer:
    # Tables of an Arrow file point into its bytes: mapped bytes would change with the file.
    try:
        status = path.stat()
        if stat.S_ISREG(status.st_mode) and status.st_size and options.format != ARROW:
            return pa.memory_map(os.fspath(path)).read_buffer()
        return pa.py_buffer(path.read_bytes())
    except OSError as error:
        folder = "folders are read with --spark, see docs/spark.md" if path.is_dir() else None
        raise DataError(f'cannot read "{path}": {error.strerror or error}', help=folder) from None


def _decompressed(raw: pa.Buffer, name: str) -> pa.Buffer:
    """Gzip is recognised by its first bytes, as in Soufflé's reader, whatever `compress` says."""
    if raw[:2].to_pybytes() != _GZIP_MAGIC:
        if name.endswith(".gz") and raw.size:
            raise DataError(f'"{name}" is not a gzip file')
        return raw
    try:
        return pa.CompressedInputStream(pa.BufferReader(raw), "gzip").read_buffer()
    except OSError as error:
        raise DataError(f'cannot decompress "{name}": {error}') from None


def byte_array(data: pa.Buffer) -> np.ndarray:
    return np.frombuffer(data, np.uint8) if data.size else np.empty(0, np.uint8)


def is_utf8(data: pa.Buffer) -> bool:
    """One pass at memory speed."""
    offsets = pa.py_buffer(np.array([0, data.size], np.int64))
    text = pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, data])
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def count_newlines(data: pa.Buffer) -> int:
    return int(np.count_nonzero(byte_array(data) == NEWLINE))


def find_byte(data: pa.Buffer, byte: int) -> int:
    """The position of the first such byte, or -1.  O(position)."""
    for start in range(0, data.size, 1 << 16):
        places = np.flatnonzero(byte_array(data[start : start + (1 << 16)]) == byte)
        if len(places):
            return start + int(places[0])
    return -1


def line_end(data: pa.Buffer, start: int, length: int) -> int:
    """Where the last line that ends within `length` bytes of `start` ends, or else the first one.

    >>> line_end(pa.py_buffer(b"ab\\ncd\\nef\\n"), 0, 8), line_end(pa.py_buffer(b"abcd\\ne"), 0, 2)
    (6, 5)
    """
    stop = start + length
    if stop >= data.size:
        return data.size
    for tail in (min(1 << 16, length), length):
        newlines = np.flatnonzero(byte_array(data[stop - tail : stop]) == NEWLINE)
        if len(newlines):
            return stop - tail + int(newlines[-1]) + 1
    following = find_byte(data[stop:], NEWLINE)
    return data.size if following < 0 else stop + following + 1
