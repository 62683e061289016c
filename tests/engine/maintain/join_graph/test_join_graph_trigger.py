"""Transactions of few rows through triggers of join graphs: what they change, alone and in steps, and how
all of it is undone."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import dlog
from dlog.engine.maintain.join_graph.triggers import GraphTrigger, OneGraphTrigger
from dlog.engine.maintain.triggers import small_transaction
from dlog.joingraph import layout as at
from dlog.joingraph.change_kernels import change_rows
from dlog.joingraph.graph import JoinGraph
from tests.engine.machine import short_ways

GRAPH = "join_graph"
DECLARED = """
user(u, g) -> int(u), int(g). tweet(u, t) -> int(u), int(t). retweet(w, t) -> int(w), int(t).
"""
RULES = {
    "one row of the head each": "far(u, g, t, w) <- user(u, g), tweet(u, t), retweet(w, t).",
    "derivations are counted": "far(g, w) <- user(u, g), tweet(u, t), retweet(w, t).",
    "columns are hidden": "far(g) <- user(u, g), tweet(u, _).",
    "a literal, in another order": "far(t, 7, u) <- user(u, _), tweet(u, t).",
    "a self-join": "far(t, v) <- tweet(u, t), tweet(u, v).",
    "several strata": "far(u, g, t) <- user(u, g), tweet(u, t). near(g, t) <- user(u, g), tweet(u, t).",
    "several rules": "far(u, t) <- user(u, _), tweet(u, t). far(u, t) <- retweet(u, t), tweet(_, t).",
    "others read it": "far(u, g, t) <- user(u, g), tweet(u, t). near(g) <- far(_, g, _), retweet(g, _).",
    "a function": "user(u, g), user(u, h) -> g = h. far[u, t] = g <- user(u, g), tweet(u, t).",
    "sums": "far[g] = n <- agg<<n = count()>> user(u, g), tweet(u, t).",
    "several assignments count": "far[g] = n <- agg<<n = count()>> user(u, g), tweet(u, _), retweet(u, _).",
    "sums with weights": "far[g] = n <- agg<<n = sum(u)>> user(u, g), tweet(u, _), retweet(_, u).",
}
NAMES = ("user", "tweet", "retweet")


def row(draw: random.Random) -> tuple[int, int]:
    return draw.randrange(4), draw.randrange(4)


def change(tx: Any, op: str, name: str, given: tuple[int, int]) -> None:
    (tx.insert if op == "+" else tx.erase)(name, [given])


def state(db: dlog.Database) -> dict[str, list[Any]]:
    return {name: sorted(db[name].rows()) for name in db.predicates()}


def same_as_deltas(text: str, draw: random.Random, transactions: int, steps: int) -> list[bool]:
    """Random transactions on two databases; for each whether it took the short path."""
    one, other = (dlog.Database(source=DECLARED + text, strategy=way) for way in (GRAPH, "delta"))
    with short_ways() as short:
        for _ in range(transactions):
            rows = [
                (draw.choice("++-"), draw.choice(NAMES), row(draw)) for _ in range(draw.randint(1, steps))
            ]
            refused = [fails(db, rows) for db in (one, other)]
            assert refused[0] == refused[1], rows
            assert state(one) == state(other), rows
            if draw.random() < 0.2:
                one.check()
    one.check()
    return short


def fails(db: dlog.Database, rows: Iterable[tuple[str, str, tuple[int, int]]]) -> bool:
    try:
        with db.transaction() as tx:
            for op, name, given in rows:
                change(tx, op, name, given)
    except dlog.errors.DlogError:
        return True
    return False


@pytest.mark.parametrize("kind", RULES)
def test_oracle_one_row(kind: str) -> None:
    short = same_as_deltas(RULES[kind], random.Random(kind), 60, 1)
    assert sum(short) > 30, kind


@pytest.mark.parametrize("kind", RULES)
def test_oracle_steps(kind: str) -> None:
    same_as_deltas(RULES[kind], random.Random(kind), 30, 4)


def graphs(db: dlog.Database) -> list[GraphTrigger]:
    return [t for t in db._maintenance.triggers.values() if isinstance(t, GraphTrigger)]


def test_a_row_takes_one_call() -> None:
    db = dlog.Database(source=DECLARED + RULES["one row of the head each"], strategy=GRAPH)
    db.apply(insert={"user": [(1, 5)], "retweet": [(9, 70)]})
    for t in (70, 71, 72):
        db.apply(insert={"tweet": [(1, t)]})
    assert [type(t) for t in graphs(db)] == [OneGraphTrigger]
    db.apply(insert={"retweet": [(8, 71)]})
    assert sorted(db["far"].rows()) == [(1, 5, 70, 9), (1, 5, 71, 8)]


def test_more_rows_than_there_is_room_for() -> None:
    """The output of a graph grows, and a head that is too large for its kernel takes the other path."""
    n = 3000
    for text in (RULES["one row of the head each"], RULES["derivations are counted"]):
        db = dlog.Database(source=DECLARED + text, strategy=GRAPH)
        db.apply(insert={"user": [(1, 5)], "retweet": [(w, 70) for w in range(n)]})
        db.apply(insert={"tweet": [(2, 70)]})
        for _ in range(2):
            db.apply(insert={"tweet": [(1, 70)]})
            assert len(db["far"]) == n
            db.apply(erase={"tweet": [(1, 70)]})
            assert len(db["far"]) == 0
        db.check()


def test_a_count_takes_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The groups of a count are changed at once, without the general heads."""
    db = dlog.Database(source=DECLARED + RULES["sums"], strategy=GRAPH)
    db.apply(insert={"user": [(1, 5), (2, 5)]})
    db.apply(insert={"tweet": [(1, 70)]})
    monkeypatch.setattr(small_transaction, "_carry_on", None)
    db.apply(insert={"tweet": [(2, 71)]})
    db.apply(erase={"tweet": [(1, 70)]}, insert={"tweet": [(1, 72)]})  # a pair
    assert list(db["far"].rows()) == [(5, 2)]
    db.apply(erase={"user": [(1, 5)]})
    assert list(db["far"].rows()) == [(5, 1)]
    db.check()


@pytest.mark.parametrize("value", [7, -7, 2**31 - 1, 2**31, -(2**31), 2**55, -(2**55)])
def test_an_assignment_counts_as_often_as_it_comes(value: int) -> None:
    """A user with many tweets is one row of the graph; the sum is exact, whatever its size."""
    text = """
        user(u, v) -> int(u), int(v). tweet(u, t) -> int(u), int(t).
        total[v] = s <- agg<<s = sum(v)>> user(u, v), tweet(u, t).
        tweets[v] = n <- agg<<n = count()>> user(u, v), tweet(u, t).
    """
    db = dlog.Database(source=text, strategy=GRAPH)
    db.apply(insert={"tweet": [(u, t) for u in range(4) for t in range(60 * u)]})
    for u, n in ((1, 60), (2, 120), (3, 180), (2, 120)):
        db.apply(insert={"user": [(u, value)]})
        assert db["total"].rows() == [(value, value * n)] and db["tweets"].rows() == [(value, n)]
        db.apply(insert={"tweet": [(u, 1000)]}, erase={"tweet": [(u, 0)]})
        db.apply(erase={"tweet": [(u, 1000)]}, insert={"tweet": [(u, 0)]})
        db.apply(erase={"user": [(u, value)]})
        assert not db["total"].rows()
    assert all(graph.is_weighted for t in graphs(db) if t.name == "user" for graph in t.graphs)
    db.check()


@pytest.mark.parametrize("strategy", [GRAPH, "delta", "views", "trace"])
def test_a_second_value_is_refused_before_anything_changes(strategy: str) -> None:
    """By the kernel, for one row and for several; also for a function without keys."""
    text = """
        made[t] = u -> int(t), int(u). last[] = t -> int(t). seen(u, t) <- made[t] = u, !gone(t).
        n[u] = c <- agg<<c = count()>> made[t] = u. both(t, u) <- last[] = t, made[t] = u. gone(t) -> int(t).
    """
    db = dlog.Database(source=text, strategy=strategy)
    db.apply(insert={"made": [(t, t % 3) for t in range(200)], "last": [(5,)]})
    for t in (300, 301):
        db.apply(insert={"made": [(t, 1)]})
    for rows in ([(7, 2)], [(400, 1), (7, 2)], [(401, 1), (401, 2)], [(7, 0), (300, 1), (9, 9)]):
        before = state(db)
        with pytest.raises(dlog.errors.DlogError):
            db.apply(insert={"made": rows})
        assert state(db) == before
    with pytest.raises(dlog.errors.DlogError):
        db.apply(insert={"last": [(6,)]})
    db.apply(insert={"made": [(7, 1), (402, 1)]})  # the first is there
    db.apply(insert={"made": [(7, 1)]})
    db.apply(upsert={"made": [(7, 2)], "last": [(7,)]})
    assert sorted(db["both"].rows()) == [(7, 2)] and len(db["made"]) == 203
    db.check()
    db.verify()


def test_steps_are_undone_together() -> None:
    text = RULES["derivations are counted"] + "\nretweet(w, t) -> w < 100."
    db = dlog.Database(source=DECLARED + text, strategy=GRAPH)
    db.apply(insert={"user": [(1, 5), (2, 5)], "tweet": [(1, 70)], "retweet": [(9, 70)]})
    before = state(db)
    for _ in range(3):
        with pytest.raises(dlog.errors.ConstraintError), db.transaction() as tx:
            tx.insert("tweet", [(2, 70)])
            tx.erase("user", [(1, 5)])
            tx.insert("retweet", [(100, 70)])
        assert state(db) == before
        db.check()
    db.apply(insert={"tweet": [(2, 70)]})
    db.apply(erase={"tweet": [(1, 70)]})
    assert sorted(db["far"].rows()) == [(5, 9)]
    db.check()


def test_a_row_that_changes_nothing() -> None:
    db = dlog.Database(source=DECLARED + RULES["columns are hidden"], strategy=GRAPH)
    for _ in range(3):
        for op, given in (("+", (1, 2)), ("+", (1, 2)), ("-", (3, 3))):
            with db.transaction() as tx:
                change(tx, op, "tweet", given)
            db.check()
    with db.transaction() as tx:
        tx.insert("tweet", [(1, 2)])
        tx.insert("user", [(1, 5)])
        tx.erase("retweet", [(1, 1)])
    assert list(db["far"].rows()) == [(5,)]
    db.check()


def test_changes_of_a_head_that_is_not_stored() -> None:
    """A subscriber gets what a stored head would have gained and lost."""
    draw = random.Random(4)
    text = DECLARED + RULES["one row of the head each"]
    db = dlog.Database(source=text + "\n.materialize far changes", strategy=GRAPH)
    stored = dlog.Database(source=text, strategy="delta")
    got: list[Any] = []
    db.subscribe("far", got.append)
    for _ in range(150):
        op, name, given = draw.choice("++-"), draw.choice(NAMES), row(draw)
        before = set(stored["far"].rows())
        for each in (db, stored):
            with each.transaction() as tx:
                change(tx, op, name, given)
        after = set(stored["far"].rows())
        found = [(set(c.inserted.rows()), set(c.erased.rows())) for c in got]
        assert found == ([(after - before, before - after)] if after != before else [])
        got.clear()
    assert any(isinstance(t, OneGraphTrigger) for t in graphs(db))
    assert set(db["far"].rows()) == set(stored["far"].rows())
    db.check()


def test_a_row_that_replaces_another() -> None:
    """Rows of a function with equal keys, one erased and one inserted, go to the graph as pairs."""
    text = """
    of[t] = u -> int(t), int(u). made[t] = d -> int(t), int(d). user(u, g) -> int(u), int(g).
    far(g, t, d) <- of[t] = u, made[t] = d, user(u, g).
    """
    one, other = (dlog.Database(source=text, strategy=way) for way in (GRAPH, "delta"))
    draw = random.Random(5)
    for db in (one, other):
        db.apply(insert={"user": [(u, u % 3) for u in range(5)], "of": [(t, t % 5) for t in range(40)]})
        db.apply(insert={"made": [(t, 1) for t in range(40)]})
    for _ in range(40):
        name = draw.choice(("of", "made"))
        some = draw.sample(range(40), draw.choice((1, 3, 12)))
        old = dict(one[name].rows())
        new = {t: draw.randrange(5) for t in some}
        for db in (one, other):
            db.apply(insert={name: list(new.items())}, erase={name: [(t, old[t]) for t in some]})
        assert state(one) == state(other)
        one.check()
    with pytest.raises(dlog.errors.DlogError):
        one.apply(insert={"of": [(0, 1), (0, 2)]}, erase={"of": [(0, dict(one["of"].rows())[0])]})
    one.check()
    assert state(one) == state(other)


ERRORS = [dlog.errors.LimitError("injected"), dlog.errors.Interrupted("injected"), KeyboardInterrupt()]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("kind", ["one row of the head each", "a self-join", "several strata", "sums"])
def test_faults_when_kernels_return(kind: str, error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a graph has changed, its kernel fails: nothing has happened."""
    draw = random.Random(f"{kind} {error}")
    one, other = (dlog.Database(source=DECLARED + RULES[kind], strategy=way) for way in (GRAPH, "delta"))
    failed = 0
    for _ in range(40):
        rows = [(draw.choice("++-"), draw.choice(NAMES), row(draw)) for _ in range(draw.choice((1, 1, 3)))]
        if draw.random() < 0.5:
            with monkeypatch.context() as patch:
                inject(patch, one, draw.choice((0, 0, 1)), error)
                before = state(one)
                try:
                    with one.transaction() as tx:
                        for op, name, given in rows:
                            change(tx, op, name, given)
                except (dlog.errors.DlogError, KeyboardInterrupt):
                    failed += 1
                else:
                    fails(other, rows)
                    before = state(other)
            assert state(one) == before
        else:
            for db in (one, other):
                assert not fails(db, rows)
        assert state(one) == state(other)
        one.check()
    assert failed


def inject(patch: pytest.MonkeyPatch, db: dlog.Database, after: int, error: BaseException) -> None:
    """Kernels that change graphs raise an error when they have returned so many times.  Undoing does not
    fail: it has memory of its own."""
    own = {id(graph.few.graph) for trigger in graphs(db) for graph in trigger.graphs}
    left, run = [after], JoinGraph.run

    def failing_run(graph: JoinGraph, *arguments: Any) -> None:
        changes = arguments[0] is change_rows and graph.words[at.G_RESERVE] and id(graph) in own
        (failing(run) if changes else run)(graph, *arguments)

    def failing(kernel: Any) -> Any:
        def call(*arguments: Any) -> Any:
            result = kernel(*arguments)
            if result is not None and result < 0:  # nothing has changed
                return result
            left[0] -= 1
            if left[0] < 0:
                raise error
            return result

        return call

    for trigger in graphs(db):
        if isinstance(trigger, OneGraphTrigger):
            patch.setattr(trigger, "fire_one", failing(trigger.fire_one))
        for graph in trigger.graphs:
            patch.setattr(graph.few, "_kernel", failing(graph.few._kernel))
    patch.setattr(JoinGraph, "run", failing_run)


def place_and_revoke(times: int) -> None:
    """One row comes and goes, in transactions of one and of two steps: no memory is left in use."""
    text = RULES["one row of the head each"] + "\n.materialize far changes"
    db = dlog.Database(source=DECLARED + text, strategy=GRAPH)
    db.subscribe("far", lambda change: None)
    db.apply(insert={"user": [(u, 5) for u in range(50)], "retweet": [(w, 70 + w % 2) for w in range(50)]})
    for t in (60, 61):
        db.apply(insert={"tweet": [(1, t)]})

    def turn() -> None:
        db.apply(insert={"tweet": [(2, 70)]})
        db.apply(insert={"tweet": [(2, 71)]}, erase={"tweet": [(2, 70)]})
        db.apply(erase={"tweet": [(2, 71)]})

    for _ in range(100):
        turn()
    used, before = db.memory(), db.store.arena.usage()
    for _ in range(times):
        turn()
    after = db.store.arena.usage()
    assert db.memory() == used
    assert after.used_words <= before.used_words * 1.1 and after.reserved_words <= before.reserved_words * 1.1
    assert all(len(graph.few.graph.applied) < 4 for trigger in graphs(db) for graph in trigger.graphs)
    db.check()


def test_place_and_revoke() -> None:
    place_and_revoke(500)


@pytest.mark.fuzz
def test_fuzz_place_and_revoke() -> None:
    place_and_revoke(333_334)


def test_snapshots_branches_and_a_folder(tmp_path: Path) -> None:
    program = tmp_path / "program.dl"
    program.write_text(DECLARED + RULES["derivations are counted"])
    db = dlog.Database(tmp_path / "db", program=program, strategy=GRAPH, durability="none")
    db.apply(insert={"user": [(1, 5)], "tweet": [(1, 70), (1, 71)]})
    db.apply(insert={"retweet": [(9, 70)]})
    view = db.snapshot()
    db.branch("other")
    db.apply(insert={"retweet": [(8, 71)]})
    db.checkout("other")
    db.apply(erase={"retweet": [(9, 70)]})
    assert list(db["far"].rows()) == []
    db.checkout("main")
    assert sorted(db["far"].rows()) == [(5, 8), (5, 9)]
    db.apply(erase={"retweet": [(9, 70)]})
    assert list(view["far"].rows()) == [(5, 9)] and list(db["far"].rows()) == [(5, 8)]
    db.check()
    db.close()
    again = dlog.Database(tmp_path / "db", strategy=GRAPH, durability="none")
    again.apply(insert={"retweet": [(7, 70)]})
    again.apply(insert={"retweet": [(6, 70)]})
    assert sorted(again["far"].rows()) == [(5, 6), (5, 7), (5, 8)]
    again.check()
    again.close()
