"""Owns arithmetic on four floats at a time, as one vector of the processor: the compiler makes no vectors of
short loops whose length is known only when they run.

Floats are bits in arrays of words.  Uncompiled, and with checks of array bounds, it is a loop.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from dlog.jit.cache import BOUNDSCHECK, DISABLED
from dlog.jit.kernels import helper


class _AddFour:
    """Stands for the instructions.  numba is imported when it asks for their type."""

    @property
    def _numba_type_(self) -> Any:
        return _intrinsic_type()

    def __call__(self, *args: Any) -> Any:
        raise TypeError("only kernels call add_four")


def _add_in_turn(out, at, x, x_at, factor):
    for i in range(4):
        term = factor * np.int64(x[x_at + i]).view(np.float64)
        out[at + i] = np.float64(np.int64(out[at + i]).view(np.float64) + term).view(np.int64)


@functools.cache
def _intrinsic_type() -> Any:
    import numba

    make: Any = numba.extending.intrinsic
    intrinsic = make(_add_four)
    _made.append(intrinsic)
    context = numba.core.registry.cpu_target.typing_context
    context.refresh()
    return context.resolve_value_type(intrinsic)


def _add_four(typing_context: Any, out: Any, at: Any, x: Any, x_at: Any, factor: Any) -> Any:
    import numba
    from llvmlite import ir

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector, lane = ir.VectorType(ir.DoubleType(), 4), ir.IntType(32)
        target, source = (
            builder.bitcast(builder.gep(args[k], [args[k + 1]]), vector.as_pointer()) for k in (0, 2)
        )
        factors = ir.Constant(vector, ir.Undefined)
        for i in range(4):
            factors = builder.insert_element(factors, args[4], lane(i))
        # Not fused: then the product that was added to 0 can be taken away again and leaves 0.
        term = builder.fmul(builder.load(source, align=8), factors)
        total = builder.fadd(builder.load(target, align=8), term)
        builder.store(total, target, align=8)
        return context.get_dummy_value()

    word, real = numba.types.int64, numba.types.float64
    return numba.types.void(out, word, x, word, real), generate


_made: list[Any] = []  # numba holds them weakly

# add_four(out, at, x, x_at, factor): the four floats out[at:at + 4] += factor * those of x[x_at:x_at + 4].
add_four: Any = helper(_add_in_turn) if DISABLED or BOUNDSCHECK else _AddFour()
