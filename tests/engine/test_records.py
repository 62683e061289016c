"""Records in a live database: limits, functions, rules that come and go, queries, derivations, threads."""

from __future__ import annotations

import threading

import pytest

import dlog
from dlog import Branch
from dlog.engine.state.limits import Limits
from dlog.errors import ConstraintError, LimitError, SourceError

LIST = ".type List = [head: number, tail: List]\n"
EXPR = ".type Expr = Num {v: number} | Add {l: Expr, r: Expr} | Zero {}\n"


def test_a_recursion_without_end_stops_at_a_limit() -> None:
    text = LIST + ".decl p(l: List) .decl q(l: List) p(nil). p([1, l]) :- p(l), q(nil)."
    with pytest.raises(LimitError):
        dlog.Database(source=text + " q(nil).", limits=Limits(rows=1000))
    with pytest.raises(LimitError):
        dlog.Database(source=text + " q(nil).", limits=Limits(timeout=0.2))
    db = dlog.Database(source=text, limits=Limits(rows=1000))
    with pytest.raises(LimitError):
        db.apply(insert={"q": [(None,)]})
    assert db["p"].rows() == [(None,)] and db["q"].rows() == []
    db.collect()
    assert len(db.store.dictionary.records) == 0


def test_records_are_keys_and_values_of_functions() -> None:
    db = dlog.Database(source=LIST + EXPR + "f[l] = e -> List(l), Expr(e).")
    with db.transaction() as tx:
        tx.execute("+f[[1, nil]] = $Zero.")
    db.execute("^f[[1, nil]] = $Num(2).")
    assert db["f"].rows() == [((1, None), Branch("Num", (2,)))]
    with pytest.raises(ConstraintError, match=r"f\[\[1, nil\]\]"):
        db.execute("+f[[1, nil]] = $Zero.")
    with pytest.raises(SourceError, match="two values for one key"):
        dlog.Database(source=LIST + "f[[1, nil]] = 1. f[[0x1, nil]] = 2. .decl p(l: List) p(l) :- f[l] = _.")


def test_types_and_rules_come_with_transactions() -> None:
    db = dlog.Database(source="e(1, 2). e(2, 3).")
    db.add_rules(LIST + ".decl p(l: List)\np([x, [y, nil]]) :- e(x, y).")
    assert db["p"].rows() == [((1, (2, None)),), ((2, (3, None)),)]
    db.add_rules("q(x) :- p([x, _]).")
    db.execute("+e(5, 6).")
    assert db["q"].rows() == [(1,), (2,), (5,)]
    db.remove_rule("p([x, [y, nil]]) :- e(x, y).")
    assert db["p"].rows() == [] and db["q"].rows() == []
    db.execute("+p([9, nil]).")
    assert db["q"].rows() == [(9,)]
    with pytest.raises(SourceError, match="declared twice"):
        db.add_rules(".type List = [head: symbol, tail: List]")
    db.verify()


def test_queries_make_and_take_apart() -> None:
    text = EXPR + ".decl x(e: Expr) x($Add($Num(1), $Add($Zero, $Num(2)))). x(a), x(b) :- x($Add(a, b))."
    db = dlog.Database(source=text)
    assert db.query("x($Num(n))").rows() == [(1,), (2,)]
    assert db.query("x(e), e = $Add($Zero, r)").rows() == [
        (Branch("Add", (Branch("Zero"), Branch("Num", (2,)))), Branch("Num", (2,)))
    ]
    assert db.query("x($Add($Num(n), _)), x($Num(m)), x(e), e = $Num(n), m > n").rows() == [
        (1, 2, Branch("Num", (1,)))
    ]
    assert db.query("x($Num(7))").rows() == []


def test_derivations_show_records() -> None:
    text = (
        LIST
        + ".decl p(l: List) p([1, [2, nil]]). .decl part(l: List) part(l) :- p(l). part(t) :- part([_, t])."
    )
    db = dlog.Database(source=text)
    assert "part([1, [2, nil]])" in db.why("part([2, nil])")
    assert "[_, t, ..]" in db.explain("part")


def test_as_says_which_type_a_record_has() -> None:
    db = dlog.Database(source=LIST + "e(1). p(l) <- e(x), l = as([x, nil], List). q(x) <- p([x, _]).")
    assert db["p"].rows() == [((1, None),)] and db["q"].rows() == [(1,)]


def test_readers_in_other_threads_while_records_are_collected() -> None:
    text = LIST + ".decl p(l: List) .decl part(l: List) part(l) :- p(l). part(t) :- part([_, t])."
    db = dlog.Database(source=text)
    db.apply(insert={"p": [((i, (i + 1, None)),) for i in range(50)]})
    expected, failed, stop = db["part"].rows(), [], threading.Event()

    def read() -> None:
        try:
            while not stop.is_set():
                view = db.snapshot()
                rows = view["part"].rows()
                found = view.query("part([x, [y, nil]]), z = [y, [x, nil]], part(z)").rows()
                assert set(rows) >= set(expected) and found == []
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(100, 160):
        db.apply(insert={"p": [((number, (-1, None)),)]})
        db.collect()
        db.apply(erase={"p": [((number, (-1, None)),)]})
        db.collect()
    stop.set()
    for thread in threads:
        thread.join()
    assert not failed
    assert db["part"].rows() == expected
    db.collect()
    db.store.dictionary.records.check()
