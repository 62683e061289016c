"""Sensitivity indices whose pages are changed where they lie: versions that were followed in place are still
what they were, for those who hold them and when a transaction is taken back."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.commit.commits import Changes
from dlog.engine.maintain.trace.offer import TRACE, TRACE_EXACT
from dlog.engine.maintain.trace.row_layout import COVERS
from dlog.engine.maintain.trace.triggers import TraceTrigger
from dlog.engine.maintain.triggers.trigger_search import NEVER
from dlog.errors import DlogError
from dlog.storage.arena.arena import Arena
from dlog.storage.arena.arena_kernels import MOST_HANDED
from tests.engine.maintain.trace.test_trace_maintenance import CHANGED, EDGES, RULES, SHORT, noted
from tests.examples import relaxed

MANY = [(10 + i % 97, 10 + i % 89) for i in range(3000)]  # so that indices have pages
NOTHING, READ, HOLD, TAKE_BACK, BATCH = "nothing", "read", "hold", "take back", "batch"
DONE = st.sampled_from((NOTHING, NOTHING, READ, HOLD, TAKE_BACK, BATCH))


@pytest.fixture
def in_place(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each row that a trigger followed, whether pages were changed where they lie."""
    in_place: list[bool] = []
    take_notes = TraceTrigger._take_notes

    def counted(self: TraceTrigger, is_in_place: bool) -> Any:
        in_place.append(is_in_place)
        return take_notes(self, is_in_place)

    monkeypatch.setattr(TraceTrigger, "_take_notes", counted)
    return in_place


@pytest.mark.parametrize("rule", RULES[:2])
@pytest.mark.parametrize("wanted", (TRACE, TRACE_EXACT))
def test_earlier_versions_do_not_change(wanted: str, rule: str, in_place: list[bool]) -> None:
    @relaxed(8)
    @given(EDGES, st.lists(st.tuples(CHANGED, DONE), min_size=8, max_size=24))
    def check(edges: list[tuple[int, int]], changes: list[tuple[tuple[str, int, int], str]]) -> None:
        kernel, steps = (dlog.Database(source=SHORT.format(rule=rule), strategy=wanted) for _ in range(2))
        steps._maintenance.triggers.update(
            {(name, sign): NEVER for name in ("edge", "mark") for sign in (1, -1)}
        )
        for db in (kernel, steps):
            db.apply(insert={"edge": [*edges, *MANY], "mark": [(1,), (2,)]})
            db.apply(insert={"edge": [(6, 6)]})
        held = []
        for (name, x, y), done in changes:
            row = (x, y) if name == "edge" else (x,)
            change = {"erase" if row in kernel[name].rows() else "insert": {name: [row]}}
            if done == TAKE_BACK:
                refused(kernel, lambda change=change: kernel.apply(**change))
                continue
            for db in (kernel, steps):
                db.apply(**change)
            if done in (HOLD, BATCH):
                held.append((kernel.store.relations, noted(steps)))
            if done == BATCH:  # takes the general path
                for db in (kernel, steps):
                    db.apply(insert={"edge": [(x, y + i) for i in range(1, 4)]})
            if done == READ:
                kernel.check()
                assert noted(kernel) == noted(steps)
        assert sorted(kernel["r"].rows()) == sorted(steps["r"].rows())
        assert noted(kernel) == noted(steps)
        now = kernel.store.relations
        for relations, expected in held:
            kernel.store.relations = relations
            assert noted(kernel) == expected
        kernel.store.relations = now
        kernel.check()

    check()
    assert in_place.count(True) > 10 and in_place.count(False) > 10


@pytest.mark.parametrize("wanted", (TRACE, TRACE_EXACT))
def test_memory_of_a_held_version_is_not_overwritten(wanted: str) -> None:
    """Of one that a row followed in place, when rows took the general path before the next single one."""
    kernel, steps = (dlog.Database(source=TRIANGLES, strategy=wanted) for _ in range(2))
    steps._maintenance.triggers.update({("edge", sign): NEVER for sign in (1, -1)})
    held, expected = [], []
    some = [*MANY, (1, 2), (2, 3)]
    single = [(9, 1)], [(3, 1)], [(4, 1)], [(1, 3)]  # the strategy is chosen again with the first of them
    for rows in (some, *single, [(i, 2) for i in range(5)], [(7, 2)]):
        for db in (kernel, steps):
            db.apply(insert={"edge": rows})
        if rows == [(4, 1)]:
            held, expected = [kernel.store.relations], noted(steps)
        if rows == [(1, 3)]:
            triggers = kernel._maintenance.triggers
            assert triggers["edge", 1].held.before() is held[0][triggers["edge", 1].traces.name]
    now, kernel.store.relations = kernel.store.relations, held[0]
    assert noted(kernel) == expected
    kernel.store.relations = now
    assert noted(kernel) == noted(steps)
    kernel.check()


IN_TURNS = """
e(x, y) -> int(x), int(y).  h(y, z) -> int(y), int(z).  g(x, z) -> int(x), int(z).
f(x, y, z) <- e(x, y), h(y, z), g(x, z).
"""


@pytest.mark.parametrize("wanted", (TRACE, TRACE_EXACT))
def test_predicates_that_change_in_turns(wanted: str, in_place: list[bool]) -> None:
    """None of their triggers keeps what the others leave: pages are changed in place, and memory comes back
    when all is erased at once."""
    db, rng = dlog.Database(source=IN_TURNS, strategy=wanted), Random(1)
    for i in range(300):
        db.apply(insert={"ehg"[i % 3]: [(rng.randrange(60), rng.randrange(60))]})
    db.verify()
    assert in_place.count(True) > 0.9 * len(in_place) > 100
    used = db.store.arena.usage().used_words
    db.apply(erase={name: db[name].rows() for name in "ehg"})
    assert db.store.arena.usage().used_words < used / 8


def refused(db: dlog.Database, transaction: Callable[[], object]) -> None:
    """The transaction fails when all is computed."""
    fail = patch.object(db, "_keep", side_effect=DlogError("refused"))
    with fail, pytest.raises(DlogError, match="refused"):
        transaction()


TRIANGLES = """
edge(x, y) -> int(x), int(y).
triangle(x, y, z) <- edge(x, y), edge(y, z), edge(x, z).
"""


@pytest.mark.parametrize("wanted", (TRACE, TRACE_EXACT))
def test_heads_change_in_the_call_of_the_row(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as they have the orders that they had, and no facts of their own."""
    taken: list[bool] = []
    in_the_call = 0
    take_head = TraceTrigger._take_head

    def counted(self: TraceTrigger, arena: Arena) -> Any:
        change = take_head(self, arena)
        taken.append(change is not None)
        return change

    monkeypatch.setattr(TraceTrigger, "_take_head", counted)
    traced, deltas = (dlog.Database(source=TRIANGLES, strategy=strategy) for strategy in (wanted, "delta"))
    edges = [(i % 30, (7 * i + i // 30) % 31) for i in range(500)]
    for db in (traced, deltas):
        db.apply(insert={"edge": edges})
        db.apply(insert={"edge": [(100, 100)]})
    for step in range(60):
        if step == 20:
            held = traced.snapshot(), sorted(deltas["triangle"].rows())
        if step == 30:
            traced.store.index("triangle", (2, 0, 1))
        if step == 45:
            for db in (traced, deltas):
                db.apply(insert={"triangle": [(0, 0, 0), (200, 200, 200)]})
        row = (step * 11 % 30, step * 17 % 31)
        change = {"erase" if row in deltas["edge"].rows() else "insert": {"edge": [row]}}
        changes = [db.apply(**change).changes for db in (traced, deltas)]
        assert reported(changes[0]) == reported(changes[1])
        if step == 29:
            in_the_call = sum(taken)
    assert in_the_call > 5 and sum(taken) == in_the_call
    assert sorted(traced["triangle"].rows()) == sorted(deltas["triangle"].rows())
    assert sorted(held[0]["triangle"].rows()) == held[1]
    traced.check()


@pytest.mark.parametrize(
    ("rule", "grows"),
    [
        ("r(x, y, z) <- edge(x, y), edge(y, z), edge(x, z).", True),
        ("r(x, y) <- edge(x, y), edge(y, z), !edge(x, z).", False),
    ],
)
def test_the_old_version_is_not_run_where_nothing_can_go(rule: str, grows: bool) -> None:
    """A row that comes and derives nothing has nothing to take away, unless there is a negation."""
    source = f"edge(x, y) -> int(x), int(y).  {rule}"
    kernel, steps = (dlog.Database(source=source, strategy=TRACE_EXACT) for _ in range(2))
    steps._maintenance.triggers.update({("edge", sign): NEVER for sign in (1, -1)})
    seen = set()
    for step in range(120):
        row = (step * 11 % 60, step * 17 % 61)
        for db in (kernel, steps):
            if not step:
                db.apply(insert={"edge": [(i % 60, (7 * i + i // 60) % 61) for i in range(300)]})
                db.apply(insert={"edge": [(100, 100)]})
            change = "erase" if row in db["edge"].rows() else "insert"
            derived = "r" in db.apply(**{change: {"edge": [row]}}).changes
        trigger = kernel._maintenance.triggers["edge", 1 if change == "insert" else -1]
        assert isinstance(trigger, TraceTrigger)
        seen.add((change, derived, bool(trigger.results[COVERS])))
        trigger.results[COVERS] = 0  # some rows take the general path
        assert noted(kernel) == noted(steps)
    assert (("insert", False, True) in seen) == grows
    assert seen <= {("insert", False, grows), *((c, d, False) for c in ("insert", "erase") for d in (0, 1))}
    kernel.check()


def test_versions_that_went_are_released_by_the_next_row() -> None:
    """Whatever the strategy, memory is the same whenever the facts are."""
    for wanted in (TRACE, TRACE_EXACT, "delta"):
        db = dlog.Database(source=TRIANGLES, strategy=wanted)
        db.apply(insert={"edge": MANY})
        used = set()
        for step in range(400):
            row = (step % 20, 500)
            db.apply(insert={"edge": [row]})
            db.apply(erase={"edge": [row]})
            if step % 100 == 99:
                usage = db.store.arena.usage()
                used.add((usage.used_blocks, usage.used_extents))
                assert len(used) == 1, (wanted, used)


def test_more_versions_go_than_are_handed_over() -> None:
    db = dlog.Database(source=TRIANGLES, strategy=TRACE_EXACT)
    db.apply(insert={"edge": MANY})
    used = set()
    for _ in range(3):
        held = []
        for step in range(3 * MOST_HANDED):
            db.apply(insert={"edge": [(step, 600)]})
            held.append(db.store.relations)
            db.apply(erase={"edge": [(step, 600)]})
        held.clear()
        for _ in range(8):
            db.apply(insert={"edge": [(1, 601)]})
            db.apply(erase={"edge": [(1, 601)]})
        used.add(db.store.arena.usage().used_blocks)
    assert len(used) == 1
    db.check()


def reported(changes: Changes) -> object:
    return {
        name: (sorted(change.inserted.rows()), sorted(change.erased.rows()))
        for name, change in changes.items()
    }
