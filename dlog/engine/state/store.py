"""Owns the state that programs are evaluated in: an arena, a dictionary, and the relations by name.

Besides predicates, rules may read relations that exist only for a while: versions of them, under the names
that `dlog.planning.versions` gives.  Knows nothing of rules.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from itertools import count
from typing import Any

import numpy as np

from dlog.engine.state.shared_subjoins import SharedSubjoins
from dlog.implementations import Implementations
from dlog.ir.lower.literals import Value, literal_value
from dlog.ir.rules import Const, Predicate
from dlog.planning.indices import Requirement
from dlog.planning.options import Options
from dlog.planning.sub_joins import Decomposition
from dlog.planning.versions import base_name, declared_name, is_earlier, is_old
from dlog.storage.arena.arena import Arena
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.index.index import Index
from dlog.storage.index.sample import sample
from dlog.storage.relation.relation import Relation
from dlog.storage.values import encode
from dlog.values import MAX_PRECISION, Type
from dlog.values.record import NOTHING

STALE = 2.5  # estimates are for at most as many times the current rows
_SAMPLE = 1 << 14


class Store:
    def __init__(self, predicates: dict[str, Predicate]):
        self.arena = Arena()
        self.dictionary = Dictionary()
        self.dictionary.functions = Implementations()
        self.predicates = dict(predicates)
        self.relations: dict[str, Relation] = {}
        self.read_orders: dict[str, set[tuple[int, ...]]] = {}  # column orders that plans have requested
        self.requirements: dict[str, set[Requirement]] = {}  # what later plans are known to read
        self.chosen_orders: dict[str, tuple[tuple[int, ...], ...]] = {}  # built when a plan first reads one
        self.options = Options()  # of the planner
        self.inclusions: frozenset[tuple[str, str]] = frozenset()  # (S, T): rules derive S inside T
        self.shared_subjoins = SharedSubjoins()
        self.numbers = count()  # for names that no other relation, of any version, ever has
        self.subjoin_choice: Any = (
            None  # while a program is evaluated: `dlog.engine.body.shared_subjoin_choice.SharedSubjoinChoice`
        )
        self.decompositions: dict[Hashable, tuple[tuple[int, ...], Decomposition | None]] = {}  # by join
        self._codes: dict[tuple[str, object, Type], int | None] = {}
        self._estimates: dict[str, tuple[int, list[tuple[float, float]]]] = {}
        for name in predicates:
            self.clear(name)

    def clear(self, name: str) -> None:
        self.relations[name] = Relation(self.arena, self.predicates[name].arity)

    def forget(self, name: str) -> None:
        """Drop a relation and all statistics of its columns: the name now means another predicate."""
        self.relations.pop(name, None)
        for known in (self.read_orders, self.requirements, self.chosen_orders, self._estimates):
            known.pop(name, None)

    def under(self, predicates: dict[str, Predicate]) -> Store:
        """The same state seen under another program's predicates; relations are shared.  O(1)."""
        other = copy.copy(self)
        other.predicates = predicates
        return other

    def snapshot(self) -> Store:
        """The current state, for readers: later changes do not show in it.  O(relations)."""
        return self.snapshot_of(self.relations, self.predicates)

    def snapshot_of(self, relations: dict[str, Relation], predicates: dict[str, Predicate]) -> Store:
        """The same for other relations than the current ones.  Safe while another thread works here:
        what it may change is copied in one step each.  O(relations)."""
        other = copy.copy(self)
        other.predicates = dict(predicates)
        other.relations = {name: relation.snapshot() for name, relation in dict(relations).items()}
        other.read_orders = {name: set(orders) for name, orders in self.read_orders.copy().items()}
        other.requirements = {name: set(known) for name, known in self.requirements.copy().items()}
        other.chosen_orders = self.chosen_orders.copy()
        other._estimates = self._estimates.copy()
        other.decompositions = self.decompositions.copy()
        other.shared_subjoins = SharedSubjoins()
        other.subjoin_choice = None
        return other

    def column_types(self, name: str) -> Sequence[Type]:
        return [c.type for c in self.predicates[declared_name(name)].columns]

    def index(self, name: str, columns: Sequence[int]) -> Index:
        """An index of a relation that begins with the given columns; built if there is none.

        It is the one that was chosen, so that later plans can share it, or columns are taken as they
        are.
        """
        relation = self.relations[name]
        prefix = tuple(columns)
        order = next((o for o in self.known_orders(name) if o[: len(prefix)] == prefix), None)
        if order is None:
            order = (*prefix, *(c for c in range(relation.arity) if c not in prefix))
        relation.add_order(order)
        self.read_orders.setdefault(name, set()).add(order)
        return relation.index(order)

    # Statistics for the planner

    def rows(self, name: str) -> int:
        return len(self.relations[name]) if name in self.relations else 0

    def orders(self, name: str) -> Sequence[tuple[int, ...]]:
        return self.relations[name].orders if name in self.relations else ()

    def known_orders(self, name: str, foreseen: bool = True) -> Sequence[tuple[int, ...]]:
        """Orders that exist, then those that have been chosen (see `dlog.engine.evaluate.column_orders`)."""
        chosen = self.chosen_orders.get(base_name(name) if is_old(name) or is_earlier(name) else name, ())
        return [*self.orders(name), *chosen] if chosen and foreseen else self.orders(name)

    def distinct(self, name: str, column: int) -> float:
        return self._estimate(name)[column][0]

    def partners(self, name: str, column: int) -> float:
        return self._estimate(name)[column][1]

    def _estimate(self, name: str) -> list[tuple[float, float]]:
        """(distinct values, partners of a row) of each column, from a sample of the rows.

        Cached until the relation has grown by half, or shrunk by more than that: a sample costs 4 ms, as much
        as evaluating a small rule, and a bulk change that is undone needs none.
        """
        n = self.rows(name)
        if name not in self.relations:
            return [(1.0, 1.0)] * self.predicates[declared_name(name)].arity
        known = self._estimates.get(name)
        if known is None or not known[0] <= n * STALE or n > known[0] * 1.5:
            known = (n, _column_estimates(self.relations[name], n))
            self._estimates[name] = known
        if n >= known[0]:
            return known[1]
        return [(min(distinct, float(n)), min(partners, float(n))) for distinct, partners in known[1]]

    # Literals

    def encode(self, const: Const, type: Type) -> int | None:
        """The code of a literal in a type; None if the type cannot hold it."""
        key = (const.kind, const.value, type)
        if key not in self._codes:
            self._codes[key] = self._encode(const, type)
        return self._codes[key]

    def _encode(self, const: Const, type: Type) -> int | None:
        if const.kind == NOTHING:
            return 0
        try:
            value = literal_value(const.kind, const.value, storable(type))
        except ValueError:
            return None
        return self.encode_value(value, type)

    def encode_value(self, value: Value, type: Type) -> int:
        return int(encode([value], storable(type), self.dictionary)[0])

    def literal_rows(self, name: str, rows: Sequence[tuple[tuple[str, object], ...]]) -> np.ndarray:
        """Codes of rows of (kind, value) literals, column by column."""
        predicate = self.predicates[name]
        out = np.empty((len(rows), predicate.arity), np.int64)
        for index, column in enumerate(predicate.columns):
            type = column.type
            if type.literal_is_value:
                values: list[object] = [row[index][1] for row in rows]
            else:
                values = [literal_value(*row[index], type) for row in rows]  # type: ignore[arg-type]
            out[:, index] = encode(values, type, self.dictionary)
        return out


def storable(type: Type) -> Type:
    return Type(type.name, type.scale, MAX_PRECISION) if type.precision > MAX_PRECISION else type


def _column_estimates(relation: Relation, n: int) -> list[tuple[float, float]]:
    if n == 0:
        return [(1.0, 1.0)] * relation.arity
    order = relation.orders[0]
    rows = sample(relation.index(order), _SAMPLE)
    estimates = [column_estimate(rows[:, level], n) for level in range(relation.arity)]
    return [estimates[order.index(column)] for column in range(relation.arity)]


def column_estimate(values: np.ndarray, n: int) -> tuple[float, float]:
    """(distinct, partners).  Values seen once in a sample stand for sqrt(n / sample) each (Charikar et al.);
    pairs of rows in the sample that agree show how many rows agree with a random one.
    """
    _, counts = np.unique(values, return_counts=True)
    size = len(values)
    agreeing = float((counts * (counts - 1)).sum()) / max(1, size * (size - 1))
    partners = 1 + agreeing * (n - 1)
    if size >= n:
        return float(len(counts)), partners
    once = int(np.count_nonzero(counts == 1))
    return min(float(n), (n / size) ** 0.5 * once + len(counts) - once), partners
