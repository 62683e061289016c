"""Ropes (maintenance paper, 2.3.3): a change of one piece of a long `concat` reads no other piece and leaves
no old text behind, and whoever reads the result, whenever and however, gets what evaluation from scratch
gives.
"""

from __future__ import annotations

import gc
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import dlog
from dlog.engine.head import aggregate_state
from dlog.errors import ConstraintError
from dlog.storage.relation.deferred import DeferredRelation
from tests.oracle.accepted import accepted
from tests.oracle.naive import base_facts, evaluate_base

TEXT = """
d(g, i, s) -> int(g), int(i), string(s).
h[g] = t <- agg<<t = concat(s)>> d(g, i, s).
"""
Row = tuple[int, int, str]


class Pieces:
    """How many pieces have been read from ropes."""

    def __init__(self) -> None:
        self.n = 0


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pieces]:
    counted, runs = Pieces(), aggregate_state.runs

    def counting(*args: object) -> object:
        rows, bounds = runs(*args)  # type: ignore[arg-type]
        counted.n += len(rows)
        return rows, bounds

    monkeypatch.setattr(aggregate_state, "runs", counting)
    yield counted


def filled(n: int, text: str = TEXT, **options: object) -> dlog.Database:
    """Two groups of n pieces; the first transaction of one row has made the state."""
    db = dlog.Database(source=text, **options)
    db.apply(insert={"d": [(g, 2 * i, f"{i % 10};") for g in range(2) for i in range(n)]})
    db.apply(insert={"d": [(1, 2 * n, "last")]})
    db.apply(erase={"d": [(1, 2 * n, "last")]})
    return db


def joined(rows: set[Row]) -> dict[int, str]:
    groups = defaultdict(list)
    for g, i, s in rows:
        groups[g].append((i, s))
    return {g: "".join(s for _, s in sorted(own)) for g, own in groups.items()}


@pytest.mark.parametrize("n", [1_000, 10_000, 100_000])
def test_a_change_reads_no_piece(pieces: Pieces, n: int) -> None:
    db = filled(n)
    pieces.n = 0
    words = []
    for place in (1, n + 1, 2 * n - 1):
        for sign in ("insert", "erase"):
            commit = db.apply(**{sign: {"d": [(1, place, "new")]}})
            assert commit.operations <= 10
            words.append(db.store.arena.usage().used_words)
    assert pieces.n == 0
    assert max(words) - min(words) <= 20_000, "a change copies some pages, not the group"
    assert len(commit.changes["h"].inserted.rows()[0][1]) == 2 * n
    assert 2 * n <= pieces.n <= 4 * n, "two texts of one group"


def test_two_rows_are_one_change_of_the_text(pieces: Pieces) -> None:
    db = filled(100)
    with db.transaction() as transaction:
        transaction.erase("d", [(1, 4, "2;")])
        transaction.insert("d", [(1, 4, "two;")])
    commit = transaction.commit_info
    assert commit is not None
    change = commit.changes["h"]
    old, new = (result.rows()[0][1] for result in (change.erased, change.inserted))
    assert old.replace("1;2;3", "1;two;3", 1) == new
    db.verify()


def test_a_text_that_stays_the_same_is_no_change() -> None:
    db = filled(100)
    with db.transaction() as transaction:
        transaction.erase("d", [(1, 4, "2;")])
        transaction.insert("d", [(1, 5, "2;")])
    commit = transaction.commit_info
    assert commit is not None and "h" not in commit.changes and list(commit.changes) == ["d"]


@pytest.mark.parametrize("reader", ["nobody", "subscriber", "table", "commit"])
def test_memory_stays_the_same(reader: str) -> None:
    """10,000 changes of a text of 2,000 bytes: the texts would be 20 MB."""
    db, seen = filled(1000), []
    if reader == "subscriber":
        db.subscribe("h", lambda change: seen.append(len(change.inserted.rows()[0][1])))
    dictionary, sizes = db.store.dictionary, []
    changes = 10_000 if reader == "nobody" else 1_000
    for k in range(changes):
        sign = "erase" if k % 2 else "insert"
        commit = db.apply(**{sign: {"d": [(1, 501, "new")]}})
        if reader == "table":
            seen.append(len(dict(db["h"].rows())[1]))
        if reader == "commit":
            seen.append(len(commit.changes["h"].inserted.rows()[0][1]))
        if k % 100 == 99:
            gc.collect()
            stats = db.store.arena.usage()
            sizes.append((len(dictionary), int(dictionary.buffers()[1][len(dictionary)]), stats.used_words))
    assert len(set(sizes[1:])) == 1, "dictionary, its bytes, and the arena"
    assert seen == ([] if reader == "nobody" else [2003, 2000] * (changes // 2))
    db.verify()


def test_what_is_read_seldom_remembers_each_group_once() -> None:
    """A head that is not read for a long time: the list of touched groups follows the groups."""
    db = filled(10)
    for k in range(3000):
        db.apply(**{"erase" if k % 2 else "insert": {"d": [(k // 2 % 7, 3, "new")]}})
    source = db.store.relations["h"].source
    assert sum(map(len, source.touched.parts)) <= 200
    db.verify()


PROGRAMS = {
    "alone": "",
    "read by a rule": "long(g, t) <- h[g] = t, d(_, _, t).\nsame(g, k) <- h[g] = t, h[k] = t, g < k.\n",
    "with other aggregates": "f[g] = t, n[g] = m, c[g] = k <- "
    "agg<<t = concat(s), m = max(s), k = count()>> d(g, i, s).\n",
    "in another order": "f(t, g) <- agg<<t = concat(s)>> d(g, i, s).\n"
    "k(g, t) <- agg<<t = concat(s)>> d(g, i, s), g > 0.\n",
    "of all": "all[] = t <- agg<<t = concat(s)>> d(g, i, s).\n",
    "of pairs": "e[s, g] = t <- agg<<t = concat(s)>> d(g, i, s).\n",
    "with facts": 'm(g, t) <- agg<<t = concat(s)>> d(g, i, s).\nm(2, "fact").\n',
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("seed", range(3))
def test_oracle_texts_read_now_and_then(name: str, seed: int) -> None:
    """Against the naive evaluator: readers come at random, by values, by codes and through snapshots that
    were taken earlier; transactions have some rows, and some of them fail."""
    rng, text = random.Random(seed), TEXT + PROGRAMS[name] + 'd(_, _, s) -> s != "bad".\n'
    db, rows = dlog.Database(source=text), set[Row]()
    program = accepted(text)
    taken: list[tuple[dlog.View, set[Row]]] = []

    def expected(of: set[Row]) -> dict[str, list[tuple[object, ...]]]:
        found = evaluate_base(program, {**base_facts(program), "d": of})
        return {name: sorted(found.get(name, ())) for name in db.predicates()}

    for _ in range(60):
        row = (rng.randrange(3), rng.randrange(6), rng.choice(["a", "b", "ab", "", "é"]))
        more = {(rng.randrange(3), rng.randrange(6), "c") for _ in range(rng.choice([0, 0, 3]))} - {row}
        erased = [row, *more] if row in rows else [*more]
        inserted = [] if row in rows else [row]
        if rng.random() < 0.15:
            with pytest.raises(ConstraintError):
                db.apply(insert={"d": [row, (1, 1, "bad")]})
        with db.transaction() as transaction:
            transaction.erase("d", erased)
            transaction.insert("d", inserted)
        before = set(rows)
        rows = rows.difference(erased) | set(inserted)
        if rng.random() < 0.2:
            taken.append((db.snapshot(), set(rows)))
        if rng.random() < 0.3:
            found = expected(rows)
            assert {name: db[name].rows() for name in found} == found
        if rng.random() < 0.2:
            assert sorted(db.query("h[g] = t").rows()) == sorted(joined(rows).items())
        if rng.random() < 0.3:
            commit, old, new = transaction.commit_info, expected(before), expected(rows)
            assert commit is not None
            for name in old:
                gained = commit.changes[name].inserted.rows() if name in commit.changes else []
                lost = commit.changes[name].erased.rows() if name in commit.changes else []
                assert gained == sorted({*new[name]} - {*old[name]})
                assert lost == sorted({*old[name]} - {*new[name]})
        if taken and rng.random() < 0.2:
            view, of = taken.pop(rng.randrange(len(taken)))
            found = expected(of)
            assert {name: view[name].rows() for name in found} == found
    for view, of in taken:
        found = expected(of)
        assert {name: view[name].rows() for name in found} == found
    db.verify()
    db.check()


def test_a_failed_transaction_leaves_no_trace() -> None:
    db = filled(10, TEXT + 'd(_, _, s) -> s != "bad".\n')
    db.apply(insert={"d": [(1, 1, "new")]})
    unread = db.store.relations["h"]
    for _ in range(3):
        with pytest.raises(ConstraintError):
            db.apply(insert={"d": [(0, 1, "x"), (0, 3, "bad")]})
        assert db.store.relations["h"] is unread
    db.apply(insert={"d": [(0, 5, "y")]})
    assert dict(db["h"].rows())[0] == "0;1;2;y3;4;5;6;7;8;9;"
    db.verify()


def test_readers_of_codes() -> None:
    """Rules that come later, queries, derivations, and aggregates of texts."""
    db = filled(10)
    db.apply(insert={"d": [(1, 1, "new")]})
    assert isinstance(db.store.relations["h"], DeferredRelation)
    text = "0;new1;2;3;4;5;6;7;8;9;"
    assert db.query(f'h[g] = "{text}"').rows() == [(1,)]
    db.apply(erase={"d": [(1, 1, "new")]})
    assert db.query("h[0] = t, h[1] = t").rows() == [(text.replace("new", ""),)]
    db.apply(insert={"d": [(1, 1, "new")]})
    assert "h" in str(db.why(f'h[1] = "{text}"'))
    db.apply(insert={"d": [(0, 1, "new")]})
    db.add_rules("pair(a, b) <- h[a] = t, h[b] = t, a < b.")
    assert db["pair"].rows() == [(0, 1)]
    db.apply(erase={"d": [(0, 1, "new")]})
    assert db["pair"].rows() == []
    db.verify()


def test_a_durable_database_opens_with_the_texts(tmp_path: Path) -> None:
    db = dlog.Database(tmp_path / "db", source=TEXT)
    rows = {(g, i, f"{i};") for g in range(3) for i in range(30)}
    db.apply(insert={"d": sorted(rows)})
    for i in range(0, 30, 3):
        db.apply(erase={"d": [(1, i, f"{i};")]})
        rows.discard((1, i, f"{i};"))
    db.close()
    with dlog.Database(tmp_path / "db") as again:
        assert dict(again["h"].rows()) == joined(rows)


def test_a_snapshot_reads_no_piece_and_survives_its_program(pieces: Pieces) -> None:
    """The rule, and its predicate, are gone when the snapshot is read; later versions are dropped."""
    db = filled(50, "d(g, i, s) -> int(g), int(i), string(s).\n")
    db.add_rules("h[g] = t <- agg<<t = concat(s)>> d(g, i, s).")
    for k in range(3):
        db.apply(insert={"d": [(1, 2 * k + 1, "new")]})
    before, pieces.n = dict(db["h"].rows()), 0
    db.apply(insert={"d": [(1, 31, "more")]})
    view = db.snapshot()
    assert isinstance(view.store.relations["h"], DeferredRelation)
    db.apply(insert={"d": [(1, 33, "most")]})
    assert pieces.n == 0
    db.remove_rule("h[g] = t <- agg<<t = concat(s)>> d(g, i, s).")
    db.apply(erase={"d": db["d"].rows()})
    text = dict(view["h"].rows())[1]
    assert text.replace("more", "") == before[1] and "most" not in text
    assert view.query("h[0] = t").rows() == [(before[0],)]


def test_rows_in_threads() -> None:
    """Several threads read one version at once, by values and by codes."""
    from concurrent.futures import ThreadPoolExecutor

    db = filled(2000)
    for k in range(20):
        db.apply(insert={"d": [(k % 2, 2 * k + 1, "new")]})
        views = [db.snapshot() for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            read = [pool.submit(lambda v: v["h"].rows(), view) for view in views[:2]]
            asked = [pool.submit(lambda v: v.query("h[g] = t").rows(), view) for view in views[2:]]
            found = [future.result() for future in (*read, *asked)]
        assert all(sorted(one) == sorted(found[0]) for one in found)
    db.verify()


def test_numbers_of_rows_need_no_texts(pieces: Pieces) -> None:
    db = filled(100)
    pieces.n = 0
    db.apply(insert={"d": [(7, 1, "new")]})
    assert len(db.store.relations["h"]) == 3
    db.apply(erase={"d": [(7, 1, "new")]})
    assert len(db.store.relations["h"]) == 2 and pieces.n == 0
    assert np.array_equal([len(text) for _, text in db["h"].rows()], [200, 200])
