"""Owns the differences between the dialects of M3, as tables, and how to detect a text's dialect.  Knows no
grammar.

`a5` is what the front end and interpreter of DBToaster read; `dbtoaster` is what the compilers to C++ read,
DBToaster's 2.3 and F-IVM's.
"""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token

from dlog.errors import DlogError
from dlog.m3.syntax.ast import A5, DBTOASTER

# Every spelling of a built-in type, and its one name in the syntax tree.
TYPES: dict[str, dict[str, str]] = {
    A5: {
        "int": "int", "integer": "int", "float": "float", "double": "float", "decimal": "float",
        "string": "string", "varchar": "string", "char": "string", "date": "date",
    },
    DBTOASTER: {
        "byte": "byte", "short": "short", "int": "int", "long": "long", "float": "float", "double": "double",
        "decimal": "double", "char": "char", "string": "string", "varchar": "string", "date": "date",
    },
}  # fmt: skip

# The least and greatest value of each integer type: a5 reserves one bit of a word.
RANGES: dict[str, dict[str, tuple[int, int]]] = {
    A5: {"int": (-(2**62), 2**62 - 1)},
    DBTOASTER: {
        "byte": (-(2**7), 2**7 - 1), "short": (-(2**15), 2**15 - 1),
        "int": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1),
    },
}  # fmt: skip

# The type of a row's multiplicity in a base relation, and of a condition's value.
MULTIPLICITY = {A5: "int", DBTOASTER: "long"}
CONDITION = {A5: "int", DBTOASTER: "int"}
DECIMAL_LITERAL = {A5: "float", DBTOASTER: "double"}

# Words of the grammar.  In a5 all of them are reserved; in dbtoaster only those that begin something.
KEYWORDS = frozenset((
    "CREATE", "TYPE", "STREAM", "TABLE", "FROM", "FILE", "SOCKET", "LINE", "DELIMITED", "FIXEDWIDTH",
    "WITH", "PARAMETER", "SCHEMA", "DECLARE", "MAP", "QUERY", "PARTIAL", "INITIALIZED", "ON", "BATCH",
    "UPDATE", "OF", "SYSTEM", "READY", "AGGSUM", "EXISTS", "DOMAIN", "DELTA", "DATE", "IN", "IF", "ELSE",
))  # fmt: skip
HARD_KEYWORDS = frozenset((
    "CREATE", "DECLARE", "ON", "AGGSUM", "EXISTS", "DOMAIN", "DELTA", "IN", "IF", "ELSE",
))  # fmt: skip
# Words that a5 reserves beyond the grammar's: its types and constants, and others.
A5_RESERVED = (KEYWORDS - {"TYPE", "PARAMETER", "SCHEMA", "BATCH", "UPDATE", "OF"}) | frozenset((
    "VARCHAR", "CHAR", "AS", "DO", "CORRECT", "FOR", "INT", "INTEGER", "FLOAT", "DOUBLE", "DECIMAL",
    "STRING", "TRUE", "FALSE",
))  # fmt: skip


def require_dialect(name: str) -> None:
    """Raises DlogError if there is no such dialect."""
    if name not in TYPES:
        raise DlogError(f"unknown dialect {name}", help=f"there are {' and '.join(TYPES)}")


def is_reserved(word: str, dialect: str) -> bool:
    """Whether a name cannot be a variable of the dialect."""
    return word.upper() in (A5_RESERVED if dialect == A5 else HARD_KEYWORDS)


def detect(tokens: Sequence[Token]) -> str:
    """The dialect of a text: the first construct that only one of them has decides.

    If there is none, a lift without a type suggests dbtoaster, and then a map of ints a5, since in
    dbtoaster base relations count in longs; else it is dbtoaster.
    """
    weak = DBTOASTER
    untyped = False
    for index, token in enumerate(tokens):
        dialect = _evidence(tokens, index)
        if dialect is not None:
            return dialect
        untyped = untyped or (token.type == "LIFT" and index > 1 and _is(tokens[index - 2], "LPAR"))
        if token.upper() == "INT" and _is_map_type(tokens, index):
            weak = A5
    return DBTOASTER if untyped else weak


_ONLY_DBTOASTER = ("BATCH", "IF", "ELSE", "LOCAL", "DELTA")
_DBTOASTER_TYPES = ("LONG", "BYTE", "SHORT")


def _evidence(tokens: Sequence[Token], index: int) -> str | None:
    token, before = tokens[index], tokens[index - 1] if index else None
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    if token.type == "NUMBER":
        return _literal_evidence(token)
    if token.type == "MINUS" and (after is None or after.type != "NUMBER") and not _is(before, "ON"):
        return A5
    if _is(token, "TYPE") and _is(before, "CREATE"):
        return DBTOASTER
    if token.type in _ONLY_DBTOASTER and (token.type not in ("IF", "BATCH") or _is(after, "LPAR", "UPDATE")):
        return DBTOASTER
    if token.upper() in _DBTOASTER_TYPES and _is(before, "LPAR", "COLON", "NAME") and _is(after, *_TYPE_ENDS):
        return DBTOASTER
    if token.type == "RSQB" and _is(after, "LSQB") and not _is(before, "LSQB"):
        return A5  # input variables
    if token.type == "COLON" and _is(before, "NAME") and _is_typed_variable(tokens, index):
        return A5
    return None


_TYPE_ENDS = ("RPAR", "RSQB", "COMMA")


def _literal_evidence(token: Token) -> str | None:
    text = token.upper()
    if text.startswith(("0X", "0B", "0O")):
        return A5
    if text.endswith(("L", "F")):
        return DBTOASTER
    return A5 if "E" in text else None


def _is_typed_variable(tokens: Sequence[Token], index: int) -> bool:
    """`x:int` in a body or a header: not a key of a declaration, not `[f: type]`."""
    start = index
    while start > 0 and tokens[start - 1].type in ("NAME", "COLON", "COMMA", "DATE"):
        start -= 1
    before = [tokens[i] if i >= 0 else None for i in (start - 1, start - 2, start - 3)]
    if not _is(before[0], "LSQB"):
        return True
    if _is(before[1], "LPAR") and _is(before[2], "AGGSUM"):
        return True
    # `[][x:int]` are keys, of a declaration or of a map that is used.
    return _is(before[1], "RSQB") and not _in_declaration(tokens, start)


def _in_declaration(tokens: Sequence[Token], index: int) -> bool:
    """Whether `DECLARE` comes before, with no `:=` or `;` between."""
    while index > 0:
        index -= 1
        if tokens[index].type in ("SETVALUE", "SEMI", "LBRACE"):
            return False
        if tokens[index].type == "DECLARE":
            return True
    return False


def _is_map_type(tokens: Sequence[Token], index: int) -> bool:
    """`DECLARE MAP M(int)`."""
    return index >= 3 and _is(tokens[index - 1], "LPAR") and _is(tokens[index - 3], "MAP")


def _is(token: Token | None, *kinds: str) -> bool:
    return token is not None and token.type in kinds
