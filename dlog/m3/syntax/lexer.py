"""Owns text -> tokens of M3, and the spelling of literals and names in each dialect.  Knows no grammar.

In a5 a name may contain `-`, so that `a-1` is a name and `a - 1` a difference.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lark import Token

from dlog.errors import Diagnostics
from dlog.language.source import Source, Span
from dlog.m3.syntax.ast import A5
from dlog.m3.syntax.dialects import DECIMAL_LITERAL, KEYWORDS

_SYMBOLS = {
    "(": "LPAR", ")": "RPAR", "[": "LSQB", "]": "RSQB", "{": "LBRACE", "}": "RBRACE", ",": "COMMA",
    ";": "SEMI", ":": "COLON", ":=": "SETVALUE", "+=": "INCREMENT", "^=": "LIFT", "+": "PLUS", "-": "MINUS",
    "*": "STAR", "/": "SLASH", "=": "EQ", "!=": "CMP", "<>": "CMP", "<": "LT", "<=": "CMP", ">": "GT",
    ">=": "CMP",
}  # fmt: skip

_TEXT = r"""
    (?P<space>\s+)
  | (?P<comment>--[^\n]*|//[^\n]*|/\*.*?\*/)
  | (?P<open_comment>/\*)
  | (?P<number>0[xXbBoO]\w+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?[A-Za-z_]*)
  | (?P<string>'[^'\n]*'|"[^"\n]*")
  | (?P<open_string>['"])
  | (?P<local><\s*(?i:local)\s*>)
  | (?P<name>%s)
  | (?P<symbol>:=|\+=|\^=|!=|<>|<=|>=|[-()\[\]{},;:+*/=<>])
  | (?P<other>.)
"""
_PATTERNS = {
    True: re.compile(_TEXT % r"[A-Za-z_][A-Za-z0-9_-]*", re.VERBOSE | re.DOTALL),
    False: re.compile(_TEXT % r"[A-Za-z_][A-Za-z0-9_]*", re.VERBOSE | re.DOTALL),
}


def tokenize(source: Source, dialect: str | None, diagnostics: Diagnostics) -> list[Token]:
    """The tokens of a text; with no dialect, names are read without `-`.  O(characters).

    What cannot be read is a token of kind BAD, after its error was reported.
    """
    tokens: list[Token] = []
    for match in _PATTERNS[dialect == A5].finditer(source.text):
        kind = match.lastgroup or ""
        if kind in ("space", "comment"):
            continue
        span = Span(source, match.start(), match.end())
        if kind in _UNREADABLE:
            diagnostics.error(_UNREADABLE[kind].format(match.group()), span, _HELP.get(match.group()))
            if kind == "open_comment":
                break
            kind = "bad"
        tokens.append(_token(kind, match.group(), span))
    return tokens


_UNREADABLE = {
    "open_comment": "unterminated comment",
    "open_string": "unterminated string",
    "other": "unexpected character `{}`",
}
_HELP = {
    "%": "there is no remainder in M3",
    "^": "a variable is bound by (x ^= ...)",
    "!": "not equal is written !=",
    "|": "conditions multiply: {a = 1} * {b = 2}",
    "&": "conditions multiply: {a = 1} * {b = 2}",
}


def _token(kind: str, text: str, span: Span) -> Token:
    if kind == "symbol":
        name = _SYMBOLS[text]
    elif kind == "name":
        name = text.upper() if text.upper() in KEYWORDS else "NAME"
    else:
        name = kind.upper()
    return Token(name, text, start_pos=span.start, end_pos=span.end)


# Literals


@dataclass(frozen=True)
class BadLiteral(Exception):
    message: str
    help: str | None = None


def number(text: str, dialect: str) -> tuple[str, int | float]:
    """(type, value) of a number as the dialect reads it.

    >>> number("1.5", "a5"), number("12L", "dbtoaster")
    (('float', 1.5), ('long', 12))
    """
    return _a5_number(text) if dialect == A5 else _dbtoaster_number(text)


def _a5_number(text: str) -> tuple[str, int | float]:
    if re.fullmatch(r"\d+|0[xX][0-9A-Fa-f]+|0[oO][0-7]+|0[bB][01]+", text):
        based = text[:2].lower() in ("0x", "0o", "0b")
        return "int", int(text, 0) if based else int(text)
    if re.fullmatch(r"\d+\.\d*(E[+-]?\d+)?|\d+E[+-]?\d+", text):
        return "float", _float(text)
    if re.fullmatch(r"\d+[lL]", text):
        raise BadLiteral(f"`{text}`: a5 has no longs", f"write {text[:-1]}")
    if re.fullmatch(r"\d+(\.\d*)?e[+-]?\d+", text):
        raise BadLiteral(f"`{text}`: a5 reads exponents with a capital E only", f"write {text.upper()}")
    if re.fullmatch(r"\d+(\.\d*)?[fF]", text):
        raise BadLiteral(f"`{text}`: a5 has one type of floats", f"write {text[:-1]}")
    raise BadLiteral(f"`{text}` is not a number")


def _dbtoaster_number(text: str) -> tuple[str, int | float]:
    if re.fullmatch(r"\d+", text):
        return "int", int(text)
    if re.fullmatch(r"\d+[lL]", text):
        return "long", int(text[:-1])
    if re.fullmatch(r"\d+\.\d*", text):
        return DECIMAL_LITERAL["dbtoaster"], _float(text)
    if re.fullmatch(r"\d+\.\d*[fF]", text):
        return "float", _float(text[:-1])
    if re.fullmatch(r"\d+(\.\d*)?[eE][+-]?\d+", text):
        raise BadLiteral(f"`{text}`: dbtoaster does not read exponents", f"write {plain_float(_float(text))}")
    if re.fullmatch(r"0[xXbBoO]\w+", text):
        raise BadLiteral(f"`{text}`: dbtoaster reads decimal numbers only")
    raise BadLiteral(f"`{text}` is not a number")


def _float(text: str) -> float:
    value = float(text)
    if value == float("inf"):
        raise BadLiteral(f"`{text}` is greater than every float")
    return value


def plain_float(value: float) -> str:
    """The shortest decimal text that is read as this float, without an exponent.

    >>> plain_float(1.5e20), plain_float(1e-7), plain_float(-2.0)
    ('150000000000000000000.0', '0.0000001', '-2.0')
    """
    text = format(value, "f") if value == int(value) else repr(value)
    if "e" not in text:
        return text if "." not in text or not text.endswith("000000") else text[: text.index(".")] + ".0"
    mantissa, exponent = text.split("e")
    sign, digits = ("-", mantissa[1:]) if mantissa.startswith("-") else ("", mantissa)
    whole, _, fraction = digits.partition(".")
    return f"{sign}0.{'0' * (-int(exponent) - 1)}{whole}{fraction}"
