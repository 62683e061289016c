"""Owns the test of a ring's laws, for rings that users register.  Knows nothing of maps."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from dlog.errors import DlogError
from dlog.jit import Words
from dlog.m3.rings.rings import Ring


def check_axioms(
    ring: Ring, sample: Callable[[random.Random], Any], rounds: int = 200, seed: int = 0
) -> None:
    """Raises `DlogError` with a counterexample if the ring violates a law of commutative rings.

    `sample(random)` gives a value.  Rings of floats are compared up to rounding.

    >>> from dlog.m3.rings.rings import INTEGER_RING
    >>> check_axioms(INTEGER_RING, lambda r: r.randint(-9, 9))
    """
    ring.check()
    source = random.Random(seed)
    triples = [[sample(source) for _ in range(rounds)] for _ in range(3)]
    a, b, c = (ring.column(values) for values in triples)
    zero, one = ring.zeros(rounds), ring.ones(rounds)
    laws = {
        "decode(encode(a)) = a": (ring.column(ring.values(a)), a),
        "a + b = b + a": (ring.add(a, b), ring.add(b, a)),
        "(a + b) + c = a + (b + c)": (ring.add(ring.add(a, b), c), ring.add(a, ring.add(b, c))),
        "a + 0 = a": (ring.add(a, zero), a),
        "a + -a = 0": (ring.add(a, ring.negate(a)), zero),
        "a * b = b * a": (ring.multiply(a, b), ring.multiply(b, a)),
        "(a * b) * c = a * (b * c)": (
            ring.multiply(ring.multiply(a, b), c), ring.multiply(a, ring.multiply(b, c)),
        ),
        "a * 1 = a": (ring.multiply(a, one), a),
        "a * 0 = 0": (ring.multiply(a, zero), zero),
        "a * (b + c) = a * b + a * c": (
            ring.multiply(a, ring.add(b, c)), ring.add(ring.multiply(a, b), ring.multiply(a, c)),
        ),
    }  # fmt: skip
    for law, (left, right) in laws.items():
        row = _difference(ring, left, right)
        if row is not None:
            shown = ", ".join(f"{n} = {v[row]!r}" for n, v in zip("abc", triples, strict=True))
            raise DlogError(f"ring {ring.name} breaks {law}, for {shown}")
    if not ring.is_zero(zero).all() or (ring.is_zero(a) != _equal_rows(ring, a, zero)).any():
        raise DlogError(f"ring {ring.name} has a wrong zero: zero is all words 0, and no other element")


def _difference(ring: Ring, left: Words, right: Words) -> int | None:
    rows = np.flatnonzero(~_equal_rows(ring, left, right))
    return int(rows[0]) if len(rows) else None


def _equal_rows(ring: Ring, left: Words, right: Words) -> np.ndarray:
    """Row by row, by the words; for rings of floats, by the numbers that they stand for, up to rounding."""
    if ring.is_exact:
        return np.asarray((left == right).all(axis=1))
    pairs = zip(ring.values(left), ring.values(right), strict=True)
    return np.array([_close(_numbers(x), _numbers(y)) for x, y in pairs], np.bool_)


def _numbers(value: Any) -> list[float]:
    if isinstance(value, list | tuple):
        return [number for item in value for number in _numbers(item)]
    return [float(value)]


def _close(x: list[float], y: list[float]) -> bool:
    return len(x) == len(y) and bool(np.allclose(x, y, rtol=1e-9, atol=1e-9))
