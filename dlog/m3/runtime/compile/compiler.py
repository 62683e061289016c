"""Owns a checked program -> what the machine runs: code, the maps' shapes, where each trigger begins."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dlog.jit import Words
from dlog.m3.runtime.compile.analysis import assignments
from dlog.m3.runtime.compile.bodies import Body
from dlog.m3.runtime.compile.code import Code
from dlog.m3.runtime.compile.ranges import Ranges, with_range_sums
from dlog.m3.runtime.compile.ring_products import check_products
from dlog.m3.runtime.compile.row_code import row_code
from dlog.m3.runtime.compile.statements import (
    LOAD,
    QUERY,
    Result,
    is_independent,
    write_load,
    write_query,
    write_triggers,
)
from dlog.m3.runtime.compile.stores import EXACT, PLAIN, Stores
from dlog.m3.runtime.compile.values import Arithmetic, PythonCall
from dlog.m3.syntax import ast
from dlog.storage.dictionary.dictionary import Dictionary


@dataclass(frozen=True)
class Compiled:
    """`entries` has the address of each trigger, by relation and event; `together` those triggers of single
    tuples that can take many at a time; `row_entries` where the code for one row begins, of those that have
    it; `columns_read` which columns of a relation its triggers read.  A query's code fills the store of its
    result.  `feeding` has, by the address of a map, the relations whose rows may bring keys to it.
    """

    program: ast.Program
    stores: Stores
    code: Words
    columns: Words
    state_words: int
    entries: dict[tuple[str | None, str], int]
    together: frozenset[tuple[str | None, str]]
    row_entries: dict[tuple[str | None, str], int]
    columns_read: dict[str | None, frozenset[int]]
    calls: tuple[PythonCall, ...]
    spans: tuple[tuple[int, ast.Node], ...]
    results: dict[str, Result]
    feeding: dict[int, frozenset[str]]

    def statement_at(self, address: int) -> ast.Node | None:
        """The statement whose code an address is in."""
        at = bisect_right([start for start, _ in self.spans], address) - 1
        return self.spans[at][1] if at >= 0 else None


def compile_program(
    program: ast.Program, dictionary: Dictionary, floats: str = EXACT, drained: Sequence[str] = ()
) -> Compiled:
    """`drained`: maps of integers whose changes are drained.  REQUIRES: a program that `check` returned.
    O(size of the program)."""
    code, stores = Code(), Stores(program, floats, drained)
    check_products(program, stores.typing, stores.rings)
    ranges = Ranges(stores)
    given, program = program, with_range_sums(program, ranges)
    calls: list[PythonCall] = []
    arithmetic = Arithmetic(code, calls, floats == PLAIN)
    entries: dict[tuple[str | None, str], int] = {}
    together = set()
    spans: list[tuple[int, ast.Node]] = []
    read: dict[str | None, frozenset[int]] = {}
    groups: dict[tuple[str | None, str], list[ast.Trigger]] = {}
    for trigger in program.triggers:
        groups.setdefault((trigger.relation, trigger.event), []).append(trigger)
    for key, triggers in groups.items():
        entries[key] = len(code.words)
        if len(triggers) == 1 and is_independent(triggers[0]):
            together.add(key)
        code.inputs = set()
        write_triggers(Body(code, arithmetic, ranges, dictionary), triggers, spans)
        read[key[0]] = read.get(key[0], frozenset()) | code.inputs
    for table in stores.tables:
        entries[table, LOAD] = len(code.words)
        write_load(Body(code, arithmetic, ranges, dictionary), table)
    results = {}
    for query in program.queries:
        entries[query.name, QUERY] = len(code.words)
        body = Body(code, arithmetic, ranges, dictionary)
        results[query.name] = write_query(body, query, spans)
    words, columns = code.finish()
    words, row_entries = _with_row_code(words, {key: entries[key] for key in groups}, spans, stores)
    return Compiled(
        given,
        stores,
        words,
        columns,
        code.top,
        entries,
        frozenset(together),
        row_entries,
        read,
        tuple(calls),
        tuple(spans),
        results,
        _feeding(given, stores),
    )


def _feeding(program: ast.Program, stores: Stores) -> dict[int, frozenset[str]]:
    found = {store.address: frozenset({table}) for table, store in stores.tables.items()}
    for trigger in program.triggers:
        if trigger.relation is not None:
            for assignment in assignments(trigger.statements):
                address = stores.map(assignment.target.name).address
                found[address] = found.get(address, frozenset()) | {trigger.relation}
    return found


def _with_row_code(
    code: Words,
    entries: dict[tuple[str | None, str], int],
    spans: list[tuple[int, ast.Node]],
    stores: Stores,
) -> tuple[Words, dict[tuple[str | None, str], int]]:
    """All code, then that of triggers for one row; the origin of their statements is noted in `spans`."""
    parts, rows, length = [code], {}, len(code)
    starts, nodes = [start for start, _ in spans], [node for _, node in spans]
    plain = {s.address for s in stores.all if s.is_plain}
    bare = {s.address for s in stores.all if s.is_bare}
    for key, entry in entries.items():
        if key[0] is None:
            continue
        written = row_code(code, entry, length, plain.__contains__, bare.__contains__)
        if written is not None:
            rows[key] = length
            spans += [(there, nodes[max(bisect_right(starts, here) - 1, 0)]) for there, here in written[1]]
            parts.append(np.array(written[0], np.int64))
            length += len(written[0])
    return np.concatenate(parts), rows
