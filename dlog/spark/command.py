"""Owns `dlog run --spark` and `dlog explain --spark`: from arguments to a database and to text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from dlog.engine.database import Database, plan_only
from dlog.engine.evaluate.demand import derived_predicates, rewriting_for
from dlog.engine.run import write_outputs
from dlog.engine.state.limits import Limits
from dlog.errors import DlogError
from dlog.spark.cluster.session import check_master, cores, is_local, read_settings, start
from dlog.spark.plan.explain import explain_blocks
from dlog.spark.plan.places import Shape
from dlog.spark.plan.shards import plan_blocks
from dlog.spark.run.heavy import find_heavy, store_samples
from dlog.spark.run.run import ShardedDatabase


def run_on_spark(
    path: str | Path,
    facts: str | Path,
    out: str | Path,
    master: str,
    *,
    shards: int | None = None,
    work: str | Path | None = None,
    settings: Iterable[str] = (),
    limits: Limits | None = None,
    progress: Callable[[str, str, int, int], None] | None = None,
    warn: Callable[[str], None] | None = None,
    magic: bool = True,
    stdout: BinaryIO | None = None,
) -> Database:
    """As `dlog.engine.run.run_program`, on a Spark master.  There are as many shards as cores by default."""
    from dlog.spark.run.runner import spark_runner

    check_master(master)
    if not is_local(master) and work is None:
        raise DlogError(
            f"the workers of {master} need a folder that all of them can access", help="give one with --work"
        )
    spark = start(master, read_settings(settings))
    database = ShardedDatabase(
        path,
        spark_runner(spark),
        shards or cores(spark),
        facts=facts,
        work=work,
        limits=limits,
        progress=progress,
        warn=warn,
        magic=magic,
        spark=spark,
        out=out,
    )
    write_outputs(database, out, progress, stdout, [sink.directive for sink in database.sinks])
    return database


def explain_on_spark(
    path: str | Path, facts: str | Path, shards: int | None = None, predicate: str | None = None
) -> str:
    """How the rules of a program are sharded, as text.  Starts no Spark and runs no rule."""
    database = plan_only(path, facts)
    if predicate is not None:
        database.require(predicate)
    rewriting = rewriting_for(database.program, database.store, database.pending)
    program = rewriting.program if rewriting.full else database.program
    derived = derived_predicates(program)
    sizes = {n: database.store.rows(n) for n in program.predicates if n not in derived}
    based = frozenset(n for n in derived if database.store.rows(n))
    limited = frozenset(d.predicate for d in program.directives if d.kind == "limitsize")
    samples = store_samples(database.store, sizes.keys() & database.store.relations.keys(), shards or 2)
    heavy = find_heavy(samples, program.predicates, shards or 2)
    shape = Shape(program, shards or 2, based, sizes, limited, frozenset(heavy.columns))
    return explain_blocks(plan_blocks(shape), predicate)
