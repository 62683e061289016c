"""Owns how often Python's garbage collector runs while a program is read, planned and evaluated, or levels of
maps are compiled.

That makes many objects which live as long as the program: 3,000 rules make 600,000.  With Python's own
thresholds the collector walks through all of them again and again, which takes a quarter of the time, and
more than in proportion to the number of rules.
"""

from __future__ import annotations

import functools
import gc
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_SELDOM = (10_000, 10, 100)  # a full collection after ten million new objects, not after 70,000
_lock = threading.Lock()
_running = 0  # calls in which collections are seldom, in all threads
_before = gc.get_threshold()


def seldom_collected(function: Callable[P, T]) -> Callable[P, T]:
    """A function during which collections are seldom.  Afterwards the thresholds are as they were."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        _enter()
        try:
            return function(*args, **kwargs)
        finally:
            _leave()

    return run


def _enter() -> None:
    global _running, _before
    with _lock:
        if not _running:
            _before = gc.get_threshold()
            gc.set_threshold(*_SELDOM)
        _running += 1


def _leave() -> None:
    """The thresholds of others stay: a caller may change them meanwhile."""
    global _running
    with _lock:
        _running -= 1
        if not _running and gc.get_threshold() == _SELDOM:
            gc.set_threshold(*_before)
