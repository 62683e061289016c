"""Choices and numbers in folders: they survive reopening, checkpoints, branches, merging and dumps."""

from __future__ import annotations

import io
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import dlog
from dlog.durable.dump import dump
from tests.engine.remembered import memory_of

PROGRAM = """\
.decl edge(v: number, u: symbol)
.decl tree(v: number, u: symbol) choice-domain u
tree(v, u) :- edge(v, u).
.decl id(u: symbol, i: number)
id(u, autoinc()) :- tree(_, u).
.decl pair(v: number, w: number) choice-domain v, w
pair(v, w) :- pair(_, v), edge(w, _), v != w.
pair(v, w) :- edge(v, _), edge(w, _), v < w.
edge(1, "a"). edge(2, "a"). edge(3, "b").
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    program = tmp_path / "program.dl"
    program.write_text(PROGRAM)
    with dlog.Database(tmp_path / "db", program=program) as db:
        db.execute('-edge(1, "a").')
        db.execute('+edge(1, "a"), +edge(0, "b").')
        db.execute('+edge(5, "c"), +edge(6, "c"), -edge(3, "b").')
    yield tmp_path / "db"


def state(db: dlog.Database) -> object:
    return memory_of(db), {name: db[name].rows() for name in db.predicates()}


def test_reopened_with_and_without_a_checkpoint(folder: Path) -> None:
    with dlog.Database(folder) as db:
        assert db["tree"].rows() == [(0, "b"), (2, "a"), (5, "c")]
        assert db["id"].rows() == [("a", 2), ("b", 3), ("c", 4)]
        before = state(db)
        db.checkpoint()
    with dlog.Database(folder) as db:
        assert state(db) == before
        db.execute('-edge(5, "c").')  # a number that was given is not given again after all
        db.execute('-edge(6, "c").')
    with dlog.Database(folder) as db:
        db.execute('+edge(6, "c").')
        assert db["id"].rows()[-1] == ("c", 6)
        db.check()
        db.verify()


def test_random_transactions_and_reopening(tmp_path: Path) -> None:
    program = tmp_path / "program.dl"
    program.write_text(PROGRAM)
    chance, before = random.Random(5), None
    for round in range(12):
        with dlog.Database(tmp_path / "db", program=program, durability="none") as db:
            if round:
                assert state(db) == before
            for _ in range(4):
                fact = f'edge({chance.randrange(5)}, "{chance.choice("abc")}")'
                db.execute(f"{chance.choice('+-')}{fact}.")
            if chance.random() < 0.3:
                db.checkpoint()
            before = state(db)
            db.verify()


def test_branches_have_choices_of_their_own(folder: Path) -> None:
    with dlog.Database(folder) as db:
        db.branch("other")
        db.execute('-edge(2, "a").')
        here = state(db)
        db.checkout("other")
        assert (2, "a") in db["tree"].rows()
        db.execute('+edge(9, "z").')
        there = state(db)
        db.checkout("main")
        assert state(db) == here
        assert db.at("other")["tree"].rows() == there[1]["tree"]  # type: ignore[index]
    with dlog.Database(folder) as db:
        assert state(db) == here
        db.checkout("other")
        assert state(db) == there
        db.checkout("main")
        db.merge("other")
        assert (1, "a") in db["tree"].rows() and (9, "z") in db["tree"].rows()
        db.verify()
        merged = state(db)
        assert len({i for _, i in db["id"].rows()}) == len(db["id"].rows())
    with dlog.Database(folder) as db:
        assert state(db) == merged


def test_versions_of_the_past(folder: Path) -> None:
    with dlog.Database(folder) as db:
        assert db.at(0)["tree"].rows() == [(1, "a"), (3, "b")]
        assert db.at(1)["tree"].rows() == [(2, "a"), (3, "b")]
        assert db.at(2)["id"].rows() == [("a", 2), ("b", 1)]


def test_rules_that_go_and_come_again(folder: Path) -> None:
    rule = "id(u, autoinc()) :- tree(_, u)."
    with dlog.Database(folder) as db:
        db.remove_rule(rule)
        assert db["id"].rows() == []
    with dlog.Database(folder) as db:
        db.add_rules(rule)
        assert db["id"].rows() == [("a", 6), ("b", 5), ("c", 7)]
        db.add_rules("id(u, autoinc()) :- edge(1, u).")
        before = state(db)
    with dlog.Database(folder) as db:
        assert state(db) == before
        db.check()


def test_a_failed_transaction_gives_no_number(folder: Path) -> None:
    with dlog.Database(folder) as db:
        db.add_rules("edge(v, u) -> v < 10.")
        before = state(db)
        with pytest.raises(dlog.DlogError):
            db.execute('+edge(11, "q").')
        assert state(db) == before
        db.execute('+edge(9, "q").')
        assert ("q", 5) in db["id"].rows()


def test_a_dump_has_the_same_choices(folder: Path, tmp_path: Path) -> None:
    with dlog.Database(folder) as db:
        before = state(db)
    text = io.StringIO()
    dump(folder, "main", None, text)
    assert '_given.tree(2, "a").' in text.getvalue() and "_given.autoinc(5)." in text.getvalue()
    dump(folder, "main", tmp_path / "files", text)
    for again in (
        dlog.Database(source=text.getvalue()),
        dlog.Database(tmp_path / "files" / "program.dl", facts=tmp_path / "files"),
        dlog.Database(tmp_path / "copy", source=text.getvalue()),
    ):
        assert state(again) == before
        again.verify()
        again.execute('+edge(1, "n").')
        assert again["id"].rows()[-1] == ("n", 5)
        assert not any(name.startswith("_given") for name in again.predicates())
        again.close()
    with dlog.Database(tmp_path / "copy") as copied:
        assert copied["id"].rows()[-1] == ("n", 5)
    out = io.StringIO()
    dump(tmp_path / "copy", "main", None, out)
    assert out.getvalue().count("_given.tree(v, u)") == 1


def test_what_is_given_must_fit() -> None:
    with pytest.raises(dlog.DlogError, match=r"_given\.tree does not have the columns"):
        dlog.check(PROGRAM + "_given.tree(1, 2).")
    db = dlog.Database(source=PROGRAM + '_given.tree(2, "a"). _given.tree(9, "b").')
    assert db["tree"].rows() == [(2, "a"), (3, "b")]


def transaction(n: int) -> str:
    """The nth one is a function of n."""
    chance = random.Random(n)
    facts = (f'edge({chance.randrange(5)}, "{chance.choice("abc")}")' for _ in range(chance.randrange(1, 4)))
    return ", ".join(f"{chance.choice('+-')}{fact}" for fact in facts) + "."


def work(folder: str, begun: str) -> None:
    """Commits until it is killed."""
    with dlog.Database(folder, source=PROGRAM, durability="none") as db:
        first = db.version
        while True:
            db.execute(transaction(db.version + 1))
            if db.version == first + 3:
                Path(begun).touch()
            if db.version % 7 == 0:
                db.checkpoint()


def test_killed_again_and_again(tmp_path: Path) -> None:
    """What is there is what as many transactions give in memory, with the same choices and numbers."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.durable.test_durable_choice"])
    expected, versions = dlog.Database(source=PROGRAM), [0]
    for _ in range(3):
        process = context.Process(target=work, args=(str(tmp_path / "db"), str(tmp_path / "begun")))
        process.start()
        while not (tmp_path / "begun").exists():
            assert process.is_alive()
            time.sleep(0.01)
        (tmp_path / "begun").unlink()
        time.sleep(0.05)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        with dlog.Database(tmp_path / "db") as db:
            for n in range(versions[-1] + 1, db.version + 1):
                expected.execute(transaction(n))
            assert state(db) == state(expected)
            db.verify()
            versions.append(db.version)
    assert versions[-1] > 5, "transactions were committed"
