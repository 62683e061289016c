"""Owns what the generators of workloads in SQL share: files of streams, and what DuckDB answers.

A line of a stream ends with its multiplicity: 1 inserts a row, -1 deletes one that an earlier line inserted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
from common import Example

PROGRAMS = Path(__file__).resolve().parent.parent
SOURCE = re.compile(r"CREATE (?:STREAM|TABLE) (\w+)\((.*?)\)\s*FROM FILE 'facts/(\w+)\.tbl'", re.DOTALL)
DUCK_TYPES = {"int": "BIGINT", "double": "DOUBLE", "string": "VARCHAR", "date": "DATE"}

Events = Sequence[tuple[tuple[Any, ...], int]]


def write(name: str, files: Mapping[str, Events], streams: Sequence[str], folder: Path | None) -> None:
    """The files of the queries in `programs/NAME/`, and the expected results; in `folder`, only the files."""
    example = Example(name) if folder is None else None
    for file, events in files.items():
        path = (folder or Path()) / f"{file}.tbl" if example is None else example.path("facts", f"{file}.tbl")
        path.parent.mkdir(parents=True, exist_ok=True)
        ends = [f"|{sign}" if file in streams else "" for _, sign in events]
        lines = ["|".join(map(str, row)) for row, _ in events]
        path.write_text(
            "".join(f"{line}{end}\n" for line, end in zip(lines, ends, strict=True)), encoding="utf-8"
        )
    if example is not None:
        rows = {file: rows_left(events) for file, events in files.items()}
        for query in sorted((PROGRAMS / name).glob("*.sql")):
            example.path("expected", f"{query.stem}.csv").write_text(answer(query, rows), encoding="utf-8")


def rows_left(events: Events) -> list[tuple[Any, ...]]:
    counts: Counter[tuple[Any, ...]] = Counter()
    for row, sign in events:
        counts[row] += sign
    return list(counts.elements())


def answer(query: Path, rows: Mapping[str, list[tuple[Any, ...]]]) -> str:
    """What DuckDB gives, sorted; numbers so that they are read back as they are."""
    text = query.read_text(encoding="utf-8")
    db = duckdb.connect()
    for relation, columns, file in SOURCE.findall(text):
        typed = [column.rsplit(" ", 1) for column in re.sub(r"\s+", " ", columns).strip().split(", ")]
        db.execute(f"create table {relation}({', '.join(f'{n} {DUCK_TYPES[t]}' for n, t in typed)})")
        db.executemany(f"insert into {relation} values ({', '.join('?' for _ in typed)})", rows[file])
    found = db.sql(select(text)).fetchall()
    lines = ["|".join(repr(v) if isinstance(v, float) else str(v) for v in row) for row in sorted(found)]
    return "".join(line + "\n" for line in lines)


def select(text: str) -> str:
    """The query of a file, without declarations and comments."""
    bare = re.sub(r"--[^\n]*", "", text)
    return next(part.strip() for part in bare.split(";") if re.match(r"\s*(SELECT|WITH)\b", part))
