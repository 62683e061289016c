"""Subsumption in databases: transactions, clauses at the prompt, folders, derivations, and who refuses it."""

from __future__ import annotations

from pathlib import Path

import pytest

import dlog
from dlog.engine.why import derivation_tree
from dlog.errors import PlanError
from dlog.spark.plan.places import Shape
from dlog.spark.plan.shards import HERE, plan_blocks
from dlog.spark.stream.placing import place_program

PATHS = """\
edge(1, 2, 5).  edge(2, 3, 1).  edge(1, 3, 9).  edge(3, 1, 1).
path(x, y, d) <- edge(x, y, d).
path(x, z, d + w) <- path(x, y, d), edge(y, z, w).
path(x, y, a) <= path(x, y, b) :- b <= a.
"""
OFFERS = """\
offer(x, p, s) -> string(x), int(p), int(s).
offer("inn", 40, 2).  offer("hotel", 90, 4).  offer("motel", 60, 2).
offer(x, p, s) <= offer(y, q, t) :- q <= p, t >= s.
dear(x) <- offer(x, p, _), p > 50.
"""


def test_a_shorter_way_comes_and_goes() -> None:
    db = dlog.Database(source=PATHS)
    assert db["path"].rows() == [
        (1, 1, 7), (1, 2, 5), (1, 3, 6), (2, 1, 2), (2, 2, 7), (2, 3, 1), (3, 1, 1), (3, 2, 6), (3, 3, 7),
    ]  # fmt: skip
    commit = db.execute("+edge(1, 2, 1).")
    assert (1, 3, 2) in db["path"].rows() and (1, 3, 6) not in db["path"].rows()
    change = commit.changes["path"]
    assert (1, 3, 6) in change.erased.rows() and (1, 3, 2) in change.inserted.rows()
    db.execute("-edge(1, 2, 1).")
    assert (1, 3, 6) in db["path"].rows()
    db.check()


@pytest.mark.parametrize(
    ("text", "way"),
    [(OFFERS, "subsumptions"), (PATHS, "from scratch"), ("e(1, 2). p(x, a) <- e(x, a).\n", "subsumptions")],
    ids=["base facts", "recursive", "rules"],
)
def test_what_follows_transactions_at_the_cost_of_the_change(text: str, way: str) -> None:
    if "<=" not in text:
        text += "p(x, a) <= p(x, b) :- b < a. p(1, 9)."
    db = dlog.Database(source=text)
    name, changed = {"o": ("offer", "offer"), "e": ("path", "edge") if "path" in text else ("p", "e")}[
        text[0]
    ]
    row = (1, 2, 3) if changed == "edge" else ("ibis", 1, 9) if changed == "offer" else (1, 1)
    db.apply(insert={changed: [row]})  # makes the state
    commit = db.apply(erase={changed: [row]})
    assert commit.ways[name] == way
    db.check()


def test_rows_that_subsume_each_other_come_back_together() -> None:
    """Each row subsumes the next one, and the last one the first; none is left until one goes."""
    db = dlog.Database(source="p(x, a) <= p(y, b) :- (y + 1) % 3 = x. p(0, 0). p(1, 0).  q(x) <- p(x, _).")
    assert db["p"].rows() == [(0, 0)]
    db.execute("+p(2, 0).")
    assert db["p"].rows() == []
    for gone, left in ((0, [(1, 0)]), (1, [(2, 0)]), (2, [(0, 0)])):
        db.execute(f"-p({gone}, 0).")
        assert db["p"].rows() == left and db["q"].rows() == [left[0][:1]]
        db.execute(f"+p({gone}, 0).")
        assert db["p"].rows() == []
    db.check()


def test_base_facts_come_back_when_what_subsumes_them_goes() -> None:
    db = dlog.Database(source=OFFERS)
    assert [row[0] for row in db["offer"].rows()] == ["hotel", "inn"]
    assert db["dear"].rows() == [("hotel",)]
    db.execute('-offer("inn", 40, 2).')
    assert [row[0] for row in db["offer"].rows()] == ["hotel", "motel"]
    assert db["dear"].rows() == [("hotel",), ("motel",)]


def test_rows_that_subsume_each_other_all_go() -> None:
    db = dlog.Database(source="p(1, 2). p(2, 2). p(3, 9). p(x, a) <= p(y, b) :- a = b.")
    assert db["p"].rows() == [(3, 9)]


def test_rounds_decide_where_rules_do_not_preserve_the_order() -> None:
    """q(1, 8) follows from p(1, 4), which the next round removes; it stays, as in Soufflé."""
    db = dlog.Database(
        source="""\
        e(1, 4).  better(4, 1).
        p(x, a) <- e(x, a).
        p(x, b) <- p(x, a), better(a, b).
        q(x, a + a) <- p(x, a).
        p(x, a) <- q(x, a), a > 100.
        p(x, a) <= p(x, b) :- b < a.
        """
    )
    assert db["p"].rows() == [(1, 1)]
    assert db["q"].rows() == [(1, 2), (1, 8)]


def test_a_clause_is_added_to_a_live_program_and_removed() -> None:
    db = dlog.Database(source="p(1, 5). p(1, 7). q(x, y) <- p(x, y).")
    db.execute("p(x, a) <= p(x, b) :- b < a.")
    assert db["q"].rows() == [(1, 5)]
    db.execute("+p(1, 3).")
    assert db["p"].rows() == [(1, 3)]
    with db.transaction() as tx:
        tx.remove_rule("p(x, a) <= p(x, b) :- b < a.")
    assert db["p"].rows() == [(1, 3), (1, 5), (1, 7)]
    db.check()


def test_in_a_folder(tmp_path: Path) -> None:
    program = tmp_path / "paths.dl"
    program.write_text(PATHS)
    with dlog.Database(tmp_path / "db", program=program) as db:
        db.execute("+edge(1, 2, 1).")
        before = db["path"].rows()
    with dlog.Database(tmp_path / "db") as db:
        assert db["path"].rows() == before
        db.execute("-edge(1, 2, 1).")
        assert (1, 3, 6) in db["path"].rows()
        db.check()


def test_a_derivation_may_need_rows_that_others_subsume() -> None:
    db = dlog.Database(source=PATHS)
    assert derivation_tree(db, "path(1, 3, 6)").splitlines()[0].startswith("path(1, 3, 6)")
    db = dlog.Database(
        source="""\
        e(1, 4).  better(4, 1).
        p(x, a) <- e(x, a).
        p(x, b) <- p(x, a), better(a, b).
        p(x, a) <= p(x, b) :- b < a.
        """
    )
    text = derivation_tree(db, "p(1, 1)")
    assert "p(1, 4)   replaced since" in text


def test_instances_of_components_have_their_own() -> None:
    db = dlog.Database(
        source="""\
        .comp Least<T> {
            .decl p(x: T)
            p(x) <= p(y) :- y < x.
        }
        .init a = Least<number>
        .init b = Least<number>
        a.p(1). a.p(2). b.p(3). b.p(4).
        """
    )
    assert db["a.p"].rows() == [(1,)] and db["b.p"].rows() == [(3,)]


def test_a_goal_gets_the_rows_that_remain() -> None:
    """A restriction to the goal's constant must not change what is compared."""
    source = "e(1, 5). e(2, 3). p(x, a) <- e(x, a). p(x, a) <= p(y, b) :- b < a. ?- p(1, a).\n"
    for goals_only in (False, True):
        db = dlog.Database(source=source, goals_only=goals_only)
        assert [answer.rows() for _, answer in db.queries()] == [[]]


def test_spark_evaluates_it_in_one_process_and_streams_of_shards_refuse_it() -> None:
    program = dlog.check(PATHS)
    blocks = plan_blocks(Shape(program, 4, frozenset(), {"edge": 1_000_000}))
    assert [block.kind for block in blocks] == [HERE]
    with pytest.raises(PlanError, match="a program with subsumption cannot be sharded"):
        place_program(program, ["edge"], 2)
