"""Owns rows in arrays around a join: comparisons that it leaves to be made on its output, and bodies that
read one relation from end to end, which need no join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from dlog.jit import Words
from dlog.lftj.plan import Leap, RankCompare
from dlog.planning.compile import Comparison, CompiledJoin
from dlog.storage.dictionary.dictionary import Dictionary, codes_of
from dlog.storage.index.index import Index

Columns: TypeAlias = Words | Sequence[Words]  # a (columns, rows) array, or arrays

PART = 1 << 14  # rows that are compared at a time: they stay in the second cache

_HOLDS: dict[str, Callable[..., Any]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def is_scan(join: CompiledJoin) -> bool:
    """Whether a plan visits every row of one relation and gives all its columns."""
    leaps, arity = join.plan.steps[:-1], join.plan.arities[0] if join.plan.arities else 0
    return (
        len(join.atoms) == 1
        and len(leaps) == arity == len(set(join.outputs)) > 0
        and all(isinstance(s, Leap) and len(s.participants) == 1 and not s.lower + s.upper for s in leaps)
    )


def is_ranked(join: CompiledJoin) -> bool:
    """Whether a join, or the comparisons that it leaves, need the order of texts."""
    return join.uses_ranks or any(isinstance(step, RankCompare) for step in join.leftover)


def scanned_rows(join: CompiledJoin, index: Index, dictionary: Dictionary) -> Iterator[Words] | None:
    """The output of a join that is a scan, in (columns, rows) parts; None if the index is not contiguous."""
    columns = index.flat_columns()
    if columns is None or len(columns) != join.plan.arities[0]:
        return None
    slots = {leap.slot: place for place, leap in enumerate(join.plan.steps) if isinstance(leap, Leap)}
    names = dict(join.names)
    chosen = [columns[slots[names[output]]] for output in join.outputs]
    compared = [s for step in join.leftover if isinstance(step, RankCompare) for s in (step.a, step.b)]
    dictionary.ranking(codes_of([_operand(join, slot, chosen) for slot in compared]))  # not part by part
    size = PART if join.leftover else max(len(index), 1)
    starts = range(0, len(index), size)
    return (passing_rows(join, [c[start : start + size] for c in chosen], dictionary) for start in starts)


def passing_rows(join: CompiledJoin, rows: Columns, dictionary: Dictionary) -> Words:
    """Those of (columns, rows) for which all comparisons hold that a join has left, as a new array.

    O(rows).  REQUIRES, to be fast: texts that are compared are already in order, see `is_ranked`.
    """
    if not join.leftover:
        return np.array(rows)
    mask = np.logical_and.reduce([_holds(join, step, rows, dictionary) for step in join.leftover])
    numbers = np.flatnonzero(mask)
    out = np.empty((len(rows), len(numbers)), np.int64)
    for c in range(len(rows)):
        np.take(rows[c], numbers, out=out[c])
    return out


def _holds(join: CompiledJoin, step: Comparison, rows: Columns, dictionary: Dictionary) -> Any:
    a, b = (_operand(join, slot, rows) for slot in (step.a, step.b))
    if isinstance(step, RankCompare):
        a, b = dictionary.ranks(a, b)
    return _HOLDS[step.op](a, b)


def _operand(join: CompiledJoin, slot: int, rows: Columns) -> Words:
    """The column of a variable, or a constant as a column of one row."""
    columns = dict(join.names)
    for index, name in enumerate(join.outputs):
        if columns[name] == slot:
            return rows[index]
    return np.array([dict(join.plan.constants)[slot]], np.int64)
