"""Owns the one thing numba lacks for fast calls between kernels: an array as a bare pointer.

A kernel that passes an array to another pays for seven words and for reference counts, two atomic operations
a call (measured: 40 ns for a helper with four arrays, against 1 ns), and every index is checked for being
negative.  So a kernel called from Python takes arrays, makes pointers of them at its start, and passes these
on; a pointer is indexed like its array.  It lives as long as the array, which its maker holds.

Uncompiled, and when compiled with checks of array bounds, a pointer is the array itself.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from dlog.jit.cache import BOUNDSCHECK, DISABLED
from dlog.jit.kernels import helper
from dlog.jit.operations import Operation


class _Intrinsic:
    """A function that compiles to instructions.  numba is imported when it asks for them."""

    def __init__(self, name: str):
        self.name = name

    @property
    def _numba_type_(self) -> Any:
        """How numba types the name in a kernel's source."""
        from dlog.jit.dispatch import intrinsic_type

        return intrinsic_type(self.name)

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"only kernels can call {self.name}")


def _pointer(array: Any) -> Any:
    return array


def _pointer_at(array: Any, offset: int) -> Any:
    return array[offset:]


def _shifted(typing_context: Any, pointer: Any, offset: Any) -> Any:
    import numba

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.gep(args[0], [args[1]])

    return pointer(pointer, numba.types.int64), generate


def _at_address(address: int) -> Any:
    """Any word behind the address may be asked for; the array itself takes no memory."""
    return np.ctypeslib.as_array((ctypes.c_int64 * (1 << 40)).from_address(int(address)))


def _pointer_to(typing_context: Any, address: Any) -> Any:
    import numba

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return numba.types.CPointer(numba.types.int64)(numba.types.int64), generate


def _load_word(data: Any, at: int) -> int:
    word = 0
    for i in range(7):
        word |= int(data[at + i]) << (8 * i)
    top = int(data[at + 7])
    return word | ((top - ((top & 128) << 1)) << 56)  # the highest bit is the sign


def _store_word(data: Any, at: int, word: int) -> None:
    for i in range(8):
        data[at + i] = (word >> (8 * i)) & 255


_ARE_ARRAYS = DISABLED or BOUNDSCHECK

# The address of an array's first element, typed.
pointer: Any = helper(_pointer) if _ARE_ARRAYS else _Intrinsic("pointer")

# The address of the element at an offset: for arrays stored one after the other in a larger one.
pointer_at: Any = helper(_pointer_at) if _ARE_ARRAYS else _Intrinsic("pointer_at")

# The same for a pointer.
shifted: Any = helper(_pointer_at) if _ARE_ARRAYS else Operation(_shifted)

# The words at an address, which an array has stored that its maker holds.
pointer_to: Any = Operation(_pointer_to, _at_address)

# Eight bytes from any offset as one word, the first of them the lowest.
load_word: Any = helper(_load_word) if _ARE_ARRAYS else _Intrinsic("load_word")

# The same, written to an offset.
store_word: Any = helper(_store_word) if _ARE_ARRAYS else _Intrinsic("store_word")
