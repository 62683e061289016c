"""Streams and tables for the queries in `sql/`, and for `order_book.dl` and `open_orders.dl`, which ask the
same in rules.  What they must give is computed by DuckDB.

A line of a stream ends with its multiplicity: 1 inserts a row, -1 deletes one that an earlier line inserted.
Numbers are such that sums of products are exact, whatever the order in which they are added.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from random import Random

import duckdb
from common import Example, Row, text

QUERIES = sorted((Path(__file__).resolve().parent.parent / "sql").glob("*.sql"))
SOURCE = re.compile(r"CREATE (STREAM|TABLE) (\w+)\((.*?)\)\s*FROM FILE 'facts/(\w+)\.tbl'", re.DOTALL)
DUCK_TYPES = {"int": "INTEGER", "double": "DOUBLE", "varchar(10)": "VARCHAR", "date": "DATE"}
HOUSING = {"house": 11, "shop": 6, "institution": 3, "restaurant": 3, "demographics": 5, "transport": 4}


def main() -> None:
    sql = Example("sql")
    data = {**small(sql), **housing(sql), **retailer(sql), **order_book(sql), **orders(sql), **triangles()}
    streams = {file for query in QUERIES for kind, _, _, file in sources(query) if kind == "STREAM"}
    now = {}
    for file, rows in data.items():
        events = with_deletions(sql, rows) if file in streams else [(row, 1) for row in rows]
        now[file] = list(
            (Counter(r for r, n in events if n > 0) - Counter(r for r, n in events if n < 0)).elements()
        )
        lines = ["|".join([*map(text, row), *([str(n)] if file in streams else [])]) for row, n in events]
        sql.path("facts", f"{file}.tbl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for query in QUERIES:
        if "[" not in query.read_text(encoding="utf-8"):  # a ring of one's own is not SQL
            sql.path("expected", f"{query.stem}.csv").write_text(answer(query, now), encoding="utf-8")
    in_rules(now)


# Rows


def with_deletions(example: Example, rows: Sequence[Row]) -> list[tuple[Row, int]]:
    """Every row is inserted; some are deleted later, and some of these come again."""
    events = [(row, 1) for row in rows]
    for row in example.random.sample(list(rows), len(rows) // 5):
        events.append((row, -1))
        if example.random.random() < 0.3:
            events.append((row, 1))
    return events


def numbers(example: Example, size: int, *columns: range) -> list[Row]:
    return [tuple(example.random.choice(column) for column in columns) for _ in range(size)]


def small(sql: Example) -> dict[str, list[Row]]:
    """The running example, and the four relations of the hybrid tree."""
    halves = [(a, b / 2, f / 4) for a, b, f in numbers(sql, 60, range(12), range(20), range(40))]
    return {
        "r": halves,
        "s": numbers(sql, 40, range(12), range(8), range(5)),
        "t": numbers(sql, 20, range(8), range(30)),
        "hybrid_r": numbers(sql, 60, range(1, 7), range(5), range(9), range(9)),
        "hybrid_s": numbers(sql, 30, range(1, 7), range(5), range(9)),
        "hybrid_t": numbers(sql, 15, range(1, 7), range(5)),
        "hybrid_u": numbers(sql, 10, range(5), range(9)),
    }


def triangles() -> dict[str, list[Row]]:
    """The sides of triangles, most of them at one corner."""
    rng = Random(3)
    corners = [0] * 8 + list(range(1, 12))
    return {
        f"triangle_{name}": [(rng.choice(corners), rng.choice(corners)) for _ in range(50)] for name in "rst"
    }


def housing(sql: Example) -> dict[str, list[Row]]:
    codes = range(1000, 1020)
    return {name: numbers(sql, 40, codes, *[range(1, 9)] * (width - 1)) for name, width in HOUSING.items()}


def retailer(sql: Example) -> dict[str, list[Row]]:
    rng = sql.random
    places, days, products, zips = range(1, 7), range(101, 111), range(501, 513), range(7001, 7005)
    inventory = {(rng.choice(places), rng.choice(days), rng.choice(products)) for _ in range(120)}
    quarters = [[rng.randrange(200) / 4 for _ in range(8)] for _ in places]
    return {
        "inventory": [(*key, rng.randrange(50)) for key in sorted(inventory)],
        "location": [
            (p, rng.choice(zips), *(rng.randrange(100) for _ in range(5)), *far)
            for p, far in zip(places, quarters, strict=True)
        ],
        "census": [(z, *(rng.randrange(5000) for _ in range(15))) for z in zips],
        "item": [(p, p % 6, p % 4, p % 3, rng.randrange(4, 400) / 4) for p in products],
        "weather": [
            (p, d, rng.randrange(2), rng.randrange(2), rng.randrange(30), rng.randrange(-9, 10),
             rng.randrange(40) / 2, rng.randrange(2))
            for p in places for d in days
        ],
    }  # fmt: skip


def order_book(sql: Example) -> dict[str, list[Row]]:
    def offers(low: int) -> list[Row]:
        prices = numbers(sql, 80, range(1, 9), range(1, 20), range(4 * low, 4 * low + 24))
        return [(i, broker, 10 * volume, price / 4) for i, (broker, volume, price) in enumerate(prices)]

    return {"bids": offers(98), "asks": offers(100)}


def orders(sql: Example) -> dict[str, list[Row]]:
    rng = sql.random
    day = date(1995, 3, 15)
    customers = [(c, ("BUILDING", "MACHINERY", "FURNITURE")[c % 3]) for c in range(20)]
    placed = [
        (o, rng.randrange(20), day + timedelta(days=rng.randrange(-90, 30)), rng.randrange(1, 4))
        for o in range(70)
    ]
    items = [
        (
            o,
            n,
            rng.randrange(100, 9000) / 4,
            rng.randrange(4) / 16,
            when + timedelta(days=rng.randrange(1, 60)),
        )
        for o, _, when, _ in placed
        for n in range(rng.randrange(1, 5))
    ]
    return {"customer": customers, "orders": placed, "lineitem": items}


# Answers


def sources(query: Path) -> list[tuple[str, str, str, str]]:
    """(kind, relation, columns, file) of each relation that a query reads."""
    return SOURCE.findall(query.read_text(encoding="utf-8"))


def answer(query: Path, now: dict[str, list[Row]]) -> str:
    """What DuckDB gives, sorted; numbers so that they are read back as they are."""
    db = duckdb.connect()
    for _, relation, columns, file in sources(query):
        typed = [column.rsplit(" ", 1) for column in re.sub(r"\s+", " ", columns).split(", ")]
        db.execute(f"create table {relation}({', '.join(f'{name} {DUCK_TYPES[t]}' for name, t in typed)})")
        db.executemany(f"insert into {relation} values ({', '.join('?' for _ in typed)})", now[file])
    select = re.search(r"^SELECT.*?;", query.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert select is not None
    rows = db.sql(select.group()).fetchall()
    return "".join(
        "|".join(repr(v) if isinstance(v, float) else str(v) for v in row) + "\n" for row in sorted(rows)
    )


def in_rules(now: dict[str, list[Row]]) -> None:
    """The same for rules, which have sets: every row has its own key."""
    book = Example("order_book")
    for file, name in (("bids", "bid"), ("asks", "ask")):
        book.facts(name, [(i, broker, float(volume), price) for i, broker, volume, price in now[file]])
    spread = read_answer("order_book", now)
    book.expected("spread", [(int(broker), float(value)) for broker, value, _ in spread])
    book.expected("pairs", [(int(broker), int(count)) for broker, _, count in spread])
    open_orders = Example("open_orders")
    for file in ("customer", "orders", "lineitem"):
        open_orders.facts(file, now[file])
    revenue = read_answer("open_orders", now)
    open_orders.expected("revenue", [(int(o), day, int(p), float(value)) for o, day, p, value in revenue])
    by_segment = read_answer("segments", now)
    open_orders.expected("sales", [(row[0], float(row[1])) for row in by_segment])
    open_orders.expected("lines", [(row[0], int(row[2])) for row in by_segment])
    open_orders.expected("mean_discount", [(row[0], float(row[3])) for row in by_segment])


def read_answer(name: str, now: dict[str, list[Row]]) -> list[list[str]]:
    query = next(path for path in QUERIES if path.stem == name)
    return [line.split("|") for line in answer(query, now).splitlines()]


if __name__ == "__main__":
    main()
