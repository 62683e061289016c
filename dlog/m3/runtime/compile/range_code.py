"""Owns reads by range -> instructions: bounds as words, sums of ranges.

Knows no statements.  See `ranges` for what is read by range, `layout` for the words of a bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from dlog.m3.runtime import layout as o
from dlog.m3.runtime.compile.code import Word
from dlog.m3.runtime.compile.exact import EXACT_RING
from dlog.m3.runtime.compile.ranges import NEGATED, Bound, RangeRead, is_from_below
from dlog.m3.runtime.compile.rows import Rows
from dlog.m3.runtime.compile.stores import Store
from dlog.m3.runtime.compile.values import FLOAT_KIND, INT_KIND, Value
from dlog.m3.syntax import ast

COMPARISON = {op: i for i, op in enumerate(("=", "!=", "<", "<=", ">", ">="))}
_EQUAL = {1: ("<", "<="), -1: (">", ">=")}  # by the sign of the key: what is before both bounds


class RangeCode(Rows):
    """Code for ranges of a key."""

    def scalar(self, node: ast.Node) -> Value:
        """One value in each row: see `scalars`."""
        raise NotImplementedError

    def sums_in(self, store: Store, slots: Word) -> Value:
        """Exact sums as values: see `scalars`."""
        raise NotImplementedError

    def range_sum(self, read: RangeRead) -> Value:
        """The sum of the entries in a range, for each row."""
        store = read.store
        keys = self._bound_keys(store, read.variables, read.places)
        bounds = self.bound_words(store.key_kinds[read.key], read.bounds)
        order = self.stores.order(store, read.places, read.key)
        if store.is_exact:
            return self._exact_sum(store, order, bounds, keys)
        marks = [
            ("look up", store.address, "range", order, *bounds, *keys, w) for w in range(store.ring.words)
        ]
        if store.keeps or marks[0] not in self.frame.cache:
            out = [self.code.column() for _ in marks]
            self.code.work(2 * o.CHUNK)
            self.code.emit(
                o.RANGE_SUM, self.frame.word, store.address, order, len(keys), self.code.work(0), *bounds,
                *keys, *out,
            )  # fmt: skip
            self.frame.cache.update(zip(marks, out, strict=True))
        return store.value(tuple(self.frame.cache[mark] for mark in marks))

    def _exact_sum(self, store: Store, order: int, bounds: list[Word], keys: list[Word]) -> Value:
        """Exact sums are made in a map with an entry for each row."""
        sums = self.stores.scratch((INT_KIND,), EXACT_RING)
        rows, slots = self.arithmetic.own_rows(self.frame), self.code.column()
        self.code.emit(o.CLEAR, sums.address)
        self.code.emit(o.SLOTS, self.frame.word, sums.address, self.hashed([rows]), 1, rows, slots)
        self.code.emit(
            o.RANGE_MERGE, self.frame.word, store.address, order, len(keys), 0, sums.address, slots, *bounds,
            *keys,
        )  # fmt: skip
        return self.sums_in(sums, slots)

    def _bound_keys(
        self, store: Store, variables: Sequence[ast.Variable], places: Sequence[int]
    ) -> list[Word]:
        return [self.key(variables[j].name, store.key_kinds[j]) for j in places]

    def bound_words(self, kind: str, bounds: Sequence[Bound], are_alike: bool = False) -> list[Word]:
        """The words of two bounds from below and two from above; of two that are alike, one on each side."""
        lower: list[list[Word]] = []
        upper: list[list[Word]] = []
        for number, bound in enumerate(bounds):
            what, *columns = self._compared_with(kind, bound)
            if bound.op == "=":
                before, until = _EQUAL[bound.sign]
                lower.append([8 * what + COMPARISON[before], *columns])
                upper.append([8 * what + COMPARISON[until], *columns])
                continue
            op = NEGATED[bound.op] if is_from_below(bound) else bound.op
            is_lower = number == 0 if are_alike else is_from_below(bound)
            (lower if is_lower else upper).append([8 * what + COMPARISON[op], *columns])
        lower = lower or [[o.ALL_AFTER, 0, 0, 0]]
        upper = upper or [[o.ALL_BEFORE, 0, 0, 0]]
        none: list[Word] = [o.NO_BOUND, 0, 0, 0]
        return [word for side in (lower, upper) for words in [*side, none][:2] for word in words]

    def _compared_with(self, kind: str, bound: Bound) -> tuple[int, Word, Word, Word]:
        """What is compared, and columns: with which, and what is added to the key."""
        other, frame = self.scalar(bound.other), self.frame
        if bound.given is None:
            if FLOAT_KIND not in (kind, other.kind):
                return o.KEY_ITSELF, other.column, 0, 0
            what = o.KEY_ITSELF if kind == FLOAT_KIND else o.KEY_AS_FLOAT
            return what, self.arithmetic.key(frame, other, FLOAT_KIND), 0, 0
        given, is_plus = self.scalar(bound.given), bound.sign > 0
        if kind == given.kind == INT_KIND:
            return o.KEY_PLUS if is_plus else o.LESS_KEY, other.column, given.column, 0
        what = o.FLOAT_PLUS if is_plus else o.FLOAT_LESS
        if kind == INT_KIND:
            what = o.INT_PLUS_FLOAT if is_plus else o.FLOAT_LESS_INT
        return what, self.arithmetic.key(frame, other, FLOAT_KIND), *self.arithmetic.doubled(frame, given)
