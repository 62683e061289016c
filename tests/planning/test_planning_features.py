"""Every planner feature forced on and forced off gives the same answers as the naive evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.body import decomposed
from dlog.engine.evaluate.evaluate import Evaluation
from dlog.engine.evaluate.evaluate import evaluate as evaluate_rules
from dlog.errors import ConstraintError, DataError, SourceError
from dlog.planning.options import Options
from tests.examples import relaxed
from tests.oracle.accepted import accepted
from tests.oracle.compare import same_program
from tests.oracle.naive import evaluate
from tests.oracle.programs import ALL, programs

SETTINGS = (
    "no-semijoins no-sub-joins always-complements",
    "always-semijoins no-sub-joins no-probes",
    "always-sub-joins no-semijoins always-probes always-chunks",
    "always-sub-joins no-semijoins no-probes always-sharing",
    "always-sub-joins always-semijoins no-sharing always-chunks no-probes",
    "always-semijoins always-probes always-chunks",
)
VARIABLES = "abcde"


@st.composite
def joins(draw: st.DrawFn) -> str:
    """A rule of two to five atoms over small relations, in any shape, for each kind of head."""
    rows = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=14, unique=True)
    lines = [
        "e(x, y) -> int(x), int(y).  f(x, y) -> int(x), int(y).  s(x) -> int(x).  g[x] = y -> int(x), int(y)."
    ]
    lines += [" ".join(f"{name}({x}, {y})." for x, y in draw(rows)) for name in "ef"]
    lines.append(" ".join(f"s({x})." for x in draw(st.sets(st.integers(0, 4), min_size=1, max_size=3))))
    lines.append(" ".join(f"g[{x}] = {draw(st.integers(0, 4))}." for x in range(4)))
    variable = st.sampled_from(VARIABLES)
    binary = st.builds("{}({}, {})".format, st.sampled_from("eef"), variable, variable)
    unary = st.builds("s({})".format, variable)
    function = st.builds("g[{}] = {}".format, variable, variable)
    atoms = draw(st.lists(st.one_of(binary, binary, binary, unary, function), min_size=2, max_size=5))
    used = [v for v in VARIABLES if any(v in a.replace("e(", "(") for a in atoms)]
    some = st.lists(st.sampled_from(used), min_size=1, max_size=3, unique=True)
    tests = draw(
        st.lists(
            st.builds(
                "{} {} {}".format, st.sampled_from(used), st.sampled_from(["<", "!="]), st.sampled_from(used)
            ),
            max_size=1,
        )
    )
    if draw(st.booleans()):
        tests.append(f"!f({draw(st.sampled_from(used))}, {draw(st.sampled_from(used))})")
    body = ", ".join([*atoms, *tests])
    group = draw(some)
    keys = ", ".join(group)
    argument = draw(st.sampled_from(used))
    lines += [
        f"p({', '.join(draw(some))}) <- {body}.",
        f"n[] = k <- agg<<k = count()>> {body}.",
        f"m[{keys}] = k <- agg<<k = count()>> {body}.",
        f"t[{keys}] = k <- agg<<k = sum({argument})>> {body}.",
        f"u[{keys}] = k <- agg<<k = max({argument})>> {body}.",
    ]
    return "\n".join(lines) + "\n"


def agree(text: str) -> None:
    program = accepted(text)
    try:
        expected = evaluate(program)
    except (ConstraintError, DataError, OverflowError):
        return  # what refuses is tested elsewhere
    for setting in SETTINGS:
        database = dlog.Database(source=f'.pragma "planner" "{setting}"\n{text}')
        rows = {name: database[name].rows() for name in program.predicates}
        assert same_program(rows, expected, program), setting


@relaxed(12)
@given(joins())
def test_oracle_joins_in_parts(text: str) -> None:
    agree(text)


@relaxed(15)
@given(programs(ALL))
def test_oracle_programs_in_parts(text: str) -> None:
    agree(text)


@pytest.mark.fuzz
@relaxed(3000, random=True)
@given(st.one_of(joins(), programs(ALL)))
def test_fuzz_in_parts(text: str) -> None:
    agree(text)


@pytest.mark.plan
def test_options_are_read_from_pragmas_and_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    source = '.pragma "planner" "no-semijoins, always-chunks"\n'
    assert dlog.Database(source=source).store.options == Options(semijoins="never", chunks="always")
    monkeypatch.setenv("DLOG_PLANNER", "auto-semijoins")
    assert dlog.Database(source=source).store.options == Options(chunks="always")


def test_unknown_options_are_errors_with_a_place() -> None:
    with pytest.raises(SourceError, match="unknown planner option no-semijoin") as caught:
        dlog.Database(source='.pragma "planner" "no-semijoin"\n')
    assert caught.value.line == 1 and "no-semijoins" in (caught.value.help or "")


CYCLES = "n[] = k <- agg<<k = count()>> e(a, b), e(b, c), e(c, d), e(d, a).\n"
PATHS = "p(a, b, c) <- s(a), e(a, b), e(b, c), s(c).\n"


@pytest.mark.plan
def test_explain_shows_parts_and_what_they_are_for() -> None:
    facts = "s(1). " + " ".join(f"e({i}, {i * 7 % 10})." for i in range(10))
    text = dlog.Database(
        source=f'.pragma "planner" "always-sub-joins always-probes"\n{facts}\n{CYCLES}'
    ).explain("n")
    assert "one join of everything would take" in text and "no longer needed; rows are counted" in text
    assert "probe part1, a hash table, for each row" in text
    text = dlog.Database(source=f'.pragma "planner" "always-semijoins"\n{facts}\n{PATHS}').explain("p")
    assert "a semijoin: only" in text
    assert "in one join: it is expected to be quick" in dlog.Database(source=facts + CYCLES).explain("n")


@pytest.mark.plan
def test_large_joins_are_done_in_parts_and_small_ones_are_not() -> None:
    rows = np.random.default_rng(1).integers(0, 300, (30_000, 2))
    database = dlog.Database(source=f"e(x, y) -> int(x), int(y).\n{CYCLES}", evaluated=False)
    assert "in one join" in database.explain("n")
    database.store.relations["e"].apply_in_place(inserts=rows)
    text = database.explain("n")
    assert "in parts" in text and "rejected" in text


@pytest.mark.plan
def test_counts_that_do_not_fit_are_errors() -> None:
    """A count of tuples of values needs none of them, so it can be larger than any number of rows."""
    body = ", ".join(f"e({v})" for v in "abcdefg")
    facts = " ".join(f"e({i})." for i in range(1000))
    with pytest.raises(DataError, match="does not fit 64 bits"):
        dlog.Database(source=f"{facts}\nn[] = k <- agg<<k = count()>> {body}.")
    assert dlog.Database(source=f"{facts}\nn[] = k <- agg<<k = count()>> e(a), e(b), e(c), e(d).")[
        "n"
    ].rows() == [(10**12,)]


@pytest.mark.plan
def test_rules_share_sub_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both rules need the same 2-paths, under other names; what reads a changed relation is rebuilt."""
    made: list[str] = []
    passing = decomposed._Work.passing
    monkeypatch.setattr(
        decomposed._Work, "passing", lambda self, s, *rest: made.append(s.name) or passing(self, s, *rest)
    )
    facts = " ".join(f"e({i}, {i * 3 % 7})." for i in range(7))
    rules = """
        n[] = k <- agg<<k = count()>> e(a, b), e(b, c), f(c, d), f(d, a).
        m[] = k <- agg<<k = count()>> f(z, w), f(w, x), e(x, y), e(y, z).
        f(1, 2). f(2, 1). f(6, 3).
    """
    pragma = '.pragma "planner" "always-sub-joins no-semijoins no-probes no-chunks {}"\n'
    shared = dlog.Database(source=pragma.format("") + facts + rules)
    first = len(made)
    alone = dlog.Database(source=pragma.format("no-sharing") + facts + rules)
    assert first < len(made) - first
    assert shared["n"].rows() == shared["m"].rows() == alone["n"].rows() == alone["m"].rows()


def test_two_threads_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decomposed, "CHUNK_ROWS", 100)
    rows = np.random.default_rng(2).integers(0, 200, (3_000, 2))
    counts = []
    for jobs, setting in ((2, "always-sub-joins always-chunks"), (1, "no-sub-joins no-semijoins")):
        source = f'.pragma "planner" "{setting}"\ne(x, y) -> int(x), int(y).\n{CYCLES}'
        database = dlog.Database(source=source, evaluated=False)
        database.store.relations["e"].apply_in_place(inserts=rows)
        evaluate_rules(database.program, database.store, Evaluation(jobs=jobs))
        counts.append(database.store.relations["n"].rows().tolist())
    assert counts[0] == counts[1] and counts[0][0][0] > 0
