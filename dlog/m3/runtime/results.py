"""Owns the text of results: aligned tables, CSV or JSON.  Knows nothing of how they were computed."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from typing import Any, TextIO

import pyarrow as pa

from dlog.errors import DlogError

FORMATS = ("table", "csv", "json")


def print_results(results: Iterable[tuple[str, pa.Table]], format: str, out: TextIO) -> None:
    """All queries, each under its name; JSON is one object."""
    if format not in FORMATS:
        raise DlogError(f"unknown format {format}", help=f"one of {', '.join(FORMATS)}")
    found = list(results)
    if format == "json":
        print(json.dumps({name: table.to_pylist() for name, table in found}, indent=1, default=str), file=out)
        return
    for name, table in found:
        if format == "csv":
            if len(found) > 1:
                print(f"# {name}", file=out)
            _print_csv(table, out)
        else:
            print(name, file=out)
            _print_table(table, out)


def _print_csv(table: pa.Table, out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows(_rows(table))


def _print_table(table: pa.Table, out: TextIO) -> None:
    rows = [[str(value) for value in row] for row in (table.column_names, *_rows(table))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print((" " + "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True))).rstrip(), file=out)
    print(f"{len(rows) - 1:,} row{'' if len(rows) == 2 else 's'}", file=out)


def _rows(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)
