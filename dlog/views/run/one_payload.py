"""Owns a running query whose aggregates are one element of a ring.  Knows no text.

>>> from dlog.views.sql.files import parse_sql
>>> kept = OnePayload(parse_sql('''
...     CREATE STREAM R(a int, x double); CREATE STREAM S(a int, b int);
...     SELECT b, COUNT(*), SUM(x), SUM(x * x), AVG(x) FROM R NATURAL JOIN S GROUP BY b;'''))
>>> kept.apply("R", [(1, 2.0), (1, 4.0)])
>>> kept.apply("S", [(1, 7)])
>>> kept.result().to_pylist()
[{'b': 7, 'count': 2, 'sum': 6.0, 'sum_2': 20.0, 'avg': 3.0}]
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dlog.views.compound import compound
from dlog.views.query import Query
from dlog.views.run.maintained import Maintained
from dlog.views.tree.tree import VariableOrder


class OnePayload:
    """As `Maintained`: tables are loaded first, then streams change.  Sums are floats."""

    def __init__(self, query: Query, order: VariableOrder | None = None):
        query.check()
        self.compound = compound(query, order)
        self.maintained = Maintained(self.compound.query, order)

    def load(self, table: str, rows: Any) -> None:
        self.maintained.load(table, rows)

    def apply(self, stream: str, rows: Any, multiplicities: Any = None) -> None:
        self.maintained.apply(stream, rows, multiplicities)

    def result(self) -> pa.Table:
        """The columns of the given query.  O(groups) in Python."""
        table = self.maintained.result()
        *keys, elements = (column.to_pylist() for column in table.columns)
        shown = [a for a in self.compound.given.aggregates if not a.hidden]
        values = [[self.compound.shown(a, element) for element in elements] for a in shown]
        return pa.table([*keys, *values], names=[*table.column_names[:-1], *(a.name for a in shown)])
