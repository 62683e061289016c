"""State beside the store goes with it: after any commits and rollbacks it is that of the relations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.state.side_state import SideState
from dlog.engine.state.store import Store
from tests.examples import relaxed

NAMES = ("stamp of one", "stamp of another")


class Total(SideState):
    """A sum that is changed in place, with what undoes the last change."""

    def __init__(self) -> None:
        self.value = self.change = 0

    def settle(self) -> None:
        self.change = 0

    def undo(self) -> None:
        self.value -= self.change
        self.change = 0

    def add(self, n: int) -> None:
        self.value += n
        self.change += n


@relaxed(60)
@given(st.lists(st.tuples(st.integers(-9, 9), st.sampled_from(("commit", "roll back", "fail", "bypass")))))
def test_oracle_commits_and_rollbacks(steps: list[tuple[int, str]]) -> None:
    """Two strata share a state; a transaction that fails stops between them, one that bypasses the state
    changes what it is a sum of."""
    store, state, expected = Store({}), Total(), 0
    for n, outcome in steps:
        before = store.relations
        store.relations = dict(before)
        if outcome == "bypass":
            for name in NAMES:
                state.forget(store, name)
            expected += n
            continue
        if all(state.is_known(store, name) for name in NAMES):
            state.begin(store, NAMES[0])
            assert state.value == expected
            state.add(n)
        else:
            state.restart()
            state.value, state.change = expected + n, 0
        state.end(store, NAMES[0])
        if outcome != "fail":
            state.end(store, NAMES[1])
        if outcome == "commit":
            expected += n
            assert all(state.is_current(store, name) for name in NAMES) and state.value == expected
        else:
            store.relations = before


@relaxed(60)
@given(
    st.lists(st.tuples(st.lists(st.integers(-3, 3), max_size=3), st.sampled_from(("commit", "roll back"))))
)
def test_oracle_steps(transactions: list[tuple[list[int], str]]) -> None:
    """The steps of a transaction are undone together, wherever another one begins; a step of 0 changes
    nothing, which is found only after it has begun."""
    (name, _), store, state, expected = NAMES, Store({}), Total(), 0
    state.end(store, name)
    for steps, outcome in transactions:
        committed = store.relations
        store.relations = dict(committed)
        for n in steps:
            first = state.begin_step(store.relations[name], committed[name])
            if n:
                state.add(n)
                state.end(store, name)
            elif first:
                state.cancel_step()
        if outcome == "commit":
            expected += sum(steps)
        else:
            store.relations = committed
    state.begin(store, name)
    assert state.value == expected


def test_a_state_without_undo_says_so() -> None:
    store, state = Store({}), SideState()
    state.end(store, NAMES[0])
    before = dict(store.relations)
    state.begin(store, NAMES[0])
    state.end(store, NAMES[0])
    store.relations = before
    assert state.is_known(store, NAMES[0]) and not state.is_current(store, NAMES[0])
    with pytest.raises(NotImplementedError):
        state.begin(store, NAMES[0])
