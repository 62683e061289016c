"""Owns the error message for a statement that the grammar does not accept.

The common mistakes are a table of rules, tried in order; each examines the token that did not fit and reports
what is wrong, or passes.  Knows the tokens and what the grammar would have accepted, and nothing of meaning.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lark import Token

from dlog.errors import SourceError, did_you_mean
from dlog.language import foreign
from dlog.language.context import OPENERS, OPERAND_ENDS
from dlog.language.foreign import SIGN_CHARACTERS, SIGNS, WORDS, WORDS_BEFORE
from dlog.language.source import Source, Span
from dlog.language.vocabulary import AGGREGATES, DIRECTIVES, QUALIFIERS
from dlog.values import BUILTIN_TYPES

MISSING_END = "missing `.` at the end of the statement"


@dataclass(frozen=True)
class Situation:
    """A statement, the index of the token that did not fit (their number, at its end), what would have."""

    source: Source
    tokens: list[Token]
    index: int
    accepts: frozenset[str]

    @property
    def at_end(self) -> bool:
        return self.index == len(self.tokens)

    @property
    def token(self) -> Token:
        """REQUIRES: not at_end."""
        return self.tokens[self.index]

    @property
    def kind(self) -> str:
        return "" if self.at_end else self.token.type

    @property
    def previous(self) -> Token | None:
        return self.tokens[self.index - 1] if self.index > 0 else None

    @property
    def in_directive(self) -> bool:
        return self.tokens[0].type.startswith("D_")

    def span(self, token: Token) -> Span:
        return Span(self.source, token.start_pos or 0, token.end_pos or 0)

    def show(self, token: Token) -> str:
        text = self.span(token).text()
        if self.source.text.startswith("<-", token.start_pos or 0):  # `<-` that was taken for `<` and `-`
            text = "<-"
        return f"`{text}`" if len(text) <= 40 else f"`{text[:37]}...`"

    def begins_line(self, token: Token) -> bool:
        return not self.before_on_line(token).strip()

    def before_on_line(self, token: Token) -> str:
        start = token.start_pos or 0
        return self.source.text[self.source.text.rfind("\n", 0, start) + 1 : start]

    def error(self, message: str, where: Token | Span, help: str | None = None) -> SourceError:
        span = self.span(where) if isinstance(where, Token) else where
        return SourceError(message, span=span, help=help)


def syntax_error(situation: Situation) -> SourceError:
    """The first rule that applies gives the error."""
    for rule in _RULES:
        if error := rule(situation):
            return error
    token = situation.token
    help = _expectation(situation.accepts) if situation.index else _BEGINNINGS
    return situation.error(f"unexpected {situation.show(token)}", token, help)


def misses_end(situation: Situation) -> bool:
    """Whether a `.` is missing before the token, so that a new statement begins with it."""
    previous = situation.previous
    if situation.in_directive or "END" not in situation.accepts or previous is None:
        return False
    if previous.type in ("ARROW", "IMPLIES"):
        return False
    if situation.at_end:
        return True
    token, first = situation.token, situation.tokens[0]
    # A line that is indented more than the statement continues with it.
    indent = len(situation.before_on_line(token)) - len(situation.before_on_line(first))
    return situation.kind in ("NAME", "QUERY", "BANG") and situation.begins_line(token) and indent <= 0


def unknown_directive(name: str, span: Span) -> SourceError:
    close = foreign.DIRECTIVES.get(name.lower())
    close = close or next(iter(difflib.get_close_matches(name, sorted(DIRECTIVES), 1)), None)
    help = f"did you mean .{close}?" if close else None
    return SourceError(f"unknown directive .{name}", span=span, help=help)


# The rules


def _after_directive(s: Situation) -> SourceError | None:
    """`.decl p(x: number) inlin`: words after a directive are read as a statement."""
    first = s.tokens[0]
    before = s.before_on_line(first).lstrip()
    if s.in_directive or not before.startswith(".") or not (s.at_end or s.begins_line(s.token)):
        return None
    close = difflib.get_close_matches(str(first), sorted(QUALIFIERS), 1) if before.startswith(".decl") else []
    help = f"did you mean {close[0]}?" if close else None
    return s.error(f"unexpected {s.show(first)} after the directive", first, help)


_CLOSERS = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE"}
_CLOSING_SIGN = {"LPAR": ")", "LSQB": "]", "LBRACE": "}"}


def _brackets(s: Situation) -> SourceError | None:
    opened: list[int] = []
    for index, token in enumerate(s.tokens):
        if token.type in _CLOSERS:
            opened.append(index)
        elif OPENERS.get(token.type, 0) < 0:
            if not opened:
                return s.error(f"{s.show(token)} closes nothing", token) if s.index >= index else None
            opener = s.tokens[opened.pop()]
            if _CLOSERS[opener.type] != token.type:
                message = f"{s.show(token)} does not close {s.show(opener)}"
                return s.error(message, token, _opened_at(s, opener)) if s.index >= index else None
    if not opened or s.index <= opened[-1]:
        return None
    opener = s.tokens[opened[-1]]
    sign = f"`{_CLOSING_SIGN[opener.type]}`"
    help = f"write {sign} at the end" if s.at_end else f"is {sign} missing before {s.show(s.token)}?"
    return s.error(f"{s.show(opener)} is not closed", opener, help)


def _opened_at(s: Situation, opener: Token) -> str:
    span = s.span(opener)
    return f"{s.show(opener)} was opened at {span.line}:{span.column}"


def _missing_end(s: Situation) -> SourceError | None:
    if not misses_end(s):
        return None
    assert s.previous is not None
    end = s.previous.end_pos or 0
    return s.error(MISSING_END, Span(s.source, end, end + 1))


def _missing_end_of_delta(s: Situation) -> SourceError | None:
    """`+f[1] = 2` and below it `+f[2] = 3.`: the second sign is taken for an operator."""
    if s.tokens[0].type != "DELTA":
        return None
    for before, token in itertools.pairwise(s.tokens[: s.index + 1]):
        if token.type in ("PLUS", "MINUS", "CARET") and s.begins_line(token):
            end = before.end_pos or 0
            return s.error(MISSING_END, Span(s.source, end, end + 1))
    return None


def _unfinished(s: Situation) -> SourceError | None:
    if not s.at_end:
        return None
    assert s.previous is not None
    what = "directive" if s.in_directive else "statement"
    help = "statements end with `.`" if s.previous.type == "SEMICOLON" else _expectation(s.accepts)
    return s.error(f"the {what} is not finished", s.previous, help)


def _missing_mode(s: Situation) -> SourceError | None:
    """`.materialize p`"""
    if s.tokens[0].type != "D_MATERIALIZE" or s.previous is None or not s.at_end:
        return None
    if s.previous.type != "NAME":
        return None
    if s.previous in ("always", "changes", "on_read"):  # taken for a predicate
        what = "remove the comma" if "," in s.tokens else "name a predicate"
        return s.error(".materialize needs a mode", s.previous, f"{what} before {s.previous}")
    return s.error(".materialize needs a mode", s.previous, f"write .materialize {s.previous} on_read")


def _directive_end(s: Situation) -> SourceError | None:
    if s.kind == "END" and s.in_directive and "$END" in s.accepts:
        return s.error("a directive does not end with `.`", s.token, "remove the `.`")
    return None


_SEPARATORS = ("COMMA", "SEMICOLON")
_CLOSING = frozenset({"END", "RPAR", "RSQB", "RBRACE", "ARROW", "IMPLIES", "AGG_CLOSE", *_SEPARATORS})
_OPENING = frozenset({"LPAR", "LSQB", "LBRACE", "ARROW", "IMPLIES", "QUERY", "AGG_OPEN", "AGG_CLOSE"})


def _separators(s: Situation) -> SourceError | None:
    previous = s.previous
    if previous is not None and previous.type in _SEPARATORS and s.kind in _CLOSING:
        help = f"remove it, or write what comes between it and {s.show(s.token)}"
        return s.error(f"nothing follows this {s.show(previous)}", previous, help)
    if s.kind in _SEPARATORS and (previous is None or previous.type in _OPENING):
        return s.error(f"nothing comes before this {s.show(s.token)}", s.token, "remove it")
    return None


def _signs(s: Situation) -> SourceError | None:
    if s.kind == "BANG" and s.index + 1 < len(s.tokens) and s.tokens[s.index + 1].type == "EQ":
        return s.error("unexpected `!`", s.token, "did you mean `!=`?")
    text, start, end = s.source.text, s.token.start_pos or 0, s.token.end_pos or 0
    while start > 0 and text[start - 1] in SIGN_CHARACTERS and end - start < 4:
        start -= 1
    while end < len(text) and text[end] in SIGN_CHARACTERS and end - start < 4:
        end += 1
    meant = SIGNS.get(text[start:end])
    if text[start:end] == ":" and "ARROW" in s.accepts:
        meant = "`:-`"
    if meant is None:
        return None
    return s.error(f"unexpected `{text[start:end]}`", Span(s.source, start, end), f"did you mean {meant}?")


def _words(s: Situation) -> SourceError | None:
    """`not p(x)`, `x in y`: the word is the one before, or it is the one that does not fit."""
    previous = s.previous
    if previous is not None and previous.type == "NAME" and (help := WORDS_BEFORE.get(str(previous).lower())):
        return s.error(f"unexpected {s.show(previous)}", previous, help)
    if s.kind == "NAME" and (help := WORDS.get(str(s.token).lower())):
        return s.error(f"unexpected {s.show(s.token)}", s.token, help.replace("{}", s.show(s.token)))
    return None


def _comments(s: Situation) -> SourceError | None:
    first = s.tokens[0]
    text = s.source.text[first.start_pos or 0 : (first.start_pos or 0) + 2]
    if text != "--" and not (text[:1] in ("%", "/", "*") and s.index == 0):
        return None
    length = 2 if text == "--" else 1
    span = Span(s.source, first.start_pos or 0, (first.start_pos or 0) + length)
    return s.error(f"unexpected `{text[:length]}`", span, "comments begin with //")


def _aggregates(s: Situation) -> SourceError | None:
    if s.kind == "AGG_OPEN":
        return s.error("agg<<...>> is out of place", s.token, "write it directly after `<-` or `:-`")
    if s.kind == "EQ" and s.source.text.startswith("agg<", (s.tokens[max(0, s.index - 3)].start_pos or 0)):
        return s.error("unexpected `=`", s.token, "did you mean agg<<...>>?")
    previous = s.previous
    behind_name = previous is not None and previous.type == "NAME" and previous.value in AGGREGATES
    if behind_name and (s.kind == "LBRACE" or s.kind in _OPERAND_STARTS):
        help = "aggregates are written `count : { ... }` and `sum x : { ... }`"
        return s.error(f"unexpected {s.show(s.token)}", s.token, help)
    return None


def _foreign_aggregates(s: Situation) -> SourceError | None:
    """`stdev x : { ... }` and `count(distinct x)`."""
    previous = s.previous
    if previous is None or previous.type != "NAME" or s.kind != "NAME":
        return None
    if previous.lower() == "distinct":
        return s.error(f"unexpected {s.show(previous)}", previous, "count_distinct counts distinct values")
    if [token.type for token in s.tokens[s.index + 1 : s.index + 2]] != ["COLON"]:
        return None
    help = foreign.function_help(previous) or did_you_mean(previous, AGGREGATES)
    return s.error(f"unknown aggregate {previous}", previous, help)


def _chains(s: Situation) -> SourceError | None:
    """`1 < x < 3`."""
    if s.kind not in ("CMP", "EQ") or "COMMA" not in s.accepts:
        return None
    for token in reversed(s.tokens[: s.index]):
        if token.type in ("CMP", "EQ"):
            return s.error("comparisons cannot be chained", s.token, "write two, separated by `,`")
        if token.type in _SEPARATORS or token.type in _OPENING:
            return None
    return None


def _declarations(s: Situation) -> SourceError | None:
    previous = s.previous
    if s.tokens[0].type != "D_DECL" or previous is None or previous.type != "NAME":
        return None
    if s.accepts == {"COLON"}:
        swapped = previous.value in BUILTIN_TYPES and s.kind == "NAME"
        help = f"write `{s.token}: {previous}`" if swapped else f"write `{previous}: number`"
        return s.error(f"{s.show(previous)} has no type", previous, help)
    if "LPAR" in s.accepts and s.index <= 2:
        help = f"write `.decl {previous}(x: number)`"
        return s.error(f"the arguments of {previous} are missing", s.token, help)
    return None


def _missing_head(s: Situation) -> SourceError | None:
    if s.index or s.kind not in ("ARROW", "IMPLIES"):
        return None
    help = "a query is written `?- p(x).`" if s.kind == "ARROW" else None
    return s.error(f"nothing comes before {s.show(s.token)}", s.token, help)


def _second_arrow(s: Situation) -> SourceError | None:
    if s.kind == "ARROW" and any(t.type == "ARROW" for t in s.tokens[: s.index]):
        help = "does the statement before it end with `.`?"
        return s.error(f"a second {s.show(s.token)} in one statement", s.token, help)
    return None


_OPERAND_STARTS = frozenset(
    {"NAME", "WILDCARD", "INT", "FLOAT", "STRING", "BANG", "AGGREGATE", "AS", "NIL", "DOLLAR", "AT"}
)


_SINGLE = {"EQ": "`=`", "COLON": "`:`", "COMMA": "`,`", "LPAR": "`(`"}


def _missing_sign(s: Situation) -> SourceError | None:
    """Where only one thing can come next, or only one is likely."""
    previous = s.previous
    if len(s.accepts) == 1 and (sign := _SINGLE.get(next(iter(s.accepts)))):
        return s.error(f"missing {sign} before {s.show(s.token)}", s.token)
    if s.accepts == {"DELTA"}:
        help = "each fact of a list has its own `+`, `-` or `^`"
        return s.error(f"missing sign before {s.show(s.token)}", s.token, help)
    beside = previous is not None and previous.type in OPERAND_ENDS and s.kind in _OPERAND_STARTS
    if not beside or "COMMA" not in s.accepts:
        return None
    if previous is not None and previous.type == "RSQB" and "EQ" in s.accepts and s.kind != "BANG":
        return s.error(f"missing `=` before {s.show(s.token)}", s.token)
    sign = "`>>`" if "AGG_CLOSE" in s.accepts else "`,` or `.`" if "END" in s.accepts else "`,`"
    return s.error(f"missing {sign} before {s.show(s.token)}", s.token)


_RANGE = re.compile(r"([0-9]{1,18})\.\.([0-9]{1,18})", re.ASCII)


def _points(s: Situation) -> SourceError | None:
    """`1..5`, `p(.5)` and `p(5.)`: a point that was meant as part of a number."""
    if s.kind != "END":
        return None
    text, start, end = s.source.text, s.token.start_pos or 0, s.token.end_pos or 0
    for values in _RANGE.finditer(text, max(0, start - 20), end + 20):
        if values.start() < start < values.end():  # the second point, where the first could end a statement
            help = f"write x = range({values[1]}, {int(values[2]) + 1})"
            return s.error("unexpected `..`", Span(s.source, values.end(1), values.start(2)), help)
    if text[end : end + 1].isdigit() and "INT" in s.accepts:
        return s.error("a number does not begin with `.`", s.token, "write a digit before it, as in 0.5")
    if text[start - 1 : start].isdigit() and text[end : end + 1] in (")", ",", "]"):
        return s.error("a number does not end with `.`", s.token, "write a digit after it, as in 5.0")
    return None


_RULES: list[Callable[[Situation], SourceError | None]] = [
    _comments,
    _after_directive,
    _points,
    _brackets,
    _missing_end_of_delta,
    _missing_end,
    _missing_mode,
    _unfinished,  # after this rule there is always a token that does not fit
    _directive_end,
    _separators,
    _signs,
    _words,
    _aggregates,
    _foreign_aggregates,
    _chains,
    _declarations,
    _missing_head,
    _second_arrow,
    _missing_sign,
]
_BEGINNINGS = "expected a fact, a rule, a constraint, a query or a directive"

# Readable names of the tokens that may come next, most informative first.
_EXPECTATIONS = [
    ({"NAME", "INT", "STRING", "LPAR"}, "a term"),
    ({"END"}, "`.`"),
    ({"RPAR"}, "`)`"),
    ({"RSQB"}, "`]`"),
    ({"RBRACE"}, "`}`"),
    ({"AGG_CLOSE"}, "`>>`"),
    ({"COMMA"}, "`,`"),
    ({"ARROW"}, "`<-`"),
    ({"COLON"}, "`:`"),
    ({"LPAR"}, "`(`"),
    ({"LBRACE"}, "`{`"),
    ({"SUBTYPE"}, "`<:`"),
    ({"EQ"}, "`=`"),
    ({"NAME"}, "a name"),
    ({"STRING"}, "a string"),
    ({"INT"}, "a number"),
]


def _expectation(accepts: Iterable[str]) -> str | None:
    left, words = set(accepts), []
    for tokens, word in _EXPECTATIONS:
        if tokens <= left:
            left -= tokens
            words.append(word)
    if not words:
        return None
    return f"expected {words[0]}" if len(words) == 1 else f"expected {', '.join(words[:-1])} or {words[-1]}"
