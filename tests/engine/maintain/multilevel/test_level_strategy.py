"""Rules maintained by levels of maps in transactions: the answers of the naive evaluator, of DuckDB and of
every other strategy, after every commit and after those that are rolled back.
"""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as with_seed
from hypothesis.stateful import run_state_machine_as_test

import dlog
from dlog.engine import database
from dlog.engine.maintain import maintain
from dlog.engine.maintain.chosen import chosen_strategies
from dlog.engine.maintain.cones import is_stale
from dlog.engine.maintain.multilevel import offer, rule_levels
from dlog.engine.maintain.multilevel.keep import LevelStrategy
from dlog.engine.maintain.triggers import small_transaction
from dlog.errors import Interrupted
from dlog.m3.runtime.runtime import Runtime
from tests.engine.machine import Seen, machine
from tests.engine.mixed import MIXED
from tests.oracle.bodies import Features
from tests.oracle.naive import evaluate
from tests.oracle.shipped import PROGRAMS
from tests.views.levels.random_rules import RandomRules
from tests.views.levels.rules_followed import VALUES

LEVELS = "multilevel"
SHIPPED_VWAP = PROGRAMS / "finance" / "vwap.dl"
VWAP = """
bids(id, v, p) -> int(id), int(v), int(p).
vwap[] = s <- agg<<s = sum(a)>> bids(_, v, p), a = p * v,
    total = sum w : { bids(_, w, _) }, above = sum w : { bids(_, w, q), q > p }, total > 4 * above.
"""
MARKET = """
bids(b, v, p) -> int(b), int(v), int(p). closed(b) -> int(b). fee(b, f) -> int(b), decimal[9, 2](f).
above[b] = n, worth[b] = s <- agg<<n = count(), s = sum(v)>>
    bids(b, v, p), 2 * sum w : { bids(_, w, q), q > p } < sum w : { bids(_, w, _) }.
pairs[b] = s <- agg<<s = sum(v * w)>> bids(b, v, _), bids(b, w, _).
open(b, v) <- bids(b, v, _), !closed(b), v > count : { closed(_) }.
paid[b] = s <- agg<<s = sum(f * v)>> fee(b, f), bids(b, v, p), f > 1.25, sum g : { fee(_, g) } > f.
kinds[] = n <- agg<<n = count_distinct(p)>> bids(_, _, p), !closed(p).
"""
DERIVED = ("above", "worth", "pairs", "open", "paid", "kinds")
WHOLE = Features(("int", "int", "int", "decimal")).with_(
    *("comparisons", "negation", "negated_conjunctions", "disjunctions"),
    *("inline_aggregates", "functions", "aggregates"),
)


def ways(db: dlog.Database) -> dict[str, str]:
    return {s.stratum.predicates[0]: s.way for s in db._maintenance.strategies.values()}


def bids(n: int, seed: int = 1, first: int = 0) -> list[tuple[int, int, int]]:
    rng = random.Random(seed)
    return [(first + i, rng.randrange(1, 20), rng.randrange(30)) for i in range(n)]


def market_rows(rng: random.Random) -> dict[str, list[tuple[Any, ...]]]:
    """Few values, so that rows come again."""
    value = lambda: rng.randrange(4)  # noqa: E731
    rows = {
        "bids": [(value(), value(), value()) for _ in range(rng.choice((0, 1, 4)))],
        "closed": [(value(),) for _ in range(rng.choice((0, 0, 1)))],
        "fee": [(value(), Decimal(rng.randrange(1, 12)) / 4) for _ in range(rng.choice((0, 1)))],
    }
    return {name: found for name, found in rows.items() if found}


# ---- answers


def test_oracle_random_rules() -> None:
    """Programs with inline aggregates, negation, comparisons and self-joins, row by row and in batches."""
    used = sum(follow_random(seed) for seed in range(12))
    assert used >= 10


@pytest.mark.fuzz
def test_fuzz_random_rules() -> None:
    start = random.randrange(10**6)
    for seed in range(start, start + 2000):
        follow_random(seed)


def follow_random(seed: int) -> bool:
    """Whether levels of maps were used for the result."""
    rng = random.Random(seed)
    text = RandomRules(rng).text()
    program = dlog.check(text)
    db = dlog.Database(source=text, strategy=LEVELS)
    facts: dict[str, set[Any]] = {name: set() for name in ("r", "s", "u", "d")}
    for _ in range(7):
        with db.transaction() as tx:
            for _ in range(rng.choice((1, 1, 2, 4))):
                name = rng.choice(list(facts))
                row = tuple(rng.choice(VALUES[c.type.name]) for c in program.predicates[name].columns)
                is_new = row not in facts[name] or rng.random() < 0.3
                (tx.insert if is_new else tx.erase)(name, [row])
                (facts[name].add if is_new else facts[name].discard)(row)
        expected = evaluate(program, facts)
        for name in db.predicates():
            assert set(db[name].rows()) == set(expected[name]), (seed, text, name)
        db.check()
    return ways(db).get("q") == LEVELS


@pytest.mark.parametrize("strategy", [LEVELS, MIXED])
def test_oracle_transactions_of_every_kind(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules come and go, transactions are aborted, and with MIXED strategies change at random."""
    used = machines(12, 10, strategy, monkeypatch)
    assert used[LEVELS] > 1, used


@pytest.mark.fuzz
def test_fuzz_transactions_of_every_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    print(machines(1000, 20, MIXED, monkeypatch, random=True))


def machines(
    programs: int,
    steps: int,
    strategy: str | None,
    monkeypatch: pytest.MonkeyPatch,
    random: bool = False,
    number: int = 0,
) -> Counter[str]:
    """How often strata were maintained by each strategy.  Levels of maps maintain plain joins, too.
    `number`: of the batch of programs, unless they are random."""
    monkeypatch.setattr(offer, "_has_inline_aggregates", lambda question: True)
    used, seen = Counter[str](), Seen()
    random_machine = machine((strategy,), WHOLE, seen)
    note = maintain.Maintenance.note

    def noted(self: maintain.Maintenance, number: int, way: str, seconds: float, rows: int) -> None:
        used[way] += 1
        note(self, number, way, seconds, rows)

    monkeypatch.setattr(maintain.Maintenance, "note", noted)
    for kind in (small_transaction.Step, small_transaction.Steps):
        monkeypatch.setattr(kind, "note", _counting(kind.note, used))
    run_state_machine_as_test(
        random_machine if random else with_seed(number)(random_machine),
        settings=settings(
            max_examples=programs,
            stateful_step_count=steps,
            derandomize=not random,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.generate],
            print_blob=True,
        ),
    )
    assert seen["compared with DuckDB"] > programs, seen
    return used


def _counting(note: Any, used: Counter[str]) -> Any:
    """The same on the short path."""

    def noted(self: Any, seconds: float, maintained: float) -> None:
        used.update(self.ways.values())
        note(self, seconds, maintained)

    return noted


def test_differential_deltas_with_failing_transactions() -> None:
    rng = random.Random(3)
    one, other = (dlog.Database(source=MARKET, strategy=way) for way in (LEVELS, "delta"))
    for step in range(25):
        insert, erase = market_rows(rng), market_rows(rng)
        for db in (one, other):
            if step % 4 == 3:
                with pytest.raises(KeyError), db.transaction() as tx:
                    for name, rows in insert.items():
                        tx.insert(name, rows)
                    raise KeyError
            db.apply(insert=insert, erase=erase)
        for name in DERIVED:
            assert one[name].rows() == other[name].rows(), name
        one.check()
        one.verify()
    assert {ways(one)[name] for name in DERIVED} == {LEVELS}


def test_rows_that_come_and_go_leave_nothing() -> None:
    db = dlog.Database(source=MARKET, strategy=LEVELS)
    rng = random.Random(5)
    rows = [market_rows(rng) for _ in range(10)]
    for some in rows:
        db.apply(insert=some)
    for name in ("bids", "closed", "fee"):
        db.apply(erase={name: db[name].rows()})
        db.check()
    assert not any(db[name].rows() for name in DERIVED)
    strategy = next(s for s in db._maintenance.strategies.values() if isinstance(s, LevelStrategy))
    assert strategy.shared.maps is not None
    assert not any(strategy.shared.maps.contents(m.name) for m in strategy.levels.program.maps)


def test_the_check_finds_a_wrong_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """Maps are compared with their definitions: by what these say, and over many rows by new maps."""
    for few in (1000, 0):
        monkeypatch.setattr(rule_levels, "FEW_ROWS", few)
        db = dlog.Database(source=VWAP, strategy=LEVELS)
        db.apply(insert={"bids": bids(20)})
        db.apply(insert={"bids": bids(1, 2, 100)})
        db.check()
        strategy = next(s for s in db._maintenance.strategies.values() if s.way == LEVELS)
        maps = strategy.shared.maps  # type: ignore[attr-defined]
        contents = maps.contents
        monkeypatch.setattr(maps, "contents", lambda name, known=contents: {**known(name), (77,): 1})
        with pytest.raises(AssertionError, match="is not its definition"):
            db.check()


# ---- cones


def test_auxiliary_predicates_are_absorbed_until_they_are_read() -> None:
    db, other = (dlog.Database(source=VWAP, strategy=way) for way in (LEVELS, "delta"))
    for each in (db, other):
        each.apply(insert={"bids": bids(30)})
    commit = db.apply(insert={"bids": bids(3, 4, 100)})
    other.apply(insert={"bids": bids(3, 4, 100)})
    assert commit.ways == {"vwap": LEVELS}
    auxiliary = [name for name, p in db.program.predicates.items() if p.auxiliary]
    assert len(auxiliary) == 3 and all(is_stale(db.store, [name]) for name in auxiliary)
    fact = f"vwap[] = {db['vwap'].rows()[0][0]}"
    assert db.why(fact) == other.why(fact)
    assert all(is_stale(db.store, [name]) for name in auxiliary)  # what `why` evaluates is not kept
    db.check()
    db.verify()


def test_a_sum_that_stays_the_same_hides_no_change() -> None:
    """What only an auxiliary predicate reads is read by the maps themselves."""
    source = "r(a, b) -> int(a), int(b). t(a) -> int(a). q(a) <- t(a), 3 = sum b : { r(_, b), b < a }."
    db, other = (dlog.Database(source=source, strategy=way) for way in (LEVELS, "delta"))
    for change in (
        {"insert": {"t": [(5,)], "r": [(1, 3)]}},
        {"insert": {"r": [(1, 1), (1, 2)]}, "erase": {"r": [(1, 3)]}},
        {"erase": {"r": [(1, 1)]}},
        {"insert": {"r": [(2, 1)]}},
    ):
        for each in (db, other):
            each.apply(**change)  # type: ignore[arg-type]
        assert db["q"].rows() == other["q"].rows()
        db.check()
    assert ways(db)["q"] == LEVELS


def test_a_rule_that_joins_the_program_is_evaluated_with_what_it_needs() -> None:
    db = dlog.Database(source=VWAP, strategy=LEVELS)
    db.apply(insert={"bids": bids(20)})
    db.apply(insert={"bids": bids(2, 2, 100)})
    db.add_rules("rich[p] = n <- agg<<n = count()>> bids(_, v, p), v > sum w : { bids(_, w, p), w < 5 }.")
    db.apply(insert={"bids": bids(2, 3, 200)})
    db.check()
    db.verify()
    rule = VWAP.split("\n", 2)[2].strip()
    db.remove_rule(rule)
    db.apply(insert={"bids": bids(2, 4, 300)})
    db.add_rules(rule)
    db.apply(insert={"bids": bids(2, 5, 400)})
    db.check()
    db.verify()


def test_a_rule_that_differs_in_an_aggregate_only_is_another_rule() -> None:
    """Only an auxiliary predicate changes: the rule that reads it looks the same."""
    source = "r(a, b) -> int(a), int(b). s(a, b) -> int(a), int(b). t(a) -> int(a)."
    rules = [f"q(a) <- t(a), a < sum b : {{ {name}(a, b) }}." for name in "rs"]
    for way in (LEVELS, "delta"):
        db = dlog.Database(source=f"{source} {rules[0]}", strategy=way)
        db.apply(insert={"t": [(1,), (2,)], "r": [(1, 5)], "s": [(2, 5)]})
        db.apply(insert={"r": [(1, 6)]})
        assert db["q"].rows() == [(1,)]
        with db.transaction() as tx:
            tx.remove_rule(rules[0])
            tx.execute(rules[1])
        assert db["q"].rows() == [(2,)]
        db.apply(insert={"s": [(1, 7)]})
        assert db["q"].rows() == [(1,), (2,)]
        db.check()
        db.verify()


def test_explanations_name_what_is_absorbed() -> None:
    db = dlog.Database(source=VWAP, strategy=LEVELS)
    assert db.explain().count("absorbed by vwap: evaluated when something reads it") == 3


def test_large_changes_are_evaluated_from_scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that was not updated meanwhile; then maps are filled again."""
    db = dlog.Database(source=VWAP, strategy=LEVELS)
    db.apply(insert={"bids": bids(200)})
    monkeypatch.setattr(maintain.Maintenance, "forced", False)
    found = []
    for first, n in ((1000, 1), (2000, 1), (3000, 1100), (5000, 1), (6000, 1)):
        found.append(db.apply(insert={"bids": bids(n, first, first)}).ways["vwap"])
        db.check()
        db.verify()
    assert found[1:3] == [LEVELS, "from scratch"] and found[4] == LEVELS


def test_base_facts_of_the_predicate_are_left_to_others() -> None:
    source = "r(a) -> int(a). p(a) -> int(a). p(a) <- r(a), a > count : { r(_) }."
    db, other = (dlog.Database(source=source, strategy=way) for way in (LEVELS, "delta"))
    for change in ({"r": [(1,), (9,)]}, {"r": [(7,)]}, {"p": [(1,)]}, {"r": [(8,), (2,)]}):
        for each in (db, other):
            each.apply(insert=change)  # type: ignore[arg-type]
        assert db["p"].rows() == other["p"].rows()
        db.check()
    assert ways(db)["p"] == "delta" and "base facts" in db.explain("p")


# ---- what can go wrong


def test_values_outside_the_range_of_maps_are_left_to_deltas() -> None:
    """The sum of what is not joined with anything is in a map, and does not fit there."""
    source = """
        r(a, b) -> int(a), int(b). s(a, c) -> int(a), int(c).
        q[] = x <- agg<<x = sum(b)>> r(a, b), s(a, c), c >= count : { r(a, _) }."""
    db, other = (dlog.Database(source=source, strategy=way) for way in (LEVELS, "delta"))
    large = 2**62
    for rows in ([(2, 1)], [(2, 5)], [(1, large), (1, large - 1), (1, large - 2)], [(2, 7)]):
        for each in (db, other):
            each.apply(insert={"r": rows, "s": [(2, len(rows) + rows[0][1])]})
        assert db["q"].rows() == other["q"].rows()
        db.check()
    assert ways(db)["q"] == "delta" and "levels of maps cannot hold its values" in db.explain("q")


def test_interrupts_between_calls_of_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C after some call of the machine: the transaction is undone, and the next ones are right."""
    db = dlog.Database(source=MARKET, strategy=LEVELS)
    rng = random.Random(7)
    for _ in range(4):
        db.apply(insert=market_rows(rng))
    apply, calls, at = Runtime.apply_words, [0], [0]

    def interrupted(self: Runtime, *given: Any) -> Any:
        found = apply(self, *given)
        calls[0] += 1
        if calls[0] == at[0]:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(Runtime, "apply_words", interrupted)
    times = 0
    for call in range(1, 14):
        before = {name: db[name].rows() for name in db.predicates()}
        calls[0], at[0] = 0, call
        change = market_rows(rng)
        try:
            db.apply(insert=change)
        except Interrupted:
            times += 1
            assert {name: db[name].rows() for name in db.predicates()} == before
            at[0] = 0
            db.apply(insert=change)
        at[0] = 0
        db.check()
        db.verify()
    assert times > 4


def test_constraints_undo_changes_of_maps() -> None:
    db = dlog.Database(source=VWAP + "vwap[] = s -> s < 4000.", strategy=LEVELS)
    db.apply(insert={"bids": [(1, 10, 100)]})
    db.apply(insert={"bids": [(2, 10, 50)]})
    before = db["vwap"].rows()
    with pytest.raises(dlog.ConstraintError):
        db.apply(insert={"bids": [(3, 50, 100)]})
    assert db["vwap"].rows() == before
    db.apply(insert={"bids": [(4, 1, 100)]})
    db.check()
    assert db["vwap"].rows() == [(1100,)] and ways(db)["vwap"] == LEVELS


# ---- everything else that a database does


def test_snapshots_see_what_was() -> None:
    db = dlog.Database(source=VWAP, strategy=LEVELS)
    db.apply(insert={"bids": bids(20)})
    views = []
    for step in range(4):
        views.append((db.snapshot(), db["vwap"].rows(), db["bids"].rows()))
        db.apply(insert={"bids": bids(2, step, 100 + 10 * step)})
    for view, vwap, rows in views:
        assert (view["vwap"].rows(), view["bids"].rows()) == (vwap, rows)


def test_branches_have_their_own_state() -> None:
    db = dlog.Database(source=VWAP, strategy=LEVELS)
    db.apply(insert={"bids": bids(20)})
    db.branch("trial")
    for step in range(6):
        db.checkout("trial" if step % 2 else "main")
        db.apply(insert={"bids": bids(1, step, 100 + step)})
        db.apply(insert={"bids": bids(2, step, 200 + 10 * step)})
        db.check()
        db.verify()
        assert db.why(f"vwap[] = {db['vwap'].rows()[0][0]}")


def test_a_folder_is_opened_again(tmp_path: Path) -> None:
    with dlog.Database(tmp_path / "db", source=VWAP, strategy=LEVELS) as db:
        db.apply(insert={"bids": bids(20)})
        db.apply(insert={"bids": bids(2, 2, 100)})
        db.checkpoint()
        db.apply(insert={"bids": bids(2, 3, 200)})
        before = db["vwap"].rows()
    with dlog.Database(tmp_path / "db", strategy=LEVELS) as db:
        assert db["vwap"].rows() == before
        db.apply(insert={"bids": bids(2, 4, 300)})
        db.apply(insert={"bids": bids(2, 5, 400)})
        db.check()
        db.verify()
        assert ways(db)["vwap"] == LEVELS


def test_subscribers_get_the_net_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "VERIFY", True)
    db = dlog.Database(source=VWAP, strategy=LEVELS)
    db.apply(insert={"bids": bids(20)})
    seen: list[Any] = []
    db.subscribe("vwap", lambda change: seen.append((change.erased.rows(), change.inserted.rows())))
    before = db["vwap"].rows()
    db.apply(insert={"bids": [(500, 10, 29)]})
    assert seen == [(before, db["vwap"].rows())]


def test_heads_of_a_rule_share_their_maps() -> None:
    db = dlog.Database(source=MARKET, strategy=LEVELS)
    db.apply(insert={"bids": [(1, 2, 3), (2, 2, 1)]})
    found = {s.name: s.shared for s in db._maintenance.strategies.values() if isinstance(s, LevelStrategy)}
    assert found["above"] is found["worth"] and found["pairs"] is not found["worth"]
    db.apply(insert={"bids": [(1, 4, 3)]})
    assert len(found["above"].changes) == 1
    db.check()


# ---- refusals and requests


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("t[a] = x <- agg<<x = max(b)>> r(a, b).", "levels of maps maintain sums and counts, not max"),
        ("t[a] = x <- agg<<x = mean(b)>> r(a, b).", "levels of maps maintain sums and counts, not mean"),
        ("t[a] = x <- agg<<x = sum(f)>> g(a, f).", "sums of floats are rounded"),
        ("t[a] = n <- agg<<n = count()>> g(a, f), f > 1.5.", "it computes with values that are not integers"),
        ("t(a) <- r(a, _), 2.5 < sum f : { g(_, f) }.", "sums of floats are rounded"),
        ("t[x] = c <- agg<<c = count()>> n(a, s), x = upper(s).", "levels of maps do not compute upper"),
        ("t() <- r(a, b), a <= count : { r(_, b) }.", "it has no columns"),
        ("t(a) <- r(a, b), r(b, _), a < b.", "it aggregates nothing"),
        ("t(a, b) <- r(a, b). t(a, c) <- t(a, b), r(b, c).", "it is recursive"),
    ],
)
def test_other_rules_stay_with_others(rule: str, why: str) -> None:
    source = "r(a, b) -> int(a), int(b). g(a, f) -> int(a), float(f). n(a, s) -> int(a), string(s)."
    db = dlog.Database(source=f"{source} {rule}", strategy=LEVELS)
    db.apply(insert={"r": [(1, 2), (1, 5), (2, 1)], "g": [(1, 2.5), (2, 0.5)], "n": [(1, "a")]})
    db.check()
    assert ways(db)["t"] != LEVELS and len(db["t"].rows()) >= 1
    assert why in db.explain("t", all=True)


def test_texts_are_compared_for_equality() -> None:
    source = """n(a, s) -> int(a), string(s).
        t[s] = c <- agg<<c = count()>> n(_, s), s != "b", 2 > count : { n(_, "c") }."""
    db, other = (dlog.Database(source=source, strategy=way) for way in (LEVELS, "delta"))
    for rows in ([(1, "a"), (2, "b")], [(1, "c")], [(2, "c")], [(3, "a")]):
        for each in (db, other):
            each.apply(insert={"n": rows})
        assert db["t"].rows() == other["t"].rows()
        db.check()
    assert ways(db)["t"] == LEVELS


def test_a_pragma_requests_a_strategy() -> None:
    pragma = '.pragma "strategy" "multilevel"\n'
    db = dlog.Database(source=pragma + VWAP)
    db.apply(insert={"bids": bids(5)})
    assert ways(db)["vwap"] == LEVELS and "it was requested" in db.explain("vwap")
    db = dlog.Database(source=pragma + VWAP, strategy="delta")  # the caller decides
    db.apply(insert={"bids": bids(5)})
    assert ways(db)["vwap"] == "delta"
    with pytest.raises(dlog.SourceError, match="1:1: unknown strategy multilevle") as found:
        dlog.Database(source='.pragma "strategy" "multilevle"')
    assert found.value.help is not None and LEVELS in found.value.help


# Without a request


def test_it_is_chosen_where_deltas_take_longer() -> None:
    """VWAP as it is shipped: with few bids compiling the maps would cost more than they save."""
    orders = [(i, *row) for i, row in enumerate(order_book(2000))]
    few, many = (dlog.Database(SHIPPED_VWAP, load=False) for _ in range(2))
    for db, rows in ((few, orders[:5]), (many, orders[:2000])):
        db.apply(insert={"bids": rows})
        db.apply(insert={"bids": [(5000, 5000, 1, 10, 50)]})
        db.check()
        db.verify()
    assert ways(few)["vwap"] == "delta" and ways(many)["vwap"] == LEVELS
    shown = few.explain("vwap", all=True)
    assert "offered: a row costs others about" in shown and " us for inline aggregates" in shown
    assert "levels of maps, because a row costs others about" in many.explain("vwap")
    assert many.explain().count("absorbed by vwap") == 3
    (chosen,) = chosen_strategies(many._maintenance, many.store)
    assert chosen.predicates == ("vwap",) and chosen.strategy == LEVELS


def order_book(n: int) -> list[tuple[int, int, int, int]]:
    rng = random.Random(n)
    return [(i, rng.randrange(10), rng.randrange(1, 100), rng.randrange(200)) for i in range(n)]


def test_differential_deltas_while_data_grow_and_shrink(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deltas become levels of maps, and these deltas again: sums that were absorbed are evaluated then."""
    own, other = dlog.Database(source=VWAP), dlog.Database(source=VWAP, strategy="delta")
    rows, used = bids(2000), []
    for start, end in ((0, 3), (3, 4), (4, 1900), (1900, 1901), (1901, 1950)):
        for db in (own, other):
            db.apply(insert={"bids": rows[start:end]})
        assert own["vwap"].rows() == other["vwap"].rows()
        used.append(ways(own)["vwap"])
        own.check()
    monkeypatch.setattr(offer, "PER_TRANSACTION", 1e6)
    for start, end in ((1900, 1950), (5, 1900), (4, 5), (3, 4), (0, 3)):
        for db in (own, other):
            db.apply(erase={"bids": rows[start:end]})
        assert own["vwap"].rows() == other["vwap"].rows()
        used.append(ways(own)["vwap"])
        own.check()
    assert used[0] == used[-1] == "delta" and used[3] == used[5] == LEVELS


def test_oracle_transactions_of_every_kind_without_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Maps that cost nothing to build are chosen for the few rows of a test, too.  Hypothesis draws constants
    that it finds in the source, so programs change with edits elsewhere: if a batch has too few rules with
    maps, others follow."""
    monkeypatch.setattr(offer, "BUILD", 0.0)
    used = Counter[str]()
    for number in range(5):
        with monkeypatch.context() as patch:
            used += machines(24, 10, None, patch, number=number)
        if used[LEVELS] > 1:
            break
    assert used[LEVELS] > 1, used


JOIN = """
bids(id, v, p) -> int(id), int(v), int(p).
beaten(a, b) <- bids(a, _, p), bids(b, _, q), p < q, count : { bids(_, _, p) } > 1.
"""


def test_maps_as_large_as_a_join_are_refused() -> None:
    db = dlog.Database(source=JOIN)
    db.apply(insert={"bids": bids(2000)})
    db.apply(insert={"bids": [(5000, 1, 1)]})
    assert ways(db)["beaten"] != LEVELS
    assert "it has no levels of maps: they would" in db.explain("beaten")


def test_maps_with_lists_of_constants_are_checked() -> None:
    source = "r(a) -> int(a). q(a, n) <- r(a), (a = 1 ; a = 2 ; a = 7), n = count : { r(b), b > a }."
    db = dlog.Database(source=source, strategy=LEVELS)
    for i in range(6):
        commit = db.apply(insert={"r": [(i,)]})
        db.check()
        db.verify()
    assert commit.ways["q"] == LEVELS and db["q"].rows() == [(1, 4), (2, 3)]
