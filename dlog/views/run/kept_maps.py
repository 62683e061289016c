"""Owns maps of an M3 program over rows of codes: rows of changes in, the entries that changed out.

What a strategy of the engine needs, whatever has made the program: a view tree, or levels of maps.  To it
are added, for each map that is asked for, one of its net changes since the last request, and a stream of
requested keys: so that reading costs what changed, not the size of the map.  Knows no engine and no query.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from dlog.errors import DataError
from dlog.jit import Words
from dlog.m3.runtime import layout
from dlog.m3.runtime.runtime import Runtime
from dlog.m3.syntax import ast
from dlog.m3.types.typecheck import check
from dlog.storage.dictionary.dictionary import Dictionary

MOST_ROWS = 1 << 16  # of one batch
ASKED, CHANGE, ANSWER = "ASKED", "CHANGE_OF_", "ANSWER_OF_"
ADD, REPLACE = "+=", ":="

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Changes(Generic[Name]):
    """Keys, (n, keys), in ascending order, with the value of each map before and after, or 0."""

    keys: Words
    before: Mapping[Name, Words]
    after: Mapping[Name, Words]


class KeptMaps(Generic[Name]):
    """The maps of a program, and what changed in some of them: `roots`, by any names.

    REQUIRES: triggers are for batches; roots have integers for values, and all of them `keys`, in any order.
    """

    def __init__(
        self,
        program: ast.Program,
        roots: Mapping[Name, str],
        keys: Sequence[str],
        dictionary: Dictionary | None = None,
        threads: int | None = None,
    ):
        self.roots, self.keys = dict(roots), tuple(keys)
        if keys:
            program = with_changes(program, tuple(self.roots.values()), self.keys)
        self.runtime = Runtime(check(program), checked=True, dictionary=dictionary, threads=threads)
        self.runtime.ready()
        self.empty = self.runtime.save()
        self.totals = self._totals()

    def reset(self) -> None:
        """Back to the empty state."""
        self.runtime.restore(self.empty)
        self.totals = self._totals()

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

    def changed(self) -> Changes[Name]:
        """What has changed since the last call.  O(changes)."""
        if not self.keys:
            return self._changed_total()
        changes = {name: self._entries(CHANGE + root) for name, root in self.roots.items()}
        keys = np.unique(np.concatenate([words[:-1].T for words in changes.values()]), axis=0)
        if not len(keys):
            nothing = {name: np.empty(0, np.int64) for name in self.roots}
            return Changes(keys.reshape(0, len(self.keys)), nothing, nothing)
        self.runtime.apply_words(ASKED, np.vstack([keys.T, np.ones((1, len(keys)), np.int64)]))
        found = {name: self._entries(ANSWER + root) for name, root in self.roots.items()}
        after = {name: _aligned(keys, words) for name, words in found.items()}
        before = {name: after[name] - _aligned(keys, words) for name, words in changes.items()}
        return Changes(keys, before, after)

    def memory(self) -> int:
        """Bytes of all maps."""
        return self.runtime.memory()

    def check(self) -> None:
        self.runtime.check()

    def _changed_total(self) -> Changes[Name]:
        before, self.totals = self.totals, self._totals()
        same = all(np.array_equal(before[name], self.totals[name]) for name in self.roots)
        cut = slice(0, 0 if same else 1)
        keys = np.empty((0 if same else 1, 0), np.int64)
        return Changes(
            keys, {n: v[cut] for n, v in before.items()}, {n: v[cut] for n, v in self.totals.items()}
        )

    def _totals(self) -> dict[Name, Words]:
        found = {name: self._entries(root) for name, root in self.roots.items()} if not self.keys else {}
        return {n: words[0] if words.shape[1] else np.zeros(1, np.int64) for n, words in found.items()}

    def _entries(self, name: str) -> Words:
        return self.runtime.words_of(self.runtime.compiled.stores.map(name))


def with_changes(program: ast.Program, maps: Sequence[str], keys: Sequence[str]) -> ast.Program:
    """The program with maps of the net changes of some maps, and a stream that requests entries of them and
    clears these changes.  Both have the keys in this order.
    """
    declared = {m.name: m for m in program.maps if m.name in maps}
    columns = {k.name: k for m in declared.values() for k in m.keys}
    ordered = tuple(columns[name] for name in keys)
    zero = ast.Constant("int", 0)
    variables = tuple(map(ast.Variable, keys))
    batch = ast.DeltaRelation(ASKED, variables)
    new, statements = [], []
    for m in declared.values():
        new += [
            replace(m, name=prefix + m.name, keys=ordered, definition=zero) for prefix in (CHANGE, ANSWER)
        ]
        access = ast.MapAccess(m.name, m.type, (), tuple(ast.Variable(k.name) for k in m.keys))
        answer, forget = (replace(access, name=p + m.name, keys=variables) for p in (ANSWER, CHANGE))
        statements.append(ast.Assign(answer, REPLACE, ast.AggSum(variables, ast.product([batch, access]))))
        statements.append(ast.Assign(forget, REPLACE, ast.AggSum(variables, ast.product([batch, zero]))))
    triggers = [_noting(trigger, declared, keys) for trigger in program.triggers]
    return replace(
        program,
        sources=(*program.sources, ast.Source(ast.STREAM, ASKED, ordered)),
        maps=(*program.maps, *new),
        queries=(),
        triggers=(*triggers, ast.Trigger(ast.BATCH, ASKED, (), tuple(statements))),
    )


def _noting(trigger: ast.Trigger, maps: Mapping[str, ast.MapDeclaration], keys: Sequence[str]) -> ast.Trigger:
    """Each change of one of the maps is also added to the map of its changes."""
    statements: list[ast.Assign | ast.If] = []
    for statement in trigger.statements:
        if isinstance(statement, ast.Assign) and statement.target.name in maps:
            statements += _noted(statement, maps[statement.target.name], keys)
        else:
            statements.append(statement)
    return replace(trigger, statements=tuple(statements))


def _noted(statement: ast.Assign, declared: ast.MapDeclaration, keys: Sequence[str]) -> Iterator[ast.Assign]:
    """A sum is added to both.  What is replaced is subtracted before, and what replaces it added after."""
    names = [k.name for k in declared.keys]
    written = tuple(statement.target.keys[names.index(key)] for key in keys)
    change = replace(statement.target, name=CHANGE + declared.name, keys=written)
    if statement.op != REPLACE:
        yield statement
        yield replace(statement, target=change)
        return
    yield ast.Assign(change, ADD, ast.product([ast.Constant("int", -1), statement.target]))
    yield statement
    yield ast.Assign(change, ADD, statement.target)


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
