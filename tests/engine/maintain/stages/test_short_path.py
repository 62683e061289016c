"""The short path of a recursion: the same answers as evaluation from scratch, and one kernel call."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import dlog
from dlog.engine import database
from dlog.engine.maintain.stages import short_path
from dlog.engine.maintain.stages.keep import StageStrategy
from dlog.errors import DlogError, Interrupted

NAMED = " named(x) -> int(x)."
ODD = "odd(x, y) <- edge(x, y).  odd(x, z) <- even(x, y), edge(y, z)."
REACH = "reach(x, y) <- edge(x, y).  reach(x, z) <- reach(x, y), edge(y, z)."
PROGRAMS = {
    "reach": REACH,
    "farthest": REACH + " farthest[x] = d <- agg<<d = max(y)>> reach(x, y).",
    "counted": REACH + " n[x] = k <- agg<<k = count()>> reach(x, _).  far(x) <- n[x] = k, k > 3.",
    "joined": REACH + " both(x, y) <- reach(x, y), named(y).  lone(x) <- both(x, y), !named(x)." + NAMED,
    "two ways": ODD + " even(x, z) <- odd(x, y), edge(y, z).",
    "a loop": "on(x) <- start(x).  on(y) <- on(x), edge(x, y), edge(y, _).  start(0).  start(1).",
    "guarded": REACH.replace("edge(y, z)", "edge(y, z), !shut(y)") + " shut(x) -> int(x).",
    "two recursions": REACH + " again(x, y) <- reach(x, y).  again(x, z) <- again(x, y), reach(z, y).",
}
DECLARED = "edge(x, y) -> int(x), int(y).  "


def _database(name: str) -> dlog.Database:
    db = dlog.Database(source=DECLARED + PROGRAMS[name] + " edge(0, 1).  edge(1, 2).")
    with db.transaction() as tx:  # the stages are made
        tx.insert("edge", [(2, 3), (7, 8)])
    return db


def _contents(db: Any) -> dict[str, list[Any]]:
    return {name: db[name].rows() for name in db.program.predicates}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("kind", ["forest", "graph"])
def test_oracle_random_edges(name: str, kind: str) -> None:
    """Edges that come and go, one or a few at a time, with snapshots and subscribers on the way."""
    rng, db = random.Random(f"{name} {kind}"), _database(name)
    told: list[Any] = []
    head = next(p for p in db.program.predicates if p not in ("edge", "named", "shut", "start"))
    db.subscribe(head, lambda change: told.append((change.inserted.rows(), change.erased.rows())))
    known = set(db[head].rows())
    for step in range(60):
        held, before = db.snapshot(), _contents(db)
        edges = db["edge"].rows()
        if edges and rng.random() < 0.45:
            db.apply(erase={"edge": rng.sample(edges, min(len(edges), rng.choice((1, 1, 1, 3))))})
        else:
            y = rng.randrange(1, 10)
            x = rng.randrange(y) if kind == "forest" else rng.randrange(10)
            rows = [(x, y)] if rng.random() < 0.8 else [(x, y), (rng.randrange(10), rng.randrange(10))]
            db.apply(insert={"edge": rows})
        for side in ("named", "shut"):
            if side in db.program.predicates and step % 5 == 0:
                db.apply(insert={side: [(rng.randrange(10),)]})
            if side in db.program.predicates and step % 7 == 0:
                db.apply(erase={side: [(rng.randrange(10),)]})
        db.check()
        db.verify()
        assert _contents(held) == before
        for inserted, erased in told:
            known = (known - set(erased)) | set(inserted)
        told.clear()
        assert known == set(db[head].rows())


@pytest.mark.parametrize("name", ["reach", "farthest", "two ways"])
def test_oracle_aborted_transactions(name: str) -> None:
    """What an abort undoes does not come back: neither in the facts nor in their stages."""
    db = _database(name)
    db.add_rules("edge(x, y), x = 9 -> y > 20.")
    rng = random.Random(3)
    for _ in range(40):
        before, x = _contents(db), rng.randrange(9)
        with pytest.raises(DlogError):
            db.apply(insert={"edge": [(x, 9), (9, x)]})
        with pytest.raises(DlogError):
            db.apply(insert={"edge": [(9, x)]})
        assert _contents(db) == before
        db.apply(**{rng.choice(("insert", "erase")): {"edge": [(x, rng.randrange(9))]}})
        db.check()
        db.verify()


def test_oracle_interrupted_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C at the last moment: nothing has happened, and what comes later is right."""
    db = _database("farthest")

    def interrupt() -> None:
        raise Interrupted("interrupted while changing facts")

    for row in ((3, 4), (4, 5), (0, 2)):
        before = _contents(db)
        with monkeypatch.context() as patch:
            patch.setattr(database, "poll", interrupt)
            with pytest.raises(Interrupted):
                db.apply(insert={"edge": [row]})
        assert _contents(db) == before
        db.apply(insert={"edge": [row]})
        db.apply(erase={"edge": [row]})
        db.apply(insert={"edge": [row]})
        db.check()
        db.verify()


@pytest.mark.parametrize("name", ["reach", "farthest"])
def test_one_edge_is_one_kernel_call(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No round is driven from Python, and nothing takes the general path."""
    db = _database(name)
    db.apply(insert={"edge": [(3, 4)]})  # triggers are made
    db.apply(erase={"edge": [(3, 4)]})
    db.apply(insert={"edge": [(3, 4)]})
    calls: list[str] = []
    follow = short_path._follow
    monkeypatch.setattr(short_path, "_follow", lambda *given: calls.append("follow") or follow(*given))
    monkeypatch.setattr(StageStrategy, "apply", lambda *_: calls.append("apply"))
    monkeypatch.setattr(database.Database, "_replace_state", lambda *_: calls.append("general"))
    for change in ("erase", "insert"):
        for row in ((3, 4), (0, 1), (7, 8)):
            commit = db.apply(**{change: {"edge": [row]}})
            assert commit.ways["reach"] == "stages" and commit.costs["reach"] > 0
    assert calls == ["follow"] * 6
    monkeypatch.undo()
    db.check()
    db.verify()


def test_a_long_chain_takes_the_general_path() -> None:
    """A change that is not short is undone and followed as any other."""
    db = dlog.Database(source=DECLARED + REACH)
    db.apply(insert={"edge": [(i, i + 1) for i in range(300)]})
    for change in ("erase", "insert", "erase"):
        db.apply(**{change: {"edge": [(150, 151)]}})
        db.check()
        db.verify()


@pytest.mark.parametrize("n", [500, 1500, 2000, 4000, 6000])
def test_changes_stay_inside_their_array(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that changes n facts: as many as fit are written, and more take the general path."""
    db = dlog.Database(source=DECLARED + REACH)
    db.apply(insert={"edge": [(0, 1), *((1, i) for i in range(2, n + 2))]})
    db.apply(insert={"edge": [(-1, 0)]})  # the stages are made, with room for this many facts
    db.apply(erase={"edge": [(-1, 0)]})
    follow, answers = short_path._follow, list[int]()

    def guarded(*given: Any) -> int:
        *others, out = given
        memory = np.full(len(out) + 10 * n, -7, np.int64)
        answers.append(follow(*others, memory[: len(out)]))
        out[:] = memory[: len(out)]
        assert (memory[len(out) :] == -7).all(), "written behind the end"
        return answers[-1]

    monkeypatch.setattr(short_path, "_follow", guarded)
    for change in ("insert", "erase", "insert"):
        db.apply(**{change: {"edge": [(-1, 0)]}})
        db.check()
        db.verify()
        assert len(db["reach"]) == 2 * n + 1 + (n + 2 if change == "insert" else 0)
    assert answers and (n > 1500 or not any(answers))


def test_attempts_that_fail_become_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every change is too much work, few transactions try the short path; one success ends this."""
    db = dlog.Database(source=DECLARED + REACH)
    db.apply(insert={"edge": [(i, i + 1) for i in range(400)]})
    follow, answers = short_path._follow, list[int]()
    monkeypatch.setattr(short_path, "_follow", lambda *given: answers.append(follow(*given)) or answers[-1])
    for _ in range(40):
        for change in ("erase", "insert"):
            db.apply(**{change: {"edge": [(200, 201)]}})
    assert 2 <= len(answers) <= 14 and all(answers)
    for change in ("erase", "insert") * 40:
        db.apply(**{change: {"edge": [(399, 400)]}})
    assert not any(answers[-40:])
    db.check()
    db.verify()


def test_a_function_of_a_recursion_is_checked() -> None:
    db = dlog.Database(source=DECLARED + REACH + " to[x] = y <- reach(x, y), y > 4.")
    db.apply(insert={"edge": [(0, 1), (1, 5)]})
    db.apply(insert={"edge": [(2, 5)]})
    before = _contents(db)
    with pytest.raises(DlogError):
        db.apply(insert={"edge": [(2, 6)]})
    assert _contents(db) == before
    db.check()
    db.verify()
