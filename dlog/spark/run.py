"""Owns a run on shards: blocks in order, from base facts in this process and in files to what is asked for.

`ShardedDatabase` is the engine's database with evaluation given to others: a `Runner` runs the tasks of a job
and gives their outcomes.  Base facts that this process loaded, what it merges, and what the program asks for
are in its store; all else stays in files (`dlog.spark.copies`).
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dlog.engine.conflicts import check_constraints, check_function
from dlog.engine.database import Database
from dlog.engine.demand import derived_predicates
from dlog.engine.evaluate import Evaluation, evaluate
from dlog.engine.limits import Limits, Watch
from dlog.engine.loading import load_inputs
from dlog.engine.store import Store
from dlog.errors import DataError, DlogError, DlogErrors
from dlog.interrupts import heard
from dlog.ir.goals import asked_for
from dlog.ir.magic import goal_directed
from dlog.ir.rules import Predicate, Program
from dlog.spark.copies import Copies, map_table
from dlog.spark.heavy import LEAST_ROWS, find_heavy
from dlog.spark.partial import merged_rows
from dlog.spark.shards import EXCHANGE, HERE, WHOLE, Block, Place, Shape, plan_blocks
from dlog.spark.sinks import Sink, find_sink, write_sink
from dlog.spark.sinks import is_spread as is_spread_output
from dlog.spark.sources import (
    SHOWN,
    Part,
    Read,
    Source,
    clear_bad_rows,
    find_source,
    is_spread,
    keep_bad_rows,
    parts_of,
    read_all,
    save_parts,
)
from dlog.spark.steps import Recursion, candidates_name, derived_name, known_name, new_name
from dlog.spark.sub_programs import SubProgram, block_program, named, sub_program
from dlog.spark.tables import insert_parts, table_of
from dlog.spark.tasks import Job, Outcome, Output
from dlog.storage.relation import Relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Runner = Callable[[str, int], list[Outcome]]  # the file of a job, the number of shards -> outcomes
COMPACT = 16  # steps of a recursion after which a copy is written as one file again
SMALL_RECURSION = 100_000  # rows read by a recursion below which one process does it before a job begins
SMALL = 2_000_000  # rows below which one process is faster, for all we have measured
NOTE = "note: one process holds {rows} easily, and `dlog run` without --spark is faster on so few"


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
        """`work` is a folder that all workers reach, for the files of this run; they go with it.

        `spark` reads inputs and writes outputs that are folders or URIs.  Outputs are below `out`, where bad
        rows of such inputs are put aside, too, in the folder `bad`.
        """
        self.blocks: list[Block] = []
        self.jobs_run = 0
        self.steps_run = 0  # jobs that were steps of recursions with exchange
        self.small_recursion = small_recursion
        self.least_heavy = least_heavy
        self._runner = runner
        self._copies = Copies(Path(tempfile.mkdtemp(prefix="dlog-shards-", dir=work)), shards)
        self._spark = spark
        self._out = out
        self._sources: dict[str, Source] = {}
        self.sinks: dict[str, Sink] = {}
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

    @property
    def _elsewhere(self) -> dict[str, int]:
        """Predicates whose base facts are files that workers read, and about how many they are."""
        return {name: source.guessed_rows for name, source in self._sources.items()}

    def _load_inputs(self, facts: str | Path) -> None:
        """Inputs that are one file are read here; of others only the names of their files."""
        spread = [d for d in self.program.directives if d.kind == "input" and is_spread(d, facts)]
        for directive in spread:
            self._sources[directive.predicate] = find_source(self.program, directive, facts, self._spark)
        if self._out is not None and self._spark is not None:
            for directive in self.program.directives:
                if directive.kind == "output" and is_spread_output(directive):
                    self.sinks[directive.predicate] = find_sink(self.program, directive, self._out)
        for delta in self.program.deltas:
            if delta.predicate in self._sources and delta.op != "+":
                raise DataError(f"{delta.predicate} is read from many files: nothing is taken back from it")
        others = tuple(d for d in self.program.directives if d not in spread)
        load_inputs(
            replace(self.program, directives=others),
            self.store,
            facts,
            self.warn,
            lambda what, done, total: self._progress("load", what, done, total),
        )

    def _evaluate(self, watch: Watch) -> None:
        self._shard(self.program, dict.fromkeys(derived_predicates(self.program), ""), watch)
        check_constraints(self.program, self.store)
        self.pending = frozenset()

    def _evaluate_goals(self, watch: Watch) -> None:
        """What else is computed in full stays with the shards: bringing it here may cost the most."""
        names = self.program.predicates
        based = frozenset(n for n in names if self.store.rows(n) or n in self._elsewhere)
        goals = asked_for(self.program, based)
        rewriting = goal_directed(self.program, based, goals)
        wanted = rewriting.full.keys() & goals.keys()
        self._shard(rewriting.program, wanted, watch)
        checked = tuple(c for c in self.program.constraints if c.violations in wanted)
        check_constraints(replace(self.program, constraints=checked), self.store)
        self.pending -= wanted

    def _computed(self, program: Program, name: str) -> Relation:
        """Where some base facts are with the workers, this process cannot compute what was not asked for."""
        if self._sources:
            raise DlogError(
                f"{name} is not here: facts of the program are in files that workers read",
                help=f"ask for it in the program, as by .output {name}",
            )
        return super()._computed(program, name)

    def _shard(self, program: Program, wanted: Iterable[str], watch: Watch) -> None:
        """Evaluate the strata of a program; what is wanted is in the store in the end."""
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
        base = [n for n in program.predicates if n not in derived and n not in self._sources]
        heavy = find_heavy(self.store, base, self._copies.shards, self.least_heavy)
        self._copies = replace(self._copies, heavy=heavy.arrays(program.predicates.values()))
        shape = Shape(program, self._copies.shards, based, sizes, limited, frozenset(heavy.columns))
        self.blocks = plan_blocks(shape)
        _Run(self, program, based, set(wanted), watch).run()


class _Run:
    """One evaluation: which copies there are, and what this process has."""

    def __init__(
        self,
        database: ShardedDatabase,
        program: Program,
        based: frozenset[str],
        wanted: set[str],
        watch: Watch,
    ):
        self.database = database
        self.program = program
        self.based = based
        self.watch = watch
        self.blocks = database.blocks
        self.copies = database._copies
        self.sinks = {n: s for n, s in database.sinks.items() if n in program.predicates}
        told = [d for d in program.directives if d.kind in ("output", "printsize")]
        sized = {d.predicate for d in told if d.kind == "printsize"}
        read = {d.predicate for d in told if d.predicate in database._sources}
        self.wanted = (wanted | read) - (self.sinks.keys() - sized) | self._read_here()
        self.made: set[tuple[str, Place]] = set()  # copies that are complete
        self.sizes: dict[str, int] = {}  # rows of predicates that shards derived, equal ones counted twice
        self.store: Store = self._start()
        self.here = set(program.predicates) - derived_predicates(program) - database._sources.keys()

    def run(self) -> None:
        for name in sorted(self.here):
            if self.program.predicates[name].is_functional:
                check_function(self.program, self.store, name)
        self._read_sources()
        for number, block in enumerate(self.blocks):
            names = ", ".join(n for n in block.derives if not self.program.predicates[n].auxiliary)
            self.database._progress("evaluate", names, number, len(self.blocks))
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
        self.database._progress("evaluate", "", len(self.blocks), len(self.blocks))
        for name, sink in self.sinks.items():
            place = self._sink_place(name)
            self._need(name, place)
            with heard():
                assert self.database._spark is not None
                write_sink(self.database._spark, sink, self.copies, place)
        for name in self.wanted & self.database.store.relations.keys() | self.wanted & self.here:
            self.database.store.relations[name] = self.store.relations[name]

    # What is where

    def _start(self) -> Store:
        """Relations of the program; those with rules are handles of their own on the base facts."""
        store = self.database.store.under(dict(self.program.predicates))
        store.relations = dict(self.database.store.relations)
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
        found: dict[str, set[Place]] = {name: {self._sink_place(name)} for name in self.sinks}
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
        database, later = self.database, self._later(-1)
        derived = derived_predicates(self.program)
        wanted: list[tuple[Source, set[Place]]] = []
        for name, source in database._sources.items():
            places = later.get(name, set()) | ({WHOLE} if name in self.wanted | derived else set())
            if name in self.program.predicates and places:
                wanted.append((source, places))
        if not wanted:
            return
        parts = parts_of(wanted, self.copies, 2 * self.copies.shards)
        with heard():
            results = read_all(database._spark, save_parts(parts, self.copies), parts)
        self._tell_bad(parts, results)
        for source, places in wanted:
            name = source.predicate.name
            if self.store.rows(name):  # facts of the program's text
                for place in places:
                    self.copies.put(self._of(name), place, table_of(self.store, self._of(name)), "here")
            self.made |= {(name, place) for place in places}
            self.sizes[name] = sum(r.rows for r in results if r.predicate == name)
            if WHOLE in places and (name in self.wanted or name in derived):
                insert_parts(self.store, name, self.copies.read(name, WHOLE, 0))
                if name in derived:
                    self.copies.drop(name)
                else:
                    self.here.add(name)

    def _tell_bad(self, parts: list[Part], results: list[Read]) -> None:
        """Warn of rows that were not taken, and put them aside with their reasons."""
        errors = [r.error for r in results if r.error is not None]
        if errors:
            raise errors[0]
        out = self.database._out
        if out is not None and str(out) != "-":
            clear_bad_rows(Path(out) / "bad", self.database._sources.values())
            keep_bad_rows(self.copies, parts, Path(out) / "bad")
        for name in self.database._sources:
            own = [r for r in results if r.predicate == name]
            for text in [text for r in own for text in r.first_bad][:SHOWN]:
                self.database.warn(text)
            if bad := sum(r.bad for r in own):
                self.database.warn(f"warning: {bad:,} row{'' if bad == 1 else 's'} of {name} not taken")

    def _need(self, name: str, place: Place) -> None:
        """Make a copy of what this process has, if there is none yet."""
        if (name, place) not in self.made and name in self.here:
            self.copies.put(
                self.program.predicates[name], place, table_of(self.store, self._of(name)), "here"
            )
            self.made.add((name, place))

    def _of(self, name: str) -> Predicate:
        return self.program.predicates[name]

    def _collect(self, names: Iterable[str]) -> None:
        """Take whole copies of predicates into this process."""
        for name in names:
            insert_parts(self.store, name, self.copies.read(name, WHOLE, 0))
            self.here.add(name)
            if self._of(name).is_functional:
                check_function(self.program, self.store, name)

    def _is_small(self, block: Block) -> bool:
        """Whether one process has done a recursion before the jobs of its steps have begun."""
        names = {name for name, _ in block.reads()} | block.derives.keys() & self.based
        rows = sum(self.sizes.get(n, 0) if n not in self.here else self.store.rows(n) for n in names)
        return rows < self.database.small_recursion

    def _take_in(self, names: Iterable[str]) -> None:
        """Take any copies of predicates into this process."""
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
            self.database.steps_run += 1
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
        job = Job(name, sub, tuple(outputs), self.copies, self.database.limits)
        path = job.save()
        self.watch.doing = f"running job {name} on Spark"
        self.database.jobs_run += 1
        with heard():
            outcomes = self.database._runner(path, self.copies.shards)
        errors = [o.error for o in outcomes if o.error is not None]
        if errors:
            raise _told(errors[0])
        self.rows: dict[str, int] = {}
        for outcome in outcomes:
            for local, rows in outcome.rows.items():
                self.rows[local] = self.rows.get(local, 0) + rows
        return job


def _told(error: DlogError) -> DlogError:
    """An error of a shard, under the names that the user knows."""
    if not isinstance(error, DlogErrors):
        error.message = re.sub(r"@(whole|\d+)", "", error.message)
    return error
