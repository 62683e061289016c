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
from dlog.m3.runtime.runtime import Runtime
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
    ):
        """`products`: streams whose updates may come as products, with their columns part by part."""
        query.check()
        self.query, self.products = query, dict(products or {})
        self.tree: ViewTree = view_tree(query, order or find_order(query, sizes))
        self.payloads = Payloads(query, self.tree)
        program = m3_program(query, self.tree, style)
        if self.products:
            program = product_program(query, self.tree, self.products, style)
        self.runtime = Runtime(program)

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
            values = [self._totals(s) for s in shown]
            return pa.table([pa.array([v]) for v in values], names=[s.aggregate.name for s in shown])
        groups = self._map(())
        keys = list(self.tree.root.keys)
        table = groups.select(keys)
        for one in shown:
            table = table.append_column(one.aggregate.name, self._column(one, groups, keys))
        order = [(key, "ascending") for key in self.query.free]
        return table.select([*self.query.free, *(s.aggregate.name for s in shown)]).sort_by(order)

    # ---- columns of the result

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
        return pc.divide(pc.cast(total, pa.float64()), pc.cast(self._column(by, groups, keys), pa.float64()))

    def _totals(self, shown: Shown) -> Any:
        """Without groups: a number, or an element of a ring as Arrow shows it; None if there is none."""
        parts = [self._map(payload)["value of the map"] for payload in shown.payloads]
        values = [part[0].as_py() if len(part) else None for part in parts]
        if not self.payloads.types.is_number(self.payloads.type(shown.payloads[0])):
            return values[0]
        total = sum(value or 0 for value in values)
        if shown.aggregate.divisor is None:
            return total
        by = next(s for s in self.payloads.shown if s.aggregate.name == shown.aggregate.divisor)
        count = self._totals(by)
        return total / count if count else None


def _looked_up(groups: pa.Table, entries: pa.Table, keys: list[str]) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    if entries.select(keys).equals(groups.select(keys)):  # usually maps of one view
        return entries["value of the map"]
    numbered = groups.select(keys).append_column("row", pa.array(np.arange(groups.num_rows)))
    joined = numbered.join(entries, keys, join_type="left outer").sort_by("row")
    zero = pa.scalar(0, entries["value of the map"].type)
    return pc.fill_null(joined["value of the map"], zero)
