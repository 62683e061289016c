"""Owns the catalogue of maps: each definition is stored once, whatever its variables are called."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import binding
from dlog.multilevel.names import same, shape


class TooManyMaps(Exception):
    """The limit of the catalogue is reached."""


@dataclass(frozen=True)
class StoredMap:
    """A map: its name, its inputs and keys in order, what it contains, and how many deltas below a result it
    was found (0: it is a result).
    """

    name: str
    inputs: tuple[str, ...]
    keys: tuple[str, ...]
    definition: Node
    level: int

    def access(self, names: dict[str, str] | None = None) -> ast.MapAccess:
        """It is read by other names of its inputs and keys."""
        found = names or {}
        inputs, keys = (
            tuple(ast.Variable(found.get(n, n)) for n in part) for part in (self.inputs, self.keys)
        )
        return ast.MapAccess(self.name, None, inputs, keys)


@dataclass
class Catalogue:
    """`limit`: how many maps there may be.  `prefix`: of their names; `taken`: names that are not free."""

    limit: int
    prefix: str = "M"
    taken: frozenset[str] = frozenset()
    maps: dict[str, StoredMap] = field(default_factory=dict)
    _by_shape: dict[object, list[StoredMap]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[StoredMap]:
        return iter(list(self.maps.values()))

    def add(
        self,
        name: str,
        definition: Node,
        level: int,
        keys: tuple[str, ...] | None = None,
        shared: bool = True,
    ) -> StoredMap:
        """A map of this name, even if there is one of the same definition; `keys`: in this order.  `shared`:
        `find` finds it.
        """
        if len(self.maps) >= self.limit:
            raise TooManyMaps
        found = binding(definition)
        entry = StoredMap(name, found.inputs, found.outputs if keys is None else keys, definition, level)
        self.maps[name] = entry
        if shared:
            self._by_shape.setdefault(shape(definition), []).append(entry)
        return entry

    def find(self, definition: Node) -> ast.MapAccess | None:
        """A read of the map that has this definition, if there is one."""
        for entry in self._by_shape.get(shape(definition), ()):
            names = same(entry.definition, definition)
            if names is not None:
                return entry.access(names)
        return None

    def access(self, definition: Node, level: int) -> ast.MapAccess:
        """A read of the map that has this definition, which is added if there is none."""
        return self.find(definition) or self.add(self._name(), definition, level).access()

    def _name(self) -> str:
        number = len(self.maps) + 1
        while f"{self.prefix}{number}" in self.taken or f"{self.prefix}{number}" in self.maps:
            number += 1
        return f"{self.prefix}{number}"
