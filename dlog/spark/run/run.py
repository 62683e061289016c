"""Owns a run on shards: from a program and its inputs to its results.

`ShardedDatabase` is the engine's database with evaluation delegated (`dlog.spark.run.evaluation`): a
`Runner` runs the tasks of a job and returns their outcomes.  Base facts that this process loaded and the
program's results are in its store.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from dlog.engine.database import Database
from dlog.engine.evaluate.demand import derived_predicates
from dlog.engine.head.conflicts import check_constraints
from dlog.engine.loading import load_inputs
from dlog.engine.state.limits import Limits, Watch
from dlog.engine.state.store import Store
from dlog.errors import DataError, DlogError
from dlog.ir.goals.goals import asked_for
from dlog.ir.goals.magic import goal_directed
from dlog.ir.rules import Program
from dlog.spark.plan.functors import refuse_functors
from dlog.spark.plan.places import Shape
from dlog.spark.plan.shards import Block, plan_blocks
from dlog.spark.run.copies import Copies
from dlog.spark.run.evaluation import Runner, Setting, Sharded
from dlog.spark.run.heavy import LEAST_ROWS, SAMPLE, find_heavy, store_samples
from dlog.spark.run.samples import sample
from dlog.spark.run.sinks import Sink, find_sink
from dlog.spark.run.sources import Source, find_source, is_spread
from dlog.storage.relation.relation import Relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL_RECURSION = 100_000  # rows read by a recursion below which one process does it before a job begins
SMALL = 2_000_000  # rows below which one process is faster, for all we have measured
NOTE = "note: one process can hold {rows}, and `dlog run` without --spark is faster on so few"


class ShardedDatabase(Database):
    """A program evaluated once, on shards."""

    def __init__(
        self,
        path: str | Path | None,
        runner: Runner,
        shards: int,
        *,
        source: str | None = None,
        facts: str | Path = ".",
        work: str | Path | None = None,
        limits: Limits | None = None,
        progress: Callable[[str, str, int, int], None] | None = None,
        warn: Callable[[str], None] | None = None,
        magic: bool = True,
        small_recursion: int = SMALL_RECURSION,
        least_heavy: int = LEAST_ROWS,
        spark: SparkSession | None = None,
        out: str | Path | None = None,
    ):
        """`work` is a folder that all workers can access, for the files of this run; they are removed with
        it.

        `spark` reads inputs and writes outputs that are folders or URIs.  Outputs are below `out`, where bad
        rows of such inputs are written, too, in the folder `bad`.
        """
        self.run_blocks: list[Block] = []
        self.jobs_run = 0
        self.steps_run = 0  # jobs that were steps of recursions with exchange
        self.small_recursion = small_recursion
        self.least_heavy = least_heavy
        self._runner = runner
        self._copies = Copies(Path(tempfile.mkdtemp(prefix="dlog-shards-", dir=work)), shards)
        self._spark = spark
        self._out = out
        self._sources: list[Source] = []
        self.sinks: list[Sink] = []
        try:
            super().__init__(
                path,
                source=source,
                facts=facts,
                limits=limits,
                progress=progress,
                warn=warn,
                goals_only=magic,
            )
        finally:
            shutil.rmtree(self._copies.root, ignore_errors=True)

    def _bind(self, store: Store, program: Program) -> None:
        """Functions are not sent to workers: only this process has them."""
        refuse_functors(program.rules, "--spark")

    @property
    def _elsewhere(self) -> dict[str, int]:
        """Predicates whose base facts are files that workers read, and their approximate number of rows."""
        found: dict[str, int] = {}
        for source in self._sources:
            found[source.predicate.name] = found.get(source.predicate.name, 0) + source.guessed_rows
        return found

    def _load_inputs(self, facts: str | Path) -> None:
        """Inputs that are one file are read here; for others only the names of their files."""
        spread = [d for d in self.program.directives if d.kind == "input" and is_spread(d, facts)]
        self._sources = [find_source(self.program, d, facts, self._spark) for d in spread]
        if self._out is not None and self._spark is not None:
            outputs = [d for d in self.program.directives if d.kind == "output"]
            found = [find_sink(self.program, d, self._out) for d in outputs]
            self.sinks = [sink for sink in found if sink is not None]
        for delta in self.program.deltas:
            if delta.predicate in self._elsewhere and delta.op != "+":
                raise DataError(f"{delta.predicate} is read from many files: facts cannot be deleted from it")
        others = tuple(d for d in self.program.directives if d not in spread)
        load_inputs(
            replace(self.program, directives=others),
            self.store,
            facts,
            self.warn,
            lambda what, done, total: self._progress("load", what, done, total),
        )

    def _evaluate(self, watch: Watch) -> None:
        derived = derived_predicates(self.program)
        self.pending = derived - self._shard(self.program, derived, watch)
        check_constraints(self.program, self.store)

    def _evaluate_stored(self, watch: Watch) -> None:
        """All of it: nothing changes afterwards."""
        self._evaluate(watch)

    def _evaluate_goals(self, watch: Watch) -> None:
        """Other predicates computed in full stay with the shards: bringing them here may cost the most."""
        names = self.program.predicates
        based = frozenset(n for n in names if self.store.rows(n) or n in self._elsewhere)
        goals = asked_for(self.program, based)
        rewriting = goal_directed(self.program, based, goals)
        wanted = rewriting.full.keys() & goals.keys()
        self.pending -= self._shard(rewriting.program, wanted, watch)
        checked = tuple(c for c in self.program.constraints if c.violations in wanted)
        check_constraints(replace(self.program, constraints=checked), self.store)

    def _computed(self, program: Program, name: str, store: Store, unevaluated: frozenset[str]) -> Relation:
        """If some base facts are with the workers, this process cannot compute what was not requested."""
        if self._sources:
            raise DlogError(
                f"{name} is not available: facts of the program are in files that workers read",
                help=f"request it in the program, as by .output {name}",
            )
        return super()._computed(program, name, store, unevaluated)

    def _shard(self, program: Program, wanted: Iterable[str], watch: Watch) -> set[str]:
        """Evaluate the strata of a program; returns which of the requested names are in the store in the
        end.
        """
        with_facts = {n for n in program.predicates if self.store.rows(n)} | self._elsewhere.keys()
        rows = {n: self.store.rows(n) + self._elsewhere.get(n, 0) for n in with_facts}
        total = sum(rows.values())
        if total < SMALL:
            guessed = "about " if self._elsewhere else ""
            self.warn(NOTE.format(rows=f"{guessed}{total:,} row{'' if total == 1 else 's'}"))
        derived = derived_predicates(program)
        sizes = {n: rows.get(n, 0) for n in program.predicates if n not in derived}
        limited = frozenset(d.predicate for d in program.directives if d.kind == "limitsize")
        based = frozenset(derived & with_facts)
        heavy = find_heavy(self._samples(program), program.predicates, self._copies.shards)
        self._copies = replace(self._copies, heavy=heavy.arrays(program.predicates.values()))
        shape = Shape(program, self._copies.shards, based, sizes, limited, frozenset(heavy.columns))
        self.run_blocks = plan_blocks(shape)
        setting = Setting(
            self._runner,
            self._copies,
            self._spark,
            tuple(self._sources),
            tuple(self.sinks),
            self._out,
            self.limits,
            self.small_recursion,
            self.warn,
            self._progress,
        )
        here = self._needed_here(wanted)
        done = Sharded(setting, program, self.run_blocks, self.store, based, here, watch)
        try:
            done.run()
        finally:
            self.jobs_run, self.steps_run = done.jobs_run, done.steps_run
        for name in done.wanted & (self.store.relations.keys() | done.here):
            self.store.relations[name] = done.store.relations[name]
        return here & done.here

    def _needed_here(self, wanted: Iterable[str]) -> set[str]:
        """What must come back: not what Spark alone writes, but sizes, and inputs that are printed.

        Scattered functions come back, too: shards do not see whether a key has two values.
        """
        places = {name: place for block in self.run_blocks for name, place in block.derives.items()}
        keyed = {name for name, predicate in self.program.predicates.items() if predicate.is_functional}
        scattered = {n for n in places if places[n] is None and n in keyed}
        requested = [d for d in self.program.directives if d.kind in ("output", "printsize")]
        written = [sink.directive for sink in self.sinks]
        alone = {d.predicate for d in written} - {d.predicate for d in requested if d not in written}
        read = {d.predicate for d in requested if d.predicate in self._elsewhere and d not in written}
        asked = {query.predicate for query in self.program.queries}
        return (set(wanted) - (alone - asked - scattered)) | read

    def _samples(self, program: Program) -> dict[str, pa.Table]:
        """Some base facts of each predicate without rules that has many, here or in files."""
        derived, shards = derived_predicates(program), self._copies.shards
        base = [n for n in program.predicates if n not in derived and n not in self._elsewhere]
        found = store_samples(self.store, base, shards, self.least_heavy)
        for source in self._sources:
            name = source.predicate.name
            wanted = shards > 1 and name in program.predicates and name not in derived
            if wanted and source.guessed_rows >= self.least_heavy:
                taken = sample(source, self._spark, SAMPLE)
                if taken is not None and taken.num_rows:
                    found[name] = taken
        return found
