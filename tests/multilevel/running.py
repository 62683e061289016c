"""Owns how compiled programs run in tests: beside the naive evaluator, every map compared with its
definition.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from fractions import Fraction

from dlog.m3.convert import convert
from dlog.m3.runtime.runtime import Runtime
from dlog.m3.syntax import ast
from dlog.m3.syntax.parse import parse
from dlog.m3.syntax.print import print_program
from dlog.m3.types.typecheck import check
from dlog.multilevel.notation import text
from dlog.multilevel.program import MapReport, Program
from tests.oracle.agca_naive import Bag, Naive, add

Change = tuple[str, Bag]  # a relation, and rows with multiplicities


def source(text: str, kind: str = ast.STREAM) -> ast.Source:
    """`R(a, b double)`: columns are int unless a type follows."""
    name, columns = text.rstrip(")").split("(")
    pairs = [(*column.split(), "int")[:2] for column in columns.split(",") if column.strip()]
    return ast.Source(kind, name, tuple(ast.Column(c, ast.TypeRef(t)) for c, t in pairs))


class Running:
    """A program, its runtime, and the relations as bags."""

    def __init__(self, program: Program, tables: Mapping[str, Bag] | None = None):
        self.program = program
        dialect = ast.A5 if any(m.inputs for m in program.maps) else ast.DBTOASTER
        printed = print_program(convert(program.m3, dialect))
        assert check(parse(printed, dialect=dialect)) is not None  # what is printed is read back
        self.runtime = Runtime(program.m3)
        self.bags: dict[str, Bag] = {s.name: {} for s in program.m3.sources}
        for name, rows in (tables or {}).items():
            self.bags[name] = rows
            self.runtime.load(name, [row for row, count in rows.items() for _ in range(count)])
        self.runtime.ready()

    def apply(self, relation: str, rows: Bag) -> None:
        self.bags[relation] = add(self.bags[relation], rows)
        if rows:
            self.runtime.apply(relation, list(rows), list(rows.values()))

    def content(self, name: str) -> Bag:
        table = self.runtime[name]
        *keys, values = (column.to_pylist() for column in table.columns)
        rows = zip(*keys, strict=True) if keys else [()] * len(values)
        return {row: value for row, value in zip(rows, values, strict=True) if value}

    def check(self) -> None:
        """Every map contains what its definition says."""
        naive = Naive(self.bags)
        for report in self.program.maps:
            found = self.content(report.name)
            expected = self.expected(naive, report, found)
            assert found == expected, f"{report.name} := {text(report.definition)}: {found} != {expected}"

    def expected(self, naive: Naive, report: MapReport, found: Bag) -> Bag:
        """All of a map; of one with input variables, what belongs to inputs that it has."""
        if not report.inputs:
            return naive.table(report.definition, report.keys)
        n = len(report.inputs)
        asked = {row[:n] for row in found}
        tables = {
            i: naive.table(report.definition, report.keys, dict(zip(report.inputs, i, strict=True)))
            for i in asked
        }
        return {i + row: value for i, table in tables.items() for row, value in table.items()}

    def check_numbers(self) -> None:
        """The same for floats, which are multiplied and compared as machines do."""
        naive = Naive(self.bags, real=float)
        for report in self.program.maps:
            expected = naive.table(report.definition, report.keys)
            found = self.content(report.name)
            for key in {*expected, *found}:
                assert abs(Fraction(found.get(key, 0)) - expected.get(key, 0)) < 1e-6, report.name


def stream(
    rng: random.Random, widths: Mapping[str, int], rows: int, values: Iterable[int] = range(-2, 3)
) -> list[tuple[str, tuple[int, ...], int]]:
    """Rows inserted and deleted again, in any order: what has gone may come before it has come."""
    domain = list(values)
    events = []
    for _ in range(rows):
        name = rng.choice(sorted(widths))
        row = tuple(rng.choice(domain) for _ in range(widths[name]))
        at = sorted(rng.sample(range(1000), 2))
        if rng.random() < 0.2:
            at.reverse()
        events += [(at[0], name, row, 1), (at[1], name, row, -1)]
    return [(name, row, sign) for _, name, row, sign in sorted(events)]


def batches(rng: random.Random, events: list[tuple[str, tuple[int, ...], int]], size: int) -> list[Change]:
    """The rows of each relation in groups of up to this many; within a group rows may cancel."""
    found: list[Change] = []
    at = 0
    while at < len(events):
        part = events[at : at + rng.randint(1, size)]
        at += len(part)
        for name in sorted({n for n, _, _ in part}):
            bag: Bag = {}
            for other, row, sign in part:
                if other == name:
                    bag = add(bag, {row: sign})
            found.append((name, bag))
    return found
