"""Strategies offer with costs or refuse with a reason; one list names them, and nothing else does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import dlog
from dlog.engine.maintain import strategies
from dlog.engine.maintain.offers import LASTS, PER_ASSIGNMENT, Offer, Question, Refusal, all_offers, choose
from dlog.engine.maintain.strategies import REGISTRY, SELECTABLE
from dlog.errors import DlogError

ROOT = Path(dlog.__file__).parent
MAINTAIN = Path(strategies.__file__).parent
FOLDERS = {entry.folder for entry in REGISTRY}
NAMES = {entry.name for entry in REGISTRY}

STAR = """
house(h, p) -> int(h), int(p).  shop(s, p) -> int(s), int(p).  school(c, p) -> int(c), int(p).
n[p] = k <- agg<<k = count()>> house(h, p), shop(s, p), school(c, p).
"""
REACH = "reach(x, y) <- edge(x, y).  reach(x, z) <- reach(x, y), edge(y, z).  edge(1, 2)."


def question(source: str, wanted: str | None = None, **rows: list[tuple[int, ...]]) -> Question:
    db = dlog.Database(source=source)
    if rows:
        db.apply(insert=rows)
    return Question(db.program, db.program.strata[0], db.store, wanted)


def said(asked: Question) -> dict[str, Offer | Refusal]:
    return {one.strategy: one for one in all_offers(asked)}


def star(n: int, places: int) -> dict[str, list[tuple[int, ...]]]:
    return {name: [(i, i % places) for i in range(n)] for name in ("house", "shop", "school")}


def all_but(*special: str) -> list[str]:
    return [entry.name for entry in REGISTRY if entry.name not in (*special, "choices", "autonumbers")]


def test_every_strategy_answers_in_the_order_of_the_list() -> None:
    for source in (STAR, REACH, "p(x) <- a(x).  a(1)."):
        assert [*said(question(source))] == all_but("calls", "classes", "numbering", "subsumptions")
    asked = question(".decl same(x: number, y: number) eqrel  same(1, 2).")
    assert [*said(asked)] == all_but("calls", "numbering", "subsumptions")
    asked = question("p(1).  p(x) <= p(y) :- y < x.")
    assert [*said(asked)] == all_but("calls", "classes", "numbering")
    asked = question("a(1).  f[i] = x <- seq<<>> a(x).")
    asked = replace(asked, stratum=next(s for s in asked.program.strata if s.sequence is not None))
    assert [*said(asked)] == all_but("calls", "classes", "subsumptions")


def test_a_subsumption_is_maintained_where_nothing_is_recursive() -> None:
    answers = said(question("p(x) <- a(x).  a(1).  p(x) <= p(y) :- y < x."))
    offers = {name for name, one in answers.items() if isinstance(one, Offer)}
    assert offers == {"subsumptions", "from scratch"}
    recursive = question("p(x) <- a(x).  p(x) <- p(y), x = y - 1, x > 0.  a(1).  p(x) <= p(y) :- y < x.")
    assert "each round" in said(recursive)["subsumptions"].reason


def test_a_rule_without_recursion() -> None:
    answers = said(question("p(x) <- a(x), b(x).  a(1).  b(1)."))
    offers = {name for name, one in answers.items() if isinstance(one, Offer)}
    assert offers == {"delta", "trace", "trace-exact", "from scratch", "join_graph"}
    assert "no aggregate" in answers["views"].reason and "recursive" in answers["stages"].reason
    assert "a join graph of about" in answers["join_graph"].reason
    assert "aggregates nothing" in answers["multilevel"].reason
    trace = answers["trace"]
    assert isinstance(trace, Offer) and "little data" in trace.on_request


def test_recursive_rules() -> None:
    answers = said(question(REACH))
    assert {name for name, one in answers.items() if isinstance(one, Offer)} == {"stages", "from scratch"}
    assert answers["delta"].reason == answers["views"].reason == "it is recursive"
    chosen = choose(question(REACH))
    assert chosen.offered_as == chosen.way == "stages"


def test_the_last_resort_says_why_the_others_refuse() -> None:
    asked = question("n(x) -> int(x).  .limitsize p(n=5)  p(x) <- n(x).  p(y) <- p(x), y = x + 1.  n(1).")
    chosen = choose(asked)
    assert chosen.way == "from scratch" and not chosen.ready(asked.store)
    assert chosen.explain(asked.store) == [
        "from scratch whenever it is touched, because p has a limited size"
    ]


def test_views_win_where_a_row_is_part_of_many_assignments() -> None:
    """A join of three relations through a place: a row meets all pairs of rows of the two others there."""
    few, many = question(STAR, **star(60, 10)), question(STAR, **star(1000, 10))
    assert choose(few).way == "delta" and choose(many).way == "views"
    for asked in (few, many):
        answers = said(asked)
        assert isinstance(answers["multilevel"], Offer) and not answers["multilevel"].on_request
        offers = {n: one for n, one in answers.items() if isinstance(one, Offer) and not one.on_request}
        costs = {name: one.cost(asked.rows) for name, one in offers.items()}
        assert min(costs, key=lambda name: costs[name]) == choose(asked).offered_as
    delta, views = (said(many)[name] for name in ("delta", "views"))
    assert isinstance(delta, Offer) and isinstance(views, Offer)
    assert delta.per_row > 10 * views.per_row and views.build > 0 and views.bytes > 0


def test_a_cyclic_join_refuses_views_unless_asked() -> None:
    source = """r(x, y) -> int(x), int(y).  s(y, z) -> int(y), int(z).  t(x, z) -> int(x), int(z).
                n[] = k <- agg<<k = count()>> r(x, y), s(y, z), t(x, z)."""
    views = said(question(source))["views"]
    assert isinstance(views, Offer) and "the join is cyclic" in views.on_request
    assert choose(question(source, "views")).way == "views"


def test_a_wish_that_is_refused_gives_its_reason() -> None:
    asked = question("p(x) <- a(x).  a(1).", "views")
    assert choose(asked).explain(asked.store)[0] == "delta, because it has no view tree: it has no aggregate"


def test_others_pay_for_what_levels_of_maps_absorb() -> None:
    """A row of `a` changes one sum, and with it all rows that compare themselves with it."""
    source = "a(i, v) -> int(i), int(v).  large(i) <- a(i, v), 2 * v > sum w : { a(_, w) }."
    db = dlog.Database(source=source)
    db.apply(insert={"a": [(i, i) for i in range(1000)]})
    number = db.program.strata.index(next(s for s in db.program.strata if s.predicates == ("large",)))
    asked = db._maintenance.question(number, db.store)
    alone = replace(asked, absorbable=())
    assert alone.cone_time == 0 and asked.cone_time > 2 * 1000 * PER_ASSIGNMENT
    delta, other = said(asked)["delta"], said(alone)["delta"]
    assert isinstance(delta, Offer) and isinstance(other, Offer)
    assert delta.per_transaction == other.per_transaction + asked.cone_time
    levels = said(asked)["multilevel"]
    assert isinstance(levels, Offer) and levels.over_cone and levels.per_transaction < asked.cone_time


def test_costs_share_building_among_the_transactions_of_a_choice() -> None:
    offer = Offer("x", "", per_row=3.0, per_transaction=20.0, bytes=0.0, build=LASTS * 1000.0)
    assert offer.cost(100) == 33.0 and offer.cost(0) == 1023.0


def test_a_strategy_that_gave_up_is_not_asked_again() -> None:
    asked = question(STAR, **star(1000, 10))
    asked.given_up = dict.fromkeys(("views", "multilevel"), "maps cannot hold its values")
    chosen = choose(asked)
    assert chosen.way == "delta" and "cannot hold" in chosen.explain(asked.store)[0]


def test_names_that_can_be_selected() -> None:
    assert SELECTABLE == ("delta", "trace", "trace-exact", "views", "multilevel", "join_graph")
    for name in ("stages", "from scratch", "dleta"):
        with pytest.raises(DlogError, match="unknown strategy"):
            dlog.Database(strategy=name)


def test_a_strategy_is_one_folder() -> None:
    for folder in FOLDERS:
        found = {path.name for path in (MAINTAIN / folder).glob("*.py")}
        assert {"__init__.py", "offer.py", "keep.py"} <= found, folder


def test_only_the_list_and_its_own_folder_name_a_strategy() -> None:
    assert [*_mentions()] == []


def _mentions() -> Iterator[str]:
    """Modules that import from a strategy's folder, or have its name as a text, and should not."""
    for path in sorted(ROOT.rglob("*.py")):
        own = path.relative_to(MAINTAIN).parts[0] if path.is_relative_to(MAINTAIN) else ""
        if path == Path(strategies.__file__) or path.is_relative_to(ROOT / "m3"):
            continue  # an instruction of M3 is called delta
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dlog.engine.maintain."):
                folder = (node.module or "").split(".")[3]
                if folder in FOLDERS - {own}:
                    yield f"{path}:{node.lineno} imports {node.module}"
            if isinstance(node, ast.Constant) and node.value in NAMES and own not in FOLDERS:
                yield f"{path}:{node.lineno} has {node.value!r}"
