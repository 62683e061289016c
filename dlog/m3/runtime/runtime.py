"""Owns a running program: batches in, maps up to date, results out.  Knows no files.

A batch is rows of one relation with multiplicities: 1 for each time a row is inserted, -1 for each time it is
deleted.  A relation with a batch trigger gets the batch as a whole; with single-tuple triggers, its rows one
by one in order, insertions before deletions of the same row where a multiplicity is not 1 or -1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dlog.errors import DataError, DlogError, did_you_mean
from dlog.io import to_arrow
from dlog.jit import Words
from dlog.m3.rings.rings import FLOAT_RING, INTEGER_RING
from dlog.m3.runtime import layout as o
from dlog.m3.runtime.compile.code import Label, Word
from dlog.m3.runtime.compile.compiler import Compiled, compile_program
from dlog.m3.runtime.compile.statements import LOAD, QUERY
from dlog.m3.runtime.compile.stores import Store
from dlog.m3.runtime.compile.values import KEY_TYPES
from dlog.m3.runtime.encoding import columns_of, encode_table, multiplicities_of, one_by_one, plain_codes
from dlog.m3.runtime.machine.event_kernels import make_events, start
from dlog.m3.runtime.machine.machine import run
from dlog.m3.runtime.maps.maps import Maps
from dlog.m3.syntax import ast
from dlog.m3.types.typecheck import check
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.values import decode

LONGEST_BATCH = 1 << 40
BUDGET = 1 << 16  # instructions before Python can handle interrupts: less than a second
ROWS_AT_ONCE = 1 << 15  # of several relations: the machine's input then stays in the cache
_NO_RANKS = np.zeros(1, np.int64)


@dataclass(frozen=True)
class Step:
    """Rows of a relation as codes: (columns + 1, rows), the last multiplicities."""

    relation: str
    words: Words


@dataclass(frozen=True)
class Saved:
    """A state for `Runtime.restore`; it belongs to the runtime that gave it."""

    maps: list[Words]
    is_ready: bool
    rows: int


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

    def __init__(self, program: ast.Program, checked: bool = False, dictionary: Dictionary | None = None):
        """`dictionary`: that of the caller who gives texts as codes, by `apply_words`."""
        self.program = program if checked else check(program)
        self.dictionary = Dictionary() if dictionary is None else dictionary
        self.compiled: Compiled = compile_program(self.program, self.dictionary)
        self.maps = Maps([store.shape for store in self.compiled.stores.all])
        self._state = _in_lines(max(self.compiled.state_words, 64))
        self._columns = self.compiled.columns.copy()
        self._taken = self._events = np.empty(0, np.int64)  # memory of `apply_steps`
        self._registers = self._columns[:: o.CHUNK].copy()
        self._arrays = _Arrays(self._columns, self._state, self.maps)
        self._is_ready = False
        self._broken: str | None = None
        self._coming = dict.fromkeys([s.name for s in self.program.sources], 0)  # rows announced by `expect`
        self.rows = 0  # that were applied

    # ---- changes

    def load(self, table: str, rows: Any) -> None:
        """Rows of a table, before the first change of a stream."""
        source = self._source(table, ast.TABLE)
        if self._is_ready:
            raise DlogError(f"table {table} is loaded after the system became ready")
        self.load_words(table, self._encoded(source, rows))

    def load_words(self, table: str, words: Words) -> None:
        """Of encoded columns: (columns + 1, rows), multiplicities last."""
        n = words.shape[1]
        entry = self.compiled.entries[table, LOAD]
        events = np.array([entry, 0, n, 0, n, LONGEST_BATCH, -1, 0], np.int64)
        self._coming[table] = max(self._coming[table], n)
        self._run(events, np.ascontiguousarray(words).reshape(-1))
        self._coming[table] -= n

    def expect(self, relation: str, rows: int) -> None:
        """Announce this many rows of a relation: maps that it changes grow in fewer steps.

        More or fewer may come.  Costs nothing by itself.
        """
        self._source(relation)
        self._coming[relation] = rows

    def ready(self) -> None:
        """All tables are loaded: run ON SYSTEM READY.  The first change does it, unless it was called
        before.
        """
        if not self._is_ready:
            self._is_ready = True
            entry = self.compiled.entries.get((None, ast.READY))
            if entry is not None:
                self._run(_once(entry), np.zeros(1, np.int64))

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
        if not self.has_batch_trigger(relation) and np.any(np.abs(words[-1]) != 1):
            words = one_by_one(words)
        n = words.shape[1]
        sign = int(words[-1, 0]) if n else 0
        if self.has_batch_trigger(relation) or np.all(words[-1] == sign):
            self.ready()
            self._coming[relation] = max(self._coming[relation], n)
            entry, step, rows = self._entry(relation, sign)
            if n and entry >= 0:
                few = n == 1 or (n <= o.ROW_CODE_ROWS and step < LONGEST_BATCH)
                events = np.array([entry, 0, n, 0, n, step, rows if few else -1, 0], np.int64)
                self._run(events, np.ascontiguousarray(words).reshape(-1))
            self._coming[relation] -= n
            self.rows += n
        else:
            nothing = np.zeros(n, np.int64)
            self.apply_steps([Step(relation, words)], nothing, nothing)

    def apply_steps(self, steps: Sequence[Step], which: Words, batch: Words) -> None:
        """Rows of several relations, in the order that `which` gives: for each row its step; the rows of a
        step come in their order.  Consecutive rows of the same relation and batch are one batch.

        REQUIRES: multiplicities of 1 or -1 where there is no batch trigger.
        """
        self.ready()
        which, batch = (np.ascontiguousarray(words, np.int64) for words in (which, batch))
        done = np.zeros(len(steps), np.int64)
        for step in steps:
            self._coming[step.relation] = max(self._coming[step.relation], step.words.shape[1])
        for first, end in _slices(batch):
            n = end - first
            counts = np.bincount(which[first:end], minlength=len(steps))
            inputs, table = self._inputs(steps, done, counts)
            self._events = _room(self._events, n * o.E_WORDS)
            made = make_events(which[first:end], batch[first:end], inputs, table, self._events, n)
            self._run(self._events[: made * o.E_WORDS], inputs)
            done += counts
            for step, came in zip(steps, counts.tolist(), strict=True):
                self._coming[step.relation] = max(self._coming[step.relation] - came, 0)
            self.rows += n

    def _inputs(self, steps: Sequence[Step], done: Words, counts: Words) -> tuple[Words, Words]:
        """The next rows of each step, those of their columns that a trigger reads, and the words of steps."""
        sizes = [step.words.shape[0] * n for step, n in zip(steps, counts.tolist(), strict=True)]
        self._taken = _room(self._taken, sum(sizes))
        table = np.zeros((len(steps), o.S_WORDS), np.int64)
        base = 0
        for words, step, first, n, size in zip(table, steps, done, counts, sizes, strict=True):
            rows = self._taken[base : base + size].reshape(-1, n) if n else step.words[:, :0]
            for column in {*self.compiled.columns_read.get(step.relation, ()), len(rows) - 1}:
                rows[column] = step.words[column, first : first + n]
            signs = -1 if self.has_batch_trigger(step.relation) else base + size - n
            words[: o.S_INSERT] = base, n, signs, 0
            words[o.S_INSERT : o.S_DELETE] = self._entry(step.relation, 1)
            words[o.S_DELETE :] = self._entry(step.relation, -1)
            base += size
        return self._taken, table.reshape(-1)

    def _entry(self, relation: str, sign: int) -> tuple[int, int, int]:
        """Where the trigger for rows begins, and how many of them it processes at a time; where its code for
        one row begins.  -1: there is none.
        """
        entries, rows = self.compiled.entries, self.compiled.row_entries
        key: tuple[str, str] = (relation, ast.BATCH)
        if key in entries:
            return entries[key], LONGEST_BATCH, rows.get(key, -1)
        key = (relation, ast.INSERT if sign > 0 else ast.DELETE)
        return entries.get(key, -1), o.CHUNK if key in self.compiled.together else 1, rows.get(key, -1)

    def has_batch_trigger(self, relation: str) -> bool:
        return (relation, ast.BATCH) in self.compiled.entries

    def _run(self, events: Words, inputs: Words) -> None:
        """Run the machine to the end, serving its requests."""
        self._require_right()
        maps, state, n = self.maps, self._state, len(events) // o.E_WORDS
        code, columns = self.compiled.code, self._columns
        if not start(state, events, n):
            return
        try:
            while True:
                ranks = self.dictionary.rank if self.compiled.stores.uses_ranks else _NO_RANKS
                ranks = ranks if len(ranks) else _NO_RANKS
                status = run(
                    maps.arena.A, maps.words, code, state, columns, self._registers, inputs, events, ranks, n,
                    BUDGET,
                )  # fmt: skip
                if status == o.DONE:
                    break
                if status == o.PAUSE:
                    continue
                if status == o.GROW:
                    self._give_memory(int(state[o.ASKED]), int(state[o.ROOM]))
                else:
                    self._call(int(state[o.ASKED]))
        except BaseException as error:
            self._broken = f"a batch was left half done: {error}"
            raise
        if state[o.OVERFLOW]:
            self._raise_overflow(int(state[o.OVERFLOW]) - 1)
        maps.settle()

    def _give_memory(self, address: int, room: int) -> None:
        """To a map that the machine asks it for."""
        if room == o.LINKS:
            self.maps.give_links(address)
        else:
            relations = self.compiled.feeding.get(address, ())
            self.maps.grow(address, room, sum(self._coming[r] for r in relations))

    def _require_right(self) -> None:
        if self._broken:
            help = "go back with restore() to what save() returned before, or start over with another Runtime"
            raise DlogError(f"the maps are no longer valid, since {self._broken}", help=help)

    def _call(self, which: int) -> None:
        call = self.compiled.calls[which]
        self._arrays.rows = int(self._state[call.frame])
        if self._arrays.rows:
            call.run(self._arrays)

    def _raise_overflow(self, address: int) -> None:
        statement = self.compiled.statement_at(address)
        what = "an integer is beyond 64 bits"
        if self.compiled.code[address] == o.MULTIPLY_DECIMAL:
            what = "a product of decimals has too many digits"
        self._broken = what.replace(" is ", " was ").replace(" has ", " had ")
        target = f" of {statement.target.name}" if isinstance(statement, ast.Assign) else ""
        span = statement.span if statement is not None else None
        raise DataError(f"{what} in a value{target}", span=span)

    # ---- going back

    def save(self) -> Saved:
        """All maps, to go back to.  O(memory of maps)."""
        self._require_right()
        return Saved(self.maps.copies(), self._is_ready, self.rows)

    def restore(self, saved: Saved) -> None:
        """Go back to what `save` returned, also after a failed change.  O(memory of maps)."""
        self.maps.put_back(saved.maps)
        self._is_ready, self.rows, self._broken = saved.is_ready, saved.rows, None
        self._state[:] = 0

    # ---- results

    def __getitem__(self, name: str) -> pa.Table:
        """A query's result, or else a map, as an Arrow table: its keys, then `value`.

        Sorted by keys.  A result without keys has one row.  Raises DlogError after a failed change.
        """
        self._require_right()
        result = self.compiled.results.get(name)
        if result is not None:
            if not result.is_map:
                entry = self.compiled.entries[name, QUERY]
                self.ready()
                self._run(_once(entry), np.zeros(1, np.int64))
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
        words = self.maps.entries(store.number)
        k = len(store.key_kinds)
        words = words[: k + store.ring.words]
        if store.keeps:  # entries of value 0 exist but are not shown
            words = words[:, words[k:].any(axis=0)]
        if k == 0 and words.shape[1] == 0:
            words = np.zeros((store.ring.words, 1), np.int64)
        keys = [decode(words[j], KEY_TYPES[kind], self.dictionary) for j, kind in enumerate(store.key_kinds)]
        value = "value" if "value" not in names else "value of map"
        table = pa.table([*keys, _values(store, words[k:])], names=[*_distinct(names), value])
        return table.sort_by([(name, "ascending") for name in table.column_names[:k]]) if k else table

    # ---- rows

    def _source(self, name: str, kind: str | None = None) -> ast.Source:
        source = self.program.source(name)
        if source is None:
            known = [s.name for s in self.program.sources]
            raise DlogError(f"there is no relation {name}", help=did_you_mean(name, known))
        if kind not in (None, source.kind):
            raise DlogError(f"{name} is a {source.kind}, not a {kind}")
        return source

    def _encoded(self, source: ast.Source, rows: Any, multiplicities: Any = None) -> Words:
        table = to_arrow(rows, columns_of(source), source.name)
        return self.encode_table(source, table, multiplicities_of(multiplicities, table.num_rows))

    def encode_table(self, source: ast.Source, table: pa.Table, multiplicities: Words) -> Words:
        """(columns + 1, rows): see `encoding`."""
        return encode_table(source, self.program.dialect, table, multiplicities, self.dictionary)

    def check(self) -> None:
        self.maps.check()


class _Arrays:
    """The arguments of a call to Python: columns of the current frame, and tables of maps."""

    def __init__(self, columns: Words, state: Words, maps: Maps):
        self._columns, self._state, self._maps = columns, state, maps
        self.rows = 0

    def __call__(self, column: Word, rows: int | None = None) -> Words:
        at = column.address if isinstance(column, Label) else column
        return self._columns[at : at + (self.rows if rows is None else rows)]

    def block(self, base: int, words: int) -> Words:
        """(rows, words): elements of cofactors."""
        return self._state[base : base + self.rows * words].reshape(self.rows, words)

    def table(self, number: int) -> Words:
        return self._maps.table(number)


def _once(entry: int) -> Words:
    """The event that runs code once, without rows."""
    return np.array([entry, 0, 0, 0, 1, 1, -1, 0], np.int64)


def _in_lines(n: int) -> Words:
    """Zeros aligned to a cache line."""
    words = np.zeros(n + o.LINE, np.int64)
    first = -words.ctypes.data // words.itemsize % o.LINE
    return words[first : first + n]


def _room(words: Words, n: int) -> Words:
    """An array of at least this many words: the given one, if it is large enough."""
    return words if len(words) >= n else np.empty(2 * n, np.int64)


def _slices(batch: Words) -> Iterator[tuple[int, int]]:
    """Where to split rows, about ROWS_AT_ONCE apart and between batches."""
    start, n = 0, len(batch)
    while start < n:
        end = min(start + ROWS_AT_ONCE, n)
        while end < n and batch[end] == batch[end - 1]:
            end += 1
        yield start, end
        start = end


def _values(store: Store, words: Words) -> pa.Array:
    if store.ring is INTEGER_RING:
        return pa.array(words[0].copy())
    if store.ring is FLOAT_RING:
        high, low = (np.ascontiguousarray(w).view(np.float64) for w in words)
        return pa.array(high + low)
    return pa.array([_plain(value) for value in store.ring.values(np.ascontiguousarray(words.T))])


def _plain(value: Any) -> Any:
    """An element of a ring as an Arrow value: a tuple has the fields 1, 2, and so on."""
    if isinstance(value, tuple):
        return {str(i): _plain(part) for i, part in enumerate(value, 1)}
    return value


def _distinct(names: Iterable[str]) -> list[str]:
    out: list[str] = []
    for name in names:
        while name in out:
            name += "'"
        out.append(name)
    return out
