"""Equivalence relations equal what their laws derive: programs with `eqrel` against programs with the rules

    same(x, x) :- same(x, _).   same(y, x) :- same(x, y).   same(x, z) :- same(x, y), same(y, z).

over random transactions under every strategy; the second program is evaluated by the naive evaluator.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import dlog
from dlog.engine.maintain.strategies import SELECTABLE
from dlog.errors import DataError, DlogError, VerifyError
from dlog.heads.classes import canonical, class_change, closure_rows, closure_size
from dlog.spark.run.run import ShardedDatabase
from dlog.spark.run.tasks import run_in_process
from dlog.spark.stream.placing import place_program
from dlog.storage.arena.arena import Arena
from dlog.storage.relation.relation import Relation
from tests.oracle import naive

LAWS = """
same(x, x) :- same(x, _).  same(x, x) :- same(_, x).
same(y, x) :- same(x, y).  same(x, z) :- same(x, y), same(y, z).
"""
DECLARED = ".decl same(x: number, y: number)"
# Rules that read the relation in every position: joins, negation, counts, constants, one variable twice.
READERS = """
.decl alias(x: number, y: number)
.decl mark(x: number)
.decl both(x: number, y: number)
.decl reached(x: number)
.decl apart(x: number, y: number)
.decl size(x: number, n: number)
.decl least(x: number, m: number)
.decl member(x: number)
.decl near(x: number)
.decl either(x: number)
both(x, y) :- mark(x), same(x, y), mark(y).
reached(y) :- mark(x), same(x, y).
apart(x, y) :- mark(x), mark(y), !same(x, y).
size(x, n) :- mark(x), n = count : { same(x, _) }.
least(x, m) :- mark(x), m = min y : { same(x, y) }.
member(x) :- same(x, x).
near(x) :- same(3, x).
either(x) :- mark(x), (same(x, 1) ; same(2, x), x != 4).
"""
RULES = "same(x, y) :- alias(x, y), x != 7.\n"
# A congruence: what is equivalent has equivalent successors.
RECURSION = ".decl next(x: number, y: number)\nsame(f, g) :- same(x, y), next(x, f), next(y, g).\n"
SHOWN = ("same", "both", "reached", "apart", "size", "least", "member", "near", "either")


def closed(source: str, facts: dict[str, set]) -> dict[str, set]:
    """What the program means by its laws."""
    program = dlog.check(f"{DECLARED}\n{READERS}{LAWS}{source}")
    base: dict[str, set] = {name: set() for name in program.predicates}
    base.update({name: set(rows) for name, rows in facts.items()})
    found = naive.evaluate_base(program, base)
    return {name: found[name] for name in SHOWN}


def random_change(chance: random.Random, facts: dict[str, set], names: list[str], values: int) -> dict:
    """Rows to insert and to erase, by predicate, which are applied to the facts."""
    insert: dict[str, list] = {}
    erase: dict[str, list] = {}
    for name in chance.sample(names, chance.randint(1, len(names))):
        arity = 1 if name == "mark" else 2
        for _ in range(chance.choice((1, 1, 2, 5))):
            if facts[name] and chance.random() < 0.5:
                row = chance.choice(sorted(facts[name]))
                if row not in insert.get(name, ()):
                    facts[name].discard(row)
                    erase.setdefault(name, []).append(row)
            else:
                row = tuple(chance.randrange(values) for _ in range(arity))
                if row not in erase.get(name, ()):
                    facts[name].add(row)
                    insert.setdefault(name, []).append(row)
    return {"insert": insert, "erase": erase}


def assert_equal(database: dlog.Database, wanted: dict[str, set]) -> None:
    assert {name: set(database[name].rows()) for name in SHOWN} == wanted
    assert len(database.relation("same")) == len(wanted["same"])


@pytest.mark.parametrize("strategy", [None, *SELECTABLE])
@pytest.mark.parametrize("source", [RULES, RULES + RECURSION], ids=["plain", "recursive"])
def test_oracle_random_transactions(source: str, strategy: str | None) -> None:
    chance = random.Random(f"{source} {strategy}")
    names = ["same", "alias", "mark", *(["next"] if "next" in source else [])]
    for _ in range(3):
        facts: dict[str, set] = {name: set() for name in names}
        database = dlog.Database(source=f"{DECLARED} eqrel\n{READERS}{source}", strategy=strategy)
        for _ in range(12):
            database.apply(**random_change(chance, facts, names, 12))
            assert_equal(database, closed(source, facts))
        database.check()
        database.verify()


@pytest.mark.parametrize("source", ["", RULES, RULES + RECURSION], ids=["facts", "plain", "recursive"])
def test_oracle_evaluation_from_scratch(source: str, tmp_path: Path) -> None:
    chance = random.Random(source)
    for _ in range(10):
        names = ["same", "alias", "mark", *(["next"] if "next" in source else [])]
        facts: dict[str, set] = {name: set() for name in names}
        for _ in range(6):
            random_change(chance, facts, names, 12)
        text = " ".join(f"{name}{row}.".replace(",)", ")") for name in names for row in sorted(facts[name]))
        program = tmp_path / "program.dl"
        outputs = "\n".join(f".output {name}" for name in SHOWN)
        program.write_text(f"{DECLARED} eqrel\n{READERS}{source}\n{text}\n{outputs}\n.printsize same\n")
        wanted = closed(source, facts)
        assert_equal(dlog.Database(program), wanted)
        lazy = dlog.Database(program, evaluated=False)
        assert_equal(lazy, wanted)
        assert set(lazy.query("?- same(x, y), x < y.").rows()) == {(x, y) for x, y in wanted["same"] if x < y}


def test_oracle_classes_of_random_pairs() -> None:
    """Array by array: classes after a change are those of the pairs that are left, from nothing."""
    chance = random.Random(5)
    arena = Arena(1 << 28)
    for _ in range(30):
        values = chance.choice((4, 10, 40))
        pairs, classes = Relation(arena, 2), Relation(arena, 2)
        for _ in range(15):
            count = chance.randint(0, 12)
            rows = np.array([[chance.randrange(values) for _ in "xy"] for _ in range(count)])
            some = pairs.rows()
            erased = some[[i for i in range(len(some)) if chance.random() < 0.2]]
            net = pairs.apply_in_place(inserts=rows.reshape(-1, 2).astype(int), erases=erased)
            change, _ = class_change(classes, pairs, net.inserted, net.erased)
            done = classes.apply_in_place(inserts=change.inserted, erases=change.erased)
            assert [*map(len, done)] == [*map(len, change)]  # the change is net
            assert {tuple(row) for row in canonical(classes).tolist()} == by_search(pairs.rows().tolist())
            assert closure_size(classes) == len(closure_rows(classes))


def by_search(pairs: list[list[int]]) -> set[tuple[int, int]]:
    """Each member with the least one that it is connected to."""
    around: dict[int, set[int]] = {}
    for x, y in pairs:
        around.setdefault(x, {x}).add(y)
        around.setdefault(y, {y}).add(x)
    found = set()
    for start in around:
        seen, waiting = {start}, [start]
        while waiting:
            more = around[waiting.pop()] - seen
            seen |= more
            waiting += more
        found.add((start, min(seen)))
    return found


def test_only_the_smaller_class_moves() -> None:
    """A million members that join one by one would otherwise cost a million times a million."""
    database = dlog.Database(source=f"{DECLARED} eqrel\n{READERS}")
    database.apply(insert={"same": [(i, i + 1) for i in range(100, 1000)]})
    for new in range(50, 40, -1):
        commit = database.apply(insert={"same": [(new, 500)]})
        assert commit.costs["same"] < 10


def test_a_pair_that_is_not_needed_changes_nothing() -> None:
    database = dlog.Database(source=f"{DECLARED} eqrel\n{READERS} same(1, 2). same(2, 3). mark(1).")
    before = database["both"].rows(), database["same"].rows()
    commit = database.apply(insert={"same": [(1, 3)]})
    assert not commit.changes
    commit = database.apply(erase={"same": [(1, 2)]})
    assert not commit.changes
    assert before == (database["both"].rows(), database["same"].rows())


def test_a_folder_has_the_pairs(tmp_path: Path) -> None:
    source = f"{DECLARED} eqrel\n{READERS}{RULES}{RECURSION}"
    with dlog.Database(tmp_path / "db", source=source) as database:
        database.apply(insert={"same": [(1, 2)], "alias": [(2, 3)], "next": [(1, 10), (3, 11)]})
        database.apply(insert={"mark": [(1,)]}, erase={"alias": [(9, 9)]})
        wanted = {name: database[name].rows() for name in SHOWN}
        assert (10, 11) in wanted["same"]
    with dlog.Database(tmp_path / "db") as database:
        assert {name: database[name].rows() for name in SHOWN} == wanted
        database.apply(erase={"same": [(1, 2)]})
        assert database["same"].rows() == [(2, 2), (2, 3), (3, 2), (3, 3), (11, 11)]
        database.verify()


def test_a_folder_has_pairs_of_a_relation_without_rules(tmp_path: Path) -> None:
    with dlog.Database(tmp_path / "db", source=f"{DECLARED} eqrel") as database:
        database.apply(insert={"same": [(1, 2), (2, 3)]})
        database.apply(erase={"same": [(1, 2)]}, insert={"same": [(5, 6)]})
    with dlog.Database(tmp_path / "db") as database:
        assert database["same"].rows() == [(2, 2), (2, 3), (3, 2), (3, 3), (5, 5), (5, 6), (6, 5), (6, 6)]


def test_verify_finds_wrong_classes() -> None:
    database = dlog.Database(source=f"{DECLARED} eqrel\nsame(1, 2). same(3, 4).")
    database.verify()
    database.store.relations["same'class"].apply_in_place(inserts=[(3, 1)], erases=[(3, 3)])
    with pytest.raises(VerifyError, match="same"):
        database.verify()


def test_strings_are_members() -> None:
    database = dlog.Database(source='.decl same(x: symbol, y: symbol) eqrel\nsame("b", "a"). same("c", "b").')
    assert len(database["same"].rows()) == 9
    assert database.query('?- same("a", x).').rows() == [("a",), ("b",), ("c",)]


def test_changes_are_not_computed() -> None:
    database = dlog.Database(source=f"{DECLARED} eqrel")
    with pytest.raises(DataError, match="equivalence relation, whose changes are not computed"):
        database.subscribe("same", lambda change: None)
    assert "same" not in database.apply(insert={"same": [(1, 2)]}).changes


def test_why_is_a_chain_of_pairs() -> None:
    source = f"{DECLARED} eqrel\n{READERS}{RULES} alias(3, 2). same(1, 2). same(3, 4). mark(1). mark(8)."
    database = dlog.Database(source=source)
    lines = [line.strip().split("   ")[0] for line in database.why("same(4, 1)").splitlines()]
    assert lines == ["same(4, 1)", "same(3, 4)", "same(3, 2)", "alias(3, 2)", "3 != 7", "same(1, 2)"]
    assert "same(1, 2)   base fact" in database.why("reached(4)")
    assert "no (same(" in database.why("apart(1, 8)")
    with pytest.raises(DlogError, match=r"same\(1, 5\) does not hold"):
        database.why("same(1, 5)")


def test_why_of_a_recursion_is_refused() -> None:
    facts = "next(1, 3). next(2, 4). same(1, 2)."
    database = dlog.Database(source=f"{DECLARED} eqrel\n{READERS}{RECURSION}{facts}")
    assert database.why("same(2, 1)").splitlines()[-1].strip() == "same(1, 2)   base fact"
    with pytest.raises(DlogError, match="same depends on itself"):
        database.why("same(3, 4)")


def test_explain_names_union_find() -> None:
    database = dlog.Database(source=f"{DECLARED} eqrel\n{READERS}{RULES}")
    text = database.explain(all=True)
    assert "by union-find over its pairs: one row for each member" in text
    assert "maintained by strategy classes, because same is an equivalence relation" in text
    assert "delta         refused: it is an equivalence relation" in text
    text = dlog.Database(source=f"{DECLARED} eqrel\n{READERS}{RECURSION}").explain()
    assert "in rounds: what is new are the members of the smaller of two classes that join" in text
    assert "from scratch whenever it is touched, because what same derives depends on same" in text


def test_a_component_has_its_own() -> None:
    text = ".comp C<T> { .decl same(x: T, y: T) eqrel  .decl in(x: T, y: T)  same(x, y) :- in(x, y). }"
    database = dlog.Database(source=f"{text} .init a = C<number>\na.in(1, 2).")
    database.execute("+a.in(3, 4). +a.same(2, 9).")
    assert database.query("?- a.same(1, x).").rows() == [(1,), (2,), (9,)]
    database.add_rules(".decl r(x: number)\nr(x) :- a.same(x, 9), x < 5.")
    assert database["r"].rows() == [(1,), (2,)]
    database.execute("-a.in(1, 2).")
    assert database["r"].rows() == [(2,)]
    database.verify()


def test_messages_name_the_relation_and_not_its_classes() -> None:
    database = dlog.Database(source=".decl same(x: number, y: number) eqrel\nsame(x, y) -> x < 9, y < 9.")
    with pytest.raises(DlogError, match=r"\n  same\(1, 9\), but not `y < 9`"):
        database.execute("+same(1, 9).")
    with pytest.raises(DlogError, match=r"f\[1\] = 2  from same\(1, 2\) by the rule"):
        database.execute("+same(1, 2). f[x] = y <- same(x, y).")


def test_snapshots_keep_their_classes_and_rules_go() -> None:
    rules = ".decl q(x: number)\nq(x) :- same(x, 2).\nsame(x, y) :- q(x), y = 5."
    database = dlog.Database(source=f"{DECLARED} eqrel\n{rules} same(1, 2).", jobs=2)
    assert database["q"].rows() == [(1,), (2,), (5,)]
    snapshot = database.snapshot()
    database.execute("+same(7, 8).")
    assert (len(snapshot["same"].rows()), len(database["same"].rows())) == (9, 13)
    database.remove_rule("same(x, y) :- q(x), y = 5.")
    assert len(database["same"].rows()) == 8


@pytest.mark.parametrize("shards", [1, 3])
def test_shards_leave_classes_to_one_process(shards: int) -> None:
    facts = "mark(1). mark(4). alias(1, 2). alias(2, 3). next(1, 8). next(3, 9). same(4, 5)."
    source = f"{DECLARED} eqrel\n{READERS}{RULES}{RECURSION}{facts}"
    sharded = ShardedDatabase(None, run_in_process, shards, source=source, magic=False, small_recursion=0)
    whole = dlog.Database(source=source)
    assert [sharded[name].rows() for name in SHOWN] == [whole[name].rows() for name in SHOWN]


def test_streams_with_shards_refuse_it() -> None:
    program = dlog.Database(source=f"{DECLARED} eqrel").program
    with pytest.raises(DlogError, match="same is an equivalence relation, which cannot be sharded"):
        place_program(program, ["same"], 2)
