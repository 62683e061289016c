"""Records in a folder: reopened, read at earlier versions, branched, merged, checkpointed, collected."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.durable.dump import check
from dlog.storage.dictionary.records.table import RecordTable
from tests.engine.followed import apply
from tests.engine.machine import contents as rows_of
from tests.engine.test_record_collection import SOURCE, contents
from tests.examples import relaxed
from tests.oracle.accepted import accepted
from tests.oracle.changes import apply_all, transactions
from tests.oracle.compare import same_program
from tests.oracle.naive import base_facts, evaluate_base
from tests.oracle.records import record_programs


def step(db: dlog.Database, rng: random.Random) -> None:
    """A few rows more, and later a few less."""
    edge = (rng.randrange(6), rng.randrange(6) + 1)
    box = dlog.Branch("Boxed", (rng.randrange(3), (rng.randrange(3), None)))
    db.apply(insert={"e": [edge], "b": [((rng.randrange(3), (rng.randrange(4), None)), box)]})
    rows = db["b"].rows()
    if len(rows) > 4:
        db.apply(erase={"b": rows[:2], "e": db["e"].rows()[:1]})


@pytest.mark.parametrize("seed", range(4))
def test_versions_branches_and_checkpoints(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    db = dlog.Database(tmp_path / "db", source=SOURCE)
    states = {}
    for _ in range(8):
        step(db, rng)
        states[db.version] = contents(db)
        if rng.random() < 0.3:
            db.collect()

    def check_past() -> None:
        for version, expected in states.items():
            view = db.at(version)
            assert {name: view[name].rows() for name in expected} == expected

    check_past()
    db.branch("other")
    step(db, rng)
    db.checkout("other")
    step(db, rng)
    other = contents(db)
    db.checkout("main")
    now = contents(db)
    numbers = db.store.dictionary.records.numbers
    db.close()

    db = dlog.Database(tmp_path / "db")
    assert contents(db) == now and db.store.dictionary.records.numbers >= numbers
    check_past()
    db.checkout("other")
    assert contents(db) == other
    db.checkout("main")
    db.checkpoint()
    db.store.dictionary.records.check()
    step(db, rng)
    db.collect()
    step(db, rng)
    now = contents(db)
    db.verify()
    db.close()

    db = dlog.Database(tmp_path / "db")
    assert contents(db) == now
    db.checkout("other")
    assert contents(db) == other
    db.checkout("main")
    db.merge("other")
    db.verify()
    now = contents(db)
    db.close()
    assert "sound" in check(tmp_path / "db")
    with dlog.Database(tmp_path / "db") as db:
        assert contents(db) == now


def test_a_checkpoint_leaves_no_garbage_in_the_folder(tmp_path: Path) -> None:
    db = dlog.Database(tmp_path / "db", source=SOURCE)
    for number in range(200):
        row = ((number, (number, None)), dlog.Branch("Nothing"))
        db.apply(insert={"b": [row]})
        db.apply(erase={"b": [row]})
    db.collect()
    assert len(db.store.dictionary.records) >= 400  # versions of the log have them
    db.checkpoint()
    assert len(db.store.dictionary.records) == 0
    db.close()
    with dlog.Database(tmp_path / "db") as db:
        assert len(db.store.dictionary.records) == 0
        db.apply(insert={"b": [((1, None), dlog.Branch("Boxed", (1, None)))]})
        assert db["h"].rows() == [(dlog.Branch("Boxed", (1, (1, None))),)]


def test_undeclared_functions_of_records_are_reopened(tmp_path: Path) -> None:
    source = """
        .type List = [head: number, tail: List]
        .decl p(l: List, x: number)
        f[l] = n <- agg<<n = count()>> p(l, _).
        g[x] = l <- p(l, x).
        k[3] = [1, nil].
        z(l) <- k[_] = l, p(l, _).
    """
    with dlog.Database(tmp_path / "db", source=source) as db:
        db.execute("+p([1, nil], 2).")
    with dlog.Database(tmp_path / "db") as db:
        assert db["f"].rows() == [((1, None), 1)] and db["g"].rows() == [(2, (1, None))]
        db.execute("^k[3] = nil.")
        assert db["k"].rows() == [(3, None)]


def test_oracle_random_programs_in_folders(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Collected after each commit; reopened, checkpointed, or read at all earlier versions in between."""
    monkeypatch.setattr(RecordTable, "may_be_garbage", True)

    @relaxed(20)
    @given(st.data(), record_programs())
    def run(data: st.DataObject, text: str) -> None:
        program = accepted(text)
        base = base_facts(program)
        folder, versions = tmp_path_factory.mktemp("random") / "db", {}
        db = dlog.Database(folder, source=text, durability="none")
        for transaction in data.draw(transactions(program, 6, 4)):
            apply_all(base, transaction)
            versions[db.version + 1] = expected = evaluate_base(program, base)
            apply(db, transaction)
            same_program(rows_of(db), expected, program)
            what = data.draw(st.sampled_from(["reopen", "checkpoint", "look back", "nothing"]))
            if what == "reopen":
                db.close()
                db = dlog.Database(folder, durability="none")
                same_program(rows_of(db), expected, program)
                db.store.dictionary.records.check()
            elif what == "checkpoint":
                db.checkpoint()
                versions = {}
            elif what == "look back":
                for version, earlier in versions.items():
                    view = db.at(version)
                    same_program({name: view[name].rows() for name in view.predicates()}, earlier, program)
        db.check()
        db.close()

    run()
