"""Owns random streams for tests: files of facts, and, in plain Python, what has to come of them."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

import dlog

PROGRAM = """
sale(id, shop, item) -> int(id), string(shop), int(item).
price[item] = p -> int(item), int(p).
road(a, b) -> string(a), string(b).
total[shop] = t, sold[shop] = n <- agg<<t = sum(p), n = count()>> sale(_, shop, item), price[item] = p.
dearest[shop] = m <- agg<<m = max(p)>> sale(_, shop, item), price[item] = p.
reach(a, b) <- road(a, b).
reach(a, c) <- reach(a, b), road(b, c).
stuck(shop) <- sale(_, shop, _), !road(shop, _).
grand[] = t <- agg<<t = sum(p)>> sale(_, _, item), price[item] = p.
bought(item) <- sale(_, _, item).
.input price(IO=csv)
.output total
.output sold
.output dearest
.output reach
.output stuck
.output grand
.output bought
.materialize reach, dearest on_read
"""
SHOPS = ["north", "south", "east", "west", 'a "quoted", one']
OUTPUTS = ("total", "sold", "dearest", "reach", "stuck", "grand", "bought")
COLUMNS = {"sale": ("id", "shop", "item"), "price": ("item", "p"), "road": ("a", "b")}
INSERTS, ERASES, UPSERTS = ("+", "1", "insert", "c"), ("-", "-1", "delete", "D"), ("u", "update")

Row = tuple[Any, ...]


class Model:
    """Files that have been written, and the state after all of them."""

    def __init__(self, folder: Path, seed: int, partitions: Iterable[str] = COLUMNS):
        self.folder = folder
        self.facts: dict[str, set[Row]] = {name: set() for name in COLUMNS}
        self.facts["price"] = {(item, 10) for item in range(6)}
        self.bad = 0
        self.files = 0
        self._random = random.Random(seed)
        self._time = 1_700_000_000
        for name in partitions:
            (folder / name).mkdir(parents=True)

    def write_prices(self) -> None:
        """The prices to begin with, as a file of the stream."""
        self._write("price", [(*row, "+") for row in sorted(self.facts["price"])], "csv")

    def write(self, files: int = 1, rows: int = 12) -> None:
        """Random files of random predicates; later files count after earlier ones."""
        for _ in range(files):
            name = self._random.choice([*COLUMNS, "sale", "sale"])
            said = [self._say(name) for _ in range(self._random.randrange(1, rows))]
            self._write(name, said, self._random.choice(["csv", "json", "parquet", "csv.gz"]))

    def _say(self, name: str) -> Row:
        """One row with its operation, done to the state."""
        rng, facts = self._random, self.facts[name]
        if name == "price":
            row: Row = (rng.randrange(6), rng.randrange(100))
            self.facts[name] = {r for r in facts if r[0] != row[0]} | {row}
            return (*row, rng.choice(UPSERTS))
        if facts and rng.random() < 0.4:
            row = rng.choice(sorted(facts))
            facts.discard(row)
            return (*row, rng.choice(ERASES))
        if name == "sale":
            row = (rng.randrange(40), rng.choice(SHOPS), rng.randrange(6))
        else:
            row = (rng.choice(SHOPS), rng.choice(SHOPS))
        facts.add(row)
        return (*row, rng.choice(INSERTS))

    def _write(self, name: str, rows: list[Row], kind: str) -> None:
        path = self.folder / name / f"{self.files:04}.{kind}"
        hidden = path.with_name(f".{path.name}")
        names = (*COLUMNS[name], "op")
        if kind == "parquet":
            columns = [list(column) for column in zip(*rows, strict=True)]
            pa.parquet.write_table(pa.table(dict(zip(names, columns, strict=True))), hidden)
        elif kind == "json":
            hidden.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
        else:
            text = "".join(",".join(_cell(v) for v in row) + "\n" for row in rows)
            if self._random.random() < 0.3:
                text += ",".join(["bad"] * len(names)) + "\n"
                self.bad += 1
            _write_text(hidden, text)
        os.utime(hidden, (self._time, self._time))
        hidden.rename(path)
        self.files += 1
        self._time += 5

    def expected(self) -> dict[str, set[Row]]:
        """What the rules derive, without dlog."""
        prices = dict(self.facts["price"])
        sales = [(shop, prices[item]) for _, shop, item in self.facts["sale"] if item in prices]
        by_shop = {shop: [p for s, p in sales if s == shop] for shop, _ in sales}
        reach = set(self.facts["road"])
        while more := {(a, d) for a, b in reach for c, d in self.facts["road"] if b == c} - reach:
            reach |= more
        left = {a for a, _ in self.facts["road"]}
        return {
            "total": {(shop, sum(found)) for shop, found in by_shop.items()},
            "sold": {(shop, len(found)) for shop, found in by_shop.items()},
            "dearest": {(shop, max(found)) for shop, found in by_shop.items()},
            "reach": reach,
            "grand": {(sum(p for _, p in sales),)} if sales else set(),
            "bought": {(item,) for _, _, item in self.facts["sale"]},
            "stuck": {(shop,) for _, shop, _ in self.facts["sale"] if shop not in left},
        }


def _cell(value: Any) -> str:
    return str(value) if "," not in str(value) else '"' + str(value).replace('"', '""') + '"'


def _write_text(path: Path, text: str) -> None:
    if path.name.endswith(".gz"):
        with pa.CompressedOutputStream(str(path), "gzip") as out:
            out.write(text.encode())
    else:
        path.write_text(text)


def require_exact(model: Model, sink: Path, checkpoint: Path, shards: int = 0) -> None:
    """State, changes and values say what the model says; each change is there once."""
    expected = model.expected()
    assert read_values(sink) == expected
    assert replayed(sink) == expected
    found = [json.loads(line) for path in sink.glob("bad/*/*.json") for line in path.open()]
    assert len(found) == model.bad
    if shards == 0:
        with dlog.Database(checkpoint / "database", read_only=True) as db:
            db.verify()
            assert {name: set(db[name].rows()) for name in COLUMNS} == model.facts
            assert {name: set(db[name].rows()) for name in OUTPUTS} == expected


def read_values(sink: Path) -> dict[str, set[Row]]:
    """Of one engine, or of all shards: no row is in two of them."""
    found = {}
    for name in OUTPUTS:
        paths = [sink / "values" / f"{name}.csv", *sink.glob(f"values/{name}/*.csv")]
        lines = [line for path in paths if path.exists() for line in path.read_text().splitlines()]
        rows = [tuple(int(cell) if cell.isdigit() else cell for cell in line.split("\t")) for line in lines]
        assert len(set(rows)) == len(rows)
        found[name] = set(rows)
    return found


def replayed(sink: Path) -> dict[str, set[Row]]:
    """All changes, one after the other.  A row comes only when it is not there, and goes only when it is."""
    state: dict[str, set[Row]] = {name: set() for name in OUTPUTS}
    for name, rows in state.items():
        for path in sorted((sink / "changes" / name).glob("batch-*")):
            for line in path.open():
                cells = json.loads(line)
                sign, row = cells.pop("op"), tuple(cells.values())
                assert (row in rows) == (sign == "-"), (path, line)
                (rows.discard if sign == "-" else rows.add)(row)
    return state
