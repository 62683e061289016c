"""Owns the vocabulary: patterns of tokens and facts, words, signs.  Tables, which `lexer` uses."""

from __future__ import annotations

import re

from dlog.aggregates import AGGREGATES as AGGREGATES
from dlog.aggregates import COFACTOR as COFACTOR

QUALIFIERS = frozenset(
    {"overridable", "inline", "no_inline", "magic", "no_magic", "brie", "btree", "btree_delete", "eqrel"}
    | {"input", "output", "printsize"}
)
WORD_OPERATORS = frozenset({"lor", "lxor", "land", "bor", "bxor", "band", "bshl", "bshr", "bshru"})
WORD_PREFIXES = frozenset({"bnot", "lnot"})
AUTOINC = "autoinc"  # a number for each assignment of a rule's body; also written $
# Words that are neither variables nor predicates in term position.
KEYWORDS = frozenset({"_", "as", "bnot", "false", "lnot", "nil", "true", "__FILE__", "__LINE__"})

IO_DIRECTIVES = frozenset({"input", "output", "printsize", "limitsize", "table", "stream"})
DIRECTIVE_TOKENS = {
    "decl": "D_DECL",
    "type": "D_TYPE",
    "number_type": "D_OLD_TYPE",
    "symbol_type": "D_OLD_TYPE",
    "materialize": "D_MATERIALIZE",
    "pragma": "D_PRAGMA",
    "plan": "D_PLAN",
    "include": "D_INCLUDE",
    "once": "D_ONCE",
    "comp": "D_COMP",
    "init": "D_INIT",
    "override": "D_OVERRIDE",
    "functor": "D_FUNCTOR",
    **dict.fromkeys(IO_DIRECTIVES, "D_IO"),
}
BLOCK = "block"  # ``block(`name) {``
DIRECTIVES = frozenset(DIRECTIVE_TOKENS)
FUNCTOR_WORDS = frozenset({"stateful", "aggregate"})  # after the type of a functor's result

SYMBOLS = {
    ":-": "ARROW", "<-": "ARROW", "->": "IMPLIES", "?-": "QUERY", ">>": "AGG_CLOSE",
    "<=": "CMP", ">=": "CMP", "!=": "CMP", "=": "EQ", "<": "CMP", ">": "CMP", "<:": "SUBTYPE",
    ":": "COLON", ",": "COMMA", ";": "SEMICOLON", ".": "END", "(": "LPAR", ")": "RPAR", "[": "LSQB",
    "]": "RSQB", "{": "LBRACE", "}": "RBRACE", "+": "PLUS", "-": "MINUS", "*": "STAR", "/": "STAR",
    "%": "STAR", "^": "CARET", "!": "BANG", "|": "BAR", "@": "AT", "$": "DOLLAR", "`": "BACKTICK",
}  # fmt: skip

# Quantifiers are possessive (`*+`), so that a text which does not match fails without backtracking.  Those of
# groups that can fail halfway are written as atomic groups (`(?>(?:...)*)`), which is the same: Python before
# 3.11.5 continues after the half of a possessive one that did match.
_WORD = r"\?*+[A-Za-z_][?A-Za-z_0-9]*+"
_NAME = rf"{_WORD}(?>(?:\.{_WORD})*)"
TOKEN = re.compile(
    rf"""
    (?P<SPACE>[ \t\n\r\f\v]++)
  | (?P<COMMENT>//[^\n]*+|/\*.*?\*/|\A\#![^\n]*+)
  | (?P<BAD_COMMENT>/\*)
  | (?P<ANNOTATION>@!?\[)
  | (?P<STRING>"[^"\\\n]*+(?>(?:\\[^\n][^"\\\n]*+)*)")
  | (?P<BAD_STRING>")
  | (?P<IPV4>[0-9]++\.[0-9]++\.[0-9]++\.[0-9]++)
  | (?P<FLOAT>[0-9]++\.[0-9]++(?>(?:[eE][+-]?[0-9]++)?))
  | (?P<INT>0[xX][0-9a-fA-F]++|0[bB][01]++|[0-9]++)(?P<UNSIGNED>u)?+
  | (?P<AGG_OPEN>agg\s*+<<)
  | (?P<SEQ_OPEN>(?:seq|list)\s*+<<)
  | (?P<CHOICE>choice-domain\b)
  | (?P<NAME>{_NAME}(?>(?:@[A-Za-z]++)?))
  | (?P<SYMBOL>:-|<-|->|\?-|>>|<=|>=|!=|<:|[=<>:,;.()\[\]{{}}+\-*/%^!|@$`])
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
NUMBER_TAIL = re.compile(r"(?>(?:[A-Za-z_0-9]|\.(?=[0-9]))+)")

# A plain fact and the blanks after it: name, arguments or keys and value, end.
# Numbers of at most 19 digits, so that all of them fit in 64 bits without a check.
_CONSTANT = r'(?:-?[0-9]{1,19}+(?>(?:\.[0-9]++)?)|"[^"\\\n]*+"|true\b|false\b)'
_CONSTANTS = rf"{_CONSTANT}(?>(?:\s*+,\s*+{_CONSTANT})*)"
FACT = re.compile(
    rf"({_NAME})(?:\(\s*+(?>({_CONSTANTS})?)\s*+\)"
    rf"|\[\s*+(?>({_CONSTANTS})?)\s*+\]\s*+=\s*+({_CONSTANT}))[ \t]*+(\.)(?![0-9.])\s*+",
    re.ASCII,
)
_CONSTANT_RE = re.compile(_CONSTANT, re.ASCII)
DIRECTIVE = re.compile(r"\.([A-Za-z_]++)")
NOT_TOKENS = re.compile(r"[^\s!-~]++|\?++|.", re.ASCII | re.DOTALL)
NOT_PREDICATES = frozenset({"_", "as", "bnot", "lnot"})

MAX_INTEGER = 2**64 - 1
MAX_DIGITS = 400  # Python refuses to convert thousands of digits; a number this long is out of range anyway

# What one plain fact holds: (kind, value) pairs, as in ast.Constant.
Row = tuple[tuple[str, "int | str | bool"], ...]

NUMBER_HELP = "numbers are 12, 0x1F, 0b101, 12u or 1.5; names do not start with a digit"
EXPONENT = re.compile(r"[0-9]++[eE][0-9]*+", re.ASCII)
EXPONENT_HELP = "a float has digits on both sides of its point, as in 1.0e5"
STRAY_HELP = {
    "&": "`and` is written `,`",
    "'": 'strings are written in double quotes: "text"',
    "#": "comments begin with //",
    "~": "negation is written `!`",
    "¬": "negation is written `!`",
    "\\": "negation is written `!`, and `not equal` is `!=`",
    "?": "names may begin with ?, but need a letter: ?x",
    "≤": "write `<=`",
    "≥": "write `>=`",
    "≠": "write `!=`",
    "←": "write `<-`",
    "→": "write `->`",
    "“": 'write plain double quotes: "text"',
    "”": 'write plain double quotes: "text"',
    "\xa0": "this is a no-break space; write a plain one",
}


def fact_row(text: str) -> Row:
    if not text:
        return ()
    if '"' not in text and "." not in text and "e" not in text:
        return tuple([("int", int(part)) for part in text.split(",")])
    return tuple([_constant(part) for part in _CONSTANT_RE.findall(text)])


def _constant(text: str) -> tuple[str, int | str | bool]:
    if text[0] == '"':
        return ("string", text[1:-1])
    if text in ("true", "false"):
        return ("bool", text == "true")
    if "." in text:
        return ("float", text)
    return ("int", int(text))
