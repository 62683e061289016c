"""Owns calls of external functions from the machine: columns out, a column back.  Knows no expressions."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from dlog.errors import DataError, DlogError, UnsupportedError
from dlog.jit import Words
from dlog.m3.rings.rings import Ring
from dlog.m3.runtime.compile.code import Frame
from dlog.m3.runtime.compile.cofactors import new_block
from dlog.m3.runtime.compile.values import (
    DATE_KIND,
    FLOAT_KIND,
    INT_KIND,
    RING_KIND,
    STRING_KIND,
    Arithmetic,
    Value,
    kind_of,
)
from dlog.m3.runtime.machine.cofactor_plan import BLOCK
from dlog.m3.syntax import ast
from dlog.m3.types.functions import Function
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.values import encode
from dlog.values import STRING


def call_function(
    arithmetic: Arithmetic,
    frame: Frame,
    node: ast.Call,
    function: Function | None,
    arguments: list[Value],
    ring: Ring | None,
    dictionary: Dictionary,
) -> Value:
    """The instruction that asks Python for the function's values, and where they will be."""
    kind = kind_of(node.type)
    if kind == RING_KIND:
        assert ring is not None
        return _lifted(arithmetic, frame, node, arguments, ring)
    if function is None or function.compute is None:
        raise UnsupportedError(f"function {node.function} cannot be computed", span=node.span)
    out, compute = arithmetic.code.column(), function.compute

    def run(arrays: Callable[..., Words]) -> None:
        columns = [_decoded(a, arrays, dictionary) for a in arguments]
        with np.errstate(all="ignore"):
            result = np.asarray(_called(compute, node, *columns))
        target = arrays(out)
        if result.ndim and len(result) != len(target):
            fault = f"{node.function} returned a column of length {len(result):,} for {len(target):,} rows"
            raise DataError(fault, span=node.span)
        target[:] = _encoded(result, kind, node, dictionary)

    arithmetic.call(frame, run)
    return Value(kind, (out,))


def date_number(arithmetic: Arithmetic, frame: Frame, date: Value) -> Value:
    """A date as the number 19950315."""
    out = arithmetic.code.column()

    def run(arrays: Callable[..., Words]) -> None:
        days = arrays(date.column).astype("datetime64[D]")
        months = days.astype("datetime64[M]")
        years = days.astype("datetime64[Y]").astype(np.int64) + 1970
        month, day = months.astype(np.int64) % 12 + 1, (days - months).astype(np.int64) + 1
        arrays(out)[:] = years * 10000 + month * 100 + day

    arithmetic.call(frame, run)
    return Value(INT_KIND, (out,))


def _lifted(
    arithmetic: Arithmetic, frame: Frame, node: ast.Call, arguments: list[Value], ring: Ring
) -> Value:
    """`[lift<k>: T](..)`: an element of a ring for each row."""
    lift = ring.lifting(node.function)
    if lift is None:
        help = f"give it one by ring.with_lift({node.function!r}, ..)"
        raise UnsupportedError(f"ring {ring.name} has no function {node.function}", span=node.span, help=help)
    values = [a if a.kind == FLOAT_KIND else arithmetic.to_float(frame, a) for a in arguments]
    if ring.lifts_natively(node.function):
        first = node.parameters[0] if node.parameters else 0
        return arithmetic.lifted(ring, first, tuple(value.column for value in values), node.span)
    if ring.variables is not None:
        return _lifted_to_block(arithmetic, frame, node, values, ring)
    out = tuple(arithmetic.code.column() for _ in range(ring.words))

    def run(arrays: Callable[..., Words]) -> None:
        columns = [np.ascontiguousarray(arrays(a.column)).view(np.float64) for a in values]
        targets = [arrays(column) for column in out]
        result = _elements(lift, node, columns, (len(targets[0]), ring.words))
        for w, target in enumerate(targets):
            target[:] = result[:, w]

    arithmetic.call(frame, run)
    return Value(RING_KIND, out, ring)


def _lifted_to_block(
    arithmetic: Arithmetic, frame: Frame, node: ast.Call, values: list[Value], ring: Ring
) -> Value:
    """Cofactors that a function of a user makes."""
    lift = ring.lifting(node.function)
    assert lift is not None and ring.variables is not None
    block = new_block(arithmetic.code, frame, ring.variables)

    def run(arrays: Any) -> None:
        columns = [np.ascontiguousarray(arrays(a.column)).view(np.float64) for a in values]
        target = arrays.block(BLOCK - block, ring.words)
        target[:] = _elements(lift, node, columns, target.shape)

    arithmetic.call(frame, run)
    return arithmetic.element(ring, block, arithmetic.own_rows(frame))


def _elements(lift: Any, node: ast.Call, columns: list[Any], shape: tuple[int, ...]) -> Any:
    """What a lifting function returns: a row of words for each element."""
    result = _called(lift, node, node.parameters, columns)
    if np.shape(result) != shape:
        fault = f"{node.function} returned an array of shape {np.shape(result)}, not {shape}"
        raise DataError(fault, span=node.span, help="ring.elements(..) makes elements from columns")
    return result


def _called(function: Callable[..., Any], node: ast.Call, *arguments: Any) -> Any:
    """What a function of a user returns.  Raises DataError with the line where it failed."""
    try:
        return function(*arguments)
    except DlogError:
        raise
    except Exception as error:
        fault = f"{node.function} failed with {type(error).__name__}: {error}"
        last = traceback.extract_tb(error.__traceback__)[-1]
        help = f"it was raised in line {last.lineno} of {last.filename}"
        raise DataError(fault, span=node.span, help=help) from error


def _decoded(value: Value, arrays: Callable[..., Words], dictionary: Dictionary) -> Any:
    words = arrays(value.column)
    if value.kind == FLOAT_KIND:
        return np.ascontiguousarray(words).view(np.float64)
    if value.kind == STRING_KIND:
        return dictionary.decode(words).to_numpy(zero_copy_only=False)
    return words.astype("datetime64[D]") if value.kind == DATE_KIND else words


def _encoded(result: Any, kind: str, node: ast.Call, dictionary: Dictionary) -> Words:
    if kind == STRING_KIND:
        return encode(list(result), STRING, dictionary)
    if kind == DATE_KIND:
        return result.astype("datetime64[D]").astype(np.int64)
    if kind == FLOAT_KIND:
        return np.ascontiguousarray(result, np.float64).view(np.int64)
    assert kind == INT_KIND
    if result.dtype.kind == "f" and not np.all(np.isfinite(result)):
        raise DlogError(f"function {node.function} returned a non-integer", span=node.span)
    return result.astype(np.int64)
