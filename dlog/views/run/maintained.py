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

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from dlog.errors import DlogError
from dlog.m3.runtime.compile.stores import EXACT
from dlog.m3.runtime.runtime import Runtime
from dlog.m3.syntax import ast
from dlog.views.levels.program import DEFAULT, Levels, Options, levels, reconsidered
from dlog.views.m3.products import Parts, part_name, product_program
from dlog.views.m3.program import NATIVE, Style, m3_program
from dlog.views.nested import NestedQuery
from dlog.views.orders.orders import find_order
from dlog.views.query import Query
from dlog.views.run.level_results import level_result
from dlog.views.run.measured import measured
from dlog.views.run.refill import Refilled, refill
from dlog.views.run.tree_results import TreeResults
from dlog.views.tree.build import view_tree
from dlog.views.tree.payloads import Payloads
from dlog.views.tree.tree import VariableOrder, ViewTree


class Maintained:
    """A query with its views.  Tables are loaded first, then streams change.

    A batch costs its delta paths: for each row the look-ups of the views beside the path, and the rows of
    those that the row does not determine.
    """

    def __init__(
        self,
        query: Query | NestedQuery,
        order: VariableOrder | None = None,
        style: Style = NATIVE,
        sizes: Mapping[str, int] | None = None,
        products: Mapping[str, Parts] | None = None,
        floats: str = EXACT,
        threads: int | None = None,
        options: Options = DEFAULT,
    ):
        """Of a view tree: `order`, `style`, `sizes`, and `products`, streams whose updates may come as
        products, with their columns part by part.  Of levels of maps: `options`.  `floats` and `threads` are
        those of `Runtime`.
        """
        query.check()
        self.query, self.products = query, dict(products or {})
        self._read: Callable[[], pa.Table]
        self._floats, self._threads = floats, threads
        self.refilled: Refilled | None = None  # what was done when maps were last chosen again
        if isinstance(query, NestedQuery):
            _check_no_tree(query, order, self.products)
            self.levels = levels(query, options, apart=True)
            self.runtime = self._run(self.levels.m3)
            self._read = lambda: level_result(self.levels, self.runtime)
            return
        self.tree: ViewTree = view_tree(query, order or find_order(query, sizes))
        payloads = Payloads(query, self.tree)
        program = m3_program(query, self.tree, style)
        if self.products:
            program = product_program(query, self.tree, self.products, style)
        self.runtime = self._run(program)
        self._read = TreeResults(query, self.tree, payloads, self.runtime).table

    def _run(self, program: ast.Program, beside: Runtime | None = None) -> Runtime:
        """A runtime; with the memory and the texts of another one."""
        arena = beside.maps.arena if beside is not None else None
        dictionary = beside.dictionary if beside is not None else None
        return Runtime(
            program, dictionary=dictionary, floats=self._floats, threads=self._threads, arena=arena
        )

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

    def reconsider(self, rows: Callable[[str], Any]) -> bool:
        """Choose the maps of a query by levels again, by the rates, sizes and maps that were measured since
        they were chosen; whether they are others now.

        `rows` gives all rows that a relation has now, from which new maps are computed; maps that stay keep
        what they have.  Costs the search, and to load what new maps read.
        """
        if not isinstance(self.query, NestedQuery):
            raise DlogError("a view tree has no choice of maps", help="parse_sql(text, levels=True)")
        found = reconsidered(self.levels, measured(self.levels, self.runtime))
        if found is self.levels:
            return False

        self.go_over(found, rows)
        return True

    def go_over(self, found: Levels, rows: Callable[[str], Any]) -> None:
        """Maintain the same query by other maps: see `reconsider`."""

        def feed(runtime: Runtime, source: ast.Source) -> None:
            (runtime.load if source.kind == ast.TABLE else runtime.apply)(source.name, rows(source.name))

        before, runtime = self.runtime, self._run(found.m3, self.runtime)
        try:
            self.refilled = refill(
                self.levels, before, found, runtime, lambda program: self._run(program, before), feed
            )
        except BaseException:
            runtime.release()
            raise
        before.release()
        self.levels, self.runtime = found, runtime

    def result(self) -> pa.Table:
        """One row for each group that has any assignment, in the order of ORDER BY, then of its keys; without
        groups always one row.  O(groups log groups).
        """
        self.runtime.ready()
        return self._read()


def _check_no_tree(query: NestedQuery, order: VariableOrder | None, products: Mapping[str, Parts]) -> None:
    if order is not None or products:
        what = "variable order" if order is not None else "product"
        message = f"levels of maps have no {what}: {query.reason}"
        raise DlogError(message, help="leave it out")
