"""Owns a checked program -> what the machine runs: code, the maps' shapes, where each trigger begins."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from dlog.jit import Words
from dlog.m3 import ast
from dlog.m3.runtime.analysis import Typing
from dlog.m3.runtime.bodies import Body
from dlog.m3.runtime.code import Code
from dlog.m3.runtime.statements import (
    LOAD,
    QUERY,
    Result,
    is_independent,
    write_load,
    write_query,
    write_triggers,
)
from dlog.m3.runtime.stores import Stores
from dlog.m3.runtime.values import Arithmetic, PythonCall
from dlog.storage.dictionary import Dictionary


@dataclass(frozen=True)
class Compiled:
    """`entries` has the address of each trigger, by relation and event; `together` those triggers of single
    tuples that can take many at a time.  A query's code fills the store of its result.
    """

    program: ast.Program
    stores: Stores
    code: Words
    columns: Words
    state_words: int
    entries: dict[tuple[str | None, str], int]
    together: frozenset[tuple[str | None, str]]
    calls: tuple[PythonCall, ...]
    spans: tuple[tuple[int, ast.Node], ...]
    results: dict[str, Result]

    def statement_at(self, address: int) -> ast.Node | None:
        """The statement whose code an address is in."""
        at = bisect_right([start for start, _ in self.spans], address) - 1
        return self.spans[at][1] if at >= 0 else None


def compile_program(program: ast.Program, dictionary: Dictionary) -> Compiled:
    """REQUIRES: a program that `check` returned.  O(size of the program)."""
    code, calls, stores, typing = Code(), [], Stores(program), Typing(program)  # type: ignore[var-annotated]
    arithmetic = Arithmetic(code, calls)
    entries: dict[tuple[str | None, str], int] = {}
    together = set()
    spans: list[tuple[int, ast.Node]] = []
    groups: dict[tuple[str | None, str], list[ast.Trigger]] = {}
    for trigger in program.triggers:
        groups.setdefault((trigger.relation, trigger.event), []).append(trigger)
    for key, triggers in groups.items():
        entries[key] = len(code.words)
        if len(triggers) == 1 and is_independent(triggers[0]):
            together.add(key)
        write_triggers(Body(code, arithmetic, stores, typing, dictionary), triggers, spans)
    for table in stores.tables:
        entries[table, LOAD] = len(code.words)
        write_load(Body(code, arithmetic, stores, typing, dictionary), table)
    results = {}
    for query in program.queries:
        entries[query.name, QUERY] = len(code.words)
        body = Body(code, arithmetic, stores, typing, dictionary)
        results[query.name] = write_query(body, query, spans)
    words, columns = code.finish()
    return Compiled(
        program,
        stores,
        words,
        columns,
        code.top,
        entries,
        frozenset(together),
        tuple(calls),
        tuple(spans),
        results,
    )
