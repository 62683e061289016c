"""Predicates that are not stored: what is computed when, and that whoever reads gets the right rows."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dlog
from dlog.apply import Options, apply_file
from dlog.engine.evaluate.column_orders import LARGE
from dlog.engine.maintain.modes import UNREAD
from dlog.engine.run import write_outputs
from dlog.engine.saving import save
from dlog.errors import ConstraintError, DataError, DlogError, SourceError
from dlog.language.parse import parse
from dlog.repl.commands import run_command
from dlog.repl.session import Session
from dlog.spark.stream.database import StreamDatabase
from dlog.spark.stream.files import Rows

RULES = """\
follows(a, b) -> int(a), int(b).
tweet(b, t) -> int(b), int(t).
timeline(a, b, t) <- follows(a, b), tweet(b, t).
"""
FOLLOWS = [(1, 2), (3, 2), (1, 3)]


def database(mode: str = "", rest: str = "", **options: Any) -> dlog.Database:
    said = f".materialize timeline {mode}\n" if mode else ""
    db = dlog.Database(source=RULES + said + rest, **options)
    db.apply(insert={"follows": FOLLOWS})
    return db


def tweet(db: dlog.Database, *rows: tuple[int, int]) -> dlog.engine.transaction.Commit:
    return db.apply(insert={"tweet": list(rows)})


def expected(tweets: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    return sorted((a, b, t) for a, b in FOLLOWS for author, t in tweets if author == b)


def is_stored(db: dlog.Database, name: str = "timeline") -> bool:
    """Whether a database has the rows of a predicate now."""
    return len(db.store.relations[name]) > 0


# Changes


def test_without_subscribers_changes_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlog.engine.database.VERIFY", False)  # checks read everything
    plain = dlog.Database(source="follows(a, b) -> int(a), int(b).  tweet(b, t) -> int(b), int(t).")
    plain.apply(insert={"follows": [(a, 2) for a in range(3000)]})
    db = database("changes")
    db.apply(insert={"follows": [(a, 2) for a in range(3000)]})
    for other in (plain, db):
        tweet(other, *((2, t) for t in range(50)))
    for t in range(50, 60):
        commit = tweet(db, (2, t))
        tweet(plain, (2, t))
        assert commit.operations == 0 and not commit.ways and set(commit.changes) == {"tweet"}
    assert not is_stored(db)
    assert db.memory() < plain.memory() + 1000  # timeline would have 180,000 rows
    assert len(db["timeline"]) == 180_000 and not is_stored(db)


@pytest.mark.parametrize("mode", ["changes", "on_read"])
def test_what_is_not_stored_asks_for_no_column_order(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlog.engine.database.VERIFY", False)
    rules = "a(x, y, z) -> int(x), int(y), int(z).  b(y) -> int(y).  p(x, y, z) <- a(x, y, z), b(y)."
    numbers = np.arange(LARGE + 1)
    db = dlog.Database(source=rules, materialize={"p": mode}, strategy="delta")
    db.apply(insert={"a": np.stack([numbers, numbers % 7, numbers], axis=1)})
    for y in range(3):
        db.apply(insert={"b": [(y,)]})
    assert list(db.store.relations["a"].orders) == [(0, 1, 2)]
    db.subscribe("p", lambda change: None)
    db.apply(insert={"b": [(5,)]})
    assert len(db.store.relations["a"].orders) == 2


@pytest.mark.parametrize("strategy", [None, "delta", "trace", "views", "multilevel"])
def test_a_subscriber_gets_changes_of_rows_that_are_not_stored(strategy: str | None) -> None:
    db, stored = database("changes", strategy=strategy), database(strategy=strategy)
    tweet(db, (2, 1), (3, 1)), tweet(stored, (2, 1), (3, 1))
    got: list[list[Any]] = []
    for one in (db, stored):
        changes: list[Any] = []
        got.append(changes)
        one.subscribe("timeline", lambda c, to=changes: to.append((c.inserted.rows(), c.erased.rows())))
        for t in range(2, 7):  # the short path, after the first ones
            tweet(one, (2, t))
        one.apply(erase={"tweet": [(2, t) for t in range(3, 5)]}, insert={"tweet": [(3, 9), (2, 10)]})
        one.apply(erase={"follows": [(3, 2)]})
        one.apply(insert={"tweet": [(2, t) for t in range(100, 1500)]})  # the general path
        one.apply(erase={"follows": [(1, 2)]}, insert={"follows": [(1, 2)]})  # nothing
    assert got[0] == got[1] and len(got[0]) == 8
    assert not is_stored(db) and db["timeline"].rows() == stored["timeline"].rows()
    db.check()


def test_changes_are_reported_while_somebody_subscribes() -> None:
    db = database("changes")
    assert "timeline" not in tweet(db, (2, 1)).changes
    subscription = db.subscribe("timeline", lambda change: None)
    commit = tweet(db, (2, 2))
    assert commit.changes["timeline"].inserted.rows() == [(1, 2, 2), (3, 2, 2)]
    assert commit.ways == {"timeline": "delta"}
    subscription.close()
    assert "timeline" not in tweet(db, (2, 3)).changes


def test_nobody_subscribes_to_what_cannot_be_computed() -> None:
    """Otherwise each transaction would fail, also the one that repairs it."""
    source = "q[x] = v -> int(x), int(v).  p[] = s <- agg<<s = sum(v)>> q[_] = v."
    db, large = dlog.Database(source=source, materialize={"p": "on_read"}), [(1, 2**62), (2, 2**62)]
    got: list[Any] = []
    db.branch("large")
    db.checkout("large")
    db.apply(insert={"q": large})
    with pytest.raises(dlog.DataError, match=r"the sum of group .* does not fit"):
        db.subscribe("p", got.append)
    db.apply(erase={"q": large[:1]})
    db.apply(insert={"q": large[:1]})
    db.checkout("main")
    db.subscribe("p", lambda change: got.append(change.inserted.rows()))
    db.apply(insert={"q": [(3, 5)]})
    with pytest.raises(dlog.DataError, match=r"the sum of group .* does not fit"):
        db.checkout("large")
    assert db.current_branch == "main" and db["q"].rows() == [(3, 5)]
    db.apply(insert={"q": [(4, 1)]})
    assert got == [[(5,)], [(6,)]]


def test_self_joins_give_each_row_once() -> None:
    db = dlog.Database(
        source="r(a, b) -> int(a), int(b).  v(a, b, c) <- r(a, b), r(b, c).", materialize={"v": "changes"}
    )
    got: list[Any] = []
    db.subscribe("v", lambda change: got.append((change.inserted.rows(), change.erased.rows())))
    for _ in range(3):
        db.apply(insert={"r": [(1, 1)]})
        db.apply(erase={"r": [(1, 1)]})
    assert got == [([(1, 1, 1)], []), ([], [(1, 1, 1)])] * 3


def test_inner_aggregates_of_a_subscribed_head_start_from_the_old_state() -> None:
    """What only this head reads is not maintained before somebody subscribes."""
    rules = "q(x) -> int(x).  r(x, y) -> int(x), int(y).  p(x, n) <- q(x), n = count : r(x, _).  "
    db, stored = (dlog.Database(source=rules, materialize=m) for m in ({"p": "changes"}, {}))
    for one in (db, stored):
        one.apply(insert={"q": [(1,), (2,)], "r": [(1, 1), (1, 2)]})
    got: list[list[Any]] = [[], []]
    for changes, one in zip(got, (db, stored), strict=True):

        def note(change: Any, to: list[Any] = changes) -> None:
            to.append((change.inserted.rows(), change.erased.rows()))

        subscription = one.subscribe("p", note)
        one.apply(insert={"r": [(2, 5)]})
        one.apply(insert={"r": [(1, 3)]}, erase={"q": [(2,)]})
        subscription.close()
        one.apply(insert={"r": [(1, 4)]})
        one.subscribe("p", note)
        one.apply(insert={"r": [(1, 5)]})
    assert got[0] == got[1] and len(got[0]) == 3
    assert db["p"].rows() == stored["p"].rows()


def test_a_changed_rule_reports_the_difference_to_subscribers() -> None:
    db = database("changes")
    tweet(db, (2, 1), (3, 2))
    got: list[Any] = []
    db.subscribe("timeline", lambda change: got.append((change.inserted.rows(), change.erased.rows())))
    with db.transaction() as tx:
        tx.execute(".materialize timeline always")  # for a moment it has no rule
        tx.remove_rule("timeline(a, b, t) <- follows(a, b), tweet(b, t).")
        tx.execute(".materialize timeline changes\ntimeline(a, b, t) <- follows(a, b), tweet(b, t), t > 1.")
    assert got == [([], [(1, 2, 1), (3, 2, 1)])] and not is_stored(db)
    assert db["timeline"].rows() == [(1, 3, 2)]


def test_base_facts_of_what_has_changes_only_are_refused() -> None:
    db = database("changes")
    with pytest.raises(DataError, match="timeline takes no base facts") as error:
        db.apply(insert={"timeline": [(1, 1, 1)]})
    assert error.value.help == "write .materialize timeline always"
    assert db["timeline"].rows() == []


# On read


def test_what_is_read_is_maintained_until_nobody_reads_it() -> None:
    db = database("on_read")
    tweets = [(2, 1)]
    assert tweet(db, *tweets).operations == 0 and not is_stored(db)
    assert db["timeline"].rows() == expected(tweets) and is_stored(db)
    for t in range(2, UNREAD + 3):
        tweets.append((2, t))
        commit = tweet(db, tweets[-1])
        assert is_stored(db) == ("timeline" in commit.changes) == (t < UNREAD + 2)
    assert commit.operations == 0
    assert db.query("?- timeline(a, b, t).").rows() == expected(tweets) and is_stored(db)


def test_a_subscriber_keeps_it_stored() -> None:
    db = database("on_read")
    got: list[Any] = []
    db.subscribe("timeline", lambda change: got.append(change.inserted.rows()))
    for t in range(UNREAD + 5):
        tweet(db, (3, t))
    assert got == [[(1, 3, t)] for t in range(UNREAD + 5)] and is_stored(db)


def test_rules_and_constraints_that_read_it_force_it() -> None:
    db = database("on_read", "loud(a) <- timeline(a, _, 7).\n")
    assert tweet(db, (2, 7)).changes["loud"].inserted.rows() == [(1,), (3,)] and is_stored(db)
    assert "stored although its mode is on_read" in db.explain("timeline")
    db = database("on_read", "timeline(a, b, t) -> t < 9.\n")
    with pytest.raises(ConstraintError):
        tweet(db, (2, 9))


def test_readers_that_are_not_stored_do_not() -> None:
    rest = "loud(a) <- timeline(a, _, 7).\n.materialize loud on_read\n?- loud(a).\n"
    db = database("on_read", rest)
    tweet(db, (2, 7))
    assert not is_stored(db) and not is_stored(db, "loud")
    assert [answer.rows() for _, answer in db.queries()] == [[(1,), (3,)]]
    assert is_stored(db) and is_stored(db, "loud")
    for t in range(UNREAD + 2):
        tweet(db, (3, t))
    assert not is_stored(db) and not is_stored(db, "loud")
    assert db["loud"].rows() == [(1,), (3,)]


def test_a_rule_that_comes_forces_it_and_its_change_is_the_difference() -> None:
    db = database("on_read")
    tweet(db, (2, 7))
    with db.transaction() as tx:
        tx.execute("loud(a) <- timeline(a, _, 7).")
        tx.insert("tweet", [(2, 8)])
    commit = tx.commit_info
    assert commit is not None
    assert commit.changes["timeline"].inserted.rows() == [(1, 2, 8), (3, 2, 8)]
    assert commit.changes["loud"].inserted.rows() == [(1,), (3,)] and is_stored(db)


def test_recursion_on_read() -> None:
    rules = "e(x, y) -> int(x), int(y).  r(x, y) <- e(x, y).  r(x, z) <- r(x, y), e(y, z)."
    db = dlog.Database(source=rules, materialize={"r": "on_read"})
    for n in range(5):
        assert db.apply(insert={"e": [(n, n + 1)]}).operations == 0
    assert len(db.snapshot()["r"]) == 15 and not is_stored(db, "r")
    assert db.query("?- r(3, x).").rows() == [(4,), (5,)]
    db.apply(erase={"e": [(2, 3)]})
    assert len(db["r"]) == 6
    db.check()


# Readers of all kinds


@pytest.mark.parametrize("mode", ["changes", "on_read"])
def test_snapshots_read_the_state_they_were_made_of(mode: str) -> None:
    db = database(mode)
    tweets: list[tuple[int, int]] = []
    made = []
    for t in range(4):
        tweets.append((2, t))
        tweet(db, tweets[-1])
        made.append((db.snapshot(), list(tweets)))
        if t == 2:
            assert db["timeline"].rows() == expected(tweets)
    for view, then in reversed(made):
        assert view["timeline"].rows() == expected(then)
        assert view.query("?- timeline(1, 2, t).").rows() == [(t,) for _, t in then]


@pytest.mark.parametrize("mode", ["changes", "on_read"])
def test_a_failed_transaction_leaves_it_as_it_was(mode: str) -> None:
    db = database(mode, "tweet(b, t) -> t < 100.\n")
    got: list[Any] = []
    db.subscribe("timeline", got.append)
    tweet(db, (2, 1))
    for _ in range(3):
        with pytest.raises(ConstraintError):
            tweet(db, (2, 100))
        tweet(db, (2, 1), (2, 1))
    assert len(got) == 1 and db["timeline"].rows() == expected([(2, 1)])
    db.check()


@pytest.mark.parametrize("mode", ["changes", "on_read"])
def test_folders_branches_and_differences(mode: str, tmp_path: Path) -> None:
    folder = tmp_path / "db"
    program = tmp_path / "program.dl"
    program.write_text(RULES + f".materialize timeline {mode}\n")
    with dlog.Database(folder, program=program) as db:
        db.apply(insert={"follows": FOLLOWS})
        tweet(db, (2, 1))
        db.branch("other")
        tweet(db, (3, 2))
        assert db.diff("other", "main")["timeline"].inserted.rows() == [(1, 3, 2)]
        db.checkpoint()
        tweet(db, (3, 3))
    with dlog.Database(folder) as db:
        assert f"mode {mode}" in db.explain("timeline")
        assert db["timeline"].rows() == expected([(2, 1), (3, 2), (3, 3)])
        db.checkout("other")
        assert db["timeline"].rows() == expected([(2, 1)])
        tweet(db, (2, 5))
        assert db["timeline"].rows() == expected([(2, 1), (2, 5)])
        assert db.at("main")["timeline"].rows() == expected([(2, 1), (3, 2), (3, 3)])
        db.checkout("main")
        db.merge("other")
        assert db["timeline"].rows() == expected([(2, 1), (3, 2), (3, 3), (2, 5)])
        db.check()
        db.verify()


@pytest.mark.parametrize("mode", ["changes", "on_read"])
def test_a_branch_of_a_folder_evaluates_what_is_stored(mode: str, tmp_path: Path) -> None:
    with dlog.Database(tmp_path / "db", source=RULES, durability="none") as db:
        db.apply(insert={"follows": FOLLOWS})
        db.branch("other")
        db.checkout("other")
        db.execute(f".materialize timeline {mode}\n")
        tweet(db, (2, 1))
    with dlog.Database(tmp_path / "db", durability="none") as db:
        assert db["timeline"].rows() == []
        db.checkout("other")
        assert not is_stored(db)
        assert db["timeline"].rows() == expected([(2, 1)])
        tweet(db, (3, 3))
        assert db["timeline"].rows() == expected([(2, 1), (3, 3)])


@pytest.mark.parametrize("mode", ["changes", "on_read"])
def test_why_outputs_saved_programs_and_queries_of_the_program(mode: str, tmp_path: Path) -> None:
    rest = ".output timeline\n.printsize timeline\n?- timeline(1, b, t).\n"
    db = database(mode, rest)
    tweet(db, (2, 1))
    assert "follows(1, 2)   base fact" in db.why("timeline(1, 2, 1)")
    with pytest.raises(DataError, match="does not hold"):
        db.why("timeline(1, 2, 2)")
    assert [answer.rows() for _, answer in db.queries()] == [[(2, 1)]]
    tweet(db, (3, 2))
    assert [answer.rows() for _, answer in db.queries()] == [[(2, 1), (3, 2)]]
    with open(tmp_path / "size", "wb") as size:
        write_outputs(db, tmp_path, stdout=size)
    assert (tmp_path / "timeline.csv").read_text() == "1\t2\t1\n1\t3\t2\n3\t2\t1\n"
    assert (tmp_path / "size").read_text() == "timeline\t3\n"
    save(db, tmp_path / "saved")
    again = dlog.Database(tmp_path / "saved" / "program.dl", facts=tmp_path / "saved")
    assert again["timeline"].rows() == db["timeline"].rows()


def test_dlog_apply_reports_changes_of_all_modes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tx"
    file.write_text("+tweet(2, 5).\n")
    for mode in ("changes", "on_read"):
        apply_file(database(mode), file, Options(changes=True))
        assert "+timeline(3, 2, 5)" in capsys.readouterr().out


def test_streams_get_the_changes_that_they_write(tmp_path: Path) -> None:
    program = tmp_path / "program.dl"
    program.write_text(RULES + "follows(1, 2).\n.output timeline\n.materialize timeline changes\n")
    with StreamDatabase(tmp_path / "db", ["tweet"], program=program) as db:
        staged: list[Any] = []
        table = pa.table({"b": [2], "t": [7]})
        rows = Rows(table, np.array(["+"]), [])
        db.take_batch(
            1, {"tweet": [rows]}, lambda changes: staged.append(changes["timeline"].inserted.rows())
        )
        assert staged == [[(1, 2, 7)]]


# How modes are said


def test_the_option_of_python_is_a_directive() -> None:
    db = database(materialize={"timeline": "changes"})
    tweet(db, (2, 1))
    assert not is_stored(db) and db["timeline"].rows() == expected([(2, 1)])
    with pytest.raises(DlogError, match="unknown predicate timelin"):
        database(materialize={"timelin": "changes"})
    with pytest.raises(SourceError, match="bad value for mode: now"):
        database(materialize={"timeline": "now"})
    with pytest.raises(SourceError, match="follows must be stored: it has no rules"):
        database(materialize={"follows": "on_read"})


def test_the_last_mode_counts() -> None:
    db = database("changes", materialize={"timeline": "always"})
    assert "timeline" in tweet(db, (2, 1)).changes
    db.execute(".materialize timeline on_read")
    db.execute(".materialize timeline changes")
    assert not is_stored(db) and not tweet(db, (2, 2)).operations
    commit = db.execute(".materialize timeline always")
    assert not commit.changes and is_stored(db)
    assert db["timeline"].rows() == expected([(2, 1), (2, 2)])
    db.remove_rule("timeline(a, b, t) <- follows(a, b), tweet(b, t).")
    assert db["timeline"].rows() == []


def test_explanations() -> None:
    db = database("changes")
    assert "not stored, and its changes are not computed: it has no subscribers" in db.explain("timeline")
    assert "with a subscriber: maintained by strategy delta, because" in db.explain("timeline")
    assert "chosen:" in db.explain("timeline", all=True)
    db.subscribe("timeline", lambda change: None)
    tweet(db, (2, 1))
    text = db.explain("timeline", all=True)
    assert "maintained by strategy delta, because the relation of its head is not stored" in text
    assert "subscribers get what rows are derived and lost" in text
    assert "from scratch when" not in text
    db = database("on_read")
    assert "it is evaluated when it is read (mode on_read)" in db.explain("timeline")
    assert db["timeline"].rows() == []
    assert f"until {UNREAD} transactions pass without another one" in db.explain("timeline")


def test_an_error_of_a_rule_is_reported_when_it_is_read() -> None:
    rules = "q(x) -> int(x).  total[] = s <- agg<<s = sum(x)>> q(x)."
    db = dlog.Database(source=rules, materialize={"total": "on_read"})
    db.apply(insert={"q": [(2**62,), (2**62 + 1,)]})
    for _ in range(2):
        with pytest.raises(DataError):
            db["total"].rows()
        with pytest.raises(DataError):
            db.snapshot()["total"].rows()
    db.verify()  # of what is stored
    db.apply(erase={"q": [(2**62,)]})
    assert db["total"].rows() == [(2**62 + 1,)]
    with pytest.raises(DataError):
        db.apply(insert={"q": [(2**62,)]})  # it is maintained now
    assert db["total"].rows() == [(2**62 + 1,)]


def test_checks_of_everything_after_each_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlog.engine.database.VERIFY", True)
    db = database("changes", "?- timeline(1, b, t).\n")
    db.subscribe("timeline", lambda change: None)
    for t in range(5):
        tweet(db, (2, t), (3, t))
    assert [len(answer) for _, answer in db.queries()] == [10]


def test_the_prompt_lists_what_is_stored(tmp_path: Path) -> None:
    out, program = io.StringIO(), tmp_path / "program.dl"
    program.write_text(
        RULES + "follows(1, 2). follows(3, 2). follows(1, 3).\n.materialize timeline on_read\n"
    )
    session = Session(program, out=out, err=out)
    run_command(session, "list", "")
    tweet(session.database, (2, 1))
    run_command(session, "print", "timeline")
    run_command(session, "list", "")
    run_command(session, "watch", "timeline")
    session.execute(parse("+tweet(3, 3).").statements)
    lines = out.getvalue().splitlines()
    shown = [line.split("  ") for line in lines if line.startswith("timeline") and line.endswith("derived")]
    assert [words[-2].strip() for words in shown] == ["not stored", "2"]
    assert lines[-1] == "+timeline(1, 3, 3)"


def test_the_first_mode_comes_with_facts_and_a_subscriber() -> None:
    db = database()
    got: list[Any] = []
    db.subscribe("timeline", lambda change: got.append(change.inserted.rows()))
    db.execute(".materialize timeline changes\n+tweet(2, 1).")
    assert got == [expected([(2, 1)])]


def test_the_prompt_says_what_a_mode_is_now(tmp_path: Path) -> None:
    out, program = io.StringIO(), tmp_path / "program.dl"
    program.write_text(RULES)
    session = Session(program, out=out, err=out)
    for text in (
        ".materialize timeline changes",
        ".materialize timeline on_read",
        ".materialize timeline always",
        '.pragma "strategy" "trace"',
        ".materialize timeline always",
    ):
        session.execute(parse(text).statements)
    said = [line.partition(": ")[2].partition(" (")[0] for line in out.getvalue().splitlines()]
    assert said == ["timeline changes", "timeline on_read", "timeline always", "strategy trace", "no change"]


@pytest.mark.parametrize("strategy", [None, "join_graph"])
@pytest.mark.parametrize("mode", ["changes", "on_read"])
def test_states_are_built_of_what_is_updated(mode: str, strategy: str | None) -> None:
    count = "liked[t] = n <- agg<<n = count()>> like(t, _).\nlike(t, u) -> int(t), int(u).\n"
    loud = "loud(b, t, n) <- tweet(b, t), n = count : like(t, _), n > 1.\n.materialize loud on_read\n"
    db = database(mode, count + loud, strategy=strategy)
    db.apply(insert={"like": [(1, 1), (1, 2)]})
    db.build_states()
    got: list[Any] = []
    db.subscribe("timeline", lambda change: got.append(change.inserted.rows()))
    db.build_states()
    tweet(db, (2, 1))
    assert got == [expected([(2, 1)])]
    assert db["loud"].rows() == [(2, 1, 2)]
    db.build_states()
    tweet(db, (3, 1))
    assert db["loud"].rows() == [(2, 1, 2), (3, 1, 2)]
    db.check()


@pytest.mark.parametrize("mode", ["", "changes", "on_read"])
@pytest.mark.parametrize("evaluated", [True, False])
def test_a_query_beside_a_query_of_the_program(mode: str, evaluated: bool) -> None:
    said = f".materialize timeline {mode}\n" if mode else ""
    rest = "follows(1, 2).  follows(7, 8).  tweet(2, 3).\n?- follows(a, b).\n"
    db = dlog.Database(source=RULES + rest + said, evaluated=evaluated)
    assert db.query("?- timeline(1, 2, t).").rows() == [(3,)]
    assert db.query("?- timeline(1, b, t).").rows() == [(2, 3)]
    assert db.query("?- timeline(a, b, t).").rows() == [(1, 2, 3)]
