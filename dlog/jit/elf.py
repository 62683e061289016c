"""Owns linking an object file into the process without LLVM, whose library takes 40 MB and 70 ms to load.

It knows what machine code of kernels on Linux and x86-64 consists of: code, constants, and words that are
addresses of either or of functions of CPython and libc.  `link` returns None for everything else, and for
other systems; LLVM links these.  See the ELF-64 format and its supplement for x86-64.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import struct
import sys
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION: Final = struct.Struct("<IIQQQQIIQQ")
SYMBOL: Final = struct.Struct("<IBBHQQ")
RELOCATION: Final = struct.Struct("<QQq")

IDENTITY: Final = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian
RELOCATABLE: Final = 1
X86_64: Final = 62
PROGBITS, SYMTAB, RELA, NOBITS, UNWIND = 1, 2, 4, 8, 0x70000001  # types of sections
WRITE, ALLOC = 1, 2  # their flags
RESERVED: Final = 0xFF00  # from here on, the number of a symbol's section is not one
ABSOLUTE_64, RELATIVE_64 = 1, 24  # types of relocations
PAGE: Final = mmap.PAGESIZE

_linked: list[mmap.mmap] = []  # machine code stays as long as the process


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class _Unknown(Exception):
    """The object file has something that is not known here."""


def link(code: bytes, function: str) -> int | None:
    """The address of a function of an object file, which is copied into executable memory; None if this is
    not possible here.  O(size of the file)."""
    if sys.platform != "linux":
        return None
    try:
        return _link(code, function)
    except (_Unknown, struct.error, ValueError, IndexError):  # the last three: a file that is cut off
        return None


def _link(code: bytes, function: str) -> int:
    sections = _sections(code)
    offsets, size = _places(sections)
    tables = [section for section in sections if section.type == SYMTAB]
    if len(tables) != 1:
        raise _Unknown
    symbols = _symbols(code, sections, tables[0])
    memory = mmap.mmap(-1, -(-size // PAGE) * PAGE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))

    def address(symbol: tuple[str, int, int]) -> int:
        name, section, value = symbol
        if section == 0:
            found = address_of(name)
            if found is None:
                raise _Unknown
            return found
        if section not in offsets:
            raise _Unknown
        return base + offsets[section] + value

    for number, offset in offsets.items():
        section = sections[number]
        if section.type == PROGBITS:
            memory[offset : offset + section.size] = code[section.offset : section.offset + section.size]
    for section in sections:
        if section.type == RELA and section.info in offsets:
            offset = offsets[section.info]
            for at, info, addend in _entries(code, section, RELOCATION):
                place, type = offset + at, info & 0xFFFFFFFF
                if type not in (ABSOLUTE_64, RELATIVE_64):
                    raise _Unknown
                word = address(symbols[info >> 32]) + addend - (base + place if type == RELATIVE_64 else 0)
                struct.pack_into("<Q", memory, place, word % (1 << 64))
    start = next((address(symbol) for symbol in symbols if symbol[0] == function), None)
    if start is None or _protect()(base, len(memory), mmap.PROT_READ | mmap.PROT_EXEC) != 0:
        raise _Unknown
    _linked.append(memory)
    return start


def _sections(code: bytes) -> list[_Section]:
    identity, type, machine, _, _, _, at, _, _, _, _, size, count, _ = HEADER.unpack_from(code)
    if (identity[:7], type, machine, size) != (IDENTITY, RELOCATABLE, X86_64, SECTION.size):
        raise _Unknown
    return [_Section(*SECTION.unpack_from(code, at + i * size)) for i in range(count)]


def _places(sections: list[_Section]) -> tuple[dict[int, int], int]:
    """Where each section is in memory, and the size of all of them.  Tables for unwinding are left out:
    kernels raise nothing."""
    offsets, size = {}, 0
    for number, section in enumerate(sections):
        if not section.flags & ALLOC or section.type == UNWIND:
            continue
        if section.type not in (PROGBITS, NOBITS) or section.flags & WRITE:
            raise _Unknown
        size = -(-size // max(1, section.alignment)) * max(1, section.alignment)
        offsets[number] = size
        size += section.size
    return offsets, size


def _symbols(code: bytes, sections: list[_Section], table: _Section) -> list[tuple[str, int, int]]:
    """Name, section and value of each.  Those in no section have a number that no section has."""
    names, found = sections[table.link].offset, []
    for name, _, _, section, value, _ in _entries(code, table, SYMBOL):
        start = names + name
        text = code[start : code.index(b"\0", start)].decode()
        found.append((text, section if section < RESERVED else -1, value))
    return found


def _entries(code: bytes, section: _Section, form: struct.Struct) -> Iterator[tuple[Any, ...]]:
    return form.iter_unpack(code[section.offset : section.offset + section.size])


def address_of(symbol: str) -> int | None:
    """Of a function or variable of CPython, or of a library that it is linked with."""
    try:
        return ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, symbol))
    except ValueError:
        return None


@functools.cache
def _protect() -> Any:
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return protect
