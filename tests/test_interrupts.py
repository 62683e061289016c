"""Ctrl-C is handled at safe points while a database is working, and at once otherwise; none is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

import dlog
from dlog import interrupts
from dlog.interrupts import begin, end, immediate_interrupts, in_thread, poll, uninterrupted


@pytest.fixture(autouse=True)
def python_handles_interrupts() -> Iterator[None]:
    """Also where the tests were started with interrupts ignored."""
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, inherited)


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_waits_for_a_safe_point() -> None:
    done = []

    @uninterrupted
    def work() -> None:
        interrupt()
        done.append("went on")
        poll()
        done.append("not reached")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["went on"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    poll()


def test_without_a_safe_point_it_comes_at_the_end_of_the_outermost_operation() -> None:
    done = []

    @uninterrupted
    def inner() -> None:
        interrupt()
        done.append("inner")

    @uninterrupted
    def outer() -> None:
        inner()
        done.append("outer")

    with pytest.raises(KeyboardInterrupt):
        outer()
    assert done == ["inner", "outer"]


def test_an_error_of_the_operation_does_not_swallow_it() -> None:
    @uninterrupted
    def work() -> None:
        interrupt()
        raise ValueError

    with pytest.raises(KeyboardInterrupt):
        work()


def test_the_callers_own_handler_hears_it_and_stays() -> None:
    heard_by: list[int] = []

    def own(number: int, frame: object) -> None:
        heard_by.append(number)

    signal.signal(signal.SIGINT, own)
    db = dlog.Database(source="p(x) <- q(x).  q(1).")
    assert begin()
    interrupt()
    assert not heard_by
    db.apply(insert={"q": [(2,)]})  # an operation inside this one, with a safe point: the handler returns
    assert heard_by == [signal.SIGINT] and len(db["p"]) == 2
    end()
    assert signal.getsignal(signal.SIGINT) is own


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_where_python_handles_no_interrupts_nothing_is_changed(handler: signal.Handlers) -> None:
    signal.signal(signal.SIGINT, handler)
    assert not begin()
    assert signal.getsignal(signal.SIGINT) is handler


def test_other_threads_hold_nothing() -> None:
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.extend([begin(), interrupts.cannot_come()]))
    thread.start()
    thread.join()
    assert found == [False, True] and not interrupts.cannot_come()


def test_interrupts_are_handled_while_an_operation_waits() -> None:
    assert begin()
    try:
        with pytest.raises(KeyboardInterrupt), immediate_interrupts():
            interrupt()
        interrupt()
        with pytest.raises(KeyboardInterrupt), immediate_interrupts():
            raise AssertionError("not reached")
    finally:
        end()


def test_work_in_a_thread_returns_its_result() -> None:
    assert in_thread(lambda: threading.current_thread() is threading.main_thread()) is False
    with pytest.raises(ZeroDivisionError):
        in_thread(lambda: 1 // 0)


def test_ctrl_c_ends_threads_that_an_evaluation_waits_for() -> None:
    from dlog.engine.body.parallel import in_parallel
    from dlog.engine.state.limits import Watch

    watch, started = Watch(), threading.Event()

    def endless() -> None:
        while True:
            started.set()
            watch.check()

    def send() -> None:
        started.wait()
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)

    sender = threading.Thread(target=send)
    sender.start()
    run = uninterrupted(lambda: in_parallel([endless, endless], watch))
    with pytest.raises(KeyboardInterrupt):
        run()
    sender.join()


def interrupted(seed: int, times: int) -> None:
    """See `tests.engine.interrupted`."""
    command = [sys.executable, "-m", "tests.engine.interrupted", str(seed), str(times)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    assert done.stdout.endswith("all is well\n"), (seed, done.stderr)


@pytest.mark.parametrize("seed", [1, 2])
def test_invariant_interrupts_at_random_moments_leave_all_well(seed: int) -> None:
    interrupted(seed, 60)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(10, 20))
def test_fuzz_interrupts_at_random_moments(seed: int) -> None:
    interrupted(seed, 1000)
