"""Owns the tokens of a SQL file and its statements, with their positions.  Knows no clause and no
declaration.

The words are sqlglot's.  External functions, `[f: type](x)`, are not SQL: what is in the brackets becomes
one word, which sqlglot's parser reads as the name of a function, and is stored beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.errors import TokenError
from sqlglot.tokens import Token, Tokenizer, TokenType

from dlog.errors import SourceError, did_you_mean
from dlog.language.source import Source, Span
from dlog.m3.syntax.ast import TypeParameter, TypeRef

# Every spelling of a built-in type, and its one name.
TYPES = {
    "byte": "byte", "tinyint": "byte", "short": "short", "smallint": "short", "int": "int", "integer": "int",
    "long": "long", "bigint": "long", "float": "float", "real": "float", "double": "double",
    "decimal": "double", "numeric": "double", "char": "char", "varchar": "string", "string": "string",
    "text": "string", "date": "date",
}  # fmt: skip
_SIZED = {"char": "string", "varchar": "string", "decimal": "double", "numeric": "double"}


@dataclass(frozen=True)
class External:
    """`[name<parameters>: type]`, the head of a call of an external function."""

    name: str
    type: TypeRef
    parameters: tuple[int, ...]
    span: Span


@dataclass(frozen=True)
class Statement:
    """The tokens of one statement without its `;`, at least one."""

    source: Source
    tokens: tuple[Token, ...]

    def span(self, token: Token) -> Span:
        return Span(self.source, token.start, token.end + 1)

    @property
    def whole(self) -> Span:
        return Span(self.source, self.tokens[0].start, self.tokens[-1].end + 1)


def statements(source: Source) -> list[Statement]:
    """Split at each `;`.  O(characters)."""
    found: list[Statement] = []
    current: list[Token] = []
    for token in _tokens(source):
        if token.token_type == TokenType.SEMICOLON:
            if current:
                found.append(Statement(source, tuple(current)))
            current = []
        else:
            current.append(token)
    if current:
        found.append(Statement(source, tuple(current)))
    return found


def _tokens(source: Source) -> list[Token]:
    try:
        return Tokenizer().tokenize(source.text)
    except TokenError:
        raise _unreadable(source) from None


def _unreadable(source: Source) -> SourceError:
    """sqlglot does not say where it stopped: what it cannot read is a quote or a comment without an end."""
    text, at = source.text, 0
    ends = {"'": "'", '"': '"', "`": "`", "/*": "*/", "--": "\n"}
    while at < len(text):
        opener = next((o for o in ends if text.startswith(o, at)), None)
        if opener is None:
            at += 1
            continue
        end = text.find(ends[opener], at + len(opener))
        if end < 0 and opener != "--":
            what = "comment" if opener == "/*" else "string" if opener == "'" else "quoted name"
            span = Span(source, at, at + len(opener))
            return SourceError(f"unterminated {what}", span=span, help=f"close it with {ends[opener]}")
        at = len(text) if end < 0 else end + len(ends[opener])
    return SourceError("this is not SQL", span=Span(source, 0, 1))


class Cursor:
    """Goes through the tokens of a statement; an unexpected token is an error with its position."""

    def __init__(self, statement: Statement, custom_types: Sequence[str] = (), start: int = 0):
        self.statement, self.custom_types, self.index = statement, custom_types, start

    @property
    def token(self) -> Token | None:
        tokens = self.statement.tokens
        return tokens[self.index] if self.index < len(tokens) else None

    def span(self) -> Span:
        """Of the token ahead; at the end, the place after the last."""
        if self.token is not None:
            return self.statement.span(self.token)
        end = self.statement.tokens[-1].end + 1
        return Span(self.statement.source, end, end + 1)

    def error(self, expected: str, help: str | None = None) -> SourceError:
        found = f"`{self.span().text()}`" if self.token is not None else "the end of the statement"
        return SourceError(f"expected {expected}, found {found}", span=self.span(), help=help)

    def at(self, word: str) -> bool:
        return self.token is not None and self.span().text().upper() == word

    def take(self) -> Token:
        """REQUIRES: not at the end."""
        assert self.token is not None
        token = self.token
        self.index += 1
        return token

    def accept(self, word: str) -> bool:
        found = self.at(word)
        self.index += found
        return found

    def expect(self, *words: str, help: str | None = None) -> None:
        for word in words:
            if not self.accept(word):
                raise self.error(word if word.isalpha() else f"`{word}`", help)

    def name(self, what: str) -> Token:
        text = self.token.text if self.token is not None else ""
        if not (text[:1].isalpha() or text[:1] == "_") or self._is(TokenType.STRING):
            raise self.error(what)
        return self.take()

    def text(self, what: str) -> str:
        """A string, in either kind of quotes or, as in F-IVM, in both."""
        if not (self._is(TokenType.STRING) or self._is(TokenType.IDENTIFIER)):
            raise self.error(what, help="write it in quotes")
        text = self.take().text
        quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
        return text[1:-1] if quoted else text

    def number(self, what: str) -> int:
        if not self._is(TokenType.NUMBER) or not self.span().text().isdigit():
            raise self.error(what)
        return int(self.take().text)

    def end(self, help: str | None = None) -> None:
        if self.token is not None:
            raise self.error("`;`", help)

    def _is(self, kind: TokenType) -> bool:
        return self.token is not None and self.token.token_type == kind

    # Types

    def type(self) -> TypeRef:
        """`int`, `char(10)`, or a type of the file: `Ring`, `RingCofactor<1, double, 10>`."""
        span = self.span()
        name = self.name("a type").text
        if name.lower() in TYPES:
            return self._built_in(name.lower(), span)
        own = next((known for known in self.custom_types if known.lower() == name.lower()), None)
        if own is None:
            advice = f"CREATE TYPE {name} FROM FILE '...'; or one of {', '.join(sorted(set(TYPES.values())))}"
            known = self.custom_types if name[0].isupper() else [*TYPES, *self.custom_types]
            help = did_you_mean(name, known, advice)
            raise SourceError(f"unknown type {name}", span=span, help=help)
        return TypeRef(own, self._parameters(), span=span)

    def _built_in(self, name: str, span: Span) -> TypeRef:
        if name in _SIZED and self.accept("("):
            self.number("a length")
            if self.accept(","):
                self.number("a number of digits")
            self.expect(")")
            return TypeRef(_SIZED[name], span=span)
        return TypeRef(TYPES[name], span=span)

    def _parameters(self) -> tuple[TypeParameter, ...]:
        if not self.accept("<"):
            return ()
        found = [self._parameter()]
        while self.accept(","):
            found.append(self._parameter())
        self.expect(">")
        return tuple(found)

    def _parameter(self) -> TypeParameter:
        if self.accept("["):
            listed = [self._parameter()]
            while self.accept(","):
                listed.append(self._parameter())
            self.expect("]")
            return tuple(listed)
        return self.number("a number") if self._is(TokenType.NUMBER) else self.type()


# External functions


def without_externals(
    statement: Statement, custom_types: Sequence[str]
) -> tuple[list[Token], dict[int, External]]:
    """Tokens in which each `[f: type]` is one word, and the functions by the position where the word
    begins.
    """
    tokens: list[Token] = []
    externals: dict[int, External] = {}
    cursor = Cursor(statement, custom_types)
    while cursor.token is not None:
        token = cursor.token
        if token.token_type != TokenType.L_BRACKET:
            tokens.append(cursor.take())
            continue
        external = _external(cursor)
        externals[token.start] = external
        end = external.span.end
        word = f"external_{token.start}"
        tokens.append(Token(TokenType.VAR, word, token.line, token.col, token.start, end - 1))
    return tokens, externals


_EXTERNAL = "an external function is written [f: type](x)"


def _external(cursor: Cursor) -> External:
    start = cursor.span()
    cursor.expect("[")
    name = "/" if cursor.accept("/") else cursor.name("the name of an external function").text
    parameters: list[int] = []
    if cursor.accept("<"):
        parameters.append(cursor.number("a number"))
        while cursor.accept(","):
            parameters.append(cursor.number("a number"))
        cursor.expect(">")
    cursor.expect(":", help=_EXTERNAL)
    type_ = cursor.type()
    end = cursor.span()
    cursor.expect("]", help=_EXTERNAL)
    if not cursor.at("("):
        raise cursor.error("`(`", _EXTERNAL)
    return External(name, type_, tuple(parameters), start.to(end))
