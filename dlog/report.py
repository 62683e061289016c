"""Owns tables for people: answers of queries, and the measures of a run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from dlog.engine.database import Database
    from dlog.engine.result import Result


def print_queries(database: Database) -> None:
    """Each query of a program and its answer."""
    for text, result in database.queries():
        print(text)
        print_rows(result)


def print_rows(result: Result, file: TextIO | None = None) -> None:
    """Rows under the names of their columns, aligned, and their number."""
    out = file or sys.stdout
    if not result.columns:
        print("yes" if len(result) else "no", file=out)
        return
    rows = [[_text(value) for value in row] for row in result.rows()]
    header = [column.name for column in result.columns]
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    for row in (header, *rows):
        print(
            (" " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True))).rstrip(), file=out
        )
    print(f"{len(rows):,} row{'' if len(rows) == 1 else 's'}", file=out)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def print_stats(database: Database) -> None:
    """One line per rule, slowest first, on standard error."""
    measures = sorted(database.measures.rules.values(), key=lambda m: -m.seconds)
    header = ["rows", "iterations", "seeks", "nexts", "seconds", "rule"]
    lines = [
        [f"{m.rows:,}", f"{m.iterations:,}", f"{m.seeks:,}", f"{m.nexts:,}", f"{m.seconds:.4f}", str(m.rule)]
        for m in measures
    ]
    widths = [max(len(line[i]) for line in (header, *lines)) for i in range(5)]
    for line in (header, *lines):
        numbers = "  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=False))
        print(f"{numbers}  {line[5]}", file=sys.stderr)
    undefined = sum(m.undefined for m in measures)
    if undefined:
        print(f"{undefined:,} times a primitive was undefined", file=sys.stderr)
