"""Owns what is known of the data of a query before it runs: sizes and distinct values, from its files.

A file's first lines are read.  How many rows it has is estimated from its length; a column in which most
values of these lines differ is taken to have new values in later lines, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlog.m3.syntax import ast
from dlog.multilevel.selection.sizes import Statistics

LINES = 10_000
NEW = 0.5  # the share of different values from which on a column is taken to have new ones


@dataclass(frozen=True)
class Sample:
    """The statistics of some relations, by their files or rows; the others have none that could be read."""

    known: Statistics
    relations: tuple[str, ...]
    by: str = "files"


def sampled(sources: Iterable[ast.Source], folders: Sequence[Path]) -> Sample:
    """From the files of sources, which are searched for in these folders.  All rows of streams are taken to
    come in the same time.
    """
    rows, distinct = dict[str, float](), dict[tuple[str, int], float]()
    streams = []
    for source in sources:
        found = _columns(source, folders)
        if found is None:
            continue
        rows[source.name], columns = found
        streams += [source.name] if source.kind == ast.STREAM else []
        distinct.update({(source.name, i): values for i, values in enumerate(columns)})
    total = sum(rows[name] for name in streams)
    rates = {name: rows[name] / total for name in streams}
    return Sample(Statistics(rates, rows, distinct), tuple(rows))


def _columns(source: ast.Source, folders: Sequence[Path]) -> tuple[float, list[float]] | None:
    """How many rows a file has, and how many values each column; None if there is no such file."""
    paths = [folder / source.file for folder in folders] if source.file and source.format == "csv" else []
    path = next((p for p in paths if p.is_file()), None)
    if path is None:
        return None
    first = 2 * source.deletions  # an order and an event
    values: list[set[str]] = [set() for _ in source.columns]
    lines = size = 0
    delimiter = source.delimiter.replace("\\t", "\t")
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            lines, size = lines + 1, size + len(line)
            for seen, cell in zip(values, line.rstrip("\n").split(delimiter)[first:], strict=False):
                seen.add(cell)
            if lines == LINES:
                break
    if not lines:
        return None
    times = max(path.stat().st_size / size, 1.0) if lines == LINES else 1.0
    return lines * times, [len(seen) * (times if len(seen) > NEW * lines else 1) for seen in values]
