"""Owns random programs of joins without a cycle, and random transactions on their base facts.

    base predicates      r0(int, string), r1[int, int] = int, ..       a function has updates
    heads                w0, w1, ..    bodies of 2 to 6 atoms: self-joins, constants, filters, computed values
    readers of heads     v0, v1, ..    joins, counts and negations, so that some heads must be stored
    queries              of the program

All from a seed, without hypothesis, since a long run has hundreds of thousands of changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

Row = tuple[Any, ...]
Base = dict[str, set[Row]]
NUMBERS, TEXTS = range(4), ("a", "b", "c")
BROKEN = 99  # the constraint of the program forbids it
COMPARED = ("=", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Shape:
    """A predicate with the types of its columns; a function has its value last."""

    name: str
    types: tuple[str, ...]
    functional: bool = False

    def show(self, arguments: tuple[str, ...]) -> str:
        if self.functional:
            return f"{self.name}[{', '.join(arguments[:-1])}] = {arguments[-1]}"
        return f"{self.name}({', '.join(arguments)})"

    def declared(self) -> str:
        names = tuple(f"x{i}" for i in range(len(self.types)))
        typed = ", ".join(f"{type}({name})" for type, name in zip(self.types, names, strict=True))
        return f"{self.show(names)} -> {typed}."


class Program:
    """Its text, and how facts of its base predicates are drawn."""

    def __init__(self, random: Random):
        self.random = random
        self.base = [self._base(number) for number in range(random.randint(2, 4))]
        self.heads = [f"w{number}" for number in range(random.choice((1, 1, 2, 3)))]
        rules = [self.rule(name, random.choice((2, 2, 3, 3, 4, 5, 6))) for name in self.heads]
        self.shapes = {shape.name: shape for shape, _ in rules}
        first = self.base[0]
        variables = tuple(f"x{i}" for i in range(len(first.types)))
        self.lines = [shape.declared() for shape in self.base]
        self.lines += [f"{first.show(variables)} -> {variables[0]} != {literal(self.broken(first)[0])}."]
        self.lines += [text for _, text in rules]
        self.lines += self._readers()

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def _base(self, number: int) -> Shape:
        arity = self.random.choice((1, 2, 2, 2, 3))
        types = tuple("string" if self.random.random() < 0.2 else "int" for _ in range(arity))
        return Shape(f"r{number}", types, arity > 1 and self.random.random() < 0.3)

    def rule(self, name: str, atoms: int) -> tuple[Shape, str]:
        """A head, and its rule."""
        types: dict[str, str] = {}
        parts = [self._atom(types, number) for number in range(atoms)]
        parts += self._filters(types)
        shown = self.random.sample(sorted(types), len(types))
        if shown and self.random.random() < 0.2:  # so that some rows have several derivations
            shown = shown[: self.random.randint(1, len(shown))]
        numbers = [variable for variable in shown if types[variable] == "int"]
        if numbers and self.random.random() < 0.2:
            parts.append(f"z = {self.random.choice(numbers)} + {self.random.randint(1, 2)}")
            shown, types["z"] = [*shown, "z"], "int"
        if not shown:
            shown, types["z"] = ["z"], "int"
            parts.append("z = 1")
        shape = Shape(name, tuple(types[variable] for variable in shown))
        return shape, f"{shape.show(tuple(shown))} <- {', '.join(parts)}."

    def _atom(self, types: dict[str, str], number: int) -> str:
        """One that shares variables with one earlier atom at most, so that joins have no cycle."""
        random, shape = self.random, self.random.choice(self.base)
        earlier = random.choice(sorted({variable[:2] for variable in types} or {""}))
        near = [variable for variable in types if variable.startswith(earlier)]
        own = [f"a{number}{'xyz'[i]}" for i in range(len(shape.types))]
        arguments, shared = list[str](), random.choice((0, *[1] * 9, 2, 2))
        for variable, type in zip(own, shape.types, strict=True):
            known = [v for v in near if types[v] == type]
            chance = random.random()
            if known and shared:
                arguments.append(random.choice(known))
                shared -= 1
            elif chance < 0.08:
                arguments.append(literal(random.choice(NUMBERS if type == "int" else TEXTS)))
            elif chance < 0.12:
                arguments.append("_")
            else:
                arguments.append(variable)
                types[variable] = type
                if random.random() < 0.05:
                    near, shared = [*near, variable], shared + 1
        return shape.show(tuple(arguments))

    def _filters(self, types: Mapping[str, str]) -> list[str]:
        random, found = self.random, list[str]()
        for _ in range(random.choice((0, 0, 1, 1, 2)) if types else 0):
            one = random.choice(sorted(types))
            others = [variable for variable in types if types[variable] == types[one]]
            value = literal(random.choice(NUMBERS if types[one] == "int" else TEXTS))
            found.append(f"{one} {random.choice(COMPARED)} {random.choice([*others, value])}")
        return found

    def _readers(self) -> list[str]:
        random, lines = self.random, list[str]()
        for number in range(random.choice((0, 0, 1, 2))):
            shape = self.shapes[random.choice(self.heads)]
            arguments = tuple(f"y{i}" for i in range(len(shape.types)))
            read, first = shape.show(arguments), arguments[0]
            kinds = [
                f"v{number}({first}) <- {read}.",
                f"v{number}[{first}] = n <- agg<<n = count()>> {read}.",
                f"?- {read}, {first} != {literal(NUMBERS[1] if shape.types[0] == 'int' else 'a')}.",
            ]
            types = self.base[0].types
            if shape.types[0] in types:
                place = types.index(shape.types[0])
                around = tuple(first if i == place else "_" for i in range(len(types)))
                without = shape.show((first, *["_"] * (len(arguments) - 1)))
                kinds.append(f"v{number}({first}) <- {self.base[0].show(around)}, !{without}.")
            lines.append(random.choice(kinds))
        return lines

    # Facts

    def broken(self, shape: Shape) -> Row:
        """A row that the constraint forbids."""
        return tuple(BROKEN if type == "int" else "broken" for type in shape.types)

    def row(self, shape: Shape) -> Row:
        return tuple(self.random.choice(NUMBERS if type == "int" else TEXTS) for type in shape.types)

    def changes(self, base: Base, rows: int) -> list[tuple[str, str, Row]]:
        """So many changes (`+`, `-` or `^`, predicate, row) at most; half of them erase something."""
        random, found, free = self.random, list[tuple[str, str, Row]](), set[tuple[str, Row]]()
        later = {name: set(there) for name, there in base.items()}
        for _ in range(rows):
            shape = random.choice(self.base)
            there = sorted(later[shape.name])
            if there and random.random() < 0.45:
                change = "-", shape.name, random.choice(there)
            else:
                change = "^" if shape.functional else "+", shape.name, self.row(shape)
            _, name, row = change
            key = name, row[:-1] if shape.functional else row
            if key not in free:  # each key once: the order of changes does not matter
                free.add(key)
                apply(later, [change])
                found.append(change)
        return found


def apply(base: Base, changes: list[tuple[str, str, Row]]) -> None:
    """In place."""
    for op, name, row in changes:
        if op == "^":
            base[name] -= {other for other in base[name] if other[:-1] == row[:-1]}
        if op == "-":
            base[name].discard(row)
        else:
            base[name].add(row)


def literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
