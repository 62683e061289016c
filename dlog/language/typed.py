"""Owns text as it is typed: where a statement ends, and which lines are commands or transaction keywords.

Serves both the prompt and files of transactions.  Knows nothing of what statements mean.

Lifecycle of a piece: lines are fed one by one; once a line completes it, the piece is returned, with its
positions in the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dlog.language import ast
from dlog.language.parse import expand_includes, parse_source
from dlog.language.source import Origin, Source, Span
from dlog.language.vocabulary import DIRECTIVES, TOKEN

PROMPT = "<prompt>"  # the name of what is typed at a terminal
WORDS = ("begin", "commit", "rollback")
_COMMAND = re.compile(r"\s*\.([A-Za-z_]+)(?:\s+(.*?))?\s*$", re.DOTALL)
_WORD = re.compile(r"\s*(begin|commit|rollback)\s*\.?\s*(?://.*)?$")
_CONNECTORS = frozenset({",", "|", "=", "<:", ":"})
_COMPONENT = "comp"  # a directive that goes on up to its closing brace
_BLOCK = re.compile(r"\s*block\s*\(\s*`")  # goes on up to its closing brace, too
_OPENERS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


@dataclass(frozen=True)
class Piece:
    """One input unit: `kind` is "statements", "command" (`.list`) or "word" (`begin`)."""

    kind: str
    text: str
    name: str  # of the file, or <prompt>
    line: int  # of its first line, from 1
    column: int = 0  # characters before it on that line
    lines: tuple[str, ...] = ()  # whole lines, to show in messages

    def parse(self) -> tuple[ast.Node, ...]:
        """REQUIRES: statements.  Raises their syntax errors, with positions in the whole text."""
        assert self.kind == "statements"
        origins = [Origin(self.name, self.line + i, line) for i, line in enumerate(self.lines)]
        source = Source(self.name, " " * self.column + self.text, origins)
        return expand_includes(parse_source(source)).statements

    def span(self) -> Span:
        """Its first line, for errors without a position."""
        line = self.lines[0]
        source = Source(self.name, line, [Origin(self.name, self.line, line)])
        return Span(source, len(line) - len(line.lstrip()), len(line.rstrip()))

    def command(self) -> tuple[str, str]:
        """REQUIRES: a command.  Its name, and what follows."""
        found = _COMMAND.match(self.text)
        assert found is not None
        return found.group(1), found.group(2) or ""


@dataclass
class Typed:
    """Collects lines until they are complete.  With `apart`, each statement of a line is a separate piece.

    >>> typed = Typed("<prompt>")
    >>> typed.feed("reach(x, y) <-")
    []
    >>> [piece.text for piece in typed.feed("    edge(x, y).")]
    ['reach(x, y) <-\\n    edge(x, y).']
    """

    name: str
    apart: bool = False
    _pending: list[str] = field(default_factory=list)
    _line: int = 0  # lines fed so far

    @property
    def is_open(self) -> bool:
        """Whether there is an incomplete piece."""
        return bool(self._pending)

    def feed(self, line: str) -> list[Piece]:
        """The pieces that this line completes.  O(pending text)."""
        self._line += 1
        if not self._pending:
            if not _has_content(line):
                return []
            if piece := self._special(line):
                return [piece]
        self._pending.append(line)
        text = "\n".join(self._pending)
        return self._take(text) if is_complete(text) else []

    def finish(self) -> list[Piece]:
        """The incomplete rest, as a piece whose parsing reports what is missing."""
        return self._take("\n".join(self._pending)) if self._pending else []

    def drop(self) -> None:
        """Discard the incomplete piece."""
        self._pending = []

    def _special(self, line: str) -> Piece | None:
        command = _COMMAND.match(line)
        if command and command.group(1) not in DIRECTIVES:
            return Piece("command", line.strip(), self.name, self._line, lines=(line,))
        if word := _WORD.match(line):
            return Piece("word", word.group(1), self.name, self._line, lines=(line,))
        return None

    def _take(self, text: str) -> list[Piece]:
        lines = tuple(self._pending)
        first = self._line - len(lines) + 1
        self._pending = []
        if not self.apart:
            return [Piece("statements", text, self.name, first, 0, lines)]
        return [self._part(text, start, end, lines, first) for start, end in _statements(text)]

    def _part(self, text: str, start: int, end: int, lines: tuple[str, ...], first: int) -> Piece:
        above = text.count("\n", 0, start)
        column = start - (text.rfind("\n", 0, start) + 1)
        below = text.count("\n", 0, end)
        return Piece(
            "statements", text[start:end], self.name, first + above, column, lines[above : below + 1]
        )


def pieces(lines: Iterable[str], name: str) -> Iterator[Piece]:
    """The pieces of a whole text, one for each statement."""
    typed = Typed(name, apart=True)
    for line in lines:
        yield from typed.feed(line.rstrip("\r\n"))
    yield from typed.finish()


def is_complete(text: str) -> bool:
    """Whether a text ends where a statement, or a directive, may end.  O(length)."""
    last, depth, is_directive, is_component, count = "", 0, False, _BLOCK.match(text) is not None, 0
    for kind, word, _, _ in _tokens(text):
        if kind == "BAD_COMMENT":
            return False
        if kind == "BAD_STRING":
            return True  # a string ends on its line: let the parser report it
        is_directive = is_directive or (count == 1 and last == "." and word in DIRECTIVES)
        is_component = is_component or (count == 1 and last == "." and word == _COMPONENT)
        last, count = word, count + 1
        depth += _OPENERS.get(word, 0)
    if is_component:
        return depth <= 0 and last == "}"
    if is_directive:
        return last == "." or (depth <= 0 and last not in _CONNECTORS)
    return last == "." or count == 0


def _statements(text: str) -> list[tuple[int, int]]:
    """Where the statements of a complete text begin and end."""
    spans: list[tuple[int, int]] = []
    begin, depth, is_component = -1, 0, False
    for _, word, start, end in _tokens(text):
        if begin < 0:
            is_component = word == "." and _directive(text, end) == _COMPONENT
            begin, depth, is_component = start, 0, is_component or _BLOCK.match(text, start) is not None
        depth += _OPENERS.get(word, 0)
        if is_component:
            is_end = word == "}" and depth <= 0
        else:
            is_end = word == "." and not (start == begin and _directive(text, end) in DIRECTIVES)
        if is_end:
            spans.append((begin, end))
            begin = -1
    if begin >= 0:
        spans.append((begin, len(text.rstrip())))
    return spans


def _directive(text: str, behind_point: int) -> str:
    """The word after a `.`."""
    word = TOKEN.match(text, behind_point)
    return "" if word is None else word.group()


def _tokens(text: str) -> Iterator[tuple[str, str, int, int]]:
    """(kind, text, start, end) of the tokens, without blanks and comments; anything else is skipped."""
    position = 0
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            position += 1
            continue
        position = match.end()
        if match.lastgroup not in ("SPACE", "COMMENT"):
            yield match.lastgroup or "", match.group(), match.start(), match.end()


def _has_content(line: str) -> bool:
    return any(True for _ in _tokens(line)) or any(not c.isspace() for c in re.sub(r"//.*", "", line))
