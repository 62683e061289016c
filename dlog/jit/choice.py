"""Owns the choice between two words without a branch, for conditions that cannot be predicted.

LLVM makes a branch of an `if` between two words where it expects that to be faster, and even of arithmetic
with a condition: in a binary search half of these branches are mispredicted.
"""

from __future__ import annotations

from typing import Any

from dlog.jit.cache import BOUNDSCHECK, DISABLED
from dlog.jit.kernels import helper
from dlog.jit.operations import Operation


def _one_of(condition: bool, one: int, other: int) -> int:
    return one if condition else other


def _select(typing_context: Any, condition: Any, one: Any, other: Any) -> Any:
    import numba

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        chosen = builder.select(*args)
        chosen.set_metadata("unpredictable", builder.module.add_metadata([]))
        return chosen

    word = numba.types.int64
    return word(numba.types.boolean, word, word), generate


# The first word if the condition is true, else the second.
choose: Any = helper(_one_of) if DISABLED or BOUNDSCHECK else Operation(_select, _one_of)
