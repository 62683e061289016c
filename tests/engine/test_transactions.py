"""Transactions from Python: what a commit reports, what an abort leaves, rules that are added and removed."""

from __future__ import annotations

import re
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dlog
from dlog.engine.commit.commits import Change, Commit
from dlog.engine.database import plan_only
from dlog.engine.statements import settled
from dlog.ir.check import check_program
from dlog.language.parse import load_file

PROGRAMS = sorted(Path("programs").glob("*.dl"))
REACH = "edge(x, y) -> int(x), int(y).  reach(x, y) <- edge(x, y).  reach(x, z) <- reach(x, y), edge(y, z)."


def reported(commit: object) -> dict[str, tuple[list, list]]:
    assert isinstance(commit, Commit)
    return {name: (c.inserted.rows(), c.erased.rows()) for name, c in commit.changes.items()}


def state(db: dlog.Database) -> dict[str, list]:
    return {name: db[name].rows() for name in db.predicates()}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_a_settled_program_has_the_same_types(path: Path) -> None:
    tree = load_file(path)
    program = check_program(tree)
    again = check_program(settled(tree, program))
    assert not again.facts and not again.deltas
    columns = {n: (p.n_keys, [(c.name, c.type) for c in p.columns]) for n, p in program.predicates.items()}
    assert columns == {
        n: (p.n_keys, [(c.name, c.type) for c in p.columns]) for n, p in again.predicates.items()
    }
    assert [(str(r), dict(r.types)) for r in program.rules] == [(str(r), dict(r.types)) for r in again.rules]


def test_a_commit_tells_the_net_change_of_every_predicate() -> None:
    db = dlog.Database(source=REACH)
    with db.transaction() as tx:
        tx.insert("edge", [(1, 2), (2, 3), (9, 9)])
        tx.erase("edge", [(9, 9)])
    assert tx.commit_info is not None and tx.commit_info.version == db.version == 1
    assert reported(tx.commit_info) == {
        "edge": ([(1, 2), (2, 3)], []),
        "reach": ([(1, 2), (1, 3), (2, 3)], []),
    }
    assert reported(db.apply(insert={"edge": [(1, 3)]}, erase={"edge": [(2, 3)]})) == {
        "edge": ([(1, 3)], [(2, 3)]),
        "reach": ([], [(2, 3)]),
    }
    assert reported(db.apply(insert={"edge": [(1, 3)]})) == {}


def test_rollback_leaves_the_block_and_changes_nothing() -> None:
    db = dlog.Database(source=REACH)
    with db.transaction() as tx:
        tx.insert("edge", [(1, 2)])
        tx.rollback()
        raise AssertionError("not reached")
    assert tx.commit_info is None and db.version == 0 and not db["edge"].rows()


def test_upsert_replaces_the_value_of_a_key() -> None:
    db = dlog.Database(source='price[s] = p -> string(s), int(p).  price["tea"] = 3.  price["milk"] = 1.')
    commit = db.apply(upsert={"price": [("tea", 7), ("tea", 4), ("salt", 2)]})
    assert reported(commit) == {"price": ([("salt", 2), ("tea", 4)], [("tea", 3)])}
    with pytest.raises(dlog.DataError, match="relation"), db.transaction() as tx:
        tx.execute("p(1).")
        tx.upsert("p", [(1,)])


def test_of_two_open_transactions_only_one_changes_the_program() -> None:
    db = dlog.Database(source=REACH)
    with pytest.raises(dlog.DlogError, match="another transaction"), db.transaction() as tx:
        db.execute("p(1).")
        tx.execute("q(1).")
    with db.transaction() as tx:
        db.execute("r(x) <- p(x).")
        tx.insert("edge", [(1, 2)])
    assert state(db) == {"edge": [(1, 2)], "reach": [(1, 2)], "p": [(1,)], "r": [(1,)]}


def test_execute_runs_statements_as_one_transaction() -> None:
    db = dlog.Database(source=REACH + ' price["tea"] = 3.00.')
    commit = db.execute(
        '+edge(1, 2), -edge(1, 2), +edge(4, 5). edge(5, 6). ^price["tea"] = 3.50. ?- reach(4, y).'
    )
    assert reported(commit)["edge"] == ([(4, 5), (5, 6)], []) and db.version == 1
    assert reported(commit)["price"] == ([("tea", 3.5)], [("tea", 3.0)])
    assert [(text, r.rows()) for text, r in commit.answers] == [("?- reach(4, y).", [(5,), (6,)])]
    assert db.execute("?- reach(x, 6).").rows() == [(4,), (5,)]


def test_rules_are_added_and_removed_in_a_live_database() -> None:
    db = dlog.Database(source=REACH + " edge(1, 2). edge(2, 3).")
    assert reported(db.add_rules("far(x, y) <- reach(x, y), !edge(x, y).")) == {"far": ([(1, 3)], [])}
    assert reported(db.execute("+edge(3, 4)."))["far"] == ([(1, 4), (2, 4)], [])
    db.execute("-edge(1, 2). far(x, x) <- edge(x, _).")
    db.verify()
    assert reported(db.remove_rule("far(x,y) :- reach(x,y), !edge(x,y).")) == {"far": ([], [(2, 4)])}
    with pytest.raises(dlog.SourceError, match="no such rule"):
        db.remove_rule("far(x, y) <- reach(x, y).")


BROKEN = {
    "unknown predicate": "+edge(7, 8), +egde(1, 2).",
    "takes 2 arguments": "+edge(7, 8), +edge(1).",
    "type conflict": '+edge(7, 8), +edge(1, "a").',
    "constraint broken": "edge(x, y) -> x < y.  +edge(8, 7).",
    "two values": "+edge(7, 8).  +f[1] = 3.",
    "missing `.`": "+edge(7, 8)",
    "depends on its own negation": "odd(x) <- edge(x, _), !odd(x).",
}


@pytest.mark.parametrize("message", BROKEN)
def test_an_aborted_transaction_leaves_everything_as_it_was(message: str) -> None:
    db = dlog.Database(source=REACH + " edge(1, 2). f[1] = 2.")
    before, rules = state(db), len(db.program.rules)
    with pytest.raises(dlog.DlogError, match=message):
        db.execute(BROKEN[message])
    assert state(db) == before and len(db.program.rules) == rules and db.version == 0
    db.check()
    db.verify()
    assert reported(db.execute("+edge(2, 1).")) == {
        "edge": ([(2, 1)], []),
        "reach": ([(1, 1), (2, 1), (2, 2)], []),
    }


def test_a_conflict_with_an_aggregate_shows_which_value_is_a_fact() -> None:
    source = "edge(1, 2). edge(1, 3). degree[x] = n <- agg<<n = count()>> edge(x, _)."
    db = dlog.Database(source=source)
    with pytest.raises(dlog.ConstraintError) as error:
        db.execute("+degree[1] = 60.")
    assert error.value.message.splitlines()[1:] == [
        "  degree[1] = 2  from the aggregation at <string>:1",
        "  degree[1] = 60  as a fact",
    ]
    with pytest.raises(dlog.ConstraintError, match=r"degree\[1\] = 1  as a fact"):
        db.execute("+degree[1] = 1.")


@pytest.mark.parametrize(
    ("computed", "free", "sold"), [("price[i] * q", "0.00", "7.00"), ("price[i] / (q + 1)", "3.50", "1.17")]
)
def test_a_conflict_of_rounded_decimals_shows_both_derivations(computed: str, free: str, sold: str) -> None:
    source = f"""price[i] = p -> string(i), decimal[10, 2](p).  price["tea"] = 3.50.
        line(i, q) -> string(i), int(q).  line("tea", 2).
        cost[i] = c -> string(i), decimal[12, 2](c).
        cost[i] = c <- line(i, q), x = {computed}, c = x * 1.0."""
    with pytest.raises(dlog.ConstraintError) as error:
        dlog.Database(source=source).execute('+line("tea", 0).')
    assert set(error.value.message.splitlines()[1:]) == {
        f'  cost["tea"] = {free}  from line("tea", 0), price["tea"] = 3.50 by the rule at <string>:4',
        f'  cost["tea"] = {sold}  from line("tea", 2), price["tea"] = 3.50 by the rule at <string>:4',
    }


def test_a_constraint_shows_what_is_missing_with_its_values() -> None:
    source = """price[p] = m -> string(p), decimal[8, 2](m).  cost[p] = m -> string(p), decimal[8, 2](m).
        sold(p) -> string(p).
        sold(p) -> price[p] = _, cost[p] = m, m > 0."""
    with pytest.raises(
        dlog.ConstraintError, match='sold\\("tea"\\), but not price\\["tea"\\] = _ and not `cost'
    ):
        dlog.Database(source=source).execute('+sold("tea").')


def test_constraints_on_facts_of_different_widths_are_reported_in_turn() -> None:
    db = dlog.Database(source="e(1, 2). e(2, 3). p(x) <- e(x, _), e(x, y), (e(z, w) ; e(z, v), !e(x, 0)).")
    for text, fact in (("p(x) -> x != 1.", r"p\(1\)"), ("e(x, y) -> x != 1.", r"e\(1, 2\)")):
        with pytest.raises(dlog.ConstraintError, match=fact):
            db.add_rules(text)


def test_a_broken_constraint_shows_whole_facts() -> None:
    db = dlog.Database(source='road("a", "b", 5).  road(_, _, minutes) -> minutes > 0.')
    with pytest.raises(dlog.ConstraintError, match=r'road\("b", "c", 0\), but not `minutes > 0`'):
        db.execute('+road("b", "c", 0).')


def test_subscribers_are_called_after_the_commit_until_they_close() -> None:
    db = dlog.Database(source=REACH)
    seen: list[Change] = []
    handle = db.subscribe("reach", seen.append)
    db.execute("+edge(1, 2).")
    db.execute("p(1).")
    handle.close()
    db.execute("+edge(2, 3).")
    assert [(c.predicate, c.inserted.rows(), c.erased.rows()) for c in seen] == [("reach", [(1, 2)], [])]
    with pytest.raises(dlog.DataError, match="unknown predicate"):
        db.subscribe("raech", seen.append)


def test_a_snapshot_stays_as_it_was() -> None:
    db = dlog.Database(source=REACH + " edge(1, 2).")
    before = db.snapshot()
    db.execute("+edge(2, 3).  far(x) <- reach(1, x).")
    assert before["reach"].rows() == [(1, 2)] and before.version == 0 and "far" not in before
    assert before.query("?- reach(x, y), y != 1.").rows() == [(1, 2)]
    assert db["reach"].rows() == [(1, 2), (1, 3), (2, 3)]


def test_verify_shows_the_rows_that_differ() -> None:
    db = dlog.Database(source=REACH + " edge(1, 2).")
    db.verify()
    db.store.relations["reach"].apply_in_place(inserts=[(5, 5)], erases=[(1, 2)])
    with pytest.raises(dlog.VerifyError) as caught:
        db.verify()
    assert "reach(1, 2): missing" in caught.value.message
    assert "reach(5, 5): should not be there" in caught.value.message


def test_a_query_with_an_aggregate_beside_the_programs_own() -> None:
    db = dlog.Database(source="n(1). n(2). m(5).  ?- c = count : { n(_) }.")
    assert db.query("?- c = sum x : { m(x) }.").rows() == [(5,)]


def test_explain_shows_how_rules_are_maintained_without_running_them() -> None:
    text = REACH + " twice(x, z) <- edge(x, y), edge(y, z).  edge(1, 2)."
    db = dlog.Database(source=text, evaluated=False)
    reported = db.explain()
    assert db.pending
    assert "maintained by strategy delta, because it reads little data, so any index is cheap" in reported
    assert "maintained by strategy stages, because it is recursive" in reported
    assert re.search(r"\+edge\(y, z\): reads edge by .*; per row ~1 bindings, under 1 us", reported)
    assert "measured" not in reported
    db = dlog.Database(source=text)
    for i in range(3):
        db.apply(insert={"edge": [(i + 2, i + 3)]})
    assert re.search(r"measured: from scratch in 1 transaction, .* us each; stages in 2", db.explain("reach"))
    asks = text + " p(x) <- twice(x, _).  ?- reach(1, y)."
    reported = dlog.Database(source=asks, evaluated=False).explain()
    assert "under transactions, in full:\n  reach\n" in reported and reported.count("maintained by") == 4


def test_a_program_is_explained_without_its_facts(tmp_path: Path) -> None:
    """However many files are missing; errors in its text are still reported."""
    path = tmp_path / "program.dl"
    path.write_text("e(x) -> int(x). f(x) -> int(x). both(x) <- e(x), f(x).\n.input e, f\n")
    assert "maintained by strategy delta" in plan_only(path, tmp_path).explain()
    path.write_text("both(x) <- e(x), f(y).\n.input e, f\n")
    with pytest.raises(dlog.DlogError):
        plan_only(path, tmp_path)


def test_a_table_is_not_changed_by_transactions() -> None:
    text = "country(c) -> string(c).  .table country\n"
    rules = "at(c, x) -> string(c), int(x).  .stream at\n known(x) <- at(c, x), country(c).  "
    db = dlog.Database(source=text + rules + 'country("fr").')
    for change in ('+country("de").', '-country("fr").', '+at("fr", 1).  country("de").'):
        with pytest.raises(dlog.SourceError, match="country is a table: transactions cannot change it"):
            db.execute(change)
    with pytest.raises(dlog.SourceError, match="is a table"):
        db.apply(erase={"country": [("fr",)]})
    db.execute('+at("fr", 2), +country("fr").')  # it is there already
    assert state(db) == {"country": [("fr",)], "at": [("fr", 2)], "known": [(2,)]}
    db.execute(".table big\n big(7).  big(8).")  # its first facts
    with pytest.raises(dlog.SourceError, match="big is a table"):
        db.execute("+big(9).")
    db = dlog.Database(source=rules + 'country(c) -> string(c).  .table known\n country("fr").')
    db.execute('+at("de", 3).')
    with pytest.raises(dlog.SourceError, match="known is a table"):
        db.apply(insert={"at": [("fr", 3)]})
    assert db["at"].rows() == [("de", 3)]


def test_snapshots_are_taken_by_other_threads_during_transactions() -> None:
    """Each shows one commit, whole: what is derived is what follows from its own base facts."""
    db = dlog.Database(source=REACH + " degree[x] = n <- agg<<n = count()>> edge(x, _).")
    stop, wrong, seen = threading.Event(), [], set()

    def read() -> None:
        try:
            while not stop.is_set():
                view = db.snapshot()
                edges, version = view["edge"].rows(), view.version
                seen.add(version)
                assert view["degree"].rows() == sorted(Counter(x for x, _ in edges).items())
                assert {(x, y) for x, y in view["reach"].rows() if y == x + 1} == {
                    (x, y) for x, y in edges if y == x + 1
                }
                assert view.query("?- edge(x, y), reach(y, x).").rows() == []
                assert (view["edge"].rows(), view.version) == (edges, version)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(300):
        db.apply(
            insert={"edge": [(i % 40, i % 40 + 1), (i % 37, i % 37 + 2)]},
            erase={"edge": [(i % 31, i % 31 + 1)]},
        )
        if wrong:
            break
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong and len(seen) > 1
    db.verify()


def test_of_several_threads_one_commits_at_a_time() -> None:
    db = dlog.Database(source=REACH)
    threads = [
        threading.Thread(target=lambda k=k: [db.apply(insert={"edge": [(k, i)]}) for i in range(50)])
        for k in (100, 200, 300)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db.version == len(db["edge"]) == len(db["reach"]) == 150


def test_a_failing_subscriber_is_reported_and_the_commit_remains() -> None:
    db = dlog.Database(source=REACH)
    reported: list[object] = []
    bad = db.subscribe("edge", lambda change: print(1 // 0))
    db.subscribe("edge", lambda change: reported.append(change.inserted.rows()))
    with pytest.raises(
        dlog.SubscriberError, match="committed, but a subscriber of edge failed: Zero"
    ) as found:
        db.apply(insert={"edge": [(1, 2)]})
    assert isinstance(found.value.__cause__, ZeroDivisionError)
    assert reported == [[(1, 2)]] and db["reach"].rows() == [(1, 2)] and db.version == 1
    bad.close()
    db.apply(insert={"edge": [(2, 3)]})
    assert reported == [[(1, 2)], [(2, 3)]]


def test_a_subscriber_may_start_transactions_and_changes_arrive_in_order() -> None:
    db = dlog.Database(source=REACH)
    reported: list[object] = []

    def grow(change: Change) -> None:
        _, y = change.inserted.rows()[-1]
        if y < 4:
            db.apply(insert={"edge": [(y, y + 1)]})

    db.subscribe("edge", grow)
    db.subscribe("edge", lambda change: reported.append(change.inserted.rows()))
    db.apply(insert={"edge": [(1, 2)]})
    assert reported == [[(1, 2)], [(2, 3)], [(3, 4)]] and db.version == 3


def test_representation_of_a_commit() -> None:
    db = dlog.Database(source=REACH)
    assert repr(db.apply(insert={"edge": [(1, 2), (2, 3)]}).changes) == "<edge: +2 -0, reach: +3 -0>"
    assert "changes=<no change>" in repr(db.apply(insert={"edge": [(1, 2)]}))
    assert db.query("reach(1, y)").rows() == db.query("?- reach(1, y).").rows() == [(2,), (3,)]


def test_a_database_has_one_program() -> None:
    with pytest.raises(dlog.DlogError, match="its path or its source"):
        dlog.Database("programs/reach.dl", source=REACH)


def test_ctrl_c_while_plans_are_made_leaves_no_half_made_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    db = dlog.Database(source=REACH)
    db.apply(insert={"edge": [(1, 2)]})

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dlog.engine.maintain.stages.expansion.assemble", interrupt)
        with pytest.raises(dlog.LimitError, match="interrupted"):
            db.apply(insert={"edge": [(2, 3)]})
    assert state(db) == {"edge": [(1, 2)], "reach": [(1, 2)]} and db.version == 1
    db.apply(insert={"edge": [(2, 3)]})
    db.check()
    db.verify()


def test_ctrl_c_at_the_very_end_of_a_commit_takes_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    db = dlog.Database(source=REACH)
    for text in ("+edge(1, 2), +edge(2, 3).", "p(x) <- edge(x, _)."):
        with monkeypatch.context() as patch:
            moments = iter((KeyboardInterrupt,))  # once: going back shows the state before
            show = db._show

            def interrupted(moments: Iterator[type] = moments, show: Any = show) -> None:
                for error in moments:
                    raise error
                show()

            patch.setattr(db, "_show", interrupted)
            with pytest.raises(dlog.LimitError, match="interrupted"):
                db.execute(text)
        assert state(db) == {"edge": [], "reach": []} and db.version == 0
    db.execute("+edge(1, 2).")
    db.check()
    db.verify()


@pytest.fixture
def heard() -> Iterator[None]:
    """Interrupts are handled, also if the tests were started with them ignored."""
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, inherited)


def test_ctrl_c_waits_until_a_commit_looks_at_its_limits(
    monkeypatch: pytest.MonkeyPatch, heard: None
) -> None:
    """So that it never comes while memory is being handed out."""
    db = dlog.Database(source=REACH)
    went_on = []

    def change_facts(*arguments: object) -> None:
        signal.raise_signal(signal.SIGINT)
        went_on.append(arguments)

    with monkeypatch.context() as patch:
        patch.setattr("dlog.engine.database.change_facts", change_facts)
        with pytest.raises(dlog.LimitError, match="interrupted while changing facts"):
            db.execute("+edge(1, 2), +edge(2, 3).")
    assert went_on and db.version == 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    db.execute("+edge(1, 2), +edge(2, 3).")
    db.verify()


def test_strategies_have_names_that_a_user_knows() -> None:
    db = dlog.Database(source="a(x) -> int(x).  b(x) -> int(x).  a(x) -> b(x).  c(x) <- a(x), !b(x).")
    for i in range(2):
        commit = db.apply(insert={"b": [(i,)], "a": [(i,)]})
        assert set(commit.ways) == {"c", "a(x) -> b(x)."}


def test_a_proposition_inserted_and_erased_in_one_transaction() -> None:
    db = dlog.Database(source="flag() -> .")
    for ops, expected in ((("erase", "insert"), [()]), (("insert", "erase"), [])):
        with db.transaction() as tx:
            for op in ops:
                getattr(tx, op)("flag", [()])
        assert db["flag"].rows() == expected


def test_an_inline_predicate_has_no_rows_to_change() -> None:
    source = "e(1, 2).\n.decl up(x: number) inline\nup(x) :- e(x, _). p(x) :- up(x)."
    db = dlog.Database(source=source)
    with pytest.raises(dlog.DlogError, match="up is inline"):
        db.execute("+up(3).")
    with pytest.raises(dlog.DlogError, match="unknown predicate f"):
        db.execute("^f[1] = 3.")
