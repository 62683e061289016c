"""Data of the small programs about aggregates and files."""

import json
import math
import sqlite3
import statistics
from collections import Counter
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from common import Example, lines

POEM = """
Day breaks over the hill
Long shadows shrink and lie still
Over the mill the swallows turn
Grass will be hay and hay will burn
"""


def main() -> None:
    aggregates()
    concat()
    deviations()
    io_formats()
    sqlite_files()


def aggregates() -> None:
    example = Example("aggregates")
    rng = example.random
    accounts = [f"acc{i:02}" for i in range(20)]
    entries = {
        (rng.choice(accounts[:-2]), rng.randrange(1, 29), 25 * rng.randrange(-8, 20)) for _ in range(160)
    }
    entries = {e for e in entries if e[0] != "acc05"} | {("acc05", 1, 40), ("acc05", 2, -40)}
    example.facts("account", {(a,) for a in accounts})
    example.facts("entry", entries)
    amounts: dict[str, list[int]] = {}
    for a, _, x in entries:
        amounts.setdefault(a, []).append(x)
    example.expected("balance", {(a, sum(xs)) for a, xs in amounts.items()})
    example.expected("entries", {(a, len(xs)) for a, xs in amounts.items()})
    example.expected("least", {(a, min(xs)) for a, xs in amounts.items()})
    example.expected("most", {(a, max(xs)) for a, xs in amounts.items()})
    example.expected("usual", {(a, sum(xs) / len(xs)) for a, xs in amounts.items()})
    example.expected("doubled", {(a, 2 * sum(xs)) for a, xs in amounts.items()})
    positive = {a: [x for x in xs if x > 0] for a, xs in amounts.items()}
    example.expected("turnover", {(a, sum(xs)) for a, xs in positive.items() if xs})
    example.expected("distinct_amounts", {(a, sum(set(xs))) for a, xs in amounts.items()})
    example.expected("summary", {(a, len(amounts.get(a, ())), sum(amounts.get(a, ()))) for a in accounts})
    example.expected("lowest", {(a, min(xs)) for a, xs in amounts.items()})
    above = {(a, d, x) for a, d, x in entries if x > sum(amounts[a]) / len(amounts[a])}
    example.expected("above_mean", above)
    example.expected("spread", {(a, max(xs) - min(xs)) for a, xs in amounts.items()})
    top = max(map(len, amounts.values()))
    example.expected("busiest", {(a,) for a, xs in amounts.items() if len(xs) == top})


def concat() -> None:
    example = Example("concat")
    poem = [line.split() for line in POEM.strip().splitlines()]
    words = [(n, place, w) for n, line in enumerate(poem, 1) for place, w in enumerate(line)]
    example.facts("word", words)
    texts = [" ".join(line) for line in poem]
    example.expected("text", set(enumerate(texts, 1)))
    example.expected("poem", {("".join(t + "/" for t in texts),)})
    example.expected("initials", {("".join(line[0][0] for line in poem),)})


def deviations() -> None:
    example = Example("deviations")
    rng = example.random
    base = {"cellar": 12.5, "roof": 21.0, "tank": 1000000.0, "lamp": 3.25}
    readings = {
        (s, n, b + rng.randrange(-8, 9) / 4 + (9.0 if n == 7 else 0.0), rng.choice(("C", "K", "F")))
        for s, b in base.items()
        for n in range(1 if s == "lamp" else 24)
    }
    prices = {
        (f"shop{i}", item, Decimal(rng.randrange(400, 700)) / 100)
        for i in range(5)
        for item in ("tea", "rice")
    }
    prices |= {("shop0", "salt", Decimal("1.10")), ("shop1", "salt", Decimal("1.10"))}
    example.facts("reading", readings)
    example.facts("price", prices)
    values: dict[str, list[Fraction]] = {}
    units: dict[str, set[str]] = {}
    for s, _, x, unit in readings:
        values.setdefault(s, []).append(Fraction(x))
        units.setdefault(s, set()).add(unit)
    sample = {s: statistics.variance(xs) for s, xs in values.items() if len(xs) > 1}
    example.expected("variance_of", {(s, float(v)) for s, v in sample.items()})
    example.expected("deviation_of", {(s, math.sqrt(v)) for s, v in sample.items()})
    example.expected("readings", {(s, len(xs)) for s, xs in values.items()})
    example.expected("spread", {(s, float(statistics.pvariance(xs))) for s, xs in values.items()})
    example.expected("units", {(s, len(names)) for s, names in units.items()})
    far = {
        (s, n)
        for s, n, x, _ in readings
        if s in sample and (Fraction(x) - statistics.mean(values[s])) ** 2 > 4 * sample[s]
    }
    example.expected("outlier", far)
    amounts: dict[str, list[Decimal]] = {}
    for _, item, amount in prices:
        amounts.setdefault(item, []).append(amount)
    exact = {item: statistics.pvariance(map(Fraction, xs)) for item, xs in amounts.items()}
    example.expected("uneven", {(item, math.sqrt(v)) for item, v in exact.items()})
    example.expected("prices", {(item, len(set(xs))) for item, xs in amounts.items()})
    dear = {item: len({s for s, i, a in prices if i == item and a > 5}) for item in amounts}
    example.expected("shops", dear.items())


def io_formats() -> None:
    example = Example("io_formats")
    rng = example.random
    regions = ["coast", "hills", "north"]
    stations = {i: (f"Station {i}", rng.choice(regions)) for i in range(1, 13)}
    stations[4] = ("Old Mill, left bank", "hills")
    readings = {
        (i, date(2026, 1, 1) + timedelta(d), rng.randrange(0, 40)) for i in stations for d in range(0, 60, 3)
    }
    owners = [
        {"id": i, "person": rng.choice(("Ada", "Bo", "Cy")), "paid": rng.random() < 0.5} for i in stations
    ]
    factors = {i: rng.randrange(80, 130) / 100 for i in stations if i != 7}
    closed = {3, 9}

    quoted = "".join(f'{i},"{name}","{region}"\n' for i, (name, region) in stations.items())
    example.path("facts", "stations.csv").write_text("id,name,region\n" + quoted)
    example.facts("reading", readings, file="readings.tsv.gz")
    example.path("facts", "owners.jsonl").write_text("".join(json.dumps(o) + "\n" for o in owners))
    table = pa.table({"id": list(factors), "factor": list(factors.values())})
    pa.parquet.write_table(table, example.path("facts", "calibrations.parquet"))
    example.facts("closed", {(i,) for i in closed})

    rain = Counter()
    for i, _, mm in readings:
        if i not in closed:
            rain[i] += mm
    example.expected("rain", rain.items())
    wettest = {(i, max(mm for j, _, mm in readings if i == j)) for i in stations}
    example.expected("wettest", wettest, file="wettest.csv.gz")
    corrected = {(stations[i][0], float(mm) * factors[i]) for i, mm in rain.items() if i in factors}
    example.expected("corrected", corrected, file="corrected.txt", delimiter=";")
    by_region = Counter()
    for i, mm in rain.items():
        by_region[stations[i][1]] += mm
    header = ("region", "millimetres")
    example.expected("region_rain", by_region.items(), file="regions.csv", delimiter=",", header=header)
    payers = Counter(o["person"] for o in owners if o["paid"])
    objects = (json.dumps({"person": p, "stations": n}) + "\n" for p, n in sorted(payers.items()))
    example.path("expected", "payers.jsonl").write_text("".join(objects))
    unpaid = lines({(stations[o["id"]][0], o["person"]) for o in owners if not o["paid"]})
    example.expected_stdout(f"{'-' * 15}\nunpaid\n{'=' * 15}\n{unpaid}{'=' * 15}\n")


def sqlite_files() -> None:
    example = Example("sqlite_files")
    rng = example.random
    cities = ["Bergen", "Lund", "Oulu"]
    customers = [(i, f"Customer {i}", rng.choice(cities)) for i in range(1, 21)]
    customers[4] = (5, "O'Hara & sons", "Lund")
    sales = [(n, rng.randrange(1, 19), 50 * rng.randrange(1, 40)) for n in range(1, 81)]
    tables = {
        "customer (id INTEGER PRIMARY KEY, name TEXT, city TEXT)": customers,
        "sales (number INTEGER PRIMARY KEY, customer INTEGER, cents INTEGER)": sales,
    }
    _database(example.path("facts", "shop.sqlite"), tables)

    # A predicate is a set: equal sales of one customer count once.
    amounts = {(c, cents) for _, c, cents in sales}
    spent = {i: sum(cents for c, cents in amounts if c == i) for i, _, _ in customers}
    by_city = {city: {i for i, _, c in customers if c == city} for city in cities}
    top = {city: max(spent[i] for i in ids) for city, ids in by_city.items()}
    results = {
        "spent (customer INTEGER, cents INTEGER)": sorted(spent.items()),
        "best_customers (city TEXT, name TEXT, cents INTEGER)": sorted(
            (city, name, spent[i]) for i, name, city in customers if spent[i] == top[city]
        ),
    }
    _database(example.path("expected", "results.sqlite"), results)
    whole = sum(spent.values())
    shares = [(city, sum(spent[i] for i in ids) / whole) for city, ids in by_city.items()]
    _database(example.path("expected", "share.sqlite"), {"share (city TEXT, part REAL)": sorted(shares)})


def _database(path: Path, tables: dict[str, list[tuple[object, ...]]]) -> None:
    connection = sqlite3.connect(path)
    for definition, rows in tables.items():
        connection.execute(f"CREATE TABLE {definition}")
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO {definition.split()[0]} VALUES ({marks})", rows)
    connection.commit()
    connection.close()


if __name__ == "__main__":
    main()
