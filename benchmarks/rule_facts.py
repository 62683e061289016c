"""Owns facts for any rule, and changes of them, from a seed: values that fit the types and meet in joins.

Columns that a variable joins have one *domain*, a number of values: so each of them refers to the others
like a foreign key.  Domains differ in size, from as many values as there are rows to a thirtieth, and some
are skewed.  Literals of the rules occur in the columns that they are compared with.  Knows nothing of
strategies.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import prod
from typing import Any

from dlog.ir.rules import Const, Predicate, Primitive, Program, Rule, Stratum, Var
from dlog.values import Type

Column = tuple[str, int]  # predicate, place
Row = tuple[Any, ...]
FANS = (1, 1, 3, 10, 30)  # rows for each value of a domain
SKEWS = (1.0, 1.0, 2.0)  # value number n * u ** skew, u uniform: with 2 the first percent has a tenth of rows
LITERALS = 0.25  # of the values of a column with literals
FULL = 0.6  # of all possible keys, at most
TRIES = 20  # to find a row that is not there


@dataclass
class Domain:
    """The values of some columns."""

    size: int
    skew: float
    literals: list[Any] = field(default_factory=list)

    def number(self, rng: random.Random, hub: bool) -> int:
        """Of a value; of a hub: one of the first values, which the skewed ones have most."""
        if hub:
            return rng.randrange(max(1, self.size // 100))
        return int(self.size * rng.random() ** self.skew)


class Facts:
    """Rows for all base predicates of a program; `change` keeps them up to date."""

    def __init__(self, program: Program, rows: int, seed: str, fan: float = 1.0):
        """About `rows` rows for each predicate.  `fan`: a factor on the rows for each value."""
        self.rng = random.Random(seed)
        self.program = program
        derived = program.stratum_of
        read = dict.fromkeys(n for s in program.strata for n in sorted(s.reads) if n not in derived)
        tables = program.directed("table")
        self.names = list(read)
        self.changing = [name for name in read if name not in tables and program.predicates[name].arity]
        self.domains = self._domains(rows, fan)
        self.rows: dict[str, list[Row]] = {name: [] for name in read}
        self.keys: dict[str, dict[Row, int]] = {name: {} for name in read}  # key of a row -> its place
        for name in read:
            for _ in range(min(rows, self._most_rows(name))):
                if (row := self.fresh(name)) is not None:
                    self.add(name, row)

    def _domains(self, rows: int, fan: float) -> dict[Column, Domain]:
        groups = _joined(self.program.strata)
        found: dict[Column, Domain] = {}
        literals = dict(_literals(self.program.strata))
        for predicate in self.program.predicates.values():
            for place, column in enumerate(predicate.columns):
                root = groups.find((predicate.name, place))
                if root not in found:
                    size = max(2, int(rows / (self.rng.choice(FANS) * fan)))
                    found[root] = Domain(size, self.rng.choice(SKEWS))
                found[predicate.name, place] = found[root]
                for literal in literals.get((predicate.name, place), ()):
                    if _fits(column.type, literal):
                        found[root].literals.append(literal)
        return found

    def _most_rows(self, name: str) -> int:
        """So that some values of a domain are there and some are not."""
        keys = range(self.program.predicates[name].n_keys)
        return max(1, int(FULL * prod(self.domains[name, place].size for place in keys)))

    def fresh(self, name: str, hub: bool = False) -> Row | None:
        """A row whose key is not there."""
        predicate = self.program.predicates[name]
        for _ in range(TRIES):
            row = tuple(self._value(predicate, place, hub) for place in range(predicate.arity))
            if row[: predicate.n_keys] not in self.keys[name]:
                return row
        return None

    def _value(self, predicate: Predicate, place: int, hub: bool) -> Any:
        domain = self.domains[predicate.name, place]
        if domain.literals and self.rng.random() < LITERALS:
            return self.rng.choice(domain.literals)
        return value(predicate.columns[place].type, domain.number(self.rng, hub))

    def add(self, name: str, row: Row) -> None:
        self.keys[name][row[: self.program.predicates[name].n_keys]] = len(self.rows[name])
        self.rows[name].append(row)

    def remove(self, name: str) -> Row:
        """Some row.  O(1).  REQUIRES: there is one."""
        rows, keys = self.rows[name], self.keys[name]
        n_keys = self.program.predicates[name].n_keys
        place = self.rng.randrange(len(rows))
        gone, last = rows[place], rows.pop()
        if place < len(rows):
            rows[place] = last
            keys[last[:n_keys]] = place
        del keys[gone[:n_keys]]
        return gone

    def change(self, size: int, hub: bool = False) -> tuple[dict[str, list[Row]], dict[str, list[Row]]]:
        """Rows of one predicate to insert and rows to erase, about as many of each: (inserts, erases)."""
        name = self.rng.choice(self.changing)
        erases = size // 2 + (size % 2 and self.rng.random() < 0.5)
        gone = [self.remove(name) for _ in range(min(erases, len(self.rows[name])))]
        new: list[Row] = []
        for _ in range(size - erases):
            row = self.fresh(name, hub)
            if row is not None and row not in gone:
                self.add(name, row)
                new.append(row)
        return ({name: new} if new else {}), ({name: gone} if gone else {})


def value(type: Type, number: int) -> Any:
    """The value of a type with a number; different numbers give different values, mostly."""
    match type.name:
        case "int" | "unsigned":
            return number
        case "float":
            return number / 2
        case "decimal":
            return Decimal(number % 10 ** max(1, type.precision - type.scale)).quantize(
                Decimal(1).scaleb(-type.scale)
            )
        case "bool":
            return bool(number % 2)
        case "date":
            return date(1990, 1, 1) + timedelta(days=number % 30_000)
        case "datetime":
            return datetime(1990, 1, 1) + timedelta(hours=number)
        case "timestamp":
            return datetime(1990, 1, 1, tzinfo=UTC) + timedelta(hours=number)
        case "duration":
            return timedelta(minutes=number)
        case _:
            return f"s{number}"


def _fits(type: Type, literal: Any) -> bool:
    if isinstance(literal, bool):
        return type.name == "bool"
    if isinstance(literal, int):
        return type.name == "int" or (type.name == "unsigned" and literal >= 0)
    return type.name == "string"


class _Groups:
    """Union and find."""

    def __init__(self) -> None:
        self.parent: dict[Any, Any] = {}

    def find(self, item: Any) -> Any:
        while (above := self.parent.setdefault(item, item)) != item:
            item = above
        return item

    def join(self, a: Any, b: Any) -> None:
        self.parent[self.find(a)] = self.find(b)


def _joined(strata: Iterable[Stratum]) -> _Groups:
    """Columns with the same variable, or with variables that are equal."""
    groups = _Groups()
    for rule in _rules(strata):
        for atom in (*rule.heads, *(atom for atom, _ in rule.body.atoms())):
            for place, operand in enumerate(atom.args):
                if isinstance(operand, Var):
                    groups.join((atom.predicate, place), (rule.id, operand.name))
        for form in rule.body.walk():
            if isinstance(form, Primitive) and form.name == "eq":
                a, b = form.args[:2]
                if isinstance(a, Var) and isinstance(b, Var):
                    groups.join((rule.id, a.name), (rule.id, b.name))
    return groups


def _literals(strata: Iterable[Stratum]) -> Iterator[tuple[Column, list[Any]]]:
    """The literals in a column of an atom, or compared with a variable of it."""
    found: dict[Column, list[Any]] = {}
    for rule in _rules(strata):
        atoms = [atom for atom, _ in rule.body.atoms()]
        compared = dict(_compared(rule))
        for atom in atoms:
            for place, operand in enumerate(atom.args):
                values = [operand.value] if isinstance(operand, Const) else compared.get(operand.name, [])
                found.setdefault((atom.predicate, place), []).extend(values)
    yield from found.items()


def _compared(rule: Rule) -> Iterator[tuple[str, list[Any]]]:
    found: dict[str, list[Any]] = {}
    for form in rule.body.walk():
        if isinstance(form, Primitive):
            literals = [a.value for a in form.args if isinstance(a, Const)]
            for operand in form.args:
                if isinstance(operand, Var):
                    found.setdefault(operand.name, []).extend(literals)
    yield from found.items()


def _rules(strata: Iterable[Stratum]) -> Iterator[Rule]:
    return (rule for stratum in strata for rule in stratum.rules)
