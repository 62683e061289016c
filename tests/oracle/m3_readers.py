"""Readers of M3 as its foreign consumers take it, written from what was observed of them.  Shares no code
with dlog: what dlog writes is held against them.

A5 is the front end and interpreter of DBToaster, DBT its compiler to C++ in version 2.3, FIVM the compiler of
F-IVM.  A reader returns nested tuples, grouped by the reader's own precedence, or raises Refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

A5, DBT, FIVM = "a5", "dbtoaster 2.3", "F-IVM"
READERS = (A5, DBT, FIVM)
Tree = tuple[Any, ...]

_WORDS = frozenset((
    "CREATE", "TYPE", "STREAM", "TABLE", "FROM", "FILE", "LINE", "DELIMITED", "CSV", "WITH", "PARAMETER",
    "SCHEMA", "DECLARE", "MAP", "QUERY", "ON", "BATCH", "UPDATE", "OF", "SYSTEM", "READY", "AggSum", "EXISTS",
    "DOMAIN", "DELTA", "DATE", "IN", "if", "else",
))  # fmt: skip
_TYPES = {
    A5: frozenset(("int", "float", "double", "decimal", "string", "date")),
    DBT: frozenset(("byte", "short", "int", "long", "float", "double", "char", "string", "date")),
}
_TYPES[FIVM] = _TYPES[DBT]
_SYMBOLS = r"\+=|:=|\^=|!=|<=|>=|[-+*=<>(){}\[\],;:/]"
_TOKENS = {
    A5: rf"(?P<number>\d+(\.\d*)?([eE][-+]?\d+)?)|(?P<name>[A-Za-z_][\w-]*)"
    rf"|(?P<string>'[^'\n]*')|(?P<symbol>{_SYMBOLS})",
    DBT: rf"(?P<number>\d+L|\d+\.\d*f?|\d+)|(?P<name>[A-Za-z_]\w*)"
    rf"|(?P<string>'[^'\n]*'|\"[^\"\n]*\")|(?P<symbol>{_SYMBOLS})",
}  # fmt: skip
_TOKENS[FIVM] = _TOKENS[DBT]
_SMALL_INTEGERS = ("byte", "short", "int")


class Refused(Exception):
    """The consumer does not take the text."""


def read(text: str, consumer: str, maps_have_types: bool = True) -> Tree:
    """(types, sources, maps, queries, triggers).  `maps_have_types`: reads and writes of maps say them."""
    return _Reader(_tokens(text, consumer), consumer, maps_have_types).program()


def _tokens(text: str, consumer: str) -> list[tuple[str, str]]:
    out, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        found = re.compile(_TOKENS[consumer]).match(text, at)
        if found is None:
            raise Refused(f"no token: {text[at : at + 20]!r}")
        kind = found.lastgroup or ""
        if kind == "number" and re.match(r"\w", text[found.end() :]):
            raise Refused(f"no number: {text[at : at + 20]!r}")
        out.append((kind, found.group()))
        at = found.end()
    return [*out, ("end", "")]


@dataclass
class _Reader:
    tokens: list[tuple[str, str]]
    consumer: str
    maps_have_types: bool
    at: int = 0

    def __post_init__(self) -> None:
        self.in_a5 = self.consumer == A5
        self.custom: set[str] = set()

    # ---- tokens

    @property
    def text(self) -> str:
        return self.tokens[self.at][1]

    def peek(self, *texts: str) -> bool:
        ahead = self.tokens[self.at : self.at + len(texts)]
        return [text for kind, text in ahead if kind != "string"] == list(texts)

    def accept(self, *texts: str) -> bool:
        if self.peek(*texts):
            self.at += len(texts)
            return True
        return False

    def expect(self, *texts: str) -> None:
        for text in texts:
            if not self.accept(text):
                raise Refused(f"expected {text}, found {self.text!r}")

    def take(self, kind: str) -> str:
        found, text = self.tokens[self.at]
        if found != kind or (kind == "name" and text in _WORDS - {"TYPE"}):
            raise Refused(f"expected a {kind}, found {text!r}")
        self.at += 1
        return text

    def string(self) -> str:
        return self.take("string")[1:-1]

    def several(self, item: Any, end: str) -> tuple[Any, ...]:
        out = []
        while not self.accept(end):
            if out:
                self.expect(",")
            out.append(item())
        return tuple(out)

    # ---- names and types

    def relation(self) -> str:
        name = self.take("name")
        if self.in_a5 and name != name.upper():
            raise Refused(f"relation {name} is not in upper case")
        return name

    def variable(self) -> Tree:
        name = self.take("name")
        if self.in_a5:
            return ("var", name, self.type() if self.accept(":") else None)
        if self.peek(":"):
            raise Refused(f"a type of variable {name}")
        return ("var", name.lower(), None)

    def column(self) -> Tree:
        name = self.take("name")
        self.accept(":")
        return (name if self.in_a5 else name.lower(), self.type())

    def type(self) -> str:
        name = self.take("name")
        if name not in _TYPES[self.consumer] | self.custom:
            raise Refused(f"no type {name}")
        if name in self.custom and self.accept("<"):
            return f"{name}<{', '.join(map(str, self.several(self.parameter, '>')))}>"
        return name

    def parameter(self) -> str:
        if self.accept("["):
            return f"[{', '.join(self.several(self.parameter, ']'))}]"
        return self.take("number") if self.tokens[self.at][0] == "number" else self.type()

    # ---- statements

    def program(self) -> Tree:
        parts: Tree = ([], [], [], [], [])
        latest = 0
        while self.tokens[self.at][0] != "end":
            place, read_one = self.beginning()
            if place < latest and not self.in_a5:
                raise Refused("types, sources, maps, queries, triggers come in this order")
            latest = place
            parts[place].append(read_one())
        return tuple(map(tuple, parts))

    def beginning(self) -> tuple[int, Any]:
        if self.accept("CREATE"):
            return (0, self.definition) if self.accept("TYPE") else (1, self.source)
        if self.accept("DECLARE"):
            return (2, self.map) if self.accept("MAP") else (3, self.query)
        self.expect("ON")
        return 4, self.trigger

    def definition(self) -> Tree:
        if self.in_a5:
            raise Refused("a user-defined type")
        name = self.take("name")
        self.custom.add(name)
        self.expect("FROM", "FILE")
        file, schema = self.string(), ()
        if self.accept("WITH"):
            self.expect("PARAMETER", "SCHEMA", "(")
            schema = self.several(lambda: self.take("name"), ")")
        self.expect(";")
        return (name, file, schema)

    def source(self) -> Tree:
        kind = "STREAM" if self.accept("STREAM") else "TABLE"
        if kind == "TABLE":
            self.expect("TABLE")
        name = self.relation()
        self.expect("(")
        columns = self.several(self.column, ")")
        self.expect("FROM", "FILE")
        file, options = self.string(), ()
        self.expect("LINE", "DELIMITED", "CSV")
        if self.accept("("):
            options = self.several(self.option, ")")
        self.expect(";")
        return (kind, name, columns, file, options)

    def option(self) -> Tree:
        name = self.take("name")
        self.expect(":=")
        return (name, self.string())

    def map(self) -> Tree:
        name = self.take("name")
        self.expect("(")
        type_ = self.type()
        self.expect(")", "[")
        inputs = self.several(self.column, "]")
        self.expect("[")
        keys, definition = self.several(self.column, "]"), None
        if inputs and not self.in_a5:
            raise Refused(f"input variables of map {name}")
        if self.accept(":="):
            definition = self.expression()
        elif self.in_a5:
            raise Refused(f"map {name} has no definition")
        self.expect(";")
        if not self.in_a5 and type_ in _SMALL_INTEGERS and "rel" in kinds(definition):
            raise Refused(f"map {name} counts rows in {type_}: multiplicities are long")
        return (name, type_, inputs, keys, definition)

    def query(self) -> Tree:
        self.expect("QUERY")
        name = self.take("name")
        self.expect(":=")
        expression = self.expression()
        self.expect(";")
        return (name, expression)

    def trigger(self) -> Tree:
        parameters: tuple[Any, ...] = ()
        relation = None
        if self.accept("BATCH", "UPDATE", "OF"):
            event, relation = "batch", self.relation()
            if self.in_a5:
                raise Refused("a batch trigger")
        elif self.accept("SYSTEM", "READY"):
            event = "ready"
        else:
            event = self.text
            self.expect("+" if self.peek("+") else "-")
            relation = self.relation()
            self.expect("(")
            parameters = self.several(self.variable, ")")
            if self.consumer == FIVM:
                raise Refused("a trigger of single tuples")
        self.expect("{")
        body = self.block()
        if self.in_a5:
            require_typed_header(parameters, body)
        return (event, relation, parameters, body)

    def block(self) -> tuple[Tree, ...]:
        out = []
        while not self.accept("}"):
            out.append(self.conditional() if self.accept("if") else self.statement())
        return tuple(out)

    def conditional(self) -> Tree:
        if self.consumer != DBT:
            raise Refused("an if")
        self.expect("(")
        condition = self.comparison(")")
        self.expect("{")
        then, otherwise = self.block(), ()
        if self.accept("else"):
            self.expect("{")
            otherwise = self.block()
        return ("if", condition, then, otherwise)

    def statement(self) -> Tree:
        target = self.map_access(self.take("name"), is_target=True)
        op = self.text
        self.expect("+=" if self.peek("+=") else ":=")
        expression = self.expression()
        self.expect(";")
        return ("assign", target, op, expression)

    # ---- expressions

    def expression(self) -> Tree:
        """In a5 all operators bind alike, to the right; elsewhere products bind closer."""
        if not self.in_a5:
            terms = [self.product()]
            while self.accept("+"):
                terms.append(self.product())
            return flat("+", terms)
        left = ("-", self.expression()) if self.accept("-") else self.operand()
        if left[0] == "-":
            return negated(left[1])
        if self.accept("*"):
            return flat("*", [left, self.expression()])
        if self.accept("+"):
            return flat("+", [left, self.expression()])
        return flat("+", [left, negated(self.expression())]) if self.accept("-") else left

    def product(self) -> Tree:
        factors = [self.operand()]
        while self.accept("*"):
            factors.append(self.operand())
        return flat("*", factors)

    def operand(self) -> Tree:
        kind = self.tokens[self.at][0]
        if kind == "number" or (
            not self.in_a5 and self.peek("-") and self.tokens[self.at + 1][0] == "number"
        ):
            return self.number()
        if kind == "string":
            return ("text", self.string())
        for word in ("AggSum", "EXISTS", "DOMAIN", "DATE"):
            if self.peek(word, "("):
                return self.function(word)
        if self.accept("("):
            return self.parenthesis()
        if self.accept("{"):
            return self.comparison("}")
        return self.call() if self.accept("[") else self.named()

    def number(self) -> Tree:
        sign = -1 if self.accept("-") else 1
        text = self.take("number").rstrip("Lf")
        return ("number", sign * (int(text) if text.isdigit() else float(text)))

    def function(self, word: str) -> Tree:
        self.expect(word, "(")
        if word == "DATE":
            text = self.string()
            self.expect(")")
            return ("date", text)
        keys = None
        if word == "AggSum":
            self.expect("[")
            keys = self.several(self.variable, "]")
            self.expect(",")
        body = self.expression()
        self.expect(")")
        return (word, keys, body)

    def parenthesis(self) -> Tree:
        if self.accept("DELTA"):
            relation = self.relation()
            self.expect(")", "(")
            if self.in_a5:
                raise Refused("a DELTA")
            return ("delta", relation, self.several(self.variable, ")"))
        start = self.at
        if self.tokens[self.at][0] == "name" and self.text not in _WORDS:
            variable = self.variable()
            if self.accept("^="):
                body = self.expression()
                self.expect(")")
                if self.in_a5 and variable[2] is None:
                    raise Refused(f"lifted variable {variable[1]} has no type")
                return ("lift", variable, body)
            self.at = start
        inner = self.expression()
        self.expect(")")
        return inner

    def comparison(self, end: str) -> Tree:
        left = self.expression()
        if self.accept("IN"):
            self.expect("[")
            constants = self.several(self.expression, "]")
            self.expect(end)
            return ("in", left, constants)
        op = self.text
        if op not in ("=", "!=", "<", "<=", ">", ">="):
            raise Refused(f"no comparison: {op}")
        self.at += 1
        right = self.expression()
        self.expect(end)
        if self.in_a5 and kinds((left, right)) & {"map", "rel", "AggSum", "lift", "EXISTS", "DOMAIN"}:
            raise Refused("a comparison of more than values")
        return ("compare", op, left, right)

    def call(self) -> Tree:
        name, parameters = "/", ()
        if not self.accept("/"):
            name = self.take("name")
            if self.accept("<"):
                parameters = self.several(lambda: int(self.take("number")), ">")
        self.expect(":")
        type_ = self.type()
        self.expect("]", "(")
        return ("call", name, parameters, type_, self.several(self.expression, ")"))

    def named(self) -> Tree:
        following = self.tokens[self.at + 1][1]
        if following == "[" or (following == "(" and self.is_map()):
            return self.map_access(self.take("name"))
        if following == "(":
            relation = self.relation()
            self.expect("(")
            return ("rel", relation, self.several(self.variable, ")"))
        return self.variable()

    def is_map(self) -> bool:
        """M(type)[: the bracket after the closing one distinguishes a map from a relation."""
        depth, at = 0, self.at + 1
        while at < len(self.tokens):
            depth += {"(": 1, ")": -1}.get(self.tokens[at][1], 0)
            at += 1
            if depth == 0:
                return self.tokens[at][1] == "["
        return False

    def map_access(self, name: str, is_target: bool = False) -> Tree:
        type_, initial = None, None
        if self.maps_have_types or self.peek("("):
            self.expect("(")
            type_ = self.type()
            self.expect(")")
        self.expect("[")
        inputs = self.several(self.variable, "]")
        self.expect("[")
        keys = self.several(self.variable, "]")
        if inputs and not self.in_a5:
            raise Refused(f"input variables of map {name}")
        if self.peek(":", "("):
            if self.consumer == FIVM or (self.consumer == DBT and not is_target):
                raise Refused(f"an initial value of {name}")
            self.expect(":", "(")
            initial = self.expression()
            self.expect(")")
        return ("map", name, type_, inputs, keys, initial)


def flat(op: str, parts: list[Tree]) -> Tree:
    """Sums of sums are sums; one part is itself."""
    out = [inner for part in parts for inner in (part[1] if part[0] == op else (part,))]
    return out[0] if len(out) == 1 else (op, tuple(out))


def negated(tree: Tree) -> Tree:
    return ("number", -tree[1]) if tree[0] == "number" else flat("*", [("number", -1), tree])


def kinds(tree: Any) -> set[str]:
    """What occurs in a tree."""
    if not isinstance(tree, tuple):
        return set()
    own = {tree[0]} if tree and isinstance(tree[0], str) else set()
    return own.union(*map(kinds, tree)) if tree else own


def require_typed_header(parameters: tuple[Tree, ...], body: tuple[Tree, ...]) -> None:
    """In a5 a body with typed variables needs a header with typed ones."""
    if any(type_ is None for _, _, type_ in parameters) and _has_types(body):
        raise Refused("typed variables under a header without types")


def _has_types(tree: Any) -> bool:
    if not isinstance(tree, tuple):
        return False
    if len(tree) == 3 and tree[0] == "var":
        return tree[2] is not None
    return any(map(_has_types, tree))
