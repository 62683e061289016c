"""Owns one evaluation on shards: blocks in order, and which copies exist meanwhile.

Base facts that this process has, what it merges, and the requested results are in a store; all else stays in
files (`dlog.spark.run.copies`).  Knows nothing of programs' texts or goals: see `dlog.spark.run.run`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dlog.engine.evaluate.demand import derived_predicates
from dlog.engine.evaluate.evaluate import Evaluation, evaluate
from dlog.engine.head.conflicts import check_function
from dlog.engine.state.limits import Limits, Watch
from dlog.engine.state.store import Store
from dlog.errors import DlogError, DlogErrors
from dlog.interrupts import immediate_interrupts
from dlog.ir.rules import Predicate, Program
from dlog.spark.plan.places import WHOLE, Place
from dlog.spark.plan.shards import EXCHANGE, HERE, Block
from dlog.spark.plan.steps import Recursion, candidates_name, derived_name, known_name, new_name
from dlog.spark.plan.sub_programs import SubProgram, block_program, named, sub_program
from dlog.spark.run.copies import Copies, map_table
from dlog.spark.run.partial import merged_rows
from dlog.spark.run.sinks import Sink, write_sink
from dlog.spark.run.sources import (
    SHOWN,
    Read,
    ReadTask,
    Source,
    clear_bad_rows,
    keep_bad_rows,
    parts_of,
    read_all,
    save_parts,
)
from dlog.spark.run.tables import insert_parts, table_of
from dlog.spark.run.tasks import Job, Outcome, Output

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Runner = Callable[[str, int], list[Outcome]]  # the file of a job, the number of shards -> outcomes
COMPACT = 16  # steps of a recursion after which a copy is rewritten as one file


@dataclass(frozen=True)
class Setting:
    """Where an evaluation runs and what it reads and writes there.  `out` has the folder of bad rows."""

    runner: Runner
    copies: Copies
    spark: SparkSession | None
    sources: tuple[Source, ...]
    sinks: tuple[Sink, ...]
    out: str | Path | None
    limits: Limits
    small_recursion: int  # rows that a recursion reads, below which this process does it
    warn: Callable[[str], None]
    progress: Callable[[str, str, int, int], None]


class Sharded:
    """One evaluation: which copies exist, and what this process has."""

    def __init__(
        self,
        setting: Setting,
        program: Program,
        blocks: list[Block],
        given: Store,
        based: frozenset[str],
        wanted: Iterable[str],
        watch: Watch,
    ):
        """`given` has the base facts in this process, including those of `based` predicates with rules."""
        self.setting = setting
        self.program = program
        self.blocks = blocks
        self.based = based
        self.watch = watch
        self.copies = setting.copies
        self.jobs_run = 0
        self.steps_run = 0
        self.sources = [s for s in setting.sources if s.predicate.name in program.predicates]
        self.sinks = [s for s in setting.sinks if s.predicate.name in program.predicates]
        self.wanted = set(wanted) | self._read_here()
        self.made: set[tuple[str, Place]] = set()  # copies that are complete
        self.sizes: dict[str, int] = {}  # rows of predicates that shards derived, equal ones counted twice
        self.store: Store = self._start(given)
        elsewhere = {source.predicate.name for source in self.sources}
        self.here = set(program.predicates) - derived_predicates(program) - elsewhere

    def run(self) -> None:
        for name in sorted(self.here):
            if self.program.predicates[name].is_functional:
                check_function(self.program, self.store, name)
        self._read_sources()
        for number, block in enumerate(self.blocks):
            names = ", ".join(n for n in block.derives if not self.program.predicates[n].auxiliary)
            self.setting.progress("evaluate", names, number, len(self.blocks))
            self.watch.check()
            later = self._later(number)
            if block.kind == HERE:
                self._run_here(block)
            elif block.kind == EXCHANGE and self._is_small(block):
                self._take_in(name for name, _ in block.reads())
                self._run_here(block)
            elif block.kind == EXCHANGE:
                self._exchange(number, block, later)
            else:
                self._job(number, block, later)
        for number, sink in enumerate(self.sinks):
            self.setting.progress("write", sink.predicate.name, number, len(self.sinks))
            place = self._sink_place(sink.predicate.name)
            self._need(sink.predicate.name, place)
            with immediate_interrupts():
                assert self.setting.spark is not None
                write_sink(self.setting.spark, sink, self.copies, place)

    # Where rows are

    def _start(self, given: Store) -> Store:
        """Relations of the program; those with rules are their own handles on the base facts."""
        store = given.under(dict(self.program.predicates))
        store.relations = dict(given.relations)
        derived = derived_predicates(self.program)
        for name in self.program.predicates:
            if name not in store.relations:
                store.clear(name)
            elif name in derived:
                store.relations[name] = store.relations[name].snapshot()
        return store

    def _read_here(self) -> set[str]:
        return {n for b in self.blocks if b.kind == HERE for p in b.plans for n in p.stratum.reads}

    def _later(self, number: int) -> dict[str, set[Place]]:
        """The copies that later blocks read, by predicate."""
        written = {sink.predicate.name for sink in self.sinks}
        found: dict[str, set[Place]] = {name: {self._sink_place(name)} for name in written}
        for block in self.blocks[number + 1 :]:
            for name, place in block.reads():
                found.setdefault(name, set()).add(place)
        return found

    def _sink_place(self, name: str) -> Place:
        """Where each row is in one shard: as the block that derives it has it, or by its first column."""
        places = [b.derives[name] for b in self.blocks if name in b.derives]
        return places[0] if places and places[0] is not None else 0

    def _read_sources(self) -> None:
        """One job reads all files of folders and URIs, into every copy that some block needs."""
        later, derived = self._later(-1), derived_predicates(self.program)
        wanted: list[tuple[Source, set[Place]]] = []
        for source in self.sources:
            name = source.predicate.name
            places = later.get(name, set()) | ({WHOLE} if name in self.wanted | derived else set())
            if places:
                wanted.append((source, places))
        if not wanted:
            return
        self.watch.doing = "reading files on Spark"
        parts = parts_of(wanted, self.copies, 2 * self.copies.shards)
        with immediate_interrupts():
            results = read_all(self.setting.spark, save_parts(parts, self.copies), parts)
        self._tell_bad(parts, results)
        for name, places in {source.predicate.name: places for source, places in wanted}.items():
            self._take_source(name, places, results)

    def _take_source(self, name: str, places: set[Place], results: list[Read]) -> None:
        """Copies of what tasks have read exist now; rows that this process had before join them."""
        if self.store.rows(name):
            for place in places:
                self.copies.put(self._of(name), place, table_of(self.store, self._of(name)), "here")
        self.made |= {(name, place) for place in places}
        self.sizes[name] = sum(r.rows for r in results if r.predicate == name)
        derived = derived_predicates(self.program)
        if name in self.wanted | derived:
            insert_parts(self.store, name, self.copies.read(name, WHOLE, 0))
            if name in derived:
                self.copies.drop(name)
            else:
                self.here.add(name)

    def _tell_bad(self, parts: list[ReadTask], results: list[Read]) -> None:
        """Warn of rejected rows, and write them to a file with their reasons."""
        errors = [r.error for r in results if r.error is not None]
        if errors:
            raise errors[0]
        out = self.setting.out
        if out is not None and str(out) != "-":
            clear_bad_rows(Path(out) / "bad", self.setting.sources)
            keep_bad_rows(self.copies, parts, Path(out) / "bad")
        for name in dict.fromkeys(source.predicate.name for source in self.sources):
            own = [r for r in results if r.predicate == name]
            for text in [text for r in own for text in r.first_bad][:SHOWN]:
                self.setting.warn(text)
            if bad := sum(r.bad for r in own):
                self.setting.warn(f"warning: {bad:,} row{'' if bad == 1 else 's'} of {name} rejected")

    def _need(self, name: str, place: Place) -> None:
        """Make a copy of what this process has, unless it exists."""
        if (name, place) not in self.made and name in self.here:
            self.copies.put(
                self.program.predicates[name], place, table_of(self.store, self._of(name)), "here"
            )
            self.made.add((name, place))

    def _of(self, name: str) -> Predicate:
        return self.program.predicates[name]

    def _collect(self, names: Iterable[str]) -> None:
        """Load whole copies of predicates into this process."""
        for name in names:
            insert_parts(self.store, name, self.copies.read(name, WHOLE, 0))
            self.here.add(name)
            if self._of(name).is_functional:
                check_function(self.program, self.store, name)

    def _is_small(self, block: Block) -> bool:
        """Whether one process has finished a recursion before the jobs of its steps have begun."""
        names = {name for name, _ in block.reads()} | block.derives.keys() & self.based
        rows = sum(self.sizes.get(n, 0) if n not in self.here else self.store.rows(n) for n in names)
        return rows < self.setting.small_recursion

    def _take_in(self, names: Iterable[str]) -> None:
        """Load any copies of predicates into this process."""
        for name in set(names) - self.here:
            place = next(p for n, p in sorted(self.made) if n == name)
            for shard in range(1 if place == WHOLE else self.copies.shards):
                insert_parts(self.store, name, self.copies.read(name, place, shard))
            self.here.add(name)

    # One block

    def _run_here(self, block: Block) -> None:
        (plan,) = block.plans
        predicates = {n: self._of(n) for n in (*plan.stratum.predicates, *plan.stratum.reads)}
        limits = {
            d.predicate: int(p.value)
            for d in self.program.directives
            if d.kind == "limitsize"
            for p in d.params
            if p.name == "n"
        }
        program = sub_program(self.program, predicates, [plan.stratum])
        evaluate(program, self.store.under(predicates), Evaluation(self.watch, limits=limits))
        self.here |= set(plan.stratum.predicates)

    def _job(self, number: int, block: Block, later: dict[str, set[Place]]) -> None:
        for name, place in block.reads():
            self._need(name, place)
        for name, own in block.derives.items():
            if name in self.based and own is not None:
                self._put_base(name, name, own)
        sub = block_program(self.program, block, self.based)
        merged = {h.predicate for part in sub.partials for h in part.rule.heads}
        outputs, collected = [], []
        for name, own in block.derives.items():
            copies = set(later.get(name, ()))
            if name in self.wanted or name in merged:
                copies |= {WHOLE}
                collected.append(name)
            if name in merged:
                copies = {WHOLE}
            outputs.append(Output(name, self._of(name), own, tuple(sorted(copies))))
            if own is None and name in self.based and name not in merged:
                for copy in copies:
                    self._put_base(name, name, copy)
        job = self._run(f"block{number}", sub, outputs)
        self._collect(collected)
        for part in sub.partials:
            files = [job.partial_file(part.number, s) for s in range(self.copies.shards)]
            tables = [map_table(file) for file in files if file.exists()]
            for head, rows in zip(part.rule.heads, merged_rows(self.store, part.rule, tables), strict=True):
                self.store.relations[head.predicate].apply_in_place(inserts=rows)
        for name in merged:
            if self._of(name).is_functional:
                check_function(self.program, self.store, name)
        self.made |= {(o.predicate.name, p) for o in outputs for p in o.copies if o.local not in merged}
        self.sizes |= self.rows

    def _put_base(self, name: str, under: str, place: Place) -> None:
        """The base facts of a predicate with rules, as a part of a copy."""
        predicate = named(self._of(name), under)
        self.copies.put(predicate, place, table_of(self.store, self._of(name)), "base")

    def _exchange(self, number: int, block: Block, later: dict[str, set[Place]]) -> None:
        (plan,) = block.plans
        recursion = Recursion(self.program, plan)
        for name, place in plan.reads():
            self._need(name, place)
        places = recursion.places
        for name in set(plan.stratum.predicates) & self.based:
            for place in places[name]:
                self._put_base(name, candidates_name(name, 0), place)
        self._run(f"block{number}-0", recursion.first(), self._derived(recursion, 0))
        known: list[int] = []
        step = 0
        while True:
            step += 1
            self.steps_run += 1
            compact = len(known) >= COMPACT
            outputs = self._derived(recursion, step)
            for name, place, local in recursion.copies:
                source = recursion.all_of(name, local) if compact else new_name(local)
                target = named(self._of(name), known_name(name, step))
                outputs.append(Output(source, target, place, (place,)))
            self._run(f"block{number}-{step}", recursion.step(known, step - 1), outputs)
            for name in plan.stratum.predicates:
                self.copies.drop(candidates_name(name, step - 1))
            for old in known if compact else ():
                for name in plan.stratum.predicates:
                    self.copies.drop(known_name(name, old))
            known = [step] if compact else [*known, step]
            if not any(self.rows.get(derived_name(n), 0) for n in plan.stratum.predicates):
                break
        collected = [n for n in plan.stratum.predicates if n in self.wanted]
        outputs = []
        for name in plan.stratum.predicates:
            copies = later.get(name, set()) | ({WHOLE} if name in collected else set())
            outputs.append(Output(name, self._of(name), places[name][0], tuple(sorted(copies))))
        self._run(f"block{number}-end", recursion.last(known), outputs)
        self._collect(collected)
        self.made |= {(o.predicate.name, p) for o in outputs for p in o.copies}
        self.sizes |= self.rows

    def _derived(self, recursion: Recursion, step: int) -> list[Output]:
        return [
            Output(derived_name(n), named(self._of(n), candidates_name(n, step)), None, places)
            for n, places in recursion.places.items()
        ]

    def _run(self, name: str, sub: SubProgram, outputs: list[Output]) -> Job:
        job = Job(name, sub, tuple(outputs), self.copies, self.setting.limits)
        path = job.save()
        self.watch.doing = f"running job {name} on Spark"
        self.jobs_run += 1
        with immediate_interrupts():
            outcomes = self.setting.runner(path, self.copies.shards)
        errors = [o.error for o in outcomes if o.error is not None]
        if errors:
            raise _with_user_names(errors[0])
        self.rows: dict[str, int] = {}
        for outcome in outcomes:
            for local, rows in outcome.rows.items():
                self.rows[local] = self.rows.get(local, 0) + rows
        return job


def _with_user_names(error: DlogError) -> DlogError:
    """An error of a shard, with the names that the user knows."""
    if not isinstance(error, DlogErrors):
        error.message = re.sub(r"@(whole|\d+)", "", error.message)
    return error
