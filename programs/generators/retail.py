"""A year of orders for `retail.dl`. The reports are computed by DuckDB."""

from datetime import date, timedelta
from decimal import Decimal

import duckdb
from common import Example, Row, Scaled

CATEGORIES = ["books", "games", "garden", "kitchen", "music"]
SCHEMA = """
create table product(p varchar, c varchar, price decimal(8, 2));
create table orders(o integer, c varchar, day date);
create table line(o integer, p varchar, q integer);
"""
VIEWS = """
create view amount as select o, p, (price * q)::decimal(12, 2) a from line join product using (p);
create view total as select o, sum(a)::decimal(12, 2) t, count(*) n from amount group by o;
create view sold as select p, sum(q)::bigint n, count(*) k, min(q) a, max(q) b, avg(q) m from line group by p;
create view customer as select c, min(day) a, max(day) b, count(*) n from orders group by c;
create view together as
  select l.p, r.p r, count(*) n from line l join line r on l.o = r.o and l.p < r.p group by all;
"""
REPORTS = {
    "lines": "select o, n from total",
    "sold": "select p, n from sold",
    "orders": "select p, k from sold",
    "fewest": "select p, a from sold",
    "most": "select p, b from sold",
    "usual": "select p, m from sold",
    "never_sold": "select p from product where p not in (select p from line)",
    "top_seller": """select c, p, n from sold join product using (p)
        qualify n = max(n) over (partition by c)""",
    "first_order": "select c, a from customer",
    "last_order": "select c, b from customer",
    "came_once": "select c from customer where n = 1",
    "regular": "select c from customer where a < date '2025-04-01' and b >= date '2025-10-01'",
    "often_together": "select p, r, n from together where n >= 5",
}
# Reports of money, printed with two digits.
MONEY = {
    "total": "select o, t from total",
    "sales": "select c, sum(a) from amount join product using (p) group by c",
    "monthly_sales": "select year(day), month(day), sum(t) from total join orders using (o) group by all",
}


def main() -> None:
    example = Example("retail")
    products, orders, lines = shop(example)
    example.facts("category", {(p, c) for p, c, _ in products})
    example.facts("price", {(p, Scaled(money, 2)) for p, _, money in products})
    example.facts("customer", {(o, c) for o, c, _ in orders})
    example.facts("ordered_on", {(o, day) for o, _, day in orders})
    example.facts("line", lines)

    db = duckdb.connect()
    db.execute(SCHEMA)
    for table, rows in (("product", products), ("orders", orders), ("line", lines)):
        db.executemany(f"insert into {table} values (?, ?, ?)", rows)
    db.execute(VIEWS)
    for name, query in REPORTS.items():
        example.expected(name, db.sql(query).fetchall())
    for name, query in MONEY.items():
        example.expected(name, money(db.sql(query).fetchall()))
    pay(example, dict(db.sql("select o, t from total").fetchall()), {o: c for o, c, _ in orders})


def shop(example: Example) -> tuple[list[Row], list[Row], list[Row]]:
    rng = example.random
    products = [(f"{CATEGORIES[i % 5]}-{i:02}", CATEGORIES[i % 5], Decimal(rng.randrange(99, 19999)) / 100)
                for i in range(48)]  # fmt: skip
    sellers = [p for p, _, _ in products[:-3]]  # the last three are never sold
    orders, lines = [], []
    for o in range(1001, 1301):
        day = date(2025, 1, 1) + timedelta(days=rng.randrange(365))
        orders.append((o, f"c{int(90 * rng.random() ** 1.7):02}", day))
        for i in {int(len(sellers) * rng.random() ** 1.6) for _ in range(rng.randrange(1, 6))}:
            pieces = rng.choice((1, 1, 1, 2, 2, 3, 5))
            lines.append((o, sellers[i], pieces))
    return products, orders, lines


def pay(example: Example, total: dict[int, Decimal], customer: dict[int, str]) -> None:
    """Discounts by hand: SQL rounds half away from zero, the language half to even."""
    due = {o: Scaled(t - t * Decimal("0.025") if t > 500 else t, 2) for o, t in total.items()}
    spent: dict[str, Decimal] = {}
    for o, t in due.items():
        spent[customer[o]] = spent.get(customer[o], Decimal(0)) + t
    example.expected("due", due.items())
    example.expected("spent", money(spent.items()))


def money(rows) -> set[Row]:
    return {(*row[:-1], Scaled(row[-1], 2)) for row in rows}


if __name__ == "__main__":
    main()
