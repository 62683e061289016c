"""Owns progress on the screen: a bar on a terminal, plain lines elsewhere, nothing for quick work.

Work reports each step when it begins; a separate thread watches the clock, so that one long step
is shown as well as many short ones.  Kernels release the GIL, so the thread can run.
"""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Any, NamedTuple

_QUIET_SECONDS = 1.5  # work that is done by then shows nothing
_LINE_SECONDS = 5.0  # between two plain lines
PHASES = {
    "load": "loading",
    "evaluate": "evaluating",
    "run": "running over",
    "write": "writing",
    "recover": "recovering",
    "compare": "comparing",
}


class _Step(NamedTuple):
    """What is in progress: the phase, the step's name, how many steps are done, and of how many."""

    phase: str
    what: str
    done: int
    total: int

    def text(self) -> str:
        """In names that the user knows: p'count1 is a part of p, constraint'1 a constraint."""
        names = dict.fromkeys(name.split("'")[0] for name in self.what.split(", "))
        return f"{PHASES.get(self.phase, self.phase)} {', '.join(names)}".strip()


class Screen:
    """`with Screen() as show: show(phase, what, done, total)`."""

    def __init__(self, enabled: bool = True):
        self._enabled = enabled
        self._terminal = sys.stderr.isatty()
        self._started = time.monotonic()
        self._step: _Step | None = None
        self._bar: Any = None
        self._task: Any = None
        self._phase = ""
        self._lock = threading.Lock()  # of the bar, and of lines on standard error
        self._ended = threading.Event()
        self._clock = threading.Thread(target=self._watch_clock, name="progress", daemon=True)

    def __enter__(self) -> Screen:
        if self._enabled:
            self._clock.start()
        return self

    def __call__(self, phase: str, what: str, done: int, total: int) -> None:
        """Reports what begins.  Cheap: the bar, if there is one, is redrawn by its own clock."""
        self._step = _Step(phase, what, done, total)
        if self._bar is not None:
            with self._lock:
                self._move_bar(self._step)

    def print(self, text: str) -> None:
        """A line on standard error that does not disturb the bar."""
        with self._lock:
            if self._bar is not None:
                self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
            else:
                print(text, file=sys.stderr, flush=True)

    def _watch_clock(self) -> None:
        """Shows the current step once work is no longer quick, then again and again on plain files."""
        wait = _QUIET_SECONDS
        while not self._ended.wait(wait):
            step = self._step
            if step is None:
                continue
            with self._lock:
                if self._terminal:
                    self._start_bar()
                    self._move_bar(step)
                    return
                seconds = time.monotonic() - self._started
                line = f"{step.text()} ({step.done}/{step.total}, {seconds:.0f} s)"
                print(line, file=sys.stderr, flush=True)
            wait = _LINE_SECONDS

    def _start_bar(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._bar.start()

    def _move_bar(self, step: _Step) -> None:
        if step.phase != self._phase:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._phase, self._task = step.phase, self._bar.add_task(step.text(), total=step.total)
        self._bar.update(self._task, description=step.text()[:60], completed=step.done, total=step.total)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._enabled:
            self._clock.join()
        if self._bar is not None:
            self._bar.stop()
