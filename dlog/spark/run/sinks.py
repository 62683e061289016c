"""Owns outputs that Spark writes: folders and URIs of CSV, JSON or Parquet, and tables, in parts by shards.

    .output reach(IO="parquet", filename="hdfs://host/reach")       a URI
    .output reach(IO="csv", filename="reach/")                      a folder: the name ends with a slash
    .output reach(IO="table", name="shop.reach")                    a table of a Spark catalog

Existing contents are replaced when all parts are written.  Rows are in no order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from dlog.engine.loading import directive_params, located
from dlog.engine.state.store import Store
from dlog.errors import DataError
from dlog.io.options import JSON, PARQUET, TABLE, TEXT, OutputOptions, ParameterError
from dlog.ir.rules import Predicate, Program
from dlog.language import ast
from dlog.spark.cluster.reasons import hadoop_version, reason, remedy
from dlog.spark.plan.hashing import spark_type
from dlog.spark.plan.places import WHOLE, Place
from dlog.spark.run.copies import Copies
from dlog.spark.run.tables import insert_parts, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FORMATS = {TEXT: "csv", JSON: "json", PARQUET: "parquet", TABLE: TABLE}


@dataclass(frozen=True)
class Sink:
    """One output's location, as Spark names it, and how its text is written."""

    directive: ast.Directive
    predicate: Predicate
    format: str
    uri: str  # or the table
    options: OutputOptions


def find_sink(program: Program, directive: ast.Directive, out: str | Path) -> Sink | None:
    """None for an output that is one file.  As without Spark, everything is printed if `out` is "-"."""
    params = directive_params(directive)
    name = str(params.get("filename", ""))
    try:
        options = OutputOptions.from_params(directive.predicate, params, out)
        if str(out) == "-" or not (options.far is not None or name.endswith("/")):
            return None
        if options.format not in _FORMATS:
            raise ParameterError("Spark writes csv, json and parquet", "IO")
        if not program.predicates[directive.predicate].columns:
            raise DataError(f"{directive.predicate} has no columns that Spark could write")
        if program.predicates[directive.predicate].has_records:
            help = "write it to one file"
            raise DataError(f"{directive.predicate} has records, which Spark cannot write", help=help)
    except DataError as error:
        raise located(error, directive) from None
    uri = options.far or (Path(out) / name).absolute().as_uri()
    predicate = program.predicates[directive.predicate]
    return Sink(directive, predicate, _FORMATS[options.format], uri, options)


def write_sink(spark: SparkSession, sink: Sink, copies: Copies, place: Place) -> None:
    """Every shard's part of a copy, each row once."""
    predicate, shards = sink.predicate, 1 if place == WHOLE else copies.shards
    names = [c.name for c in predicate.columns]

    def rows(ids: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in ids:
            for shard in batch.column(0).to_pylist():
                table = _distinct(copies, predicate, place, shard).rename_columns(names)
                yield from _sparks(predicate, table, as_text).to_batches(1 << 16)

    as_text = [
        sink.format in (_FORMATS[TEXT], _FORMATS[JSON]) and c.type.own_texts for c in predicate.columns
    ]
    kinds = zip(predicate.columns, as_text, strict=True)
    schema = ", ".join(f"`{c.name}` {'string' if text else spark_type(c.type)}" for c, text in kinds)
    frame = spark.range(0, shards, 1, shards).mapInArrow(rows, schema)
    writer = frame.write.mode("overwrite")
    try:
        if sink.format == TABLE and _has_own_catalog(spark, sink.uri):
            frame.writeTo(sink.uri).createOrReplace()
        elif sink.format == TABLE:
            writer.saveAsTable(sink.uri)
        elif sink.format == "csv":
            text = {"sep": sink.options.delimiter, "header": str(sink.options.header).lower()}
            writer.options(**text).csv(sink.uri)
        else:
            writer.format(sink.format).save(sink.uri)
    except Exception as error:
        why = reason(error)
        help = remedy(why, hadoop_version(spark))
        raise located(DataError(f'cannot write "{sink.uri}": {why}', help=help), sink.directive) from None


def _has_own_catalog(spark: SparkSession, table: str) -> bool:
    """Whether a table's name begins with a configured catalog, which determines itself how it stores
    tables.
    """
    catalog = table.split(".")[0].strip("`")
    return catalog != "spark_catalog" and spark.conf.get(f"spark.sql.catalog.{catalog}", None) is not None


def _distinct(copies: Copies, predicate: Predicate, place: Place, shard: int) -> pa.Table:
    store = Store({predicate.name: predicate})
    insert_parts(store, predicate.name, copies.read(predicate.name, place, shard))
    return table_of(store, predicate)


def _sparks(predicate: Predicate, table: pa.Table, as_text: Sequence[bool]) -> pa.Table:
    """Columns converted to Spark's types, or to texts."""
    arrays = [
        pa.chunked_array(map(c.type.texts, values.chunks), pa.string()) if text else c.type.to_spark(values)
        for c, values, text in zip(predicate.columns, table.columns, as_text, strict=True)
    ]
    return pa.Table.from_arrays(arrays, names=table.column_names)
