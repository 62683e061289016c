"""Owns the last choice that a plan leaves open: the order of columns that are sought at once.

Any order gives the same answer at the same cost; one that an index has, or will have, saves an index.
Knows nothing of how steps were found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dlog.lftj.plan import Exists, Not, Or, Seek, Step
from dlog.planning.indices import Order, Requirement, arrange, serves


@dataclass(frozen=True)
class AtomUse:
    """One atom of a plan: its predicate, and the columns it is read by, in order (maybe not all).

    `together`: the same columns as sets, inside which the plan could have any order.
    """

    predicate: str
    columns: tuple[int, ...]
    together: Requirement = ()


def arrangement(use: AtomUse, orders: Sequence[Order]) -> tuple[int, ...]:
    """The columns of an atom in the first of some orders that fits; else unchanged."""
    if all(len(columns) == 1 for columns in use.together):
        return use.columns
    order = next((o for o in orders if serves(o, use.together)), None)
    return use.columns if order is None else arrange(order, use.together)


def arranged(steps: list[Step], columns: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]) -> list[Step]:
    """Steps that read each atom's columns in another order: (before, after), by atom.

    REQUIRES: only columns that are sought at once change places.
    """
    levels = {
        (atom, level): after.index(column)
        for atom, (before, after) in enumerate(columns)
        if before != after
        for level, column in enumerate(before)
    }
    return _rearranged(steps, levels) if levels else steps


def _rearranged(steps: Sequence[Step], levels: dict[tuple[int, int], int]) -> list[Step]:
    """Seeks of an atom change places among themselves, so that levels are still read from the first on."""
    out = [_inside(step, levels) for step in steps]
    places: dict[int, list[int]] = {}
    for place, step in enumerate(out):
        if isinstance(step, Seek) and (step.atom, step.level) in levels:
            places.setdefault(step.atom, []).append(place)
    for atom, own in places.items():
        seeks = [step for step in (out[place] for place in own) if isinstance(step, Seek)]
        moved = [replace(seek, level=levels[atom, seek.level]) for seek in seeks]
        for place, seek in zip(own, sorted(moved, key=lambda seek: seek.level), strict=True):
            out[place] = seek
    return out


def _inside(step: Step, levels: dict[tuple[int, int], int]) -> Step:
    match step:
        case Not() | Exists():
            return replace(step, steps=tuple(_rearranged(step.steps, levels)))
        case Or():
            return Or(tuple(tuple(_rearranged(branch, levels)) for branch in step.branches))
    return step
