"""Owns expressions -> instructions: rows that grow by joins and shrink by conditions, with a running value.

`join` reads an expression as a factor: it changes the current frame, binds variables and multiplies the
running value.  The order of factors is free where meaning allows it: what needs no more rows comes first
(conditions, values), then the rows of the batch, then what is joined by bound keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dlog.errors import UnsupportedError
from dlog.m3.rings.rings import INTEGER_RING
from dlog.m3.runtime import layout as o
from dlog.m3.runtime.compile.analysis import Names, expands, has_initial, mentioned, outputs
from dlog.m3.runtime.compile.code import Frame, Word
from dlog.m3.runtime.compile.exact import EXACT_RING
from dlog.m3.runtime.compile.range_code import COMPARISON
from dlog.m3.runtime.compile.ranges import RangeScan
from dlog.m3.runtime.compile.rows import Bound
from dlog.m3.runtime.compile.scalars import Scalars
from dlog.m3.runtime.compile.stores import Store
from dlog.m3.runtime.compile.values import (
    EXACT_KIND,
    FLOAT_KIND,
    INT_KIND,
    RING_KIND,
    Value,
    kind_of,
)
from dlog.m3.syntax import ast


class Joins(Scalars):
    """Code for expressions as factors."""

    def join(self, node: ast.Node) -> None:
        """In code for exact sums, the rows of an inner sum are added one by one."""
        conditions, self.conditions = self.conditions, []
        if isinstance(node, ast.Product):
            self._join_product(node)
            return
        if has_initial(node):
            self.keep_nonzero()
        bound = self.names
        if isinstance(node, ast.Comparison | ast.In):
            self.keep(self.scalar(node).column)
        elif isinstance(node, ast.Lift) and node.variable.name not in bound:
            self._lift(node)
        elif isinstance(node, ast.Exists | ast.Domain | ast.Lift) and not outputs(node, bound):
            self.keep(self.scalar(node).column)
        elif isinstance(node, ast.AggSum) and self._is_inlined(node):
            self._join_inlined(node)
        elif not outputs(node, bound):
            self._times(node)
        elif isinstance(node, ast.MapAccess):
            self._expand_map(node, conditions)
        elif isinstance(node, ast.Relation):
            self._expand(self.stores.table(node.name), node.variables, conditions)
        elif isinstance(node, ast.DeltaRelation):
            self._join_delta(node)
        elif isinstance(node, ast.AggSum):
            self._join_inlined(node)
        elif isinstance(node, ast.Exists | ast.Domain) and self._has_no_zeros(node.body):
            assert isinstance(node.body, ast.MapAccess)
            self._expand_map(node.body, conditions, is_condition=True)
        else:
            self._join_grouped(node)

    def _is_inlined(self, node: ast.AggSum) -> bool:
        """Whether a sum of floats is added to exact sums row by row; a sum over a range is read as it is."""
        if not self.exact or self.ring_of(node) is INTEGER_RING:
            return False
        factors = node.body.factors if isinstance(node.body, ast.Product) else (node.body,)
        return self.ranges.read(factors, self.names) is None

    def _times(self, node: ast.Node) -> None:
        """A factor that binds nothing."""
        if isinstance(node, ast.MapAccess) and self.exact and self.stores.map(node.name).is_exact:
            self.multiply(self.sums_of(self.stores.map(node.name), node.keys))
            return
        value = self.running() or self.arithmetic.one()
        plain = isinstance(node, ast.MapAccess) and node.initial is None and self._is_plain_integer(node)
        if not plain or value.kind not in (INT_KIND, EXACT_KIND):
            self.multiply(self.scalar(node))
            return
        assert isinstance(node, ast.MapAccess)
        store = self.stores.map(node.name)
        columns = self.keys_of(store, (*node.inputs, *node.keys))
        hashes = self.hashed(columns)
        if len(columns) == 1:
            out = self._times_entry(store, hashes, columns[0], value.column)
        else:
            out = self.code.column()
            self.code.emit(
                o.LOOK_UP_TIMES, self.frame.word, store.address, hashes, len(columns), *columns,
                value.column, out,
            )  # fmt: skip
        self.value = replace(value, columns=(out, *value.columns[1:]))

    def _times_entry(self, store: Store, hashes: Word, key: Word, value: Word) -> Word:
        """The value times that of an entry; consecutive look-ups by the same key are merged."""
        words = self.code.words
        start, end, *last = self.product
        if end == len(words) and last == [self.frame.word, hashes, key, value]:
            words[start + 1] += 1
            words[start + 7] += 1
            words.append(store.address)
            self.product = (start, len(words), *last)
            return value
        out, start = self.code.column(), len(words)
        self.code.emit(o.LOOK_UP_PRODUCT, self.frame.word, hashes, key, value, out, 1, store.address)
        self.product = (start, len(words), self.frame.word, hashes, key, out)
        return out

    def _is_plain_integer(self, node: ast.MapAccess) -> bool:
        names = tuple(v.name for v in (*node.inputs, *node.keys))
        return self.stores.map(node.name).is_integer and (node.name, names) not in self.repeated

    def _lift(self, node: ast.Lift) -> None:
        value = self.scalar(node.body)
        assert node.variable.type is not None
        kind = kind_of(node.variable.type)
        if kind == RING_KIND:
            raise UnsupportedError(f"an element of {node.variable.type} cannot be bound", span=node.span)
        column = self.arithmetic.key(self.frame, value, kind)
        self.bound[node.variable.name] = Bound(kind, self.frame, ("column", column))

    def _join_product(self, node: ast.Product) -> None:
        """Factors that bind nothing come as soon as what they need is bound; for the others see `_next`."""
        if has_initial(node):  # what is stored depends on the order
            for factor in node.factors:
                self.join(factor)
            return
        if self._keeps_order(node):
            self._join_in_order(node)
            return
        self._join_factors(list(node.factors))

    def _keeps_order(self, node: ast.Product) -> bool:
        """Whether several factors are elements of a ring that does not commute."""
        types = [self.typing.of(factor) for factor in node.factors]
        elements = [t for t in types if kind_of(t) == RING_KIND]
        return len(elements) > 1 and not self.stores.rings[elements[0].name].commutes

    def _join_in_order(self, node: ast.Product) -> None:
        """Rows are joined in any order, as always; the values of factors are multiplied as they are written,
        numbers first.
        """
        before, self.value = (self._value, self._value_frame), None
        parts: dict[int, tuple[Value, Frame]] = {}
        self._join_factors(list(node.factors), parts)
        self._value, self._value_frame = before
        elements = [parts[i] for i in sorted(parts) if parts[i][0].kind == RING_KIND]
        numbers = [part for part in parts.values() if part[0].kind != RING_KIND]
        product: Value | None = None
        for value, frame in (*numbers, *elements):
            product = self.arithmetic.multiply(self.frame, product, self.brought(value, frame))
        if product is not None:
            self.multiply(product)

    def _join_factors(
        self, pending: list[ast.Node], parts: dict[int, tuple[Value, Frame]] | None = None
    ) -> None:
        """With `parts`, the value of each factor is put there, with the frame it is in, not multiplied."""
        needs: list[Names] = []
        binders: list[bool] = []
        at = self.names
        for factor in pending:
            found = outputs(factor, at)
            needs.append(mentioned(factor) & at)
            binders.append(bool(found))
            at |= found.keys()
        done: set[int] = set()
        while len(done) < len(pending):
            left = [i for i in range(len(pending)) if i not in done]
            chosen = self._next(left, pending, needs, binders)
            done.add(chosen)
            known = self.names | outputs(pending[chosen], self.names).keys()
            self.conditions = [pending[i] for i in left if i != chosen and needs[i] <= known]
            self._join_one(pending[chosen], any(expands(pending[i], self.names) for i in left if i != chosen))
            if parts is not None and self._value is not None:
                parts[chosen] = self._value, self._value_frame
                self.value = None

    def _next(self, left: list[int], factors: list[ast.Node], needs: list[Names], binders: list[bool]) -> int:
        names = self.names
        for i in left:
            if not binders[i] and needs[i] <= names:
                return i
        if not self.loops:
            for i in left:
                if isinstance(factors[i], ast.DeltaRelation):
                    return i
        movable = (ast.MapAccess, ast.Relation, ast.DeltaRelation)
        for i in left:
            factor = factors[i]
            if isinstance(factor, ast.Lift) and needs[i] <= names:
                return i
            if isinstance(factor, movable) and mentioned(factor) & names:
                return i
            if not isinstance(factor, movable):
                break  # the rest may depend on what it binds
        return left[0]

    def _join_one(self, factor: ast.Node, more: bool) -> None:
        """`more`: factors that multiply rows are still to come, so that summing first pays off."""
        if more and isinstance(factor, ast.AggSum) and self._drops_rows(factor):
            self._join_grouped(factor)
        else:
            self.join(factor)

    def _drops_rows(self, node: ast.AggSum) -> bool:
        bound = self.names
        return expands(node.body, bound) and len(outputs(node.body, bound)) > len(outputs(node, bound)) > 0

    def _join_inlined(self, node: ast.AggSum) -> None:
        """A sum as a factor: its rows are summed in the end, when all are there."""
        outer = dict(self.bound)
        self.join(node.body)
        kept = {key.name for key in node.keys}
        self.bound = {n: b for n, b in self.bound.items() if n in outer or n in kept}

    def _has_no_zeros(self, node: ast.Node) -> bool:
        return isinstance(node, ast.MapAccess) and not self.stores.map(node.name).keeps

    def _expand_map(
        self, node: ast.MapAccess, conditions: list[ast.Node], is_condition: bool = False
    ) -> None:
        store = self.stores.map(node.name)
        if node.initial is not None:
            self.make_initial(store, node)
        self._expand(store, (*node.inputs, *node.keys), conditions, is_condition)

    def _expand(
        self,
        store: Store,
        variables: tuple[ast.Variable, ...],
        conditions: Sequence[ast.Node] = (),
        is_condition: bool = False,
    ) -> None:
        """Each row with the entries that agree with it; for a condition, whatever their values are.

        Some of the conditions that come later may be bounds of a key: then only its range is read.
        """
        names = self.names
        places = tuple(j for j, v in enumerate(variables) if v.name in names)
        keys = [self.key(variables[j].name, store.key_kinds[j]) for j in places]
        rows, slots, cursor = self.code.column(), self.code.column(), self.code.state(3)
        parent = self.frame
        ranged = self.ranges.scan(store, variables, places, conditions, names)
        if ranged is not None:
            frame = self._open_range(store, keys, ranged, cursor, rows, slots)
        elif places:
            index = self.stores.index(store, places)
            work = self.code.column(), self.code.column()
            self.code.emit(
                o.CHAIN_OPEN, parent.word, store.address, index, self.hashed(keys), cursor, *work,
                len(keys), *keys,
            )  # fmt: skip
            end = self.open_loop(store.address)
            frame = self.child(rows)
            self.code.emit(o.CHAIN_NEXT, frame.word, store.address, index, cursor, *work, rows, slots, end)
        else:
            self.code.emit(o.SCAN_OPEN, cursor)
            end = self.open_loop(store.address)
            frame = self.child(rows)
            self.code.emit(o.SCAN_NEXT, frame.word, parent.word, store.address, cursor, rows, slots, end)
        self.enter(frame)
        self._bind_slots(store, variables, slots, names)
        if not is_condition:
            self.multiply(self._slot_value(store, self.column(frame, slots)))

    def _open_range(
        self, store: Store, keys: list[Word], ranged: RangeScan, cursor: Word, rows: Word, slots: Word
    ) -> Frame:
        parent, order = self.frame, self.stores.order(store, ranged.places, ranged.key)
        bounds = self.bound_words(store.key_kinds[ranged.key], ranged.bounds, ranged.is_between)
        self.code.emit(o.RANGE_OPEN, parent.word, store.address, order, cursor)
        end = self.open_loop(store.address)
        frame = self.child(rows)
        self.code.emit(
            o.RANGE_NEXT, frame.word, parent.word, store.address, order, cursor, rows, slots, end,
            int(ranged.is_between), len(keys), *bounds, *keys,
        )  # fmt: skip
        return frame

    def _bind_slots(
        self, store: Store, variables: tuple[ast.Variable, ...], slots: Word, names: Names
    ) -> None:
        slot_frame = self.frame
        for j, variable in enumerate(variables):
            if variable.name in names:
                continue
            bound = Bound(store.key_kinds[j], slot_frame, ("slot", store.address, slots, j))
            if variable.name in self.bound:  # twice in one list: equal
                self._keep_equal(variable.name, bound)
                continue
            self.bound[variable.name] = self._as_typed(variable, bound)

    def _as_typed(self, variable: ast.Variable, bound: Bound) -> Bound:
        """A variable has the type of the first factor in the text that binds it."""
        assert variable.type is not None
        kind = kind_of(variable.type)
        if kind == bound.kind or {kind, bound.kind} != {INT_KIND, FLOAT_KIND}:
            return bound
        value = self.arithmetic.from_key(self.frame, self.key_of(bound), bound.kind)
        column = self.arithmetic.key(self.frame, value, kind)
        if kind == INT_KIND:
            none = self.code.constant(o.EMPTY)
            self.keep(self.arithmetic.binary(o.COMPARE, self.frame, COMPARISON["!="], column, none))
            assert self.frame.parent is not None
            column = self.column(self.frame.parent, column)
        return Bound(kind, self.frame, ("column", column))

    def _keep_equal(self, name: str, bound: Bound) -> None:
        other = self.arithmetic.from_key(self.frame, self.key_of(bound), bound.kind)
        self.keep(self.compared("=", self.variable(name), other))

    def _slot_value(self, store: Store, slots: Word) -> Value:
        if store.ring.variables is not None:
            return self.arithmetic.element(store.ring, store.address, slots)
        if store.is_exact:
            return self.sums_in(store, slots)
        columns = []
        for word in range(len(store.key_kinds), len(store.key_kinds) + store.ring.words):
            out = self.code.column()
            self.code.emit(o.SLOT_LOAD, self.frame.word, store.address, slots, word, out)
            columns.append(out)
        return store.value(tuple(columns))

    def _join_delta(self, node: ast.DeltaRelation) -> None:
        """The rows of the batch: read in order, once; joined with what is bound, through a map of them."""
        at_start = self.frame.is_single and not self.loops and not mentioned(node) & self.names
        if at_start and not self.consolidates:
            self.scan_delta(node)
        else:
            self.joins_batch = True
            self._expand(self.stores.delta(node.name), node.variables)

    def scan_delta(self, node: ast.DeltaRelation) -> None:
        """REQUIRES: one current row."""
        self.open_delta()
        self.bind_delta(node)

    def open_delta(self) -> None:
        cursor = self.code.state(2)
        self.code.emit(o.DELTA_OPEN, cursor)
        end = self.open_loop()
        frame = self.child(self.code.constant(0))
        self.code.emit(o.DELTA_NEXT, frame.word, cursor, end)
        self.enter(frame)
        self.delta_cursor = cursor

    def bind_delta(self, node: ast.DeltaRelation) -> None:
        """Bind the variables of a batch whose loop is open."""
        frame, cursor = self.frame, self.delta_cursor
        kinds = self.stores.column_kinds(node.name)
        for j, (variable, kind) in enumerate(zip(node.variables, kinds, strict=True)):
            bound = Bound(kind, frame, ("delta", cursor, j))
            if variable.name in self.bound:
                self._keep_equal(variable.name, bound)
            else:
                self.bound[variable.name] = bound
        count = self.key_of(Bound(INT_KIND, frame, ("delta", cursor, len(kinds))))
        self.multiply(Value(INT_KIND, (count,)))

    def _join_grouped(self, node: ast.Node) -> None:
        """Sum by row and output variables into its own map, then continue with its entries."""
        found = outputs(node, self.names)
        is_condition = isinstance(node, ast.Exists | ast.Domain)
        body = node.body if isinstance(node, ast.Exists | ast.Domain) else node
        ring = self.ring_of(body)
        if self.exact and not is_condition and ring is not INTEGER_RING:
            ring = EXACT_RING
        kinds = [kind_of(t) for t in found.values()]
        by_row = () if self.frame.is_single else (INT_KIND,)
        store = self.stores.scratch((*by_row, *kinds), ring)
        self.code.emit(o.CLEAR, store.address)
        outer = self.frame
        with self.inner(), self.adding_to(ring):
            self._fill(store, body, outer, list(found), bool(by_row))
        self._scan_groups(store, list(found), bool(by_row))
        if is_condition:
            return
        slots = self.bound[next(iter(found))].origin[2]
        self.multiply(self._slot_value(store, slots))

    def _fill(self, store: Store, body: ast.Node, outer: Frame, names: list[str], by_row: bool) -> None:
        terms = body.terms if isinstance(body, ast.Sum) else (body,)
        for term in terms:
            with self.inner():
                self.join(term)
                rows = [self._row_numbers(outer)] if by_row else []
                keys = [self.key(n, k) for n, k in zip(names, store.key_kinds[len(rows) :], strict=True)]
                self.accumulate(store, rows + keys)

    def _scan_groups(self, store: Store, names: list[str], by_row: bool) -> None:
        unused, slots, cursor = self.code.column(), self.code.column(), self.code.state(3)
        self.code.emit(o.SCAN_OPEN, cursor)
        end = self.open_loop()
        rows: Word = self.code.column() if by_row else self.code.constant(0)
        frame = self.child(rows)
        self.code.emit(o.SCAN_NEXT, frame.word, -1, store.address, cursor, unused, slots, end)
        self.enter(frame)
        if by_row:
            self.code.emit(o.SLOT_LOAD, frame.word, store.address, slots, 0, rows)
        for j, name in enumerate(names, int(by_row)):
            if name in self.bound:
                continue
            self.bound[name] = Bound(store.key_kinds[j], frame, ("slot", store.address, slots, j))

    def accumulate(self, store: Store, keys: list[Word]) -> None:
        """Add the running value to entries."""
        value = self.running() or self.arithmetic.one()
        if store.ring.variables is not None:
            self._accumulate_cofactors(store, keys, value)
            return
        if store.is_exact:
            self.arithmetic.add_exact(self.frame, value, store.address, self._slots_of(store, keys))
            return
        columns = self.arithmetic.as_ring(self.frame, value, store.ring)
        if store.keeps and store.ring.kernel is not None:
            columns += (self.code.constant(1),)
        hashes = self.hashed(keys)
        if store.ring.kernel is None:
            slots = self.code.column()
            self.code.emit(o.SLOTS, self.frame.word, store.address, hashes, len(keys), *keys, slots)
            self.stores.add_in_python(self.arithmetic, self.frame, store, slots, columns)
        elif keys:
            self.code.emit(o.ACCUMULATE, self.frame.word, store.address, hashes, len(keys), *keys, *columns)
        else:
            self.code.emit(o.TOTAL, self.frame.word, store.address, *columns)

    def _slots_of(self, store: Store, keys: list[Word]) -> Word:
        """The slots of entries, made where there are none."""
        slots: Word = self.code.constant(0)
        if keys:
            slots, hashes = self.code.column(), self.hashed(keys)
            self.code.emit(o.SLOTS, self.frame.word, store.address, hashes, len(keys), *keys, slots)
        return slots

    def _accumulate_cofactors(self, store: Store, keys: list[Word], value: Value) -> None:
        slots = self._slots_of(store, keys)
        self.arithmetic.add_elements(
            self.frame, value, store.ring, slots, store.address, not keys, store.keeps, store.is_read
        )

    def open_scan(self, store: Store) -> None:
        """A loop over all entries of a map.  REQUIRES: one current row."""
        unused, slots, cursor = self.code.column(), self.code.column(), self.code.state(2)
        self.code.emit(o.SCAN_OPEN, cursor)
        end = self.open_loop()
        frame = self.child(self.code.constant(0))
        self.code.emit(o.SCAN_NEXT, frame.word, -1, store.address, cursor, unused, slots, end)
        self.enter(frame)
        self.scanned = store, slots

    def bind_leading(self, leading: ast.Node) -> None:
        """Bind the variables of a factor whose rows the open loop iterates over."""
        if isinstance(leading, ast.DeltaRelation):
            self.bind_delta(leading)
            return
        assert isinstance(leading, ast.MapAccess)
        (store, slots), frame = self.scanned, self.frame
        self._bind_slots(store, (*leading.inputs, *leading.keys), slots, frozenset())
        self.multiply(self._slot_value(store, self.column(frame, slots)))

    def expand_slots(self, store: Store, variables: tuple[ast.Variable, ...]) -> Word:
        """The slots of the entries that agree with what is bound, in their own frame."""
        self._expand(store, variables)
        new = next(v.name for v in variables if self.bound[v.name].origin[0] == "slot")
        return self.column(self.bound[new].frame, self.bound[new].origin[2])
