"""Owns relations by name in layers: a dict whose copies cost what has changed, not the number of names.

Correct output: as a dict.  A copy shares the lower layer, which never changes again, and has its own
writes on top; once these are many, `settle` merges both into one dict for itself and later copies.  So a
transaction that changes what others have changed shortly before has its own relations in constant time,
and holders of an earlier version keep it.

Programs with few predicates have plain dicts, whose copies are cheaper still.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dlog.storage.relation.relation import Relation

MANY = 64  # names from which on copying them all costs more than two look-ups
MOST_WRITES = 32  # names on top

_NONE: Any = object()


def in_layers(relations: dict[str, Relation]) -> dict[str, Relation]:
    """The same names, cheap to copy.  REQUIRES: the dict is not changed any more.  O(1)."""
    if len(relations) < MANY or isinstance(relations, Layers):
        return relations
    return Layers({}, relations)


class Layers(dict[str, Relation]):
    """The dict itself is the top, so that what was written is found without a call.

    >>> below = {"p": 1, "q": 2}
    >>> top = Layers({}, below)
    >>> top["p"] = 3
    >>> other = top.copy()
    >>> del other["q"]
    >>> top["p"], "q" in top, "q" in other, below
    (3, True, False, {'p': 1, 'q': 2})
    """

    __slots__ = ("_below",)

    def __init__(self, top: dict[str, Relation], below: dict[str, Relation]):
        super().__init__(top)
        self._below = below

    def __missing__(self, name: str) -> Relation:
        return self._below[name]

    def copy(self) -> Layers:
        """O(names on top)."""
        copied = Layers.__new__(Layers)
        copied._below = self._below
        dict.update(copied, dict.items(self))  # `dict.copy` would go through all names
        return copied

    def settle(self) -> None:
        """Release what is below a name on top: old versions must not stay in memory.

        O(names on top), or O(names) when one of them is new there, or they have become many.
        """
        if dict.__len__(self) > MOST_WRITES:
            everything = dict(self)
            dict.clear(self)
            self._below = everything
        elif not dict.keys(self).isdisjoint(self._below.keys()):
            below = self._below.copy()
            for name in dict.__iter__(self):
                below.pop(name, None)
            self._below = below

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or name in self._below

    def get(self, name: str, default: Any = None) -> Any:
        found = dict.get(self, name, _NONE)
        return self._below.get(name, default) if found is _NONE else found

    def setdefault(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._below
        yield from (name for name in dict.__iter__(self) if name not in self._below)

    def __len__(self) -> int:
        return len(self._below) + sum(1 for name in dict.__iter__(self) if name not in self._below)

    def __bool__(self) -> bool:
        return bool(self._below) or dict.__len__(self) > 0

    def __eq__(self, other: object) -> bool:
        return dict(self) == (dict(other) if isinstance(other, dict) else other)

    __hash__ = None

    def keys(self) -> Any:
        return dict.fromkeys(self).keys()

    def values(self) -> Any:
        return {name: self[name] for name in self}.values()

    def items(self) -> Any:
        return {name: self[name] for name in self}.items()

    def __or__(self, other: Any) -> Any:
        return dict(self) | other

    def __delitem__(self, name: str) -> None:
        if name in self._below:
            self._flatten()
        dict.__delitem__(self, name)

    def pop(self, name: str, default: Any = _NONE) -> Any:
        found = self.get(name, default)
        if name in self:
            del self[name]
        elif found is _NONE:
            raise KeyError(name)
        return found

    def _flatten(self) -> None:
        """Everything on top.  O(names), for removed names, which is rare."""
        everything = dict(self)
        self._below = {}
        dict.update(self, everything)
