"""Plans of shards, and whole programs on shards in one process: no Spark is started here."""

from __future__ import annotations

import json
import math
import random
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import dlog
from dlog.errors import ConstraintError, DataError, DlogError
from dlog.io import OutputOptions, write
from dlog.spark.plan import shards as planning
from dlog.spark.plan.places import WHOLE, Shape
from dlog.spark.plan.shards import EXCHANGE, HERE, SHARD, plan_blocks
from dlog.spark.run import heavy
from dlog.spark.run.run import ShardedDatabase
from dlog.spark.run.tasks import Outcome, run_in_process, run_task
from tests.oracle.accepted import accepted
from tests.oracle.choices import choices
from tests.oracle.compare import same_program
from tests.oracle.naive import evaluate
from tests.oracle.programs import ALL, programs
from tests.oracle.records import record_programs
from tests.oracle.recursions import recursions
from tests.oracle.values import DoesNotFit
from tests.programs.test_programs import PROGRAMS

RANDOM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def sharded(text: str, shards: int, magic: bool = False) -> ShardedDatabase:
    return ShardedDatabase(None, run_in_process, shards, source=text, magic=magic, small_recursion=0)


def check_against_the_oracle(text: str, shards: int) -> None:
    """The naive evaluator and the shards agree on every predicate, or both refuse."""
    program = accepted(text)
    try:
        facts = evaluate(program)
    except (DoesNotFit, ConstraintError):
        with pytest.raises(DlogError):
            sharded(text, shards)
        return
    database = sharded(text, shards)
    shown = {n: database[n].rows() for n, p in program.predicates.items() if not p.auxiliary}
    assert same_program(shown, facts, program)


@settings(RANDOM, max_examples=40)
@given(programs(ALL), st.integers(2, 5))
def test_oracle_random_programs(text: str, shards: int) -> None:
    check_against_the_oracle(text, shards)


@settings(RANDOM, max_examples=12)
@given(recursions(), st.integers(2, 5))
def test_oracle_random_recursions(text: str, shards: int) -> None:
    check_against_the_oracle(text, shards)


@settings(RANDOM, max_examples=25)
@given(record_programs(), st.sampled_from([1, 2, 4]))
def test_oracle_random_programs_with_records(text: str, shards: int) -> None:
    check_against_the_oracle(text, shards)


@settings(RANDOM, max_examples=20)
@given(choices(), st.sampled_from([1, 2, 4]))
def test_oracle_random_programs_with_choices(text: str, shards: int) -> None:
    """They are computed in one process, in the same order."""
    check_against_the_oracle(text, shards)


@pytest.mark.fuzz
@settings(RANDOM, max_examples=3000)
@given(st.one_of(programs(ALL), recursions()), st.integers(1, 9))
def test_fuzz_random_programs(text: str, shards: int) -> None:
    check_against_the_oracle(text, shards)


def plan(text: str, shards: int = 4, **sizes: int) -> list[tuple[str, dict[str, int | None]]]:
    program = dlog.check(text)
    return [(b.kind, dict(b.derives)) for b in plan_blocks(Shape(program, shards, frozenset(), sizes))]


EDGE = "edge(x, y) -> int(x), int(y).\n"
CLOSURE = EDGE + "reach(x, y) <- edge(x, y).  reach(x, z) <- reach(x, y), edge(y, z).\n"


def test_a_recursion_that_hands_its_first_key_on_is_one_job() -> None:
    count = "n[x] = c <- agg<<c = count()>> reach(x, y).  two(x, z) <- reach(x, y), reach(y, z)."
    assert plan(CLOSURE) == [(SHARD, {"reach": 0})]
    assert plan(CLOSURE + count) == [(SHARD, {"reach": 0, "n": 0}), (SHARD, {"two": None})]


def test_other_recursions_exchange() -> None:
    path = EDGE + "path(x, y) <- edge(x, y).  path(x, z) <- path(x, y), path(y, z)."
    assert plan(path) == [(EXCHANGE, {"path": None})]
    near = EDGE + "near[1] = 0.  near[y] = m <- agg<<m = min(v)>> near[x] = a, edge(x, y), v = a + 1."
    assert plan(near) == [(EXCHANGE, {"near": None})]


def test_one_shard_is_one_block() -> None:
    total = "total[] = n <- agg<<n = count()>> reach(x, y).  far(n) <- total[] = n."
    assert plan(CLOSURE + total, shards=1) == [(SHARD, {"reach": WHOLE, "total": WHOLE, "far": WHOLE})]


def test_strata_share_a_job_only_where_rows_are_where_they_are_read() -> None:
    back = EDGE + "back(y, x) <- edge(x, y).  one(y) <- back(y, x).\n"
    assert plan(back) == [(SHARD, {"back": 0, "one": 0})]
    assert len(plan(back + "two(x, z) <- back(x, y), back(y, z).")) == 2


def test_what_depends_on_one_process_is_not_shared() -> None:
    text = 'name(x) -> string(x). name("a"). code(n) <- name(x), n = ord(x).'
    assert plan(text) == [(HERE, {"code": None})]
    lists = ".type L = [x: number, l: L] .decl e(x: number) .decl p(l: L) e(1). p([x, nil]) :- e(x)."
    assert plan(lists) == [(HERE, {"p": None})]


def test_records_are_not_read_by_tasks(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "one.csv").write_text("[1, nil]\n")
    text = '.type L = [x: number, l: L] .decl p(l: L) .input p(filename="p")'
    with pytest.raises(DataError, match="p has records, which Spark cannot read"):
        ShardedDatabase(None, run_in_process, 2, source=text, facts=tmp_path)


def test_a_large_relation_is_rather_partitioned_than_replicated() -> None:
    join = "a(x, y) -> int(x), int(y). b(y, z) -> int(y), int(z). p(x, y, z) <- a(x, y), b(y, z).\n"
    assert plan(join, a=1000, b=10**9) == [(SHARD, {"p": 1})]
    star = join + "q(x) <- a(x, y), b(y, z), a(x, z)."
    assert plan(star, a=10**9, b=10) == [(SHARD, {"p": 1, "q": 0})]


def test_triangles_of_few_edges_are_shared_all_the_same() -> None:
    """A join costs more than its rows: two shards that do all of it take twice the time of one."""
    body = "edge(x, y), edge(y, z), edge(x, z)"
    for text in (f"n[] = c <- agg<<c = count()>> {body}.", f"triangle(x, y, z) <- {body}."):
        for edges in (100, 40_000):
            program = dlog.check(EDGE + text)
            (block,) = plan_blocks(Shape(program, 2, frozenset(), {"edge": edges}))
            assert block.plans[0].rules[0].variable is not None
    (block,) = plan_blocks(Shape(dlog.check(EDGE + "back(y, x) <- edge(x, y)."), 2, frozenset(), {"edge": 9}))
    assert block.plans[0].rules[0].variable is not None


FLOATS = st.floats(allow_nan=True, allow_infinity=True)


@settings(RANDOM, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2), FLOATS), max_size=40), st.integers(2, 4))
@example([(0, 0, 1e308), (1, 0, 1e308), (2, 0, -1e308), (3, 0, -1e308), (4, 0, 1.0)], 2)
@example([(0, 0, 1e16), (1, 0, 1.0), (2, 0, -1e16), (3, 0, 1e-300)], 3)
@example([(0, 0, math.inf), (1, 0, -math.inf), (2, 1, math.inf), (3, 1, 1.0)], 2)
@example([(0, 0, 1e-200), (1, 0, 3e-200), (2, 0, 1e200), (3, 1, 5e-324), (4, 1, 1.7e308)], 2)
def test_float_sums_in_parts_are_the_same_bits(rows: list[tuple[int, int, float]], shards: int) -> None:
    """Groups that are computed have no variable that could own the shards."""
    rules = """
        v[i, g] = x -> int(i), int(g), float(x).  f(i, x) -> int(i), float(x).
        total[] = s, mean[] = m <- agg<<s = sum(x), m = mean(x)>> v[i, g] = x.
        by[h] = s, least[h] = l, n[h] = c, usual[h] = u
          <- agg<<s = sum(x), l = min(x), c = count(), u = mean(x)>> v[i, g] = x, h = g % 2.
        spread[h] = a, sample[h] = b, kinds[h] = k
          <- agg<<a = stddev_pop(x), b = variance(x), k = count_distinct(x)>> v[i, g] = x, h = g % 2.
        every[] = a <- agg<<a = variance_pop(x)>> v[i, g] = x.
    """
    columns = [list(range(len(rows))), [g for _, g, _ in rows], [x for _, _, x in rows]]
    types = (pa.int64(), pa.int64(), pa.float64())
    with tempfile.TemporaryDirectory() as folder:
        arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
        pq.write_table(pa.table(arrays, names=["i", "g", "x"]), f"{folder}/v.parquet")
        text = rules + f'.input v(IO="parquet", filename="{folder}/v.parquet")'
        local, database = dlog.Database(source=text), sharded(text, shards)
    for name in ("total", "mean", "by", "least", "n", "usual", "spread", "sample", "kinds", "every"):
        assert repr(database[name].rows()) == repr(local[name].rows()), name


def test_whole_sums_may_be_large_on_the_way() -> None:
    """Shards whose parts do not fit 64 bits, and a total that does; and one that does not."""
    big = 2**63 - 1
    rules = "v(i, x) -> int(i), int(x).  total[] = s <- agg<<s = sum(x)>> v(i, x).\n"
    facts = "".join(f"v({i}, {big}). v({i + 100}, {-big}). " for i in range(20)) + "v(999, 7)."
    assert sharded(rules + facts, 3)["total"].rows() == [(7,)]
    with pytest.raises(DataError, match="does not fit 64 bits"):
        sharded(rules + f"v(1, {big}). v(2, 1).", 2)
    unsigned = (
        "v(i, x) -> int(i), unsigned(x).  total[] = s, m[] = u <- agg<<s = sum(x), u = max(x)>> v(i, x).\n"
    )
    facts = f"v(1, {2**63}). v(2, 5). v(3, {2**63 - 6})."
    database = sharded(unsigned + facts, 3)
    assert database["total"].rows() == [(2**64 - 1,)] and database["m"].rows() == [(2**63,)]


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_deviations_and_distinct_values_in_parts(shards: int) -> None:
    """Of every kind of number, and of texts; groups are computed, so that every shard has a part of each."""
    chance = random.Random(shards)
    rules = """
        v(i, n, u, d, t) -> int(i), int(n), unsigned(u), decimal[18, 4](d), string(t).
        a[h] = x, b[h] = y, c[h] = z <- agg<<x = variance(n), y = stddev(u), z = variance_pop(d)>>
            v(i, n, u, d, _), h = i % 2.
        k[h] = w, l[h] = x, m[h] = y <- agg<<w = count_distinct(t), x = count_distinct(d),
            y = count_distinct(f)>> v(i, _, _, d, t), h = i % 2, f = d / 3.
    """
    ends = [-(2**63), 2**63 - 1, 0, 7]
    facts = [
        f"v({i}, {chance.choice(ends)}, {chance.choice([0, 2**64 - 1, 5])}, "
        f'{chance.choice(["0.0001", "-99999999999999.9999", "2.5"])}, "{chance.choice("abc")}").'
        for i in range(23)
    ]
    text = rules + "\n".join(facts)
    local, database = dlog.Database(source=text), sharded(text, shards)
    for name in "abcklm":
        assert repr(database[name].rows()) == repr(local[name].rows()), name


@pytest.mark.parametrize("shards", [2, 3])
def test_times_are_keys_and_values_in_shards(shards: int) -> None:
    """Groups in several shards, keys that are times, and a recursion over moments."""
    rules = """
        seen(i, who, at, d) -> int(i), string(who), timestamp(at), duration(d).
        hourly[h] = s, usual[h] = m <- agg<<s = sum(d), m = mean(d)>> seen(_, _, at, d), h = hour(at) % 2.
        first[h] = a, longest[h] = b, kinds[h] = n
            <- agg<<a = min(at), b = max(d), n = count_distinct(at)>> seen(_, _, at, d), h = hour(at) % 2.
        at_once[at] = n <- agg<<n = count()>> seen(_, _, at, _).
        as_long[d] = n <- agg<<n = count_distinct(who)>> seen(_, who, _, d).
        next(a, b, d) <- seen(_, who, a, _), seen(_, who, b, _), d = b - a, d > "PT0S", d <= "PT2H".
        later(a, b) <- next(a, b, _).
        later(a, c) <- later(a, b), next(b, c, _).
        reach[a] = d <- agg<<d = max(e)>> later(a, b), e = b - a.
        spread[h] = v <- agg<<v = variance(s)>> seen(i, _, _, d), s = d / "PT0.5S", h = i % 2.
    """
    chance = random.Random(shards)
    hour, zone = (lambda: chance.randrange(8)), (lambda: chance.choice(ZONES))
    facts = [
        f'seen({i}, "{chance.choice("abc")}", "2026-03-29T0{hour()}:30:00{zone()}", '
        f'"{chance.choice(["", "-"])}P{chance.randrange(2)}DT{chance.randrange(3)}.5S").'
        for i in range(40)
    ]
    text = rules + "\n".join(facts)
    local, database = dlog.Database(source=text), sharded(text, shards)
    assert len(local["later"]) > len(local["next"]) > 20
    for name in sorted(local.predicates()):
        assert database[name].rows() == local[name].rows(), name


ZONES = ("Z", "+02:00", "-03:30")


def test_squares_that_do_not_fit_name_their_group_in_a_shard() -> None:
    text = "v(i, d) -> int(i), decimal[18, 0](d).  v(1, 1). v(2, 100000000000000000). v(3, 7).\n"
    rule = "s[h] = x <- agg<<x = variance(y)>> v(i, d), h = i % 2, y = d * d * d."
    with pytest.raises(DataError, match=r"the sum of squares of group \[0\] does not fit 76 digits"):
        sharded(text + rule, 2)


def test_a_key_with_two_values_is_found_wherever_they_are_derived() -> None:
    text = (
        EDGE + "edge(1, 2). edge(1, 3). edge(1, 4). f[x] = y <- edge(x, y).  g[z] = y <- edge(x, y), z = x."
    )
    for shards in (1, 2, 5):
        with pytest.raises(ConstraintError, match="two values for one key of f"):
            sharded(text.replace("g[z] = y <- edge(x, y), z = x.", ""), shards)
        with pytest.raises(ConstraintError, match="two values for one key of g"):
            sharded(text.replace("f[x] = y <- edge(x, y).", ""), shards)


def test_a_task_that_runs_again_changes_nothing() -> None:
    """Every task of a recursion twice, and in another order: what a dying worker leads to."""

    def twice(path: str, shards: int) -> list[Outcome]:
        first = [run_task(path, shard) for shard in reversed(range(shards))]
        again = [run_task(path, shard) for shard in range(shards)]
        assert sorted(first, key=lambda o: o.shard) == again
        return again

    program, facts = PROGRAMS / "same_generation.dl", PROGRAMS / "same_generation" / "facts"
    local = dlog.Database(program, facts=facts)
    database = ShardedDatabase(program, twice, 3, facts=facts, small_recursion=0)
    assert database.steps_run > 2
    for directive in local.program.directives:
        if directive.kind == "output":
            assert database[directive.predicate].rows() == local[directive.predicate].rows()


def test_long_recursions_keep_few_files() -> None:
    """A path of 60 edges by a rule that is not linear and one that counts steps: copies are made compact."""
    from dlog.spark.run import evaluation

    text = EDGE + " ".join(f"edge({i}, {i + 1})." for i in range(60))
    text += "far[0] = 0.  far[y] = m <- agg<<m = max(v)>> far[x] = a, edge(x, y), v = a + 1."
    database = sharded(text, 3)
    assert database.steps_run > 3 * evaluation.COMPACT
    assert database["far"].rows() == [(i, i) for i in range(61)]


def test_files_of_a_run_are_removed_after_it(tmp_path: Path) -> None:
    ShardedDatabase(
        PROGRAMS / "triangles.dl", run_in_process, 3, facts=PROGRAMS / "triangles/facts", work=tmp_path
    )
    assert not list(tmp_path.iterdir())
    with pytest.raises(DlogError):
        ShardedDatabase(
            None, run_in_process, 2, source="f[1] = 2. f[1] = 3. p(x) <- f[x] = y.", work=tmp_path
        )
    assert not list(tmp_path.iterdir())


def test_folders_of_files_are_read_by_tasks(tmp_path: Path) -> None:
    """CSV, JSON and Parquet files of a folder; rows that cannot be taken are put aside with their reasons."""
    facts, out = tmp_path / "facts", tmp_path / "out"
    for name in ("road", "town", "toll"):
        (facts / name).mkdir(parents=True)
    (facts / "road" / "a.csv").write_text("1,2\n2,3\nx,4\n5\n")
    (facts / "road" / "b.csv").write_text("3,4\n")
    (facts / "road" / "_SUCCESS").write_text("")
    (facts / "town" / "part-0.json").write_text('{"n": 1, "name": "Ur"}\n{"n": 2, "name": "Uruk"}\n')
    toll = pa.table({"a": [1, 2], "p": [0.25, None]})
    pq.write_table(toll, facts / "toll" / "0.parquet")
    text = """
        road(a, b) -> int(a), int(b).  town(n, name) -> int(n), string(name).
        toll[a] = p -> int(a), float(p).
        .input road(IO="csv", filename="road")   .input town(IO="json", filename="town")
        .input toll(IO="parquet", filename="toll")
        road(9, 1).
        reach(a, b) <- road(a, b).  reach(a, c) <- reach(a, b), road(b, c).
        from(name, b) <- town(a, name), reach(a, b).   paid[] = s <- agg<<s = sum(p)>> toll[a] = p.
        .output reach  .output road
    """
    for shards in (1, 3):
        reported: list[str] = []
        database = ShardedDatabase(
            None, run_in_process, shards, source=text, facts=facts, out=out, magic=False, warn=reported.append
        )
        assert database["road"].rows() == [(1, 2), (2, 3), (3, 4), (9, 1)]
        assert len(database["reach"]) == 10 and ("Uruk", 4) in database["from"].rows()
        assert database["paid"].rows() == [(0.25,)]
        assert (
            "warning: 2 rows of road rejected" in reported and "warning: 1 row of toll rejected" in reported
        )
        bad = [json.loads(line) for line in (out / "bad" / "road.json").read_text().splitlines()]
        assert [(row["line"], row["row"]) for row in bad] == [(3, "x,4"), (4, "5")]
        assert all(row["file"].endswith("a.csv") and row["reason"] for row in bad)


def test_a_folder_without_files_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "e").mkdir()
    text = 'e(x) -> int(x). p(x) <- e(x). .output p .input e(IO="csv", filename="e")'
    with pytest.raises(DataError, match='there is no file in "e"'):
        ShardedDatabase(None, run_in_process, 2, source=text, facts=tmp_path)
    with pytest.raises(DataError, match="needs Spark"):
        ShardedDatabase(None, run_in_process, 2, source=text.replace('filename="e"', 'filename="s3a://b/e"'))


def test_heavy_values_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """One vertex that has nearly all edges: its work is shared, and counts and negations are right."""
    monkeypatch.setattr(planning, "JOB_ROWS", 0)  # so few rows are not worth another job
    edges = {(0, i) for i in range(1, 90)} | {(i, 0) for i in range(1, 80)} | {(i, i + 1) for i in range(9)}
    rules = (
        EDGE
        + """
        triangle(x, y, z) <- edge(x, y), edge(y, z), edge(x, z).
        n[] = c <- agg<<c = count()>> edge(x, y), edge(y, z), edge(x, z).
        by[x] = c, least[x] = m <- agg<<c = count(), m = min(z)>> edge(x, y), edge(y, z), edge(x, z).
        open(x, y) <- edge(x, y), !edge(y, x), !(edge(x, 3), edge(y, 3)).
        either(x, y) <- edge(x, y), (edge(y, x) ; edge(x, 5)).
        """
    )
    text = rules + " ".join(f"edge({x}, {y})." for x, y in sorted(edges))
    local = dlog.Database(source=text)
    database = ShardedDatabase(None, run_in_process, 4, source=text, magic=False, least_heavy=1)
    splits = [r for b in database.run_blocks for p in b.plans for r in p.rules if r.second is not None]
    assert len(splits) > 2 and any(r.merged for r in splits)
    for name in ("triangle", "n", "by", "least", "open", "either"):
        assert database[name].rows() == local[name].rows(), name


@settings(RANDOM, max_examples=25)
@given(programs(ALL), st.integers(2, 4))
def test_oracle_random_programs_with_heavy_values(text: str, count: int) -> None:
    """Every value that occurs twice is heavy."""
    program = accepted(text)
    try:
        facts = evaluate(program)
    except (DoesNotFit, ConstraintError):
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heavy, "LEAST_SEEN", 2)
        patch.setattr(heavy, "SHARE", 0.0)
        patch.setattr(planning, "JOB_ROWS", 0)
        database = ShardedDatabase(
            None, run_in_process, count, source=text, magic=False, small_recursion=0, least_heavy=1
        )
    shown = {n: database[n].rows() for n, p in program.predicates.items() if not p.auxiliary}
    assert same_program(shown, facts, program)


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_heavy_values_are_found_in_folders(tmp_path: Path, kind: str) -> None:
    """A sample of the files shows them; large files are read at some places only."""
    rows = pa.table({"x": [0] * 30_000 + [*range(30_000)], "y": range(60_000)}).take(
        pa.array(np.random.default_rng(1).permutation(60_000))
    )
    (tmp_path / "edge").mkdir()
    for part in range(2):
        write(
            rows.slice(part * 30_000, 30_000),
            OutputOptions.for_path(tmp_path / "edge" / f"{part}.{kind}", IO=kind),
        )
    text = EDGE + f'.input edge(IO="{kind}", filename="edge")\n two(x, y) <- edge(x, y), edge(_, y), y < 50.'
    database = ShardedDatabase(
        None, run_in_process, 2, source=text, facts=tmp_path, magic=False, least_heavy=1000
    )
    assert database._copies.heavy[("int", 0)].to_pylist() == [0]
    assert len(database["two"]) == 50


def test_what_every_shard_has_is_counted_once() -> None:
    """A predicate that all shards derive alike, under aggregates with and without groups."""
    text = """
        w(x) <- x = range(0, 10).  n[] = c <- agg<<c = count()>> w(x).
        two[p] = s <- agg<<s = sum(x)>> w(x), p = x % 2.  more(y) <- w(x), y = x + 1.
        m[] = c <- agg<<c = count()>> more(y).
    """
    database = sharded(text, 4)
    assert database["n"].rows() == database["m"].rows() == [(10,)]
    assert database["two"].rows() == [(0, 20), (1, 25)]


def test_shards_compute_predicates_of_all_modes() -> None:
    text = (
        "e(x, y) -> int(x), int(y).  e(1, 2). e(2, 3). e(3, 4).\n"
        "pair(x, y, z) <- e(x, y), e(y, z).\n"
        "reach(x, y) <- e(x, y).  reach(x, z) <- reach(x, y), e(y, z).\n"
        "?- pair(1, y, z).\n.materialize pair changes\n.materialize reach on_read\n"
    )
    check_against_the_oracle(text, 3)
