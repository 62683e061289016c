"""Random, well-typed M3 programs in both dialects, with streams of events for them.

Programs need not maintain anything sensible: they use every construct, and stay small in what they compute.
A map reads, for its values, only maps declared after it, so that values grow slowly; conditions read any.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import A5, DBTOASTER, TypeRef
from tests.oracle.m3_naive import Naive

INT, FLOAT, STRING, DATE = "int", "float", "string", "date"
Draw = Callable[[st.SearchStrategy], Any]

COLUMN_TYPES = {A5: {INT: "int", FLOAT: "float"}, DBTOASTER: {INT: "int", FLOAT: "double"}}
MAP_TYPES = {A5: {INT: "int", FLOAT: "float"}, DBTOASTER: {INT: "long", FLOAT: "double"}}

# Few values, so that rows meet; floats whose sums and products are exact.
VALUES: dict[str, st.SearchStrategy] = {
    INT: st.sampled_from([1, 0, 2, -1, 3]),
    FLOAT: st.sampled_from([-0.5, 0.0, 0.25, 1.0, 2.5]),
    STRING: st.sampled_from(["", "a", "b", "Ab c"]),
    DATE: st.sampled_from(
        [datetime.date(1995, 3, 15), datetime.date(1995, 12, 1), datetime.date(2001, 1, 31)]
    ),
}
KINDS = st.sampled_from([INT, INT, INT, FLOAT, STRING, DATE])


@dataclass(frozen=True)
class Event:
    """`kind` as of triggers; `rows` with their multiplicities."""

    kind: str
    relation: str
    rows: tuple[tuple[tuple[Any, ...], int], ...]


@dataclass(frozen=True)
class Case:
    """A program, the rows of its tables, and what happens to it."""

    program: ast.Program
    tables: dict[str, list[tuple[Any, ...]]]
    events: tuple[Event, ...]


def run_naive(case: Case, after_each: Callable[[Naive], None] = lambda _: None) -> Naive:
    """The oracle after all events."""
    oracle = Naive(case.program, case.tables)
    oracle.ready()
    after_each(oracle)
    for event in case.events:
        if event.kind == ast.BATCH:
            oracle.batch(event.relation, event.rows)
        else:
            ((row, _),) = event.rows
            (oracle.insert if event.kind == ast.INSERT else oracle.delete)(event.relation, row)
        after_each(oracle)
    return oracle


def cases(dialect: str | None = None, batch: bool | None = None) -> st.SearchStrategy[Case]:
    return _cases(dialect, batch)


@st.composite
def _cases(draw: Draw, dialect: str | None, batch: bool | None) -> Case:
    dialect = dialect or draw(st.sampled_from(ast.DIALECTS))
    batch = (dialect == DBTOASTER and draw(st.booleans())) if batch is None else batch
    maker = _Maker(draw, dialect, batch)
    program = maker.program()
    tables = {s.name: maker.table_rows(s) for s in program.sources if s.kind == ast.TABLE}
    return Case(program, tables, maker.events(program))


@dataclass
class _Scope:
    """Kinds of the bound variables; `level` is the index of the map whose value is made."""

    kinds: dict[str, str]
    level: int = 0
    relation: str | None = None  # of a batch
    depth: int = 0
    reads: int = 0

    def of_kind(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind in kinds]

    def inner(self) -> _Scope:
        return _Scope(dict(self.kinds), self.level, self.relation, self.depth + 1, self.reads)


@dataclass
class _Made:
    """An expression, what it binds, and the kind of its value."""

    node: ast.Node
    kind: str
    outputs: dict[str, str] = field(default_factory=dict)


class _Maker:
    def __init__(self, draw: Draw, dialect: str, batch: bool):
        self.draw, self.dialect, self.batch = draw, dialect, batch
        self.in_a5 = dialect == A5
        self.fresh = 0
        self.sources: list[ast.Source] = []
        self.maps: list[ast.MapDeclaration] = []
        self.map_kinds: list[tuple[str, list[str], int]] = []  # of the value, of inputs and keys, inputs

    # Declarations

    def program(self) -> ast.Program:
        for index in range(self.draw(st.integers(1, 2))):
            self.sources.append(self.source(ast.STREAM, f"R{index}"))
        if self.draw(st.booleans()):
            self.sources.append(self.source(ast.TABLE, "S"))
        for index in range(self.draw(st.integers(1, 3))):
            self.declare(index)
        triggers = tuple(t for s in self.sources if s.kind == ast.STREAM for t in self.triggers(s))
        ready = (ast.Trigger(ast.READY, None, (), self.statements(_Scope({}), 2)),)
        queries = tuple(self.query(index) for index in range(len(self.maps)))
        return ast.Program(self.dialect, (), tuple(self.sources), tuple(self.maps), queries, triggers + ready)

    def source(self, kind: str, name: str) -> ast.Source:
        kinds = self.draw(st.lists(KINDS, min_size=1, max_size=3))
        columns = tuple(
            ast.Column(f"{name}_{'abc'[i]}".lower(), self.column_type(k)) for i, k in enumerate(kinds)
        )
        return ast.Source(kind, name, columns)

    def declare(self, index: int) -> None:
        value = self.draw(st.sampled_from([INT, FLOAT]))
        kinds = self.draw(st.lists(KINDS, max_size=3))
        inputs = 1 if self.in_a5 and kinds and self.draw(st.integers(0, 5)) == 3 else 0
        keys = [ast.Column(f"k{i}", self.map_type(kind)) for i, kind in enumerate(kinds)]
        type_ = self.map_type(value)
        definition = ast.Constant("int", 0)
        self.maps.append(
            ast.MapDeclaration(f"M{index}", type_, tuple(keys[:inputs]), tuple(keys[inputs:]), definition)
        )
        self.map_kinds.append((value, kinds, inputs))

    def query(self, index: int) -> ast.Query:
        _, kinds, inputs = self.map_kinds[index]
        variables = tuple(self.variable(f"q{i}", kind) for i, kind in enumerate(kinds))
        if inputs:  # nothing binds an input variable of a query but a lift
            bound = [ast.Lift(v, self.constant(k)) for v, k in zip(variables[:inputs], kinds, strict=False)]
            access = ast.MapAccess(f"M{index}", self.maps[index].type, variables[:inputs], variables[inputs:])
            return ast.Query(f"Q{index}", ast.product([*bound, access]))
        access = ast.MapAccess(f"M{index}", self.maps[index].type, (), variables)
        if variables and self.draw(st.integers(0, 4)) == 3:
            return ast.Query(f"Q{index}", ast.AggSum(variables[:1], access))
        return ast.Query(f"Q{index}", access)

    def triggers(self, source: ast.Source) -> list[ast.Trigger]:
        if self.batch:
            scope = _Scope({}, relation=source.name)
            return [ast.Trigger(ast.BATCH, source.name, (), self.statements(scope, 3))]
        kinds = {c.name: self.kind_of(c.type) for c in source.columns}
        parameters = tuple(self.variable(name, kind) for name, kind in kinds.items())
        return [
            ast.Trigger(event, source.name, parameters, self.statements(_Scope(dict(kinds)), 3))
            for event in (ast.INSERT, ast.DELETE)
        ]

    # Statements

    def statements(self, scope: _Scope, most: int) -> tuple[Any, ...]:
        number = self.draw(st.integers(0 if most < 3 else 1, most))
        return tuple(self.statement(scope.inner()) for _ in range(number))

    def statement(self, scope: _Scope) -> ast.Assign | ast.If:
        scope.depth = 0
        if not self.in_a5 and self.draw(st.integers(0, 9)) == 7:
            condition = self.comparison(scope.inner()).node
            assert isinstance(condition, ast.Comparison)
            then = (self.assign(scope.inner()),)
            return ast.If(condition, then, (self.assign(scope.inner()),) if self.draw(st.booleans()) else ())
        return self.assign(scope)

    def assign(self, scope: _Scope) -> ast.Assign:
        index = self.draw(st.integers(0, len(self.maps) - 1))
        value, kinds, inputs = self.map_kinds[index]
        names = [self.target_input(scope, kind) for kind in kinds[:inputs]]
        parameters = dict(scope.kinds)
        scope.level, scope.depth = index, 0
        made = self.product(scope, 3)
        factors = [made.node]
        for kind in kinds[inputs:]:
            candidates = [name for name, k in {**parameters, **made.outputs}.items() if k == kind]
            if not candidates:
                name = self.fresh_name()
                factors.append(ast.Lift(self.variable(name, kind), self.constant(kind)))
                made.outputs[name] = kind
                candidates = [name]
            names.append(self.draw(st.sampled_from(candidates)))
        expression = self.as_kind(ast.product(factors), made.kind, value)
        variables = tuple(self.variable(n, k) for n, k in zip(names, kinds, strict=True))
        extra = [n for n in made.outputs if n not in names]
        if extra and (self.in_a5 or self.draw(st.integers(0, 3)) != 2):
            kept = tuple(v for v in dict.fromkeys(variables) if v.name in made.outputs)
            expression = ast.AggSum(kept, expression)
        initial = self.initial(index, {**parameters, **dict(zip(names, kinds, strict=True))}, scope)
        target = ast.MapAccess(
            f"M{index}", self.maps[index].type, variables[:inputs], variables[inputs:], initial
        )
        return ast.Assign(target, self.draw(st.sampled_from(["+=", "+=", "+=", ":="])), expression)

    def target_input(self, scope: _Scope, kind: str) -> str:
        """A parameter, or a variable that ranges over each input that the map has."""
        candidates = scope.of_kind(kind)
        if candidates and self.draw(st.booleans()):
            return self.draw(st.sampled_from(candidates))
        name = self.fresh_name()
        scope.kinds[name] = kind
        return name

    def initial(self, index: int, kinds: dict[str, str], scope: _Scope) -> ast.Node | None:
        if self.draw(st.integers(0, 5)) != 3:
            return None
        if self.draw(st.booleans()):
            return ast.Constant("int", self.draw(st.integers(0, 2)))
        inner = _Scope(kinds, index, scope.relation, 1)
        made = self.product(inner, 2)
        value = self.map_kinds[index][0]
        return self.as_kind(ast.AggSum((), made.node), made.kind, value)

    # Expressions

    def product(self, scope: _Scope, most: int) -> _Made:
        """A product; what its factors bind is bound in those after them, and in `scope` after it."""
        outputs: dict[str, str] = {}
        factors: list[ast.Node] = []
        kind = INT
        for _ in range(self.draw(st.integers(1, most))):
            made = self.factor(scope)
            factors.append(made.node)
            outputs |= made.outputs
            scope.kinds.update(made.outputs)
            kind = FLOAT if FLOAT in (kind, made.kind) else INT
        return _Made(ast.product(factors), kind, outputs)

    def factor(self, scope: _Scope) -> _Made:
        choices = [self.number, self.comparison, self.member, self.lift, self.call]
        if scope.reads < 3:
            choices += [self.rows, self.rows, self.rows]
        if scope.depth < 2:
            choices += [self.exists, self.aggregate, self.sum_of_scalars, self.sum_of_rows]
        return self.draw(st.sampled_from(choices))(scope)

    def rows(self, scope: _Scope) -> _Made:
        """A map, a table or the batch, over bound and new variables."""
        readable: list[Any] = list(range(scope.level + 1, len(self.maps)))
        readable += [s for s in self.sources if s.kind == ast.TABLE]
        if scope.relation is not None:
            readable += [scope.relation] * 2
        if not readable:
            return self.number(scope)
        scope.reads += 1
        chosen = self.draw(st.sampled_from(readable))
        if isinstance(chosen, int):
            return self.read_map(scope, chosen)
        source = (
            chosen if isinstance(chosen, ast.Source) else next(s for s in self.sources if s.name == chosen)
        )
        variables, outputs = self.variables(scope, [self.kind_of(c.type) for c in source.columns])
        node = ast.Relation if isinstance(chosen, ast.Source) else ast.DeltaRelation
        return _Made(node(source.name, variables), INT, outputs)

    def read_map(self, scope: _Scope, index: int) -> _Made:
        value, kinds, inputs = self.map_kinds[index]
        if any(not scope.of_kind(kind) for kind in kinds[:inputs]):
            return self.number(scope)
        names = [self.draw(st.sampled_from(scope.of_kind(kind))) for kind in kinds[:inputs]]
        bound = tuple(self.variable(n, k) for n, k in zip(names, kinds, strict=False))
        variables, outputs = self.variables(scope, kinds[inputs:])
        initial = None
        if self.in_a5 and not outputs and self.draw(st.integers(0, 6)) == 4:
            initial = ast.Constant("int", self.draw(st.integers(0, 2)))
        type_ = self.maps[index].type if self.draw(st.booleans()) or self.in_a5 else None
        return _Made(ast.MapAccess(f"M{index}", type_, bound, variables, initial), value, outputs)

    def variables(self, scope: _Scope, kinds: list[str]) -> tuple[tuple[ast.Variable, ...], dict[str, str]]:
        outputs: dict[str, str] = {}
        found = []
        for kind in kinds:
            known = scope.of_kind(kind) + [n for n, k in outputs.items() if k == kind]
            if known and self.draw(st.booleans()):
                name = self.draw(st.sampled_from(known))
            else:
                name = self.fresh_name()
                outputs[name] = kind
            found.append(self.variable(name, kind))
        return tuple(found), outputs

    def number(self, scope: _Scope) -> _Made:
        numbers = scope.of_kind(INT, FLOAT)
        if numbers and self.draw(st.booleans()):
            name = self.draw(st.sampled_from(numbers))
            return _Made(self.variable(name, scope.kinds[name]), scope.kinds[name])
        kind = self.draw(st.sampled_from([INT, INT, FLOAT]))
        return _Made(self.constant(kind), kind)

    def value(self, scope: _Scope, kinds: tuple[str, ...]) -> _Made:
        """What a comparison takes: in a5 no maps."""
        kind = self.draw(st.sampled_from(kinds))
        names = scope.of_kind(kind)
        if kind in (INT, FLOAT):
            if not self.in_a5 and scope.depth < 2 and self.draw(st.integers(0, 2)) == 1:
                return self.scalar_sum(scope)
            if scope.depth < 2 and self.draw(st.integers(0, 3)) == 2:
                left, right = self.number(scope), self.number(scope)
                mixed = FLOAT if FLOAT in (left.kind, right.kind) else INT
                make = ast.total if self.draw(st.booleans()) else ast.product
                return _Made(make([left.node, right.node]), mixed)
        if names and self.draw(st.integers(0, 3)) != 2:
            return _Made(self.variable(self.draw(st.sampled_from(names)), kind), kind)
        return _Made(self.constant(kind), kind)

    def scalar_sum(self, scope: _Scope) -> _Made:
        """A nested aggregate; in a condition it may read any map."""
        inner = scope.inner()
        inner.reads = min(inner.reads, 2)
        made = self.product(inner, 2)
        return _Made(ast.AggSum((), made.node), made.kind)

    def comparison(self, scope: _Scope) -> _Made:
        kinds = self.draw(st.sampled_from([(INT, FLOAT), (INT,), (STRING,), (DATE,)]))
        op = self.draw(st.sampled_from(ast.COMPARISONS))
        left, right = self.value(scope, kinds), self.value(scope, kinds)
        return _Made(ast.Comparison(op, left.node, right.node), INT)

    def member(self, scope: _Scope) -> _Made:
        kind = self.draw(KINDS)
        operand = self.value(scope, (kind,))
        numbers = self.draw(st.integers(0, 3))
        return _Made(ast.In(operand.node, tuple(self.constant(operand.kind) for _ in range(numbers))), INT)

    def lift(self, scope: _Scope) -> _Made:
        body = self.scalar_sum(scope) if scope.depth < 2 and self.draw(st.booleans()) else None
        if body is None:
            body = self.value(scope, (self.draw(KINDS),))
        known = scope.of_kind(body.kind)
        if known and self.draw(st.integers(0, 3)) == 2:
            name = self.draw(st.sampled_from(known))
            return _Made(ast.Lift(self.variable(name, body.kind), body.node), INT)
        name = self.fresh_name()
        return _Made(ast.Lift(self.variable(name, body.kind), body.node), INT, {name: body.kind})

    def exists(self, scope: _Scope) -> _Made:
        inner = scope.inner()
        inner.level = -1  # only whether something is there: any map may be read
        made = self.rows(inner) if self.draw(st.booleans()) else self.product(inner, 2)
        kept = dict(made.outputs)
        node = made.node
        if kept and self.draw(st.booleans()):
            keep = [n for n in kept if self.draw(st.booleans())]
            node = ast.AggSum(tuple(self.variable(n, kept[n]) for n in keep), node)
            kept = {n: kept[n] for n in keep}
        kind = self.draw(st.sampled_from([ast.Exists, ast.Domain]))
        return _Made(kind(node), INT, kept)

    def aggregate(self, scope: _Scope) -> _Made:
        made = self.product(scope.inner(), 3)
        keep = [n for n in made.outputs if self.draw(st.booleans())]
        bound = [n for n in scope.kinds if self.draw(st.integers(0, 9)) == 7]
        kinds = {**scope.kinds, **made.outputs}
        keys = tuple(self.variable(n, kinds[n]) for n in [*keep, *bound])
        return _Made(ast.AggSum(keys, made.node), made.kind, {n: made.outputs[n] for n in keep})

    def sum_of_scalars(self, scope: _Scope) -> _Made:
        made = [self.scalar_sum(scope) if self.draw(st.booleans()) else self.number(scope) for _ in "ab"]
        kind = FLOAT if any(m.kind == FLOAT for m in made) else INT
        return _Made(ast.total([m.node for m in made]), kind)

    def sum_of_rows(self, scope: _Scope) -> _Made:
        """The same rows twice, with different factors: the terms of a sum bind the same variables."""
        first = self.rows(scope.inner())
        inner = scope.inner()
        inner.kinds.update(first.outputs)
        factor = self.number(inner)
        kind = FLOAT if FLOAT in (first.kind, factor.kind) else INT
        return _Made(ast.total([first.node, ast.product([first.node, factor.node])]), kind, first.outputs)

    def call(self, scope: _Scope) -> _Made:
        dates = scope.of_kind(DATE)
        which = self.draw(st.integers(0, 4))
        if which == 0 and dates:
            node = self.variable(self.draw(st.sampled_from(dates)), DATE)
            name = self.draw(st.sampled_from(["year_part", "month_part", "day_part"]))
            return _Made(ast.Call(name, self.map_type(INT), (node,)), INT)
        number = self.number(scope)
        if which == 1:
            halves = ast.Constant(
                self.column_type(FLOAT).name, self.draw(st.sampled_from([2.0, -4.0, 0.5, 0.0]))
            )
            return _Made(ast.Call("/", self.column_type(FLOAT), (halves,)), FLOAT)
        if which == 2:
            return _Made(ast.Call("abs", self.type_of(number.kind), (number.node,)), number.kind)
        other = self.number(scope)
        kind = FLOAT if FLOAT in (number.kind, other.kind) else INT
        name = self.draw(st.sampled_from(["listmax", "listmin"]))
        return _Made(ast.Call(name, self.type_of(kind), (number.node, other.node)), kind)

    # Small things

    def as_kind(self, node: ast.Node, kind: str, wanted: str) -> ast.Node:
        """A float does not fit into a map of ints: whether it is there does."""
        return ast.Exists(node) if kind == FLOAT and wanted == INT else node

    def fresh_name(self) -> str:
        self.fresh += 1
        return f"v{self.fresh}"

    def variable(self, name: str, kind: str) -> ast.Variable:
        return ast.Variable(name, TypeRef(kind) if self.in_a5 else None)

    def constant(self, kind: str) -> ast.Constant:
        value = self.draw(VALUES[kind])
        return ast.Constant(self.column_type(kind).name, value)

    def column_type(self, kind: str) -> TypeRef:
        return TypeRef(COLUMN_TYPES[self.dialect].get(kind, kind))

    def map_type(self, kind: str) -> TypeRef:
        return TypeRef(MAP_TYPES[self.dialect].get(kind, kind))

    type_of = map_type

    def kind_of(self, type_: TypeRef) -> str:
        return {"long": INT, "double": FLOAT}.get(type_.name, type_.name)

    # Data

    def table_rows(self, source: ast.Source) -> list[tuple[Any, ...]]:
        return self.draw(st.lists(self.row(source), max_size=4))

    def row(self, source: ast.Source) -> st.SearchStrategy:
        return st.tuples(*(VALUES[self.kind_of(c.type)] for c in source.columns))

    def events(self, program: ast.Program) -> tuple[Event, ...]:
        """Rows come, and mostly those that are there go."""
        streams = [s for s in program.sources if s.kind == ast.STREAM]
        there: dict[str, list[tuple[Any, ...]]] = {s.name: [] for s in streams}
        events = []
        for _ in range(self.draw(st.integers(1, 7))):
            source = self.draw(st.sampled_from(streams))
            number = self.draw(st.integers(1, 5)) if self.batch else 1
            rows = tuple(self.change(source, there[source.name]) for _ in range(number))
            if self.batch:
                events.append(Event(ast.BATCH, source.name, rows))
            else:
                events.append(Event(ast.INSERT if rows[0][1] > 0 else ast.DELETE, source.name, rows))
        return tuple(events)

    def change(self, source: ast.Source, there: list[tuple[Any, ...]]) -> tuple[tuple[Any, ...], int]:
        if there and self.draw(st.integers(0, 2)) == 1:
            return there.pop(self.draw(st.integers(0, len(there) - 1))), -1
        row = self.draw(self.row(source))
        there.append(row)
        return row, 1
