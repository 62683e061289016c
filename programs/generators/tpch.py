"""Rows of TPC-H for the queries in `tpch/`: the tables, ranges and dependencies of its specification.

    python programs/generators/tpch.py                                the files that are shipped
    python programs/generators/tpch.py --scale 0.1 --to FOLDER        larger ones, without deletions

Whole numbers instead of decimals, so that sums are exact: money is in cents, discounts and taxes in percent.
Comments are left out where no query asks for them.  `narrow` rows choose among fewer nations, types, brands
and so on, and some orders are large: so few rows give a result to every query.

Knows nothing of dlog, and nothing of files but in `main`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from random import Random

Row = tuple[int | str | date, ...]

FIRST_DAY, LAST_DAY, TODAY = date(1992, 1, 1), date(1998, 12, 31), date(1995, 6, 17)
REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3),
    ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4),
    ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3),
    ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")
MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
SIZES = ("ECONOMY", "LARGE", "MEDIUM", "PROMO", "SMALL", "STANDARD")
FINISHES = ("ANODIZED", "BRUSHED", "BURNISHED", "PLATED", "POLISHED")
METALS = ("BRASS", "COPPER", "NICKEL", "STEEL", "TIN")
PACKS = ("JUMBO", "LG", "MED", "SM", "WRAP")
CONTAINERS = ("BAG", "BOX", "CAN", "CASE", "DRUM", "JAR", "PACK", "PKG")
COLOURS = tuple(
    "almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished "
    "chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick "
    "floral forest frosted gainsboro ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender "
    "lawn lemon light lime linen magenta maroon medium metallic midnight mint misty moccasin navajo navy olive "
    "orange orchid pale papaya peach peru pink plum powder puff purple red rose rosy royal saddle salmon sandy "
    "seashell sienna sky slate smoke snow spring steel tan thistle tomato turquoise violet wheat white "
    "yellow".split()
)
WORDS = tuple(
    "accounts asymptotes deposits dependencies foxes ideas instructions packages pinto platelets requests "
    "theodolites bold careful even express final fluffy ironic pending quick regular silent special unusual "
    "above across after among along".split()
)
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789, "

# The tables, in an order in which keys come before what refers to them, with their columns and types.
TABLES = {
    "region": "r_regionkey int, r_name string",
    "nation": "n_nationkey int, n_name string, n_regionkey int",
    "part": "p_partkey int, p_name string, p_mfgr string, p_brand string, p_type string, p_size int, "
    "p_container string, p_retailprice int",
    "supplier": "s_suppkey int, s_name string, s_address string, s_nationkey int, s_phone string, s_acctbal int, "
    "s_comment string",
    "partsupp": "ps_partkey int, ps_suppkey int, ps_availqty int, ps_supplycost int",
    "customer": "c_custkey int, c_name string, c_address string, c_nationkey int, c_phone string, c_acctbal int, "
    "c_mktsegment string",
    "orders": "o_orderkey int, o_custkey int, o_orderstatus string, o_totalprice int, o_orderdate date, "
    "o_orderpriority string, o_clerk string, o_shippriority int, o_comment string",
    "lineitem": "l_orderkey int, l_partkey int, l_suppkey int, l_linenumber int, l_quantity int, "
    "l_extendedprice int, l_discount int, l_tax int, l_returnflag string, l_linestatus string, l_shipdate date, "
    "l_commitdate date, l_receiptdate date, l_shipinstruct string, l_shipmode string",
}
STREAMS = tuple(TABLES)[2:]  # regions and nations never change


@dataclass(frozen=True)
class Words:
    """What columns are chosen from."""

    nations: Sequence[int] = range(25)
    brands: Sequence[int] = (1, 2, 3, 4, 5)
    sizes: Sequence[str] = SIZES
    finishes: Sequence[str] = FINISHES
    metals: Sequence[str] = METALS
    widths: Sequence[int] = range(1, 51)
    packs: Sequence[str] = PACKS
    containers: Sequence[str] = CONTAINERS
    colours: Sequence[str] = COLOURS
    words: Sequence[str] = WORDS
    complaints: float = 0.0005
    large_orders: float = 0.0  # the fraction of orders of seven lines of many pieces


NARROW = Words(
    nations=(2, 3, 6, 7, 8, 20),
    brands=(1, 2, 3),
    sizes=("ECONOMY", "PROMO"),
    finishes=("ANODIZED", "PLATED"),
    metals=("BRASS", "STEEL"),
    widths=(3, 9, 14, 15),
    packs=("MED", "SM"),
    containers=("BAG", "BOX", "CASE"),
    colours=("almond", "azure", "cyan", "forest", "green", "lace"),
    words=("accounts", "requests", "special", "pending", "packages"),
    complaints=0.1,
    large_orders=0.125,
)


@dataclass
class Generator:
    """Rows for a scale factor: 1 has 6 million rows of lineitem.  The same ones whenever it is asked, for the
    same scale, seed and words.  `least`: the least number of suppliers, parts and customers.
    """

    scale: float
    seed: int = 1
    words: Words = field(default_factory=Words)
    least: tuple[int, int, int] = (10, 40, 15)

    def __post_init__(self) -> None:
        counts = (round(self.scale * n) for n in (10_000, 200_000, 150_000))
        self.suppliers, self.parts, self.customers = map(max, counts, self.least)
        self.clerks = max(1, round(self.scale * 1000))

    def tables(self) -> dict[str, list[Row]]:
        """All rows of all tables, by name."""
        orders, lines = [], []
        for order, items in self.orders():
            orders.append(order)
            lines += items
        kept = {"region": self.region(), "nation": self.nation(), "part": self.part()}
        kept |= {"supplier": self.supplier(), "partsupp": self.partsupp(), "customer": self.customer()}
        return {**{name: list(rows) for name, rows in kept.items()}, "orders": orders, "lineitem": lines}

    def region(self) -> Iterator[Row]:
        yield from enumerate(REGIONS)

    def nation(self) -> Iterator[Row]:
        for key, (name, region) in enumerate(NATIONS):
            yield key, name, region

    def part(self) -> Iterator[Row]:
        rng, words = self._random("part"), self.words
        for key in range(1, self.parts + 1):
            maker = rng.choice(words.brands)
            yield (
                key,
                " ".join(rng.sample(words.colours, 5)),
                f"Manufacturer#{maker}",
                f"Brand#{maker}{rng.choice(words.brands)}",
                f"{rng.choice(words.sizes)} {rng.choice(words.finishes)} {rng.choice(words.metals)}",
                rng.choice(words.widths),
                f"{rng.choice(words.packs)} {rng.choice(words.containers)}",
                price(key),
            )

    def supplier(self) -> Iterator[Row]:
        rng = self._random("supplier")
        for key in range(1, self.suppliers + 1):
            nation, comment = rng.choice(self.words.nations), self._comment(rng, 6)
            if rng.random() < self.words.complaints:
                comment += f" Customer {rng.choice(self.words.words)} Complaints"
            name, balance = f"Supplier#{key:09}", rng.randint(-99999, 999999)
            yield key, name, _address(rng), nation, _phone(rng, nation), balance, comment

    def partsupp(self) -> Iterator[Row]:
        rng = self._random("partsupp")
        for part in range(1, self.parts + 1):
            for place in range(4):
                yield part, self._supplier(part, place), rng.randint(1, 9999), rng.randint(100, 100000)

    def customer(self) -> Iterator[Row]:
        rng = self._random("customer")
        for key in range(1, self.customers + 1):
            nation = rng.choice(self.words.nations)
            name, balance = f"Customer#{key:09}", rng.randint(-99999, 999999)
            yield key, name, _address(rng), nation, _phone(rng, nation), balance, rng.choice(SEGMENTS)

    def orders(self) -> Iterator[tuple[Row, list[Row]]]:
        """Each order with its lines.  A third of the customers have none."""
        rng = self._random("orders")
        days = (LAST_DAY - FIRST_DAY).days - 151
        for number in range(10 * self.customers):
            key = number // 8 * 32 + number % 8 + 1
            customer = rng.randint(1, self.customers)
            while customer % 3 == 0:
                customer = rng.randint(1, self.customers)
            day = FIRST_DAY + timedelta(rng.randint(0, days))
            lines = self._lines(rng, key, day)
            flags = {line[9] for line in lines}
            total = sum(line[5] * (100 - line[6]) * (100 + line[7]) for line in lines)  # type: ignore[operator]
            order = (
                key, customer, flags.pop() if len(flags) == 1 else "P", total // 10000, day, rng.choice(PRIORITIES),
                f"Clerk#{rng.randint(1, self.clerks):09}", 0, self._comment(rng, 6),
            )  # fmt: skip
            yield order, lines

    def _lines(self, rng: Random, order: int, day: date) -> list[Row]:
        is_large = rng.random() < self.words.large_orders
        lines: list[Row] = []
        for number in range(1, 8 if is_large else rng.randint(2, 8)):
            part, quantity = rng.randint(1, self.parts), rng.randint(40 if is_large else 1, 50)
            shipped = day + timedelta(rng.randint(1, 121))
            committed, received = (
                day + timedelta(rng.randint(30, 90)),
                shipped + timedelta(rng.randint(1, 30)),
            )
            flag = rng.choice("AR") if received <= TODAY else "N"
            lines.append((
                order, part, self._supplier(part, rng.randint(0, 3)), number, quantity, quantity * price(part),
                rng.randint(0, 10), rng.randint(0, 8), flag, "O" if shipped > TODAY else "F", shipped, committed,
                received, rng.choice(INSTRUCTIONS), rng.choice(MODES),
            ))  # fmt: skip
        return lines

    def _supplier(self, part: int, place: int) -> int:
        """One of the four suppliers of a part."""
        step = self.suppliers // 4 + (part - 1) // self.suppliers
        return (part + place * step) % self.suppliers + 1

    def _comment(self, rng: Random, size: int) -> str:
        return " ".join(rng.choices(self.words.words, k=size))

    def _random(self, name: str) -> Random:
        return Random(f"{name} {self.scale} {self.seed}")


def price(part: int) -> int:
    """What a part costs, in cents."""
    return 90000 + part // 10 % 20001 + 100 * (part % 1000)


def _address(rng: Random) -> str:
    return "".join(rng.choices(LETTERS, k=rng.randint(10, 40))).strip()


def _phone(rng: Random, nation: int) -> str:
    return f"{nation + 10}-{rng.randint(100, 999)}-{rng.randint(100, 999)}-{rng.randint(1000, 9999)}"


# Streams


Event = tuple[str, Row, int]  # a table, a row, and 1 if it is inserted or -1 if it is deleted


def events(tables: dict[str, list[Row]], live: float = 0.5, seed: int = 1) -> Iterator[Event]:
    """Rows of the streams, shuffled; each is deleted when a fraction `live` of all rows came after it, and what
    is left is deleted at the end.
    """
    rng = Random(f"events {seed}")
    arriving = [(name, row) for name in STREAMS for row in tables[name]]
    rng.shuffle(arriving)
    behind = max(1, round(live * len(arriving)))
    for place, (name, row) in enumerate(arriving):
        yield name, row, 1
        if place >= behind:
            yield *arriving[place - behind], -1
    for name, row in arriving[max(0, len(arriving) - behind) :]:
        yield name, row, -1


def with_deletions(rows: list[Row], rng: Random) -> list[tuple[Row, int]]:
    """Every row is inserted; some are deleted later, and some of these come again."""
    found = [(row, 1) for row in rows]
    for row in rng.sample(rows, len(rows) // 8):
        found.append((row, -1))
        if rng.random() < 0.3:
            found.append((row, 1))
    return found


# Files


def main() -> None:
    parser = argparse.ArgumentParser(description="write the tables of TPC-H")
    parser.add_argument("--scale", type=float, help="the scale factor; without it: the rows that are shipped")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--to", type=Path, help="the folder for NAME.tbl; default: facts of programs/tpch")
    given = parser.parse_args()
    if given.scale is not None:
        if given.to is None:
            parser.error("--scale needs --to: the files in programs/tpch stay small")
        given.to.mkdir(parents=True, exist_ok=True)
        for name, rows in Generator(given.scale, given.seed).tables().items():
            with open(given.to / f"{name}.tbl", "w", encoding="utf-8") as file:
                file.writelines("|".join(map(str, row)) + "\n" for row in rows)
        return
    from workload import write

    rng, files = Random("tpch"), {}
    for name, rows in shipped().items():
        files[name] = with_deletions(rows, rng) if name in STREAMS else [(row, 1) for row in rows]
    write("tpch", files, streams=STREAMS, folder=given.to)


def shipped() -> dict[str, list[Row]]:
    """The rows of the shipped files, before any is deleted."""
    return Generator(0.0001, seed=63, words=NARROW).tables()  # with this seed every query has a result


if __name__ == "__main__":
    main()
