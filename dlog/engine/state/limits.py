"""Owns limits: time, rows, memory and Ctrl-C, and the one line that names the rule that exceeded them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from dlog.errors import LimitError
from dlog.interrupts import poll

_LOOK = 0.25  # seconds between two checks of the machine's memory
_MOST = 0.9  # of it that a process may use


@dataclass(frozen=True)
class Limits:
    """None means without limit.  `rows` bounds the derived rows in all, `memory` the process, in bytes."""

    timeout: float | None = None
    rows: int | None = None
    memory: int | None = None

    @cached_property
    def none(self) -> bool:
        """Whether nothing is limited."""
        return self.timeout is None and self.rows is None and self.memory is None


class ReleasableLock:
    """A lock that its holder releases during work that interferes with no other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._holder = threading.get_ident()

    def __exit__(self, *error: object) -> None:
        self._holder = 0
        self._lock.release()

    @contextmanager
    def released(self) -> Iterator[None]:
        """In the block others may hold the lock.  Nothing happens in a thread that does not hold it."""
        if self._holder != threading.get_ident():
            yield
            return
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()


class Watch:
    """Checks the limits between slices of work.  `doing` says what is in progress, for the message."""

    def __init__(self, limits: Limits | None = None, lock: ReleasableLock | None = None):
        self.limits = limits or Limits()
        self.lock = lock  # of strata that run side by side
        self.started = self.checked = time.monotonic()
        self.doing = "starting"
        self.derived_rows = 0
        self.pending_rows = 0
        self.stopped = False
        self.beat: Callable[[], None] = lambda: None  # called regularly: work is in progress

    def check(self) -> None:
        """Raises LimitError if a limit is exceeded, and lets Ctrl-C take effect.  A few microseconds."""
        limits = self.limits
        self.beat()
        poll()
        if self.stopped:
            raise LimitError(f"stopped while {self.doing}")
        if limits.timeout is not None and time.monotonic() - self.started > limits.timeout:
            raise LimitError(f"timeout of {limits.timeout:g} s reached while {self.doing}")
        if limits.rows is not None and self.derived_rows + self.pending_rows > limits.rows:
            raise LimitError(f"limit of {limits.rows:,} derived rows reached while {self.doing}")
        if limits.memory is not None and resident_bytes() > limits.memory:
            raise LimitError(f"memory limit of {limits.memory:,} bytes reached while {self.doing}")
        if (now := time.monotonic()) - self.checked > _LOOK:
            self.checked = now
            if resident_bytes() > _MOST * machine_bytes():
                raise LimitError(f"out of memory while {self.doing}")

    def lock_released(self) -> AbstractContextManager[None]:
        """For work that only reads: other threads may continue meanwhile."""
        return nullcontext() if self.lock is None else self.lock.released()

    def derived(self, rows: int) -> None:
        self.derived_rows += rows
        self.check()

    def pending(self, rows: int) -> None:
        """Rows that a rule has produced and that are not stored yet; they may contain duplicates."""
        self.pending_rows = rows


@cache
def machine_bytes() -> int:
    """Memory of the machine, or its container: the system kills a process that needs more, without a
    message.
    """
    total = os.sysconf("SC_PHYS_PAGES") * _PAGE
    for place in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            return min(total, int(Path(place).read_text()))
    return total


def resident_bytes() -> int:
    """Memory of this process that is in use now."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * _PAGE
    except OSError:  # not Linux: the highest use so far
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _page_size() -> int:
    import resource

    return resource.getpagesize()


_PAGE = _page_size()
