"""Owns the words and signs of other languages, and how each is written here.  Tables for messages only."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from dlog import values
from dlog.aggregates import elsewhere

# Signs: a run of these characters is looked up.
SIGN_CHARACTERS = "=<>!:|*-"
SIGNS = {
    "==": "`=`", "===": "`=`", ":=": "`=` or `:-`", "=:=": "`=`", "!==": "`!=`", "<>": "`!=`", "=!": "`!=`",
    "=!=": "`!=`",
    "=<": "`<=`", "=>": "`->` or `>=`", "|": "`;`", "||": "`;`", "**": "`^`", "-:": "`:-`", "<--": "`<-`",
    "-->": "`->`", "<:-": "`:-`", "::-": "`:-`", "<=>": "`=`",
}  # fmt: skip

# Words between two terms ({} is the word as it was written), and words before one.
WORDS = {
    "and": "{} is written `,`",
    "or": "{} is written `;`",
    "mod": "{} is written `%`",
    "is": "{} is written `=`",
    "if": "{} is written `<-` or `:-`",
    "where": "{} is written `<-` or `:-`",
    "in": "write the values as alternatives, as in (x = 1 ; x = 2), or x = range(1, 3)",
}
WORDS_BEFORE = {
    "not": "negation is written `!`",
    "if": "write the condition without a word before it",
    "when": "write the condition without a word before it",
    "import": '`.include "FILE"` reads another file',
    "include": '`.include "FILE"` reads another file',
    "print": "`.output p` writes a predicate, `?- p(x).` prints the rows that match",
    "query": "a query is written `?- p(x).`",
    "exists": "a variable that occurs only in the body is existential; just use it",
    "forall": "write `for all` as `no exception`: !(p(x), !q(x))",
}

DIRECTIVES = {
    "import": "include",
    "use": "include",
    "load": "input",
    "read": "input",
    "print": "output",
    "export": "output",
    "write": "output",
    "declare": "decl",
    "relation": "decl",
    "table_size": "printsize",
}

FUNCTIONS = {
    "length": "strlen", "len": "strlen", "size": "strlen", "string_length": "strlen",
    "join": "cat", "strcat": "cat", "string_concat": "cat",
    "substring": "substr", "slice": "substr", "mid": "substr",
    "str": "to_string", "tostring": "to_string", "repr": "to_string",
    "toint": "to_number", "to_int": "to_number", "parse_int": "to_number", "atoi": "to_number",
    "itof": "to_float", "utof": "to_float", "double": "to_float",
    "itou": "to_unsigned", "ftou": "to_unsigned",
    "utoi": "to_number", "ftoi": "to_number",
    "uppercase": "upper", "toupper": "upper", "ucase": "upper",
    "lowercase": "lower", "tolower": "lower", "lcase": "lower",
    "ceiling": "ceil", "ln": "log",
    **elsewhere(),
}  # fmt: skip
OPERATORS = {
    "pow": "^",
    "power": "^",
    "mod": "%",
    "modulo": "%",
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
}
CONDITIONS = {
    "like": "match",
    "regex": "match",
    "regexp": "match",
    "matches": "match",
    "startswith": "starts_with",
}

TYPES = {name: type.name for type in values.TYPES for name in type.elsewhere}
NULLS = frozenset({"null", "none", "na", "undefined"})


def function_help(name: str) -> str | None:
    """What to write for a function of another language.

    >>> function_help("length")
    'did you mean strlen?'
    >>> function_help("pow")
    'write a ^ b'
    """
    word = name.lower()
    if word in OPERATORS:
        return f"write a {OPERATORS[word]} b"
    return f"did you mean {FUNCTIONS[word]}?" if word in FUNCTIONS else None


def type_help(name: str) -> str | None:
    """
    >>> type_help("VARCHAR")
    'did you mean string?'
    """
    return f"did you mean {TYPES[name.lower()]}?" if name.lower() in TYPES else None


def condition_help(name: str, known: Iterable[str]) -> str | None:
    """The built-in condition that was meant: only if it is very close, as any predicate may be missing.

    >>> condition_help("contians", ["contains"])
    'did you mean contains(part, s)?'
    """
    close = CONDITIONS.get(name.lower()) or next(iter(get_close_matches(name, sorted(known), 1, 0.8)), None)
    arguments = "pattern, s" if close == "match" else "part, s"
    return f"did you mean {close}({arguments})?" if close else None


def value_help(name: str) -> str:
    """What to write for a bare word where a value is required.

    >>> value_help("True")
    'did you mean true?'
    """
    word = name.lower()
    if word in ("true", "false"):
        return f"did you mean {word}?"
    if word in NULLS:
        return "there is no null; leave the row out, or store what may be missing in a separate predicate"
    return f'a fact has values, not variables; text is written "{name}"'
