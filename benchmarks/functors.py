"""Functions in Python over columns: by numpy, by Arrow, by numba and row by row, beside the plain call.

What a call costs in addition: codes of floats become floats and back, results are checked, and rows are
divided into parts.  The plain call is the same function on arrays that exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.harness import Row, at_least, compare, within
from dlog.column_functions import Column, compute
from dlog.implementations import ARROW, NUMBA, NUMPY, ROWS, Function, Implementations
from dlog.ir.functors import Functor
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.values import FLOAT, INT
from dlog.values.float import float_codes, float_values

FLOATS = Functor("f", (FLOAT, FLOAT), FLOAT)
INTS = Functor("f", (INT, INT), INT)


def benchmark(scale: float) -> Iterator[Row]:
    n = at_least(10, 20_000_000 * scale)
    rng = np.random.default_rng(5)
    x, y = rng.integers(0, 1000, n), rng.integers(0, 1000, n)
    fx, fy = rng.random(n), rng.random(n)
    ints, floats = [Column(x, INT), Column(y, INT)], [Column(float_codes(c), FLOAT) for c in (fx, fy)]
    for way, code in ((NUMPY, by_operators), (NUMBA, by_operators), (ARROW, by_arrow)):
        for functor, columns, plain in ((INTS, ints, (x, y)), (FLOATS, floats, (fx, fy))):
            given = [pa.array(column) for column in plain] if way == ARROW else list(plain)
            name = "floats" if functor is FLOATS else "ints"
            yield from compare(
                f"a function of two {name}, {way}",
                f"{n:,} rows",
                partial(called, functor, way, code, columns),
                {"the plain call": partial(summed, by_arrow if way == ARROW else by_operators, given)},
                {"the plain call": within(6)},
            )
    few = at_least(10, n // 20)
    yield from compare(
        "a function of two ints, row by row",
        f"{few:,} rows",
        partial(called, INTS, ROWS, by_operators, [Column(c[:few], INT) for c in (x, y)]),
        {"the plain call": partial(in_a_loop, x[:few], y[:few])},
        {"the plain call": within(20)},
    )


def by_operators(x: Any, y: Any) -> Any:
    return x * y + x


def by_arrow(x: pa.Array, y: pa.Array) -> pa.Array:
    return pc.add(pc.multiply(x, y), x)


def called(functor: Functor, way: str, code: Callable[..., Any], columns: list[Column]) -> int:
    dictionary = Dictionary()
    dictionary.functions = Implementations({"f": Function("f", code, way)}, {"f": functor})
    column, _ = compute("@f", columns, functor.result, dictionary)
    values = float_values(column.codes[:5]) if functor is FLOATS else column.codes[:5]
    return round(float(values.sum()) * 1000)


def summed(code: Callable[..., Any], arrays: list[Any]) -> int:
    found = code(*arrays)
    return round(float(np.asarray(found[:5]).sum()) * 1000)


def in_a_loop(x: Any, y: Any) -> int:
    found = [by_operators(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    return round(float(sum(found[:5])) * 1000)
