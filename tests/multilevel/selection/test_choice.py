"""The choice of maps: its estimates, the greedy search against all subsets, and what it chooses where the
best selection is known.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.notation import read
from dlog.multilevel.program import LIMITS, Limits, Program, compile, universe_of, write
from dlog.multilevel.selection.choice import CHOSEN, Selection, choose, everything, selections
from dlog.multilevel.selection.estimate import Estimator, but, corrections, estimated
from dlog.multilevel.selection.sizes import Size, Statistics, groups, size_of
from dlog.multilevel.selection.work import LOOK_UP, work
from tests.examples import relaxed
from tests.multilevel.expressions import SCHEMA
from tests.multilevel.running import source
from tests.multilevel.test_program import definition, follow, sources

SEEDS = st.integers(0, 2**32)
SEARCH = Limits(rewrites=10_000_000)
CHAINS = {
    "chain": "AggSum([], R(a, b) * S(b, c) * T(c, d) * a * d)",
    "longer": "AggSum([], R(a, b) * S(b, c) * T(c, d) * U(d, e))",
    "groups": "AggSum([b], R(a, b) * S(b, c) * T(c, d) * a * {d > 3})",
    "star": "AggSum([a], R(a, b) * S(a, c) * T(a, d) * b * c * d)",
    "ranges": "AggSum([], R(a, b) * S(c, d) * {b < c} * a * d)",
    "nested": "AggSum([], R(a, b) * S(b, c) * {a < AggSum([], T(x, d) * d)})",
}
TABLES = [source("R(a, b)"), source("S(b, c)"), source("T(c, d)"), source("U(d, e)")]


def some_statistics(rng: random.Random, names: Mapping[str, int]) -> Statistics:
    """Rates from 1 to 1,000, up to a million rows, values from all alike to all different."""
    rows = {name: 10 ** rng.uniform(0, 6) for name in names}
    return Statistics(
        {name: 10 ** rng.uniform(0, 3) for name in names},
        rows,
        {(name, i): rows[name] ** rng.random() for name, width in names.items() for i in range(width)},
    )


def estimator(definitions: Mapping[str, Node], given: list[ast.Source], known: Statistics) -> Estimator:
    return Estimator(universe_of(definitions, given, None, False, False, SEARCH), known)


def best_of_all(found: Estimator, most: int = 8) -> float | None:
    """The cost of the cheapest subset; None if more than eight maps could be demoted."""
    names = everything(found)
    if len(names) > most:
        return None
    subsets = itertools.chain.from_iterable(
        itertools.combinations(sorted(names), n) for n in range(len(names) + 1)
    )
    return min(found.estimate(but(subset)).cost(found.known) for subset in subsets)


@given(SEEDS)
@relaxed(40)
def test_oracle_all_subsets_of_chains(seed: int) -> None:
    """The greedy choice costs at most twice what the best of all subsets costs."""
    rng = random.Random(seed)
    found = estimator(
        {"q": read(rng.choice(list(CHAINS.values())))},
        TABLES,
        some_statistics(rng, dict.fromkeys("RSTU", 2)),
    )
    best = best_of_all(found)
    if best is not None:
        assert choose(found)[1].cost(found.known) <= 2 * best


@given(SEEDS)
@relaxed(30)
def test_oracle_all_subsets_of_random_definitions(seed: int) -> None:
    rng = random.Random(seed)
    found = estimator({"q": definition(rng)}, sources(), some_statistics(rng, SCHEMA))
    best = best_of_all(found, 6)
    if best is not None:
        assert choose(found)[1].cost(found.known) <= 2 * best


@pytest.mark.parametrize("name", ["chain", "groups", "star", "ranges", "nested"])
def test_the_subsets_are_searched(name: str) -> None:
    """So the tests above compare something."""
    found = estimator({"q": read(CHAINS[name])}, TABLES, Statistics())
    assert best_of_all(found) is not None and everything(found)


@given(SEEDS)
@relaxed(40)
def test_oracle_chosen_programs(seed: int) -> None:
    """Whatever is chosen, its maps contain what their definitions say."""
    rng = random.Random(seed)
    found = estimator({"q": definition(rng)}, sources(), some_statistics(rng, SCHEMA))
    demoted, _ = choose(found)
    follow(rng, write(found.universe, but(demoted), LIMITS))


def selection(name: str, known: Statistics, which: str = CHOSEN) -> Selection:
    found = selections({"q": read(CHAINS[name])}, TABLES, known)[which]
    assert isinstance(found, Selection)
    return found


def test_what_seldom_changes_and_matches_little_needs_no_map() -> None:
    """Rows of T come once, those of R and S often: the map of R and S by c, which only T reads, is not worth
    its updates.
    """
    rows = {"R": 1e5, "S": 1e5, "T": 1e3}
    distinct = {("R", 1): 1e4, ("S", 0): 1e4, ("S", 1): 1e3, ("T", 0): 1e3}
    seldom = selection("chain", Statistics({"R": 1, "S": 1, "T": 1e-9}, rows, distinct))
    often = selection("chain", Statistics({"R": 1e-9, "S": 1e-9, "T": 1}, rows, distinct))
    assert not reads_of(seldom.program, "T", 2) and reads_of(often.program, "T", 2)


def reads_of(program: Program, relation: str, joined: int) -> bool:
    """Whether an event reads a map of so many joined relations."""
    wide = {
        m.name
        for m in program.maps
        if m.level and sum(isinstance(n, ast.Relation) for n in m.definition.walk()) == joined
    }
    steps = [s for s in program.map("q").steps if s.event is not None and s.event.relation == relation]
    return any(isinstance(n, ast.MapAccess) and n.name in wide for s in steps for n in s.statement.walk())


@given(SEEDS)
@relaxed(20)
def test_the_chosen_plan_is_the_cheapest_of_all(seed: int) -> None:
    rng = random.Random(seed)
    known = some_statistics(rng, dict.fromkeys("RSTU", 2))
    found = selections({"q": read(rng.choice(list(CHAINS.values())))}, TABLES, known)
    costs = {name: p.estimate.cost(known) for name, p in found.items() if isinstance(p, Selection)}
    assert costs[CHOSEN] == min(costs.values()) and len(costs) == 4


def test_the_search_and_the_program_cost_the_same() -> None:
    """The estimate of the search is that of the program it leads to."""
    found = estimator({"q": read(CHAINS["longer"])}, TABLES, Statistics())
    demoted, estimate = choose(found)
    written = estimated(write(found.universe, but(demoted), LIMITS), found.known)
    assert set(written.maps) == set(estimate.maps)
    assert written.cost(found.known) == pytest.approx(estimate.cost(found.known), rel=0.05)


# ---- estimates


@pytest.mark.parametrize(
    ("definition", "entries"),
    [
        ("R(a, b)", 1000),
        ("AggSum([b], R(a, b))", 50),
        ("AggSum([], R(a, b))", 1),
        ("R(a, b) * S(b, c)", 2000),
        ("R(a, b) * {a = 3}", 10),
        ("R(a, b) * {a < 3}", 1000 / 3),
        ("R(a, b) * (b ^= 3)", 20),
        ("R(a, b) + R(a, b)", 2000),
    ],
)
def test_sizes(definition: str, entries: float) -> None:
    """R has 1,000 rows with 100 and 50 values, S 200 rows with 100 and 200 values."""
    known = Statistics(
        rows={"R": 1000, "S": 200},
        distinct={("R", 0): 100, ("R", 1): 50, ("S", 0): 100, ("S", 1): 200},
    )
    node = read(definition)
    keys = [k.name for k in node.keys] if isinstance(node, ast.AggSum) else ["a", "b", "c"]
    assert size_of(node, keys, known).entries == pytest.approx(entries, rel=0.25)


def test_what_was_measured_is_what_counts() -> None:
    known = Statistics(entries=((read("AggSum([x], R(x, y))"), 7.0),))
    assert size_of(read("AggSum([b], R(b, a))"), ["b"], known).entries == 7


def test_work_is_corrected_by_the_rows_that_were_added() -> None:
    """A row of R adds ten rows to the map of R and S by the estimate: by what was counted 1, 3 or a million
    times as many, of which 16 times are believed.
    """
    definitions = {"q": read(CHAINS["chain"])}
    known = Statistics(rows={"R": 500, "S": 1000, "T": 500}, distinct={("S", 0): 100, ("S", 1): 1000})
    program = compile(definitions, TABLES)
    assert isinstance(program, Program)
    joined = next(m for m in program.maps if m.level and {"R", "S"} == _relations(m.definition))
    plain = estimated(program, known)
    for times, believed in ((1, 1), (3, 3), (10**6, 16), (0, 1 / 16)):
        added = {m.name: 1000.0 for m in program.maps} | {joined.name: 1000.0 * times}
        found = dict(corrections(program, known, {"R": 100.0}, added))
        assert found[joined.definition] == pytest.approx(believed, rel=0.01)
        assert program.map("q").definition not in found  # it has no keys
        corrected = replace(known, written=((joined.definition, believed),))
        time = estimated(program, corrected).time["R"] - plain.time["R"]
        assert time == pytest.approx((believed - 1) * time_of_more(program, known, joined.definition))
        searched = [estimator(definitions, TABLES, k).estimate(but(())) for k in (known, corrected)]
        more = searched[1].time["R"] - searched[0].time["R"]
        assert more == pytest.approx(time, rel=0.01)


def time_of_more(program: Program, known: Statistics, definition: Node) -> float:
    """What a row of R takes more if twice as many rows are added to a map."""
    twice = estimated(program, replace(known, written=((definition, 2.0),)))
    return twice.time["R"] - estimated(program, known).time["R"]


def _relations(definition: Node) -> set[str]:
    return {n.name for n in definition.walk() if isinstance(n, ast.Relation)}


@given(st.floats(0, 1e9), st.floats(1, 1e9))
def test_groups_are_at_most_rows_and_cells(rows: float, cells: float) -> None:
    assert 0 <= groups(rows, cells) <= min(rows, cells) * (1 + 1e-9)


def test_work_grows_with_what_is_read() -> None:
    """A look-up costs the same for any map, a loop what its entries cost, a range the steps in a tree."""
    sizes = {n: {"M": Size(n, {"k": n, "l": 10.0})} for n in (1e3, 1e6)}
    node = {
        "look up": "M[][x, y]",
        "loop": "AggSum([], M[][x, l])",
        "scan": "AggSum([], M[][k, l] * l)",
        "range": "AggSum([], M[][x, l] * {l < y})",
    }
    time = {
        name: [work(read(e), frozenset("xy"), frozenset(), s).time for s in sizes.values()]
        for name, e in node.items()
    }
    assert time["look up"][0] == time["look up"][1] and time["loop"][0] == time["loop"][1]
    assert time["scan"][1] > 500 * time["scan"][0]
    assert time["range"][1] < time["scan"][0]
    assert work(read("M[][x, y]"), frozenset("xy"), frozenset(), sizes[1e3]).time < 2 * LOOK_UP


def test_refusals_are_shown_and_not_chosen() -> None:
    found = selections({"q": read(CHAINS["longer"])}, TABLES, Statistics(), limits=Limits(maps=5))
    assert isinstance(found["depth 1"], Selection) and not isinstance(found["full"], Selection)
    assert found[CHOSEN] is found["depth 1"] or found[CHOSEN] is found["depth 0"]


def test_compilation_with_statistics_is_deterministic() -> None:
    first, second = (selection("longer", Statistics()).program for _ in range(2))
    assert first.m3 == second.m3
    full = compile({"q": read(CHAINS["longer"])}, TABLES)
    assert isinstance(full, Program)
