"""Owns machine code stored as a file: finding it, linking it into the process, making it callable from
Python.

An image is the machine code of one kernel: one line of JSON, then an object file.  `elf` links it, or LLVM
where that is not possible; numba is not needed.  Its function has the signature that CPython calls with an
array of arguments (METH_FASTCALL), and the kernel's name; its `self` is numpy's type of arrays.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import os
import platform
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from dlog.jit import cache, elf

FASTCALL = 0x80
PROCESSORS = "/proc/cpuinfo"
DESCRIBING = ("model name", "flags", "CPU part", "Features", "isa")  # lines of it, by architecture
HEADER = object.__basicsize__  # an object's count and type, before its own fields


class NoImage(Exception):
    """Machine code could not be made, or cannot be used in this process.  The text is the reason."""


def function_of(module: str, source: Path, kernel: str) -> Any:
    """A kernel's machine code, as a function.  Compiles it if it has not been.  O(size of the image)."""
    image = find(source, kernel)
    if image is None:
        if failure := cache.find(source, failure_name(kernel)):
            raise NoImage(failure.read_text())
        from dlog.jit.compiling import compile_group

        compile_group(module, kernel)
        image = find(source, kernel)
        if image is None:
            raise NoImage(f"no machine code was made for {module}.{kernel}")
    return _link(*image)


def file_name(kernel: str) -> str:
    return f"{kernel}.image"


def failure_name(kernel: str) -> str:
    """A file in place of an image that could not be made; it contains the reason."""
    return f"{kernel}.failure"


def write(file: Path, name: str, undefined: list[str], code: bytes) -> None:
    """Write under another name first, so that no other process sees half of it."""
    head = {"machine": machine(), "name": name, "undefined": undefined, "size": len(code)}
    handle, temporary = tempfile.mkstemp(dir=file.parent)
    with os.fdopen(handle, "wb") as out:
        out.write(json.dumps(head).encode() + b"\n" + code)
    os.replace(temporary, file)


def find(source: Path, kernel: str) -> tuple[dict[str, Any], bytes] | None:
    """Description and code of a kernel, if there is an image that is complete and for this machine."""
    file = cache.find(source, file_name(kernel))
    if file is None:
        return None
    try:
        line, _, code = file.read_bytes().partition(b"\n")
        head = json.loads(line)
        usable = head["machine"] == machine() and head["size"] == len(code)
    except (OSError, ValueError, KeyError):
        return None  # truncated when the disk was full, or removed meanwhile: make it again
    return (head, code) if usable else None


@functools.cache
def machine() -> str:
    """The processor that machine code is made for: several kinds may share a home directory."""
    return f"{platform.system()} {platform.machine()} {_features()}"


def _features() -> str:
    """What distinguishes this processor from others of its architecture."""
    try:
        with open(PROCESSORS, encoding="utf-8", errors="replace") as file:
            first = file.read(1 << 14).partition("\n\n")[0]
    except OSError:
        return _features_by_llvm()
    lines = (line.partition(":") for line in first.splitlines())
    found = {name.strip(): value.strip() for name, _, value in lines}
    described = " ".join(found[name] for name in DESCRIBING if name in found)
    return hashlib.sha256(described.encode()).hexdigest()[:16] if described else _features_by_llvm()


def _features_by_llvm() -> str:
    import llvmlite.binding as llvm

    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:
        features = ""
    return f"{llvm.get_host_cpu_name()} {features}"


def _link(head: dict[str, Any], code: bytes) -> Any:
    _check_layout()
    name = head["name"]
    return _function(name, elf.link(code, name) or _link_by_llvm(name, head["undefined"], code))


def _link_by_llvm(name: str, undefined: list[str], code: bytes) -> int:
    import llvmlite.binding as llvm

    for symbol in undefined:
        _define(llvm, symbol)
    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return int(engine.get_function_address(name))


@functools.cache
def _engine() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target_machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine)


def _define(llvm: Any, symbol: str) -> None:
    """LLVM would abort the process at a symbol that it does not find."""
    address = elf.address_of(symbol)
    if address is not None:
        llvm.add_symbol(symbol, address)
    elif llvm.address_of_symbol(symbol) is None:
        raise NoImage(f"this process has no function {symbol}")


class _MethodDef(ctypes.Structure):
    """CPython's description of a function written in C."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def _function(name: str, address: int) -> Any:
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.argtypes = [ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.py_object]
    new.restype = ctypes.py_object
    definition = _MethodDef(name.encode(), address, FASTCALL, None)
    # CPython reads it when it frees the function, which may be later than this module when Python exits.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))
    return new(ctypes.byref(definition), np.ndarray, __name__)


# Where wrappers find the parts of a numpy array: the same in numpy 1 and 2.
TYPE = HEADER - 8
DATA = HEADER
DIMENSIONS = HEADER + 8
SHAPE = HEADER + 16
DESCRIPTION = HEADER + 40
FLAGS = HEADER + 48
BYTE_ORDER = HEADER + 10  # of the description
TYPE_NUMBER = HEADER + 12
CONTIGUOUS_ALIGNED = 0x101


@functools.cache
def _check_layout() -> None:
    """Read an array as wrappers do: with another layout, machine code must not touch arrays."""
    sample = np.arange(7, dtype=np.int64)
    at = id(sample)
    description = ctypes.c_size_t.from_address(at + DESCRIPTION).value
    seen = (
        ctypes.c_size_t.from_address(at + TYPE).value,
        ctypes.c_size_t.from_address(at + DATA).value,
        ctypes.c_int.from_address(at + DIMENSIONS).value,
        ctypes.c_int64.from_address(ctypes.c_size_t.from_address(at + SHAPE).value).value,
        description,
        ctypes.c_int.from_address(at + FLAGS).value & CONTIGUOUS_ALIGNED,
    )
    expected = (id(np.ndarray), sample.ctypes.data, 1, 7, id(sample.dtype), CONTIGUOUS_ALIGNED)
    number = ctypes.c_int.from_address(description + TYPE_NUMBER).value if seen == expected else None
    if number != sample.dtype.num or ctypes.c_char.from_address(description + BYTE_ORDER).value != b"=":
        raise NoImage("this version of Python or numpy has a different array layout")
