"""Owns where rows are: in every shard, or in the shard of one column's value; and how a rule reads them.

`dlog.spark.plan.shards` explains the terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dlog.ir.rules import Const, Program, Rule
from dlog.values import Type

WHOLE = -1  # a place: all rows in every shard; other places are columns, or columns with a split
Place = int
_SPLIT, _MOST = 1 << 20, 1 << 10
UNKNOWN_ROWS = 1_000_000  # of a predicate that does not exist yet


@dataclass(frozen=True)
class RulePlan:
    """How one rule runs: `variable` owns the shard; without one, all is read whole.

    `owner` is the constant that a head has at its place: only its shard runs the rule.  `once`: only the
    first shard does, as what the rule derives is scattered.  `merged`: aggregates are partial.
    """

    rule: Rule
    variable: str | None
    places: Mapping[int, Place]  # by the number of the atom in the order of `Conj.atoms`
    owner: tuple[Const, Type] | None = None
    once: bool = False
    merged: bool = False
    second: str | None = None  # the variable by which heavy values of the first are split

    def reads(self) -> Iterator[tuple[str, Place]]:
        for number, (atom, _) in enumerate(self.rule.body.atoms()):
            yield atom.predicate, self.places[number]


@dataclass(frozen=True)
class Shape:
    """The planner's input besides the rules."""

    program: Program
    shards: int
    based: frozenset[str]  # derived predicates that have base facts as well
    sizes: Mapping[str, int]
    limited: frozenset[str] = frozenset()  # `.limitsize`
    heavy: frozenset[tuple[str, int]] = frozenset()  # columns that have heavy values

    def rows(self, name: str) -> int:
        predicate = self.program.predicates[name]
        guess = UNKNOWN_ROWS if predicate.n_keys else 1  # a function without keys has one value
        return self.sizes.get(name, guess)


def split(column: int, second: int | None) -> Place:
    """The place of rows on a column, heavy values by a second column, or in every shard."""
    assert column < _MOST and (second is None or second < _MOST)
    return _SPLIT + column * _MOST + (0 if second is None else second + 1)


def columns_of(place: Place) -> tuple[int, int | None, bool]:
    """Column, second column and whether heavy values are split, of a place on a column.

    >>> columns_of(3), columns_of(split(3, 1)), columns_of(split(3, None))
    ((3, None, False), (3, 1, True), (3, None, True))
    """
    if place < _SPLIT:
        return place, None, False
    column, second = divmod(place - _SPLIT, _MOST)
    return column, second - 1 if second else None, True
