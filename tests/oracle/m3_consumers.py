"""What the foreign consumers of M3 need beyond the grammar that `m3_readers` reads, written from what they
did with exported programs and from the code that they generate.  Shares no code with dlog.

`complaints(text, consumer)` lists what the consumer would refuse, miscompile or compute wrongly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from tests.oracle.m3_readers import A5, DBT, FIVM, Refused, Tree, _Reader, _tokens, kinds

FUNCTIONS = {
    A5: {
        "/": (1, 2), "listmin": (2, 9), "listmax": (2, 9), "date_part": (2, 2), "regexp_match": (2, 2),
        "substring": (3, 3), "radians": (1, 1), "pow": (2, 2), "vec_length": (3, 3), "vec_dot": (6, 6),
        "dihedral_angle": (12, 12), "cast_int": (1, 1), "cast_float": (1, 1),
    },
    DBT: {
        "/": (1, 1), "date_part": (2, 2), "regexp_match": (2, 2), "substring": (3, 3), "radians": (1, 1),
        "degrees": (1, 1), "cos": (1, 1), "sin": (1, 1), "pow": (2, 2), "vec_length": (3, 3),
        "vec_dot": (6, 6), "vector_angle": (6, 6), "dihedral_angle": (12, 12),
    },
}  # fmt: skip
FUNCTIONS[FIVM] = {**FUNCTIONS[DBT], "sqrt": (1, 1)}
KEYWORDS = frozenset((
    "and", "asm", "auto", "bool", "break", "case", "catch", "char", "class", "const", "continue",
    "default", "delete", "do", "double", "else", "enum", "explicit", "export", "extern", "false",
    "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new",
    "not", "operator", "or", "private", "protected", "public", "register", "return", "short", "signed",
    "sizeof", "static", "struct", "switch", "template", "this", "throw", "true", "try", "typedef",
    "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "while", "xor",
    "constexpr", "nullptr",
))  # fmt: skip
MEMBERS = {"t0", "tT", "tN", "tS", "data", "serialize", "nxt", "prv", "modify", "ar", "ea", "batch", "other"}
LOCALS = re.compile(r"(h|i|e|v|n|l|c|se|st|sum|agg)\d+")
SMALL = ("byte", "short", "int")


class _TypedReader(_Reader):
    """Numbers say how C++ sees them."""

    def number(self) -> Tree:
        sign = -1 if self.accept("-") else 1
        text = self.take("number")
        if text.endswith("L") and sign < 0:
            raise Refused("a long with a sign was never seen")
        if text.endswith("L"):
            return ("number", sign * int(text[:-1]), "long")
        plain = text.rstrip("f")
        is_int = plain.isdigit()
        return ("number", sign * (int(plain) if is_int else float(plain)), "int" if is_int else "double")


def complaints(text: str, consumer: str) -> list[str]:
    try:
        program = _TypedReader(_tokens(text, consumer), consumer, True).program()
    except Refused as refused:
        return [f"refused: {refused}"]
    found = [*_everywhere(program, consumer)]
    if consumer != A5:
        found += _queries(program)
        found += _names(program)
        found += _integers(program)
        found += _triggers(program)
    return found


def nodes(tree: Any) -> Iterator[Tree]:
    """Every node below, and the tree itself."""
    if isinstance(tree, tuple):
        if tree and isinstance(tree[0], str):
            yield tree
        for part in tree:
            yield from nodes(part)


# ---- all consumers


def _everywhere(program: Tree, consumer: str) -> Iterator[str]:
    types, sources, maps, queries, triggers = program
    if sum(event == "ready" for event, *_ in triggers) != 1:
        yield "no ON SYSTEM READY, or several"
    for node in (n for part in (maps, queries, triggers) for n in nodes(part)):
        if node[0] == "call" and len(node) == 5:
            yield from _call(node, consumer, bool(types))
        if node[0] == "in" and consumer == A5:
            yield "a5's interpreter has no IN"
    yield from _tables(sources, maps, triggers)


def _call(node: Tree, consumer: str, has_types: bool) -> Iterator[str]:
    _, name, _, _, arguments = node
    low, high = FUNCTIONS[consumer].get(name, (0, 0))
    if has_types and name not in FUNCTIONS[consumer]:
        return  # in the C++ of the program's types
    if not low <= len(arguments) <= high:
        yield f"function {name} of {len(arguments)} does not exist"


def _tables(sources: Tree, maps: Tree, triggers: Tree) -> Iterator[str]:
    """Tables are read when the system is ready, and never later; what is over tables alone is filled then."""
    kind = {name: kind for kind, name, *_ in sources}
    filled = set()
    for event, _, _, body in triggers:
        for node in nodes(body):
            if node[0] == "rel" and (event != "ready" or kind[node[1]] != "TABLE"):
                yield f"relation {node[1]} in a trigger"
            if node[0] == "assign" and event == "ready" and node[2] == ":=":
                filled.add(node[1][1])
    for name, _, _, _, definition in maps:
        read = {kind[node[1]] for node in nodes(definition) if node[0] == "rel"}
        if read == {"TABLE"} and name not in filled:
            yield f"map {name} over tables is not filled when the system is ready"


# ---- C++


def _queries(program: Tree) -> Iterator[str]:
    declared = {name: keys for name, _, _, keys, _ in program[2]}
    for name, expression in program[3]:
        if expression[0] != "map" or expression[1] != name or name not in declared:
            yield f"query {name} is not the map of that name"
        elif len(expression[3 + 1]) != len(declared[name]):
            yield f"query {name} has other keys than its map"


def _names(program: Tree) -> Iterator[str]:
    _, sources, maps, _, triggers = program
    variables = {node[1] for part in (maps, triggers) for node in nodes(part) if node[0] == "var"}
    variables |= {column for _, _, columns, *_ in sources for column, _ in columns}
    variables |= {key for *_, keys, _ in maps for key, _ in keys}
    relations = [name for _, name, *_ in sources]
    names = [name for name, *_ in maps]
    for name in (*variables, *relations, *names):
        if len(name) == 1 or name in KEYWORDS or name in MEMBERS or LOCALS.fullmatch(name):
            yield f"{name} cannot be a name"
    for name in relations:
        if name != name.upper():
            yield f"relation {name} is not in upper case"
    once: list[str] = [*variables, *relations, *(f"DELTA_{name}" for name in relations), *names]
    for name in {name for name in once if once.count(name) > 1}:
        yield f"{name} names two things"


def _integers(program: Tree) -> Iterator[str]:
    """No 32-bit integers but 0, 1 and -1 and what is made of them."""
    _, sources, maps, _, triggers = program
    typed = [t for _, _, columns, *_ in sources for _, t in columns] + [t for *_, k, _ in maps for _, t in k]
    typed += [type_ for _, type_, *_ in maps]
    typed += [node[3] for part in (maps, triggers) for node in nodes(part) if node[0] == "call"]
    if any(type_ in SMALL for type_ in typed):
        yield "an integer of 32 bits is declared"
    for _, _, _, body in triggers:
        for node in nodes(body):
            if node[0] == "assign":
                try:
                    _kind(node[3])
                except OverflowError as error:
                    yield f"{error} may overflow 32 bits"


def _kind(tree: Tree) -> tuple[str, float]:
    """The type that C++ gives a value, and how large an int may be.  Products group to the right."""
    kind = tree[0]
    if kind in ("*", "+"):
        type_, size = _kind(tree[1][-1])
        for part in reversed(tree[1][:-1]):
            other, bound = _kind(part)
            size = size * bound if kind == "*" else size + bound
            narrow = {type_, other} <= {"int", "unsigned"}
            if narrow and (size >= 2**31 or "unsigned" in (type_, other)):
                raise OverflowError(str(tree))
            type_ = type_ if other in ("int", "unsigned") else other if type_ != "double" else type_
        return type_, size
    if kind == "number":
        return (tree[2], abs(tree[1]))
    if kind in ("compare", "in", "EXISTS", "DOMAIN", "lift"):
        return ("int", 1)
    if kind == "AggSum":
        return _kind(tree[2])
    if kind == "call" and tree[1] == "date_part":
        return ("unsigned", 2**31)
    if kind in ("map", "call"):
        return (tree[2] if kind == "map" else tree[3], 2**63)
    return ("long", 2**63)


def _triggers(program: Tree) -> Iterator[str]:
    _, sources, _, _, triggers = program
    columns = {name: tuple(column for column, _ in found) for _, name, found, *_ in sources}
    for kind, name, *_ in sources:
        events = sorted(event for event, relation, *_ in triggers if relation == name)
        if kind == "STREAM" and events not in (["+", "-"], ["batch"]):
            yield f"stream {name} has triggers {events}"
    for _, relation, parameters, body in triggers:
        names = tuple(name for _, name, _ in parameters)
        if relation is not None and names not in ((), columns[relation]):
            yield f"parameters {names} are not the columns of {relation}"
        for statement in body:
            yield from _statement(statement, set(names))


def _statement(statement: Tree, parameters: set[str]) -> Iterator[str]:
    _, target, op, expression = statement
    keys = [name for _, name, _ in target[4]]
    if op == ":=" and parameters & set(keys):
        yield f"{target[1]} := clears the whole map"
    bound: set[str] = set(parameters)
    yield from _bindings(expression, bound)
    if not set(keys) <= bound:
        yield f"keys of {target[1]} are not bound"


def _bindings(tree: Tree, bound: set[str]) -> Iterator[str]:
    """A batch is read from its beginning to its end, once: none of its variables can be bound.  Sums within a
    product are generated in place: what they bind stays bound, so no other factor may use its name.
    """
    kind = tree[0]
    if kind == "delta" and {name for _, name, _ in tree[2]} & bound:
        yield f"a look-up in the batch of {tree[1]}"
    if kind in ("*", "+"):
        before, after = set(bound), set(bound)
        for part in tree[1]:
            now = bound if kind == "*" else set(before)
            yield from _bindings(part, now)
            after |= now
        bound |= after
    elif kind == "AggSum":
        inside = set(bound)
        yield from _bindings(tree[2], inside)
        hidden = inside - bound - {name for _, name, _ in tree[1]}
        bound |= {name for _, name, _ in tree[1]} | {f"{name} of a sum" for name in hidden}
    elif kind in ("EXISTS", "DOMAIN"):
        yield from _bindings(tree[2], bound)
    elif kind in ("delta", "rel", "map"):
        used = tree[2] if kind != "map" else tree[4]
        for _, name, _ in used:
            if f"{name} of a sum" in bound:
                yield f"{name} is bound by a sum beside it"
            bound.add(name)
    elif kind == "var" and tree[1] not in bound:
        yield f"{tree[1]} is not bound"
    elif kind == "compare":
        for side in tree[2:]:
            if kinds(side) & {"AggSum", "map", "rel", "delta"}:
                yield "a comparison of more than values"
            yield from _bindings(side, bound)
    elif kind == "in":
        yield from _bindings(tree[1], bound)
    elif kind == "lift":
        yield from _bindings(tree[2], set(bound))
        bound.add(tree[1][1])
    elif kind == "call":
        yield from _all(tree[4], bound)


def _all(trees: Iterable[Tree], bound: set[str]) -> Iterator[str]:
    for tree in trees:
        yield from _bindings(tree, bound)
