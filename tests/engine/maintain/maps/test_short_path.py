"""The short path of strata that keep maps: the answers of deltas, after every transaction of a few rows and
after those that are taken back.
"""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import dlog
from dlog.engine import database
from dlog.engine.commit.commits import Commit
from dlog.engine.maintain.maintain import maintain
from dlog.engine.maintain.views.keep import ViewStrategy
from dlog.errors import DlogError, Interrupted
from tests.engine.machine import went_short

DECLARED = """
sales(s, p, q) -> int(s), int(p), int(q).
shop(s, r) -> int(s), int(r).
product(p, c) -> int(p), int(c).
"""
BODY = "sales(s, p, q), shop(s, r), product(p, c)."
PROGRAMS = {
    "group sums": "total[r, c] = t <- agg<<t = sum(q)>> " + BODY,
    "two heads": "total[r, c] = t, many[r, c] = n <- agg<<t = sum(q), n = count()>> " + BODY,
    "a total": "total[] = t <- agg<<t = sum(q)>> " + BODY,
    "another order": "total(t, 7, c, n, r) <- agg<<t = sum(q * c), n = count()>> " + BODY,
    "itself": "total[p] = n <- agg<<n = count()>> sales(s, p, q), sales(s, r, q), shop(s, c).",
    "a product of sums": "total[r] = t <- agg<<t = sum(q + c)>> " + BODY,
    "many sums": "total[r, c] = t, many[r, c] = n <- agg<<t = sum(q + c + q * c), n = sum(s - q)>> " + BODY,
    "decimals": """total[r] = t <- agg<<t = sum(d)>> sales(s, p, q), shop(s, r), price(p, d).
        price(p, d) -> int(p), decimal[9, 2](d). price(1, 0.25). price(2, 1.5). price(3, 0.75).""",
    "finer decimals": """total[r, e] = t, many[r, e] = n <- agg<<t = sum(d * q), n = count()>>
        sales(s, p, q), shop(s, r), price(p, d), kind(p, e).  kind(0, 0.5). kind(1, 0.5).
        price(p, d) -> int(p), decimal[9, 2](d). price(1, 0.25). price(2, 1.5). price(3, 0.75).
        total[r, e] = t -> int(r), decimal[9, 2](e), decimal[15, 5](t).
        kind(p, e) -> int(p), decimal[9, 2](e).""",
    "one key of two": "total[r] = t <- agg<<t = count()>> sales(s, p, q), shop(s, r), product(p, r).",
}
# Something follows from heads, or rows take the general path.
READ = {
    "read": PROGRAMS["group sums"] + " big(r) <- total[r, c] = t, t > 9.",
    "constrained": PROGRAMS["group sums"] + " total[r, c] = t -> t < 80.",
    "read twice": PROGRAMS["two heads"] + " both(r, t, n) <- total[r, c] = t, many[r, c] = n, shop(c, r)."
    " total[r, c] = t, many[r, c] = n -> t < 99, n < 20.",
    "read by views": PROGRAMS["group sums"] + " whole[r] = t <- agg<<t = sum(x * y)>> total[r, c] = x,"
    " price(c, y). price(c, y) -> int(c), int(y). price(0, 3). price(1, 2).",
    "coarser decimals": """total[r] = t <- agg<<t = sum(d)>> sales(s, p, q), shop(s, r), price(p, d).
        total[r] = t -> int(r), decimal[9, 1](t).
        price(p, d) -> int(p), decimal[9, 2](d). price(1, 0.25). price(2, 1.5).""",
    "functional": "total[r] = t <- agg<<t = sum(q)>> sales(s, p, q), place[s] = r, product(p, c)."
    " place[s] = r -> int(s), int(r). place[0] = 1. place[1] = 2.",
}
# By levels of maps, with aggregates that are absorbed; with the number of steps that take the short path.
LEVELS = {
    "above the sum": (
        "top[s] = t <- agg<<t = sum(q)>> sales(s, p, q), x = sum c : {product(_, c)}, q > x.",
        50,
    ),
    "rows": ("top(s, p) <- sales(s, p, q), x = count : {shop(_, r), r < s}, q > x, !product(p, s).", 50),
    "two sums": (
        "top[s] = t, many[s] = n <- agg<<t = sum(q), n = count()>> sales(s, p, q), shop(r, q), r < p.",
        50,
    ),
    "sums of decimals": (
        "top[s] = t <- agg<<t = sum(d)>> sales(s, p, q), price(p, d), x = sum c : {product(_, c)}, q > x."
        " price(p, d) -> int(p), decimal[9, 2](d). price(1, 0.25). price(2, 1.5).",
        50,
    ),
    "rows of decimals": (
        "top(s, d) <- sales(s, p, q), price(p, d), x = count : {shop(_, r), r < s}, q > x."
        " price(p, d) -> int(p), decimal[9, 2](d). price(1, 0.25). price(2, 1.5).",
        50,
    ),
    "absorbed and read": (
        "top(s) <- sales(s, _, q), x = count : {shop(_, r), r < s}, q > x.  two(s) <- top(s), product(s, _).",
        0,
    ),
}
FACTS = {
    "sales": [(s, p, q) for s in range(4) for p in range(4) for q in (1, 5)],
    "shop": [(s, s % 2) for s in range(5)],
    "product": [(p, p % 3) for p in range(5)],
}


def loaded(program: str, strategy: str, jobs: int = 1) -> dlog.Database:
    db = dlog.Database(source=DECLARED + program, strategy=strategy, jobs=jobs)
    db.apply(insert={name: np.array(rows) for name, rows in FACTS.items()})
    db.apply(insert={"sales": [(3, 3, 9)]})  # triggers are made by what follows
    return db


def contents(db: Any) -> dict[str, list[Any]]:
    """Of what the user named."""
    return {name: db[name].rows() for name, p in db.program.predicates.items() if not p.auxiliary}


def change(rng: random.Random, db: dlog.Database, most: int) -> list[tuple[str, str, tuple[int, ...]]]:
    """Some rows that come and go, in one or several steps."""
    steps = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        name = rng.choice(("sales", "sales", "shop", "product"))
        there = db[name].rows()
        n = rng.choice((1, 1, 1, most))
        if there and rng.random() < 0.45:
            steps += [("erase", name, row) for row in rng.sample(there, min(len(there), n))]
        else:
            width = len(FACTS[name][0])
            steps += [("insert", name, tuple(rng.randrange(6) for _ in range(width))) for _ in range(n)]
    return steps


def enter(db: dlog.Database, steps: list[tuple[str, str, tuple[int, ...]]]) -> Commit:
    with db.transaction() as tx:
        for what, name, row in steps:
            getattr(tx, what)(name, [row])
    assert tx.commit_info is not None
    return tx.commit_info


def reported(commit: Commit, predicate: str) -> tuple[list[Any], list[Any]]:
    change = commit.changes.get(predicate)
    return ([], []) if change is None else (change.inserted.rows(), change.erased.rows())


@pytest.mark.parametrize("jobs", [1, 2, 3])
@pytest.mark.parametrize("name", [*PROGRAMS, *READ])
def test_differential_random_rows(name: str, jobs: int) -> None:
    rng = random.Random(name)
    db, other = loaded((PROGRAMS | READ)[name], "views", jobs), loaded((PROGRAMS | READ)[name], "delta")
    short = 0
    for step in range(80):
        held, before = db.snapshot(), contents(db)
        steps = change(rng, db, most=4)
        try:
            commit = enter(other, steps)
        except dlog.ConstraintError:
            with pytest.raises(dlog.ConstraintError):
                enter(db, steps)
            assert contents(db) == before
            continue
        found = enter(db, steps)
        short += went_short(found)
        for predicate in ("total", "sales"):
            assert reported(found, predicate) == reported(commit, predicate)
        assert contents(db) == contents(other), step
        assert contents(held) == before
        db.check()
    db.verify()
    if name in (*PROGRAMS, "read", "constrained"):
        assert short > 50


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("name", LEVELS)
def test_differential_levels(name: str, jobs: int) -> None:
    """The same where aggregates in conditions are absorbed: they are stale until something reads them."""
    rng = random.Random(name)
    program, least = LEVELS[name]
    db, other = loaded(program, "multilevel", jobs), loaded(program, "delta")
    assert {s.way for s in db._maintenance.strategies.values()} >= {"multilevel"}
    short, before = 0, contents(other)
    for step in range(80):
        steps = change(rng, db, most=3)
        if rng.random() < 0.2:
            refused(db, steps)
            assert contents(db) == before
        commits = enter(db, steps), enter(other, steps)
        short += went_short(commits[0])
        for predicate in ("top", "many"):
            assert reported(commits[0], predicate) == reported(commits[1], predicate)
        before = contents(other)
        assert contents(db) == before, step
        if step % 10 == 0:
            db.check()
    db.verify()
    assert short >= least


@pytest.mark.parametrize("name", PROGRAMS)
def test_differential_batches(name: str) -> None:
    """Batches that are too large for the short path are between the rows."""
    rng = np.random.default_rng(5)
    db, other = (loaded(PROGRAMS[name], way) for way in ("views", "delta"))
    for n in (1, 3000, 1, 1, 900, 1, 40, 2000, 1, 1):
        rows = rng.integers(0, 30, (n, 3))
        gone = db["sales"].rows()[:: max(1, 2 * len(db["sales"]) // n)]
        for each in (db, other):
            each.apply(insert={"sales": rows, "shop": rows[: n // 9, :2]})
            each.apply(erase={"sales": gone})
        assert contents(db) == contents(other)
        db.check()


def refused(db: dlog.Database, steps: list[tuple[str, str, tuple[int, ...]]]) -> None:
    """The commit fails at the last moment."""
    with patch.object(db, "_keep", side_effect=DlogError("refused")), pytest.raises(DlogError):
        enter(db, steps)


@pytest.mark.parametrize("name", [*PROGRAMS, "read", "read twice", "read by views"])
def test_aborted_transactions(name: str) -> None:
    """What is undone does not come back: the maps are as they were."""
    rng = random.Random(name)
    db, other = (loaded((PROGRAMS | READ)[name], way) for way in ("views", "delta"))
    for _ in range(40):
        before = contents(db)
        for _ in range(rng.choice((1, 1, 2))):
            refused(db, change(rng, db, most=3))
            assert contents(db) == before
        steps = change(rng, db, most=3)
        enter(db, steps)
        enter(other, steps)
        assert contents(db) == contents(other)
        db.check()
    strategies = [s for s in db._maintenance.strategies.values() if isinstance(s, ViewStrategy)]
    assert strategies and all(s.ready(db.store) for s in strategies)
    db.verify()


def test_interrupted_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    db = loaded(PROGRAMS["two heads"], "views")

    def interrupt() -> None:
        raise Interrupted("interrupted while changing facts")

    for row in ((3, 4, 1), (4, 4, 2), (0, 2, 3)):
        before = contents(db)
        with monkeypatch.context() as patched:
            patched.setattr(database, "poll", interrupt)
            with pytest.raises(Interrupted):
                db.apply(insert={"sales": [row]})
        assert contents(db) == before
        db.apply(insert={"sales": [row]})
        db.check()
        db.verify()


def test_a_value_that_does_not_fit() -> None:
    """A map overflows in the short path: deltas take over, with the same answers."""
    db, other = (loaded("total[r] = t <- agg<<t = sum(q * q)>> " + BODY, way) for way in ("views", "delta"))
    for q in (3, 2**31, 4, 2**31 + 1, 2**31 + 2, 5):
        results = []
        for each in (db, other):
            try:
                each.apply(insert={"sales": [(0, 1, q)]})
            except DlogError:
                results.append("refused")
            results.append(contents(each))
        assert results[: len(results) // 2] == results[len(results) // 2 :]
        db.check()


NARROW = """price(p, d) -> int(p), decimal[9, 2](d). price(1, 0.25). price(2, 100.5). price(7, 9999.5).
total[r] = t -> int(r), decimal[6, 2](t).
total[r] = t <- agg<<t = sum(d)>> sales(s, p, q), shop(s, r), price(p, d)."""
WHOLE_RANGE = "total[r] = t <- agg<<t = sum(q + c * 1000000000)>> " + BODY


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("program", [NARROW, WHOLE_RANGE], ids=["decimals", "ints"])
def test_a_sum_that_does_not_fit_its_column(program: str, jobs: int) -> None:
    """The decimal is too large for the head, or two sums that fit have a sum that does not: the answers, and
    the messages, are those of deltas."""
    db, other = loaded(program, "views", jobs), loaded(program, "delta")
    for p, q in ((1, 1), (2, 9 * 10**18), (1, 2), (7, 9 * 10**17), (2, 9 * 10**17), (1, 3), (2, 5)):
        said = []
        for each in (db, other):
            try:
                each.apply(insert={"sales": [(77, p, q)], "shop": [(77, 77)]})
            except DlogError as error:
                said.append(error.message)
            else:
                said.append("")
        assert said[0] == said[1] and contents(db) == contents(other)
        db.check()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_row_that_changes_many_groups(jobs: int) -> None:
    """They have no room: the row takes the general path."""
    program = "total[s] = n <- agg<<n = sum(c)>> sales(s, p, q), product(p, c)."
    db, other = loaded(program, "views", jobs), loaded(program, "delta")
    for each in (db, other):
        each.apply(insert={"sales": np.array([(s, s % 2, 1) for s in range(5000)])})
        for row in ((0, 7), (1, 8), (2, 9), (0, 9)):
            each.apply(insert={"product": [row]})
            each.apply(insert={"sales": [(7, 2, row[1])]})
            each.apply(erase={"product": [row]})
        each.apply(insert={"product": [(1, 5)]})
    assert contents(db) == contents(other)
    db.check()


def test_one_row_on_several_machines_takes_no_general_path(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("group sums", "a total", "a product of sums", "decimals"):
        db = loaded(PROGRAMS[name], "views", 2)
        db.apply(insert={"sales": [(1, 1, 7)]})
        with monkeypatch.context() as patched:
            patched.setattr("dlog.engine.database.maintain", fail)
            commits = [enter(db, [(what, "sales", (1, 1, 8))]) for what in ("insert", "erase")]
        assert all(map(went_short, commits)), name
        (maps,) = {s.shared.maps for s in db._maintenance.strategies.values() if isinstance(s, ViewStrategy)}
        assert maps is not None and maps.runtime._parts is not None, name
        db.check()


def test_one_row_takes_no_general_path(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, program in PROGRAMS.items():
        db = loaded(program, "views")
        db.apply(insert={"sales": [(1, 1, 7)]})
        with monkeypatch.context() as patched:
            patched.setattr("dlog.engine.database.maintain", fail)
            commits = [enter(db, [(what, "sales", (1, 1, 8))]) for what in ("insert", "erase")]
            commits.append(enter(db, [("erase", "sales", (1, 1, 1)), ("insert", "sales", (1, 1, 2))]))
        assert all(map(went_short, commits)), name
        heads = [n for n in ("total", "many") if n in db.program.predicates]
        assert {name: commits[0].ways[name] for name in heads} == dict.fromkeys(heads, "views")
        assert commits[0].costs[heads[0]] >= 2
        db.check()


def fail(*_: Any, **__: Any) -> None:
    raise AssertionError(f"{maintain.__name__} was called")
