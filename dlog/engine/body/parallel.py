"""Owns the use of several cores: one join split into ranges of its first key, run in threads.

Every assignment has one first key, hence one range: the parts together are the whole, each row once.  Kernels
release the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from dlog.engine.state.limits import Watch
from dlog.interrupts import poll
from dlog.lftj.triejoin import Join

T = TypeVar("T")
_SMALL = 20_000  # rows of the largest atom below which threads cost more than they save
_LOOK = 0.1  # seconds after which a thread that waits for others checks for Ctrl-C
_PARTS = 4  # ranges per core, so that one with heavy keys does not delay the others


def parts_of(join: Join, rows: int, jobs: int) -> list[Join]:
    """The join, or parts of it that several cores can share; `rows` is the size of its largest atom."""
    return [join] if jobs < 2 or rows < _SMALL else join.split(jobs * _PARTS)


def in_parallel(tasks: Sequence[Callable[[], T]], watch: Watch) -> list[T]:
    """Results in the order of the tasks.  The first error stops the others."""
    if len(tasks) == 1:
        with watch.lock_released():
            return [tasks[0]()]
    with watch.lock_released(), ThreadPoolExecutor(max(1, len(tasks) // _PARTS)) as pool:
        futures = [pool.submit(task) for task in tasks]
        return _results(futures, watch)


def in_threads(loops: Sequence[Callable[[], None]], watch: Watch) -> None:
    """Runs each in its own thread.  The first error stops the others, which check the watch."""
    with watch.lock_released(), ThreadPoolExecutor(len(loops)) as pool:
        _results([pool.submit(loop) for loop in loops], watch)


def _results(futures: Sequence[Future[T]], watch: Watch) -> list[T]:
    """Waits for all.  An error, or Ctrl-C, which only the main thread gets, stops them."""
    try:
        while wait(futures, _LOOK, FIRST_EXCEPTION).not_done:
            poll()
            if any(future.done() and future.exception() for future in futures):
                break
        return [future.result() for future in futures]
    except BaseException:
        watch.stopped = True
        raise
