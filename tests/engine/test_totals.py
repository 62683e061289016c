"""Recursive sums and counts in databases: transactions, folders, the prompt, and who refuses them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.errors import DataError, PlanError, SourceError
from dlog.spark.plan.places import Shape
from dlog.spark.plan.shards import HERE, plan_blocks
from dlog.spark.stream.placing import place_program
from tests.examples import relaxed

CONTROL = """\
owns[x, y] = p -> string(x), string(y), int(p).
owns[x, y] = p -> p >= 0.
owns["a", "b"] = 60.  owns["a", "c"] = 30.  owns["b", "c"] = 30.  owns["c", "d"] = 51.  owns["d", "c"] = 30.
acts(x, x) <- owns[x, _] = _.
held[x, z] = s <- agg<<s = sum(p)>> acts(x, y), owns[y, z] = p.
acts(x, z) <- held[x, z] = s, s > 50.
"""
PARTS = """\
uses[p, q] = n -> int(p), int(q), int(n).
own[p] = c -> int(p), int(c).
uses[_, _] = n -> n >= 0.
own[_] = c -> c >= 0.
cost[p] = t <- agg<<t = sum(c)>> (own[p] = c ; uses[p, q] = n, c = n * cost[q]).
"""


def test_a_cycle_does_not_support_itself() -> None:
    """c and d hold 81 and 51 percent of each other through a: without the rest, neither is held any more."""
    db = dlog.Database(source=CONTROL)
    assert set(db["acts"].rows()) >= {("a", "b"), ("a", "c"), ("a", "d")}
    db.execute('-owns["a", "b"] = 60.')
    assert [row for row in db["acts"].rows() if row[0] == "a"] == [("a", "a")]
    commit = db.execute('+owns["a", "b"] = 51.')
    assert set(commit.changes["acts"].inserted.rows()) == {("a", "b"), ("a", "c"), ("a", "d")}
    assert ("a", "c", 90) in db["held"].rows()
    db.check()


def test_a_broken_bound_aborts() -> None:
    """A negative share is no contribution; the constraint says why the transaction fails."""
    db = dlog.Database(source=CONTROL)
    before = db["held"].rows()
    with pytest.raises(dlog.errors.ConstraintError, match=r"owns\[x, y\] = p -> p >= 0"):
        db.execute('+owns["e", "a"] = -5.')
    assert db["held"].rows() == before


def test_a_cycle_of_sums_aborts() -> None:
    db = dlog.Database(source=PARTS + "uses[1, 2] = 2. uses[2, 3] = 2. own[3] = 5. own[1] = 1.\n")
    assert db["cost"].rows() == [(1, 21), (2, 10), (3, 5)]
    with pytest.raises(DataError, match=r"cost\[1\], which needs cost\[2\], which needs cost\[3\]"):
        db.execute("+uses[3, 1] = 1.")
    with pytest.raises(DataError, match=r"is computed from itself"):  # also where it would settle
        db.execute("+uses[3, 3] = 0.")
    assert db["cost"].rows() == [(1, 21), (2, 10), (3, 5)]
    db.execute("-uses[1, 2] = 2. +uses[3, 1] = 1.")
    assert db["cost"].rows() == [(1, 1), (2, 12), (3, 6)]


def test_a_sum_that_does_not_fit_is_an_error() -> None:
    source = PARTS + "".join(f"uses[{i}, {i + 1}] = 1000.\n" for i in range(8))
    source += "".join(f"own[{i}] = 1.\n" for i in range(9))
    with pytest.raises(DataError, match="is too large for its type"):
        dlog.Database(source=source)
    with pytest.raises(DataError, match=r"the sum of group \[1\] does not fit"):
        dlog.Database(source=PARTS + f"own[2] = {2**63 - 1}. own[1] = 1. uses[1, 2] = 1.")


@relaxed(60)
@given(st.dictionaries(st.tuples(*[st.integers(0, 9)] * 2), st.integers(0, 4), max_size=25))
def test_oracle_bill_of_materials(uses: dict[tuple[int, int], int]) -> None:
    """Compared with one pass over the parts from the last to the first."""
    uses = {(p, q): n for (p, q), n in uses.items() if p < q}
    parts = defaultdict(list)
    for (p, q), n in uses.items():
        parts[p].append((q, n))
    cost: dict[int, int] = {}
    for p in reversed(range(10)):
        own = [p + 1] if p % 3 == 0 else []
        terms = own + [n * cost[q] for q, n in parts[p] if q in cost]
        if terms:
            cost[p] = sum(terms)
    facts = [f"uses[{p}, {q}] = {n}." for (p, q), n in uses.items()]
    facts += [f"own[{p}] = {p + 1}." for p in range(0, 10, 3)]
    with dlog.Database(source=PARTS + "\n".join(facts)) as db:
        assert dict(db["cost"].rows()) == cost


@pytest.mark.parametrize(("type", "one"), [("unsigned", "1u"), ("float", "1.0"), ("decimal[9, 3]", "1.0")])
def test_other_numbers(type: str, one: str) -> None:
    source = f"""\
    link[x, y] = w -> int(x), int(y), {type}(w).
    link[_, _] = w -> w >= {one.replace("1", "0")}.
    link[1, 2] = {one}.  link[1, 3] = {one}.  link[2, 4] = {one}.  link[3, 4] = {one}.
    weight[x] = s <- agg<<s = sum(w)>> reached(y), link[y, x] = w.
    reached(1).
    reached(x) <- weight[x] = s, s >= {one}.
    """
    with dlog.Database(source=source) as db:
        assert [int(s) for _, s in db["weight"].rows()] == [1, 1, 2]
        assert db["reached"].rows() == [(1,), (2,), (3,), (4,)]


def test_in_a_folder_and_at_the_prompt(tmp_path: Path) -> None:
    program = tmp_path / "control.dl"
    program.write_text(CONTROL)
    with dlog.Database(tmp_path / "db", program=program) as db:
        db.execute('-owns["a", "c"] = 30.')
        before = db["held"].rows()
    with dlog.Database(tmp_path / "db") as db:
        assert db["held"].rows() == before
        with pytest.raises(SourceError, match="is not monotone"):
            db.execute("acts(x, z) <- held[x, z] = s, s < 3.")
        db.execute("acts(x, z) <- held[x, z] = s, s > 20.")
        assert ("a", "d") in db["acts"].rows()
        db.check()


def test_explain_says_how_it_is_evaluated_and_maintained() -> None:
    text = dlog.Database(source=CONTROL).explain()
    assert "groups with new contributions are added up again: sum of held" in text
    assert "recursive sums or counts, which may support themselves" in text


def test_a_goal_gets_the_same_answer() -> None:
    source = CONTROL + '?- acts("a", x).\n'
    answers = []
    for goals_only in (False, True):
        db = dlog.Database(source=source, goals_only=goals_only)
        answers.append([answer.rows() for _, answer in db.queries()])
    assert answers[0] == answers[1] == [[("a",), ("b",), ("c",), ("d",)]]


def test_spark_evaluates_it_in_one_process_and_streams_of_shards_refuse_it() -> None:
    program = dlog.check(CONTROL.replace("owns[x, y] = p -> p >= 0.\n", "").replace("int(p)", "unsigned(p)"))
    blocks = plan_blocks(Shape(program, 4, frozenset(), {"owns": 1_000_000}))
    assert HERE in [block.kind for block in blocks]
    with pytest.raises(PlanError, match="a program with recursive sums or counts cannot be sharded"):
        place_program(program, ["owns"], 2)
