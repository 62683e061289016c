"""Owns a running query over integers in codes: rows of changes in, the groups that changed out.

What a strategy of the engine needs from a view tree.  To the program that maintains the views are added, for
each map of the root, one of its net changes since the last request, and a stream of requested groups:
so that reading costs what changed, not the size of the result.  Knows no engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dlog.errors import DataError
from dlog.jit import Words
from dlog.m3.runtime import layout
from dlog.m3.runtime.runtime import Runtime
from dlog.m3.syntax import ast
from dlog.m3.types.typecheck import check
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.views.m3.program import NATIVE, m3_program
from dlog.views.orders.orders import find_order
from dlog.views.query import Query, Term, count
from dlog.views.tree.build import view_tree
from dlog.views.tree.payloads import COUNT, Payload, Payloads, Shown
from dlog.views.tree.tree import ViewTree

MOST_ROWS = 1 << 16  # of one batch
ASKED, CHANGE, ANSWER = "ASKED", "CHANGE_OF_", "ANSWER_OF_"


@dataclass(frozen=True)
class Groups:
    """Groups, (n, keys), with the number of their assignments and their sums, before and after."""

    keys: Words
    counts: tuple[Words, Words]
    sums: tuple[Mapping[str, Words], Mapping[str, Words]]


class GroupViews:
    """The views of a query, and which groups changed.  REQUIRES: `is_integral(query)`."""

    def __init__(
        self,
        query: Query,
        dictionary: Dictionary,
        sizes: Mapping[str, int] | None = None,
        threads: int | None = None,
    ):
        query.check()
        self.query, self.sizes = query, dict(sizes or {})
        self.tree: ViewTree = view_tree(query, find_order(query, sizes))
        self.payloads = Payloads(query, self.tree)
        self.wanted: dict[Payload, str] = {
            p: self.payloads.name(self.tree.root, p) for p in self.payloads.of(self.tree.root)
        }
        program = m3_program(query, self.tree, NATIVE)
        if self.tree.root.keys:
            program = with_changes(program, tuple(self.wanted.values()))
        self.runtime = Runtime(check(program), checked=True, dictionary=dictionary, threads=threads)
        self.empty = self.runtime.save()
        self.totals: dict[Payload, Words] = {p: np.zeros(1, np.int64) for p in self.wanted}

    def reset(self) -> None:
        """Back to the empty state."""
        self.runtime.restore(self.empty)
        self.totals = {p: np.zeros(1, np.int64) for p in self.wanted}

    def apply(self, relation: str, rows: Words, sign: int) -> None:
        """Rows of codes that are inserted (1) or deleted (-1)."""
        if (rows == layout.EMPTY).any():
            raise DataError(f"{relation}: {layout.EMPTY} is below the range of view trees")
        self.runtime.expect(relation, len(rows))
        for start in range(0, len(rows), MOST_ROWS):
            part = rows[start : start + MOST_ROWS]
            words = np.empty((part.shape[1] + 1, len(part)), np.int64)
            words[:-1], words[-1] = part.T, sign
            self.runtime.apply_words(relation, words)

    def changed(self) -> Groups:
        """The groups that have changed since the last call.  O(changes)."""
        if not self.tree.root.keys:
            return self._changed_total()
        changes = {p: self._entries(CHANGE + name) for p, name in self.wanted.items()}
        keys = np.unique(np.concatenate([words[:-1].T for words in changes.values()]), axis=0)
        if not len(keys):
            return self._groups(keys, changes, changes)
        self.runtime.apply_words(ASKED, np.vstack([keys.T, np.ones((1, len(keys)), np.int64)]))
        found = {p: self._entries(ANSWER + name) for p, name in self.wanted.items()}
        after = {p: _aligned(keys, words) for p, words in found.items()}
        before = {p: after[p] - _aligned(keys, words) for p, words in changes.items()}
        return self._groups(self._free_order(keys), before, after)

    def _changed_total(self) -> Groups:
        before = self.totals
        found = {p: self._entries(name) for p, name in self.wanted.items()}
        self.totals = {p: words[0] if words.shape[1] else np.zeros(1, np.int64) for p, words in found.items()}
        same = all(np.array_equal(before[p], self.totals[p]) for p in self.wanted)
        keys = np.empty((0 if same else 1, 0), np.int64)
        cut = slice(0, len(keys))
        return self._groups(
            keys, {p: v[cut] for p, v in before.items()}, {p: v[cut] for p, v in self.totals.items()}
        )

    def _free_order(self, keys: Words) -> Words:
        """The keys of the root as the query has its groups."""
        return keys[:, [self.tree.root.keys.index(v) for v in self.query.free]]

    def _groups(self, keys: Words, before: Mapping[Payload, Words], after: Mapping[Payload, Words]) -> Groups:
        if not len(keys):
            nothing = np.empty(0, np.int64)
            none = {shown.aggregate.name: nothing for shown in self.payloads.shown}
            return Groups(keys.reshape(0, len(self.query.free)), (nothing, nothing), (none, none))
        return Groups(keys, (before[()], after[()]), (self._sums(before), self._sums(after)))

    def _sums(self, values: Mapping[Payload, Words]) -> dict[str, Words]:
        return {s.aggregate.name: _added(s, values) for s in self.payloads.shown}

    def _entries(self, name: str) -> Words:
        return self.runtime.words_of(self.runtime.compiled.stores.map(name))


def with_count(query: Query) -> Query:
    """The query with the number of assignments, which shows whether there are any."""
    if any(a.terms == (Term(),) for a in query.aggregates):
        return query
    return replace(query, aggregates=(*query.aggregates, replace(count("number of rows"), hidden=True)))


def is_integral(query: Query) -> bool:
    """Whether all sums are of integers, and the number of assignments is among the aggregates."""
    tree = view_tree(query, find_order(query))
    payloads = Payloads(query, tree)
    found = payloads.of(tree.root)
    return () in found and all(payloads.type(p) == COUNT for p in found)


def with_changes(program: ast.Program, maps: tuple[str, ...]) -> ast.Program:
    """The program with maps of the net changes of some maps, and a stream that requests entries of them and
    clears these changes.
    """
    declared = [m for m in program.maps if m.name in maps]
    keys = declared[0].keys
    zero = ast.Constant("int", 0)
    new = [replace(m, name=prefix + m.name, definition=zero) for m in declared for prefix in (CHANGE, ANSWER)]
    asked = ast.Source(ast.STREAM, ASKED, keys)
    variables = tuple(ast.Variable(k.name) for k in keys)
    batch = ast.DeltaRelation(ASKED, variables)
    statements = []
    for m in declared:
        access = ast.MapAccess(m.name, m.type, (), variables)
        answer = replace(access, name=ANSWER + m.name)
        forget = replace(access, name=CHANGE + m.name)
        statements.append(ast.Assign(answer, ":=", ast.AggSum(variables, ast.product([batch, access]))))
        statements.append(ast.Assign(forget, ":=", ast.AggSum(variables, ast.product([batch, zero]))))
    triggers = [_noting(t, maps) for t in program.triggers]
    return replace(
        program,
        sources=(*program.sources, asked),
        maps=(*program.maps, *new),
        queries=(),
        triggers=(*triggers, ast.Trigger(ast.BATCH, ASKED, (), tuple(statements))),
    )


def _noting(trigger: ast.Trigger, maps: tuple[str, ...]) -> ast.Trigger:
    """Each change of one of the maps is also added to the map of its changes."""
    statements: list[ast.Assign | ast.If] = []
    for statement in trigger.statements:
        statements.append(statement)
        if isinstance(statement, ast.Assign) and statement.target.name in maps:
            target = replace(statement.target, name=CHANGE + statement.target.name)
            statements.append(replace(statement, target=target))
    return replace(trigger, statements=tuple(statements))


def _aligned(keys: Words, entries: Words) -> Words:
    """The values of entries (keys and value, by column) for each of the sorted, distinct keys; else 0."""
    both = np.concatenate([keys, entries[:-1].T])
    _, group = np.unique(both, axis=0, return_inverse=True)
    group = group.reshape(-1)
    place = np.zeros(len(both), np.int64)
    place[group[: len(keys)]] = np.arange(len(keys))
    out = np.zeros(len(keys), np.int64)
    out[place[group[len(keys) :]]] = entries[-1]
    return out


def _added(shown: Shown, values: Mapping[Payload, Words]) -> Words:
    total = values[shown.payloads[0]].copy()
    for payload in shown.payloads[1:]:
        total += values[payload]
    return total
