"""Owns what is reported of a stream while it runs: a status line on a terminal, JSON lines on request,
bad rows, and a summary at the end."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Report:
    """A batch that was applied.  `latency` is the time from the first of its files to its results, in
    seconds; `seconds` is the time spent on it.  `repeated`: it had been committed before."""

    batch: int
    files: int = 0
    rows: int = 0
    bad: int = 0
    inserted: int = 0  # rows inserted into outputs, and deleted
    erased: int = 0
    seconds: float = 0.0
    latency: float = 0.0
    repeated: bool = False

    def text(self) -> str:
        if self.repeated:
            return f"batch {self.batch:,} had been applied before"
        bad = f", {self.bad:,} rejected" if self.bad else ""
        changes = f"+{self.inserted:,} -{self.erased:,}"
        rows = f"{self.rows:,} row{'' if self.rows == 1 else 's'}"
        return f"batch {self.batch:,}: {rows}{bad}, {changes} changes, {self.seconds:.2f} s"


@dataclass
class Tally:
    """All batches of a run."""

    batches: int = 0
    repeated: int = 0
    rows: int = 0
    bad: int = 0
    inserted: int = 0
    erased: int = 0
    started: float = field(default_factory=time.monotonic)

    def count(self, report: Report) -> None:
        self.batches += 1
        self.repeated += report.repeated
        for name in ("rows", "bad", "inserted", "erased"):
            setattr(self, name, getattr(self, name) + getattr(report, name))

    def __str__(self) -> str:
        seconds = time.monotonic() - self.started
        bad = f", {self.bad:,} rejected" if self.bad else ""
        batches = f"{self.batches:,} batch{'' if self.batches == 1 else 'es'}"
        changes = f"+{self.inserted:,} -{self.erased:,} changes"
        rows = f"{self.rows:,} row{'' if self.rows == 1 else 's'}"
        return f"{batches}: {rows}{bad}, {changes} ({seconds:.1f} s)"


class Reporter:
    """`with Reporter(json) as reporter: reporter.batch(report)`; the summary comes at the end."""

    def __init__(self, json: bool = False):
        self.tally = Tally()
        self._json = json
        self._status: Any = None
        self._noticed: set[str] = set()  # predicates

    def __enter__(self) -> Reporter:
        return self

    def waiting(self) -> None:
        """The stream has begun."""
        if not self._json and sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("waiting for files")
            self._status.start()

    def batch(self, report: Report) -> None:
        self.tally.count(report)
        if self._json:
            print(json.dumps(asdict(report)), flush=True)
        if self._status is not None:
            self._status.update(f"{report.text()}; {self.tally.rows:,} rows in all")

    def bad(self, batch: int, first: Mapping[str, tuple[int, str]]) -> None:
        """For each predicate with rejected rows: how many, and why the first was."""
        for name, (count, reason) in first.items():
            rows = f"{count:,} row{'' if count == 1 else 's'} of {name}"
            self.print(f"warning: batch {batch:,}: {rows} rejected: {reason}")

    def notice(self, predicate: str, text: str) -> None:
        """About a file of a predicate; printed once for each."""
        if text and predicate not in self._noticed:
            self._noticed.add(predicate)
            self.print(f"warning: {text}")

    def print(self, text: str) -> None:
        if self._status is not None:
            self._status.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()
        if kind is None:
            print(self.tally, file=sys.stderr, flush=True)
