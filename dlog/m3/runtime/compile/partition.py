"""Owns how a program's rows are divided among machines that run at the same time, from the program alone.

Each machine has all maps and runs all triggers, on its own rows.  A relation is *split* by a column, so that
a machine has the rows of some values, or *shared*: every machine has all rows.  A map then is

    SPLIT by a key   each entry is in the machine that has its value of that key; others have no such entry
    SHARED           each machine has all of it: it depends on shared relations alone
    PARTIAL          its value is the sum of the values that machines have

Correct output: whatever is read is the sum, or the union, of what machines have, and equals what one machine
has that gets all rows.  That is so if every product of a statement has factors that are split by the same
variable, and the others are shared; or one factor that is partial, and the others are shared.  Conditions and
functions are no factors of a sum: what they read is shared, or split by the variable that the product is
split by.

Independent subtrees of a view tree need no rule of their own: each machine computes its part of all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from dlog.m3.runtime.compile.analysis import Names, assignments, outputs
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import BATCH, READY

SHARED, PARTIAL = -1, -2  # how a map is divided; else the place of a key


@dataclass(frozen=True)
class Partition:
    """`columns`: by relation, the column that it is split by, or None if it is shared.  `maps`: by map, the
    place of the key that it is split by, SHARED or PARTIAL.  `clearing`: relations whose triggers replace
    maps, so that machines without a row of a batch run them, too.
    """

    columns: Mapping[str, int | None]
    maps: Mapping[str, int]
    clearing: frozenset[str]


def partition(program: ast.Program) -> Partition | None:
    """The best way to divide a program's rows: it splits the most relations, then the most maps.  None: there
    is no way.  O(columns * size of the program * relations).
    """
    if _has_domains(program):
        return None
    best, score = None, (0, 0)
    for source in program.sources:
        for column in range(len(source.columns)):
            found = _Search(program, source.name, column).run()
            if found is not None:
                split = sum(c is not None for c in found.columns.values())
                own = (split, sum(state >= 0 for state in found.maps.values()))
                best, score = (found, own) if own > score else (best, score)
    return best


def _has_domains(program: ast.Program) -> bool:
    """Whether entries of value 0 matter, or statements replace what single rows find."""
    for trigger in program.triggers:
        for a in assignments(trigger.statements):
            if a.op == ":=" and trigger.event not in (BATCH, READY):
                return True
    accesses = (n for n in program.walk() if isinstance(n, ast.MapAccess))
    return any(n.initial is not None or n.inputs for n in accesses)


class _Wrong(Exception):
    """A statement that this way of dividing rows does not allow."""


@dataclass(frozen=True)
class _Kind:
    """Of an expression: split by variables of the same values; or partial; else shared.  `needs` are
    variables that the product must be split by.  `is_open`: something in it is not known yet, and would
    agree.
    """

    split: str | None = None
    is_partial: bool = False
    needs: Names = frozenset()
    is_zero: bool = False
    is_open: bool = False


_SHARED = _Kind()


def replaces_for_itself(program: ast.Program, relation: str, others: Collection[str]) -> bool:
    """Whether all that the trigger of a relation replaces is scratch: no query and no trigger reads what
    another trigger left there, and none is among some other maps.  Then it need not run without rows.
    """
    mine = [t for t in program.triggers if t.relation == relation]
    replaced = {a.target.name for t in mine for a in assignments(t.statements) if a.op == ":="}
    read = {*others, *(name for query in program.queries for name in _maps_in(query))}
    for trigger in program.triggers:
        if any(isinstance(statement, ast.If) for statement in trigger.statements):
            return False
        own = set[str]()
        for assign in assignments(trigger.statements):
            read.update(set(_maps_in(assign.expression)) - own)
            if assign.op == ":=":
                own.add(assign.target.name)
            elif assign.target.name not in own:
                read.add(assign.target.name)
    return replaced.isdisjoint(read)


def _maps_in(node: ast.Node) -> Iterator[str]:
    return (n.name for n in node.walk() if isinstance(n, ast.MapAccess))


@dataclass
class _Search:
    """What follows if one relation is split by one column."""

    program: ast.Program
    relation: str
    column: int
    columns: dict[str, int | None] = field(default_factory=dict)
    maps: dict[str, int] = field(default_factory=dict)
    is_last: bool = False  # what is not known by now is shared

    def run(self) -> Partition | None:
        self.columns = {self.relation: self.column}
        try:
            for self.is_last in (False, True):
                self._follow()
            self._follow()
        except _Wrong:
            return None
        maps = {m.name: self.maps.get(m.name, SHARED) for m in self.program.maps}
        columns = {s.name: self.columns.get(s.name) for s in self.program.sources}
        clearing = {t.relation for t in self.program.triggers if t.relation and _replaces(t)}
        return Partition(columns, maps, frozenset(clearing))

    def _follow(self) -> None:
        """Until nothing new is known."""
        while True:
            before = dict(self.columns), dict(self.maps)
            for trigger in self.program.triggers:
                self._trigger(trigger)
            if before == (self.columns, self.maps):
                return

    def _trigger(self, trigger: ast.Trigger) -> None:
        bound = frozenset(p.name for p in trigger.parameters)
        conditions = [s.condition for s in trigger.walk() if isinstance(s, ast.If)]
        for a in assignments(trigger.statements):
            row = _SHARED
            if trigger.relation is not None and trigger.event != BATCH:
                row = self._rows(trigger.relation, trigger.parameters)
            kind = self._product([row, *(self._guard(c, bound) for c in conditions)])
            kind = self._product([kind, self._kind(a.expression, bound)])
            if kind.is_open and trigger.event != BATCH:
                kind = self._learned(trigger.relation, trigger.parameters, kind)
            if not kind.is_zero and (kind.split is not None or kind.is_partial or not kind.is_open):
                self._note(a.target, kind)

    def _note(self, target: ast.MapAccess, kind: _Kind) -> None:
        if kind.needs - {kind.split}:
            raise _Wrong
        keys = [k.name for k in target.keys]
        state = PARTIAL if kind.is_partial else SHARED
        if kind.split is not None:
            state = keys.index(kind.split) if kind.split in keys else PARTIAL
        known = self.maps.get(target.name, state)
        if known != state and SHARED in (known, state):
            raise _Wrong  # every machine would add what is shared
        self.maps[target.name] = state if known == state else PARTIAL

    # ---- expressions

    def _rows(self, relation: str, variables: tuple[ast.Variable, ...]) -> _Kind:
        if relation not in self.columns and not self.is_last:
            return _Kind(is_open=True)
        column = self.columns.setdefault(relation, None)
        return _SHARED if column is None else _Kind(split=variables[column].name)

    def _kind(self, node: ast.Node, bound: Names) -> _Kind:
        match node:
            case ast.DeltaRelation() | ast.Relation():
                return self._rows(node.name, node.variables)
            case ast.MapAccess():
                return self._map(node)
            case ast.AggSum():
                return self._summed(node, bound)
            case ast.Sum():
                return self._sum([self._kind(term, bound) for term in node.terms])
            case ast.Product():
                return self._factors(node, bound)
            case ast.Exists() | ast.Domain():
                kind = self._kind(node.body, bound)
                if kind.is_partial:
                    raise _Wrong
                return kind
            case ast.Constant():
                return _Kind(is_zero=node.value == 0)
        return self._guard(node, bound)

    def _map(self, node: ast.MapAccess) -> _Kind:
        state = self.maps.get(node.name)
        if state is None:
            return _SHARED if self.is_last else _Kind(is_open=True)
        if state >= 0:
            return _Kind(split=node.keys[state].name)
        return _Kind(is_partial=state == PARTIAL)

    def _guard(self, node: ast.Node, bound: Names) -> _Kind:
        """A condition or function: it is not 0 where what it reads is."""
        needs: set[str] = set()
        is_open = False
        for part in _children(node):
            kind = self._kind(part, bound)
            if kind.is_partial:
                raise _Wrong
            needs |= kind.needs | ({kind.split} if kind.split is not None else set())
            is_open = is_open or kind.is_open
        return _Kind(needs=frozenset(needs), is_open=is_open)

    def _summed(self, node: ast.AggSum, bound: Names) -> _Kind:
        kind = self._kind(node.body, bound)
        stays = bound | {k.name for k in node.keys}
        if kind.is_zero:
            return kind
        if kind.split is not None and kind.split not in stays:
            if kind.needs - {kind.split}:
                raise _Wrong
            return _Kind(is_partial=True, is_open=kind.is_open)
        if not kind.needs <= stays:
            raise _Wrong
        return kind

    def _sum(self, kinds: list[_Kind]) -> _Kind:
        kinds = [k for k in kinds if not k.is_zero]
        if not kinds:
            return _Kind(is_zero=True)
        if any(k.is_open for k in kinds):
            return _Kind(is_open=True)
        shared = [k.split is None and not k.is_partial for k in kinds]
        if any(shared) != all(shared):
            raise _Wrong
        if any(k.needs - {k.split} for k in kinds) and len(set(kinds)) > 1:
            raise _Wrong
        return kinds[0] if len(set(kinds)) == 1 else _Kind(is_partial=True)

    def _factors(self, node: ast.Product, bound: Names) -> _Kind:
        kinds = []
        for factor in node.factors:
            kinds.append(self._kind(factor, bound))
            bound |= outputs(factor, bound).keys()
        kind = self._product(kinds)
        for factor in node.factors:
            if kind.is_open and isinstance(factor, ast.DeltaRelation | ast.Relation):
                kind = self._learned(factor.name, factor.variables, kind)
        return kind

    def _product(self, kinds: list[_Kind]) -> _Kind:
        needs = frozenset[str]().union(*(k.needs for k in kinds))
        splits = {k.split for k in kinds if k.split is not None}
        partial = sum(k.is_partial for k in kinds)
        if any(k.is_zero for k in kinds):
            return _Kind(is_zero=True)
        if len(splits) > 1 or partial > 1 or (partial and splits):
            raise _Wrong
        split = next(iter(splits), None)
        return _Kind(split, partial > 0, needs, is_open=any(k.is_open for k in kinds))

    def _learned(self, relation: str | None, variables: tuple[ast.Variable, ...], kind: _Kind) -> _Kind:
        """A relation that is joined with something split by one of its columns is split by that column."""
        names = [v.name for v in variables]
        if relation is not None and relation not in self.columns and kind.split in names:
            self.columns[relation] = names.index(kind.split)
        return kind


def _replaces(trigger: ast.Trigger) -> bool:
    return any(a.op == ":=" for a in assignments(trigger.statements))


def _children(node: ast.Node) -> Iterator[ast.Node]:
    """The expressions directly in a node."""
    return (part for part in node.children() if not isinstance(part, ast.TypeRef))
