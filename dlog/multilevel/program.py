"""Owns definitions -> an M3 program that maintains them, with a report of its maps.

Each result is a map.  For each event its delta is divided into maps (`materialise`), which are maintained
in the same way, until deltas read no relation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dlog.garbage import seldom_collected
from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import BATCH, DBTOASTER, DELETE, INSERT, READY, STREAM, TypeRef
from dlog.m3.types.typecheck import check
from dlog.m3.types.typing import INTEGERS
from dlog.multilevel import initial as first
from dlog.multilevel.binding import NONE, binding, reads
from dlog.multilevel.binding import inputs as needed
from dlog.multilevel.costs import REPLACE, UPDATE, Way, way
from dlog.multilevel.decompose import MONOMIALS, TooManyMonomials
from dlog.multilevel.deltas import Event, delta
from dlog.multilevel.lifts import lifted
from dlog.multilevel.maps import Catalogue, StoredMap, TooManyMaps
from dlog.multilevel.materialise import Materialiser
from dlog.multilevel.names import apart, fresh, m3_form, mentioned, plain, rename, replaced
from dlog.multilevel.order import Staged, ordered, staged
from dlog.multilevel.order import reads as maps_read
from dlog.multilevel.ranges import bounds
from dlog.multilevel.simplify import Budget, TooManyRewrites, everywhere, simplify
from dlog.multilevel.typed import column_types, sums_floats, value_type
from dlog.multilevel.values import factors_of, is_zero, plus, terms_of, times


@dataclass(frozen=True)
class Limits:
    """How large a program may become."""

    maps: int = 64
    statements: int = 512
    rewrites: int = 100_000


@dataclass(frozen=True)
class Refusal:
    """There is no program, and why."""

    reason: str


@dataclass(frozen=True)
class Step:
    """A statement, the event it belongs to (None: when all tables are loaded), and why it is += or :=."""

    event: Event | None
    statement: ast.Assign
    reason: str


@dataclass(frozen=True)
class MapReport:
    """What `explain` says about a map.  `readers`: maps whose statements read it, and itself if it is a
    result.
    """

    name: str
    inputs: tuple[str, ...]
    keys: tuple[str, ...]
    definition: Node
    level: int
    initial: first.Initial
    steps: tuple[Step, ...]
    readers: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    m3: ast.Program
    maps: tuple[MapReport, ...]

    def map(self, name: str) -> MapReport:
        return next(m for m in self.maps if m.name == name)


@seldom_collected
def compile(
    definitions: Mapping[str, Node],
    sources: Iterable[ast.Source],
    *,
    depth: int | None = None,
    inputs: bool = False,
    batch: bool = True,
    limits: Limits = Limits(),
) -> Program | Refusal:
    """The program whose maps, named as the definitions, always contain what these say.

    `depth`: how many deltas of deltas are maintained; 1 has maps of the relations alone, which is what
    classical incremental maintenance stores, 0 computes every result again after each event.  `inputs`: maps
    may have input variables, as in ML; else such values restrict what is read of a map. `batch`: triggers for
    batches, else for single rows.  Raises the errors of M3's checker.

    >>> from dlog.multilevel.notation import read
    >>> number = TypeRef("int")
    >>> columns = tuple(ast.Column(c, number) for c in "ab")
    >>> definition = read("AggSum([b], R(a, b) * a)")
    >>> found = compile({"q": definition}, [ast.Source(STREAM, "R", columns)])
    >>> [(m.name, m.initial.reason) for m in found.maps]
    [('q', 'every product has a row of a stream')]
    """
    compiler = _Compiler(tuple(sources), depth, inputs, batch, limits)
    try:
        return compiler.program(definitions)
    except TooManyMaps:
        return Refusal(f"it needs more than {limits.maps} maps")
    except TooManyStatements:
        return Refusal(f"it needs more than {limits.statements} statements")
    except TooManyRewrites:
        return Refusal(f"its deltas are not simple after {limits.rewrites:,} rewrites")
    except TooManyMonomials:
        return Refusal(f"it is a sum of more than {MONOMIALS:,} products")
    except _Refused as refused:
        return Refusal(str(refused))


class TooManyStatements(Exception):
    """The limit is reached."""


class _Refused(Exception):
    """With the reason."""


@dataclass
class _Compiler:
    given: tuple[ast.Source, ...]
    depth: int | None
    inputs: bool
    batch: bool
    limits: Limits
    catalogue: Catalogue = field(init=False)
    budget: Budget = field(init=False)
    sources: dict[str, ast.Source] = field(init=False)

    def __post_init__(self) -> None:
        self.sources = {s.name: s for s in self.given}
        self.catalogue = Catalogue(self.limits.maps)
        self.budget = Budget(self.limits.rewrites)
        self.events = [e for s in self.given if s.kind == STREAM for e in self._events(s)]
        self.batches = {e: Catalogue(self.limits.maps, f"DELTA_{e.relation}_") for e in self.events}
        self.steps: dict[str, list[Step]] = {}
        self.columns: dict[str, dict[str, TypeRef]] = {}  # types of the keys of results
        self.scratch: dict[str, tuple[str, list[int]]] = {}  # of a staged statement -> its target, which keys

    def _events(self, source: ast.Source) -> list[Event]:
        if self.batch:
            return [Event(source.name)]
        names = tuple(c.name for c in source.columns)
        return [Event(source.name, sign, names) for sign in (1, -1)]

    def program(self, definitions: Mapping[str, Node]) -> Program:
        taken = frozenset(definitions) | self.sources.keys()
        for catalogue in (self.catalogue, *self.batches.values()):
            catalogue.taken = taken
        for name, definition in definitions.items():
            self._result(name, definition)
        done: set[str] = set()
        while waiting := [entry for entry in self.catalogue if entry.name not in done]:
            for entry in waiting:
                self._maintain(entry)
                done.add(entry.name)
        return self._written(tuple(definitions))

    def _result(self, name: str, definition: Node) -> None:
        """A definition becomes a map, in simple form."""
        node = everywhere(plain(definition), NONE, _plain_domain, self.budget)
        self.columns[name] = column_types(definition, self.sources)
        node = simplify(everywhere(node, NONE, lifted, self.budget), NONE, self.budget)
        found = first.initial(node, self.sources)
        if isinstance(found, first.Refused):
            raise _Refused(f"{name}: {found.reason}")
        self.catalogue.add(name, node, 0, binding(definition).outputs, shared=self.depth != 0)

    # ---- statements

    def _maintain(self, entry: StoredMap) -> None:
        """The statements of a map, for all events; maps that they read enter the catalogue."""
        self.steps[entry.name] = steps = []
        for event in self.events:
            if reads(entry.definition, event.relation):
                step = self._step(entry, event)
                steps.extend([step] if step is not None else [])
        if sum(map(len, self.steps.values())) > self.limits.statements:
            raise TooManyStatements
        start = self._initial(entry)
        if isinstance(start, first.AtReady):
            statement = ast.Assign(entry.access(), REPLACE, m3_form(start.expression))
            steps.append(Step(None, statement, start.reason))

    def _initial(self, entry: StoredMap) -> first.Initial:
        return first.initial(entry.definition, self.sources, self.inputs)

    def _step(self, entry: StoredMap, event: Event) -> Step | None:
        """The statement of a map for an event.  Its keys are called unlike the parameters."""
        used = event.scope | mentioned(entry.definition)
        names = {k: fresh(k, used) for k in (*entry.inputs, *entry.keys) if k in event.scope}
        definition, target = rename(entry.definition, names), entry.access(names)
        found = self._way(entry, definition, event)
        change = definition if found.op == REPLACE else delta(definition, event, self.budget)
        scope = event.scope | needed(definition)
        right = self._materialiser(entry, event).statement(change, scope)
        if is_zero(right):
            return None
        if found.op == UPDATE:
            target, right = with_parameters(target, right, event)
        return Step(event, ast.Assign(target, found.op, m3_form(right, scope)), found.reason)

    def _way(self, entry: StoredMap, definition: Node, event: Event) -> Way:
        if self.depth == 0 and entry.level == 0:
            return Way(REPLACE, "depth 0 computes results again")
        floats = lambda body: sums_floats(body, self.sources)  # noqa: E731
        return way(definition, event, floats, self.budget)

    def _materialiser(self, entry: StoredMap, event: Event) -> Materialiser:
        base = self.depth is not None and entry.level + 1 >= self.depth
        with_inputs = self.inputs and not base
        return Materialiser(
            self.catalogue, self.batches[event], entry.level + 1, base, self.budget, with_inputs
        )

    # ---- the program

    def _written(self, results: tuple[str, ...]) -> Program:
        triggers = [self._ready(), *map(self._trigger, self.events)]
        maps = [self._declared(entry) for entry in self.catalogue]
        maps += [self._declared(entry) for c in self.batches.values() for entry in c]
        maps += self._scratch(maps)
        types = {m.name: m.type for m in maps if m.type is not None}
        queries = [ast.Query(name, self.catalogue.maps[name].access()) for name in results]
        program = ast.Program(
            DBTOASTER, (), self.given, tuple(maps), tuple(queries), tuple(t for t in triggers if t.statements)
        )
        return Program(with_bounds(_with_types(program, types)), tuple(map(self._report, self.catalogue)))

    def _declared(self, entry: StoredMap) -> ast.MapDeclaration:
        types = self.columns.get(entry.name) or column_types(entry.definition, self.sources)
        inputs, keys = (tuple(ast.Column(n, types[n]) for n in part) for part in (entry.inputs, entry.keys))
        type_ = value_type(entry.definition, self.sources)
        return ast.MapDeclaration(entry.name, type_, inputs, keys, apart(entry.definition))

    def _scratch(self, maps: list[ast.MapDeclaration]) -> list[ast.MapDeclaration]:
        """A staged statement's map is like its target, with the keys that are not parameters."""
        declared = {m.name: m for m in maps}
        found = []
        for name, (target, places) in self.scratch.items():
            like = declared[target]
            keys = tuple(like.keys[i] for i in places)
            found.append(ast.MapDeclaration(name, like.type, (), keys, None))
        return found

    def _ready(self) -> ast.Trigger:
        steps = [s.statement for steps in self.steps.values() for s in steps if s.event is None]
        return ast.Trigger(READY, None, (), tuple(steps))

    def _trigger(self, event: Event) -> ast.Trigger:
        steps = [s.statement for steps in self.steps.values() for s in steps if s.event == event]
        sets = [ast.Assign(e.access(), REPLACE, m3_form(e.definition)) for e in self.batches[event]]
        statements = ordered(sets, steps, lambda s: self._staged(s, event))
        kind = {0: BATCH, 1: INSERT, -1: DELETE}[event.sign]
        parameters = tuple(map(ast.Variable, event.parameters))
        return ast.Trigger(kind, event.relation, parameters, tuple(statements))

    def _staged(self, statement: ast.Assign, event: Event) -> Staged:
        name = fresh(f"STAGED_{len(self.scratch) + 1}", (*self.catalogue.maps, *self.catalogue.taken))
        found = staged(statement, name, event.scope)
        places = [statement.target.keys.index(v) for v in found.compute.target.keys]
        self.scratch[name] = (statement.target.name, places)
        return found

    def _report(self, entry: StoredMap) -> MapReport:
        readers = tuple(
            name
            for name, steps in self.steps.items()
            if any(s.event is not None and entry.name in maps_read(s.statement) for s in steps)
        )
        start = self._initial(entry)
        own = (entry.name,) if entry.level == 0 and entry.name not in readers else ()
        return MapReport(
            entry.name, entry.inputs, entry.keys, entry.definition, entry.level, start,
            tuple(self.steps[entry.name]), (*own, *readers),
        )  # fmt: skip


def _plain_domain(node: Node, scope: frozenset[str]) -> Node:
    """In a definition DOMAIN is EXISTS."""
    return ast.Exists(node.body) if isinstance(node, ast.Domain) else node


def with_parameters(target: ast.MapAccess, right: Node, event: Event) -> tuple[ast.MapAccess, Node]:
    """A key that each term sets to the same parameter is written as that parameter."""
    terms = [list(factors_of(t)) for t in terms_of(right)]
    for key in target.keys:
        for name in event.parameters:
            lift = ast.Lift(ast.Variable(key.name), ast.Variable(name))
            if all(lift in term for term in terms):
                terms = [[rename(f, {key.name: name}) for f in t if f != lift] for t in terms]
                target = rename(target, {key.name: name})  # type: ignore[assignment]
                break
    return target, plus(times(t) for t in terms)


def with_bounds(program: ast.Program) -> ast.Program:
    """Comparisons of whole numbers are solved for the key that is read by range."""
    typed = check(program)

    def assign(node: ast.Assign | ast.If, scope: frozenset[str]) -> ast.Assign | ast.If:
        assert isinstance(node, ast.Assign)
        known = scope | {v.name for v in node.target.inputs}
        return replace(node, expression=bounds(node.expression, known, _is_whole))

    triggers = []
    for trigger in typed.triggers:
        scope = frozenset(p.name for p in trigger.parameters)
        statements = tuple(assign(s, scope) for s in trigger.statements)
        triggers.append(replace(trigger, statements=statements))
    return plain(replace(typed, triggers=tuple(triggers)))  # type: ignore[return-value]


def _is_whole(node: Node) -> bool:
    return (
        isinstance(node, ast.Variable | ast.MapAccess)
        and node.type is not None
        and node.type.name in INTEGERS
    )


def _with_types(node: Any, types: Mapping[str, TypeRef]) -> Any:
    """Each map access has the type of its map."""

    def change(child: Any) -> Any:
        if isinstance(child, ast.MapAccess):
            first_value = change(child.initial) if child.initial is not None else None
            return ast.MapAccess(child.name, types[child.name], child.inputs, child.keys, first_value)
        return replaced(child, change)

    return change(node)
