"""Records that nothing uses are collected, no others: versions, snapshots, results, commits keep theirs."""

from __future__ import annotations

import random

import pytest

import dlog
from dlog.storage.dictionary.records.layout import PAGE

SOURCE = """
    .type List = [head: number, tail: List]
    .type Item = Boxed {x: number, l: List} | Nothing {}
    .decl e(x: number, y: number)
    .decl b(l: List, t: Item)
    .decl path(x: number, y: number, p: List)
    path(x, y, [y, [x, nil]]) :- e(x, y).
    path(x, z, [z, p]) :- path(x, y, p), e(y, z), x < y, y < z.
    .decl part(l: List)
    part(l) :- b(l, _).
    part(t) :- part([_, t]).
    n[x] = n <- agg<<n = count_distinct(r)>> e(x, y), r = $Boxed(y, nil).
    .decl h(t: Item)
    h(t) :- b([x, _], $Boxed(x, l)), t = $Boxed(x, [x, l]).
"""
NAMES = ("e", "b", "path", "part", "n", "h")


def contents(db: dlog.Database) -> dict[str, list]:  # type: ignore[type-arg]
    return {name: db[name].rows() for name in NAMES}


def filled(strategy: str | None = None) -> dlog.Database:
    db = dlog.Database(source=SOURCE, strategy=strategy)
    boxes = [((1, (2, (i, None))), dlog.Branch("Boxed", (1, (i, None)))) for i in range(10)]
    db.apply(insert={"e": [(i, i + 1) for i in range(8)], "b": boxes})
    return db


@pytest.mark.parametrize("strategy", [None, "delta", "trace", "views", "multilevel"])
def test_invariant_no_garbage_is_left(strategy: str | None) -> None:
    there_and_back(strategy, 200)


@pytest.mark.fuzz
def test_fuzz_no_garbage_is_left_by_10_000_transactions() -> None:
    there_and_back(None, 5000)


def there_and_back(strategy: str | None, times: int) -> None:
    """Twice as many transactions, half of which take back the others."""
    db, rng = filled(strategy), random.Random(3)
    records = db.store.dictionary.records
    db.collect()
    before, rows, memory = len(records), contents(db), records.memory
    for number in range(times):
        edge = (rng.randrange(10), rng.randrange(10, 12))
        box = ((rng.randrange(100), (number, None)), dlog.Branch("Boxed", (rng.randrange(3), (number, None))))
        db.apply(insert={"e": [edge], "b": [box]})
        if number % 100 == 99:
            db.collect()
            records.check()
        db.apply(erase={"e": [edge], "b": [box]})
    assert contents(db) == rows
    db.verify()
    db.check()
    db.collect()
    records.check()
    assert len(records) == before
    assert records.memory <= memory + 8 * (2 * PAGE + records.numbers // PAGE)
    assert records.numbers > 2 * before


def test_collections_happen_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlog.storage.dictionary.records.table.FEW", 50)
    db = filled()
    records = db.store.dictionary.records
    sizes = []
    for number in range(300):
        box = ((number, None), dlog.Branch("Nothing"))
        db.apply(insert={"b": [box]})
        db.apply(erase={"b": [box]})
        sizes.append(len(records))
    assert max(sizes) < 400 and records.numbers > 300


def test_snapshots_results_and_commits_keep_their_records() -> None:
    db = filled()
    records = db.store.dictionary.records
    expected = contents(db)
    snapshot, result = db.snapshot(), db["part"]
    with db.transaction() as tx:
        tx.erase("b", db["b"].rows())
    erased = tx.commit_info
    assert erased is not None
    changes = erased.changes
    before = len(records)
    db.collect()
    assert len(records) == before
    assert {name: snapshot[name].rows() for name in NAMES} == expected
    assert result.rows() == expected["part"]
    assert erased.changes["part"].erased.rows() == expected["part"]
    del snapshot, result, erased, tx
    db.collect()
    assert changes["b"].erased.rows() == expected["b"]
    del changes
    assert db.collect() > 0
    assert db["part"].rows() == []


def test_open_transactions_keep_their_records() -> None:
    db = filled()
    with db.transaction() as tx:
        tx.insert("b", [((77, (78, None)), dlog.Branch("Nothing"))])
        tx.execute("+b([79, nil], $Boxed(1, [80, nil])).")
        db.collect()
    assert ((77, (78, None)), dlog.Branch("Nothing")) in db["b"].rows()
    assert ((79, None), dlog.Branch("Boxed", (1, (80, None)))) in db["b"].rows()
    db.verify()


def test_nothing_is_collected_during_an_evaluation() -> None:
    from dlog.storage.dictionary.records.uses import in_use

    db = filled()
    with db.transaction() as tx:
        tx.erase("b", db["b"].rows())
    del tx
    with in_use():
        assert db.collect() == 0
    assert db.collect() > 0


def test_branches_keep_their_records() -> None:
    db = filled()
    expected = contents(db)
    db.branch("other")
    db.apply(erase={"b": db["b"].rows(), "e": db["e"].rows()})
    db.collect()
    assert all(rows == [] for rows in contents(db).values())
    db.checkout("other")
    assert contents(db) == expected
    db.verify()
