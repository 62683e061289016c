"""Owns arithmetic on several floats at a time, and moving several words, with vector instructions: the
compiler does not vectorise short loops whose length is known only at run time, nor moves of words to
places that overlap.

Floats are bits in arrays of words.  Uncompiled, and with checks of array bounds, these are loops.

Nothing is fused: so a product that was added to 0 can be subtracted again and leaves 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dlog.jit.cache import BOUNDSCHECK, DISABLED
from dlog.jit.kernels import helper
from dlog.jit.operations import Operation

LANES = 8  # of `add_outer`, whose rows are HEIGHT
HEIGHT = 4


# ---- without vectors


def _add_in_turn(out, at, x, x_at, factor):
    for i in range(4):
        term = factor * np.int64(x[x_at + i]).view(np.float64)
        out[at + i] = np.float64(np.int64(out[at + i]).view(np.float64) + term).view(np.int64)


def _scale_in_turn(out, at, x, x_at, factor):
    for i in range(4):
        out[at + i] = np.float64(factor * np.int64(x[x_at + i]).view(np.float64)).view(np.int64)


def _outer_in_turn(out, at, stride, a, a_at, a_stride, x, x_at, x_stride, n):
    for i in range(n):
        for r in range(HEIGHT):
            weight = np.int64(a[a_at + i * a_stride + r]).view(np.float64)
            for c in range(LANES):
                to = at + r * stride + c
                term = weight * np.int64(x[x_at + i * x_stride + c]).view(np.float64)
                out[to] = np.float64(np.int64(out[to]).view(np.float64) + term).view(np.int64)


def _gather_in_turn(out, at, x, offset, places, p_at, weights, w_at, n):
    for i in range(n):
        weight = np.int64(weights[w_at + i]).view(np.float64)
        for c in range(LANES):
            term = weight * np.int64(x[places[p_at + i] + offset + c]).view(np.float64)
            out[at + c] = np.float64(np.int64(out[at + c]).view(np.float64) + term).view(np.int64)


def _move_in_turn(words, to, at):
    moved = (words[at], words[at + 1], words[at + 2], words[at + 3])
    for i in range(4):
        words[to + i] = moved[i]


# ---- with vectors


def _vector_at(builder: Any, data: Any, at: Any, lanes: int) -> Any:
    from llvmlite import ir

    vector = ir.VectorType(ir.DoubleType(), lanes)
    return builder.bitcast(builder.gep(data, [at]), vector.as_pointer())


def _float_at(builder: Any, data: Any, at: Any) -> Any:
    from llvmlite import ir

    return builder.bitcast(builder.gep(data, [at]), ir.DoubleType().as_pointer())


def _spread(builder: Any, value: Any, lanes: int) -> Any:
    """A vector of the same number."""
    from llvmlite import ir

    lane = ir.IntType(32)
    nothing = ir.Constant(ir.VectorType(ir.DoubleType(), lanes), ir.Undefined)
    first = builder.insert_element(nothing, value, lane(0))
    zeros = ir.Constant(ir.VectorType(lane, lanes), [lane(0)] * lanes)
    return builder.shuffle_vector(first, nothing, zeros)


def _move_four(typing_context: Any, words: Any, to: Any, at: Any) -> Any:
    import numba

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, source = (_vector_at(builder, args[0], place, 4) for place in args[1:])
        builder.store(builder.load(source, align=8), target, align=8)
        return context.get_dummy_value()

    word = numba.types.int64
    return numba.types.void(words, word, word), generate


def _add_four(typing_context: Any, out: Any, at: Any, x: Any, x_at: Any, factor: Any) -> Any:
    import numba

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, source = (_vector_at(builder, args[k], args[k + 1], 4) for k in (0, 2))
        term = builder.fmul(builder.load(source, align=8), _spread(builder, args[4], 4))
        builder.store(builder.fadd(builder.load(target, align=8), term), target, align=8)
        return context.get_dummy_value()

    word, real = numba.types.int64, numba.types.float64
    return numba.types.void(out, word, x, word, real), generate


def _scale_four(typing_context: Any, out: Any, at: Any, x: Any, x_at: Any, factor: Any) -> Any:
    import numba

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, source = (_vector_at(builder, args[k], args[k + 1], 4) for k in (0, 2))
        scaled = builder.fmul(builder.load(source, align=8), _spread(builder, args[4], 4))
        builder.store(scaled, target, align=8)
        return context.get_dummy_value()

    word, real = numba.types.int64, numba.types.float64
    return numba.types.void(out, word, x, word, real), generate


def _add_outer(
    typing_context: Any, out: Any, at: Any, stride: Any, a: Any, a_at: Any, a_stride: Any, x: Any, x_at: Any,
    x_stride: Any, n: Any,
) -> Any:  # fmt: skip
    import numba
    from llvmlite import ir

    cgutils = numba.core.cgutils

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out, at, stride, a, a_at, a_stride, x, x_at, x_stride, n = args
        word = ir.IntType(64)
        targets, sums = [], []
        for r in range(HEIGHT):
            place = builder.add(at, builder.mul(stride, word(r)))
            targets.append(_vector_at(builder, out, place, LANES))
            sums.append(cgutils.alloca_once(builder, targets[r].type.pointee))
            builder.store(builder.load(targets[r], align=8), sums[r])
        with cgutils.for_range(builder, n, intp=word) as loop:
            row = builder.add(x_at, builder.mul(loop.index, x_stride))
            xs = builder.load(_vector_at(builder, x, row, LANES), align=8)
            for r in range(HEIGHT):
                place = builder.add(builder.add(a_at, word(r)), builder.mul(loop.index, a_stride))
                weight = builder.load(_float_at(builder, a, place), align=8)
                term = builder.fmul(xs, _spread(builder, weight, LANES))
                builder.store(builder.fadd(builder.load(sums[r]), term), sums[r])
        for target, total in zip(targets, sums, strict=True):
            builder.store(builder.load(total), target, align=8)
        return context.get_dummy_value()

    word = numba.types.int64
    return numba.types.void(out, word, word, a, word, word, x, word, word, word), generate


def _add_gathered(
    typing_context: Any, out: Any, at: Any, x: Any, offset: Any, places: Any, p_at: Any, weights: Any,
    w_at: Any, n: Any,
) -> Any:  # fmt: skip
    import numba
    from llvmlite import ir

    cgutils = numba.core.cgutils

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out, at, x, offset, places, p_at, weights, w_at, n = args
        target = _vector_at(builder, out, at, LANES)
        total = cgutils.alloca_once(builder, target.type.pointee)
        builder.store(builder.load(target, align=8), total)
        with cgutils.for_range(builder, n, intp=ir.IntType(64)) as loop:
            place = builder.load(builder.gep(places, [builder.add(p_at, loop.index)]))
            xs = builder.load(_vector_at(builder, x, builder.add(place, offset), LANES), align=8)
            weight = builder.load(_float_at(builder, weights, builder.add(w_at, loop.index)), align=8)
            term = builder.fmul(xs, _spread(builder, weight, LANES))
            builder.store(builder.fadd(builder.load(total), term), total)
        builder.store(builder.load(total), target, align=8)
        return context.get_dummy_value()

    word = numba.types.int64
    return numba.types.void(out, word, x, word, places, word, weights, word, word), generate


def _operation(in_turn: Callable[..., Any], define: Callable[..., Any]) -> Any:
    return helper(in_turn) if DISABLED or BOUNDSCHECK else Operation(define)


# move_four(words, to, at): words[to:to + 4] = words[at:at + 4], which may overlap.
move_four: Any = _operation(_move_in_turn, _move_four)
# add_four(out, at, x, x_at, factor): the four floats out[at:at + 4] += factor * those of x[x_at:x_at + 4].
add_four: Any = _operation(_add_in_turn, _add_four)
# scale_four(out, at, x, x_at, factor): out[at:at + 4] = factor * x[x_at:x_at + 4].
scale_four: Any = _operation(_scale_in_turn, _scale_four)
# add_outer(out, at, stride, a, a_at, a_stride, x, x_at, x_stride, n): the sum of n products of a column of
# HEIGHT floats and a row of LANES is added to HEIGHT rows of `out`: a's columns and x's rows are as far apart
# as their strides say.  They stay in registers meanwhile.
add_outer: Any = _operation(_outer_in_turn, _add_outer)
# add_gathered(out, at, x, offset, places, p_at, weights, w_at, n): LANES floats at each of n places in x,
# times the weight of each, are added to those of out: places and weights are listed from p_at and w_at on.
add_gathered: Any = _operation(_gather_in_turn, _add_gathered)
