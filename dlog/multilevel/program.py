"""Owns definitions -> an M3 program that maintains them, with a report of its maps.

Each result is a map.  For each event its delta is divided into maps (`materialise`), which are maintained
in the same way, until deltas read no relation.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from dlog.garbage import seldom_collected
from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import BATCH, DBTOASTER, DELETE, INSERT, READY, TypeRef
from dlog.m3.types.typecheck import check
from dlog.m3.types.typing import INTEGERS
from dlog.multilevel import initial as first
from dlog.multilevel.costs import REPLACE, UPDATE
from dlog.multilevel.decompose import MONOMIALS, TooManyMonomials
from dlog.multilevel.deltas import Event
from dlog.multilevel.demote import IsStored
from dlog.multilevel.maps import StoredMap, TooManyMaps
from dlog.multilevel.names import apart, fresh, m3_form, plain, rename, replaced
from dlog.multilevel.order import Staged, ordered, staged
from dlog.multilevel.order import reads as maps_read
from dlog.multilevel.ranges import bounds
from dlog.multilevel.simplify import TooManyRewrites
from dlog.multilevel.typed import column_types, value_type
from dlog.multilevel.universe import Change, Refused, Universe, all_but
from dlog.multilevel.values import factors_of, is_zero, plus, terms_of, times

T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """How large a program may become."""

    maps: int = 64
    statements: int = 512
    rewrites: int = 100_000


LIMITS = Limits()


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
    limits: Limits = LIMITS,
    demoted: Container[Node] = (),
) -> Program | Refusal:
    """The program whose maps, named as the definitions, always contain what these say.

    `depth`: how many deltas of deltas are maintained; 1 has maps of the relations alone, which is what
    classical incremental maintenance stores, 0 computes every result again after each event.  `inputs`: maps
    may have input variables, as in ML; else such values restrict what is read of a map. `batch`: triggers for
    batches, else for single rows.  `demoted`: definitions that are not stored, if there is something smaller
    to read instead.  Raises the errors of M3's checker.

    >>> from dlog.multilevel.notation import read
    >>> number = TypeRef("int")
    >>> columns = tuple(ast.Column(c, number) for c in "ab")
    >>> definition = read("AggSum([b], R(a, b) * a)")
    >>> found = compile({"q": definition}, [ast.Source(ast.STREAM, "R", columns)])
    >>> [(m.name, m.initial.reason) for m in found.maps]
    [('q', 'every product has a row of a stream')]
    """

    def written() -> Program:
        universe = universe_of(definitions, sources, depth, inputs, batch, limits)
        return write(universe, all_but(demoted), limits)

    return or_refusal(written, limits)


def universe_of(
    definitions: Mapping[str, Node],
    sources: Iterable[ast.Source],
    depth: int | None,
    inputs: bool,
    batch: bool,
    limits: Limits,
) -> Universe:
    universe = Universe(tuple(sources), depth, inputs, batch, limits.maps, limits.rewrites)
    universe.reserve(frozenset(definitions) | universe.sources.keys())
    for name, definition in definitions.items():
        universe.result(name, definition)
    return universe


def or_refusal(make: Callable[[], T], limits: Limits) -> T | Refusal:
    """What is made, or why it cannot be."""
    try:
        return make()
    except TooManyMaps:
        return Refusal(f"it needs more than {limits.maps} maps")
    except TooManyStatements:
        return Refusal(f"it needs more than {limits.statements} statements")
    except TooManyRewrites:
        return Refusal(f"its deltas are not simple after {limits.rewrites:,} rewrites")
    except TooManyMonomials:
        return Refusal(f"it is a sum of more than {MONOMIALS:,} products")
    except Refused as refused:
        return Refusal(str(refused))


def write(universe: Universe, is_stored: IsStored, limits: Limits) -> Program:
    """The program of the maps that are stored.  Raises what `or_refusal` expects."""
    return _Writer(universe, is_stored, limits).program()


class TooManyStatements(Exception):
    """The limit is reached."""


class _Writer:
    """Collects the maps that results need, with their statements."""

    def __init__(self, universe: Universe, is_stored: IsStored, limits: Limits):
        self.universe, self.is_stored, self.limits = universe, is_stored, limits
        self.catalogue = universe.catalogue
        self.steps: dict[str, list[Step]] = {}  # of the maps that are stored
        self.scratch: dict[str, tuple[str, list[int]]] = {}  # of a staged statement -> its target, which keys

    def program(self) -> Program:
        """Maps enter as they are found to be read: what nothing reads is not stored."""
        results = [entry for entry in self.catalogue if entry.level == 0]
        waiting = list(results)
        while waiting:
            for entry in waiting:
                self._maintain(entry)
            rights = [s.statement.expression for steps in self.steps.values() for s in steps if s.event]
            waiting = [e for e in self._in_order(self.universe.reached(rights)) if e.name not in self.steps]
        return self._written(tuple(entry.name for entry in results))

    def _in_order(self, entries: Iterable[StoredMap]) -> list[StoredMap]:
        names = {entry.name for entry in entries}
        return [entry for entry in self.catalogue if entry.name in names]

    @property
    def stored(self) -> list[StoredMap]:
        return [entry for entry in self.catalogue if entry.name in self.steps]

    # ---- statements

    def _maintain(self, entry: StoredMap) -> None:
        """The statements of a map, for all events."""
        self.steps[entry.name] = steps = []
        for change in self.universe.changes(entry):
            step = self._step(change)
            steps.extend([step] if step is not None else [])
        if sum(map(len, self.steps.values())) > self.limits.statements:
            raise TooManyStatements
        start = self.universe.initial(entry)
        if isinstance(start, first.AtReady):
            statement = ast.Assign(entry.access(), REPLACE, m3_form(start.expression))
            steps.append(Step(None, statement, start.reason))

    def _step(self, change: Change) -> Step | None:
        target, right = change.target, self.universe.right_side(change, self.is_stored)
        if is_zero(right):
            return None
        if change.way.op == UPDATE:
            target, right = with_parameters(target, right, change.event)
        statement = ast.Assign(target, change.way.op, m3_form(right, change.scope))
        return Step(change.event, statement, change.way.reason)

    # ---- the program

    def _written(self, results: tuple[str, ...]) -> Program:
        universe = self.universe
        triggers = [self._ready(), *map(self._trigger, universe.events)]
        maps = [self._declared(entry) for entry in self.stored]
        maps += [self._declared(entry) for event in universe.events for entry in self._batch_maps(event)]
        maps += self._scratch(maps)
        types = {m.name: m.type for m in maps if m.type is not None}
        queries = [ast.Query(name, self.catalogue.maps[name].access()) for name in results]
        program = ast.Program(
            DBTOASTER,
            (),
            tuple(universe.given),
            tuple(maps),
            tuple(queries),
            tuple(t for t in triggers if t.statements),
        )
        return Program(with_bounds(_with_types(program, types)), tuple(map(self._report, self.stored)))

    def _declared(self, entry: StoredMap) -> ast.MapDeclaration:
        sources = self.universe.sources
        types = self.universe.columns.get(entry.name) or column_types(entry.definition, sources)
        inputs, keys = (tuple(ast.Column(n, types[n]) for n in part) for part in (entry.inputs, entry.keys))
        type_ = value_type(entry.definition, sources)
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
        sets = [ast.Assign(e.access(), REPLACE, m3_form(e.definition)) for e in self._batch_maps(event)]
        statements = ordered(sets, steps, lambda s: self._staged(s, event))
        kind = {0: BATCH, 1: INSERT, -1: DELETE}[event.sign]
        parameters = tuple(map(ast.Variable, event.parameters))
        return ast.Trigger(kind, event.relation, parameters, tuple(statements))

    def _batch_maps(self, event: Event) -> list[StoredMap]:
        """The maps of a batch that statements read."""
        steps = [s.statement for steps in self.steps.values() for s in steps if s.event == event]
        names = frozenset().union(*map(maps_read, steps))
        return [entry for entry in self.universe.batches[event] if entry.name in names]

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
        start = self.universe.initial(entry)
        own = (entry.name,) if entry.level == 0 and entry.name not in readers else ()
        return MapReport(
            entry.name, entry.inputs, entry.keys, entry.definition, entry.level, start,
            tuple(self.steps[entry.name]), (*own, *readers),
        )  # fmt: skip


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
