"""Strata on several cores: whatever their number, the same rows, warnings and errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given

import dlog
from dlog.engine.evaluate import side_by_side
from dlog.engine.evaluate.evaluate import Evaluation
from dlog.engine.state.limits import Limits, Watch
from dlog.engine.state.measure import Measures
from dlog.errors import DlogError, LimitError
from dlog.ir.rules import Stratum
from tests.examples import relaxed
from tests.oracle.programs import ALL, programs


def outcome(text: str, jobs: int) -> tuple[object, ...]:
    """All rows and warnings, or the error."""
    reported: list[str] = []
    try:
        db = dlog.Database(source=text, jobs=jobs, warn=reported.append)
        return {name: db[name].rows() for name in db.predicates()}, reported
    except DlogError as error:
        return type(error), str(error), reported


def same_outcomes(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        expected = outcome(text, 1)
        patch.setattr(side_by_side, "LARGE", 0)
        for jobs in (2, 4):
            assert outcome(text, jobs) == expected


@relaxed(40)
@given(programs(ALL, derived=5))
def test_random_programs_on_several_cores(text: str) -> None:
    same_outcomes(text)


@pytest.mark.fuzz
@relaxed(2000, random=True)
@given(programs(ALL, derived=8))
def test_fuzz_programs_on_several_cores(text: str) -> None:
    same_outcomes(text)


STRATA = "".join(f"p{i}(x) <- e(x), x != {i}.\n" for i in range(6)) + "q(x) <- p0(x), x > 1.\n"
TEXT = f"e(1). e(2). e(3).\n{STRATA}"
Run = Callable[[Stratum, Evaluation], None]


def run_all(
    run: Run,
    jobs: int = 3,
    watch: Watch | None = None,
    warn: Callable[[str], None] = lambda text: None,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> None:
    """Runs the strata of a program by a function."""
    database = dlog.Database(source=TEXT)
    evaluation = Evaluation(watch or Watch(), Measures(on_warning=warn), progress, jobs=jobs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(side_by_side, "LARGE", 0)
        side_by_side.run_all(database.program, database.store, evaluation, run)


def test_strata_run_at_the_same_time() -> None:
    meeting = threading.Barrier(3)

    def run(stratum: Stratum, evaluation: Evaluation) -> None:
        if stratum.predicates[0] in ("p0", "p1", "p2"):
            with evaluation.watch.lock_released():
                meeting.wait(timeout=20)

    run_all(run)
    assert not meeting.broken


def test_one_at_a_time_has_the_turn() -> None:
    inside: list[int] = []
    seen: list[int] = []

    def run(stratum: Stratum, evaluation: Evaluation) -> None:
        for _ in range(20):
            inside.append(1)
            seen.append(len(inside))
            time.sleep(0)
            inside.pop()
            with evaluation.watch.lock_released():
                time.sleep(0)

    run_all(run)
    assert max(seen) == 1


def test_strata_wait_for_what_they_read() -> None:
    order: list[str] = []
    run_all(lambda stratum, evaluation: order.append(stratum.predicates[0]))
    assert order.index("q") > order.index("p0") and len(order) == 7


def test_the_first_error_and_the_warnings_before_it() -> None:
    """One stratum fails at once, one before it later; strata that wait for others are among them."""
    names = [s.predicates[0] for s in dlog.Database(source=TEXT).program.strata]
    late, early = names[2], names[4]

    def run(stratum: Stratum, evaluation: Evaluation) -> None:
        name = stratum.predicates[0]
        with evaluation.watch.lock_released():
            time.sleep(0 if name == early else 0.05)
        evaluation.measures.warn(f"warning of {name}")
        if name in (late, early):
            raise ValueError(name)

    for jobs in (1, 2, 4, 8):
        reported: list[str] = []
        with pytest.raises(ValueError) as caught:
            run_all(run, jobs, warn=reported.append)
        assert str(caught.value) == late
        assert reported == [f"warning of {name}" for name in names[:3]]


def test_limits_and_interrupts_end_all_strata() -> None:
    def forever(stratum: Stratum, evaluation: Evaluation) -> None:
        evaluation.watch.doing = "going on"
        while True:
            with evaluation.watch.lock_released():
                time.sleep(0.001)
            evaluation.watch.check()

    threads = set(threading.enumerate())
    with pytest.raises(LimitError, match=r"timeout of 0.1 s reached while going on"):
        run_all(forever, watch=Watch(Limits(timeout=0.1)))
    started = time.monotonic()

    def interrupt(what: str, done: int, total: int) -> None:
        if time.monotonic() > started + 0.1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(forever, progress=interrupt)
    assert not set(threading.enumerate()) - threads


def test_a_limit_on_rows_runs_strata_one_by_one() -> None:
    order: list[str] = []
    watch = Watch(Limits(rows=100))
    run_all(lambda stratum, evaluation: order.append(stratum.predicates[0]), jobs=4, watch=watch)
    names = [s.predicates[0] for s in dlog.Database(source=TEXT).program.strata]
    assert order == names
