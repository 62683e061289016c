"""Owns outputs that Spark writes: folders and URIs of CSV, JSON or Parquet, a part for each shard.

    .output reach(IO="parquet", filename="hdfs://host/reach")       a URI
    .output reach(IO="csv", filename="reach/")                      a folder: the name ends with a slash

What is there is replaced when all parts are written.  Rows are in no order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from dlog.engine.loading import directive_params, located
from dlog.engine.store import Store
from dlog.errors import DataError
from dlog.io.options import ARROW, JSON, PARQUET, TEXT, OutputOptions, ParameterError
from dlog.ir.rules import Predicate, Program
from dlog.language import ast
from dlog.spark.copies import Copies
from dlog.spark.hashing import spark_type
from dlog.spark.shards import WHOLE, Place
from dlog.spark.tables import insert_parts, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_FORMATS = {TEXT: "csv", JSON: "json", PARQUET: "parquet"}


@dataclass(frozen=True)
class Sink:
    """One predicate's place, as Spark names it, and how its text is written."""

    predicate: Predicate
    format: str
    uri: str
    options: OutputOptions


def is_spread(directive: ast.Directive) -> bool:
    """Whether an output is a folder or a URI."""
    name = str(directive_params(directive).get("filename", ""))
    return bool(_URI.match(name)) or name.endswith("/")


def find_sink(program: Program, directive: ast.Directive, out: str | Path) -> Sink:
    params = directive_params(directive)
    name = str(params["filename"])
    try:
        options = OutputOptions.from_params(directive.predicate, params, out)
        if options.format == ARROW:
            raise ParameterError("Spark writes csv, json and parquet", "IO")
        if not program.predicates[directive.predicate].columns:
            raise DataError(f"{directive.predicate} has no columns that Spark could write")
    except DataError as error:
        raise located(error, directive) from None
    uri = name if _URI.match(name) else (Path(out) / name).absolute().as_uri()
    return Sink(program.predicates[directive.predicate], _FORMATS[options.format], uri, options)


def write_sink(spark: SparkSession, sink: Sink, copies: Copies, place: Place) -> None:
    """Every shard's part of a copy, each row once."""
    predicate, shards = sink.predicate, 1 if place == WHOLE else copies.shards
    names = [c.name for c in predicate.columns]

    def rows(ids: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in ids:
            for shard in batch.column(0).to_pylist():
                table = _distinct(copies, predicate, place, shard).rename_columns(names)
                yield from _sparks(predicate, table).to_batches(1 << 16)

    schema = ", ".join(f"`{c.name}` {spark_type(c.type)}" for c in predicate.columns)
    frame = spark.range(0, shards, 1, shards).mapInArrow(rows, schema)
    writer = frame.write.mode("overwrite").format(sink.format)
    if sink.format == "csv":
        writer = writer.option("sep", sink.options.delimiter).option("header", sink.options.header)
    try:
        writer.save(sink.uri)
    except Exception as error:
        raise DataError(f'cannot write "{sink.uri}": {str(error).strip().splitlines()[0]}') from None


def _distinct(copies: Copies, predicate: Predicate, place: Place, shard: int) -> pa.Table:
    store = Store({predicate.name: predicate})
    insert_parts(store, predicate.name, copies.read(predicate.name, place, shard))
    return table_of(store, predicate)


def _sparks(predicate: Predicate, table: pa.Table) -> pa.Table:
    """Columns as Spark's types have them."""
    arrays = []
    for column, values in zip(predicate.columns, table.columns, strict=True):
        if column.type.name == "unsigned":
            values = values.cast(pa.decimal128(20, 0))
        elif column.type.name == "datetime":
            values = values.cast(pa.timestamp("us", "UTC"))
        arrays.append(values)
    return pa.Table.from_arrays(arrays, names=table.column_names)
