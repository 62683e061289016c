"""Owns a running program: batches in, maps up to date, results out.  Knows no files.

A batch is rows of one relation with multiplicities: 1 for each time a row is inserted, -1 for each time it is
deleted.  A relation with a batch trigger gets the batch as a whole; with single-tuple triggers, its rows one
by one in order, insertions before deletions of the same row where a multiplicity is not 1 or -1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dlog.errors import DataError, DlogError, did_you_mean
from dlog.io import to_arrow
from dlog.jit import Words
from dlog.m3.rings.rings import FLOAT_RING, INTEGER_RING, PLAIN_FLOAT_RING
from dlog.m3.runtime import layout as o
from dlog.m3.runtime.compile.compiler import Compiled, compile_program
from dlog.m3.runtime.compile.partition import partition
from dlog.m3.runtime.compile.statements import QUERY
from dlog.m3.runtime.compile.stores import EXACT, FLOATS, Store
from dlog.m3.runtime.compile.values import KEY_TYPES
from dlog.m3.runtime.drain import Drain, DrainedMaps
from dlog.m3.runtime.encoding import columns_of, encode_table, multiplicities_of, one_by_one, plain_codes
from dlog.m3.runtime.feeder import Feeder, Step, has_batch_trigger
from dlog.m3.runtime.few_rows import FewRows, FewRowsOfParts
from dlog.m3.runtime.maps.maps import Maps
from dlog.m3.runtime.parts import Parts, is_exact
from dlog.m3.runtime.worker import Worker, add_entries
from dlog.m3.syntax import ast
from dlog.m3.types.typecheck import check
from dlog.storage.arena.regions import Memory
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.values import decode

NONE_DRAINED = DrainedMaps()


@dataclass(frozen=True)
class Saved:
    """A state for `Runtime.restore`; it belongs to the runtime that gave it."""

    maps: list[list[Words]]
    is_ready: bool
    rows: int
    changes: dict[str, int]
    sizes: dict[str, int]


class Runtime:
    """A program with its maps.

    >>> from dlog import m3
    >>> runtime = Runtime(m3.parse('''
    ...     CREATE STREAM R(a int, b int);
    ...     DECLARE MAP Q(long)[][a: int] := 0;
    ...     DECLARE QUERY Q := Q(long)[][a];
    ...     ON BATCH UPDATE OF R { Q(long)[][a] += AggSum([a], (DELTA R)(a, b) * b); }'''))
    >>> runtime.apply("R", [(1, 10), (1, 20), (2, 5)])
    >>> runtime.apply("R", [(2, 5)], [-1])
    >>> runtime["Q"].to_pylist()
    [{'a': 1, 'value': 30}]
    """

    def __init__(
        self,
        program: ast.Program,
        checked: bool = False,
        dictionary: Dictionary | None = None,
        floats: str = EXACT,
        threads: int | None = None,
        drained: DrainedMaps = NONE_DRAINED,
        arena: Memory | None = None,
    ):
        """`dictionary`: that of the caller who gives texts as codes, by `apply_words`.  `floats`: how sums of
        floats are computed, "exact", "doubled" (106 bits) or "plain" (53 bits).  `threads`: machines share
        the rows, if the program allows it, and small batches wait for others until something is read.
        `drained`: maps of integers whose changes can be drained.  `arena`: where one machine has its maps.
        """
        if floats not in FLOATS:
            raise DlogError(f"unknown sums of floats: {floats}", help=f"one of {', '.join(FLOATS)}")
        self.program = program if checked else check(program)
        self.dictionary = Dictionary() if dictionary is None else dictionary
        self.compiled: Compiled = compile_program(self.program, self.dictionary, floats, drained.names)
        self._drain = Drain(self.compiled.stores, drained) if drained.names else None
        self._parts = self._divided(threads)
        self._workers = (
            self._parts.workers if self._parts else [Worker(self.compiled, self.dictionary, arena)]
        )
        self._feeder = Feeder(self._workers[0])
        self._widths = {source.name: len(source.columns) + 1 for source in self.program.sources}
        self._is_ready = False
        self._broken: str | None = None
        self.rows = 0  # that were applied
        self.changes: dict[str, int] = {}  # the same by relation
        self.sizes: dict[str, int] = {}  # how many rows each relation has

    def _divided(self, threads: int | None) -> Parts | None:
        """Several machines, if several threads can run them, or if bits would depend on the number of
        threads.
        """
        if threads is None or self.compiled.calls or (threads == 1 and is_exact(self.compiled)):
            return None
        found = partition(self.program)
        return None if found is None else Parts(self.compiled, self.dictionary, found, threads)

    @property
    def maps(self) -> Maps:
        """The maps of the program; of several machines, those of the first."""
        self._apply_waiting()
        return self._workers[0].maps

    def memory(self) -> int:
        """Bytes of all maps."""
        return self._parts.memory() if self._parts else self.maps.memory()

    # ---- changes

    def load(self, table: str, rows: Any) -> None:
        """Rows of a table, before the first change of a stream."""
        source = self._source(table, ast.TABLE)
        if self._is_ready:
            raise DlogError(f"table {table} is loaded after the system became ready")
        self.load_words(table, self._encoded(source, rows))

    def load_words(self, table: str, words: Words) -> None:
        """Of encoded columns: (columns + 1, rows), multiplicities last."""
        self._check_width(table, words)
        self._run(lambda: (self._parts or self._feeder).load(table, words))
        self.sizes[table] = self.sizes.get(table, 0) + words.shape[1]

    def expect(self, relation: str, rows: int) -> None:
        """Announce this many rows of a relation: maps that it changes grow in fewer steps.

        More or fewer may come.  Costs nothing by itself.
        """
        self._source(relation)
        if self._parts:
            self._parts.expect(relation, rows)
        else:
            self._feeder.coming[relation] = rows

    def ready(self) -> None:
        """All tables are loaded: run ON SYSTEM READY.  The first change does it, unless it was called
        before.
        """
        if not self._is_ready:
            self._is_ready = True
            entry = self.compiled.entries.get((None, ast.READY))
            if entry is not None:
                self._run(lambda: (self._parts or self._feeder).once(entry))

    def apply(self, relation: str, rows: Any, multiplicities: Any = None) -> None:
        """Change a stream by rows (a list of tuples, an Arrow table, a data frame, an array), each inserted
        once unless `multiplicities` says otherwise.
        """
        source = self._source(relation, ast.STREAM)
        self.apply_words(relation, self._encoded(source, rows, multiplicities))

    def insert(self, relation: str, *row: Any) -> None:
        """One row.  About 10 us for a row of numbers."""
        self._change(relation, row, 1)

    def delete(self, relation: str, *row: Any) -> None:
        self._change(relation, row, -1)

    def _change(self, relation: str, row: tuple[Any, ...], sign: int) -> None:
        codes = plain_codes(self._source(relation, ast.STREAM), self.program.dialect, row)
        if codes is None:
            self.apply(relation, [row], [sign])
        else:
            self.apply_words(relation, np.array([[*codes, sign]], np.int64).T)

    def apply_words(self, relation: str, words: Words) -> None:
        """The same of encoded columns: an array (columns + 1, rows) of codes, the last multiplicities."""
        self._check_width(relation, words)
        if not self.has_batch_trigger(relation) and np.any(np.abs(words[-1]) != 1):
            words = one_by_one(words)
        self.ready()
        if self._parts is None:
            self._run(lambda: self._feeder.apply(relation, words))
            self._count(relation, words)
        else:
            self._apply_divided(self._parts, relation, words)

    def _apply_divided(self, parts: Parts, relation: str, words: Words) -> None:
        self._require_right()
        more = parts.wait(relation, words)
        if more is None:
            self._apply_waiting()
            more = parts.wait(relation, words)
        if more is None:
            self._run(lambda: parts.apply(Step(relation, words)))
        elif parts.is_worth_it:
            self._apply_waiting()
        self._count(relation, words, more)

    def apply_steps(self, steps: Sequence[Step], which: Words, batch: Words) -> None:
        """Rows of several relations, in the order that `which` gives: for each row its step; the rows of a
        step come in their order.  Consecutive rows of the same relation and batch are one batch.

        REQUIRES: multiplicities of 1 or -1 where there is no batch trigger.
        """
        which, batch = (np.ascontiguousarray(words, np.int64) for words in (which, batch))
        self._check_steps(steps, which, batch)
        self.ready()
        if self._parts is None:
            self._run(lambda: self._feeder.apply_steps(steps, which, batch))
        else:
            parts = self._parts
            self._apply_waiting()
            self._run(lambda: parts.apply_steps(steps, which, batch))
        for step in steps:
            self._count(step.relation, step.words)

    def _count(self, relation: str, words: Words, more: int | None = None) -> None:
        """`more`: the sum of multiplicities, where it is known."""
        n = words.shape[1]
        self.rows += n
        self.changes[relation] = self.changes.get(relation, 0) + n
        if more is None:
            more = int(words[-1, 0]) if n == 1 else int(words[-1].sum())
        self.sizes[relation] = self.sizes.get(relation, 0) + more

    def _apply_waiting(self) -> None:
        """What was said to be applied."""
        if self._parts is not None and self._parts.waiting.rows:
            self._run(self._parts.apply_waiting)

    def has_batch_trigger(self, relation: str) -> bool:
        return has_batch_trigger(self.compiled, relation)

    def _run(self, action: Callable[[], None]) -> None:
        """Change maps, all or nothing: after an error they are no longer valid."""
        self._require_right()
        try:
            action()
        except BaseException as error:
            self._broken = f"a batch was left half done: {error}"
            raise
        for worker in self._workers:
            if worker.overflow is not None:
                self._raise_overflow(worker.overflow)

    def _require_right(self) -> None:
        if self._broken:
            help = "go back with restore() to what save() returned before, or start over with another Runtime"
            raise DlogError(f"the maps are no longer valid, since {self._broken}", help=help)

    def _raise_overflow(self, address: int) -> None:
        statement = self.compiled.statement_at(address)
        what = "an integer does not fit 64 bits"
        if self.compiled.code[address] == o.MULTIPLY_DECIMAL:
            what = "a product of decimals has too many digits"
        self._broken = what.replace(" is ", " was ").replace(" has ", " had ")
        target = f" of {statement.target.name}" if isinstance(statement, ast.Assign) else ""
        span = statement.span if statement is not None else None
        raise DataError(f"{what} in a value{target}", span=span)

    # ---- going back

    def save(self) -> Saved:
        """All maps, to go back to.  O(memory of maps)."""
        self._apply_waiting()
        self._require_right()
        maps = [worker.maps.copies() for worker in self._workers]
        return Saved(maps, self._is_ready, self.rows, dict(self.changes), dict(self.sizes))

    def restore(self, saved: Saved) -> None:
        """Go back to what `save` returned, also after a failed change.  O(memory of maps)."""
        for worker, maps in zip(self._workers, saved.maps, strict=True):
            worker.restore(maps)
        if self._parts is not None:
            self._parts.forget()
            self._parts.waiting.clear()
        self._is_ready, self.rows, self._broken = saved.is_ready, saved.rows, None
        self.changes, self.sizes = dict(saved.changes), dict(saved.sizes)

    # ---- maps of others

    def takes(self, name: str, other: Runtime, there: str) -> bool:
        """Whether a map can have what a map of another runtime has: see `take_over`."""
        if self._parts is not None or other._parts is not None or self.maps.arena is not other.maps.arena:
            return False
        mine, given = self.compiled.stores.map(name).shape, other.compiled.stores.map(there).shape
        return (mine.keys, mine.kinds, mine.apart) == (given.keys, given.kinds, given.apart)

    def take_over(self, found: Iterable[tuple[str, Runtime, str]]) -> None:
        """Begin with maps that other runtimes have filled: each map, the other runtime, and its map there.
        O(slots there).

        REQUIRES: `takes` them; these are all maps with what rows have brought; no rows came here.
        """
        worker, self._is_ready = self._workers[0], True
        for name, other, there in found:
            store = self.compiled.stores.map(name)
            worker.maps.empty(store.number)
            add_entries(worker, store.address, other.maps, other.compiled.stores.map(there).address)
        if self._drain is not None:
            self._drain.read(worker.maps)

    def release(self) -> None:
        """Give the memory of all maps back to an arena that others use.  Nothing can be read any more."""
        self._broken = "their memory was given back"
        for worker in self._workers:
            worker.maps.release()

    # ---- results

    def __getitem__(self, name: str) -> pa.Table:
        """A query's result, or else a map, as an Arrow table: its keys, then `value`.

        Sorted by keys.  A result without keys has one row.  Raises DlogError after a failed change.
        """
        self._apply_waiting()
        self._require_right()
        result = self.compiled.results.get(name)
        if result is not None:
            if not result.is_map:
                self._query(name)
            return self._table(result.store, result.names)
        declared = self.program.map(name)
        if declared is None:
            known = [*self.compiled.results, *(m.name for m in self.program.maps)]
            raise DlogError(f"there is no query or map {name}", help=did_you_mean(name, known))
        names = [c.name for c in (*declared.inputs, *declared.keys)]
        return self._table(self.compiled.stores.map(name), tuple(names))

    def results(self) -> Iterator[tuple[str, pa.Table]]:
        """All queries by name."""
        for query in self.program.queries:
            yield query.name, self[query.name]

    def _table(self, store: Store, names: Sequence[str]) -> pa.Table:
        k = len(store.key_kinds)
        words = self.words_of(store)
        if store.keeps:  # entries of value 0 exist but are not shown
            words = words[:, words[k:].any(axis=0)]
        if k == 0 and words.shape[1] == 0:
            words = np.zeros((len(words) - k, 1), np.int64)
        keys = [decode(words[j], KEY_TYPES[kind], self.dictionary) for j, kind in enumerate(store.key_kinds)]
        value = "value" if "value" not in names else "value of map"
        table = pa.table([*keys, _values(store, words[k:])], names=[*_distinct(names), value])
        return table.sort_by([(name, "ascending") for name in table.column_names[:k]]) if k else table

    def _query(self, name: str) -> None:
        """Compute a query."""
        self.ready()
        entry = self.compiled.entries[name, QUERY]
        if self._parts is None:
            self._run(lambda: self._feeder.once(entry))
            return
        parts, stores = self._parts, self.compiled.stores
        query = next(query for query in self.program.queries if query.name == name)
        reads = [stores.map(n.name) for n in query.walk() if isinstance(n, ast.MapAccess)]
        tables = [stores.table(n.name) for n in query.walk() if isinstance(n, ast.Relation)]
        self._run(lambda: parts.query(entry, [*reads, *tables]))
        self._check_sums()

    def drain(self) -> Words:
        """(changes, words): the keys for which drained maps have changed since the last time, each with the
        values of every map before and after.  O(changes)."""
        assert self._drain is not None
        self._apply_waiting()
        self._require_right()
        if self._parts is None:
            return self._drain.read(self._workers[0].maps)
        rows, too_large = self._parts.drain(self._drain)
        if too_large is not None:
            self._broken = "an integer did not fit 64 bits"
            raise DataError(f"an integer does not fit 64 bits in a value of {too_large}")
        return rows

    def few_rows(self, relation: str, most: int) -> FewRows | FewRowsOfParts | None:
        """Batches of up to so many rows whose changes are drained at once; None: there is no batch trigger.
        REQUIRES: nothing waits, as after `drain`."""
        assert self._drain is not None
        if not self.has_batch_trigger(relation):
            return None
        if self._parts is not None:
            return FewRowsOfParts(self._parts, self._drain, self._run, relation, most)
        return FewRows(self._feeder, self._drain, self._run, relation, most)

    def words_of(self, store: Store) -> Words:
        """(words, entries): the keys and value words of all entries; of exact sums the bits of floats."""
        self._apply_waiting()
        maps = self._workers[0].maps
        if self._parts is not None:
            maps = self._parts.maps_with(store)
            self._check_sums(store)
        if store.is_exact:
            keys, sums = maps.sums(store.number)
            return np.vstack([keys, sums.view(np.int64)])
        return maps.entries(store.number)[: len(store.key_kinds) + store.ring.words]

    def entries_of(self, name: str) -> int:
        """How many entries of a map are not 0.  O(slots)."""
        store = self.compiled.stores.map(name)
        return self.words_of(store).shape[1] if self._parts else self.maps.live(store.number)

    def added_to(self, name: str) -> int | None:
        """How many rows were added to a map with keys, and slots that were cleared; None: several machines
        did it."""
        return None if self._parts else self.maps.added(self.compiled.stores.map(name).number)

    def _check_sums(self, store: Store | None = None) -> None:
        """Sums of what several machines have may not fit."""
        assert self._parts is not None
        if self._parts.total.overflow is not None:
            self._parts.forget()
            target = f" of {store.name}" if store is not None else ""
            raise DataError(f"an integer does not fit 64 bits in a value{target}")

    # ---- rows

    def _source(self, name: str, kind: str | None = None) -> ast.Source:
        source = self.program.source(name)
        if source is None:
            known = [s.name for s in self.program.sources]
            raise DlogError(f"there is no relation {name}", help=did_you_mean(name, known))
        if kind not in (None, source.kind):
            raise DlogError(f"{name} is a {source.kind}, not a {kind}")
        return source

    def _check_width(self, relation: str, words: Words) -> None:
        """Kernels copy as many columns as the relation has."""
        width = self._widths.get(relation) or len(self._source(relation).columns) + 1
        if len(words) != width:
            message = f"{relation} has {width - 1} columns and multiplicities: {width} rows of codes"
            raise DlogError(f"{message}, not {len(words)}")

    def _check_steps(self, steps: Sequence[Step], which: Words, batch: Words) -> None:
        """Kernels have room for as many rows as the order has."""
        for step in steps:
            self._check_width(step.relation, step.words)
        rows = [step.words.shape[1] for step in steps]
        is_order = not len(which) or 0 <= which.min() <= which.max() < len(steps)
        if not is_order or np.bincount(which, minlength=len(steps)).tolist() != rows:
            raise DlogError("`which` needs the number of a step for each row of every step")
        if len(batch) != len(which):
            raise DlogError(f"{len(which)} rows need as many numbers of batches, not {len(batch)}")

    def _encoded(self, source: ast.Source, rows: Any, multiplicities: Any = None) -> Words:
        table = to_arrow(rows, columns_of(source), source.name)
        return self.encode_table(source, table, multiplicities_of(multiplicities, table.num_rows))

    def encode_table(self, source: ast.Source, table: pa.Table, multiplicities: Words) -> Words:
        """(columns + 1, rows): see `encoding`."""
        return encode_table(source, self.program.dialect, table, multiplicities, self.dictionary)

    def check(self) -> None:
        self._apply_waiting()
        for worker in self._workers:
            worker.maps.check()


def _values(store: Store, words: Words) -> pa.Array:
    if store.ring is INTEGER_RING:
        return pa.array(words[0].copy())
    if store.is_exact or store.ring is PLAIN_FLOAT_RING:
        return pa.array(words[0].view(np.float64).copy())
    if store.ring is FLOAT_RING:
        high, low = (np.ascontiguousarray(w).view(np.float64) for w in words)
        return pa.array(high + low)
    return pa.array([plain(value) for value in store.ring.values(np.ascontiguousarray(words.T))])


def plain(value: Any) -> Any:
    """An element of a ring as an Arrow value: a tuple has the fields 1, 2, and so on."""
    if isinstance(value, tuple):
        return {str(i): plain(part) for i, part in enumerate(value, 1)}
    return value


def _distinct(names: Iterable[str]) -> list[str]:
    out: list[str] = []
    for name in names:
        while name in out:
            name += "'"
        out.append(name)
    return out
