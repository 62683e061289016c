"""Owns interrupt handling: while a database is working, Ctrl-C takes effect at safe points only.

Python lets a signal handler raise between any two instructions: also when allocated memory has no
owner yet, or when a structure is half changed.  So while an operation runs in the main thread, SIGINT is
only noted.  `poll`, called where everything can be undone, and the end of the operation pass it to the
previous handler: Python's own raises KeyboardInterrupt.  Between operations that handler is
installed.  Nested operations, and those of other threads, which never get signals, change nothing.

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
_before: Any = None  # the caller's handler


def begin() -> bool:
    """Hold interrupts back from here to `end`, which the caller must call if this returns true.

    False inside another operation, in other threads, and where interrupts run no handler of Python's.
    """
    global _held, _before
    if _held or get_ident() != _main:
        return False
    before = getsignal(_SIGINT)
    if not callable(before):  # ignored, deadly, or not known to Python
        return False
    set_handler(_SIGINT, _note)
    _before, _held = before, True  # no interrupt can come between any more
    return True


def end() -> None:
    """Deliver interrupts again.  One that was noted is delivered now."""
    global _held
    if getsignal(_SIGINT) is _note:  # else another handler has been installed meanwhile
        set_handler(_SIGINT, _before)
    _held = False
    if _noted:
        _deliver()


def cannot_come() -> bool:
    """Whether no interrupt can raise anything here: inside an operation, or outside the main thread."""
    return _held or get_ident() != _main


def poll() -> None:
    """A safe point: delivers an interrupt that was noted.  Does nothing in other threads.  0.05 us."""
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
    """In the block interrupts are delivered at once, also inside an operation: for waiting on other
    processes.
    """
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
    """The result of the work, done in a separate thread, which costs 50 us.

    For libraries that handle Ctrl-C themselves while they are called in the main thread: pyarrow's CSV
    reader does, and loses an interrupt that comes when it is nearly done.
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
