"""Owns the test of a ring's laws, for rings that users register.  Knows nothing of maps."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from dlog.errors import DataError, DlogError
from dlog.jit import Words
from dlog.m3.rings.rings import Ring

ROUNDS = 200
COMMUTES = "a * b = b * a"
ARGUMENTS = 4  # lifting functions are tried with up to this many


def check_axioms(
    ring: Ring, sample: Callable[[random.Random], Any] | None = None, rounds: int = ROUNDS, seed: int = 0
) -> None:
    """Raises `DlogError` with a counterexample if the ring violates a law: one of 2.1.1 in the paper, that of
    commutative rings unless the ring says that it does not commute, or that of products with floats.

    `sample(random)` gives a value; `ring.sample` does without it, and without both elements are sums and
    products of what the ring's lifting functions make.  Rings of floats are compared up to rounding.

    >>> from dlog.m3.rings.rings import INTEGER_RING
    >>> check_axioms(INTEGER_RING, lambda r: r.randint(-9, 9))
    """
    ring.check()
    source = random.Random(seed)
    sample = sample or ring.sample
    if sample is not None:
        a, b, c = (ring.column([sample(source) for _ in range(rounds)]) for _ in range(3))
    else:
        a, b, c = _made(ring, source, rounds)
    numbers = np.array([source.uniform(-9, 9) for _ in range(rounds)])
    for law, sides in _laws(ring).items():
        try:
            rows, left, right = _both(ring, sides, (a, b, c, numbers))
            wrong = rows[~_equal_rows(ring, left, right)]
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            message = f"ring {ring.name} cannot be tested for {law}: {type(error).__name__}: {error}"
            help = "functions of a ring take and return one column for each word of an element"
            raise DlogError(message, help=help) from error
        if len(wrong):
            raise _broken(ring, law, wrong, (a, b, c), numbers)
    zero = ring.zeros(rounds)
    if not ring.is_zero(zero).all() or (ring.is_zero(a) != _equal_rows(ring, a, zero)).any():
        raise DlogError(f"ring {ring.name} has a wrong zero: zero is all words 0, and no other element")


Sides = Callable[[Words, Words, Words, np.ndarray], tuple[Words, Words]]


def _laws(ring: Ring) -> dict[str, Sides]:
    """The two sides of each, of columns a, b, c of elements and s of floats."""
    plus, times, scaled = ring.add, ring.multiply, ring.multiply_by_floats

    def zero(a: Words) -> Words:
        return ring.zeros(len(a))

    def one(a: Words) -> Words:
        return ring.ones(len(a))

    commuting: dict[str, Sides] = {COMMUTES: lambda a, b, c, s: (times(a, b), times(b, a))}
    floats: dict[str, Sides] = {
        "s * (a + b) = s * a + s * b": lambda a, b, c, s: (
            scaled(plus(a, b), s), plus(scaled(a, s), scaled(b, s)),
        ),
        "(s * a) * b = s * (a * b)": lambda a, b, c, s: (times(scaled(a, s), b), scaled(times(a, b), s)),
        "a * (s * b) = s * (a * b)": lambda a, b, c, s: (times(a, scaled(b, s)), scaled(times(a, b), s)),
        "2.0 * a = a + a": lambda a, b, c, s: (scaled(a, np.full(len(a), 2.0)), plus(a, a)),
    }  # fmt: skip
    return {
        "decode(encode(a)) = a": lambda a, b, c, s: (ring.column(ring.values(a)), a),
        "a + b = b + a": lambda a, b, c, s: (plus(a, b), plus(b, a)),
        "(a + b) + c = a + (b + c)": lambda a, b, c, s: (plus(plus(a, b), c), plus(a, plus(b, c))),
        "a + 0 = a": lambda a, b, c, s: (plus(a, zero(a)), a),
        "a + -a = 0": lambda a, b, c, s: (plus(a, ring.negate(a)), zero(a)),
        **(commuting if ring.commutes else {}),
        "(a * b) * c = a * (b * c)": lambda a, b, c, s: (times(times(a, b), c), times(a, times(b, c))),
        "a * 1 = a": lambda a, b, c, s: (times(a, one(a)), a),
        "1 * a = a": lambda a, b, c, s: (times(one(a), a), a),
        "a * 0 = 0": lambda a, b, c, s: (times(a, zero(a)), zero(a)),
        "0 * a = 0": lambda a, b, c, s: (times(zero(a), a), zero(a)),
        "a * (b + c) = a * b + a * c": lambda a, b, c, s: (
            times(a, plus(b, c)), plus(times(a, b), times(a, c)),
        ),
        "(b + c) * a = b * a + c * a": lambda a, b, c, s: (
            times(plus(b, c), a), plus(times(b, a), times(c, a)),
        ),
        **(floats if ring.takes_floats else {}),
    }  # fmt: skip


def _both(
    ring: Ring, sides: Sides, columns: tuple[Words, Words, Words, np.ndarray]
) -> tuple[np.ndarray, Words, Words]:
    """The two sides of a law, and of which rows: those where neither is out of the ring's range."""
    n = len(columns[0])
    try:
        return np.arange(n), *sides(*columns)
    except DataError:
        pass
    rows: list[int] = []
    found: list[tuple[Words, Words]] = []
    for row in range(n):
        try:
            found.append(sides(*(column[row : row + 1] for column in columns)))
            rows.append(row)
        except DataError:
            continue
    nothing = ring.zeros(0)
    left, right = (np.concatenate([nothing, *(pair[side] for pair in found)]) for side in (0, 1))
    return np.array(rows, np.int64), left, right


def _broken(ring: Ring, law: str, wrong: np.ndarray, elements: tuple[Words, ...], s: np.ndarray) -> DlogError:
    """With the shortest counterexample."""
    names = re.findall(r"\b[abc]\b", law)
    values = {name: ring.values(elements["abc".index(name)][wrong]) for name in names}
    if "s *" in law:
        values["s"] = s[wrong].tolist()
    shown = [
        ", ".join(f"{n} = {v!r}" for n, v in zip(values, row, strict=True))
        for row in zip(*values.values(), strict=True)
    ]
    help = None
    if law == COMMUTES:
        help = "if the ring does not commute, say so: Ring(.., commutes=False)"
    return DlogError(f"ring {ring.name} breaks {law}, for {min(shown, key=len)}", help=help)


def _made(ring: Ring, source: random.Random, rounds: int) -> tuple[Words, Words, Words]:
    """Elements made with what the ring has: 0, 1, and those that its lifting functions give for random
    integers; then sums, products and negatives of them.
    """
    known = [ring.zeros(1), ring.ones(1), *_lifted(ring, source)]
    pool = np.concatenate(known)

    def some() -> Words:
        return pool[[source.randrange(len(pool)) for _ in range(rounds)]]

    def mixed() -> Words:
        x = some()
        try:
            return ring.add(x, ring.multiply(some(), ring.negate(some())))
        except DataError:
            return x

    return mixed(), mixed(), mixed()


def _lifted(ring: Ring, source: random.Random) -> list[Words]:
    """A lifting function says neither how many values it takes nor which parameters: what fails is left
    out.
    """
    found = []
    for lifting in (*ring.lifts.values(), *((ring.lift,) if ring.lift is not None else ())):
        for number in range(1, ARGUMENTS + 1):
            columns = [np.array([float(source.randint(-9, 9)) for _ in range(8)]) for _ in range(number)]
            for parameters in ((), (0,)):
                try:
                    words = np.asarray(lifting(parameters, columns))
                except (DlogError, ArithmeticError, LookupError, TypeError, ValueError):
                    continue
                if words.shape == (8, ring.words) and words.dtype == np.int64:
                    found.append(words)
    return found


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
