"""Several machines: the same bits as from one, for any number of threads, in any batches; which programs they
can share; errors and states that are restored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.errors import DataError, DlogError
from dlog.m3 import parse
from dlog.m3.runtime import parts, waiting
from dlog.m3.runtime.compile.partition import PARTIAL, SHARED, partition, replaces_for_itself
from dlog.m3.runtime.runtime import Runtime, Step
from dlog.m3.types.typecheck import check
from tests.examples import relaxed
from tests.m3.runtime.test_runtime_exact_sums import BATCH, HEAD, R_ROWS, S_ROWS, SINGLE

NAMES = ("Q", "BY", "V", "PAIRS", "BY_N", "ALL", "SOME", "C", "N")
HEAD, BATCH, SINGLE = (text.replace("ALL", "WHOLE") for text in (HEAD, BATCH, SINGLE))
NAMES = tuple(name.replace("ALL", "WHOLE") for name in NAMES)
SINGLE = "\n".join(line for line in SINGLE.splitlines() if "LAST" not in line)  # one row replaces another


@pytest.fixture
def always_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "WORTH_THREADS", 0)


def apply_all(found: Runtime, changes: list[tuple[str, list[Any], list[int]]]) -> None:
    for relation, rows, signs in changes:
        found.apply(relation, rows, signs)


@pytest.mark.usefixtures("always_in_threads")
@pytest.mark.parametrize("single", [False, True], ids=["batches", "tuples"])
@relaxed(40)
@given(data=st.data())
def test_differential_threads(single: bool, data: Any) -> None:
    program = check(parse(HEAD + (SINGLE if single else BATCH)))
    one = Runtime(program, checked=True)
    several = Runtime(program, checked=True, threads=data.draw(st.integers(2, 5)))
    assert several._parts is not None
    before: list[tuple[str, list[Any], list[int]]] = []
    for _ in range(data.draw(st.integers(1, 4))):
        changes = data.draw(st.lists(st.booleans().flatmap(
            lambda r: st.tuples(st.just("R" if r else "S"), R_ROWS if r else S_ROWS)
        ), min_size=1, max_size=4))  # fmt: skip
        given = [(relation, rows, [1] * len(rows)) for relation, rows in changes]
        if before and data.draw(st.booleans()):
            relation, rows, signs = before.pop()
            given.append((relation, rows, [-sign for sign in signs]))
        before += given
        apply_all(one, given)
        apply_all(several, given)
        for name in NAMES:
            assert repr(several[name].to_pylist()) == repr(one[name].to_pylist()), name
        several.check()


def data_of(rows: int, seed: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    from dlog.storage.values import float_codes

    ones = np.ones(rows, np.int64)
    keys = rng.integers(0, 500, (2, rows))
    return {
        "R": np.stack([keys[0], float_codes(rng.uniform(-1000, 1000, rows)), ones]),
        "S": np.stack([keys[1], rng.integers(-5, 5, rows), ones]),
    }


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("rows", [1, 1000, 40_000])
def test_differential_many_rows(threads: int, rows: int) -> None:
    """Small batches wait for others, large ones do not; steps of several relations; the same bits."""
    data, program = data_of(40_000), check(parse(HEAD + BATCH))
    one, found = Runtime(program, checked=True), Runtime(program, checked=True, threads=threads)
    if rows == 1:
        which = np.arange(20_000) % 2
        for each in (one, found):
            each.apply_steps([Step(n, w[:, :10_000]) for n, w in data.items()], which, np.arange(20_000) // 7)
    else:
        for start in range(0, 40_000, rows):
            for name, words in data.items():
                for each in (one, found):
                    each.apply_words(name, words[:, start : start + rows])
    assert found.rows == one.rows
    for name in NAMES:
        assert found[name].equals(one[name]), name


@pytest.mark.parametrize("threads", [None, 2])
def test_rows_of_the_wrong_number_are_refused(threads: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels would write behind arrays that are made for the right number."""
    arrays: list[tuple[Any, int]] = []

    def guarded(self: Any, name: str, n: int) -> Any:
        arrays.append((np.full(n + 1000, -7, np.int64), n + 1))
        return arrays[-1][0][: n + 1]

    monkeypatch.setattr(parts._Memory, "_room", guarded)
    found = Runtime(check(parse(HEAD + SINGLE)), threads=threads)
    r, s = (Step(name, words) for name, words in data_of(100).items())
    steps, right = [r, s], np.arange(200) % 2
    for which in (right[:10], np.arange(300) % 2, right[:0], right - 1, right * 2, right * 0):
        with pytest.raises(DlogError, match="the number of a step for each row"):
            found.apply_steps(steps, which, np.arange(len(which)))
    with pytest.raises(DlogError, match="200 rows need as many numbers of batches, not 3"):
        found.apply_steps(steps, right, np.arange(3))
    for words in (r.words[1:], np.concatenate([r.words, r.words])):
        with pytest.raises(DlogError, match="R has 2 columns and multiplicities: 3 rows of codes, not"):
            found.apply_words("R", words)
        with pytest.raises(DlogError, match="R has 2 columns and multiplicities: 3 rows of codes, not"):
            found.apply_steps([Step("R", words), s], right, right)
    found.apply_steps(steps, right, np.arange(200))
    assert found.rows == 200 and len(found["Q"]) == 1
    assert all((array[room:] == -7).all() for array, room in arrays), "written behind the end"


COFACTOR = """
CREATE TYPE RingCofactor FROM FILE 'x';
CREATE STREAM R(a int, x double); CREATE STREAM S(a int, y double);
DECLARE MAP Q(RingCofactor<0, double, 2>)[][] := 0; DECLARE MAP V(RingCofactor<0, double, 1>)[][a: int] := 0;
DECLARE MAP W(RingCofactor<1, double, 1>)[][a: int] := 0;
DECLARE MAP P(double)[][] := 0; DECLARE MAP X(double)[][a: int] := 0; DECLARE MAP Y(double)[][a: int] := 0;
DECLARE QUERY P := P(double)[][];
ON BATCH UPDATE OF R {
  Q(RingCofactor<0, double, 2>)[][] += AggSum([], (DELTA R)(a, x) * [lift<0>: RingCofactor<0, double, 1>](x) *
  W(RingCofactor<1, double, 1>)[][a]); V(RingCofactor<0, double, 1>)[][a] += AggSum([a], (DELTA R)(a, x) *
  [lift<0>: RingCofactor<0, double, 1>](x)); P(double)[][] += AggSum([], (DELTA R)(a, x) * x *
  Y(double)[][a]); X(double)[][a] += AggSum([a], (DELTA R)(a, x) * x);
}
ON BATCH UPDATE OF S {
  Q(RingCofactor<0, double, 2>)[][] += AggSum([], (DELTA S)(a, y) * V(RingCofactor<0, double, 1>)[][a] *
  [lift<1>: RingCofactor<1, double, 1>](y)); W(RingCofactor<1, double, 1>)[][a] += AggSum([a], (DELTA S)(a, y)
  * [lift<1>: RingCofactor<1, double, 1>](y)); P(double)[][] += AggSum([], (DELTA S)(a, y) * y *
  X(double)[][a]); Y(double)[][a] += AggSum([a], (DELTA S)(a, y) * y);
}
"""


def test_differential_rounded_sums() -> None:
    """Sums that are rounded have the same bits for any number of threads, too."""
    from dlog.storage.values import float_codes

    rng = np.random.default_rng(3)
    ones, program = np.ones(30_000, np.int64), check(parse(COFACTOR))
    data = {
        name: np.stack([rng.integers(0, 900, 30_000), float_codes(rng.uniform(-9, 9, 30_000)), ones])
        for name in "RS"
    }
    found = []
    for threads in (1, 2, 3, 7):
        each = Runtime(program, checked=True, threads=threads)
        for name, words in data.items():
            each.apply_words(name, words)
        found.append([repr(each[name].to_pylist()) for name in ("Q", "P", "V")])
    assert found[1:] == found[:-1]


def test_which_rows_are_split() -> None:
    found = partition(check(parse(HEAD + BATCH)))
    assert found is not None and found.columns == {"R": 0, "S": 0}
    states = {name: found.maps[name] for name in ("Q", "BY", "V", "PAIRS", "C", "N")}
    assert states == {"Q": PARTIAL, "BY": 0, "V": 0, "PAIRS": 0, "C": 0, "N": 0}
    chain = """
    CREATE STREAM R(a int, b int); CREATE STREAM S(b int, c int); CREATE TABLE T(c int);
    DECLARE MAP Q(long)[][] := 0; DECLARE MAP V_R(long)[][b: int] := 0; DECLARE MAP V_ST(long)[][b: int] := 0;
    DECLARE MAP V_RS(long)[][c: int] := 0; DECLARE MAP V_T(long)[][c: int] := 0;
    ON SYSTEM READY { V_T(long)[][c] := T(c); }
    ON BATCH UPDATE OF R {
      Q(long)[][] += AggSum([], (DELTA R)(a, b) * V_ST(long)[][b]);
      V_R(long)[][b] += AggSum([b], (DELTA R)(a, b)); }
    ON BATCH UPDATE OF S {
      Q(long)[][] += AggSum([], (DELTA S)(b, c) * V_R(long)[][b] * V_T(long)[][c]);
      V_RS(long)[][c] += AggSum([c], (DELTA S)(b, c) * V_R(long)[][b]);
      V_ST(long)[][b] += AggSum([b], (DELTA S)(b, c) * V_T(long)[][c]); }
    """
    found = partition(check(parse(chain)))
    assert found is not None and found.columns == {"R": 1, "S": 0, "T": None}
    assert found.maps == {"Q": PARTIAL, "V_R": 0, "V_ST": 0, "V_RS": PARTIAL, "V_T": SHARED}


ROWS = "(DELTA R)(a, b)"


@pytest.mark.parametrize(
    "statement",
    [
        f"Q(long)[][] += AggSum([], {ROWS} * Q(long)[][] * T(long)[][]); T(long)[][] += AggSum([], {ROWS});",
        f"T(long)[][] += AggSum([], {ROWS}); Q(long)[][] += AggSum([], {ROWS} * {{T(long)[][] > 3}});",
        f"T(long)[][] += AggSum([], {ROWS}); Q(long)[][] += EXISTS(T(long)[][]);",
        f"V(long)[][a] += AggSum([a], {ROWS}); Q(long)[][] += AggSum([], {ROWS} * V(long)[][b]);",
    ],
)  # fmt: skip
def test_programs_that_cannot_be_divided(statement: str) -> None:
    """One machine runs them, whatever `threads` says; the result is the same."""
    head = """CREATE STREAM R(a int, b int); DECLARE MAP Q(long)[][] := 0; DECLARE MAP T(long)[][] := 0;
    DECLARE MAP V(long)[][a: int] := 0;"""
    program = check(parse(f"{head} ON BATCH UPDATE OF R {{ {statement} }}"))
    assert partition(program) is None
    one, several = Runtime(program, checked=True), Runtime(program, checked=True, threads=2)
    for each in (one, several):
        each.apply("R", [(i % 7, i % 5) for i in range(50)])
        each.apply("R", [(i % 3, i % 4) for i in range(50)])
    assert several["Q"].equals(one["Q"])


def test_a_trigger_that_replaces_runs_on_all_machines() -> None:
    """Also on those that have no row of the batch."""
    text = """CREATE STREAM R(a int, b int); DECLARE MAP LAST(long)[][a: int] := 0; DECLARE QUERY LAST :=
    LAST(long)[][a]; ON BATCH UPDATE OF R { LAST(long)[][a] := AggSum([a], (DELTA R)(a, b) * b); }"""
    found = Runtime(parse(text), threads=3)
    found.apply("R", [(i, 1) for i in range(20)])
    found.apply("R", [(5, 7)])
    assert found["LAST"].to_pylist() == [{"a": 5, "value": 7}]


TOTALS = """CREATE STREAM R(a long, b long); DECLARE MAP Q(long)[][] := 0; DECLARE MAP V(long)[][a: long] :=
0; DECLARE QUERY Q := Q(long)[][];
ON BATCH UPDATE OF R { Q(long)[][] += AggSum([], (DELTA R)(a, b) * b); V(long)[][a] += AggSum([a], (DELTA
R)(a, b) * b); }
"""


def test_errors_come_when_rows_are_applied() -> None:
    found = Runtime(parse(TOTALS), threads=2)
    saved = found.save()
    found.apply("R", [(1, 1 << 62)])
    found.apply("R", [(1, 1 << 62)])
    with pytest.raises(DataError, match="does not fit 64 bits"):
        found["V"]
    with pytest.raises(DlogError, match="no longer valid"):
        found.apply("R", [(1, 1)])
    found.restore(saved)
    found.apply("R", [(a, 1 << 62) for a in range(8)])
    with pytest.raises(DataError, match="does not fit 64 bits"):
        found["Q"]  # each machine's sum may fit: theirs together does not
    found.restore(saved)
    found.apply("R", [(a, 1) for a in range(8)])
    assert found["Q"]["value"][0].as_py() == 8 and found["V"].num_rows == 8


def test_waiting_rows_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MOST_WAITING", 100)
    found = Runtime(parse(TOTALS), threads=2)
    assert found._parts is not None
    words = np.array([[1, 2], [10, 20], [1, 1]])
    for _ in range(49):
        found.apply_words("R", words)
    assert found._parts.waiting.rows == 98
    words[:] = [[5, 5], [0, 0], [1, 1]]  # the caller may change it
    found.apply_words("R", words)
    assert found._parts.waiting.rows == 0 and waiting.SMALL_BATCH > 2
    assert found["Q"]["value"][0].as_py() == 49 * 30


SCRATCH = """
CREATE STREAM R(a int, b int);
CREATE STREAM S(a int, c int);
DECLARE MAP D(long)[][a: int] := 0;
DECLARE MAP M(long)[][a: int] := 0;
DECLARE QUERY Q := M(long)[][a];
ON BATCH UPDATE OF R {
  D(long)[][a] := AggSum([a], (DELTA R)(a, b) * b);
  M(long)[][a] += D(long)[][a];
}
"""


@pytest.mark.parametrize(
    ("more", "drained", "is_scratch"),
    [
        ("", (), True),
        ("", ("D",), False),
        ("ON BATCH UPDATE OF S { M(long)[][a] += AggSum([a], (DELTA S)(a, c) * D(long)[][a]); }", (), False),
        ("ON BATCH UPDATE OF S { D(long)[][a] += AggSum([a], (DELTA S)(a, c)); }", (), False),
        (
            "ON BATCH UPDATE OF S { D(long)[][a] := AggSum([a], (DELTA S)(a, c));"
            " M(long)[][a] += D(long)[][a]; }",
            (),
            True,
        ),
        ("DECLARE QUERY P := D(long)[][a];", (), False),
    ],
)
def test_a_trigger_that_replaces_scratch_alone(more: str, drained: tuple[str, ...], is_scratch: bool) -> None:
    """Machines without a row need not run it."""
    declared, query = more.startswith("DECLARE"), SCRATCH.index("DECLARE QUERY")
    text = SCRATCH[:query] + more + SCRATCH[query:] if declared else SCRATCH + more
    program = check(parse(text))
    assert replaces_for_itself(program, "R", drained) == is_scratch
