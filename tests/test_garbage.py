"""Collections are seldom while a program is read and evaluated, and as before afterwards."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

import dlog
from dlog.garbage import seldom_collected


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_thresholds_are_as_before_after_a_call_and_after_an_error() -> None:
    gc.set_threshold(701, 11, 12)
    within = seldom_collected(gc.get_threshold)()
    assert within[0] > 701 and gc.get_threshold() == (701, 11, 12)
    with pytest.raises(ZeroDivisionError):
        seldom_collected(lambda: 1 // 0)()
    assert gc.get_threshold() == (701, 11, 12)


def test_calls_in_several_threads_restore_when_the_last_one_ends() -> None:
    gc.set_threshold(701, 11, 12)
    inside, leave = threading.Event(), threading.Event()

    @seldom_collected
    def wait() -> None:
        inside.set()
        leave.wait(30)

    thread = threading.Thread(target=wait)
    thread.start()
    assert inside.wait(30)
    within = seldom_collected(gc.get_threshold)()
    assert gc.get_threshold() == within != (701, 11, 12)
    leave.set()
    thread.join()
    assert gc.get_threshold() == (701, 11, 12)


def test_thresholds_set_meanwhile_by_somebody_else_stay() -> None:
    seldom_collected(lambda: gc.set_threshold(703, 13, 14))()
    assert gc.get_threshold() == (703, 13, 14)


def test_a_large_program_is_evaluated_without_a_full_collection() -> None:
    rules = "".join(f"p{i + 1}(x) <- p{i}(x).\n" for i in range(600))
    gc.collect()
    full: list[int] = []

    def note(phase: str, about: dict[str, int]) -> None:
        full.extend([1] if phase == "start" and about["generation"] == 2 else [])

    gc.callbacks.append(note)
    try:
        database = dlog.Database(source=f"p0(1).\n{rules}")
    finally:
        gc.callbacks.remove(note)
    assert not full and len(database["p600"]) == 1
