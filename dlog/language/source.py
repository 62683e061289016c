"""Owns program texts and positions in them.  Knows nothing of what the text means."""

from __future__ import annotations

import bisect
import sys
from dataclasses import dataclass, field
from pathlib import Path

from dlog.errors import DataError, SourceError

_LONG_LINE = 160  # characters of a line that are shown at most


@dataclass(frozen=True)
class Origin:
    """Where a line of the text came from: after preprocessing, text lines are not file lines."""

    file: str
    line: int
    text: str


@dataclass(eq=False)
class Source:
    """A program text with a name.  `origins`, when given, has one entry per line of the text."""

    name: str
    text: str
    origins: list[Origin] | None = None
    _starts: list[int] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self._starts = [0]
        position = self.text.find("\n")
        while position >= 0:
            self._starts.append(position + 1)
            position = self.text.find("\n", position + 1)

    def check(self) -> None:
        """Each line starts after the end of the last; each has an origin, if there are origins."""
        assert self._starts[0] == 0 and len(self._starts) == self.text.count("\n") + 1
        assert all(self.text[start - 1] == "\n" for start in self._starts[1:])
        assert self.origins is None or len(self.origins) == len(self._starts)

    def position(self, offset: int) -> tuple[int, int]:
        """(line, column) of a character in this text, both from 1.  O(log lines)."""
        line = bisect.bisect_right(self._starts, offset) - 1
        return line + 1, offset - self._starts[line] + 1

    def origin(self, line: int) -> Origin:
        """REQUIRES: 1 <= line <= number of lines."""
        if self.origins is not None and line <= len(self.origins):
            return self.origins[line - 1]
        start = self._starts[line - 1]
        end = self._starts[line] - 1 if line < len(self._starts) else len(self.text)
        return Origin(self.name, line, self.text[start:end])


def read_source(path: str | Path) -> Source:
    """The text of a program file, `-` for standard input.  Bytes that are not UTF-8 are an error with their
    position.
    """
    if str(path) == "-":
        return Source("<stdin>", decode(sys.stdin.buffer.read(), "<stdin>"))
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise DataError(f"no such file: {path}") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a directory, not a program") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"cannot read {path}: {reason}") from None
    return Source(str(path), decode(data, str(path)))


def decode(data: bytes, name: str) -> str:
    """Program text from bytes: UTF-8, an optional byte order mark, any line ends."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        shown = data.decode("utf-8", "surrogateescape")
        start = len(data[: error.start].decode("utf-8", "surrogateescape"))
        raise _not_text(f"not UTF-8 text (byte 0x{data[error.start]:02x})", name, shown, start) from None
    return _with_line_ends(text)


def text_source(text: str, name: str = "<string>") -> Source:
    """A text that does not come from a file.  Raises if it is not valid text."""
    return Source(name, checked_text(text, name))


def checked_text(text: str, name: str) -> str:
    """Program text from a string: characters that cannot be in a file are an error with their position."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        message = f"U+{ord(text[error.start]):04X} is half of a character, not text"
        raise _not_text(message, name, text, error.start) from None
    return _with_line_ends(text.removeprefix("\ufeff"))


def _not_text(message: str, name: str, text: str, start: int) -> SourceError:
    shown = text.encode("utf-8", "replace").decode("utf-8")  # one `?` for each character that cannot be shown
    return SourceError(message, span=Span(Source(name, shown), start, start + 1))


def _with_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


@dataclass(frozen=True)
class Span:
    """Characters [start, end) of a source."""

    source: Source
    start: int
    end: int

    @property
    def file(self) -> str:
        return self._origin().file

    @property
    def line(self) -> int:
        return self._origin().line

    @property
    def column(self) -> int:
        """At most one past the line: a macro may have expanded to more text than its line holds."""
        return min(self.source.position(self.start)[1], len(self._origin().text) + 1)

    def excerpt(self) -> str:
        """The line and, below it, carets under the span; for a long line, the part around the span."""
        text, column = self._origin().text, self.column
        if not text.strip():
            return ""
        if len(text) > _LONG_LINE:
            start = max(0, column - 1 - _LONG_LINE // 2)
            before, text = "..." if start else "", text[start : start + _LONG_LINE]
            text, column = before + text, column - start + len(before)
        width = max(1, min(self.end - self.start, len(text) - column + 1))
        # Tabs are preserved, so that the carets line up.
        indent = "".join("\t" if c == "\t" else " " for c in text[: column - 1])
        shown = "".join(c if c.isprintable() or c == "\t" else "?" for c in text)
        return f"{shown}\n{indent}{'^' * width}"

    def to(self, other: Span) -> Span:
        """From the start of this span to the end of another."""
        return Span(self.source, min(self.start, other.start), max(self.end, other.end))

    def text(self) -> str:
        return self.source.text[self.start : self.end]

    def _origin(self) -> Origin:
        return self.source.origin(self.source.position(self.start)[0])


@dataclass(frozen=True)
class InstanceSpan(Span):
    """A place in a component, as part of one of its instances, which messages name."""

    note: str = ""

    def excerpt(self) -> str:
        text = super().excerpt()
        return f"{text}\n{self.note}" if text else self.note

    def to(self, other: Span) -> Span:
        whole = super().to(other)
        return InstanceSpan(whole.source, whole.start, whole.end, self.note)
