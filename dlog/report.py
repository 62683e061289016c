"""Owns tables and lines for people: answers of queries, changes of a commit, the measures of a run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from dlog.engine.database import Database
    from dlog.engine.result import Result
    from dlog.engine.transaction import Change, Commit


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


def print_stats(database: Database, file: TextIO | None = None) -> None:
    """One line per rule, slowest first, on standard error unless told otherwise."""
    out = file or sys.stderr
    measures = sorted(database.measures.rules.values(), key=lambda m: -m.seconds)
    header = ["rows", "iterations", "seeks", "nexts", "seconds", "rule"]
    lines = [
        [f"{m.rows:,}", f"{m.iterations:,}", f"{m.seeks:,}", f"{m.nexts:,}", f"{m.seconds:.4f}", str(m.rule)]
        for m in measures
    ]
    widths = [max(len(line[i]) for line in (header, *lines)) for i in range(5)]
    for line in (header, *lines):
        numbers = "  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=False))
        print(f"{numbers}  {line[5]}", file=out)
    undefined = sum(m.undefined for m in measures)
    if undefined:
        print(f"{undefined:,} times a primitive was undefined", file=out)


def change_parts(commit: Commit, database: Database) -> list[str]:
    """`+2 edge`, `-1 +1 price`: base predicates first, then in the order of strata."""
    from dlog.engine.show import in_order

    return [
        f"{signed_counts(commit.changes[name])} {name}" for name in in_order(database.program, commit.changes)
    ]


def signed_counts(change: Change) -> str:
    signed = [f"-{len(change.erased):,}"] if len(change.erased) else []
    signed += [f"+{len(change.inserted):,}"] if len(change.inserted) else []
    return " ".join(signed)


def milliseconds(seconds: float) -> str:
    """
    >>> milliseconds(0.0004), milliseconds(0.25), milliseconds(12.3)
    ('0.4 ms', '250 ms', '12.3 s')
    """
    if seconds >= 10:
        return f"{seconds:.1f} s"
    amount = seconds * 1000
    return f"{amount:.0f} ms" if amount >= 10 else f"{amount:.1f} ms"
