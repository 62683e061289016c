"""Owns the compilation of a user's function of numbers, for whole arrays.  It is compiled by numba when it is
first called, in the process that calls it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from dlog.jit.cache import DISABLED


@cache
def elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function for each row of its arguments: arrays of one length, of numbers or truth values."""
    if DISABLED:
        import numpy as np

        return np.vectorize(function)
    import numba

    return numba.vectorize(function)
