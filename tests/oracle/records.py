"""Owns what records mean: tuples and `Branch` values, how they are written, and random programs over them.

Shares no code with the engine's table of records: a literal is read from the syntax tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import count

from hypothesis import strategies as st

from dlog.language import ast
from dlog.language.parse import parse
from dlog.values import Branch, RecordType, Type

from .values import Value

DECLARATIONS = """\
.type List = [head: number, tail: List]
.type Pair = [left: number, right: symbol]
.type Tree = Leaf {} | Tip {n: number} | Node {left: Tree, pair: Pair, right: Tree}
.type Color = Red {} | Green {} | Blue {}
.decl e(x: number, y: number)
.decl l(x: List)
.decl t(x: Tree)
.decl q(x: Pair, y: number)
.decl c(x: Color, y: List)
"""
# The fields of each constructor, by type; "" is that of records.
FIELDS: dict[str, dict[str, tuple[str, ...]]] = {
    "List": {"": ("int", "List")},
    "Pair": {"": ("int", "string")},
    "Tree": {"Leaf": (), "Tip": ("int",), "Node": ("Tree", "Pair", "Tree")},
    "Color": {"Red": (), "Green": (), "Blue": ()},
}
_TIP, _PAIR = Branch("Tip", (1,)), (1, "a")
RECORDS: dict[str, tuple[Value, ...]] = {
    "List": (None, (1, None), (2, None), (1, (2, None)), (2, (1, None)), (3, (1, (2, None)))),
    "Pair": (_PAIR, (2, "a"), (1, "b"), (0, 'a, "]\n'), None),
    "Tree": (
        Branch("Leaf"),
        _TIP,
        Branch("Tip", (2,)),
        Branch("Node", (Branch("Leaf"), _PAIR, _TIP)),
        Branch("Node", (_TIP, None, Branch("Node", (Branch("Leaf"), (2, "a"), Branch("Leaf"))))),
    ),
    "Color": (Branch("Red"), Branch("Green"), Branch("Blue")),
}
BASE = {"e": ("int", "int"), "l": ("List",), "t": ("Tree",), "q": ("Pair", "int"), "c": ("Color", "List")}


# Values


def record_literal(text: str, type: Type) -> Value:
    """The value of a literal's text."""
    statement = parse(f"?- x = {text}.").statements[0]
    assert isinstance(statement, ast.Query) and isinstance(statement.body, ast.Comparison)
    return _value(statement.body.right, type)


def _value(node: ast.Node, type: Type) -> Value:
    if isinstance(node, ast.Constant):
        return None if node.kind == "nil" else type.literal(node.kind, node.value)
    assert isinstance(node, ast.Record | ast.Branch) and isinstance(type, RecordType)
    name = node.name if isinstance(node, ast.Branch) else ""
    fields = next(c.fields for c in type.constructors if c.name == name)
    assert len(fields) == len(node.args)
    return made(name, [_value(a, of) for a, (_, of) in zip(node.args, fields, strict=True)])


def made(branch: str, fields: Sequence[Value]) -> Value:
    return Branch(branch, tuple(fields)) if branch else tuple(fields)


def field(branch: str, index: int, value: Value) -> tuple[Value, ...]:
    """A field of a value, if this constructor made it."""
    if value is None or (isinstance(value, Branch) and value.name != branch):
        return ()
    return ((value.fields if branch else value)[index],)


def literal_text(value: Value, inner: Callable[[Value], str]) -> str:
    """A record as a program writes it, given how its fields are written."""
    if value is None:
        return "nil"
    if isinstance(value, Branch):
        return f"${value.name}" + (f"({', '.join(map(inner, value.fields))})" if value.fields else "")
    return f"[{', '.join(map(inner, value))}]"


def cell_value(text: str, type: Type, leaf: Callable[[str, Type], Value]) -> Value:
    """The value of a cell of a text file, whose strings have no quotes and none of the signs of records."""
    value, rest = _cell_value(text, type, leaf)
    assert not rest
    return value


def _cell_value(text: str, type: Type, leaf: Callable[[str, Type], Value]) -> tuple[Value, str]:
    if not isinstance(type, RecordType):
        end = min(at for sign in ",])" if (at := text.find(sign)) >= 0)
        return leaf(text[:end], type), text[end:]
    if text.startswith("nil"):
        return None, text[3:]
    name = re.match(r"\$?(\w*)", text)
    assert name is not None
    fields, rest = [], text[name.end() :]
    for _, of in next(c.fields for c in type.constructors if c.name == name.group(1)):
        value, rest = _cell_value(rest[1:].lstrip(), of, leaf)
        fields.append(value)
    return made(name.group(1), fields), rest[1:] if fields else rest


# Random programs


@st.composite
def record_programs(draw: st.DrawFn, derived: int = 3) -> str:
    """Declared base relations with facts, and a few derived predicates, some of them recursive."""
    return _Author(draw).program(derived)


class _Author:
    def __init__(self, draw: st.DrawFn):
        self.draw = draw
        self.known = dict(BASE)
        self.lines = [DECLARATIONS]
        self.numbers = count(1)
        self.variables = count(1)

    def program(self, derived: int) -> str:
        from .domains import VALUES, fact

        for name, types in BASE.items():
            columns = [st.sampled_from(RECORDS.get(t) or VALUES[t]) for t in types]
            rows = self.draw(st.lists(st.tuples(*columns), max_size=5, unique_by=repr))
            self.lines += [f"{fact(name, row, False)}." for row in rows]
        for _ in range(self.number(1, derived)):
            self.pick(
                [self.rule, self.rule, self.rule, self.aggregate, self.sublists, self.paths, self.subtrees]
            )()
        return "\n".join(self.lines) + "\n"

    def pick(self, items: Sequence[Value]) -> Value:
        return self.draw(st.sampled_from(list(items)))

    def number(self, least: int, most: int) -> int:
        return self.draw(st.integers(least, most))

    def declare(self, types: Sequence[str], value: str = "") -> str:
        name = f"p{next(self.numbers)}"
        columns = ", ".join(f"x{i}: {t}" for i, t in enumerate(types))
        self.lines.append(f".decl {name}({columns})")
        self.known[name] = tuple(types)
        return name

    def rule(self) -> None:
        scope: dict[str, str] = {}
        known = dict(self.known)
        body = self.body(scope)
        terms = [self.made(scope, type) for type in self.head_types(scope)]
        name = self.declare([type for _, type in terms])
        self.lines.append(f"{name}({', '.join(text for text, _ in terms)}) :- {', '.join(body)}.")
        if self.number(0, 2) == 0:
            scope = {}
            body = self.body(scope, known)
            args = [self.made(scope, type)[0] for type in self.known[name]]
            self.lines.append(f"{name}({', '.join(args)}) :- {', '.join(body)}.")

    def head_types(self, scope: dict[str, str]) -> list[str]:
        types = [*scope.values(), "List", "Tree", "Pair", "Color"]
        return [self.pick(types) for _ in range(self.number(1, 2))]

    def body(self, scope: dict[str, str], known: dict[str, tuple[str, ...]] | None = None) -> list[str]:
        body = [self.atom(scope, known) for _ in range(self.number(1, 2))]
        kinds = [self.equality, self.negation, self.disjunction, self.term]
        body += [self.pick(kinds)(scope, known) for _ in range(self.number(0, 2))]
        return body

    def atom(self, scope: dict[str, str], known: dict[str, tuple[str, ...]] | None = None) -> str:
        known = known or self.known
        name = self.pick(sorted(known))
        return f"{name}({', '.join(self.pattern(scope, t) for t in known[name])})"

    def pattern(self, scope: dict[str, str], type: str, depth: int = 0) -> str:
        """Something that an atom may have as an argument, which may bind variables."""
        kind = self.number(0, 9)
        same = [name for name, of in scope.items() if of == type]
        if kind < 3 and same:
            return self.pick(same)
        if kind == 9:
            return "_"
        if kind in (7, 8) and type in FIELDS and depth < 2:
            branch = self.pick(sorted(FIELDS[type]))
            inner = [self.pattern(scope, t, depth + 1) for t in FIELDS[type][branch]]
            return self.written(branch, inner)
        if kind == 6 and (type != "List" or depth):
            return self.constant(type)
        name = f"v{next(self.variables)}"
        scope[name] = type
        return name

    def written(self, branch: str, fields: list[str]) -> str:
        if not branch:
            return f"[{', '.join(fields)}]"
        return f"${branch}({', '.join(fields)})" if fields else f"${branch}"

    def constant(self, type: str) -> str:
        from .domains import VALUES, literal

        return literal(self.pick(RECORDS.get(type) or VALUES[type]))

    def made(self, scope: dict[str, str], type: str, depth: int = 0) -> tuple[str, str]:
        """A term of bound variables, and its type."""
        same = [name for name, of in scope.items() if of == type]
        if same and self.number(0, 2):
            return self.pick(same), type
        if type not in FIELDS or depth == 2 or self.number(0, 3) == 0:
            return self.pick(same) if same else self.constant(type), type
        branch = self.pick(sorted(FIELDS[type]))
        return self.written(branch, [self.made(scope, t, depth + 1)[0] for t in FIELDS[type][branch]]), type

    def equality(self, scope: dict[str, str], known: object) -> str:
        """Of a record without a name nothing says the type, so one side is a variable."""
        type = self.pick([*scope.values(), "Tree", "Color"])
        variables = [name for name, of in scope.items() if of == type]
        left = self.pick(variables) if variables else self.made(scope, type)[0]
        return f"{left} {self.pick(['=', '!='])} {self.made(scope, type)[0]}"

    def term(self, scope: dict[str, str], known: object) -> str:
        """A new variable for a record that is made, or a bound one that is taken apart."""
        records = [name for name, of in scope.items() if of in FIELDS]
        if records and self.number(0, 1):
            name = self.pick(records)
            branch = self.pick(sorted(FIELDS[scope[name]]))
            fields = [self.pattern(scope, t, 2) for t in FIELDS[scope[name]][branch]]
            return f"{name} = {self.written(branch, fields)}"
        type = self.pick(["Tree", "Color", *(of for of in scope.values() if of in FIELDS)])
        text = self.made(scope, type)[0]
        same = [other for other, of in scope.items() if of == type]
        name = f"v{next(self.variables)}"
        scope[name] = type
        return f"{name} = {text}" + (f", {name} != {self.pick(same)}" if same else "")

    def negation(self, scope: dict[str, str], known: dict[str, tuple[str, ...]] | None) -> str:
        return f"!{self.atom(dict(scope), known)}"

    def disjunction(self, scope: dict[str, str], known: dict[str, tuple[str, ...]] | None) -> str:
        return f"({self.atom(dict(scope), known)} ; {self.equality(scope, known)})"

    def aggregate(self) -> None:
        scope: dict[str, str] = {}
        body = self.body(scope)
        types = sorted(scope)
        if not types:
            return
        group = self.pick(types)
        argument = self.pick(types)
        op = f"count_distinct({argument})" if self.number(0, 1) else "count()"
        if scope[argument] == "int" and self.number(0, 1):
            op = f"{self.pick(['sum', 'min', 'max'])}({argument})"
        name = f"p{next(self.numbers)}"
        text = f"{name}[{group}] = n <- agg<<n = {op}>> {', '.join(body)}."
        self.lines.append(text)

    # Recursion, which ends

    def sublists(self) -> None:
        name, source = self.declare(["List"]), self.pick([n for n, t in self.known.items() if t == ("List",)])
        self.lines += [f"{name}(x) :- {source}(x).", f"{name}(x) :- {name}([_, x])."]
        length = self.declare(["List", "int"])
        self.lines += [f"{length}(nil, 0).", f"{length}(x, n + 1) :- {name}(x), x = [_, y], {length}(y, n)."]

    def subtrees(self) -> None:
        name, source = self.declare(["Tree"]), self.pick([n for n, t in self.known.items() if t == ("Tree",)])
        self.lines += [f"{name}(x) :- {source}(x).", f"{name}(x), {name}(y) :- {name}($Node(x, _, y))."]
        total = self.declare(["Tree", "int"])
        self.lines += [
            f"{total}($Leaf, 0) :- {name}($Leaf).",
            f"{total}(x, n) :- {name}(x), x = $Tip(n).",
            f"{total}(x, n + m + k) :- {name}(x), x = $Node(y, [k, _], z), {total}(y, n), {total}(z, m).",
        ]

    def paths(self) -> None:
        name = self.declare(["int", "int", "List"])
        self.lines += [
            f"{name}(x, y, [y, [x, nil]]) :- e(x, y).",
            f"{name}(x, z, [z, p]) :- {name}(x, y, p), e(y, z), p = [_, [_, nil]].",
        ]
