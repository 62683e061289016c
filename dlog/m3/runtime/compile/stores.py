"""Owns which maps a program's code works on: declared ones, tables, batches, and its own scratch maps.

Each is a `Store`; which indices it needs is determined while code is written.  Holds no data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlog.jit import Words
from dlog.m3.rings.registry import ring_of, rings_of
from dlog.m3.rings.rings import FLOAT_RING, INTEGER_RING, PLAIN_FLOAT_RING, Ring
from dlog.m3.runtime.compile.analysis import Typing, maps_read_by_triggers
from dlog.m3.runtime.compile.code import Frame, Word
from dlog.m3.runtime.compile.cofactors import variables_in, variables_of_maps
from dlog.m3.runtime.compile.exact import EXACT_RING, exact_maps, is_sum
from dlog.m3.runtime.compile.values import (
    FLOAT_KIND,
    INT_KIND,
    RING_KIND,
    Arithmetic,
    Value,
    kind_of,
    segment_sums,
    word_kinds,
)
from dlog.m3.runtime.layout import INT, M_WORDS_OF_MAP
from dlog.m3.runtime.maps.maps import Shape
from dlog.m3.syntax import ast

EXACT, DOUBLED, PLAIN = "exact", "doubled", "plain"  # how sums of floats are computed
FLOATS = (EXACT, DOUBLED, PLAIN)
APART = 8  # words: wider cofactors lie apart from the slots of their map


@dataclass(frozen=True, eq=False)
class Store:
    """A map as code sees it."""

    name: str
    number: int
    key_kinds: tuple[str, ...]
    ring: Ring
    keeps: bool = False
    is_read: bool = True  # by a trigger, or replaced by one
    drained: bool = False  # its changes are
    indices: list[tuple[int, ...]] = field(default_factory=list)
    orders: list[tuple[int, ...]] = field(default_factory=list)

    @property
    def address(self) -> int:
        return M_WORDS_OF_MAP * self.number

    @property
    def is_integer(self) -> bool:
        return self.ring is INTEGER_RING

    @property
    def is_exact(self) -> bool:
        return self.ring is EXACT_RING

    @property
    def is_plain(self) -> bool:
        """At most one key, an integer as value, no index and no order: its slots are as small as possible."""
        is_simple = self.is_integer and len(self.key_kinds) <= 1 and not self.keeps
        return is_simple and self.is_bare

    @property
    def is_bare(self) -> bool:
        """Nothing besides its slots is kept up to date."""
        return not self.indices and not self.orders and not self.drained

    @property
    def is_summable(self) -> bool:
        """Whether kernels add its values: integers, floats, or exact sums of these."""
        return self.is_exact or (self.ring.kernel is not None and self.ring.variables is None)

    def value(self, columns: tuple[Word, ...]) -> Value:
        return as_value(self.ring, columns)

    @property
    def words(self) -> int:
        """Words of a value; one more if entries of value 0 stay."""
        return self.ring.words + self.keeps

    @property
    def shape(self) -> Shape:
        kinds = word_kinds(self.ring) + (INT,) * self.keeps
        is_wide = self.ring.variables is not None and self.words > APART
        apart = is_wide and bool(self.key_kinds) and self.is_bare
        summed = self.ring.words if self.is_summable else 0
        orders = tuple(self.orders)
        return Shape(len(self.key_kinds), kinds, tuple(self.indices), apart, orders, summed, self.drained)


def as_value(ring: Ring, columns: tuple[Word, ...]) -> Value:
    if ring is INTEGER_RING:
        return Value(INT_KIND, columns)
    if ring in (FLOAT_RING, PLAIN_FLOAT_RING):
        return Value(FLOAT_KIND, columns)
    return Value(RING_KIND, columns, ring)


class Stores:
    """All stores of a program."""

    def __init__(self, program: ast.Program, floats: str = EXACT, drained: Sequence[str] = ()):
        """`floats`: EXACT sums where they are sums of values of rows; else DOUBLED ones; or all PLAIN."""
        self.program, self.drained = program, frozenset(drained)
        self.typing = Typing(program)
        self.rings = rings_of(program)
        if floats == PLAIN:
            self.rings = {n: PLAIN_FLOAT_RING if r is FLOAT_RING else r for n, r in self.rings.items()}
        self.float_ring = PLAIN_FLOAT_RING if floats == PLAIN else FLOAT_RING
        self.exact = exact_maps(program, self.typing) if floats == EXACT else None
        self._variables = variables_of_maps(program, self.rings)
        self.all: list[Store] = []
        self.uses_ranks = False
        keeping = {n.name for n in program.walk() if isinstance(n, ast.MapAccess) and n.initial is not None}
        self._read = maps_read_by_triggers(program)
        self._maps = {m.name: self._declared(m, m.name in keeping) for m in program.maps}
        self._tables = {
            s.name: self._new(f"table {s.name}", self.column_kinds(s.name), INTEGER_RING)
            for s in program.sources
            if s.kind == ast.TABLE
        }
        self._deltas: dict[str, Store] = {}

    def _declared(self, declared: ast.MapDeclaration, keeps: bool) -> Store:
        assert declared.type is not None
        kinds = tuple(kind_of(c.type) for c in (*declared.inputs, *declared.keys))
        ring = self.rings.get(declared.type.name) or ring_of(declared.type)
        if self.exact is not None and declared.name in self.exact:
            ring = EXACT_RING
        if declared.name in self._variables:
            ring = ring.narrowed(tuple(sorted(self._variables[declared.name])))
        name = declared.name
        return self._new(name, kinds, ring, keeps, name in self._read, name in self.drained)

    def ring_of(self, node: ast.Node, type_: ast.TypeRef) -> Ring:
        """The ring of an expression's values: a cofactor has the variables of the expression."""
        ring = self.rings.get(type_.name) or ring_of(type_)
        if ring is FLOAT_RING:
            return self.float_ring
        if ring.variables is None:
            return ring
        return ring.narrowed(tuple(sorted(variables_in(node, self.rings, self._variables))))

    def result_ring(self, node: ast.Node, type_: ast.TypeRef) -> Ring:
        """The ring of a query's result."""
        ring = self.ring_of(node, type_)
        if ring is FLOAT_RING and self.exact is not None and is_sum(node, self.exact, self.typing):
            return EXACT_RING
        return ring

    def _new(
        self,
        name: str,
        kinds: tuple[str, ...],
        ring: Ring,
        keeps: bool = False,
        is_read: bool = True,
        drained: bool = False,
    ) -> Store:
        self.all.append(Store(name, len(self.all), kinds, ring, keeps, is_read, drained))
        return self.all[-1]

    def map(self, name: str) -> Store:
        return self._maps[name]

    def table(self, name: str) -> Store:
        return self._tables[name]

    @property
    def tables(self) -> dict[str, Store]:
        return self._tables

    def delta(self, name: str) -> Store:
        """The rows of the batch as a map: filled at the trigger's start, if it is used."""
        if name not in self._deltas:
            self._deltas[name] = self._new(f"batch of {name}", self.column_kinds(name), INTEGER_RING)
        return self._deltas[name]

    def scratch(self, kinds: tuple[str, ...], ring: Ring) -> Store:
        return self._new("scratch", kinds, ring)

    def column_kinds(self, relation: str) -> tuple[str, ...]:
        source = self.program.source(relation)
        assert source is not None
        return tuple(kind_of(c.type) for c in source.columns)

    def index(self, store: Store, places: tuple[int, ...]) -> int:
        """The number of the index by the keys at these places."""
        if places not in store.indices:
            store.indices.append(places)
        return store.indices.index(places)

    def order(self, store: Store, places: tuple[int, ...], key: int) -> int:
        """The number of the order by the keys at these places, then one more key, then the rest."""
        rest = (j for j in range(len(store.key_kinds)) if j not in places and j != key)
        order = (*places, key, *rest)
        if order not in store.orders:
            store.orders.append(order)
        return store.orders.index(order)

    def add_in_python(
        self, arithmetic: Arithmetic, frame: Frame, store: Store, slots: Word, columns: tuple[Word, ...]
    ) -> None:
        """Add elements of a ring that kernels do not know to the entries in slots."""
        ring, n_keys = store.ring, len(store.key_kinds)

        def run(arrays: Any) -> None:
            elements = np.stack([arrays(c) for c in columns], axis=1)
            found, sums = segment_sums(ring, elements, arrays(slots))
            table: Words = arrays.table(store.number)
            entries = table[found][:, n_keys : n_keys + ring.words]
            table[found, n_keys : n_keys + ring.words] = ring.add(entries, sums)
            if store.keeps:
                table[found, n_keys + ring.words] = 1

        arithmetic.call(frame, run)
