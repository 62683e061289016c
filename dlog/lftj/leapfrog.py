"""Owns the unary leapfrog join as the maintenance paper states it (section 4.1), with its trace.

Atoms are in rule order and the first is advanced after a match: the convention under which the paper prints
its sensitivity sets.  The machine orders atoms by size instead; both give the same keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlog.lftj.iterator import TrieIterator


@dataclass(frozen=True)
class Operation:
    """One operation on the iterator of an atom: `open`, `next` or `seek_lub`.

    `start` is the key it was on, None before an open; `sought` the key of a seek_lub; `end` the
    key it ended on, None if it ran off the end.
    """

    atom: int
    name: str
    start: int | None
    sought: int | None
    end: int | None

    def __str__(self) -> str:
        """`A.seek_lub(6): 4 -> 6`, with letters for the atoms in rule order."""
        argument = "" if self.sought is None else self.sought
        start = "" if self.start is None else f"{self.start} "
        end = "end" if self.end is None else self.end
        return f"{chr(ord('A') + self.atom)}.{self.name}({argument}): {start}-> {end}"


def leapfrog_join(iterators: Sequence[TrieIterator]) -> tuple[list[int], list[Operation]]:
    """Join the next levels of the iterators; return the common keys and the operations done, in order.

    O(k log(n / k)) for k operations.  Leaves the iterators on that level.  REQUIRES: at least one iterator.
    """
    trace: list[Operation] = []
    matches: list[int] = []
    keys = [_operate(iterators, atom, "open", None, trace) for atom in range(len(iterators))]
    while None not in keys:
        present = [key for key in keys if key is not None]
        least, greatest = min(present), max(present)
        if least == greatest:
            matches.append(least)
            keys[0] = _operate(iterators, 0, "next", None, trace)
        else:
            atom = keys.index(least)
            keys[atom] = _operate(iterators, atom, "seek_lub", greatest, trace)
    return matches, trace


def _operate(
    iterators: Sequence[TrieIterator], atom: int, name: str, sought: int | None, trace: list[Operation]
) -> int | None:
    """Do one operation, record it in the trace, and return the key it led to, None at the end."""
    iterator = iterators[atom]
    start = None if name == "open" else iterator.key()
    if sought is not None:
        iterator.seek_lub(sought)
    else:
        getattr(iterator, name)()
    end = None if iterator.at_end() else iterator.key()
    trace.append(Operation(atom, name, start, sought, end))
    return end
