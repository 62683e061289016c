"""Owns triggers -> instructions: the order of statements, and when their results may be stored.

Statements run in order, each sees the effects of those before it, and the right side is computed completely
before the target changes.  So a statement that reads its own target adds into its own map first.  Statements
that begin with the same rows (of the batch, or of a map) and that neither read nor replace what one of them
writes share one loop over these rows, and the columns and hashes that they have in common.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from dlog.m3.runtime import layout as o
from dlog.m3.runtime.compile.analysis import assignments, has_initial, maps_read, outputs
from dlog.m3.runtime.compile.bodies import Body
from dlog.m3.runtime.compile.code import Label
from dlog.m3.runtime.compile.rows import Bound
from dlog.m3.runtime.compile.stores import Store
from dlog.m3.runtime.compile.values import kind_of
from dlog.m3.syntax import ast

QUERY, LOAD = "query", "load"
_BATCH = "the batch"


def write_triggers(body: Body, triggers: list[ast.Trigger], spans: list[tuple[int, ast.Node]]) -> None:
    """The code of all triggers of one event, in order, from their root frame to the END."""
    code, first = body.code, triggers[0]
    code.free_columns()
    body.frame.is_single = first.event in (ast.BATCH, ast.READY)
    code.emit(o.ROOT, body.frame.word, int(body.frame.is_single))
    kinds = body.stores.column_kinds(first.relation) if first.relation else ()
    with _batch_as_map(body, triggers):
        for trigger in triggers:
            body.bound = {
                p.name: Bound(kind, body.frame, ("input", j))
                for j, (p, kind) in enumerate(zip(trigger.parameters, kinds, strict=False))
            }
            _Writer(body, trigger, spans).statements(trigger.statements)
    code.emit(o.END)


@contextmanager
def _batch_as_map(body: Body, triggers: list[ast.Trigger]) -> Iterator[None]:
    """Code that stores the batch as a map; it is left out if the following code does not need it."""
    relation = triggers[0].relation
    if triggers[0].event != ast.BATCH or relation is None:
        yield
        return
    targets = (a.target.name for t in triggers for a in assignments(t.statements))
    body.consolidates = any(body.stores.map(name).keeps for name in targets)
    store, following = body.stores.delta(relation), Label()
    body.code.emit(o.JUMP, following)
    at = len(body.code.words)
    body.code.emit(o.CLEAR, store.address)
    _store_batch(body, relation, store)
    body.code.place(following)
    stored, body.code.inputs = body.code.inputs, set()
    yield
    if body.joins_batch:
        following.address = at
        body.code.inputs |= stored


@dataclass(frozen=True)
class Result:
    """A query's result: the names of its columns, and the store that holds them and their values."""

    names: tuple[str, ...]
    types: tuple[ast.TypeRef, ...]
    store: Store
    is_map: bool  # it is a map of the program: there is nothing to compute


def write_query(body: Body, query: ast.Query, spans: list[tuple[int, ast.Node]]) -> Result:
    """Code that computes a query's result; none if it is just a map."""
    found = outputs(query.expression, frozenset())
    names, types = tuple(found), tuple(found.values())
    expression = query.expression
    if isinstance(expression, ast.MapAccess) and expression.initial is None:
        variables = [v.name for v in (*expression.inputs, *expression.keys)]
        if tuple(variables) == names:
            return Result(names, types, body.stores.map(expression.name), True)
    ring = body.stores.result_ring(expression, body.typing.of(expression))
    store = body.stores.scratch(tuple(kind_of(t) for t in types), ring)
    body.code.free_columns()
    body.frame.is_single = True
    spans.append((len(body.code.words), query))
    body.code.emit(o.ROOT, body.frame.word, 1)
    body.code.emit(o.CLEAR, store.address)
    for term in _terms(expression):
        with body.inner(), body.adding_to(ring):
            body.join(term)
            body.accumulate(store, [body.key(n, k) for n, k in zip(names, store.key_kinds, strict=True)])
    body.code.emit(o.END)
    return Result(names, types, store, False)


def is_independent(trigger: ast.Trigger) -> bool:
    """Whether the rows of a single-tuple trigger can be processed many at a time: no statement reads what one
    of them writes, and none replaces.
    """
    found = list(assignments(trigger.statements))
    written = {a.target.name for a in found}
    return (
        trigger.event in (ast.INSERT, ast.DELETE)
        and all(isinstance(s, ast.Assign) for s in trigger.statements)
        and all(a.op == "+=" and a.target.initial is None for a in found)
        and not any(maps_read(a.expression) & written for a in found)
        and not has_initial(trigger)
        and all(v in trigger.parameters for a in found for v in a.target.inputs)
    )


def write_load(body: Body, table: str) -> None:
    """Code that adds the rows of a batch to a table."""
    body.code.free_columns()
    body.frame.is_single = True
    body.code.emit(o.ROOT, body.frame.word, 1)
    _store_batch(body, table, body.stores.table(table))
    body.code.emit(o.END)


def _store_batch(body: Body, relation: str, store: Store) -> None:
    with body.inner():
        body.open_delta()
        variables = tuple(ast.Variable(f"column {j}") for j in range(len(store.key_kinds)))
        body.bind_delta(ast.DeltaRelation(relation, variables))
        columns = [body.key(v.name, k) for v, k in zip(variables, store.key_kinds, strict=True)]
        body.accumulate(store, columns)


def _terms(expression: ast.Node) -> tuple[ast.Node, ...]:
    """The summands of a statement's expression."""
    if isinstance(expression, ast.AggSum):
        return tuple(
            ast.AggSum(expression.keys, term, span=expression.span) for term in _terms(expression.body)
        )
    return expression.terms if isinstance(expression, ast.Sum) else (expression,)


def _factors(term: ast.Node) -> tuple[ast.Node, ...]:
    while isinstance(term, ast.AggSum):
        term = term.body
    return term.factors if isinstance(term, ast.Product) else (term,)


def _leading(term: ast.Node) -> ast.Node | None:
    """The factor whose rows a summand begins with, when no variable is bound before."""
    factors = _factors(term)
    for factor in factors:
        if isinstance(factor, ast.DeltaRelation):
            return factor
    return factors[0] if isinstance(factors[0], ast.MapAccess | ast.Relation) else None


class _Writer:
    def __init__(self, body: Body, trigger: ast.Trigger, spans: list[tuple[int, ast.Node]]):
        self.body, self.trigger, self.spans = body, trigger, spans
        self.code, self.stores = body.code, body.stores
        self.parameters = body.names

    def statements(self, statements: tuple[ast.Assign | ast.If, ...]) -> None:
        index = 0
        while index < len(statements):
            statement = statements[index]
            if isinstance(statement, ast.If):
                self._if(statement)
                index += 1
                continue
            group = self._group(statements, index)
            if len(group) > 1:
                self._together(group)
            else:
                self._statement(statement)
            index += max(len(group), 1)

    def _if(self, node: ast.If) -> None:
        otherwise, end = Label(), Label()
        condition = self.body.scalar(node.condition)
        self.code.emit(o.JUMP_FALSE, condition.column, otherwise)
        before = dict(self.body.frame.cache)
        self.statements(node.then)
        self.body.frame.cache = dict(before)
        self.code.emit(o.JUMP, end)
        self.code.place(otherwise)
        self.statements(node.otherwise)
        self.body.frame.cache = before
        self.code.place(end)
        for statement in assignments((*node.then, *node.otherwise)):
            self.body.forget_look_ups(self.stores.map(statement.target.name))

    # ---- statements that share a loop

    def _group(self, statements: tuple[ast.Assign | ast.If, ...], start: int) -> list[ast.Assign]:
        """The longest run of statements from `start` on that can share one loop over the same rows."""
        group: list[ast.Assign] = []
        read: set[str] = set()
        written: set[str] = set()
        for statement in statements[start:]:
            if not isinstance(statement, ast.Assign) or self._rows(statement) is None:
                break
            target = statement.target.name
            reads = maps_read(statement.expression)
            if group and self._rows(statement) != self._rows(group[0]):
                break
            if target in reads or reads & written or target in read or target in written:
                break
            group.append(statement)
            read |= reads
            written.add(target)
        return group

    def _rows(self, statement: ast.Assign) -> str | None:
        """What the statement begins with: the batch, or all entries of a map.  None: neither, or not only."""
        if self.parameters or not self.body.frame.is_single or self.body.consolidates:
            return None
        terms = _terms(statement.expression)
        if self._is_range_sum(terms[0]):
            return None
        leading = _leading(terms[0])
        deltas = [n for n in statement.expression.walk() if isinstance(n, ast.DeltaRelation)]
        if len(terms) != 1 or leading is None or has_initial(statement):
            return None
        if isinstance(leading, ast.DeltaRelation):
            return _BATCH if deltas == [leading] else None
        if isinstance(leading, ast.MapAccess) and not deltas and (leading.inputs or leading.keys):
            return f"map {leading.name}"
        return None

    def _is_range_sum(self, term: ast.Node) -> bool:
        names = self.body.names
        return not outputs(term, names) and self.body.ranges.read(_factors(term), names) is not None

    def _together(self, group: list[ast.Assign]) -> None:
        body = self.body
        self._note_repeated(group)
        for statement in group:
            if statement.op == ":=":
                self._mark(statement)
                self.code.emit(o.CLEAR, self.stores.map(statement.target.name).address)
        with body.inner():
            leading = _leading(_terms(group[0].expression)[0])
            if isinstance(leading, ast.DeltaRelation):
                body.open_delta()
            else:
                assert isinstance(leading, ast.MapAccess)
                body.open_scan(self.stores.map(leading.name))
            for statement in group:
                self._mark(statement)
                with body.inner(), body.adding_to(self.stores.map(statement.target.name).ring):
                    term = _terms(statement.expression)[0]
                    leading = _leading(term)
                    assert leading is not None
                    body.bind_leading(leading)
                    rest = [f for f in _factors(term) if f is not leading]
                    if rest:
                        body.join(ast.product(rest))
                    self._add(statement, self.stores.map(statement.target.name))
        body.repeated = set()
        for statement in group:
            body.forget_look_ups(self.stores.map(statement.target.name))

    def _note_repeated(self, group: list[ast.Assign]) -> None:
        """Look-ups that occur more than once are done once."""
        seen: set[tuple[str, tuple[str, ...]]] = set()
        for statement in group:
            for node in statement.expression.walk():
                if isinstance(node, ast.MapAccess):
                    mark = (node.name, tuple(v.name for v in (*node.inputs, *node.keys)))
                    if mark in seen:
                        self.body.repeated.add(mark)
                    seen.add(mark)

    # ---- one statement

    def _statement(self, statement: ast.Assign) -> None:
        self._mark(statement)
        body, store = self.body, self.stores.map(statement.target.name)
        reads_itself = statement.target.name in maps_read(statement.expression)
        ranges = any(v.name not in self.parameters for v in statement.target.inputs)
        if reads_itself or ranges or store.keeps or has_initial(statement):
            self._staged(statement, store)
        else:
            if statement.op == ":=":
                self._forget(statement, store)
            for term in _terms(statement.expression):
                with body.inner(), body.adding_to(store.ring):
                    body.join(term)
                    self._add(statement, store)
        body.forget_look_ups(store)

    def _staged(self, statement: ast.Assign, store: Store) -> None:
        """Compute all, then store all."""
        body = self.body
        scratch = self.stores.scratch(store.key_kinds, store.ring)
        self.code.emit(o.CLEAR, scratch.address)
        with body.inner():
            body.bind_inputs(store, statement.target)
            for term in _terms(statement.expression):
                with body.inner(), body.adding_to(store.ring):
                    body.join(term)
                    self._add(statement, scratch)
        if statement.op == ":=":
            self._forget(statement, store)
        with body.adding_to(store.ring):
            body.move(scratch, store, statement.target, statement.op == "+=")

    def _forget(self, statement: ast.Assign, store: Store) -> None:
        """Empty the part of the target that `:=` replaces: what agrees with its bound keys."""
        body = self.body
        keys = (*statement.target.inputs, *statement.target.keys)
        bound = [v for v in keys if v.name in self.parameters]
        if not bound:
            self.code.emit(o.CLEAR, store.address)
        elif len(bound) == len(keys):
            columns = [body.key(v.name, k) for v, k in zip(keys, store.key_kinds, strict=True)]
            hashes = body.hashed(columns)
            self.code.emit(o.FORGET, body.frame.word, store.address, hashes, len(columns), *columns)
        else:
            with body.inner():
                others = (v if v in bound else replace(v, name=f"key {j}") for j, v in enumerate(keys))
                slots = body.expand_slots(store, tuple(others))
                self.code.emit(o.ERASE, body.frame.word, store.address, slots)

    def _add(self, statement: ast.Assign, store: Store) -> None:
        keys = (*statement.target.inputs, *statement.target.keys)
        columns = [self.body.key(v.name, k) for v, k in zip(keys, store.key_kinds, strict=True)]
        self.body.accumulate(store, columns)

    def _mark(self, statement: ast.Assign) -> None:
        self.spans.append((len(self.code.words), statement))
