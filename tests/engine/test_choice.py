"""Choices and numbers in databases: transactions, programs that change, derivations, goals, who refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dlog
from dlog.engine.why import derivation_tree
from dlog.errors import PlanError, VerifyError
from dlog.spark.plan.places import Shape
from dlog.spark.plan.shards import HERE, plan_blocks
from dlog.spark.stream.placing import place_program
from dlog.storage.relation.relation import Relation

TREE = """\
.decl road(x: symbol, y: symbol)
road("a", "b"). road("a", "c"). road("b", "c"). road("c", "d"). road("d", "b").
.decl tree(x: symbol, y: symbol) choice-domain y
tree("", "a").
tree(x, y) :- tree(_, x), road(x, y).
"""
IDS = """\
.decl p(x: number, y: number)
p(7, 1). p(5, 2). p(5, 3).
.decl id(x: number, i: number)
id(x, autoinc()) :- p(x, _).
"""


def test_rows_that_only_support_each_other_go() -> None:
    db = dlog.Database(source=TREE)
    assert db["tree"].rows() == [("", "a"), ("a", "b"), ("a", "c"), ("c", "d")]
    db.execute('-road("a", "b").')  # d leads to b, and c to d
    assert db["tree"].rows() == [("", "a"), ("a", "c"), ("c", "d"), ("d", "b")]
    db.execute('-road("a", "c").')  # b led to c, c to d, d to b: none is reached
    assert db["tree"].rows() == [("", "a")]
    db.execute('+road("a", "c").')
    assert db["tree"].rows() == [("", "a"), ("a", "c"), ("c", "d"), ("d", "b")]
    db.verify()


def test_strings_are_chosen_by_their_text() -> None:
    """Whatever the order in which they came."""
    db = dlog.Database(
        source="""
        .decl e(x: symbol, y: symbol)
        e("k", "zebra"). e("k", "ant"). e("k", "mole").
        .decl r(x: symbol, y: symbol) choice-domain x
        r(x, y) :- e(x, y).
        """
    )
    assert db["r"].rows() == [("k", "ant")]
    db.execute('+e("k", "aal"), -e("k", "ant"), +e("k", "bee").')
    assert db["r"].rows() == [("k", "aal")]


def test_what_is_lost_and_derived_again_in_one_transaction_stays() -> None:
    db = dlog.Database(
        source="""
        .decl p(x: number, y: number)
        .decl q(x: number)
        p(7, 1).
        .decl r(x: number, y: number) choice-domain x
        r(x, 9) :- p(x, _).
        r(x, 0) :- q(x).
        .decl id(x: number, i: number)
        id(x, $) :- s(x).
        .decl s(x: number)
        s(x) :- p(x, _).
        """
    )
    db.execute("+q(7).")
    for transaction in (
        "+p(8, 1).",
        "-p(8, 1).",
        "-p(7, 1), +p(7, 2), +p(7, 3).",
        "+p(7, 4), -p(7, 2), -p(7, 3).",
    ):
        db.execute(transaction)
        assert (7, 9) in db["r"].rows() and (7, 0) in db["id"].rows()


def test_a_total_order_by_choice() -> None:
    """Each element has one successor, and is the successor of one."""
    db = dlog.Database(
        source="""
        .decl item(x: number)
        item(30). item(10). item(20). item(40).
        .decl next(x: number, y: number) choice-domain x, y
        next(-1, -1).
        next(x, y) :- next(_, x), item(y), y != x.
        """
    )
    assert db["next"].rows() == [(-1, -1)]  # -1 is taken: nothing follows it
    db.execute("-next(-1, -1). +next(0, 10).")
    chosen = db["next"].rows()
    assert chosen == [(0, 10), (10, 20), (20, 30), (30, 40)]


def test_types_of_candidates_are_those_of_the_relation() -> None:
    db = dlog.Database(
        source="""
        .decl e(x: number, y: decimal(8, 4))
        e(1, 2.5049). e(1, 2.5001). e(2, 1.0).
        .decl r(x: number, y: decimal(8, 2)) choice-domain x
        r(x, y) :- e(x, y).
        .decl f(x: float) choice-domain x
        f(x) :- e(_, y), x = to_float(y).
        """
    )
    assert [str(y) for _, y in db["r"].rows()] == ["2.50", "1.00"]
    assert len(db["f"].rows()) == 3


def test_rules_come_and_go() -> None:
    db = dlog.Database(source=TREE)
    db.add_rules('tree(x, y) :- road(y, x), x = "d".')
    assert ("d", "b") not in db["tree"].rows()
    db.remove_rule("tree(x, y) :- tree(_, x), road(x, y).")
    assert db["tree"].rows() == [("", "a"), ("d", "c")]
    db.add_rules("tree(x, y) :- tree(_, x), road(x, y).")
    assert db["tree"].rows() == [("", "a"), ("a", "b"), ("c", "d"), ("d", "c")]
    db.check()
    db.verify()


def test_two_rules_count_together_and_the_same_rule_may_be_there_twice() -> None:
    db = dlog.Database(source=IDS + "id(x, autoinc()) :- p(x, _).\nid($, $) :- p(5, 2).")
    assert db["id"].rows() == [(5, 0), (5, 1), (5, 3), (5, 4), (6, 7), (7, 2), (7, 5)]


def test_conditions_on_a_number_do_not_number() -> None:
    rules = "id(x, i) :- p(x, _), i = autoinc(), i > 0, j = i + 1, !p(j, _)."
    db = dlog.Database(source=IDS.replace("id(x, autoinc()) :- p(x, _).", rules))
    assert db["id"].rows() == [(5, 1), (7, 2)]


def test_inline_predicates_do_not_number_twice() -> None:
    db = dlog.Database(
        source="""
        .decl p(x: number)
        p(1). p(2).
        .decl id(x: number, i: number) inline
        id(x, autoinc()) :- p(x).
        .decl either(x: number) inline
        either(x) :- p(x).
        either(x) :- p(x), x > 1.
        .decl a(x: number, i: number)
        a(x, i) :- id(x, i).
        .decl b(x: number, i: number)
        b(x, i) :- id(x, i), a(x, i).
        .decl c(x: number, i: number)
        c(x, $) :- either(x).
        """
    )
    assert db["a"].rows() == db["b"].rows() == [(1, 0), (2, 1)]
    assert db["c"].rows() == [(1, 2), (2, 3)]


def test_components_have_their_own() -> None:
    db = dlog.Database(
        source="""\
        .comp First<T> {
            .decl r(x: T, y: T) choice-domain x
            .decl id(x: T, i: number)
            id(x, autoinc()) :- r(x, _).
        }
        .init a = First<number>
        .init b = First<number>
        a.r(1, 2). a.r(1, 1). b.r(1, 3). b.r(2, 3).
        """
    )
    assert (db["a.r"].rows(), db["b.r"].rows()) == ([(1, 1)], [(1, 3), (2, 3)])
    assert sorted([*db["a.id"].rows(), *db["b.id"].rows()]) == [(1, 0), (1, 1), (2, 2)]


def test_why() -> None:
    db = dlog.Database(source=TREE + "id(x, i) -> string(x), int(i). id(x, $) :- tree(_, x).")
    text = derivation_tree(db, 'tree("c", "d")')
    assert 'candidate tree("c", "d")   by <string>:5' in text
    assert 'number 3 for ("c", "d")   by autoinc()' in derivation_tree(db, 'id("d", 3)')


def test_goals_do_not_change_what_is_chosen() -> None:
    source = TREE + '?- tree(x, "d").\n?- tree("a", x).\n'
    whole = [answer.rows() for _, answer in dlog.Database(source=source).queries()]
    some = [answer.rows() for _, answer in dlog.Database(source=source, goals_only=True).queries()]
    assert whole == some == [[("c",)], [("b",), ("c",)]]


def test_goals_do_not_change_numbers_and_none_is_given_again() -> None:
    db = dlog.Database(source=IDS + "q(x, autoinc()) :- p(x, 1).\n?- q(x, i).", goals_only=True)
    assert [answer.rows() for _, answer in db.queries()] == [[(7, 3)]]
    db.execute("+p(9, 1).")
    numbers = [i for _, i in (*db["id"].rows(), *db["q"].rows())]
    assert len(set(numbers)) == len(numbers)


def test_explain_says_which_strategy_follows() -> None:
    db = dlog.Database(
        source=TREE + IDS + ".decl r(x: number, y: number) choice-domain x\nr(x, y) :- p(x, y)."
    )
    assert "maintained by strategy choices, because a chosen row stays" in db.explain("r")
    assert "from scratch whenever it is touched" in db.explain("tree")
    assert "rows that are derived again stay" in db.explain("tree")
    assert "maintained by strategy autonumbers" in db.explain()


def test_verify_finds_what_is_wrong() -> None:
    """A row that is not derived, a candidate that is free, and a number that was given twice."""
    for name, rows in (("r", [(5, 2), (7, 1), (8, 8)]), ("r", [(5, 2)]), ("r", [(5, 2), (5, 3), (7, 1)])):
        db = dlog.Database(source=IDS + ".decl r(x: number, y: number) choice-domain x\nr(x, y) :- p(x, y).")
        db.store.relations[name] = Relation.build(db.store.arena, rows, 2)
        with pytest.raises(VerifyError):
            db.verify()
        db.build_states()
        with pytest.raises(AssertionError):
            db.check()
    db = dlog.Database(source=IDS)
    (name,) = db.program.remembered
    db.build_states()
    twice = np.array([(7, 1, 0), (5, 2, 0), (5, 3, 1)])
    db.store.relations[name] = Relation.build(db.store.arena, twice, 3)
    with pytest.raises(AssertionError):
        db.check()


def test_branches_in_memory() -> None:
    db = dlog.Database(source=IDS)
    db.branch("other")
    db.execute("+p(1, 1).")
    db.checkout("other")
    db.execute("+p(2, 2).")
    assert (2, 3) in db["id"].rows()
    db.checkout("main")
    assert (1, 3) in db["id"].rows()
    db.merge("other")
    assert (1, 3) in db["id"].rows() and (2, 4) in db["id"].rows()


def test_spark_evaluates_them_in_one_process_and_streams_of_shards_refuse_them() -> None:
    for text, why in ((TREE, "tree has a choice domain"), (IDS, "autoinc\\(\\) counts in one engine")):
        program = dlog.check(text)
        shape = Shape(program, 4, frozenset(), {"road": 1_000_000, "p": 1_000_000})
        plans = [plan for block in plan_blocks(shape) for plan in block.plans]
        own = [plan for plan in plans if program.remembered_in(plan.stratum)]
        assert own and all(plan.kind == HERE for plan in own)
        with pytest.raises(PlanError, match=why):
            place_program(program, [next(iter(program.predicates))], 2)


def test_limits_of_size_end_a_recursion(tmp_path: Path) -> None:
    db = dlog.Database(source=TREE + ".limitsize tree(n=2)")
    assert len(db["tree"].rows()) >= 2
