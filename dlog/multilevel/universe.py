"""Owns all definitions that a program could store as maps, and how each changes with each event.

Both are found when they are first needed, and once: a program stores some of these maps, and several programs
for the same results differ only in which.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import STREAM, TypeRef
from dlog.multilevel import initial as first
from dlog.multilevel.binding import NONE, Names, binding, reads
from dlog.multilevel.binding import inputs as needed
from dlog.multilevel.costs import REPLACE, Way, way
from dlog.multilevel.deltas import Event, delta
from dlog.multilevel.demote import Demotion, IsStored
from dlog.multilevel.lifts import lifted
from dlog.multilevel.maps import Catalogue, StoredMap
from dlog.multilevel.materialise import Materialiser, finished
from dlog.multilevel.names import fresh, mentioned, plain, rename
from dlog.multilevel.order import maps_in
from dlog.multilevel.simplify import Budget, everywhere, simplify
from dlog.multilevel.typed import column_types, sums_floats


class Refused(Exception):
    """There is no program, with the reason."""


@dataclass(frozen=True)
class Change:
    """What an event does to a map: `draft` is read from maps, not simplified, and perhaps from maps that are
    not stored.  `scope`: what the event binds.
    """

    event: Event
    target: ast.MapAccess
    way: Way
    draft: Node
    scope: Names


@dataclass
class Universe:
    """`depth`, `inputs` and `batch` are those of `program.compile`.  Raises TooManyMaps and
    TooManyRewrites.
    """

    given: Sequence[ast.Source]
    depth: int | None
    inputs: bool
    batch: bool
    maps: int
    rewrites: int
    columns: dict[str, dict[str, TypeRef]] = field(default_factory=dict)  # types of the keys of results
    _changes: dict[str, list[Change]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sources = {s.name: s for s in self.given}
        self.catalogue = Catalogue(self.maps)
        self.budget = Budget(self.rewrites)
        self.events = [e for s in self.given if s.kind == STREAM for e in self._events(s)]
        self.batches = {e: Catalogue(self.maps, f"DELTA_{e.relation}_") for e in self.events}
        self.demotion = Demotion(self.catalogue)

    def _events(self, source: ast.Source) -> list[Event]:
        if self.batch:
            return [Event(source.name)]
        names = tuple(c.name for c in source.columns)
        return [Event(source.name, sign, names) for sign in (1, -1)]

    def reserve(self, names: Names) -> None:
        """Names that no map that is found may have."""
        for catalogue in (self.catalogue, *self.batches.values()):
            catalogue.taken = names

    def result(self, name: str, definition: Node) -> None:
        """A definition becomes a map, in simple form."""
        node = everywhere(plain(definition), NONE, _plain_domain, self.budget)
        self.columns[name] = column_types(definition, self.sources)
        node = simplify(everywhere(node, NONE, lifted, self.budget), NONE, self.budget)
        found = first.initial(node, self.sources)
        if isinstance(found, first.Refused):
            raise Refused(f"{name}: {found.reason}")
        self.catalogue.add(name, node, 0, binding(definition).outputs, shared=self.depth != 0)

    def initial(self, entry: StoredMap) -> first.Initial:
        return first.initial(entry.definition, self.sources, self.inputs)

    # ---- changes

    def changes(self, entry: StoredMap) -> list[Change]:
        """What each event does to a map; the maps that this reads enter the catalogue."""
        if entry.name not in self._changes:
            events = [e for e in self.events if reads(entry.definition, e.relation)]
            self._changes[entry.name] = [self._change(entry, event) for event in events]
        return self._changes[entry.name]

    def _change(self, entry: StoredMap, event: Event) -> Change:
        """Keys are called unlike the parameters."""
        used = event.scope | mentioned(entry.definition)
        names = {k: fresh(k, used) for k in (*entry.inputs, *entry.keys) if k in event.scope}
        definition, target = rename(entry.definition, names), entry.access(names)
        found = self._way(entry, definition, event)
        change = definition if found.op == REPLACE else delta(definition, event, self.budget)
        scope = event.scope | needed(definition)
        return Change(event, target, found, self._materialiser(entry, event).draft(change, scope), scope)

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

    def right_side(self, change: Change, is_stored: IsStored) -> Node:
        """What a map becomes or is increased by, over maps that are stored."""
        draft = change.draft
        if not self.inputs:  # initial values of maps with inputs read whatever they need
            draft = self.demotion.without(draft, change.scope, is_stored)
        return finished(draft, change.scope, self.budget)

    # ---- what is read

    def reached(self, right_sides: Sequence[Node]) -> Iterator[StoredMap]:
        """The maps that expressions read."""
        for name in frozenset().union(*map(maps_in, right_sides)):
            if name in self.catalogue.maps:
                yield self.catalogue.maps[name]


def all_but(demoted: Container[Node]) -> IsStored:
    """Stores what is not demoted."""
    found: dict[str, bool] = {}

    def is_stored(entry: StoredMap) -> bool:
        if entry.name not in found:
            found[entry.name] = entry.definition not in demoted
        return found[entry.name]

    return is_stored


def _plain_domain(node: Node, scope: frozenset[str]) -> Node:
    """In a definition DOMAIN is EXISTS."""
    return ast.Exists(node.body) if isinstance(node, ast.Domain) else node
