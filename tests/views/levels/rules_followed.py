"""How what rules derive by levels of maps is followed in tests: streams of rows in and out, beside the naive
evaluator, and a database that maintains the same program.
"""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import dlog
from dlog.ir.check import load_program
from dlog.ir.rules import Column, Const
from dlog.language.source import Source
from dlog.views.levels.program import DEFAULT, Options
from dlog.views.rules.nested import nested_query
from dlog.views.run.maintained import Maintained
from tests.oracle.naive import evaluate

Row = tuple[Any, ...]
Change = tuple[str, Row, int]
VALUES: dict[str, list[Any]] = {
    "int": [-1, 0, 0, 1, 1, 2],
    "decimal": [Decimal("-0.50"), Decimal("0.25"), Decimal("1.25")],
    "string": ["a", "b"],
}


class Followed:
    """A predicate of a program.  The engine's database is optional: each one takes a while."""

    def __init__(self, text: str, predicate: str, options: Options = DEFAULT, engine: bool = False):
        _, self.program = load_program(Source("rules.dl", text))
        self.text, self.predicate = text, predicate
        rules = self.program.rules_of(predicate)
        self.rule = rules[0] if len(rules) == 1 and rules[0].aggregates else None
        self.query = nested_query(self.program, predicate)
        self.kept = Maintained(self.query, options=options)
        self.streams = {s.name: self.program.predicates[s.name].columns for s in self.query.sources}
        self.facts: dict[str, set[Row]] = {name: set() for name in self.streams}
        self.database = dlog.Database(source=text) if engine else None

    def stream(self, rng: random.Random, rows: int) -> list[Change]:
        """Rows inserted, each erased again later; a relation never has a row twice."""
        events: list[tuple[float, Change]] = []
        seen = set()
        for _ in range(rows):
            name = rng.choice(list(self.streams))
            row = tuple(rng.choice(VALUES[c.type.name]) for c in self.streams[name])
            if (name, row) not in seen:
                seen.add((name, row))
                come, go = sorted((rng.random(), rng.random()))
                events += [(come, (name, row, 1)), (go + 0.3, (name, row, -1))]
        return [event for _, event in sorted(events, key=lambda e: e[0])]

    def apply(self, changes: list[Change]) -> None:
        net: dict[tuple[str, Row], int] = {}
        for name, row, sign in changes:
            (self.facts[name].add if sign > 0 else self.facts[name].remove)(row)
            net[name, row] = net.get((name, row), 0) + sign
        for name in self.streams:
            mine = [(row, sign) for (n, row), sign in net.items() if n == name and sign]
            if mine:
                rows = [tuple(map(_coded, row, self.streams[name])) for row, _ in mine]
                self.kept.apply(name, rows, [sign for _, sign in mine])
        if self.database is not None:
            with self.database.transaction() as tx:
                for (name, row), sign in net.items():
                    if sign:
                        (tx.insert if sign > 0 else tx.erase)(name, [row])

    def check(self) -> bool:
        """Whether there are rows."""
        found = self.found()
        assert found == self._of(evaluate(self.program, self.facts)[self.predicate]), self.text
        if self.database is not None:
            assert found == self._of(set(self.database[self.predicate].rows())), self.text
        return bool(found)

    def found(self) -> set[Row]:
        table, digits = self.kept.result(), self._digits()
        rows = [tuple(map(_exact, row.values(), digits)) for row in table.to_pylist()]
        assert len(set(rows)) == len(rows), self.text
        return set(rows)

    def _digits(self) -> list[int]:
        """Of each column: how many digits a number has after its point."""
        if self.rule is not None:
            return [self.rule.types[column.name].scale for column in self.query.columns]
        return [column.type.scale for column in self.program.predicates[self.predicate].columns] or [0]

    def check_empty(self) -> None:
        """No map has entries."""
        for report in self.kept.levels.program.maps:
            if type(report.initial).__name__ == "Zero":
                table = self.kept.runtime[report.name]
                assert not any(table.column(table.num_columns - 1).to_pylist()), (self.text, report.name)
                assert not report.keys or not table.num_rows, (self.text, report.name)

    def _of(self, rows: set[Row]) -> set[Row]:
        """Rows of the predicate as the query shows them: one rule with aggregates shows its variables."""
        if self.rule is not None:
            heads = [h for h in self.rule.heads if h.predicate == self.predicate]
            places = {str(a): i for i, a in enumerate(heads[0].args) if not isinstance(a, Const)}
            rows = {tuple(row[places[c.name]] for c in self.query.columns) for row in rows}
        elif not self.program.predicates[self.predicate].columns:
            rows = {(1,) for _ in rows}
        return {tuple(_exact(value, 0) for value in row) for row in rows}


def _coded(value: Any, column: Column) -> Any:
    """Decimals in units of their last digit."""
    return int(value.scaleb(column.type.scale)) if column.type.is_decimal else value


def _exact(value: Any, digits: int) -> Any:
    if isinstance(value, float):
        return round(value, 9)
    return Decimal(value).scaleb(-digits) if isinstance(value, int | Decimal) else value


def follow(
    text: str,
    predicate: str,
    options: Options,
    seed: int,
    sizes: tuple[int, ...],
    rows: int = 12,
    engine: bool = False,
) -> bool:
    """After every batch; at the end nothing is left.  Whether there were rows."""
    rng, any_rows = random.Random(seed), False
    for size in sizes:
        followed = Followed(text, predicate, options, engine)
        followed.check()
        changes = followed.stream(rng, rows)
        for start in range(0, len(changes), size):
            followed.apply(changes[start : start + size])
            any_rows |= followed.check()
        followed.check_empty()
    return any_rows
