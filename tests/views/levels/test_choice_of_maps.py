"""The choice of maps of whole queries: demotions change no answer, explain shows what several choices cost,
and maps are chosen again when rates and sizes change.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dlog.errors import DlogError
from dlog.m3.syntax import ast
from dlog.multilevel.selection.choice import CHOSEN, Selection
from dlog.multilevel.selection.sizes import Statistics
from dlog.views.levels.explain import explain
from dlog.views.levels.program import Levels, Options, levels, side_by_side
from dlog.views.levels.sampled import Sample, sampled
from dlog.views.nested import NestedQuery
from dlog.views.run.maintained import Maintained
from dlog.views.run.measured import measured
from dlog.views.sql.files import parse_sql, read_sql
from tests.multilevel.test_demote import Some
from tests.views.levels.following import no_entries, same
from tests.views.levels.test_workload import SIZES, follow, nested
from tests.views.levels.workload import QUERIES, Workload, batches

SOME = ["finance/axf", "finance/psp", "tpch/q3", "tpch/q18a", "tpch/ssb4"]


@pytest.mark.parametrize("name", SOME)
def test_oracle_duckdb_demotions(name: str) -> None:
    """Random maps of shipped queries are not stored, along a stream with deletions."""
    follow(Workload(name, Options(batch=False, demoted=Some(3, 0.5))), (1, 7, 100), seed=3, rows=200)


@pytest.mark.fuzz
@pytest.mark.parametrize("share", [0.3, 0.6, 1])
@pytest.mark.parametrize("name", QUERIES)
def test_oracle_duckdb_demotions_of_all_queries(name: str, share: float) -> None:
    seed = random.randrange(1 << 30)
    for batch in (True, False):
        follow(Workload(name, Options(batch=batch, demoted=Some(seed, share))), SIZES, seed)


@pytest.mark.parametrize("name", ["finance/bsv", "tpch/q3", "tpch/ssb4"])
def test_oracle_duckdb_chosen(name: str) -> None:
    """Maps chosen by the shipped files."""
    known = sampled(nested(name).sources, [QUERIES[name].parent]).known
    assert known.rows and known.distinct and sum(known.rates.values()) == pytest.approx(1)
    follow(Workload(name, Options(statistics=known)), (7, 1000, 1), seed=4, rows=200)


def test_ssb4_stores_few_maps() -> None:
    """The maps of joins that only rare rows read are not worth their memory."""
    query = read_sql(QUERIES["tpch/ssb4"], levels=True)
    assert isinstance(query, NestedQuery)
    known = sampled(query.sources, [QUERIES["tpch/ssb4"].parent]).known
    found = side_by_side(query, known)
    full, chosen = found["full"], found[CHOSEN]
    assert isinstance(full, Selection) and isinstance(chosen, Selection)
    assert 2 * len(chosen.estimate.maps) < len(full.estimate.maps)
    assert 2 * chosen.estimate.cost(known) < full.estimate.cost(known)
    assert 2 * chosen.estimate.bytes < full.estimate.bytes


# ---- explain


def test_plans_stand_side_by_side() -> None:
    query = nested("finance/axf")
    sample = sampled(query.sources, [QUERIES["finance/axf"].parent])
    text = explain(levels(query), side_by_side(query, sample.known), sample)
    table = text[text.index("estimates, by the files of BIDS, ASKS") :].splitlines()
    assert table[1].split() == ["depth", "0", "depth", "1", "full", "chosen"]
    assert [line[: line.index("  ", 2)].strip() for line in table[2:]] == [
        "maps", "us for a row of BIDS", "us for a row of ASKS", "us for a row, with memory", "KB",
    ]  # fmt: skip
    assert all(len(line.split()[-4:]) == 4 for line in table[2:])


def test_without_files_sizes_are_assumed(tmp_path: Path) -> None:
    query = nested("finance/vwap")
    sample = sampled(query.sources, [tmp_path])
    assert sample == Sample(Statistics(), ())
    assert "where each relation is taken to have 10,000 rows" in explain(
        levels(query), side_by_side(query, sample.known), sample
    )


def test_sizes_of_files(tmp_path: Path) -> None:
    """30,000 rows, of which 10,000 are read: keys are all different, parities are two."""
    lines = [f"{i}|{i % 2}" for i in range(100_000, 130_000)]
    (tmp_path / "r.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    text = (
        "CREATE STREAM R(k int, p int) FROM FILE 'r.csv' LINE DELIMITED CSV(delimiter := '|');"
        "SELECT COUNT(DISTINCT p) AS n FROM R;"
    )
    query = parse_sql(text, levels=True)
    assert isinstance(query, NestedQuery)
    known = sampled(query.sources, [tmp_path]).known
    assert known.rows["R"] == pytest.approx(30_000)
    assert known.distinct["R", 0] == pytest.approx(30_000) and known.distinct["R", 1] == 2


def test_a_choice_has_no_depth() -> None:
    with pytest.raises(DlogError, match="maps that are chosen by cost have no depth"):
        levels(nested("finance/vwap"), Options(depth=1, statistics=Statistics()))


# ---- chosen again

THREE = """CREATE STREAM R(a int, b int); CREATE STREAM S(b int, c int); CREATE STREAM T(c int, d int);
SELECT SUM(R.a * T.d) AS s FROM R, S, T WHERE R.b = S.b AND S.c = T.c;"""


KNOWN = Statistics(
    {"R": 0.01, "S": 0.01, "T": 0.98},
    {"R": 1000, "S": 1000, "T": 1000},
    {("R", 1): 3, ("S", 0): 3, ("S", 1): 300, ("T", 0): 300},
)


class Three:
    """The query with all its rows."""

    def __init__(self) -> None:
        self.kept = Maintained(nested_three(), options=Options(statistics=KNOWN))
        self.asked = Counter[str]()  # relations of which all rows were read
        self.rows: dict[str, Counter[tuple[int, int]]] = {name: Counter() for name in "RST"}

    def apply(self, name: str, rows: list[tuple[int, int]], sign: int = 1) -> None:
        self.kept.apply(name, rows, [sign] * len(rows))
        self.rows[name].update({row: sign * n for row, n in Counter(rows).items()})

    def reconsider(self) -> bool:
        return self.kept.reconsider(self.all_rows)

    def go_over(self, found: Levels) -> None:
        self.kept.go_over(found, self.all_rows)

    def all_rows(self, name: str) -> list[tuple[int, int]]:
        self.asked[name] += 1
        return list(self.rows[name].elements())

    def check(self) -> None:
        of_b, of_c = Counter[int](), Counter[int]()
        for a, b in self.rows["R"].elements():
            of_b[b] += a
        for c, d in self.rows["T"].elements():
            of_c[c] += d
        wanted = sum(of_b[b] * of_c[c] for b, c in self.rows["S"].elements())
        assert same([tuple(row.values()) for row in self.kept.result().to_pylist()], [(wanted,)])

    def serves_t(self) -> bool:
        """Whether there is a map of R and S together, which only T reads."""
        names = [
            {n.name for n in m.definition.walk() if isinstance(n, ast.Relation)}
            for m in self.kept.levels.program.maps
        ]
        return {"R", "S"} in names


def test_maps_are_chosen_again_when_rates_change() -> None:
    """First T changes, and the map of R and S serves it; then R, of which each row would change many entries
    of this map, which goes; then T again, and it comes back.  Answers are the same throughout.
    """
    rng = random.Random(5)
    three = Three()
    assert three.serves_t()
    three.apply("T", [(rng.randrange(300), rng.randrange(9)) for _ in range(30)])
    three.apply("S", [(rng.randrange(3), rng.randrange(300)) for _ in range(600)])
    for _ in range(60):
        three.apply("R", [(rng.randrange(9), rng.randrange(3)) for _ in range(50)])
        three.apply("R", [row for row, n in three.rows["R"].items() if n > 0][:10], -1)
    three.check()
    assert three.reconsider() and not three.serves_t()
    three.check()
    assert not three.reconsider()  # nothing has changed since
    for _ in range(20):
        three.apply("T", [(rng.randrange(300), rng.randrange(9)) for _ in range(100)])
    three.check()
    assert three.reconsider() and three.serves_t()
    three.check()
    for name in "RST":
        three.apply(name, list(three.rows[name].elements()), -1)
    three.check()
    no_entries(three.kept)


def test_only_new_maps_are_computed_from_rows() -> None:
    """The map of R and S goes without a row being read, and comes back from the rows of R and S alone."""
    three = Three()
    three.apply("R", [(a, a % 3) for a in range(50)])
    three.apply("S", [(c % 3, c) for c in range(300)])
    three.apply("T", [(c, 1) for c in range(300)])
    query = nested_three()
    full = levels(query)
    joined = next(m for m in full.program.maps if _relations(m.definition) == {"R", "S"})
    small = levels(query, Options(demoted=(joined.definition,)))
    three.go_over(full)
    for now, new, read in ((small, [], ()), (full, [joined.name], ("R", "S"))):
        three.asked.clear()
        three.go_over(now)
        done = three.kept.refilled
        assert done is not None and len(done.kept) + len(done.new) == len(now.program.maps)
        assert list(done.new) == new and done.relations == read and three.asked == Counter(read)
        three.kept.runtime.check()
        three.check()
        three.apply("T", [(7, 2)])
        three.apply("R", [(7, 2)])
        three.check()


def _relations(definition: Any) -> set[str]:
    return {n.name for n in definition.walk() if isinstance(n, ast.Relation)}


@pytest.mark.parametrize("name", ["finance/psp", "tpch/q17a", "tpch/ssb4"])
def test_oracle_duckdb_other_maps_along_a_stream(name: str) -> None:
    other_maps_along_a_stream(name, seed=5, rows=100)


@pytest.mark.fuzz
@pytest.mark.parametrize("name", ["finance/psp", "finance/bsp", "tpch/q3", "tpch/q17a", "tpch/ssb4"])
def test_oracle_duckdb_other_maps_along_longer_streams(name: str) -> None:
    other_maps_along_a_stream(name, random.randrange(1 << 30), rows=200)


def other_maps_along_a_stream(name: str, seed: int, rows: int) -> None:
    """Random sets of maps, one after the other, while rows come and go; memory stays in proportion."""
    workload, kept = Workload(name), 0
    given = list(batches(workload.stream(rows, seed), (1, 7, 100), random.Random(seed)))
    for number, batch in enumerate(given):
        workload.apply(batch)
        if number % max(1, len(given) // 8) == 0:
            demoted = Some(seed + number, random.Random(seed + number).choice((0, 0.3, 0.7)))
            maintained, counts = workload.kept, workload.rows.counts
            maintained.go_over(
                levels(workload.query, Options(demoted=demoted), apart=True),
                lambda relation, counts=counts: list(counts[relation].elements()),  # type: ignore[misc]
            )
            assert maintained.refilled is not None
            kept += len(maintained.refilled.kept)
            maintained.runtime.check()
            workload.check()
    assert kept
    workload.check_empty()


def test_maps_that_went_leave_their_memory() -> None:
    three = Three()
    three.apply("R", [(a, a % 3) for a in range(1000)])
    three.apply("S", [(c, c) for c in range(3000)])
    full, small = levels(nested_three()), levels(nested_three(), Options(demoted=Some(0, 1)))
    used = []
    for _ in range(6):
        three.go_over(small)
        three.go_over(full)
        used.append(three.kept.runtime.maps.arena.usage())
    assert {u.used_extents for u in used[1:]} == {used[1].used_extents}, used
    assert max(u.used_words for u in used) <= 2 * used[0].used_words, used


def test_maps_stay_as_they_are_where_new_ones_cannot_be_computed() -> None:
    """What gives rows fails: nothing has changed."""
    three = Three()
    three.apply("R", [(1, 1)])
    three.apply("S", [(1, 5)])
    before = three.kept.runtime

    def rows(name: str) -> list[Any]:
        raise KeyError(name)

    three.go_over(levels(nested_three(), Options(demoted=Some(0, 1))))
    before = three.kept.runtime
    with pytest.raises(KeyError):
        three.kept.go_over(levels(nested_three()), rows)
    assert three.kept.runtime is before
    three.apply("T", [(5, 2)])
    three.check()


def nested_three() -> NestedQuery:
    query = parse_sql(THREE, levels=True)
    assert isinstance(query, NestedQuery)
    return query


def test_what_is_measured() -> None:
    three = Three()
    three.apply("R", [(1, 1), (2, 1), (2, 2)])
    three.apply("R", [(1, 1)], -1)
    three.apply("S", [(1, 5)])
    known = measured(three.kept.levels, three.kept.runtime)
    assert known.rates == {"R": 0.8, "S": 0.2, "T": 0}
    assert (known.rows["R"], known.rows["S"]) == (2, 1)
    by_level = {m.name: m.definition for m in three.kept.levels.program.maps}
    assert all(known.measured(d) is not None for d in by_level.values())


def test_what_is_counted_goes_back_with_the_maps() -> None:
    three = Three()
    three.apply("R", [(1, 1)])
    saved = three.kept.runtime.save()
    three.apply("R", [(2, 1), (3, 1)])
    three.kept.runtime.restore(saved)
    assert three.kept.runtime.changes == {"R": 1} and three.kept.runtime.sizes == {"R": 1}


def test_view_trees_have_no_choice() -> None:
    kept = Maintained(parse_sql(THREE))
    with pytest.raises(DlogError, match="a view tree has no choice of maps"):
        kept.reconsider(lambda name: [])


# ---- dead entries


@pytest.mark.parametrize("waiting", [0, 1, 50])
@pytest.mark.parametrize("share", [0, 1], ids=["full", "demoted"])
@pytest.mark.parametrize("name", ["finance/axf", "finance/bsp", "finance/bsv"])
def test_dead_entries_are_forgotten(name: str, share: float, waiting: int) -> None:
    """Orders that are placed, and revoked when so many others have come, each with keys that no other has: in
    one call and in several, memory does not grow, and what stays has not changed.
    """
    kept = Maintained(nested(name), options=Options(batch=False, demoted=Some(0, share)))
    kept.apply("BIDS", [(t, t, t % 3, 10 + t % 7, 1000 + 90 * t) for t in range(100)])
    before, memory = kept.result(), kept.runtime.maps.memory()
    for start in (10_000, 20_000, 30_000):
        rows, signs = placed_and_revoked(range(start, start + 10_000), waiting)
        kept.apply("BIDS", rows, signs)
        assert kept.runtime.maps.memory() <= 8 * memory + (1 << 16)
    assert kept.result() == before


def placed_and_revoked(numbers: range, waiting: int) -> tuple[list[tuple[int, ...]], list[int]]:
    events = [(2 * at, t, 1) for at, t in enumerate(numbers)]
    events += [(2 * (at + waiting) + 1, t, -1) for at, t in enumerate(numbers)]
    ordered = sorted(events)
    return [(t, t, t, 7, t) for _, t, _ in ordered], [sign for _, _, sign in ordered]
