"""Sequences, `f[g, i] = x <- seq<<..>> body`, against the naive evaluator, under random transactions."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import dlog
from dlog.heads.sequences.sequences import numbered, rows_between
from dlog.storage.arena.arena import Arena
from dlog.storage.index.index import Index
from tests.oracle import naive

PROGRAM = """
score(g, x, s) -> int(g), string(x), int(s).
bonus(x, s) -> string(x), float(s).
rank[g, i] = x <- seq<<i = (-s, x)>> score(g, x, s).
sorted[i] = s <- seq<<>> score(_, _, s).
named[i, g] = x <- seq<<>> score(g, x, _) ; bonus(x, _), g = 0.
at[g, i] = t <- seq<<i = t>> score(g, x, s), bonus(x, b), t = s + b.
first[g] = x <- rank[g, 0] = x.
next(x, y) <- sorted[i] = x, j = i + 1, sorted[j] = y.
last[] = m <- agg<<m = max(i)>> sorted[i] = _.
"""
NAMES = ["ann", "Bob", "eve", "Zoe", "a", "b b"]


def follow(seed: int, folder: Path | None = None) -> None:
    rng = random.Random(seed)
    program = dlog.check(PROGRAM)
    db = dlog.Database(folder, source=PROGRAM)
    base: dict[str, set[tuple[object, ...]]] = {"score": set(), "bonus": set()}
    for step in range(25):
        changes: dict[str, dict[str, list[tuple[object, ...]]]] = {"insert": {}, "erase": {}}
        for _ in range(rng.choice([1, 1, 2, 8])):
            name = rng.choice(["score", "score", "bonus"])
            key = rng.choice(NAMES)
            row = (
                (rng.randrange(3), key, rng.randrange(8))
                if name == "score"
                else (key, rng.choice([0.5, -1.0, 2.0]))
            )
            if base[name] and rng.random() < 0.45:
                row = rng.choice(sorted(base[name], key=repr))
                changes["erase"].setdefault(name, []).append(row)
            else:
                changes["insert"].setdefault(name, []).append(row)
        for name, rows in changes["erase"].items():
            base[name] -= set(rows)
        for name, rows in changes["insert"].items():
            base[name] |= set(rows)
        db.apply(**changes)
        facts = naive.evaluate(program, base)
        for name in ("rank", "sorted", "named", "at", "first", "next", "last"):
            assert set(db[name].rows()) == facts[name], (seed, step, name)
        if folder is not None and step % 10 == 9:
            db.close()
            db = dlog.Database(folder)
    db.check()
    db.verify()
    db.close()


def test_oracle_random_transactions() -> None:
    for seed in range(6):
        follow(seed)


def test_oracle_in_a_folder(tmp_path: Path) -> None:
    follow(50, tmp_path / "db")


@pytest.mark.fuzz
def test_oracle_many_random_transactions() -> None:
    for seed in range(1000, 1200):
        follow(seed)


def test_numbers_of_a_change_are_those_behind_it() -> None:
    """By hand: a commit reports what is renumbered, and nothing else."""
    db = dlog.Database(source="a(x) -> int(x).  f[i] = x <- seq<<>> a(x).  a(20).  a(60).  a(40).")
    assert db["f"].rows() == [(0, 20), (1, 40), (2, 60)]
    db.execute("+a(90).")
    change = db.execute("+a(50).  -a(40).").changes["f"]
    assert (change.inserted.rows(), change.erased.rows()) == ([(1, 50)], [(1, 40)])
    change = db.execute("+a(55).").changes["f"]
    assert change.inserted.rows() == [(2, 55), (3, 60), (4, 90)]
    assert change.erased.rows() == [(2, 60), (3, 90)]


def test_only_renumbered_rows_cost_something() -> None:
    """A row near the end of 200,000 costs as many operations as one near the end of 2,000."""
    costs = []
    for n in (2_000, 200_000):
        db = dlog.Database(source="a(x) -> int(x).  f[i] = x <- seq<<>> a(x).")
        db.apply(insert={"a": np.arange(n).reshape(-1, 1)})
        db.apply(insert={"a": [(n + 5,)]})
        commit = db.apply(insert={"a": [(n + 2,)]})
        assert commit.changes["f"].inserted.rows() == [(n, n + 2), (n + 1, n + 5)]
        costs.append(sum(commit.costs.values()))
    assert costs[1] <= costs[0] + 4, costs


def test_ranges_of_an_index_are_its_rows() -> None:
    rng = np.random.default_rng(1)
    rows = np.unique(rng.integers(0, 3_000, (40_000, 2)), axis=0)
    arena = Arena()
    flat = Index.build(arena, rows, 2)
    paged = (
        Index.build(arena, rows[::3], 2).apply(inserts=rows)[0].apply(erases=rows[:5], inserts=rows[:5])[0]
    )
    paged = paged.apply(inserts=[(-1, -1)])[0].apply(erases=[(-1, -1)])[0]
    for index in (flat, paged):
        for _ in range(200):
            first, last = np.sort(rng.integers(0, len(rows) + 1, 2)).tolist()
            assert np.array_equal(rows_between(index, first, last), rows[first:last])


def test_numbers_begin_at_zero_in_each_group() -> None:
    rows = np.array([[1, 5], [1, 7], [2, 5], [4, 0], [4, 1], [4, 9]])
    assert numbered(rows, 1).numbers.tolist() == [0, 1, 0, 0, 1, 2]
    assert numbered(rows, 0).numbers.tolist() == [0, 1, 2, 3, 4, 5]
    assert numbered(rows[:0], 1).numbers.tolist() == []


def test_delta_rules_blocks_and_why_know_sequences() -> None:
    declared = "a(x) -> int(x).  top(x) -> int(x).  f[i] = x -> int(i), int(x)."
    db = dlog.Database(source=f"{declared}  +top(x) <- +a(_), f@prev[0] = x.")
    db.add_block("order", "f[i] = x <- seq<<>> a(x).")
    db.execute("+a(5).")
    db.execute("+a(3).")
    assert db["top"].rows() == [(5,)] and db["f"].rows() == [(0, 3), (1, 5)]
    assert "a(5)" in db.why("f[1] = 5")
    with pytest.raises(dlog.DlogError, match="takes no facts"):
        db.apply(insert={"f": [(7, 7)]})
    db.remove_block("order")
    assert db["f"].rows() == []
