"""Owns the errors a user can cause, and their one printed form.

Every failure that a program, a file or a command line can cause is a `DlogError`; any other exception
that escapes is a bug in dlog.  Knows nothing of how sources are read: a span is whatever can say
where it is and show its lines.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Protocol


class Location(Protocol):
    """Where an error is: implemented by `dlog.language.source.Span`."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...
    def excerpt(self) -> str:
        """The source line and a caret span below it, or "" when there is no text to show."""


class DlogError(Exception):
    """Base of all errors a user can cause.  `message` says what is wrong; `render()` is what is printed."""

    exit_status = 1
    severity = "error"

    def __init__(self, message: str, *, span: Location | None = None, help: str | None = None):
        super().__init__(message)
        self.message = message
        self.span = span
        self.help = help

    def __str__(self) -> str:
        """The place, when there is one, and the message: what a traceback shows."""
        place = f"{self.span.file}:{self.span.line}:{self.span.column}: " if self.span else ""
        return place + self.message

    @property
    def file(self) -> str | None:
        return self.span.file if self.span else None

    @property
    def line(self) -> int | None:
        return self.span.line if self.span else None

    @property
    def column(self) -> int | None:
        return self.span.column if self.span else None

    def render(self) -> str:
        """`FILE:LINE:COL: error: MESSAGE`, the source line, a caret span, and one `help:` line."""
        if self.span is None:
            lines = [f"{self.severity}: {self.message}"]
        else:
            where = f"{self.span.file}:{self.span.line}:{self.span.column}"
            lines = [f"{where}: {self.severity}: {self.message}"]
            if excerpt := self.span.excerpt():
                lines.append(excerpt)
        if self.help:
            lines.append(f"help: {self.help}")
        return "\n".join(lines)


class SourceError(DlogError):
    """Something is wrong in a program text."""


class UnsupportedError(SourceError):
    """The text is legal, but dlog cannot do it yet."""


class ProgramWarning(DlogError):
    """A program is legal, and probably not what was meant.  It is printed and never raised."""

    severity = "warning"


class PlanError(DlogError):
    """A legal program that cannot be planned."""


class DataError(DlogError):
    """A file or a value that cannot be accepted."""


class ConstraintError(DlogError):
    """A transaction that violates an integrity constraint or a functional dependency."""


class FunctionError(DataError):
    """A function or an aggregate in Python failed, or gave what its declaration does not allow."""


class VerifyError(DlogError):
    """Maintenance and evaluation from scratch disagree: a bug in dlog, found by `--verify`."""


class SubscriberError(DlogError):
    """A transaction was committed, but a callback notified of it failed; its error is the cause."""


class StoreError(DlogError):
    """The files of a durable database cannot be read, written or trusted."""


class LimitError(DlogError):
    """A limit of time, rows or memory was reached, or the user interrupted."""


class Interrupted(LimitError):
    """The user stopped a long evaluation."""

    exit_status = 130


class DlogErrors(DlogError):
    """Several independent errors of one run, in source order, each once."""

    def __init__(self, errors: Iterable[DlogError]):
        self.errors = _unique(errors)
        super().__init__("\n".join(e.message for e in self.errors), span=self.errors[0].span)

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))

    def __iter__(self) -> Iterator[DlogError]:
        return iter(self.errors)

    def render(self) -> str:
        return "\n".join(error.render() for error in self.errors)


def place(span: Location, seen_from: Location | None) -> str:
    """A second place that a message mentions: `line 3`, or `FILE:3` when it is in another file."""
    same = seen_from is not None and seen_from.file == span.file
    return f"line {span.line}" if same else f"{span.file}:{span.line}"


def did_you_mean(word: str, known: Iterable[str], otherwise: str | None = None) -> str | None:
    """The help for an unknown name: the closest known one, else what can be done instead.

    >>> did_you_mean("egde", ["edge", "node"])
    'did you mean edge?'
    """
    close = difflib.get_close_matches(word, sorted(known), 1)
    return f"did you mean {close[0]}?" if close else otherwise


class Diagnostics:
    """Collects errors during a phase, and raises them together."""

    def __init__(self) -> None:
        self.errors: list[DlogError] = []

    def add(self, error: DlogError) -> None:
        self.errors.extend(error.errors if isinstance(error, DlogErrors) else [error])

    def error(self, message: str, span: Location | None, help: str | None = None) -> None:
        self.add(SourceError(message, span=span, help=help))

    def raise_if_any(self) -> None:
        if not self.errors:
            return
        errors = _unique(self.errors)
        raise errors[0] if len(errors) == 1 else DlogErrors(errors)


def _unique(errors: Iterable[DlogError]) -> list[DlogError]:
    """In source order, without repetition of the same message at the same place."""
    seen: set[tuple[str | None, int | None, int | None, str]] = set()
    kept = []
    for error in errors:
        key = (error.file, error.line, error.column, error.message)
        if key not in seen:
            seen.add(key)
            kept.append(error)
    return sorted(kept, key=lambda e: (e.file or "", e.line or 0, e.column or 0))
