"""Owns tokens: text -> statements of tokens that the LALR grammar can take one by one.

What a token is may depend on its position; `context.settle` decides that, one statement at a time.  Runs
of plain facts become one FACTS token each: a regular expression reads a fact in a few microseconds, the
grammar in about a hundred.

A statement with a token that could not be read is reported once and not parsed, so that one mistake gives one
error.  Everything here is O(length of the text): no pattern backtracks, and no step looks back over more than
the blanks before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lark import Token

from dlog.errors import Diagnostics, SourceError
from dlog.language import context
from dlog.language.source import Source, Span
from dlog.language.vocabulary import (
    AGGREGATES,
    BLOCK,
    DIRECTIVE,
    DIRECTIVE_TOKENS,
    DIRECTIVES,
    EXPONENT,
    EXPONENT_HELP,
    FACT,
    FUNCTOR_WORDS,
    MAX_DIGITS,
    MAX_INTEGER,
    NOT_PREDICATES,
    NOT_TOKENS,
    NUMBER_HELP,
    NUMBER_TAIL,
    QUALIFIERS,
    STRAY_HELP,
    SYMBOLS,
    TOKEN,
    Row,
    fact_row,
)

__all__ = ["AGGREGATES", "FactRun", "Row", "Tokens", "statement_end", "tokenize"]


@dataclass
class FactRun:
    """The value of a FACTS token: consecutive plain facts of one predicate."""

    predicate: str
    functional: bool
    rows: list[Row] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)


@dataclass
class Tokens:
    """`statements` are lists of tokens that end with END or before a directive; comments are separate."""

    statements: list[list[Token]]
    comments: list[tuple[int, str]]


def tokenize(source: Source, diagnostics: Diagnostics, start: int = 0, stop: int | None = None) -> Tokens:
    """All tokens of a text, context resolved.  Unreadable statements are reported and left out."""
    scanner = _Scanner(source, diagnostics, start, len(source.text) if stop is None else stop)
    scanner.run()
    for statement in scanner.statements:
        context.settle(statement)
    return Tokens(scanner.statements, scanner.comments)


def statement_end(text: str, start: int) -> int:
    """The position after the `.` of the fact that begins at `start`."""
    if fact := FACT.match(text, start):
        return fact.end(5)
    while match := TOKEN.match(text, start):
        start = match.end()
        if match.group() == ".":
            break
    return start


MAX_ERRORS = 100  # further errors of the same file would not help anyone
TOO_MANY_ERRORS = "too many errors: stopped reading"


class _Scanner:
    """Cuts text into raw tokens and statements."""

    def __init__(self, source: Source, diagnostics: Diagnostics, start: int, stop: int):
        self.source = source
        self.text = source.text
        self.diagnostics = diagnostics
        self.position, self.stop = start, stop
        self.current: list[Token] = []  # the statement that is being read
        self.depth = 0  # how many of its brackets are open
        self.broken = False  # whether it has a token that could not be read
        self.statements: list[list[Token]] = []
        self.comments: list[tuple[int, str]] = []
        self.word_behind: tuple[int, re.Match[str] | None] = (0, None)  # see next_word

    def run(self) -> None:
        text, stop = self.text, self.stop
        while self.position < stop and not self.too_many_errors():
            if not self.current and not self.broken:
                fact = FACT.match(text, self.position, stop)
                if fact and fact.group(1) not in NOT_PREDICATES:
                    self.position = self.facts(fact)
                    continue
            match = TOKEN.match(text, self.position, stop)
            self.position = self.token(match) if match else self.stray(self.position)
        self.end_statement()

    def too_many_errors(self) -> bool:
        if len(self.diagnostics.errors) < MAX_ERRORS:
            return False
        self.error(self.position, self.position + 1, TOO_MANY_ERRORS)
        self.broken = True
        return True

    def end_statement(self) -> None:
        if self.current and not self.broken:
            self.statements.append(self.current)
        self.current, self.depth, self.broken = [], 0, False

    def token(self, match: re.Match[str]) -> int:
        """Takes one match; returns where to continue."""
        kind, start, end = match.lastgroup, match.start(), match.end()
        if kind == "SPACE":
            if self.in_directive() and "\n" in match.group() and self.directive_ends(end):
                self.end_statement()
        elif kind == "COMMENT":
            self.comments.append((start, match.group()))
        elif kind == "SYMBOL":
            return self.symbol(match)
        elif kind in ("INT", "UNSIGNED", "IPV4", "FLOAT"):
            return self.number(match)
        elif kind in _SPECIAL:
            return _SPECIAL[kind](self, match)
        else:
            if kind == "NAME" and self.directive_is_over(match):
                self.end_statement()
            self.add(kind or "", match.group(), start, end)
        return end

    def number(self, match: re.Match[str]) -> int:
        text, start, end = match.group(), match.start(), match.end()
        tail = NUMBER_TAIL.match(self.text, end, self.stop)
        if tail:
            text = self.text[start : tail.end()]
            help = EXPONENT_HELP if EXPONENT.fullmatch(text) else NUMBER_HELP
            self.error(start, tail.end(), f"bad literal {_short(text)}", help=help)
            self.add("INT", ("int", 0), start, tail.end())
            return tail.end()
        if match.lastgroup == "IPV4":
            self.add("INT", ("int", self.address(match)), start, end)
        elif match.lastgroup == "FLOAT":
            self.add("FLOAT", ("float", text), start, end)
        else:
            kind = "unsigned" if match.group("UNSIGNED") else "int"
            self.add("INT", (kind, self.integer(match)), start, end)
        return end

    def address(self, match: re.Match[str]) -> int:
        """An IPv4 address is a number."""
        parts = [int(p) if len(p) <= 9 else 256 for p in match.group().split(".")]
        if max(parts) > 255:
            help = "each part of an address is at most 255"
            self.error(match.start(), match.end(), f"bad literal {_short(match.group())}", help=help)
        return int.from_bytes(bytes(p & 255 for p in parts), "big")

    def integer(self, match: re.Match[str]) -> int:
        digits = match.group("INT")
        base = {"0x": 16, "0b": 2}.get(digits[:2].lower(), 10)
        value = int(digits, base) if len(digits) <= MAX_DIGITS else MAX_INTEGER + 1
        if value <= MAX_INTEGER:
            return value
        help = "integers have 64 bits: from -9223372036854775808 to 9223372036854775807"
        self.error(match.start(), match.end(), "the number is out of range", help=help)
        return 0

    def symbol(self, match: re.Match[str]) -> int:
        text, start, end = match.group(), match.start(), match.end()
        if text == ".":
            directive = DIRECTIVE.match(self.text, start, self.stop)
            if directive and self.is_directive(directive):
                return self.directive(directive)
        kind = SYMBOLS[text]
        if kind == "RBRACE" and self.depth == 0 and (not self.current or self.in_directive()):
            self.end_statement()
            self.add("D_COMP_END", text, start, end)
            self.end_statement()
            return end
        self.depth += context.OPENERS.get(kind, 0)
        self.add(kind, text, start, end)
        if text == "." or (kind == "LBRACE" and self.opens_block()):
            self.end_statement()
        return end

    def opens_block(self) -> bool:
        """Whether the `{` just read begins the contents of a component, or of ``block(`name)``."""
        first = self.current[0]
        kinds = [token.type for token in self.current[1:3]]
        if first.value == BLOCK and kinds == ["LPAR", "BACKTICK"] and self.current[-2].type == "RPAR":
            first.type = "D_BLOCK"
        return first.type in ("D_COMP", "D_BLOCK")

    # Directives

    def in_directive(self) -> bool:
        return bool(self.current) and self.current[0].type.startswith("D_")

    def is_directive(self, match: re.Match[str]) -> bool:
        """A directive begins a line; a known one may also follow a complete statement on its line."""
        begins_line, in_directive = self.begins_line(match.start()), self.in_directive()
        if match.group(1) not in DIRECTIVES:
            return begins_line and (in_directive or not self.current)
        after = self.text[match.end() : match.end() + 1]
        return begins_line or not self.current or (in_directive and after in (" ", "\t", "\n", ""))

    def begins_line(self, position: int) -> bool:
        while position > 0 and self.text[position - 1] in " \t\f\v":
            position -= 1
        return position == 0 or self.text[position - 1] == "\n"

    def directive_ends(self, position: int) -> bool:
        """At a line end: whether the directive before it is complete, so that a statement can begin."""
        if self.broken:
            return True
        if self.depth > 0 or self.current[-1].type in _CONNECTORS or self.current[0].type == "D_COMP":
            return False
        word = self.next_word(position)
        if word is None:
            return True
        if self.current[0].type == "D_DECL":
            needs_arguments = not any(t.type == "LPAR" for t in self.current)
            if self.qualifier(word) or (word.group() == "(" and needs_arguments):
                return False
        if self.current[0].type == "D_FUNCTOR" and (self.functor_word(word) or word.group() == ":"):
            return False
        return word.group() not in _CONTINUES

    def next_word(self, position: int) -> re.Match[str] | None:
        """The token after blanks and comments.  Cached, since a run of comments asks once for each."""
        start, word = self.word_behind
        if word is not None and start <= position <= word.start():
            return word
        word = TOKEN.match(self.text, position, self.stop)
        while word and word.lastgroup in ("SPACE", "COMMENT"):
            word = TOKEN.match(self.text, word.end(), self.stop)
        self.word_behind = (position, word)
        return word

    def directive_is_over(self, word: re.Match[str]) -> bool:
        """Whether a name on the line of a directive begins a statement after it."""
        if not self.in_directive() or self.depth > 0 or self.current[-1].type not in _COMPLETE:
            return False
        if self.current[0].type == "D_MATERIALIZE":  # over after its mode, a name behind a name
            return [token.type for token in self.current[-2:]] == ["NAME", "NAME"]
        if self.current[0].type == "D_COMP":
            return False
        if self.current[0].type == "D_FUNCTOR":
            return not self.functor_word(word)
        if self.current[0].type != "D_DECL":
            return True
        return not self.qualifier(word) and any(t.type == "LPAR" for t in self.current)

    def qualifier(self, word: re.Match[str]) -> bool:
        follows = self.text[word.end() : word.end() + 1]
        return word.group() in QUALIFIERS and follows not in ("(", "[")

    def functor_word(self, word: re.Match[str]) -> bool:
        follows = self.text[word.end() : word.end() + 1]
        return word.group() in FUNCTOR_WORDS and follows not in ("(", "[")

    def directive(self, match: re.Match[str]) -> int:
        name, start, end = match.group(1), match.start(), match.end()
        self.end_statement()
        self.add(DIRECTIVE_TOKENS.get(name, "D_UNKNOWN"), name, start, end)
        return end

    # Facts and tokens that cannot be read

    def facts(self, match: re.Match[str]) -> int:
        """Takes plain facts of one predicate as long as they follow each other; returns where to continue."""
        name, functional = match.group(1), match.group(4) is not None
        token = self.fact_run(name, functional, match.start())
        run: FactRun = token.value
        while True:
            _, args, keys, value, _ = match.groups()
            run.rows.append(fact_row((f"{keys},{value}" if keys else value) if functional else args or ""))
            run.offsets.append(match.start())
            follower = FACT.match(self.text, match.end(), self.stop)
            if not follower or follower.group(1) != name or (follower.group(4) is not None) != functional:
                token.end_pos = match.end(5)
                return match.end()
            match = follower

    def fact_run(self, name: str, functional: bool, start: int) -> Token:
        """The run just before, if it has the same predicate, or a new one."""
        if self.statements and self.statements[-1][0].type == "FACTS":
            token = self.statements[-1][0]
            run: FactRun = token.value
            if (run.predicate, run.functional) == (name, functional):
                return token
        token = Token("FACTS", FactRun(name, functional), start_pos=start, end_pos=start)
        self.statements.append([token])
        return token

    def stray(self, start: int) -> int:
        """A character that begins no token; one error per statement is enough."""
        match = NOT_TOKENS.match(self.text, start, self.stop)
        assert match is not None
        end = match.end()
        if not self.broken:
            if self.text[start].isalpha():  # part of a name with letters beyond ASCII: show all of it
                start, end = self.word_around(start)
            message, help = _stray_message(self.text[start:end])
            if self.text[start] == "?" and not self.current:
                help = "a query begins with `?-`"
            self.error(start, end, message, help)
        self.broken = True
        return end

    def word_around(self, position: int) -> tuple[int, int]:
        start, end = position, position
        while start > 0 and (self.text[start - 1].isalnum() or self.text[start - 1] == "_"):
            start -= 1
        while end < self.stop and (self.text[end].isalnum() or self.text[end] == "_"):
            end += 1
        return start, end

    def bad_string(self, match: re.Match[str]) -> int:
        stop = self.line_end(match.start())
        if not self.broken:
            self.error(match.start(), stop, "unterminated string", 'close it with "')
        self.broken = True
        if self.text[stop - 1] == ".":  # most likely the statement ends where its line does
            self.end_statement()
        return stop

    def bad_comment(self, match: re.Match[str]) -> int:
        self.error(match.start(), match.end(), "unterminated comment", help="close it with */")
        self.broken = True
        return self.stop

    def annotation(self, match: re.Match[str]) -> int:
        """`@[...]`: a hint without effect, stored with the comments."""
        position, depth = match.end(), 1
        while depth and position < self.stop:
            text, position = self.skim(position)
            depth += {"[": 1, "]": -1}.get(text, 0)
        if depth:
            self.error(match.start(), match.end(), "unterminated annotation", help="close it with ]")
            self.broken = True
        else:
            self.comments.append((match.start(), self.text[match.start() : position]))
        return position

    def choice(self, match: re.Match[str]) -> int:
        """`choice-domain` is one word in a declaration; elsewhere it is a difference."""
        if self.current and self.current[0].type == "D_DECL":
            self.add("CHOICE", match.group(), match.start(), match.end())
            return match.end()
        end = match.start() + len("choice")
        self.add("NAME", "choice", match.start(), end)
        return end

    def skim(self, position: int) -> tuple[str, int]:
        """The text of the next token and where it ends, for skipping; nothing is reported."""
        match = TOKEN.match(self.text, position, self.stop)
        if match is None:
            return "", position + 1
        return match.group(), self.stop if match.lastgroup == "BAD_COMMENT" else match.end()

    def line_end(self, position: int) -> int:
        stop = self.text.find("\n", position, self.stop)
        return stop if stop >= 0 else self.stop

    def add(self, kind: str, value: object, start: int, end: int) -> None:
        self.current.append(Token(kind, value, start_pos=start, end_pos=end))

    def error(self, start: int, end: int, message: str, help: str | None = None) -> None:
        self.diagnostics.add(SourceError(message, span=Span(self.source, start, end), help=help))


_SPECIAL = {
    "BAD_COMMENT": _Scanner.bad_comment,
    "BAD_STRING": _Scanner.bad_string,
    "ANNOTATION": _Scanner.annotation,
    "CHOICE": _Scanner.choice,
}
# What a directive cannot end with, and what cannot begin the statement after it.
_CONNECTORS = frozenset({"COMMA", "BAR", "EQ", "SUBTYPE", "COLON"})
_CONTINUES = frozenset({",", "|", "=", "<:", "choice-domain"})
# What a directive can end with.
_COMPLETE = frozenset({"NAME", "STRING", "RPAR", "RSQB", "RBRACE", "D_ONCE"})


def _stray_message(text: str) -> tuple[str, str | None]:
    if text[0].isalpha() or text[0] == "_":
        return f"unexpected {_show(text)}", "names have the letters A to Z, digits, _ and ?"
    return f"unexpected character {_show(text[0])}", STRAY_HELP.get(text[0])


def _show(text: str) -> str:
    return f"`{_short(text)}`" if text.isprintable() else f"U+{ord(text[0]):04X}"


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
