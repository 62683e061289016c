"""Owns which columns of relations and of changes hold records.  Knows nothing of what records are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dlog.ir.rules import Column, Predicate
from dlog.jit import Words
from dlog.planning.versions import base_name
from dlog.storage.relation.relation import Relation


def record_columns(columns: Sequence[Column]) -> list[int]:
    """
    >>> from dlog.values import INT
    >>> record_columns([Column("x", INT)])
    []
    """
    return [index for index, column in enumerate(columns) if column.type.is_record]


def codes_in_relations(
    relations: Mapping[str, Relation], predicates: Mapping[str, Predicate]
) -> Iterator[Words]:
    """The codes of all columns of records, and of all columns of relations that are the state of strategies:
    what these hold is not known, and a number that happens to be a code does no harm.  Groups of relations
    (arity 0) are traces: a number in them is that of a row, or is never sought again.

    O(rows of these relations)."""
    for name, relation in dict(relations).items():
        predicate = predicates.get(base_name(name))
        if relation.arity == 0 or not len(relation):
            continue
        if predicate is None or predicate.arity != relation.arity:
            yield from np.ascontiguousarray(relation.rows().T)
        else:
            yield from codes_in_rows(predicate.columns, [relation.rows])


def codes_in_rows(columns: Sequence[Column], rows: Iterable[Any]) -> Iterator[Words]:
    """The same of arrays of rows, of lists of columns, or of functions that give rows if they are needed."""
    wanted = record_columns(columns)
    for some in rows if wanted else ():
        found = some() if callable(some) else some
        for index in wanted:
            yield found[index] if isinstance(found, list) else np.asarray(found)[:, index]
