"""Owns progress on the screen: a bar on a terminal, plain lines elsewhere, nothing for quick work."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

_QUIET_SECONDS = 1.0  # work that is done by then shows nothing
_LINE_SECONDS = 5.0  # between two plain lines
_WORDS = {"load": "loading", "evaluate": "evaluating", "write": "writing"}


class Screen:
    """`with Screen() as show: show(phase, what, done, total)`."""

    def __init__(self, enabled: bool = True):
        self._enabled = enabled
        self._terminal = sys.stderr.isatty()
        self._started = self._last_line = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._phase = ""

    def __enter__(self) -> Screen:
        return self

    def __call__(self, phase: str, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if not self._enabled or now - self._started < _QUIET_SECONDS:
            return
        text = f"{_WORDS.get(phase, phase)} {what}".strip()
        if self._terminal:
            self._show_bar(phase, text, done, total)
        elif now - self._last_line >= _LINE_SECONDS:
            self._last_line = now
            print(f"{text} ({done}/{total})", file=sys.stderr, flush=True)

    def print(self, text: str) -> None:
        """A line on standard error that does not disturb the bar."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def _show_bar(self, phase: str, text: str, done: int, total: int) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed}/{task.total}"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
        if phase != self._phase:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._phase, self._task = phase, self._bar.add_task(text, total=total)
        self._bar.update(self._task, description=text[:60], completed=done, total=total)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
