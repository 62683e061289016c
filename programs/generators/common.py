"""Owns what the generators share: where files go and how Soufflé's file writer prints a value.

Knows nothing of dlog. An expected output is computed with sets, loops or SQL, never by the engine it tests.
Every file is written from a fixed seed, so running a generator twice changes nothing.
"""

from __future__ import annotations

import gzip
import os
import random
import shutil
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

PROGRAMS = Path(os.environ.get("DLOG_PROGRAMS", Path(__file__).resolve().parent.parent))

Value = int | float | str | bool | date | datetime | Decimal
Row = tuple[Value, ...]


class Example:
    """The facts and the expected outputs of `programs/NAME.dl`, in `programs/NAME/`.

    Creating one removes what an earlier run wrote.
    """

    def __init__(self, name: str, seed: int = 1):
        self.folder = PROGRAMS / name
        self.random = random.Random(f"{name} {seed}")
        for kind in ("facts", "expected"):
            shutil.rmtree(self.folder / kind, ignore_errors=True)

    def facts(self, relation: str, rows: Iterable[Row], *, file: str | None = None, **how: object) -> None:
        """Write `facts/RELATION.facts` (or `facts/FILE`), tab separated unless `how` says otherwise."""
        self._write("facts", file or f"{relation}.facts", lines(rows, **how))

    def expected(self, relation: str, rows: Iterable[Row], *, file: str | None = None, **how: object) -> None:
        """Write `expected/RELATION.csv` (or `expected/FILE`), tab separated unless `how` says otherwise."""
        self._write("expected", file or f"{relation}.csv", lines(rows, **how))

    def expected_stdout(self, text: str) -> None:
        """Write `expected/stdout.txt`: what a run prints."""
        self._write("expected", "stdout.txt", text)

    def path(self, kind: str, file: str) -> Path:
        """Where a file of another format goes; its folder exists."""
        folder = self.folder / kind
        folder.mkdir(parents=True, exist_ok=True)
        return folder / file

    def _write(self, kind: str, file: str, text: str) -> None:
        data = text.encode()
        if file.endswith(".gz"):
            data = gzip.compress(data, mtime=0)  # no time stamp: the same bytes every time
        self.path(kind, file).write_bytes(data)


def lines(
    rows: Iterable[Row],
    *,
    delimiter: str = "\t",
    header: Sequence[str] | None = None,
    quote: bool = False,
) -> str:
    """The text of a file of rows, sorted by value and without duplicates. `quote` puts strings in quotes."""
    body = [delimiter.join(text(v, quote=quote) for v in row) if row else "()" for row in sorted(set(rows))]
    head = [delimiter.join(header)] if header else []
    return "".join(line + "\n" for line in head + body)


def text(value: Value, *, quote: bool = False) -> str:
    """How a value is written in a file.

    >>> text(1.5), text(2.0), text(1 / 3), text(True), text(Decimal("3.50")), text(Decimal(2))
    ('1.5', '2', '0.333333333', 'true', '3.5', '2.0')
    """
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.9g}"
        case Decimal():
            return _trimmed(value)
        case datetime() | date():
            return value.isoformat()
        case str():
            return f'"{value}"' if quote else value
        case _:
            return str(value)


class Scaled(Decimal):
    """A decimal that prints with all the digits it has, as one declared `decimal(p, s)` does."""

    def __new__(cls, value: Decimal | str | int, scale: int) -> Scaled:
        return super().__new__(cls, rounded(Decimal(value), scale))


class Duration(str):
    """A length of time as ISO 8601 writes it, in days, hours, minutes and seconds.

    >>> Duration(timedelta(1, 3661.5)), Duration(timedelta(0)), Duration(timedelta(hours=-2))
    ('P1DT1H1M1.5S', 'PT0S', '-PT2H')
    """

    def __new__(cls, length: timedelta) -> Duration:
        size = abs(length)
        minutes, seconds = divmod(size.seconds, 60)
        fraction = f"{seconds + size.microseconds / 1e6:.6f}".rstrip("0").rstrip(".")
        time = [f"{minutes // 60}H" * (minutes >= 60), f"{minutes % 60}M" * (minutes % 60 > 0)]
        time.append(f"{fraction}S" * (fraction != "0" or not size))
        day = f"{size.days}D" * (size.days > 0)
        return super().__new__(cls, "-" * (length < size) + f"P{day}" + "T" * any(time) + "".join(time))


def utc_text(moment: datetime) -> str:
    """A moment in UTC as it is printed: six digits of a second's fraction, or none."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def rounded(value: Decimal, scale: int) -> Decimal:
    """Half to even, as at the head of a rule."""
    return value.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_EVEN)


def closure(pairs: Iterable[tuple]) -> set[tuple]:
    """The transitive closure, by a search from every first component. O(nodes * edges)."""
    after: dict = {}
    for x, y in pairs:
        after.setdefault(x, set()).add(y)
    result = set()
    for start, first in after.items():
        seen, work = set(first), list(first)
        while work:
            for y in after.get(work.pop(), ()):
                if y not in seen:
                    seen.add(y)
                    work.append(y)
        result |= {(start, y) for y in seen}
    return result


def _trimmed(value: Decimal) -> str:
    if isinstance(value, Scaled):
        return format(value, "f")
    digits = format(value, "f")
    if "." not in digits:
        return digits + ".0"
    whole, _, fraction = digits.partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}"
