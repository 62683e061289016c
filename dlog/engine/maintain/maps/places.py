"""Owns where the columns of a head are in a row of changes that is drained from maps.  Knows no strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dlog.engine.head.heads import stored_as
from dlog.engine.state.store import Store
from dlog.heads.group_kernels import GROUP, LITERAL, RESULT_OF
from dlog.ir.rules import Atom, Const, Rule
from dlog.values import INT
from dlog.views.run.groups import Results

Place = tuple[int, int]  # kind and place: see `dlog.heads.map_kernels`


@dataclass(frozen=True)
class HeadPlaces:
    """For each column of a head its place; each row of the head is a group."""

    columns: Sequence[Place]
    results: Results


def places_of(
    store: Store, rule: Rule, head: Atom, results: Results, named: Mapping[str, str] | None = None
) -> HeadPlaces | None:
    """None: a column is not a literal, a key or an int as it is stored.  `named`: what the maps call the
    variables of the rule, if not the same.
    """
    columns: list[Place] = []
    for operand, type in zip(head.args, store.column_types(head.predicate), strict=True):
        if isinstance(operand, Const):
            code = store.encode(operand, type)
            if code is None:
                return None
            columns.append((LITERAL, code))
            continue
        name = operand.name if named is None else named.get(operand.name, "")
        if name in results.keys and stored_as(rule, operand, type):
            columns.append((GROUP, results.keys.index(name)))
        elif name in results.values and type == rule.types[operand.name] == INT:
            columns.append((RESULT_OF, results.values[name]))
        else:
            return None
    return HeadPlaces(columns, results)
