"""Owns branches: names of versions, and which version came from which.  Knows nothing of what they contain.

A commit has a version number that no other commit has, on any branch, greater than all before it.
Of past versions, *moments* are retained in memory: the heads of branches, and those where two
branches diverged, which merging needs.  A commit on a branch that shares its head with no other moves the
head.

    main   1 -- 2 -- 5            heads: main 5, trial 4; retained for merging: 2
                 \\-- 3 -- 4
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dlog.errors import DlogError, did_you_mean

MAIN = "main"
_DEEPEST = 32  # branchings that are searched for ids
_NUMBERED = re.compile(r"(.*)#(0|[1-9][0-9]*)", re.DOTALL)


class Batches:
    """Ids of batches that have been applied: those of earlier moments, which are shared, and its own.

    An id `SERIES#NUMBER` stands for all batches of its series up to that number: a stream, which numbers its
    batches, leaves one id instead of one for each of them.

    >>> batches = Batches()
    >>> batches.add("Monday"), batches.add("orders#7")
    (None, None)
    >>> "Monday" in batches, "orders#6" in batches, "orders#8" in batches, batches.last("orders")
    (True, True, False, 7)
    """

    __slots__ = ("_before", "_depth", "_last", "_own")

    def __init__(self, *before: Batches):
        self._own: set[str] = set()
        self._last: dict[str, int] = {}  # by series
        self._before = before
        self._depth: int = 1 + max((one._depth for one in before), default=0)
        if self._depth > _DEEPEST:
            self._own, self._last = self._gathered()
            self._before, self._depth = (), 1

    def add(self, batch_id: str) -> None:
        numbered = _NUMBERED.fullmatch(batch_id)
        if numbered is None:
            self._own.add(batch_id)
        else:
            series, number = numbered[1], int(numbered[2])
            self._last[series] = max(number, self._last.get(series, number))

    def __contains__(self, batch_id: object) -> bool:
        """O(branchings)."""
        numbered = _NUMBERED.fullmatch(batch_id) if isinstance(batch_id, str) else None
        if numbered is None:
            return any(batch_id in one._own for one in self._chain())
        last = self.last(numbered[1])
        return last is not None and int(numbered[2]) <= last

    def last(self, series: str) -> int | None:
        """The greatest number of a series; None when there is none.  O(branchings)."""
        return max((one._last[series] for one in self._chain() if series in one._last), default=None)

    def all(self) -> set[str]:
        """O(ids)."""
        own, last = self._gathered()
        return own.union(f"{series}#{number}" for series, number in last.items())

    def _gathered(self) -> tuple[set[str], dict[str, int]]:
        own: set[str] = set()
        last: dict[str, int] = {}
        for one in self._chain():
            own |= one._own
            last |= {series: max(n, last.get(series, n)) for series, n in one._last.items()}
        return own, last

    def _chain(self) -> Iterator[Batches]:
        """Itself and all its ancestors, each once."""
        waiting, seen = [self], {id(self)}
        while waiting:
            one = waiting.pop()
            yield one
            for before in one._before:
                if id(before) not in seen:
                    seen.add(id(before))
                    waiting.append(before)


@dataclass(eq=False)
class Moment:
    """A retained version: its number, the retained ones that it came from, and its state."""

    version: int
    parents: tuple[Moment, ...]
    state: Any
    batches: Batches = field(default_factory=Batches)
    shared: bool = False  # another branch, or another moment, refers to it: it never changes again

    def ancestors(self) -> dict[int, Moment]:
        """Itself and all that it came from, by version."""
        found: dict[int, Moment] = {}
        waiting = [self]
        while waiting:
            one = waiting.pop()
            if one.version not in found:
                found[one.version] = one
                waiting += one.parents
        return found


class Timeline:
    """The branches.

    >>> line = Timeline(Moment(2, (), "a"))
    >>> line.branch("trial", "main")
    >>> line.commit("trial", 3, "b"), line.commit("main", 4, "c")
    (None, None)
    >>> line.base("main", "trial").version, line.heads["trial"].version
    (2, 3)
    """

    def __init__(self, first: Moment):
        self.heads = {MAIN: first}
        self.last = first.version  # the greatest version of all

    def require(self, name: str) -> Moment:
        if name not in self.heads:
            help = did_you_mean(name, self.heads, f"there are {', '.join(self.heads)}")
            raise DlogError(f"there is no branch {name}", help=help)
        return self.heads[name]

    def branch(self, name: str, of: str) -> None:
        """A new name for the head of a branch.  O(1)."""
        if name in self.heads:
            raise DlogError(f"there is a branch {name} already")
        head = self.require(of)
        head.shared = True
        self.heads[name] = head

    def drop(self, name: str) -> None:
        self.require(name)
        if name == MAIN:
            raise DlogError(f"{MAIN} cannot be dropped")
        del self.heads[name]
        self.prune()

    def commit(
        self,
        name: str,
        version: int,
        state: Any,
        merged: Moment | None = None,
        batch_id: str | None = None,
    ) -> None:
        """Move the head of a branch to a new version.  O(1)."""
        head = self.heads[name]
        if head.shared:
            head = self.heads[name] = Moment(version, (head,), state, Batches(head.batches))
        if merged is not None:
            merged.shared = True
            head.parents = (*head.parents, merged)
            head.batches = Batches(head.batches, merged.batches)
        head.version, head.state = version, state
        if batch_id is not None:
            head.batches.add(batch_id)
        self.last = version

    def base(self, one: str, other: str) -> Moment | None:
        """The last common ancestor of both branches; None if there is none."""
        ours, theirs = self.require(one).ancestors(), self.require(other).ancestors()
        common = ours.keys() & theirs.keys()
        return ours[max(common)] if common else None

    def moments(self) -> list[Moment]:
        """All retained moments, the earliest first."""
        found: dict[int, Moment] = {}
        for head in self.heads.values():
            found |= head.ancestors()
        return [found[version] for version in sorted(found)]

    def prune(self) -> None:
        """Drop moments that no merge can need.  The remaining ones keep their ancestry.

        O(moments branches)."""
        moments = self.moments()
        needed = self._bases(moments) | {id(head) for head in self.heads.values()}
        for moment in moments:
            ancestors = (p for parent in moment.parents for p in _needed_ancestors(parent, needed))
            moment.parents = tuple(dict.fromkeys(ancestors))

    def _bases(self, moments: list[Moment]) -> set[int]:
        """`base` of every two branches, by identity.

        From the last moment back: a moment that is the latest common one of two branches is theirs.
        Sets of branches are the bits of a number.
        """
        came = {id(moment): 0 for moment in moments}  # the branches that came from it
        for bit, head in enumerate(self.heads.values()):
            came[id(head)] |= 1 << bit
        met = [1 << bit for bit in range(len(self.heads))]  # by branch: those with which it has a later one
        bases = set()
        for moment in reversed(moments):
            branches = came[id(moment)]
            for parent in moment.parents:
                came[id(parent)] |= branches
            for bit in range(len(met)):
                if branches >> bit & 1 and branches & ~met[bit]:
                    met[bit] |= branches
                    bases.add(id(moment))
        return bases


def _needed_ancestors(moment: Moment, needed: set[int]) -> Iterator[Moment]:
    """The moment if it is needed, else its ancestors.  REQUIRES: earlier ones have been pruned."""
    if id(moment) in needed:
        yield moment
    else:
        yield from moment.parents
