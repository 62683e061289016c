"""Owns a running query: its view tree maintained by the M3 runtime, changes in, the result out.  Knows no
text.

>>> from dlog.m3 import ast
>>> from dlog.views.query import Atom, Query, count, total
>>> long = ast.TypeRef("long")
>>> columns = lambda *names: tuple(ast.Column(name, long) for name in names)
>>> kept = Maintained(Query(
...     sources=(ast.Source("stream", "R", columns("a", "b")), ast.Source("stream", "S", columns("b", "c"))),
...     atoms=(Atom("R", ("a", "b")), Atom("S", ("b", "c"))),
...     free=("b",),
...     aggregates=(total("s", ast.Variable("a"), ast.Variable("c")), count("n")),
... ))
>>> kept.apply("R", [(1, 7), (-1, 7), (5, 8)])
>>> kept.apply("S", [(7, 10), (8, 2)])
>>> kept.result().to_pylist()
[{'b': 7, 's': 0, 'n': 2}, {'b': 8, 's': 10, 'n': 1}]
>>> kept.apply("R", [(5, 8)], [-1])
>>> kept.result().to_pylist()
[{'b': 7, 's': 0, 'n': 2}]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dlog.errors import DlogError
from dlog.m3.runtime.compile.stores import EXACT
from dlog.m3.runtime.runtime import Runtime, plain
from dlog.views.m3.products import Parts, part_name, product_program
from dlog.views.m3.program import NATIVE, Style, m3_program
from dlog.views.orders.orders import find_order
from dlog.views.query import Query
from dlog.views.tree.build import view_tree
from dlog.views.tree.payloads import Payload, Payloads, Shown
from dlog.views.tree.tree import VariableOrder, ViewTree


class Maintained:
    """A query with its views.  Tables are loaded first, then streams change.

    A batch costs its delta paths: for each row the look-ups of the views beside the path, and the rows of
    those that the row does not determine.
    """

    def __init__(
        self,
        query: Query,
        order: VariableOrder | None = None,
        style: Style = NATIVE,
        sizes: Mapping[str, int] | None = None,
        products: Mapping[str, Parts] | None = None,
        floats: str = EXACT,
        threads: int | None = None,
    ):
        """`products`: streams whose updates may come as products, with their columns part by part.  `floats`
        and `threads` are those of `Runtime`.
        """
        query.check()
        self.query, self.products = query, dict(products or {})
        self.tree: ViewTree = view_tree(query, order or find_order(query, sizes))
        self.payloads = Payloads(query, self.tree)
        program = m3_program(query, self.tree, style)
        if self.products:
            program = product_program(query, self.tree, self.products, style)
        self.runtime = Runtime(program, floats=floats, threads=threads)

    def load(self, table: str, rows: Any) -> None:
        self.runtime.load(table, rows)

    def apply(self, stream: str, rows: Any, multiplicities: Any = None) -> None:
        """Rows that are inserted, or deleted where their multiplicity is -1."""
        self.runtime.apply(stream, rows, multiplicities)

    def apply_product(self, stream: str, *parts: Any, multiplicities: Sequence[Any] | None = None) -> None:
        """An update that is the product of its parts: every row of the first with every row of the second,
        and so on, as often as the product of their multiplicities.  Costs what the parts cost if views
        need no variables of several parts together.
        """
        expected = self.products.get(stream)
        if expected is None:
            raise DlogError(f"{stream} has no parts", help=f'Maintained(query, products={{"{stream}": ...}})')
        if len(parts) != len(expected) or len(multiplicities or expected) != len(expected):
            raise DlogError(f"{stream} has {len(expected)} parts, not {len(parts)}")
        if not all(len(rows) for rows in parts):
            return
        times = multiplicities or [None] * len(parts)
        for number, (rows, often) in enumerate(zip(parts, times, strict=True), 1):
            self.runtime.apply(part_name(stream, number), rows, often)

    def result(self) -> pa.Table:
        """One row for each group that has any assignment, in the order of its keys; without free variables
        always one row.  O(groups log groups).
        """
        self.runtime.ready()
        shown = [s for s in self.payloads.shown if not s.aggregate.hidden]
        if not self.query.free:
            values = [self._element(s) if self._is_element(s) else self._totals(s) for s in shown]
            return pa.table([pa.array([v]) for v in values], names=[s.aggregate.name for s in shown])
        groups = self._groups()
        keys = list(self.tree.root.keys)
        table = groups.select(keys)
        for one in shown:
            column = self._elements(one, groups) if self._is_element(one) else self._column(one, groups, keys)
            table = table.append_column(one.aggregate.name, column)
        order = [(key, "ascending") for key in self.query.free]
        return table.select([*self.query.free, *(s.aggregate.name for s in shown)]).sort_by(order)

    # ---- columns of the result

    def _groups(self) -> pa.Table:
        """The groups that have rows: those that are counted, or whose element has a count of rows.  The other
        numbers of an element may be left with a rounding error.
        """
        payloads = self.payloads.of(self.tree.root)
        if () in payloads:
            return self._map(())
        table = self._map(payloads[0])
        elements = table["value of the map"].to_pylist()
        return table.filter(pa.array([bool(element["1"]) for element in elements], pa.bool_()))

    def _map(self, payload: Payload) -> pa.Table:
        """The entries of one payload of the root, under the query's names."""
        entries = self.runtime[self.payloads.name(self.tree.root, payload)]
        return entries.rename_columns([*self.tree.root.keys, "value of the map"])

    def _column(self, shown: Shown, groups: pa.Table, keys: list[str]) -> pa.ChunkedArray:
        """The values of an aggregate, group by group; 0 where a map has no entry."""
        import pyarrow.compute as pc

        total = None
        for payload in shown.payloads:
            found = _looked_up(groups, self._map(payload), keys)
            total = found if total is None else pc.add(total, found)
        if shown.aggregate.divisor is None:
            return total
        by = next(s for s in self.payloads.shown if s.aggregate.name == shown.aggregate.divisor)
        return _quotients(pc.cast(total, pa.float64()), pc.cast(self._column(by, groups, keys), pa.float64()))

    def _totals(self, shown: Shown) -> Any:
        """A number, without groups."""
        parts = [self._map(payload)["value of the map"] for payload in shown.payloads]
        total = sum(part[0].as_py() if len(part) else 0 for part in parts)
        if shown.aggregate.divisor is None:
            return total
        by = next(s for s in self.payloads.shown if s.aggregate.name == shown.aggregate.divisor)
        count = self._totals(by)
        return total / count if count else 0.0

    # ---- elements of rings, which the program's queries add

    def _is_element(self, shown: Shown) -> bool:
        return not self.payloads.types.is_number(self.payloads.type(shown.payloads[0]))

    def _name(self, shown: Shown) -> str:
        """Of its query in the program."""
        return self.runtime.program.queries[self.payloads.shown.index(shown)].name

    def _element(self, shown: Shown) -> Any:
        """As Arrow shows it."""
        return self.runtime[self._name(shown)].column(0)[0].as_py()

    def _elements(self, shown: Shown, groups: pa.Table) -> pa.Array:
        """Group by group; zero where the sum has no entry.  O(groups) in Python."""
        *keys, values = self.runtime[self._name(shown)].columns
        found = dict(zip(zip(*(k.to_pylist() for k in keys), strict=True), values.to_pylist(), strict=True))
        names = list(self.tree.root.keys)
        rows = zip(*(groups[name].to_pylist() for name in names), strict=True)
        ring = self.runtime.compiled.results[self._name(shown)].store.ring
        zero = plain(ring.values(ring.zeros(1))[0])
        return pa.array([found.get(row, zero) for row in rows])


def _quotients(totals: pa.ChunkedArray, divisors: pa.ChunkedArray) -> pa.Array:
    """Quotients; 0 where the divisor is 0, as in M3."""
    above, below = (np.asarray(column, np.float64) for column in (totals, divisors))
    return pa.array(np.divide(above, below, out=np.zeros(len(above)), where=below != 0))


def _looked_up(groups: pa.Table, entries: pa.Table, keys: list[str]) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    if entries.select(keys).equals(groups.select(keys)):  # usually maps of one view
        return entries["value of the map"]
    numbered = groups.select(keys).append_column("row", pa.array(np.arange(groups.num_rows)))
    joined = numbered.join(entries, keys, join_type="left outer").sort_by("row")
    zero = pa.scalar(0, entries["value of the map"].type)
    return pc.fill_null(joined["value of the map"], zero)
