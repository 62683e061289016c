"""Every benchmark runs at its smallest size, so that none rots: each asserts that both sides agree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dlog
from benchmarks import (
    closure,
    entitlements,
    harness,
    joins,
    one_source,
    patterns,
    points_to,
    strategies,
    table,
)
from benchmarks.__main__ import find
from benchmarks.harness import Row, below, compare, faster, timed, within
from benchmarks.rule_facts import Facts

SMALLEST = 1e-6
FOUND = find()


@pytest.mark.parametrize("name", FOUND)
def test_benchmark_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "PATIENCE", 0.0)  # two rounds, and no more
    rows = list(FOUND[name](SMALLEST))
    assert rows
    assert all(row.ours > 0 and (row.theirs is None) == (row.peer == "") for row in rows)
    assert len({(row.name, row.size, row.peer) for row in rows}) == len(rows), "no two rows look alike"


def benchmark_queries(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, dlog.Database]]:
    """The programs of the benchmarks over small tables, none of them run."""
    taken: list[tuple[str, dlog.Database]] = []

    def take(
        name: str, size: str, rules: str, derived: str, tables: Any, *sql: str, **more: Any
    ) -> list[Row]:
        taken.append((name, joins.loaded(more.get("declared", joins.GRAPH) + rules, tables)))
        return []

    monkeypatch.setattr(joins, "against_duck", take)
    for part in (joins.paths(3000), joins.cycles(1000), joins.many_rules(50), joins.entitlements(2000)):
        list(part)
    yield from taken
    graph = joins.directed(3000)
    for name, body in (("triangles", patterns.TRIANGLE), ("4-cliques", patterns.CLIQUE)):
        yield name, joins.loaded(joins.GRAPH + joins.counting(body), graph)
    edges = graph["e"]
    yield "closure", joins.loaded(closure.CLOSURE, {"edge": edges})
    yield "two strata", joins.loaded(closure.TWO_STRATA, {"edge": edges})
    yield "same generation", joins.loaded(closure.GENERATION, {"parent": edges})
    yield "shortest paths", joins.loaded(closure.PATHS, {"edge": [*edges, edges[0]]})
    yield "counting", dlog.Database(source=closure.COUNTING.format(9), evaluated=False)
    statements = points_to.generate(500)
    yield "points-to", joins.loaded(points_to.PROGRAM, {name: list(t.T) for name, t in statements.items()})
    for rule in (one_source.LEFT, one_source.RIGHT):
        text = f"edge(x, y) -> int(x), int(y).\n{one_source.EXIT}{rule}?- reach(0, y).\n"
        yield "one source", joins.loaded(text, {"edge": edges})
    texts = "\n".join(line for line in entitlements.PROGRAM.splitlines() if ".input" not in line)
    yield "texts", dlog.Database(source="\n".join([texts, *entitlements.RULES.values()]), evaluated=False)
    groups = "t(k, v) -> int(k), int(v).\ns[k] = x <- agg<<x = sum(v)>> t(k, v).\n"
    yield "groups", joins.loaded(groups, {"t": edges})


def test_explain_tells_plan_and_reason_of_every_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """For each rule what is done and why: what it is expected to cost beside what else there is, or that it
    is quick; for each recursion how its rows drive one another and how new ones are detected."""
    seen = set()
    for name, database in benchmark_queries(monkeypatch):
        text = database.explain()
        seen.add(name)
        for part in re.split(r"^  (?=\S+:\d+: )", text, flags=re.MULTILINE)[1:]:
            rule, _, plan = part.partition("\n")
            plan = re.split("^stratum|^column orders|^  maintained", plan, flags=re.MULTILINE)[0]
            if rule.endswith("<- true."):
                continue
            assert re.search(r"key order \[|nothing else is read|hash table", plan), (name, part)
            if plan.count(" reads ") > 1 and "for each new" not in plan:
                reason = r"in one join[:,]|in parts, estimated at|\n +unless more than|^ +first "
                assert re.search(reason, plan), (name, part)
        assert text.count("(recursive") == text.count("new rows are detected with"), (name, text)
        assert "key order" not in text or "the one that is expected to visit the fewest" in text
    assert len(seen) > 15
    assert {"4-cycle, list", "300 rules", "entitlements", "points-to", "one source"} <= seen


FACTS = """
sold[order, product] = pieces -> int(order), string(product), int(pieces).
price[product] = p -> string(product), decimal[8, 2](p).
closed(day) -> date(day).   on[order] = day -> int(order), date(day).   known(day) -> date(day).
.table known
worth[o] = t <- agg<<t = sum(n)>> sold[o, p] = n, price[p] = _, on[o] = d, !closed(d), known(d), n != 7.
"""


@pytest.mark.parametrize("seed", ["a", "b"])
def test_generated_facts_fit_their_rule(seed: str) -> None:
    """Values have the types of their columns, functions one value, joins meet; and changes are what the
    facts say: after them, a database has the rows that the generator has."""
    program = dlog.check(FACTS)
    facts = Facts(program, 300, seed)
    assert facts.changing == ["closed", "on", "price", "sold"] and len(facts.rows["sold"]) > 100
    assert any(row[2] == 7 for row in facts.rows["sold"]), "a literal of the rule occurs in its column"
    source = FACTS.replace(".table known", "")
    db = dlog.Database(source=source)
    db.apply(insert=facts.rows)
    assert len(db["worth"]) > 0
    for number in range(60):
        insert, erase = facts.change(1 + number % 20, hub=number % 3 == 0)
        db.apply(insert=insert, erase=erase)
    for name, rows in facts.rows.items():
        assert sorted(rows) == sorted(db[name].rows()), name


def test_shipped_rules_are_found_once() -> None:
    names = [rule.name for rule in strategies.shipped_rules()]
    assert len(names) == len(set(names)) > 300
    assert "triangles:triangle" in names and "reach:reach" not in names, "recursions have no choice"


def test_differing_results_are_an_error() -> None:
    with pytest.raises(AssertionError, match="join"):
        list(compare("join", "", lambda: 1, {"other": lambda: 2}))


def test_sides_run_in_turns_and_the_best_counts() -> None:
    ticks = iter([0.0, 3.0, 10.0, 11.0, 20.0, 22.0, 30.0, 35.0])
    seen: list[str] = []
    actions = {"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}
    best = timed(actions, runs=2, clock=lambda: next(ticks))
    assert seen == ["a", "b", "a", "b"]
    assert {name: m.seconds for name, m in best.items()} == {"a": 2.0, "b": 1.0}


def test_aims() -> None:
    row = Row("", "", 2.0, 6.0, "peer")
    assert faster(3).met(row) and not faster(3.1).met(row)
    assert within(0.34).met(row) and not within(0.33).met(row)
    assert below(2.0).met(row) and not below(1.9).met(row)


def test_writing_some_benchmarks_keeps_the_others(tmp_path: Path) -> None:
    path = tmp_path / "RESULTS.md"
    table.write({"a": [Row("first", "", 1.0)], "b": [Row("second", "", 2.0)]}, 1, path)
    table.write({"a": [Row("third", "", 3.0)]}, 1, path)
    text = path.read_text()
    assert "second" in text and "third" in text and "first" not in text
    assert text.count("| benchmark |") == 1
