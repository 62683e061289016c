"""Owns the execution of a join in parts: sub-joins into temporary relations, then the join that reads them.

Lifecycle.  1 sub-joins that hold for the whole are computed once.  2 with a chunk variable, its values are
split into ranges; for each range the sub-joins that have the variable are computed, small enough for the
cache.  3 the last join runs, for each range, and its rows are collected: every assignment has one value of
the chunk variable, hence one range.

A sub-join is read by the last join through an index, as any relation, or probed: it is then a hash table that
is probed for each row of the last join.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from dlog.engine.body.parallel import in_parallel
from dlog.engine.body.readable import Passing, Readable
from dlog.engine.body.table import Table
from dlog.errors import DataError
from dlog.ir.rules import Conj, Form
from dlog.lftj.assemble import INT64_MAX, INT64_MIN, Assembled
from dlog.lftj.triejoin import Join as JoinRun
from dlog.planning.compile import CompiledJoin, begins_with
from dlog.planning.options import NEVER
from dlog.planning.sub_joins import Decomposition, SubJoin, is_sub_join, shared_text
from dlog.storage.hashed import Hashed
from dlog.storage.index.sort import weigh_rows

if TYPE_CHECKING:
    from dlog.engine.body.bodies import BodyRunner

T = TypeVar("T")
WEIGHT = "$weight"
LAST = ""  # the key of the last join among plans
CHUNK_ROWS = 1 << 15  # rows of a sub-join in a chunk: a hash table of them is 1.5 MB
_LEAST_CHUNKS, _MOST_CHUNKS = 3, 4096
_GROUPS = 4  # groups of chunks per core
_LARGE = 1 << 62

Bounds = tuple[int, int]
WHOLE: Bounds = (INT64_MIN, INT64_MAX)


@dataclass
class Planned:
    """A join ready to run, and the sizes it was planned for."""

    compiled: CompiledJoin
    assembled: Assembled
    sizes: tuple[int, ...]


@dataclass
class Made:
    """Results of sub-joins: relations to be read through an index, and hash tables."""

    passing: dict[str, Passing] = field(default_factory=dict)
    hashed: dict[str, Hashed] = field(default_factory=dict)

    def copy(self) -> Made:
        return Made(dict(self.passing), dict(self.hashed))


@dataclass(frozen=True)
class _Step:
    """One join of the decomposition.  `fixed`: it reads nothing that changes from chunk to chunk."""

    key: str
    forms: tuple[Form, ...]
    outputs: tuple[str, ...]
    bag: bool
    fixed: bool


class Parts:
    """One decomposed join.  Its plans are made at the first run and cached."""

    def __init__(self, runner: BodyRunner, decomposition: Decomposition, sizes: tuple[int, ...]):
        """`sizes` are those of its atoms' relations when it was planned."""
        self.runner = runner
        self.decomposition = decomposition
        self.sizes = sizes
        self.plans: dict[str, Planned] = {}
        self.steps = {s.name: self.step(s) for s in decomposition.sub_joins}
        self.last = self.last_step()
        self.can_chunk: bool | None = None

    def step(self, s: SubJoin) -> _Step:
        return _Step(s.name, s.forms, (*s.outputs, *s.weights), s.weighted, self.fixed(s.forms))

    def last_step(self) -> _Step:
        d = self.decomposition
        forms = d.joined()
        probed = [v for probe in d.probes for v in probe.keys_only]
        outputs = tuple(dict.fromkeys((*probed, *d.outputs, *d.joined_weights())))
        return _Step(LAST, forms, outputs, d.bag, self.fixed(forms))

    def fixed(self, forms: Sequence[Form]) -> bool:
        chunked = {s.name for s in self.decomposition.chunked()}
        return not any(getattr(f, "predicate", None) in chunked for f in forms)

    # Results

    def table(self) -> Table:
        """Bindings of the outputs; with a column of weights if they stand for several assignments each."""
        d = self.decomposition
        found = [part for parts in self.each_chunk(_Work.rows) for part in parts]
        names = (*d.outputs, *((WEIGHT,) if d.weighted else ()))
        if not names:
            return Table(sum(part.shape[1] for part in found), {})
        rows = np.concatenate(found, axis=1).T if found else np.empty((0, len(names)), np.int64)
        return Table.of_rows(names, rows)

    def count(self) -> int:
        """The number of assignments."""
        total = sum(self.each_chunk(_Work.count))
        if total >= _LARGE:
            raise self.too_many()
        return total

    def each_chunk(self, last: Callable[[_Work, Made, Bounds], T]) -> list[T]:
        """The output of the last join for each range of the chunk variable, or for the whole."""
        d, work = self.decomposition, _Work(self)
        chunked = d.chunked() if self.chunks_work() else ()
        made = Made()
        for sub_join in d.sub_joins:
            if sub_join not in chunked:
                work.make(sub_join, made, WHOLE)
        if not chunked:
            return [last(work, made, WHOLE)]
        ranges = list(self.ranges(made))
        done = [work.chunk(made, ranges[0], last)]  # makes the plans that the others use
        groups = self.runner.jobs * _GROUPS if self.runner.jobs > 1 else 1
        works = [work, *(_Work(self) for _ in range(groups - 1))]
        tasks = [partial(w.chunks, made, ranges[1 + i :: groups], last) for i, w in enumerate(works)]
        for results in in_parallel(tasks, self.runner.watch):
            done += results
        return done

    # Plans and chunks

    def planned(self, step: _Step, made: Made) -> Planned:
        if step.key not in self.plans:
            self.plans[step.key] = self.compile(step, made)
            self.runner.measure.planned(self.plans[step.key].compiled)
        return self.plans[step.key]

    def compile(self, step: _Step, made: Made) -> Planned:
        d = self.decomposition
        view = Readable(self.runner.store, made.passing)
        first = d.chunk if self.can_chunk is not False else None
        count = d.count and step.key == LAST and not step.outputs
        return self.runner.compile(step.forms, step.outputs, view, step.bag, count, first, d.implied)

    def chunks_work(self) -> bool:
        """Whether every plan that must be split begins with the chunk variable.  Decided once."""
        d = self.decomposition
        if self.can_chunk is None:
            steps = [self.steps[s.name] for s in d.chunked()]
            self.can_chunk = bool(steps) and all(
                begins_with(self.compile(step, self.nothing()).compiled, d.chunk or "")
                for step in (*steps, self.last)
            )
        return self.can_chunk

    def nothing(self) -> Made:
        subs = self.decomposition.sub_joins
        return Made({s.name: Passing([np.empty(0, np.int64)] * s.arity, 0) for s in subs})

    def ranges(self, made: Made) -> Iterator[Bounds]:
        """Ranges of the chunk variable in which sub-joins are expected to be small."""
        largest = max(self.decomposition.chunked(), key=lambda s: s.rows)
        parts = min(_MOST_CHUNKS, max(_LEAST_CHUNKS, int(largest.rows / CHUNK_ROWS) + 1))
        readable = Made({**self.nothing().passing, **made.passing})
        planned = self.compile(self.steps[largest.name], readable)
        cuts = self.runner.start(planned, Readable(self.runner.store, readable.passing)).cuts(parts)
        return zip([INT64_MIN, *cuts], [*(cut - 1 for cut in cuts), INT64_MAX], strict=True)

    def too_many(self) -> DataError:
        return DataError("the number of assignments does not fit 64 bits", span=self.runner.rule.span)


class _Work:
    """One thread's share of a decomposed join.  Runs that change only in their range are reused."""

    def __init__(self, parts: Parts):
        self.parts = parts
        self.runner = parts.runner
        self.decomposition = parts.decomposition
        self.runs: dict[str, JoinRun] = {}

    def chunks(
        self, made: Made, ranges: Sequence[Bounds], last: Callable[[_Work, Made, Bounds], T]
    ) -> list[T]:
        return [self.chunk(made, bounds, last) for bounds in ranges]

    def chunk(self, made: Made, bounds: Bounds, last: Callable[[_Work, Made, Bounds], T]) -> T:
        local = made.copy()
        for sub_join in self.decomposition.chunked():
            self.make(sub_join, local, bounds)
        return last(self, local, bounds)

    # Sub-joins

    def make(self, sub_join: SubJoin, made: Made, bounds: Bounds) -> None:
        """Stores the result of a sub-join where the others find it."""
        if any(probe.predicate == sub_join.name for probe in self.decomposition.probes):
            made.hashed[sub_join.name] = self.hashed(sub_join, made, bounds)
        elif bounds == WHOLE and self.runner.store.options.sharing != NEVER:
            made.passing[sub_join.name] = self.shared(sub_join, made)
        else:
            made.passing[sub_join.name] = self.passing(sub_join, made, bounds)

    def shared(self, sub_join: SubJoin, made: Made) -> Passing:
        """The result that another rule, or a run before, has computed from the same relations; else computed
        now and cached."""
        store = self.runner.store
        read = sorted(Conj((), sub_join.forms).predicates())
        if any(is_sub_join(name) or name not in store.relations for name in read):
            return self.passing(sub_join, made, WHOLE)
        text = shared_text(sub_join.forms, sub_join.outputs, sub_join.weighted)[0]
        known = store.shared_subjoins.find(text, store)
        if known is None:
            known = self.passing(sub_join, made, WHOLE)
            store.shared_subjoins.keep(text, store, read, known)
        return known

    def hashed(self, sub_join: SubJoin, made: Made, bounds: Bounds) -> Hashed:
        width = len(sub_join.outputs)
        table = Hashed(width)
        for out, n in self.buffers(self.parts.steps[sub_join.name], made, bounds):
            weights = self.product(list(out[width:, :n])) if sub_join.weighted else None
            self.require_fit(n, weights)
            table.add(out, n, weights)
        return table

    def passing(self, sub_join: SubJoin, made: Made, bounds: Bounds) -> Passing:
        width, step = len(sub_join.outputs), self.parts.steps[sub_join.name]
        parts = self.collect(step, made, bounds)
        n = sum(part.shape[1] for part in parts)
        columns = (
            list(np.concatenate(parts, axis=1)) if parts else [np.empty(0, np.int64)] * len(step.outputs)
        )
        if not sub_join.weighted:
            return Passing(columns, n)
        keys, weights = columns[:width], self.product(columns[width:])
        if n == 0:
            return Passing([*keys, np.empty(0, np.int64)], 0)
        self.require_fit(n, weights)
        if not keys:
            total = n if weights is None else int(weights.sum())
            return Passing([np.array([total])], 1)
        keys, weights = weigh_rows(keys, weights)
        return Passing([*keys, weights], len(weights))

    # The last join

    def rows(self, made: Made, bounds: Bounds) -> list[np.ndarray]:
        """Parts of (columns, rows): the outputs, and a weight if they have one."""
        d, step = self.decomposition, self.parts.last
        places = [step.outputs.index(v) for v in d.outputs]
        if not d.probes and not d.weighted:
            return self.collect(step, made, bounds)
        parts = []
        for out, n in self.buffers(step, made, bounds):
            rows, weights = self.probed(out, n, made)
            part = np.empty((len(places) + d.weighted, rows.shape[1]), np.int64)
            part[: len(places)] = rows[places]
            if d.weighted:
                part[-1] = 1 if weights is None else weights
            parts.append(part)
            self.runner.watch.pending(self.runner.watch.pending_rows + rows.shape[1])
        return parts

    def count(self, made: Made, bounds: Bounds) -> int:
        d, step = self.decomposition, self.parts.last
        if not step.outputs:
            run = self.start(step, made, bounds)
            before = run.counters().emitted
            return run.count(between=self.runner.watch.check) - before
        total = 0
        for out, n in self.buffers(step, made, bounds):
            if len(d.probes) == 1 and d.probes[0].weighted and not d.joined_weights():
                table = made.hashed[d.probes[0].predicate]
                if n * table.heaviest < _LARGE:
                    total += table.total(out, n)
                    continue
            rows, weights = self.probed(out, n, made)
            self.require_fit(rows.shape[1], weights)
            total += rows.shape[1] if weights is None else int(weights.sum())
        return total

    def probed(self, out: np.ndarray, n: int, made: Made) -> tuple[np.ndarray, np.ndarray | None]:
        """The rows that all probes find, as (columns, rows), and their weights."""
        d, names = self.decomposition, self.parts.last.outputs
        rows = out[:, :n]
        weights: list[np.ndarray] = []
        for number, probe in enumerate(d.probes):
            table = made.hashed[probe.predicate]
            keys = (
                out if number == 0 else np.ascontiguousarray(rows[[names.index(v) for v in probe.keys_only]])
            )
            found, found_weights = table.find(keys, rows.shape[1])
            rows = rows[:, found]
            weights = [w[found] for w in weights]
            if probe.weighted:
                weights.append(found_weights)
        weights += [rows[names.index(w)] for w in d.joined_weights()]
        return rows, self.product(weights)

    # Joins

    def collect(self, step: _Step, made: Made, bounds: Bounds) -> list[np.ndarray]:
        """All output of one join, in (columns, rows) parts."""
        run = self.start(step, made, bounds)
        runs = [run] if bounds != WHOLE else self.runner.split(run)
        join = self.parts.planned(step, made).compiled
        found = in_parallel([partial(self.runner.collect, r, join) for r in runs], self.runner.watch)
        for each in runs:
            self.runner.measure.count(each.counters())
        return [part for parts in found for part in parts]

    def buffers(self, step: _Step, made: Made, bounds: Bounds) -> Iterator[tuple[np.ndarray, int]]:
        run = self.start(step, made, bounds)
        yield from run.buffers(between=self.runner.watch.check)
        if run.assembled.first is None or bounds == WHOLE or not step.fixed:
            self.runner.measure.count(run.counters())

    def start(self, step: _Step, made: Made, bounds: Bounds) -> JoinRun:
        run = self.runs.get(step.key)
        if run is not None and step.fixed and bounds != WHOLE:
            run.again(*bounds)
            return run
        planned = self.parts.planned(step, made)
        run = self.runner.start(planned, Readable(self.runner.store, made.passing))
        if bounds != WHOLE:
            run.restrict(*bounds)
        self.runs[step.key] = run
        return run

    # Weights

    def product(self, weights: list[np.ndarray]) -> np.ndarray | None:
        """Row by row; None for no weights."""
        if not weights:
            return None
        result = weights[0]
        for other in weights[1:]:
            if len(other) and int(result.max()) * int(other.max()) >= _LARGE:
                raise self.parts.too_many()
            result = result * other
        return result

    def require_fit(self, n: int, weights: np.ndarray | None) -> None:
        """The sums of weights must fit 64 bits."""
        if weights is None or n == 0 or n * int(weights.max()) < _LARGE:
            return
        if float(weights.sum(dtype=float)) >= _LARGE:
            raise self.parts.too_many()
