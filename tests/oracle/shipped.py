"""Owns the shipped programs as tests: reads their facts and says what their outputs must be, in plain Python.

    programs/NAME.dl  programs/NAME/facts/*  programs/NAME/expected/*     (see programs/generators/common.py)
    programs/finance/NAME.dl ..

Knows the few file formats that the programs use, and nothing of dlog's own readers and writers.
"""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
import sqlite3
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet

from dlog.ir.rules import Predicate, Program
from dlog.language.ast import Directive
from dlog.values import Type

from .naive import Facts, Rows
from .primitives import FUNCTIONS
from .records import cell_value
from .values import Value, canonical

Params = dict[str, str | int | bool]

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"


def shipped_programs() -> list[Path]:
    """Every program that has expected outputs."""
    programs = (*PROGRAMS.glob("*.dl"), *(PROGRAMS / "finance").glob("*.dl"))
    return [p for p in sorted(programs) if (p.with_suffix("") / "expected").is_dir()]


# In


def read_inputs(program: Program, folder: Path) -> Facts:
    """The rows of every `.input` predicate."""
    inputs: Facts = {}
    for directive in program.directives:
        if directive.kind == "input":
            predicate = program.predicates[directive.predicate]
            inputs.setdefault(predicate.name, set()).update(_read(_params(directive), predicate, folder))
    return inputs


def _params(directive: Directive) -> Params:
    return {p.name: p.value for p in directive.params}


def _read(params: Params, predicate: Predicate, folder: Path) -> Rows:
    """The rows of one file.  JSON and Parquet files of the programs have no decimals or dates."""
    kind, path = params.get("IO", "file"), folder / str(params.get("filename", f"{predicate.name}.facts"))
    types = [column.type for column in predicate.columns]
    if kind == "parquet":
        return {tuple(row.values()) for row in pyarrow.parquet.read_table(path).to_pylist()}
    if kind == "sqlite":
        return _read_table(params, predicate, folder)
    data = path.read_bytes()
    text = (gzip.decompress(data) if params.get("compress") else data).decode()
    if kind == "json":
        return {tuple(json.loads(line).values()) for line in text.splitlines()}
    if kind == "csv":
        cells = list(csv.reader(io.StringIO(text)))
    else:
        delimiter = str(params.get("delimiter", "\t"))
        cells = [line.split(delimiter) if types else [] for line in text.split("\n")[:-1]]
    return {_typed(row, types) for row in cells[1 if params.get("header") else 0 :]}


def _read_table(params: Params, predicate: Predicate, folder: Path) -> Rows:
    """The columns of a table, which the programs name as the predicate does."""
    name = params.get("name", predicate.name)
    file = params.get("filename") or params.get("dbname") or f"{name}.sqlite"
    connection = sqlite3.connect(folder / str(file))
    names = ", ".join(f'"{column.name}"' for column in predicate.columns)
    rows = set(connection.execute(f'SELECT {names} FROM "{name}"'))
    connection.close()
    return rows


def _typed(cells: list[str], types: list[Type]) -> tuple[Value, ...]:
    return tuple(_parse(cell, type) for cell, type in zip(cells, types, strict=True))


def _parse(cell: str, type: Type) -> Value:
    """
    >>> _parse("12", Type("int")), _parse("true", Type("bool")), _parse("2026-02-01", Type("date"))
    (12, True, datetime.date(2026, 2, 1))
    """
    if type.is_record:
        return cell_value(cell, type, _parse)
    if type.name == "bool":
        return {"true": True, "false": False}[cell]
    readers: dict[str, Callable[[str], Value]] = {
        "int": int,
        "unsigned": int,
        "float": float,
        "decimal": Decimal,
        "string": str,
        "date": datetime.date.fromisoformat,
        "datetime": datetime.datetime.fromisoformat,
        "timestamp": lambda cell: canonical(datetime.datetime.fromisoformat(cell)),
        "duration": lambda cell: FUNCTIONS["to_duration"](type, cell),
    }
    return readers[type.name](cell)


# Out


def expected_outputs(program: Program, folder: Path) -> Iterator[tuple[str, Rows]]:
    """Every predicate that is written to a file, with the rows that the file has."""
    for directive in program.directives:
        params = _params(directive)
        if directive.kind != "output" or params.get("IO") == "stdout":
            continue
        if params.get("IO") != "sqlite":
            name = str(params.get("filename", f"{directive.predicate}.csv"))
            compressed = params.get("compress") and not name.endswith(".gz")
            params["filename"] = f"{name}.gz" if compressed else name
        predicate = program.predicates[directive.predicate]
        yield predicate.name, as_printed(_read(params, predicate, folder))


def as_printed(rows: Rows) -> Rows:
    """Rows with floats as files have them: with 9 significant digits, as Soufflé's.

    >>> as_printed({(1 / 3, 1)})
    {(0.333333333, 1)}
    """
    return {tuple(float(f"{v:.9g}") if isinstance(v, float) else v for v in row) for row in rows}


def expected_stdout(program: Program, facts: Facts) -> list[str]:
    """What `.printsize` and outputs of strings to standard output print, in the order of the directives."""
    lines: list[str] = []
    for directive in program.directives:
        name = directive.predicate
        if directive.kind == "printsize":
            lines.append(f"{name}\t{len(facts[name])}")
        elif directive.kind == "output" and any(p.value == "stdout" for p in directive.params):
            body = ["\t".join(map(str, row)) for row in sorted(facts[name])]
            lines += ["-" * 15, name, "=" * 15, *body, "=" * 15]
    return lines
