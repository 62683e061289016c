"""Owns prefetching: the processor continues while the cache line is loaded.

Uncompiled, and with checks of array bounds, nothing happens.
"""

from __future__ import annotations

import functools
from typing import Any

from dlog.jit.cache import BOUNDSCHECK, DISABLED
from dlog.jit.kernels import helper


class _Prefetch:
    """Compiles to the instruction.  numba is imported when it asks for its type."""

    @property
    def _numba_type_(self) -> Any:
        return _intrinsic_type()

    def __call__(self, *args: Any) -> Any:
        raise TypeError("only kernels can call prefetch")


def _nothing(data: Any, at: int) -> None:
    pass


@functools.cache
def _intrinsic_type() -> Any:
    import numba

    make: Any = numba.extending.intrinsic
    intrinsic = make(_prefetch)
    _made.append(intrinsic)
    context = numba.core.registry.cpu_target.typing_context
    context.refresh()
    return context.resolve_value_type(intrinsic)


def _prefetch(typing_context: Any, data: Any, at: Any) -> Any:
    import numba
    from llvmlite import ir

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = numba.core.cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        place = builder.bitcast(builder.gep(args[0], [args[1]]), byte)
        # To be read, kept in all levels of the cache, data.
        builder.call(function, [place, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return numba.types.void(data, numba.types.int64), generate


_made: list[Any] = []  # numba holds them weakly

# The word at an offset of a pointer will be read soon.
prefetch: Any = helper(_nothing) if DISABLED or BOUNDSCHECK else _Prefetch()
