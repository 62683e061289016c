"""Owns the one thing numba lacks for fast calls between kernels: an array as a bare pointer.

A kernel that passes an array to another pays for seven words and for reference counts, two atomic operations
a call (measured: 40 ns for a helper with four arrays, against 1 ns), and every index is checked for being
negative.  So a kernel called from Python takes arrays, makes pointers of them at its start, and hands these
on; a pointer is indexed like its array.  It lives as long as the array, which its maker holds.

Uncompiled, and when compiled with checks of array bounds, a pointer is the array itself.
"""

from __future__ import annotations

from typing import Any

from dlog import jit

__all__ = ["pointer", "pointer_at"]

if jit.DISABLED or jit.BOUNDSCHECK:

    @jit.kernel
    def pointer(array: Any) -> Any:
        return array

    @jit.kernel
    def pointer_at(array: Any, offset: int) -> Any:
        return array[offset:]

else:

    @jit.numba.extending.intrinsic
    def pointer(typing_context: Any, array: Any) -> Any:
        """The address of an array's first element, typed."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return context.make_array(signature.args[0])(context, builder, args[0]).data

        return jit.numba.types.CPointer(array.dtype)(array), generate

    @jit.numba.extending.intrinsic
    def pointer_at(typing_context: Any, array: Any, offset: Any) -> Any:
        """The address of an element: for arrays that lie one after the other in a larger one."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            return builder.gep(data, [args[1]])

        return jit.numba.types.CPointer(array.dtype)(array, jit.numba.types.int64), generate
