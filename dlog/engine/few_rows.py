"""Owns the short way of a transaction of a few rows: they are followed one by one, and count as one change.

Correct output: as `maintain` on all rows at once.  A state between two rows may break a constraint or a
function that the last state does not: any error on the way, and whatever `one_row` finds not simple, leaves
everything as it was, and the transaction goes the general way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dlog.engine.evaluate import Evaluation
from dlog.engine.maintain import Maintenance
from dlog.engine.one_row import Trigger, find_trigger, follow_row, one_row_change
from dlog.engine.store import Store
from dlog.engine.strategy import Cycle
from dlog.errors import DlogError, Interrupted
from dlog.storage.batch import Change

SignedRow = tuple[int, str, tuple[int, ...]]  # +1 or -1, a predicate, codes


class Step(NamedTuple):
    """One row that was followed."""

    trigger: Trigger
    row: tuple[int, ...] | None  # None: it changed nothing
    derived: Mapping[str, Change]
    ways: Mapping[str, str]
    operations: int

    def changes(self) -> dict[str, Change]:
        if self.row is None:
            return {}
        return {**self.derived, self.trigger.name: one_row_change(self.trigger, self.row)}


def follow_rows(
    maintenance: Maintenance,
    store: Store,
    rows: Sequence[SignedRow],
    evaluation: Callable[[], Evaluation],
) -> list[Step] | None:
    """Brings the store to the state after all rows; None: not simple, and the store is as it was.

    REQUIRES: no row twice; those to erase come first.  Raises only what a single row raises.
    """
    before = store.relations
    steps = []
    try:
        for sign, name, row in rows:
            step = _follow(maintenance, store, sign, name, row, evaluation)
            if step is None:
                store.relations = before
                return None
            steps.append(step)
    except BaseException as error:
        store.relations = before
        if isinstance(error, KeyboardInterrupt):
            raise Interrupted("interrupted while changing facts") from None
        if isinstance(error, DlogError) and len(rows) > 1:
            return None
        raise
    return steps


def _follow(
    maintenance: Maintenance,
    store: Store,
    sign: int,
    name: str,
    row: tuple[int, ...],
    evaluation: Callable[[], Evaluation],
) -> Step | None:
    before = store.relations
    trigger = find_trigger(maintenance, store, name, sign)
    if trigger is None:
        return None
    changes: dict[str, Change] = {}
    ways: dict[str, str] = {}

    def begin() -> Cycle:
        store.relations = dict(before)
        return Cycle(maintenance.program, store, evaluation(), changes, ways=ways)

    found = follow_row(maintenance, trigger, store, row, begin)
    if found is None:
        return None
    later, operations = found
    if later is before[name]:
        return Step(trigger, None, changes, trigger.ways, operations)
    relations = dict(before) if store.relations is before else store.relations
    relations[name] = later
    store.relations = relations
    return Step(trigger, row, changes, {**trigger.ways, **ways} if ways else trigger.ways, operations)


def combined(steps: Sequence[Step]) -> dict[str, Change]:
    """The net change of every predicate over all steps.  O(rows that changed, sorted)."""
    if len(steps) == 1:
        return steps[0].changes()
    of_name: dict[str, list[Change]] = {}
    for step in steps:
        for name, change in step.changes().items():
            of_name.setdefault(name, []).append(change)
    return {name: found[0] if len(found) == 1 else _net(found) for name, found in of_name.items()}


def _net(changes: Sequence[Change]) -> Change:
    """Of changes that follow each other: a row that came and went again counts for nothing."""
    signs = np.concatenate([np.repeat((1, -1), (len(c.inserted), len(c.erased))) for c in changes])
    rows = np.concatenate([part for change in changes for part in change])
    if not rows.shape[1]:
        total = int(signs.sum())
        return Change(rows[: max(total, 0)], rows[: max(-total, 0)])
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    totals = np.zeros(len(distinct), np.int64)
    np.add.at(totals, which.reshape(-1), signs)
    return Change(distinct[totals > 0], distinct[totals < 0])
