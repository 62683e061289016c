"""Owns the error messages for M3 that the grammar does not accept.  Knows tokens, and nothing of meaning."""

from __future__ import annotations

from dataclasses import dataclass

from lark import Token

from dlog.errors import SourceError
from dlog.language.source import Source, Span

_BEGINNINGS = "a statement begins with CREATE, DECLARE or ON"
_CLOSERS = {"LPAR": ("RPAR", "("), "LSQB": ("RSQB", "["), "LBRACE": ("RBRACE", "{")}
_NAMES = {
    "RPAR": "`)`", "RSQB": "`]`", "RBRACE": "`}`", "LPAR": "`(`", "LSQB": "`[`", "LBRACE": "`{`",
    "COMMA": "`,`", "SEMI": "`;`", "COLON": "`:`", "SETVALUE": "`:=`", "INCREMENT": "`+=`",
    "STRING": "a string", "NAME": "a name", "NUMBER": "a number", "LIFT": "`^=`", "GT": "`>`",
}  # fmt: skip
_OPERAND = frozenset(("NUMBER", "STRING", "LPAR", "AGGSUM"))
_SAID_BY_OTHERS = frozenset((
    "PLUS", "MINUS", "STAR", "LOCAL", "TYPE", "STREAM", "TABLE", "FROM", "FILE", "SOCKET", "LINE",
    "DELIMITED", "FIXEDWIDTH", "WITH", "PARAMETER", "SCHEMA", "MAP", "QUERY", "PARTIAL", "INITIALIZED",
    "BATCH", "UPDATE", "OF", "SYSTEM", "READY",
))  # fmt: skip


@dataclass(frozen=True)
class Situation:
    """A statement, the index of the token that did not fit (their number, at its end), what would have."""

    source: Source
    tokens: list[Token]
    index: int
    accepts: frozenset[str]

    @property
    def token(self) -> Token | None:
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    @property
    def previous(self) -> Token | None:
        return self.tokens[self.index - 1] if self.index else None

    def span(self, token: Token) -> Span:
        return Span(self.source, token.start_pos or 0, token.end_pos or 0)

    def after_previous(self) -> Span:
        end = self.tokens[self.index - 1].end_pos or 0
        return Span(self.source, end, end + 1)


def syntax_error(s: Situation) -> SourceError:
    """The first rule that applies gives the error."""
    for rule in (
        _mismatched, _unfinished, _missing_end, _comparison, _one_pair_of_brackets, _assignment, _no_file,
    ):  # fmt: skip
        if error := rule(s):
            return error
    assert s.token is not None
    help = _expected(s.accepts) if s.index else _BEGINNINGS
    return SourceError(f"unexpected `{s.token}`", span=s.span(s.token), help=help)


def _mismatched(s: Situation) -> SourceError | None:
    """A bracket that closes another kind, or nothing."""
    if s.token is None or s.token.type not in ("RPAR", "RSQB", "RBRACE"):
        return None
    open_ = _innermost_open(s)
    if open_ is None:
        return SourceError(f"`{s.token}` closes nothing", span=s.span(s.token))
    closer, text = _CLOSERS[open_.type]
    if closer == s.token.type:
        return None
    line = s.span(open_).line
    message = f"`{s.token}` does not close `{text}` of line {line}"
    return SourceError(message, span=s.span(s.token), help=f"expected {_NAMES[closer]}")


def _innermost_open(s: Situation) -> Token | None:
    opened: list[Token] = []
    for token in s.tokens[: s.index]:
        if token.type in _CLOSERS:
            opened.append(token)
        elif opened and token.type == _CLOSERS[opened[-1].type][0]:
            opened.pop()
    return opened[-1] if opened else None


def _unfinished(s: Situation) -> SourceError | None:
    open_ = _innermost_open(s)
    cut = s.token is not None and s.token.type == "SEMI" and open_ is not None and open_.type != "LBRACE"
    if s.token is not None and not cut:
        return None
    if open_ is not None:
        return SourceError(f"`{open_}` is not closed", span=s.span(open_))
    if "SEMI" in s.accepts:
        return SourceError("missing `;` at the end of the statement", span=s.after_previous())
    return SourceError("the statement is not finished", span=s.after_previous(), help=_expected(s.accepts))


def _missing_end(s: Situation) -> SourceError | None:
    """A name at the start of a line, where `;` would have been right."""
    if "SEMI" not in s.accepts or s.token is None or s.token.type not in ("NAME", "IF", "RBRACE"):
        return None
    return SourceError("missing `;` at the end of the statement", span=s.after_previous())


def _comparison(s: Situation) -> SourceError | None:
    if s.token is None or s.token.type not in ("EQ", "CMP", "LT", "GT", "IN"):
        return None
    if not s.accepts & {"STAR", "SEMI", "RPAR"} or "INCREMENT" in s.accepts:
        return None
    help = "write {a < b}; in sums and products it counts as 1 or 0"
    return SourceError("a comparison is written in braces", span=s.span(s.token), help=help)


def _one_pair_of_brackets(s: Situation) -> SourceError | None:
    if s.previous is None or s.previous.type != "RSQB" or s.accepts != {"LSQB"}:
        return None
    help = "input variables go into the first, keys into the second: M[][k]"
    return SourceError("a map has two pairs of brackets", span=s.after_previous(), help=help)


def _assignment(s: Situation) -> SourceError | None:
    if s.token is None or s.token.type not in ("EQ", "MINUS") or "INCREMENT" not in s.accepts:
        return None
    return SourceError(f"unexpected `{s.token}`", span=s.span(s.token), help="write `+=` or `:=`")


def _no_file(s: Situation) -> SourceError | None:
    """A source that is not a file of lines."""
    if s.token is None or s.token.type not in ("SOCKET", "FIXEDWIDTH"):
        return None
    help = "write FROM FILE '..' LINE DELIMITED CSV, or leave FROM out and pass the rows in Python"
    what = "a socket" if s.token.type == "SOCKET" else "a file of rows of fixed width"
    return SourceError(f"a source cannot be {what}", span=s.span(s.token), help=help)


def _expected(accepts: frozenset[str]) -> str | None:
    """The tokens that would fit, as text."""
    words = []
    if accepts >= _OPERAND:
        words.append("an expression")
        accepts = accepts - _OPERAND - {"NAME", "LSQB", "LBRACE", "EXISTS", "DOMAIN", "DATE"}
    elif "NAME" not in accepts:
        words += sorted(accepts & _SAID_BY_OTHERS - {"PLUS", "MINUS", "STAR", "LOCAL"})
    words += [_NAMES[kind] for kind in sorted(accepts) if kind in _NAMES]
    if not words:
        return None
    return "expected " + (words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1])
