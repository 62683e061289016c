"""Owns the numbers that `autoinc()` gives: one for each assignment, never given again.

The counter is a relation of one row in the store, so it is versioned with the data; without it the next
number is 0.  All rules of a program share it.
"""

from __future__ import annotations

import numpy as np

from dlog.engine.head.value_order import in_value_order
from dlog.engine.state.store import Store
from dlog.heads.lookup import look_up
from dlog.ir.rules import Numbering
from dlog.jit import Words
from dlog.planning.versions import COUNTER, given_name
from dlog.storage.relation.relation import Relation


def next_number(store: Store) -> int:
    counter = store.relations.get(COUNTER)
    return int(counter.rows()[0, 0]) if counter else 0


def new_numbers(store: Store, numbering: Numbering, assignments: Words) -> Words:
    """Rows of new assignments with their numbers, lowest first; moves the counter."""
    ordered = in_value_order(store, numbering.assignments, assignments)
    n, first = len(ordered) * numbering.count, next_number(store)
    numbers = np.arange(first, first + n).reshape(-1, numbering.count)
    if n:
        store.relations[COUNTER] = Relation.build(store.arena, [(first + n,)], 1)
    return np.concatenate([ordered, numbers], axis=1)


def with_numbers_of(numbered: Relation, assignments: Words) -> tuple[Words, Words]:
    """(Rows of the assignments that have numbers, the assignments that have none.)"""
    found, numbers = look_up(numbered, assignments)
    known = found > 0
    return np.concatenate([assignments[known], numbers[known]], axis=1), assignments[~known]


def number_rows(store: Store, name: str, numbering: Numbering) -> None:
    """Gives numbers to all assignments: those that had some keep them."""
    given = store.relations.pop(given_name(name), None)
    assignments = store.relations[numbering.assignments].rows()
    parts = []
    if given:
        known, assignments = with_numbers_of(given, assignments)
        parts.append(known)
    parts.append(new_numbers(store, numbering, assignments))
    store.clear(name)
    store.relations[name].apply_in_place(inserts=np.concatenate(parts))


def check_numbers(store: Store, name: str, numbering: Numbering) -> None:
    """Assert that each assignment has its numbers, all different and below the counter."""
    rows, assignments = store.relations[name].rows(), store.relations[numbering.assignments].rows()
    width = rows.shape[1] - numbering.count
    assert np.array_equal(rows[:, :width], assignments), "an assignment has no number, or several"
    numbers = rows[:, width:].reshape(-1)
    assert len(np.unique(numbers)) == len(numbers) and (numbers < next_number(store)).all()
