"""Owns measurements of a running program: per rule its rows, iterations, operations and time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from dlog.ir.lower.aggregates import is_domain
from dlog.ir.rules import Rule
from dlog.lftj.triejoin import Counters
from dlog.planning.compile import CompiledJoin
from dlog.planning.versions import base_name

_WIDTH = 100  # of a rule in a table
CROSS_PRODUCT_ROWS = 100_000  # from which on a cross product is reported


@dataclass(frozen=True)
class Mark:
    """A rule's totals after one of its runs.  See `RuleMeasure`."""

    seconds: float
    rows: int
    new_rows: int
    seeks: int
    nexts: int


@dataclass
class Trace:
    """A profile's data of a rule: a mark after each run, and the plans that ran."""

    marks: list[Mark] = field(default_factory=list)
    plans: list[CompiledJoin] = field(default_factory=list)


@dataclass
class RuleMeasure:
    """One rule's share.  `rows` were produced, `new_rows` of them were new to the head."""

    rule: Rule
    rows: int = 0
    new_rows: int = 0
    iterations: int = 0
    seeks: int = 0
    nexts: int = 0
    undefined: int = 0
    seconds: float = 0.0
    trace: Trace | None = None  # only while a profile is made

    @property
    def operations(self) -> int:
        return self.seeks + self.nexts

    def mark(self, rows: int = 0, new_rows: int = 0, seeks: int = 0, nexts: int = 0) -> None:
        """After a run, for a profile.  The arguments are what is done but not yet added to this measure."""
        if self.trace is not None:
            done = (self.rows + rows, self.new_rows + new_rows, self.seeks + seeks, self.nexts + nexts)
            self.trace.marks.append(Mark(self.seconds, *done))

    def planned(self, plan: CompiledJoin) -> None:
        """For a profile: a plan that is going to run."""
        if self.trace is not None:
            self.trace.plans.append(plan)

    def count(self, counters: Counters) -> None:
        self.seeks += counters.seeks
        self.nexts += counters.nexts
        self.undefined += counters.undefined


@dataclass
class Measures:
    """Of one evaluation."""

    rules: dict[int, RuleMeasure] = field(default_factory=dict)
    load_seconds: float = 0.0
    evaluate_seconds: float = 0.0
    on_warning: Callable[[str], None] | None = None
    warned: set[str] = field(default_factory=set)
    traced: bool = False  # a profile is made
    sets: dict[str, tuple[str, ...]] = field(default_factory=dict)  # how a recursion detected new rows

    def __str__(self) -> str:
        """A table: one line per rule, slowest first; then how recursions detected new rows."""
        header = ["rows", "iterations", "seeks", "nexts", "seconds"]
        lines = [(header, "rule")]
        for m in sorted(self.rules.values(), key=lambda m: -m.seconds):
            counts = [f"{n:,}" for n in (m.rows, m.iterations, m.seeks, m.nexts)]
            lines.append(([*counts, f"{m.seconds:.4f}"], _rule_text(m.rule)))
        widths = [max(map(len, column)) for column in zip(*(cells for cells, _ in lines), strict=True)]
        table = [
            "  ".join([*(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)), text])
            for cells, text in lines
        ]
        return "\n".join([*table, *self.detection_lines()])

    def detected_by(self, predicate: str, sets: Iterable[str]) -> None:
        """New rows of a recursive predicate were detected by these sets, in order."""
        self.sets[predicate] = tuple(dict.fromkeys((*self.sets.get(predicate, ()), *sets)))

    def detection_lines(self) -> list[str]:
        return [
            f"{name}: new rows were detected with {', then '.join(sets)}"
            for name, sets in self.sets.items()
            if not is_domain(name)
        ]

    def measure(self, rule: Rule) -> RuleMeasure:
        """The measure of a rule, from now on."""
        trace = Trace() if self.traced and rule.id not in self.rules else None
        return self.rules.setdefault(rule.id, RuleMeasure(rule, trace=trace))

    @contextmanager
    def of(self, rule: Rule) -> Iterator[RuleMeasure]:
        measure = self.measure(rule)
        measure.iterations += 1
        started = time.perf_counter()
        try:
            yield measure
        finally:
            measure.seconds += time.perf_counter() - started
            measure.mark()

    def warn_cross_product(
        self, rule: Rule, parts: Sequence[Sequence[str]], rows: Callable[[str], int]
    ) -> bool:
        """Reports a rule whose atoms are in parts that share no variable, if these are large.

        Returns whether they are.
        """
        expected = math.prod(max(map(rows, part)) for part in parts) if parts else 0
        if expected < CROSS_PRODUCT_ROWS:
            return False
        names = " and ".join(", ".join(dict.fromkeys(map(base_name, part))) for part in parts)
        where = f"{rule.span.file}:{rule.span.line}: " if rule.span else ""
        self.warn(f"{where}warning: {names} share no variable: a cross product of about {expected:,} rows")
        return True

    def warn(self, text: str) -> None:
        """Gives each warning once."""
        if text not in self.warned:
            self.warned.add(text)
            if self.on_warning is not None:
                self.on_warning(text)


def _rule_text(rule: Rule) -> str:
    """A rule by its line and its text; an inline aggregate is a separate rule, and so are the values
    from outside that it ranges over."""
    if rule.span is None:
        return str(rule)
    words = " ".join(rule.span.text().split())
    groups = "groups of " if is_domain(rule.heads[0].predicate) else ""
    shown = words if len(words) <= _WIDTH else words[: _WIDTH - 3] + "..."
    return f"line {rule.span.line}: {groups}{shown}"
