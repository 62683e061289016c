"""Recursions that make records and take them apart: row by row in one kernel, as in rounds and as defined."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given

import dlog
from dlog.engine.evaluate.evaluate import Evaluation, evaluate
from tests.examples import relaxed
from tests.oracle.accepted import accepted
from tests.oracle.naive import evaluate as naive
from tests.oracle.records import record_programs

DECLARED = """
.type List = [head: number, tail: List]
.type Word = [text: symbol, size: float]
.type Tree = Leaf {} | Tip {word: Word} | Node {left: Tree, right: Tree}
.decl e(x: number, y: number)
.decl l(x: List)
.decl t(x: Tree)
.decl p(x: number, l: List)
.decl r(x: Tree, y: Tree)
.decl n(x: List, n: number)
"""
FACTS = """
e(1, 2). e(2, 3). e(3, 4). e(2, 4). e(4, 5).
l([4, [2, [1, nil]]]). l([2, [2, nil]]). l(nil).
t($Node($Node($Leaf, $Tip(["a", 1.5])), $Tip(nil))). t($Tip(["b", 2.5])). t($Node($Leaf, $Leaf)).
"""
RULES = {
    "made": "p(1, [1, nil]). p(y, [y, q]) :- p(x, q), e(x, y).",
    "taken apart": "n(x, 0) :- l(x). n(t, h + k) :- n([h, t], k).",
    "made and taken apart": "p(0, x) :- l(x). p(k + 1, [h, [k, t]]) :- p(k, [h, t]), k < 3.",
    "a known record is looked up": "p(1, nil). p(y, [y, nil]) :- p(x, _), e(x, y), !l([x, nil]).",
    "a negated record": "p(1, nil). p(y, [y, q]) :- p(x, q), e(x, y), !l([y, q]).",
    "an atom has the record": """
        p(0, nil). p(k + 1, [h, q]) :- p(k, q), l(x), x = [h, [g, t]], k < 3, l([g, _]), e(g, _).""",
    "a field twice": "p(2, nil). p(x, [x, [x, q]]) :- p(x, q), l([x, [x, nil]]), q = nil.",
    "alternatives": """
        p(1, nil). p(y, [y, q]) :- p(x, q), (e(x, y), q = [_, _] ; y = x + 1, y < 4, q = nil).""",
    "branches": """
        r(x, x) :- t(x). r(x, y) :- r(x, $Node(y, _)). r(x, y) :- r(x, $Node(_, y)).
        r($Node(y, x), y) :- r(x, y), x = $Tip(_).""",
    "strings and floats": """
        r(x, x) :- t(x). r($Tip([s, f]), z) :- r($Node(z, $Tip([s, f])), _).
        r($Tip(["a", 1.5]), $Leaf) :- r($Node(_, $Tip(w)), _), w != nil.""",
    "records are compared": """
        p(1, nil). p(y, v) :- p(x, q), e(x, y), v = [y, q], l(w), w != v, w = [_, z], q != z.""",
    "two heads": "p(1, nil). p(y, [y, q]), n([y, q], y) :- p(x, q), e(x, y).",
    "mutual": "p(0, x) :- l(x). n(t, k) :- p(k, [_, t]). p(k + 1, x) :- n(x, k).",
}


def evaluated(text: str, rounds: bool) -> dict[str, set[tuple[object, ...]]]:
    db = dlog.Database(source=text, evaluated=False)
    evaluate(db.program, db.store, Evaluation(rounds=rounds))
    return {name: set(db[name].rows()) for name in db.predicates()}


@pytest.mark.parametrize("name", RULES)
def test_oracle_driven_records(name: str) -> None:
    text = DECLARED + FACTS + RULES[name]
    found = evaluated(text, rounds=False)
    assert found == evaluated(text, rounds=True)
    expected = naive(dlog.check(text))
    assert {k: v for k, v in expected.items() if k in found} == found
    assert "row by row" in dlog.Database(source=text).explain()


@relaxed(60)
@given(record_programs())
def test_differential_driven_and_in_rounds(text: str) -> None:
    accepted(text)
    assert evaluated(text, rounds=False) == evaluated(text, rounds=True)


def test_more_records_than_a_slice_has_room_for() -> None:
    rng = random.Random(5)
    edges = [
        (layer * 40 + i, layer * 40 + 40 + rng.randrange(40)) for layer in range(9) for i in range(40)
    ] * 2
    edges += [(x, y + 1) for x, y in edges]
    text = DECLARED + "p(x, [x, nil]) :- e(x, _), x < 40. p(y, [y, q]) :- p(x, q), e(x, y)."
    db = dlog.Database(source=text, evaluated=False)
    db.store.relations["e"].apply_in_place(inserts=np.unique(np.array(edges), axis=0))
    db.complete()
    paths, last = 40, dict.fromkeys(range(40), 1)
    following: dict[int, set[int]] = {}
    for x, y in edges:
        following.setdefault(x, set()).add(y)
    while last:
        ahead: dict[int, int] = {}
        for x, number in last.items():
            for y in following.get(x, ()):
                ahead[y] = ahead.get(y, 0) + number
        last = ahead
        paths += sum(ahead.values())
    assert len(db.relation("p")) == paths > 10_000
    db.store.dictionary.records.check()
    assert len(db.store.dictionary.records) == paths
