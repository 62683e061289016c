"""An order book for the queries in `finance/`: limit orders that arrive, are filled in parts, and are cancelled.

    python programs/generators/finance.py                              the files that are shipped
    python programs/generators/finance.py --events 100000 --to FOLDER  longer ones

A row is one order: when it came, its number, its broker, how many shares are left, and the price of one in
hundredths of a cent.  A partial fill deletes the row of an order and inserts one with fewer shares, a full one
and a cancellation delete it.  Prices follow a random walk; orders are near it, a few are far away.

Knows nothing of dlog, and nothing of files but in `main`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

Row = tuple[int, int, int, int, int]  # t, id, broker_id, volume, price
Event = tuple[str, Row, int]  # bids or asks, a row, and 1 if it is inserted or -1 if it is deleted

COLUMNS = "t int, id int, broker_id int, volume int, price int"
TABLES = {"bids": COLUMNS, "asks": COLUMNS}
STREAMS = tuple(TABLES)


@dataclass
class Book:
    """The orders that wait.  At about `size` of them, as many go as come."""

    rng: Random
    size: int
    brokers: int
    tick: int  # prices are multiples of it
    start: int = 250_000
    waiting: dict[str, list[Row]] = field(default_factory=lambda: {"bids": [], "asks": []})
    now: int = 0
    orders: int = 0

    def step(self) -> Iterator[Event]:
        """What happens next: one event, or two for a partial fill."""
        self.now += self.rng.randint(0, 3)
        self.start += self.rng.choice((-1, 0, 1)) * self.tick
        side = self.rng.choice(STREAMS)
        count = len(self.waiting[side])
        if self.rng.random() * self.size > count or not count:
            yield self._arrive(side)
        elif self.rng.random() < 0.4:
            yield from self._fill(side)
        else:
            yield self._leave(side, self.rng.randrange(count))

    def _arrive(self, side: str) -> Event:
        away = round(abs(self.rng.gauss(0, 12)))
        if self.rng.random() < 0.05:
            away += self.rng.randint(50, 400)
        price = self.start + (away if side == "asks" else -away) * self.tick
        volume = self.rng.choice((10, 30, 50, 100, 100, 100, 200, 300, 500, 1000, 2500))
        self.orders += 1
        broker = self.rng.randrange(self.brokers)
        row = (self.now, self.orders, broker, volume, max(price, self.tick))
        self.waiting[side].append(row)
        return side, row, 1

    def _fill(self, side: str) -> Iterator[Event]:
        """The best of a few orders trades: all of it, or a part."""
        rows = self.waiting[side]
        some = [self.rng.randrange(len(rows)) for _ in range(5)]
        place = (max if side == "bids" else min)(some, key=lambda i: rows[i][4])
        t, number, broker, volume, price = rows[place]
        traded = self.rng.randint(1, volume)
        yield self._leave(side, place)
        if traded < volume:
            rest = (t, number, broker, volume - traded, price)
            rows.append(rest)
            yield side, rest, 1

    def _leave(self, side: str, place: int) -> Event:
        rows = self.waiting[side]
        rows[place], rows[-1] = rows[-1], rows[place]
        return side, rows.pop(), -1


def events(
    count: int, seed: int = 1, size: int = 500, brokers: int = 10, tick: int = 100, closes: bool = False
) -> Iterator[Event]:
    """At least `count` of them, the same ones for the same arguments.  `size`: about how many orders of each
    side wait; `closes`: at the end all of these are cancelled.
    """
    book, done = Book(Random(f"book {seed}"), size, brokers, tick), 0
    while done < count:
        for event in book.step():
            done += 1
            yield event
    for side, rows in book.waiting.items() if closes else ():
        for row in rows:
            yield side, row, -1


def main() -> None:
    parser = argparse.ArgumentParser(description="write an order book")
    parser.add_argument("--events", type=int, help="how many; without it: those that are shipped")
    parser.add_argument("--size", type=int, default=500, help="how many orders of a side wait")
    parser.add_argument("--brokers", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--to", type=Path, help="the folder for NAME.tbl; default: facts of programs/finance")
    given = parser.parse_args()
    if given.events is None:
        from workload import write

        found = shipped()
        files = {name: [(row, sign) for side, row, sign in found if side == name] for name in STREAMS}
        write("finance", files, streams=STREAMS, folder=given.to)
        return
    if given.to is None:
        parser.error("--events needs --to: the files in programs/finance stay small")
    given.to.mkdir(parents=True, exist_ok=True)
    files = {name: open(given.to / f"{name}.tbl", "w", encoding="utf-8") for name in STREAMS}  # noqa: SIM115
    for side, row, sign in events(given.events, given.seed, given.size, given.brokers):
        files[side].write("|".join(map(str, (*row, sign))) + "\n")
    for file in files.values():
        file.close()


def shipped() -> list[Event]:
    """Those of the shipped files."""
    return list(events(400, size=60, brokers=4))


if __name__ == "__main__":
    main()
