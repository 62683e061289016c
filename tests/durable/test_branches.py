"""Branches, versions of the past, differences, merging, batches: in memory and in a folder alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.durable.timeline import Moment, Timeline
from dlog.errors import ConstraintError, DlogError
from tests.durable.model import PROGRAM

Again = Callable[[dlog.Database], dlog.Database]


@pytest.fixture(params=["memory", "folder"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[dlog.Database, Again]]:
    """A database, and a way to open it again, which does nothing in memory."""
    if request.param == "memory":
        yield dlog.Database(source=PROGRAM), lambda db: db
        return

    def again(db: dlog.Database) -> dlog.Database:
        branch = db.current_branch
        db.close()
        later = dlog.Database(tmp_path / "s", durability="none")
        later.checkout(branch)
        return later

    yield dlog.Database(tmp_path / "s", source=PROGRAM, durability="none"), again


def test_branches_are_independent(opened: tuple[dlog.Database, Again]) -> None:
    db, again = opened
    db.branch("trial")
    db.execute("+edge(2, 3).")
    db.checkout("trial")
    assert db["reach"].rows() == [(1, 2)] and db.version == 0
    assert db.execute('+edge(2, 4), +name(9, "neun").').version == 2  # no two commits have one number
    db = again(db)
    assert db.branches() == {"main": 1, "trial": 2} and db["edge"].rows() == [(1, 2), (2, 4)]
    db.checkout("main")
    assert db["reach"].rows() == [(1, 2), (1, 3), (2, 3)]
    assert db.at("trial")["name"].rows() == [(1, "one"), (9, "neun")]
    db.check()
    db.verify()


def test_diff_has_base_and_derived_facts(opened: tuple[dlog.Database, Again]) -> None:
    db, again = opened
    db.branch("trial")
    db.execute("+edge(2, 3).  loop(x) <- reach(x, x).  +edge(3, 3).")
    db = again(db)
    changes = {n: (c.inserted.rows(), c.erased.rows()) for n, c in db.diff("trial", "main").items()}
    assert changes == {
        "edge": ([(2, 3), (3, 3)], []),
        "reach": ([(1, 3), (2, 3), (3, 3)], []),
        "seen": ([(2,), (3,)], []),
        "called": ([("one", 3)], []),
        "loop": ([(3,)], []),
    }
    assert not db.diff("main", "main") and len(db.diff("main", "trial")["reach"].erased) == 3


def test_merging_takes_changes_of_base_facts_over(opened: tuple[dlog.Database, Again]) -> None:
    db, again = opened
    db.branch("trial")
    db.execute("+edge(5, 6).")
    db.checkout("trial")
    db.execute('-edge(1, 2), +edge(7, 8), ^price["tea"] = 4.')
    db = again(db)
    db.checkout("main")
    commit = db.merge("trial")
    assert db["edge"].rows() == [(5, 6), (7, 8)] and db["price"].rows() == [("tea", 4)]
    assert commit.changes["edge"].erased.rows() == [(1, 2)]
    db.execute("-edge(7, 8).")
    db = again(db)
    assert not db.merge("trial").changes  # what was merged once is not merged again
    db.checkout("trial")
    db.merge("main")
    assert db["edge"].rows() == [(5, 6)]


def test_conflicts_on_values_of_functions_abort(opened: tuple[dlog.Database, Again]) -> None:
    db, again = opened
    db.branch("trial")
    db.execute('^price["tea"] = 5, +edge(8, 9).')
    db.checkout("trial")
    db.execute('^price["tea"] = 4, +edge(2, 3).')
    db = again(db)
    db.checkout("main")
    with pytest.raises(ConstraintError) as error:
        db.merge("trial")
    assert str(error.value) == (
        "trial cannot be merged into main: both changed the value of the same key\n"
        '  price["tea"] = 5 on main, price["tea"] = 4 on trial'
    )
    assert error.value.help is not None and '^price["tea"] = 5. on trial' in error.value.help
    assert db.version == 1 and db["price"].rows() == [("tea", 5)] and (2, 3) not in db["edge"].rows()
    db.execute('^price["tea"] = 4.')
    assert db.merge("trial").version == 4
    assert db["price"].rows() == [("tea", 4)] and (2, 3) in db["edge"].rows()


def test_a_merge_that_breaks_a_constraint_reports_it() -> None:
    db = dlog.Database(source="p(x) -> int(x).  q(x) -> int(x).  p(x) -> !q(x).")
    db.branch("trial")
    db.execute("+p(1).")
    db.checkout("trial")
    db.execute("+q(1).")
    with pytest.raises(ConstraintError, match="main cannot be merged into trial: "):
        db.merge("main")
    assert db["p"].rows() == [] and db.version == 2


def test_clashes_of_a_merge_are_shown_by_key() -> None:
    db = dlog.Database(
        source="v[x, s] = f -> int(x), string(s), float(f).  one[] = x -> int(x).  +one[] = 1."
    )
    db.branch("trial")
    db.apply(upsert={"v": [(n, f"k{n}", n / 2) for n in range(9)], "one": [(2,)]})
    db.checkout("trial")
    db.apply(upsert={"v": [(n, f"k{n}", n / 2 if n % 4 else -0.5) for n in range(1, 12)]})
    with pytest.raises(ConstraintError) as error:
        db.merge("main")
    assert str(error.value).splitlines()[1:] == [
        '  v[4, "k4"] = -0.5 on trial, v[4, "k4"] = 2.0 on main',
        '  v[8, "k8"] = -0.5 on trial, v[8, "k8"] = 4.0 on main',
    ]
    db.apply(upsert={"v": [(n, f"k{n}", 7.0) for n in range(9)]})
    with pytest.raises(ConstraintError, match=r"(?s)on main\n  and 4 more of v$"):
        db.merge("main")
    db.checkout("main")
    db.apply(upsert={"v": [(n, f"k{n}", 7.0) for n in range(9)]})
    db.checkout("trial")
    db.merge("main")
    assert db["one"].rows() == [(2,)]


def test_rules_are_not_merged(opened: tuple[dlog.Database, Again]) -> None:
    db, _ = opened
    db.branch("trial")
    db.checkout("trial")
    db.execute("extra(x) -> int(x).  loop(x) <- reach(x, x).")
    db.checkout("main")
    assert db.merge("trial").changes == {} and "loop" not in db
    db.checkout("trial")
    db.execute("+extra(1).")
    db.checkout("main")
    with pytest.raises(DlogError, match="main has no such predicate extra"):
        db.merge("trial")


def test_batches_are_applied_once(opened: tuple[dlog.Database, Again]) -> None:
    db, again = opened

    def deliver(n: int, batch: str) -> bool:
        with db.transaction(batch_id=batch) as tx:
            tx.insert("edge", [(n, n)])
        assert tx.commit_info is not None
        return not tx.commit_info.repeated

    assert deliver(10, "a")
    db = again(db)
    assert not deliver(11, "a") and (11, 11) not in db["edge"].rows() and db.version == 1
    db.branch("trial")
    assert deliver(12, "b") and not deliver(13, "b")
    db.checkout("trial")
    assert not deliver(14, "a") and deliver(15, "b") and deliver(16, "c")
    db = again(db)
    db.checkout("main")
    assert deliver(17, "d")
    db.merge("trial")
    assert not deliver(18, "c")  # its rows have come with the merge
    with pytest.raises(TypeError, match="batch_id must be a string, not 7"):
        db.transaction(batch_id=7)  # type: ignore[arg-type]
    with pytest.raises(ConstraintError), db.transaction(batch_id="e") as tx:
        tx.insert("price", [("tea", 99)])
    assert deliver(19, "e")  # what failed was not applied


def test_numbered_batches_leave_one_id(opened: tuple[dlog.Database, Again]) -> None:
    db, again = opened

    def deliver(batch: str) -> bool:
        with db.transaction(batch_id=batch) as tx:
            tx.insert("edge", [(7, db.version)])
        assert tx.commit_info is not None
        return not tx.commit_info.repeated

    assert db.last_batch("s") is None
    assert deliver("s#0") and deliver("s#9") and not deliver("s#9") and not deliver("s#4")
    assert deliver("t#1") and deliver("s") and deliver("s#010")  # another series, and two that are none
    db = again(db)
    assert (db.last_batch("s"), db.last_batch("t"), db.last_batch("u")) == (9, 1, None)
    db.branch("trial")
    assert deliver("s#10") and not deliver("s#8")
    db.checkout("trial")
    assert db.last_batch("s") == 9 and deliver("s#11")
    db.checkout("main")
    db.merge("trial")
    assert db.last_batch("s") == 11


def test_the_past_can_be_read(tmp_path: Path) -> None:
    db = dlog.Database(tmp_path / "s", source=PROGRAM, durability="none")
    seen = [db["reach"].rows()]
    for text in ("+edge(2, 3).", "-edge(1, 2).", "loop(x) <- reach(x, x).", "+edge(3, 2).", "+edge(1, 2)."):
        db.execute(text)
        seen.append(db["reach"].rows())
    for version, rows in enumerate(seen):
        view = db.at(version)
        assert view["reach"].rows() == rows and view.version == version
        assert ("loop" in view) == (version >= 3)
    assert [e.version for e in db.history()] == [1, 2, 3, 4, 5]
    assert db.history()[0].changes == {"edge": (1, 0)} and db.history()[2].program
    db.branch("kept")
    db.execute("+edge(5, 5).")
    db.checkpoint()
    assert db.history() == [] and db.at("kept")["reach"].rows() == db.at(5)["reach"].rows() == seen[5]
    with pytest.raises(DlogError, match="version 2 is no longer known"):
        db.at(2)
    for unknown in (-1, 7):
        with pytest.raises(DlogError, match=f"there is no version {unknown}: the last one is 6"):
            db.at(unknown)
    db.close()


def test_names_of_branches(opened: tuple[dlog.Database, Again]) -> None:
    db, again = opened
    db.branch("a/b-1.2")
    for name in ("a/b-1.2", "main"):
        with pytest.raises(DlogError, match=f"there is a branch {name} already"):
            db.branch(name)
    for name in ("", "7", "two words", "-x"):
        with pytest.raises(DlogError, match="cannot be the name of a branch"):
            db.branch(name)
    with pytest.raises(DlogError, match="there is no branch man") as error:
        db.checkout("man")
    assert error.value.help == "did you mean main?"
    with pytest.raises(DlogError, match="main cannot be dropped"):
        db.drop_branch("main")
    with pytest.raises(DlogError, match="nothing to merge"):
        db.merge("main")
    db.drop_branch("a/b-1.2")
    assert again(db).branches() == {"main": 0}


def test_a_branch_copies_no_pages() -> None:
    db = dlog.Database(source="edge(x, y) -> int(x), int(y).")
    db.apply(insert={"edge": [(n, n) for n in range(50_000)]})
    used = db.store.arena.usage().used_words
    for n in range(50):
        db.branch(f"b{n}")
    assert db.store.arena.usage().used_words == used


def test_timelines_drop_what_no_merge_needs() -> None:
    line = Timeline(Moment(0, (), None))
    for n in range(1, 40):
        line.branch(f"b{n}", "main")
        line.commit(f"b{n}", 3 * n, None)
        line.commit("main", 3 * n + 1, None)
        line.commit("main", 3 * n + 2, None, merged=line.heads[f"b{n}"])
        line.drop(f"b{n}")
    assert len(line.moments()) == 1


@given(st.lists(st.tuples(st.sampled_from("bcmd"), st.integers(0, 5), st.integers(0, 5)), max_size=40))
def test_oracle_dropped_moments_are_not_a_base(steps: list[tuple[str, int, int]]) -> None:
    """Against a timeline that forgets nothing: the bases of all branches, and no other moments but heads."""
    lines = Timeline(Moment(0, (), None)), Timeline(Moment(0, (), None))
    lines[1].prune = lambda: None  # type: ignore[method-assign]
    for version, (step, i, j) in enumerate(steps, 1):
        for line in lines:
            names = sorted(line.heads)
            one, other = names[i % len(names)], names[j % len(names)]
            if step == "b":
                line.branch(f"b{version}", one)
            elif step == "c" or (step == "m" and one == other):
                line.commit(one, version, None)
            elif step == "m":
                line.commit(one, version, None, merged=line.heads[other])
            elif one != "main":
                line.drop(one)
            line.prune()
    pruned, whole = lines
    pairs = [(a, b) for a in whole.heads for b in whole.heads if a < b]
    bases = {pair: whole.base(*pair) for pair in pairs}
    for pair, base in bases.items():
        found = pruned.base(*pair)
        assert found is not None and base is not None and found.version == base.version
    kept = {base.version for base in bases.values() if base is not None}
    assert {m.version for m in pruned.moments()} == kept | {head.version for head in whole.heads.values()}


def test_ids_are_found_through_many_merges() -> None:
    line = Timeline(Moment(0, (), None))
    line.commit("main", 1, None, batch_id="first")
    for n in range(2, 3000, 3):
        line.branch("b", "main")
        line.commit("b", n, None, batch_id=f"s#{n}")
        line.commit("main", n + 1, None, batch_id=f"m{n}" if n % 30 == 2 else None)
        line.commit("main", n + 2, None, merged=line.heads["b"])
        line.drop("b")
    batches = line.heads["main"].batches
    assert "first" in batches and "s#2999" in batches and "m32" in batches and "s#3000" not in batches
    assert len(batches.all()) == 102


def test_a_branch_has_rows_where_main_has_none(tmp_path: Path) -> None:
    db = dlog.Database(tmp_path / "s", source=PROGRAM, durability="none")
    db.branch("trial")
    db.execute("-edge(1, 2).")
    db.checkpoint()
    db.close()
    with dlog.Database(tmp_path / "s") as db:
        assert db["edge"].rows() == [] and db.at("trial")["edge"].rows() == [(1, 2)]
