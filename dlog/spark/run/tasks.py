"""Owns the work of a worker: load a shard's rows, run the block's program by the engine, write what it
derives.

A task is a pure function of its files: run again, it writes the same files again.  A user's mistake that a
rule encounters is part of its outcome, so that Spark does not retry what cannot succeed.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from dlog.engine.evaluate.evaluate import Evaluation, evaluate
from dlog.engine.state.limits import Limits, Watch
from dlog.engine.state.store import Store
from dlog.errors import DlogError
from dlog.ir.rules import Predicate, Program
from dlog.planning.options import Options
from dlog.planning.versions import facts_name
from dlog.spark.plan.places import WHOLE, Place
from dlog.spark.plan.sub_programs import SubProgram, runs_here
from dlog.spark.run.copies import Copies, write_table
from dlog.spark.run.partial import partial_table
from dlog.spark.run.tables import insert_parts, table_of


@dataclass(frozen=True)
class Output:
    """Where a derived relation goes: the copies it is added to, as `predicate`.

    `place` is where its rows are: on a column, whole, or scattered (None).
    """

    local: str
    predicate: Predicate
    place: Place | None
    copies: tuple[Place, ...]


@dataclass(frozen=True)
class Job:
    """What all tasks of one job have in common.  `name` is unique in a run."""

    name: str
    sub: SubProgram
    outputs: tuple[Output, ...]
    copies: Copies
    limits: Limits = field(default_factory=Limits)

    def save(self) -> str:
        """Written once, read by every worker."""
        path = self.copies.root / f"{self.name}.job"
        path.write_bytes(pickle.dumps(self))
        return str(path)

    def partial_file(self, number: int, shard: int) -> Path:
        return self.copies.root / f"{self.name}.{number}.{shard}.partial"


@dataclass(frozen=True)
class Outcome:
    """What a task returns to the driver."""

    shard: int
    rows: Mapping[str, int]
    error: DlogError | None = None


def run_task(path: str, shard: int) -> Outcome:
    """One shard of a job."""
    try:
        return _run(_job(path), shard)
    except DlogError as error:
        return Outcome(shard, {}, error)


@lru_cache(maxsize=4)
def _job(path: str) -> Job:
    job = pickle.loads(Path(path).read_bytes())
    assert isinstance(job, Job)
    return job


def _run(job: Job, shard: int) -> Outcome:
    program = job.sub.of_shard(shard, job.copies.shards)
    store = _loaded(job, program, shard)
    watch = Watch(job.limits)
    evaluate(program, store, Evaluation(watch))
    rows = {}
    for output in job.outputs:
        rows[output.local] = len(store.relations[output.local])
        _write(job, output, store, shard)
    for part in job.sub.partials:
        if runs_here(part.plan, shard, job.copies.shards):
            table = partial_table(store, part.rule, watch)
            write_table(table, job.partial_file(part.number, shard))
    return Outcome(shard, rows)


def _loaded(job: Job, program: Program, shard: int) -> Store:
    store = Store(program.predicates)
    store.options = Options.of(program.pragmas)
    for item in job.sub.inputs:
        insert_parts(store, item.local, job.copies.read(item.predicate, item.place, shard))
    for stratum in program.strata:
        for name in stratum.predicates:
            store.relations[facts_name(name)] = store.relations[name]
            store.relations[name] = store.relations[name].snapshot()
    return store


def _write(job: Job, output: Output, store: Store, shard: int) -> None:
    """A relation that is whole everywhere is written by the first shard alone."""
    if output.place == WHOLE and shard != 0:
        return
    if not output.copies:
        return
    table = table_of(store, output.predicate, output.local)
    writer = f"{job.name}-{shard}"
    for place in output.copies:
        if place == output.place and place != WHOLE:
            job.copies.put_own(output.predicate.name, place, shard, table, writer)
        else:
            job.copies.put(output.predicate, place, table, writer)


def run_in_process(path: str, shards: int) -> list[Outcome]:
    """All tasks of a job, one after the other, in this process: for tests, and where there is no Spark."""
    return [run_task(path, shard) for shard in range(shards)]
