"""Owns why two members of an equivalence relation are equivalent: a shortest chain of pairs between them."""

from __future__ import annotations

from collections import deque

from dlog.engine.state.store import Store
from dlog.errors import UnsupportedError
from dlog.heads.classes import class_pairs
from dlog.ir.rules import Program, Stratum

Pair = tuple[int, int]


def connecting_pairs(store: Store, program: Program, name: str, first: int, last: int) -> list[Pair]:
    """The pairs on a shortest path from one member to another; of a member to itself, one that has it.
    O(pairs of the class).  REQUIRES: they are in one class."""
    classes = store.relations[program.equivalences[name]]
    around: dict[int, list[Pair]] = {}
    for x, y in class_pairs(classes, store.relations[name], first).tolist():
        around.setdefault(x, []).append((x, y))
        around.setdefault(y, []).append((x, y))
    if first == last:
        return around[first][:1]
    came: dict[int, Pair] = {first: (first, first)}
    waiting = deque([first])
    while last not in came:
        member = waiting.popleft()
        for x, y in around[member]:
            other = y if x == member else x
            if other not in came:
                came[other] = (x, y)
                waiting.append(other)
    path: list[Pair] = []
    while last != first:
        x, y = came[last]
        path.append((x, y))
        last = y if x == last else x
    return path[::-1]


def refuse_recursive(program: Program, stratum: Stratum) -> None:
    """Raises where a derivation might have to go through an equivalence relation that depends on itself."""
    if stratum.recursive and (classes := program.classes_in(stratum)):
        relation = next(iter(classes.values()))
        message = f"{relation} depends on itself: why its pairs hold is not recorded"
        raise UnsupportedError(message, help="ask about a predicate that its rules read")
