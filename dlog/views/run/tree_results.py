"""Owns the result of a query that a view tree maintains: from the maps of a runtime to a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dlog.m3.runtime.runtime import Runtime, plain
from dlog.views.query import Query
from dlog.views.run.columns import VALUE, looked_up, quotients, sorted_by
from dlog.views.tree.payloads import Payload, Payloads, Shown
from dlog.views.tree.tree import ViewTree


@dataclass(frozen=True)
class TreeResults:
    """Reads results of a query off the root of its tree."""

    query: Query
    tree: ViewTree
    payloads: Payloads
    runtime: Runtime

    def table(self) -> pa.Table:
        """One row for each group that has any assignment, in the order of its keys; without free variables
        always one row.  O(groups log groups).
        """
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
        found = table.select([*self.query.free, *(s.aggregate.name for s in shown)])
        return sorted_by(found, self.query.order, groups.select(list(self.query.free)))

    # ---- columns of the result

    def _groups(self) -> pa.Table:
        """The groups that have rows: those that are counted, or whose element has a count of rows.  The other
        numbers of an element may be left with a rounding error.
        """
        payloads = self.payloads.of(self.tree.root)
        if () in payloads:
            return self._map(())
        table = self._map(payloads[0])
        elements = table[VALUE].to_pylist()
        return table.filter(pa.array([bool(element["1"]) for element in elements], pa.bool_()))

    def _map(self, payload: Payload) -> pa.Table:
        """The entries of one payload of the root, under the query's names."""
        entries = self.runtime[self.payloads.name(self.tree.root, payload)]
        return entries.rename_columns([*self.tree.root.keys, VALUE])

    def _column(self, shown: Shown, groups: pa.Table, keys: list[str]) -> pa.ChunkedArray:
        """The values of an aggregate, group by group; 0 where a map has no entry."""
        import pyarrow.compute as pc

        total = None
        for payload in shown.payloads:
            found = looked_up(groups, self._map(payload), keys)
            total = found if total is None else pc.add(total, found)
        if shown.aggregate.divisor is None:
            return total
        by = next(s for s in self.payloads.shown if s.aggregate.name == shown.aggregate.divisor)
        return quotients(pc.cast(total, pa.float64()), pc.cast(self._column(by, groups, keys), pa.float64()))

    def _totals(self, shown: Shown) -> Any:
        """A number, without groups."""
        parts = [self._map(payload)[VALUE] for payload in shown.payloads]
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
