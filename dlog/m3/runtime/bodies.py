"""Owns expressions -> instructions: rows that grow by joins and shrink by conditions, with a running value.

`join` reads an expression as a factor: it changes the frame that is at work, binds variables and multiplies
the running value.  `scalar` gives the value of an expression that binds nothing, for every row of the frame.

The order of factors is free where meaning allows it: what needs no more rows comes first (conditions, values),
then the rows of the batch, then what is joined by bound keys.  Code is only ever written for the frame at work,
so that everything its cache holds was computed whenever the frame has rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from dlog.errors import UnsupportedError
from dlog.m3 import ast, functions
from dlog.m3.rings import INTEGER_RING, Ring, ring_of
from dlog.m3.runtime import layout as o
from dlog.m3.runtime.analysis import Names, Typing, expands, mentioned, outputs
from dlog.m3.runtime.code import Code, Frame, Label, Word
from dlog.m3.runtime.function_calls import call_function
from dlog.m3.runtime.stores import Store, Stores
from dlog.m3.runtime.values import (
    DATE_KIND,
    FLOAT_KIND,
    INT_KIND,
    RING_KIND,
    STRING_KIND,
    Arithmetic,
    Value,
    kind_of,
)
from dlog.storage.dictionary import Dictionary
from dlog.storage.values import encode_value
from dlog.types import DATE, STRING

COMPARISON = {op: i for i, op in enumerate(("=", "!=", "<", "<=", ">", ">="))}

# Where a variable's column comes from: ("column", c), ("slot", map, slots, word), ("delta", cursor, c),
# ("input", c).
Origin = tuple


@dataclass(frozen=True)
class Bound:
    """A variable: its kind, the frame that bound it, and where its codes are."""

    kind: str
    frame: Frame
    origin: Origin


class Body:
    """Code for the expressions of one trigger."""

    def __init__(
        self, code: Code, arithmetic: Arithmetic, stores: Stores, typing: Typing, dictionary: Dictionary
    ):
        self.code, self.arithmetic, self.stores = code, arithmetic, stores
        self.typing, self.dictionary = typing, dictionary
        self.frame = code.frame()
        self.bound: dict[str, Bound] = {}
        self.value: Value | None = None  # None is 1
        self.leave = Label()  # where to go when no rows are left
        self.loops: list[tuple[Label, Label]] = []  # (head, exit) of the open ones
        self.repeated: set[tuple[str, tuple[str, ...]]] = set()  # look-ups that several statements do

    @property
    def names(self) -> Names:
        return frozenset(self.bound)

    # ---- frames and loops

    def child(self, rows: Word, parent: Frame | None = None) -> Frame:
        return self.code.frame(parent or self.frame, rows)

    def open_loop(self) -> tuple[Label, Label]:
        """What follows is done once for each chunk, until `close_loops`."""
        loop = (self.code.here(), Label())
        self.loops.append(loop)
        return loop

    def enter(self, frame: Frame) -> None:
        """Go on in the frame of the loop that was opened last."""
        self.frame = frame
        self.leave = self.loops[-1][0]

    def close_loops(self, down_to: int = 0) -> None:
        while len(self.loops) > down_to:
            head, end = self.loops.pop()
            self.code.emit(o.JUMP, head)
            self.code.place(end)

    @contextmanager
    def inner(self) -> Iterator[None]:
        """Code of its own rows and variables; behind it all is as before."""
        frame, bound, leave, depth = self.frame, dict(self.bound), self.leave, len(self.loops)
        value, value_frame = self._value, self._value_frame
        self.value, self.leave = None, Label()
        end = self.leave
        yield
        self.close_loops(depth)
        self.frame, self.bound, self.leave = frame, bound, leave
        self._value, self._value_frame = value, value_frame
        self.code.place(end)

    # ---- columns of outer frames

    def column(self, frame: Frame, column: Word) -> Word:
        """A column of a frame around the one at work, row by row."""
        if frame is self.frame or isinstance(column, Label):  # a constant is the same everywhere
            return column
        key = ("column", frame.word, column)
        if key not in self.frame.cache:
            out = self.code.column()
            if frame.is_single:
                self.code.emit(o.SPREAD, self.frame.word, column, out)
            else:
                self.code.emit(o.GATHER, self.frame.word, column, self.rows_of(frame), out)
            self.frame.cache[key] = out
        return self.frame.cache[key]

    def rows_of(self, frame: Frame) -> Word:
        """For each row at work the row of an outer frame that it comes from."""
        at, rows = self.frame, None
        while at is not frame:
            assert at.rows is not None and at.parent is not None
            if rows is None:
                rows = at.rows
            else:
                key = ("rows", at.parent.word)
                if key not in self.frame.cache:
                    out = self.code.column()
                    self.code.emit(o.GATHER, self.frame.word, at.rows, rows, out)
                    self.frame.cache[key] = out
                rows = self.frame.cache[key]
            at = at.parent
        assert rows is not None
        return rows

    def key_of(self, bound: Bound) -> Word:
        """The codes of a variable, in the frame at work."""
        if bound.origin[0] == "column":
            return self.column(bound.frame, bound.origin[1])
        key = (bound.frame.word, *bound.origin)
        if key not in self.frame.cache:
            out = self.code.column()
            self._load(bound, out)
            self.frame.cache[key] = out
        return self.frame.cache[key]

    def _load(self, bound: Bound, out: int) -> None:
        own, kind = bound.frame is self.frame, bound.origin[0]
        if kind == "slot":
            _, store, slots, word = bound.origin
            self.code.emit(o.SLOT_LOAD, self.frame.word, store, self.column(bound.frame, slots), word, out)
        elif kind == "delta":
            _, cursor, column = bound.origin
            if own:
                self.code.emit(o.DELTA_LOAD, self.frame.word, cursor, out, column)
            else:
                rows = self.rows_of(bound.frame)
                self.code.emit(o.DELTA_GATHER, self.frame.word, rows, out, column, bound.frame.word, cursor)
        elif own:
            self.code.emit(o.LOAD, self.frame.word, out, bound.origin[1])
        else:
            self.code.emit(o.INPUT_GATHER, self.frame.word, self.rows_of(bound.frame), out, bound.origin[1])

    def variable(self, name: str) -> Value:
        bound = self.bound[name]
        return self.arithmetic.from_key(self.frame, self.key_of(bound), bound.kind)

    def key(self, name: str, kind: str) -> Word:
        """The codes of a variable as keys of some kind."""
        bound = self.bound[name]
        if bound.kind == kind:
            return self.key_of(bound)
        return self.arithmetic.key(self.frame, self.variable(name), kind)

    def hashed(self, columns: list[Word]) -> Word:
        if not columns:
            return 0
        key = ("hash", *columns)
        if key not in self.frame.cache:
            out = self.code.column()
            self.code.emit(o.HASH, self.frame.word, out, len(columns), *columns)
            self.frame.cache[key] = out
        return self.frame.cache[key]

    # ---- joining

    def join(self, node: ast.Node) -> None:
        if isinstance(node, ast.Product):
            self._join_product(node)
            return
        bound = self.names
        if isinstance(node, ast.Comparison | ast.In):
            self.keep(self.scalar(node).column)
        elif isinstance(node, ast.Lift) and node.variable.name not in bound:
            self._lift(node)
        elif isinstance(node, ast.Exists | ast.Domain | ast.Lift) and not outputs(node, bound):
            self.keep(self.scalar(node).column)
        elif not outputs(node, bound):
            self._times(node)
        elif isinstance(node, ast.MapAccess):
            self._expand_map(node)
        elif isinstance(node, ast.Relation):
            self._expand(self.stores.table(node.name), node.variables)
        elif isinstance(node, ast.DeltaRelation):
            self._join_delta(node)
        elif isinstance(node, ast.AggSum):
            self._join_inlined(node)
        else:
            self._join_grouped(node)

    def multiply(self, value: Value) -> None:
        # The running value lies in the frame it was made in: bring it here first.
        self.value = self.arithmetic.multiply(self.frame, self.running(), value)

    def running(self) -> Value | None:
        if self.value is None or self._value_frame is self.frame:
            return self.value
        columns = tuple(self.column(self._value_frame, c) for c in self.value.columns)
        return replace(self.value, columns=columns)

    @property
    def value(self) -> Value | None:
        return self._value

    @value.setter
    def value(self, value: Value | None) -> None:
        self._value, self._value_frame = value, self.frame

    def _times(self, node: ast.Node) -> None:
        """A factor that binds nothing."""
        if isinstance(node, ast.MapAccess) and node.initial is None and self._is_plain_integer(node):
            store = self.stores.map(node.name)
            columns = self._keys_of(store, (*node.inputs, *node.keys))
            value = self.running()
            if value is not None and value.kind == INT_KIND:
                out = self.code.column()
                hashes = self.hashed(columns)
                self.code.emit(
                    o.LOOK_UP_TIMES, self.frame.word, store.address, hashes, len(columns), *columns,
                    value.column, out,
                )  # fmt: skip
                self.value = Value(INT_KIND, (out,))
                return
        self.multiply(self.scalar(node))

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

    def keep(self, condition: Word) -> None:
        """Go on with the rows where a column is 1."""
        rows = self.code.column()
        frame = self.child(rows)
        self.code.emit(o.FILTER, self.frame.word, condition, frame.word, rows)
        self.code.emit(o.JUMP_EMPTY, frame.word, self.leave)
        self.frame = frame

    def _join_product(self, node: ast.Product) -> None:
        """Factors that bind nothing as soon as what they need is bound; of the others see `_next`."""
        pending = list(node.factors)
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
            self._join_one(pending[chosen], any(expands(pending[i], self.names) for i in left if i != chosen))

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
            if isinstance(factor, movable) and mentioned(factor) & names and getattr(factor, "initial", None) is None:
                return i
            if not isinstance(factor, movable):
                break  # the rest may depend on what it binds
        return left[0]

    def _join_one(self, factor: ast.Node, more: bool) -> None:
        """`more`: factors that multiply rows are still to come, so that summing first pays."""
        if more and isinstance(factor, ast.AggSum) and self._drops_rows(factor):
            self._join_grouped(factor)
        else:
            self.join(factor)

    def _drops_rows(self, node: ast.AggSum) -> bool:
        bound = self.names
        return expands(node.body, bound) and len(outputs(node.body, bound)) > len(outputs(node, bound)) > 0

    def _join_inlined(self, node: ast.AggSum) -> None:
        """A sum as a factor: its rows are summed where all are, in the end."""
        outer = dict(self.bound)
        self.join(node.body)
        kept = {key.name for key in node.keys}
        self.bound = {n: b for n, b in self.bound.items() if n in outer or n in kept}

    # ---- reading maps, tables and batches

    def _expand_map(self, node: ast.MapAccess) -> None:
        store = self.stores.map(node.name)
        if node.initial is not None:
            self._make_initial(store, node)
        self._expand(store, (*node.inputs, *node.keys))

    def _keys_of(self, store: Store, variables: tuple[ast.Variable, ...]) -> list[Word]:
        return [self.key(v.name, kind) for v, kind in zip(variables, store.key_kinds, strict=True)]

    def _expand(self, store: Store, variables: tuple[ast.Variable, ...]) -> None:
        """Each row with the entries that agree with it."""
        names = self.names
        places = tuple(j for j, v in enumerate(variables) if v.name in names)
        keys = [self.key(variables[j].name, store.key_kinds[j]) for j in places]
        rows, slots, cursor = self.code.column(), self.code.column(), self.code.state(3)
        parent = self.frame
        if places:
            index = self.stores.index(store, places)
            work = self.code.column(), self.code.column()
            self.code.emit(
                o.CHAIN_OPEN, parent.word, store.address, index, self.hashed(keys), cursor, *work,
                len(keys), *keys,
            )  # fmt: skip
            _, end = self.open_loop()
            frame = self.child(rows)
            self.code.emit(
                o.CHAIN_NEXT, frame.word, store.address, index, cursor, *work, rows, slots, end
            )
        else:
            self.code.emit(o.SCAN_OPEN, cursor)
            _, end = self.open_loop()
            frame = self.child(rows)
            self.code.emit(o.SCAN_NEXT, frame.word, parent.word, store.address, cursor, rows, slots, end)
        self.enter(frame)
        self._bind_slots(store, variables, slots, names)
        self.multiply(self._slot_value(store, slots))

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
            column = self.column(self.frame.parent, column)  # type: ignore[arg-type]
        return Bound(kind, self.frame, ("column", column))

    def _keep_equal(self, name: str, bound: Bound) -> None:
        other = self.arithmetic.from_key(self.frame, self.key_of(bound), bound.kind)
        self.keep(self.compared("=", self.variable(name), other))

    def _slot_value(self, store: Store, slots: Word) -> Value:
        columns = []
        for word in range(len(store.key_kinds), len(store.key_kinds) + store.ring.words):
            out = self.code.column()
            self.code.emit(o.SLOT_LOAD, self.frame.word, store.address, slots, word, out)
            columns.append(out)
        return store.value(tuple(columns))

    def _join_delta(self, node: ast.DeltaRelation) -> None:
        """The rows of the batch: read in order, once; joined with what is bound, through a map of them."""
        if self.frame.is_single and not self.loops and not mentioned(node) & self.names:
            self.scan_delta(node)
        else:
            self._expand(self.stores.delta(node.name), node.variables)

    def scan_delta(self, node: ast.DeltaRelation) -> None:
        """REQUIRES: one row at work."""
        self.open_delta()
        self.bind_delta(node)

    def open_delta(self) -> None:
        cursor = self.code.state(2)
        self.code.emit(o.DELTA_OPEN, cursor)
        _, end = self.open_loop()
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
        """Sum by row and output variables into a map of its own, then go on with its entries."""
        found = outputs(node, self.names)
        is_condition = isinstance(node, ast.Exists | ast.Domain)
        body = node.body if isinstance(node, ast.Exists | ast.Domain) else node
        ring = self.ring_of(body)
        kinds = [kind_of(t) for t in found.values()]
        by_row = () if self.frame.is_single else (INT_KIND,)
        store = self.stores.scratch((*by_row, *kinds), ring)
        self.code.emit(o.CLEAR, store.address)
        outer = self.frame
        with self.inner():
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

    def _row_numbers(self, outer: Frame) -> Word:
        if self.frame is outer:  # nothing was expanded: rows are their own numbers
            everyone, rows = self.code.constant(1), self.code.column()
            same = self.code.frame(outer, rows)
            self.code.emit(o.FILTER, outer.word, everyone, same.word, rows)
            return rows
        return self.rows_of(outer)

    def _scan_groups(self, store: Store, names: list[str], by_row: bool) -> None:
        unused, slots, cursor = self.code.column(), self.code.column(), self.code.state(3)
        self.code.emit(o.SCAN_OPEN, cursor)
        _, end = self.open_loop()
        rows: Word = self.code.column() if by_row else self.code.constant(0)
        frame = self.child(rows)
        self.code.emit(o.SCAN_NEXT, frame.word, -1, store.address, cursor, unused, slots, end)
        self.enter(frame)
        if by_row:
            self.code.emit(o.SLOT_LOAD, frame.word, store.address, slots, 0, rows)
        for j, name in enumerate(names, int(by_row)):
            self.bound[name] = Bound(store.key_kinds[j], frame, ("slot", store.address, slots, j))

    # ---- writing to maps

    def accumulate(self, store: Store, keys: list[Word]) -> None:
        """Add the running value to entries."""
        value = self.running() or self.arithmetic.one()
        columns = self.arithmetic.as_ring(self.frame, value, store.ring)
        hashes = self.hashed(keys)
        if store.ring.kernel is None:
            slots = self.code.column()
            self.code.emit(o.SLOTS, self.frame.word, store.address, hashes, len(keys), *keys, slots)
            self.stores.add_in_python(self.arithmetic, self.frame, store, slots, columns)
        elif keys:
            self.code.emit(
                o.ACCUMULATE, self.frame.word, store.address, hashes, len(keys), *keys, *columns
            )
        else:
            self.code.emit(o.TOTAL, self.frame.word, store.address, *columns)

    # ---- values of expressions that bind nothing

    def ring_of(self, node: ast.Node) -> Ring:
        type_ = self.typing.of(node)
        return self.stores.rings.get(type_.name) or ring_of(type_)

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
        if outputs(node, self.names) or any(isinstance(f, ast.Lift) for f in node.factors):
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

    def _summed(self, body: ast.Node) -> Value:
        """The sum of a body over all rows that it has for each row at work."""
        ring = self.ring_of(body)
        outer, out = self.frame, tuple(self.code.column() for _ in range(ring.words))
        for column in out:
            self.code.emit(o.ZERO, outer.word, column)
        for term in body.terms if isinstance(body, ast.Sum) else (body,):
            with self.inner():
                self.join(term)
                rows = self._row_numbers(outer)
                value = self.running() or self.arithmetic.one()
                self.arithmetic.sum_rows(self.frame, value, rows, out, ring)
        return self.stores.as_value(ring, out)

    def _scalar_mapaccess(self, node: ast.MapAccess) -> Value:
        store = self.stores.map(node.name)
        if node.initial is not None:
            self._make_initial(store, node)
        return self._looked_up(store, (*node.inputs, *node.keys), cached=not store.keeps)

    def _scalar_relation(self, node: ast.Relation) -> Value:
        return self._looked_up(self.stores.table(node.name), node.variables, cached=True)

    def _scalar_deltarelation(self, node: ast.DeltaRelation) -> Value:
        return self._looked_up(self.stores.delta(node.name), node.variables, cached=True)

    def _looked_up(self, store: Store, variables: tuple[ast.Variable, ...], cached: bool) -> Value:
        keys = self._keys_of(store, variables)
        hashes = self.hashed(keys)
        marks = [("look up", store.address, *keys, w) for w in range(store.ring.words)]
        if not cached or marks[0] not in self.frame.cache:
            out = [self.code.column() for _ in marks]
            self.code.emit(o.LOOK_UP, self.frame.word, store.address, hashes, len(keys), *keys, *out)
            self.frame.cache.update(zip(marks, out, strict=True))
        return store.value(tuple(self.frame.cache[mark] for mark in marks))

    def forget_look_ups(self, store: Store) -> None:
        """After a map was changed, what was read from it in this frame is no longer so."""
        stale = [m for m in self.frame.cache if isinstance(m, tuple) and m[:2] == ("look up", store.address)]
        for mark in stale:
            del self.frame.cache[mark]

    def _scalar_call(self, node: ast.Call) -> Value:
        arguments = [self.scalar(a) for a in node.arguments]
        if node.function in ("/", "div") and kind_of(node.type) == FLOAT_KIND:
            columns = [self.arithmetic.to_float(self.frame, a).column for a in arguments]
            top = columns[0] if len(columns) == 2 else self.arithmetic.constant(FLOAT_KIND, 1.0).column
            return Value(FLOAT_KIND, (self.arithmetic.binary(o.DIVIDE, self.frame, 0, top, columns[-1]),))
        function = functions.lookup(node.function)
        ring = self.ring_of(node) if kind_of(node.type) == RING_KIND else None
        return call_function(self.arithmetic, self.frame, node, function, arguments, ring, self.dictionary)

    # ---- conditions: 1 or 0

    def _scalar_comparison(self, node: ast.Comparison) -> Value:
        column = self.compared(node.op, self.scalar(node.left), self.scalar(node.right))
        return Value(INT_KIND, (column,))

    def compared(self, op: str, a: Value, b: Value) -> Word:
        if RING_KIND in (a.kind, b.kind):
            raise UnsupportedError("elements of a ring of one's own cannot be compared")
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
        value = self.scalar(node.body)
        out = self.code.column()
        self.code.emit(o.NONZERO, self.frame.word, len(value.columns), *value.columns, out)
        return Value(INT_KIND, (out,))

    _scalar_domain = _scalar_exists

    # ---- statements that share their first rows

    def open_scan(self, store: Store) -> None:
        """A loop over all entries of a map.  REQUIRES: one row at work."""
        unused, slots, cursor = self.code.column(), self.code.column(), self.code.state(2)
        self.code.emit(o.SCAN_OPEN, cursor)
        _, end = self.open_loop()
        frame = self.child(self.code.constant(0))
        self.code.emit(o.SCAN_NEXT, frame.word, -1, store.address, cursor, unused, slots, end)
        self.enter(frame)
        self.scanned = store, slots

    def bind_leading(self, leading: ast.Node) -> None:
        """Bind the variables of a factor whose rows the open loop goes over."""
        if isinstance(leading, ast.DeltaRelation):
            self.bind_delta(leading)
            return
        assert isinstance(leading, ast.MapAccess)
        store, slots = self.scanned
        self._bind_slots(store, (*leading.inputs, *leading.keys), slots, frozenset())
        slots = self.column(self.frame, slots) if self.frame.parent is None else slots
        self.multiply(self._slot_value(store, slots))

    def expand_slots(self, store: Store, variables: tuple[ast.Variable, ...]) -> Word:
        """The slots of the entries that agree with what is bound, in a frame of their own."""
        self._expand(store, variables)
        new = next(v.name for v in variables if self.bound[v.name].origin[0] == "slot")
        return self.column(self.bound[new].frame, self.bound[new].origin[2])

    def move(self, source: Store, target: Store, access: ast.MapAccess) -> None:
        """Add all entries of one map to another; those that it does not have yet get their initial value."""
        variables = (*access.inputs, *access.keys)
        if not variables:
            self._move_total(source, target, access)
            return
        with self.inner():
            self.open_scan(source)
            slots = self.scanned[1]
            self.bound = {}
            self._bind_slots(source, variables, slots, frozenset())
            keys = [self.key(v.name, k) for v, k in zip(variables, target.key_kinds, strict=True)]
            if access.initial is not None:
                with self.inner():
                    self.keep(self._missing(target, tuple(range(len(keys))), keys))
                    self.value = self.scalar(access.initial)
                    self.accumulate(target, [self.column(self.bound[v.name].frame, k) for v, k in
                                             zip(variables, keys, strict=True)])  # fmt: skip
            self.value = self._slot_value(source, slots)
            self.accumulate(target, keys)

    def _move_total(self, source: Store, target: Store, access: ast.MapAccess) -> None:
        if access.initial is not None:
            with self.inner():
                self.keep(self._missing(target, (), []))
                self.value = self.scalar(access.initial)
                self.accumulate(target, [])
        with self.inner():
            self.value = self._looked_up(source, (), cached=False)
            self.accumulate(target, [])

    # ---- initial values

    def _make_initial(self, store: Store, node: ast.MapAccess) -> None:
        """Where no entry of the domain agrees with what is bound, store what the initial expression gives.

        Each key once, however many rows ask for it: the keys are gathered in a map first.
        """
        variables = (*node.inputs, *node.keys)
        assert node.initial is not None
        self._check_initial(store, node)
        names = self.names
        places = tuple(j for j, v in enumerate(variables) if v.name in names)
        wanted = self.stores.scratch(tuple(store.key_kinds[j] for j in places), INTEGER_RING)
        self.code.emit(o.CLEAR, wanted.address)
        with self.inner():
            keys = [self.key(variables[j].name, store.key_kinds[j]) for j in places]
            self.keep(self._missing(store, places, keys))
            keys = [self.key(variables[j].name, store.key_kinds[j]) for j in places]
            self.value = self.arithmetic.one()
            self.accumulate(wanted, keys)
        with self.inner():
            self._store_initial(store, node, places, wanted)
        self.forget_look_ups(store)

    def _check_initial(self, store: Store, node: ast.MapAccess) -> None:
        names = frozenset(v.name for v in (*node.inputs, *node.keys))
        assert node.initial is not None
        other = mentioned(node.initial) & self.names - names
        if other:
            message = f"the initial value of {node.name} depends on {', '.join(sorted(other))}, which is no key"
            raise UnsupportedError(message, span=node.initial.span)
        if any(b.origin[0] == "slot" and b.origin[1] == store.address for b in self.bound.values()):
            message = f"{node.name} would get initial values while it is read"
            raise UnsupportedError(message, span=node.span)

    def _missing(self, store: Store, places: tuple[int, ...], keys: list[Word]) -> Word:
        """1 where no entry of the domain agrees with bound keys."""
        out, missing, hashes = self.code.column(), self.code.column(), self.hashed(keys)
        if not places or len(places) == len(store.key_kinds):
            self.code.emit(o.FOUND, self.frame.word, store.address, hashes, len(keys), *keys, out)
        else:
            index = self.stores.index(store, places)
            self.code.emit(
                o.CHAIN_FOUND, self.frame.word, store.address, hashes, len(keys), *keys, out, index
            )
        self.code.emit(o.INVERT, self.frame.word, out, missing)
        return missing

    def _store_initial(
        self, store: Store, node: ast.MapAccess, places: tuple[int, ...], wanted: Store
    ) -> None:
        variables = (*node.inputs, *node.keys)
        assert node.initial is not None
        self.bound = {}
        if places:
            self.frame = self.code.frame(single=True)
            self.code.emit(o.ROOT, self.frame.word, 1)
            self.open_scan(wanted)
            self._bind_slots(wanted, tuple(variables[j] for j in places), self.scanned[1], frozenset())
        else:
            self.frame = self.code.frame(single=True)
            self.code.emit(o.ROOT, self.frame.word, 1)
            asked = self._looked_up(wanted, (), cached=False).column
            zero = self.code.constant(0)
            self.keep(self.arithmetic.binary(o.COMPARE, self.frame, COMPARISON["!="], asked, zero))
        self.value = None
        found = outputs(node.initial, self.names)
        if found:
            self.join(node.initial)
        else:
            self.multiply(self.scalar(node.initial))
        if all(v.name in self.bound for v in variables):
            keys = [self.key(v.name, k) for v, k in zip(variables, store.key_kinds, strict=True)]
            self.accumulate(store, keys)
