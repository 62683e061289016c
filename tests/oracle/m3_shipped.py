"""The M3 programs that dlog ships: their events, read from the files they name, and what SQL says of them.

Tests of the runtime run a program on `events` in steps and compare with `Naive` and with `sql_results`.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from dlog.m3.syntax import ast
from tests.oracle.m3_naive import Naive, Row
from tests.oracle.m3_programs import Event

FOLDER = Path(__file__).resolve().parents[2] / "programs" / "m3"
PROGRAMS = sorted(FOLDER.glob("*.m3"))
BATCH_SIZE = 7


def rows_of(source: ast.Source) -> list[tuple[Any, Row, int]]:
    """(order, row, multiplicity) of each line: as events of a5, or with a last column of multiplicities."""
    assert source.file is not None
    found = []
    for number, line in enumerate((FOLDER / source.file).read_text(encoding="utf-8").splitlines()):
        cells = line.split(source.delimiter)
        order, count = number, 1
        if source.deletions:
            order, event, *cells = int(cells[0]), cells[1], *cells[2:]
            count = 1 if event == "1" else -1
        elif len(cells) == len(source.columns) + 1:
            count = int(cells.pop())
        row = tuple(
            _value(cell, column.type.name) for cell, column in zip(cells, source.columns, strict=True)
        )
        found.append((order, row, count))
    return found


def _value(cell: str, type_: str) -> Any:
    if type_ in ("byte", "short", "int", "long"):
        return int(cell)
    if type_ in ("float", "double"):
        return float(cell)
    return datetime.date.fromisoformat(cell) if type_ == "date" else cell


def tables_of(program: ast.Program) -> dict[str, list[Row]]:
    return {s.name: [row for _, row, _ in rows_of(s)] for s in program.sources if s.kind == ast.TABLE}


def events_of(program: ast.Program) -> list[Event]:
    """By the order column where there is one, else in turn from each stream; in batches if triggers are."""
    streams = [s for s in program.sources if s.kind == ast.STREAM]
    lines = [(order, i, s.name, row, n) for i, s in enumerate(streams) for order, row, n in rows_of(s)]
    lines.sort(key=lambda line: line[:2])
    if not any(t.event == ast.BATCH for t in program.triggers):
        return [Event(ast.INSERT if n > 0 else ast.DELETE, name, ((row, n),)) for _, _, name, row, n in lines]
    events = []
    for start in range(0, max(order for order, *_ in lines) + 1, BATCH_SIZE):
        for stream in streams:
            rows = tuple(
                (row, n) for order, _, name, row, n in lines
                if name == stream.name and start <= order < start + BATCH_SIZE
            )  # fmt: skip
            if rows:
                events.append(Event(ast.BATCH, stream.name, rows))
    return events


def apply(oracle: Naive, event: Event) -> None:
    if event.kind == ast.BATCH:
        oracle.batch(event.relation, event.rows)
    else:
        ((row, _),) = event.rows
        (oracle.insert if event.kind == ast.INSERT else oracle.delete)(event.relation, row)


# The same queries in SQL; those of a program `x.a5.m3` are those of `x.m3`.

_ABOVE = "coalesce((SELECT sum(volume) FROM {0} x WHERE x.price > {1}.price), 0)"
_TOP = "0.25 * (SELECT sum(volume) FROM {0}) > " + _ABOVE
_STAR = "house NATURAL JOIN shop NATURAL JOIN school NATURAL JOIN cafe NATURAL JOIN people NATURAL JOIN bus"
_SALES = "FROM sales s JOIN shops t ON s.shop = t.shop"
VWAP = {"VWAP": f"SELECT sum(b.price * b.volume) FROM bids b WHERE {_TOP.format('bids', 'b')}"}
SQL: dict[str, dict[str, str]] = {
    "vwap": VWAP,
    "vwap_batch": VWAP,
    "missed_trades": {
        "MISSED": f"""SELECT b.broker, sum(a.price * a.volume - b.price * b.volume) FROM bids b, asks a
            WHERE {_TOP.format("asks", "a")} AND {_TOP.format("bids", "b")} GROUP BY b.broker"""
    },
    "order_book": {
        "LEVELS": "SELECT count(DISTINCT price) FROM bids",
        "FAR": """SELECT b.broker, sum(a.volume - b.volume) FROM bids b, asks a
            WHERE a.broker = b.broker AND (a.price - b.price > 2 OR b.price - a.price > 2) GROUP BY ALL""",
    },
    "tpch3": {
        "REVENUE": """SELECT l.orderkey, o.orderdate, o.shippriority, sum(l.price * (1 - l.discount))
            FROM customer c, orders o, lineitem l
            WHERE c.segment = 'BUILDING' AND c.custkey = o.custkey AND l.orderkey = o.orderkey
            AND o.orderdate < DATE '1995-03-15' AND l.shipdate > DATE '1995-03-15' GROUP BY ALL"""
    },
    "star_sum": {"SUMS": f"SELECT sum(price * sales) FROM {_STAR}"},
    "star_sum_rows": {"SUMS": f"SELECT sum(price * sales) FROM {_STAR}"},
    "constructs": {
        "BY_TOWN": f"SELECT town, sum(amount) {_SALES} GROUP BY town",
        "BY_MONTH": "SELECT year(day), month(day), sum(amount) FROM sales GROUP BY ALL",
        "SELECTED": "SELECT count(*) FROM sales WHERE shop IN ('north', 'south') AND amount >= 2.5",
        "MEAN": "SELECT shop, avg(amount) FROM sales GROUP BY shop",
        "SHOPS_SEEN": "SELECT count(DISTINCT shop) FROM sales",
        "SIZES": "SELECT greatest(pieces, 3), count(*) FROM sales GROUP BY ALL",
        "LARGE_SHOPS": "SELECT shop, sum(pieces) FROM sales GROUP BY shop HAVING sum(pieces) > 10",
    },
    "constructs_batch": {
        "BY_SHOP": "SELECT shop, sum(amount) FROM sales GROUP BY shop",
        "BY_TOWN": f"SELECT town, sum(amount) {_SALES} GROUP BY town",
        "LAST_YEARS": "SELECT shop, sum(pieces) FROM sales WHERE day >= DATE '1995-01-01' GROUP BY shop",
    },
    "regression": {
        "COFACTOR": """SELECT count(*), sum(price), sum(sales), sum(price * price), sum(price * sales),
            sum(sales * sales) FROM house NATURAL JOIN shop"""
    },
    "inputs": {
        "ABOVE_TEN": "SELECT 10.5, sum(volume) FROM bids WHERE price > 10.5",
        "DIFFERENCE": "SELECT sum(volume - broker) FROM bids",
    },
}


def sql_of(path: Path) -> dict[str, str]:
    return SQL[path.name.split(".")[0]]


class Relations:
    """What is in the relations after some events, as DuckDB's tables."""

    def __init__(self, program: ast.Program):
        self.program = program
        self.rows: dict[str, list[Row]] = {s.name: [] for s in program.sources}
        self.rows |= tables_of(program)

    def apply(self, event: Event) -> None:
        for row, count in event.rows:
            (self.rows[event.relation].append if count > 0 else self.rows[event.relation].remove)(row)

    def results(self, queries: dict[str, str]) -> dict[str, dict[Row, Any]]:
        """Rows to values, without those that are 0."""
        with duckdb.connect() as connection:
            for source in self.program.sources:
                connection.register(source.name.lower(), self._table(source))
            return {name: self._result(connection.sql(text).fetchall()) for name, text in queries.items()}

    def _table(self, source: ast.Source) -> pa.Table:
        types = {"date": pa.date32(), "string": pa.string(), "double": pa.float64(), "float": pa.float64()}
        schema = pa.schema([(c.name.lower(), types.get(c.type.name, pa.int64())) for c in source.columns])
        rows = self.rows[source.name]
        columns = [[row[i] for row in rows] for i in range(len(source.columns))]
        return pa.table([pa.array(c, t) for c, t in zip(columns, schema.types, strict=True)], schema=schema)

    def _result(self, rows: Iterable[tuple[Any, ...]]) -> dict[Row, Any]:
        return {row[:-1]: float(row[-1]) for row in rows if row[-1]}


class Cofactor:
    """An element of the cofactor ring, for the oracle: (count, sums, sums of products) as dictionaries."""

    def __init__(self, count: Any, sums: dict[int, Any], products: dict[tuple[int, int], Any]):
        self.count, self.sums, self.products = count, sums, products

    @staticmethod
    def lift(parameters: tuple[int, ...], *values: Any) -> Cofactor:
        sums = dict(enumerate(values, parameters[0] if parameters else 0))
        return Cofactor(1, sums, {(i, j): x * y for i, x in sums.items() for j, y in sums.items()})

    def __add__(self, other: Cofactor) -> Cofactor:
        return Cofactor(
            self.count + other.count, _plus(self.sums, other.sums), _plus(self.products, other.products)
        )

    def __mul__(self, other: Any) -> Cofactor:
        if not isinstance(other, Cofactor):
            other = Cofactor(other, {}, {})
        sums = _plus(_times(self.sums, other.count), _times(other.sums, self.count))
        products = _plus(_times(self.products, other.count), _times(other.products, self.count))
        for i, x in self.sums.items():
            for j, y in other.sums.items():
                products = _plus(_plus(products, {(i, j): x * y}), {(j, i): x * y})
        return Cofactor(self.count * other.count, sums, products)

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        assert other == 0
        return not (self.count or any(self.sums.values()) or any(self.products.values()))

    __hash__ = None  # type: ignore[assignment]

    def flat(self, size: int) -> list[float]:
        """Count, sums, and the upper triangle of products."""
        pairs = [(i, j) for i in range(size) for j in range(i, size)]
        numbers = [self.count, *(self.sums.get(i, 0) for i in range(size))]
        return [float(x) for x in (*numbers, *(self.products.get(pair, 0) for pair in pairs))]


def _plus(a: dict, b: dict) -> dict:
    return {k: a.get(k, 0) + b.get(k, 0) for k in {**a, **b}}


def _times(a: dict, factor: Any) -> dict:
    return {k: v * factor for k, v in a.items()}
