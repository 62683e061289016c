"""Owns when Ctrl-C is heard: while a database is at work, at safe points only.

Python lets a signal handler raise between any two instructions: also when memory has been handed out that no
one holds yet, or when a structure is half changed.  So while an operation runs in the main thread SIGINT is
only noted.  `poll`, called where everything can be taken back, and the end of the operation hand it to the
handler that was there before: Python's own raises KeyboardInterrupt.  Between operations that handler is in
its place.  Operations inside others, and those of other threads, which never get signals, change nothing.

    @uninterrupted
    def verify(self): ...

An operation costs 1 us for it.  Knows nothing of databases.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
from _signal import getsignal  # as in `signal`, without enums, which cost 10 us
from _signal import signal as set_handler
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_SIGINT = int(signal.SIGINT)
_main = threading.main_thread().ident
_held = False  # an operation runs in the main thread
_noted = False  # it has been interrupted since
_before: Any = None  # the handler of whoever called


def begin() -> bool:
    """Hold interrupts back from here to `end`, which the caller owes when this is true.

    False inside of another operation, in other threads, and where interrupts run no handler of Python's.
    """
    global _held, _before
    if _held or get_ident() != _main:
        return False
    before = getsignal(_SIGINT)
    if not callable(before):  # ignored, deadly, or not known to Python
        return False
    set_handler(_SIGINT, _note)
    _before, _held = before, True  # nothing comes between any more
    return True


def end() -> None:
    """Hear interrupts again.  One that was noted comes now."""
    global _held
    if getsignal(_SIGINT) is _note:  # else someone has put another one in its place meanwhile
        set_handler(_SIGINT, _before)
    _held = False
    if _noted:
        _deliver()


def cannot_come() -> bool:
    """Whether no interrupt can raise anything here: inside of an operation, or outside of the main thread."""
    return _held or get_ident() != _main


def poll() -> None:
    """A safe point: an interrupt that was noted comes now.  Does nothing in other threads.  0.05 us."""
    if _noted and get_ident() == _main:
        _deliver()


def uninterrupted(function: Callable[P, T]) -> Callable[P, T]:
    """Makes a function an operation."""

    @functools.wraps(function)
    def operation(*args: P.args, **kwargs: P.kwargs) -> T:
        if not begin():
            return function(*args, **kwargs)
        try:
            return function(*args, **kwargs)
        finally:
            end()

    return operation


@contextmanager
def immediate_interrupts() -> Iterator[None]:
    """In the block interrupts come at once, also inside of an operation: for waiting on other processes."""
    if not _held or get_ident() != _main:
        yield
        return
    set_handler(_SIGINT, _before)
    try:
        poll()
        yield
    finally:
        set_handler(_SIGINT, _note)


def in_thread(work: Callable[[], T]) -> T:
    """What the work gives, done in a thread of its own, which costs 50 us.

    For libraries that take Ctrl-C for themselves while they are called in the main thread: pyarrow's reader
    of CSV does, and loses one that comes when it is nearly done.
    """
    if get_ident() != _main:
        return work()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _note(number: int, frame: object) -> None:
    global _noted
    _noted = True


def _deliver() -> None:
    global _noted
    _noted = False
    _before(_SIGINT, sys._getframe(1))


def _after_fork() -> None:
    global _main
    _main = threading.main_thread().ident


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
