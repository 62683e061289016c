"""Owns expressions that bind nothing -> instructions: one value for every row of the current frame.

Conditions are 1 or 0.  A nested aggregate has its own rows and is summed by the row it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable

from dlog.errors import UnsupportedError
from dlog.m3.rings.rings import Ring
from dlog.m3.runtime import layout as o
from dlog.m3.runtime.compile.analysis import has_initial, outputs
from dlog.m3.runtime.compile.code import Frame, Word
from dlog.m3.runtime.compile.cofactors import new_block
from dlog.m3.runtime.compile.function_calls import call_function, date_number
from dlog.m3.runtime.compile.range_code import COMPARISON, RangeCode
from dlog.m3.runtime.compile.stores import Store, as_value
from dlog.m3.runtime.compile.values import (
    DATE_KIND,
    FLOAT_KIND,
    INT_KIND,
    RING_KIND,
    STRING_KIND,
    Value,
    kind_of,
)
from dlog.m3.syntax import ast
from dlog.m3.types import functions
from dlog.storage.values import encode_value
from dlog.values import DATE, STRING


class Scalars(RangeCode):
    """`scalar(node)` for every kind of expression."""

    def join(self, node: ast.Node) -> None:
        """Multiply rows and running value by an expression: see `joins`."""
        raise NotImplementedError

    def make_initial(self, store: Store, node: ast.MapAccess) -> None:
        """Store initial values where they are missing: see `bodies`."""
        raise NotImplementedError

    def ring_of(self, node: ast.Node) -> Ring:
        return self.stores.ring_of(node, self.typing.of(node))

    def scalar(self, node: ast.Node) -> Value:
        method: Callable[..., Value] = getattr(self, f"_scalar_{type(node).__name__.lower()}")
        return method(node)

    def _scalar_constant(self, node: ast.Constant) -> Value:
        kind = kind_of(self.typing.of(node))
        if kind == STRING_KIND:
            return Value(kind, (self.code.constant(encode_value(node.value, STRING, self.dictionary)),))
        if kind == DATE_KIND:
            return Value(kind, (self.code.constant(encode_value(node.value, DATE, self.dictionary)),))
        assert isinstance(node.value, int | float)
        return self.arithmetic.constant(kind, node.value)

    def _scalar_variable(self, node: ast.Variable) -> Value:
        return self.variable(node.name)

    def _scalar_product(self, node: ast.Product) -> Value:
        if outputs(node, self.names) or has_initial(node):
            return self._summed(node)
        value: Value | None = None
        for factor in node.factors:
            value = self.arithmetic.multiply(self.frame, value, self.scalar(factor))
        assert value is not None
        return value

    def _scalar_sum(self, node: ast.Sum) -> Value:
        value = self.scalar(node.terms[0])
        for term in node.terms[1:]:
            value = self.arithmetic.add(self.frame, value, self.scalar(term))
        return value

    def _scalar_aggsum(self, node: ast.AggSum) -> Value:
        if outputs(node.body, self.names):
            return self._summed(node.body)
        return self.scalar(node.body)

    def _scalar_mapaccess(self, node: ast.MapAccess) -> Value:
        store = self.stores.map(node.name)
        if node.initial is not None:
            self.make_initial(store, node)
        return self._looked_up(store, (*node.inputs, *node.keys), cached=not store.keeps)

    def _scalar_relation(self, node: ast.Relation) -> Value:
        return self._looked_up(self.stores.table(node.name), node.variables, cached=True)

    def _scalar_deltarelation(self, node: ast.DeltaRelation) -> Value:
        self.joins_batch = True
        return self._looked_up(self.stores.delta(node.name), node.variables, cached=True)

    def _scalar_call(self, node: ast.Call) -> Value:
        arguments = [self.scalar(a) for a in node.arguments]
        if node.function in ("/", "div") and kind_of(node.type) == FLOAT_KIND:
            columns = [self.arithmetic.to_float(self.frame, a).column for a in arguments]
            top = columns[0] if len(columns) == 2 else self.arithmetic.constant(FLOAT_KIND, 1.0).column
            return Value(FLOAT_KIND, (self.arithmetic.binary(o.DIVIDE, self.frame, 0, top, columns[-1]),))
        function = functions.lookup(node.function)
        ring = self.ring_of(node) if kind_of(node.type) == RING_KIND else None
        return call_function(self.arithmetic, self.frame, node, function, arguments, ring, self.dictionary)

    def _scalar_comparison(self, node: ast.Comparison) -> Value:
        column = self.compared(node.op, self.scalar(node.left), self.scalar(node.right))
        return Value(INT_KIND, (column,))

    def _scalar_in(self, node: ast.In) -> Value:
        operand = self.scalar(node.operand)
        column: Word = self.code.constant(0)
        for constant in node.values:
            equal = self.compared("=", operand, self.scalar(constant))
            out = self.code.column()
            self.code.emit(o.EITHER, self.frame.word, column, equal, out)
            column = out
        return Value(INT_KIND, (column,))

    def _scalar_lift(self, node: ast.Lift) -> Value:
        column = self.compared("=", self.variable(node.variable.name), self.scalar(node.body))
        return Value(INT_KIND, (column,))

    def _scalar_exists(self, node: ast.Exists | ast.Domain) -> Value:
        return self._nonzero(self.scalar(node.body))

    _scalar_domain = _scalar_exists

    def _summed(self, body: ast.Node) -> Value:
        """The sum of a body over all its rows for each current row."""
        read = self.ranges.read(body.factors if isinstance(body, ast.Product) else (body,), self.names)
        if read is not None:
            return self.range_sum(read)
        ring = self.ring_of(body)
        if ring.variables is not None:
            return self._summed_cofactors(body, ring)
        outer, out = self.frame, tuple(self.code.column() for _ in range(ring.words))
        for column in out:
            self.code.emit(o.ZERO, outer.word, column)
        for term in body.terms if isinstance(body, ast.Sum) else (body,):
            with self.inner(), self.adding_to(ring):
                self.join(term)
                rows = self._row_numbers(outer)
                value = self.running() or self.arithmetic.one()
                self.arithmetic.sum_rows(self.frame, value, rows, out, ring)
        return as_value(ring, out)

    def _summed_cofactors(self, body: ast.Node, ring: Ring) -> Value:
        assert ring.variables is not None
        outer, block = self.frame, new_block(self.code, self.frame, ring.variables)
        for term in body.terms if isinstance(body, ast.Sum) else (body,):
            with self.inner():
                self.join(term)
                rows = self._row_numbers(outer)
                value = self.running() or self.arithmetic.one()
                self.arithmetic.add_elements(self.frame, value, ring, rows, block)
        return self.arithmetic.element(ring, block, self.arithmetic.own_rows(outer))

    def _found_slots(self, store: Store, keys: list[Word], cached: bool) -> Word:
        """The slots of entries, negative where there are none."""
        mark = ("look up", store.address, *keys)
        if not cached or mark not in self.frame.cache:
            hashes = self.hashed(keys)
            self.frame.cache[mark] = slots = self.code.column()
            self.code.emit(o.FIND, self.frame.word, store.address, hashes, len(keys), *keys, slots)
        return self.frame.cache[mark]

    def sums_of(self, store: Store, variables: tuple[ast.Variable, ...], cached: bool = True) -> Value:
        """The entries of a map of exact sums."""
        return self.sums_in(store, self._found_slots(store, self.keys_of(store, variables), cached))

    def sums_in(self, store: Store, slots: Word) -> Value:
        """The entries in slots: as sums, or rounded where they are not added to sums."""
        if self.exact:
            return self.arithmetic.exact_sums(store.address, slots)
        return self.arithmetic.rounded_sums(self.frame, store.address, slots)

    def _looked_up(self, store: Store, variables: tuple[ast.Variable, ...], cached: bool) -> Value:
        keys = self.keys_of(store, variables)
        if store.ring.variables is not None or store.is_exact:
            slots = self._found_slots(store, keys, cached)
            if store.is_exact:
                return self.arithmetic.rounded_sums(self.frame, store.address, slots)
            return self.arithmetic.element(store.ring, store.address, slots)
        hashes = self.hashed(keys)
        marks = [("look up", store.address, *keys, w) for w in range(store.words)]
        if not cached or marks[0] not in self.frame.cache:
            out = [self.code.column() for _ in marks]
            self.code.emit(o.LOOK_UP, self.frame.word, store.address, hashes, len(keys), *keys, *out)
            self.frame.cache.update(zip(marks, out, strict=True))
        return store.value(tuple(self.frame.cache[mark] for mark in marks[: store.ring.words]))

    def forget_look_ups(self, store: Store) -> None:
        """After a map was changed, what was read from it in this frame is no longer valid."""
        stale = [m for m in self.frame.cache if isinstance(m, tuple) and m[:2] == ("look up", store.address)]
        for mark in stale:
            del self.frame.cache[mark]

    def compared(self, op: str, a: Value, b: Value) -> Word:
        if RING_KIND in (a.kind, b.kind):
            raise UnsupportedError("elements of a user-defined ring cannot be compared")
        if DATE_KIND in (a.kind, b.kind) and a.kind != b.kind:
            a, b = (date_number(self.arithmetic, self.frame, v) if v.kind == DATE_KIND else v for v in (a, b))
        if FLOAT_KIND in (a.kind, b.kind):
            left, right = (self.arithmetic.key(self.frame, v, FLOAT_KIND) for v in (a, b))
        else:
            left, right = a.column, b.column
            if a.kind == STRING_KIND and op not in ("=", "!="):
                left, right = self._rank(left), self._rank(right)
        return self.arithmetic.binary(o.COMPARE, self.frame, COMPARISON[op], left, right)

    def _rank(self, column: Word) -> Word:
        self.stores.uses_ranks = True
        out = self.code.column()
        self.code.emit(o.RANK, self.frame.word, column, out)
        return out

    def _row_numbers(self, outer: Frame) -> Word:
        if self.frame is outer:  # nothing was expanded: rows are their own numbers
            return self.arithmetic.own_rows(outer)
        return self.rows_of(outer)
