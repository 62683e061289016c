"""Owns the numbers of a profile: gathered from the measurements of a traced run.  Knows nothing of HTML."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from dlog.engine.database import Database
from dlog.engine.state.measure import Mark, RuleMeasure
from dlog.ir.rules import Stratum
from dlog.planning.compile import CompiledJoin

Progress = Callable[[str, str, int, int], None]


class Clock:
    """Times the phases of a run from its progress reports, and passes the reports on."""

    def __init__(self, inner: Progress):
        self.inner = inner
        self.phase = "load"
        self.seconds = {"load": 0.0, "evaluate": 0.0, "write": 0.0}
        self.since = time.perf_counter()

    def __call__(self, phase: str, what: str, done: int, total: int) -> None:
        if phase != self.phase:
            self.stop()
            self.phase = phase
        self.inner(phase, what, done, total)

    def stop(self) -> None:
        """Add the time up to now to the current phase."""
        now = time.perf_counter()
        self.seconds[self.phase] = self.seconds.get(self.phase, 0.0) + now - self.since
        self.since = now


@dataclass(frozen=True)
class Run:
    """One run of a rule: an iteration of a recursion in rounds, or a slice of one driven by rows."""

    seconds: float
    rows: int
    new_rows: int
    seeks: int
    nexts: int


@dataclass(frozen=True)
class RuleProfile:
    """One rule.  `bytes` are those of the rows it produced, eight for each value."""

    id: int
    text: str
    predicates: tuple[str, ...]
    file: str
    line: int
    seconds: float
    rows: int
    iterations: int
    seeks: int
    nexts: int
    bytes: int
    runs: tuple[Run, ...]
    plans: tuple[CompiledJoin, ...]


@dataclass(frozen=True)
class Profile:
    """A run.  Rules are the slowest first; `recursions` has the runs of each recursive stratum, summed."""

    name: str
    phases: dict[str, float]
    rules: tuple[RuleProfile, ...]
    recursions: tuple[tuple[str, tuple[Run, ...]], ...]
    sources: dict[str, str] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)  # of each predicate at the end
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)  # their names
    detection_lines: tuple[str, ...] = ()  # how recursions detected new rows, a line each


def profile_of(database: Database, name: str, phases: dict[str, float]) -> Profile:
    """O(rules + runs), and the text of the program."""
    measures = sorted(database.measures.rules.values(), key=lambda m: -m.seconds)
    rules = tuple(map(_rule, measures))
    predicates = database.store.predicates
    return Profile(
        name,
        dict(phases),
        rules,
        tuple(r for s in database.program.strata if s.recursive and (r := _recursion(s, rules)) is not None),
        _sources(rules),
        {p: len(relation) for p, relation in database.store.relations.items()},
        {p: tuple(column.name for column in predicates[p].columns) for p in predicates},
        tuple(database.measures.detection_lines()),
    )


def _rule(measure: RuleMeasure) -> RuleProfile:
    rule, trace = measure.rule, measure.trace
    values = sum(len(head.args) for head in rule.heads)
    return RuleProfile(
        rule.id,
        str(rule),
        tuple(head.predicate for head in rule.heads),
        rule.span.file if rule.span else "",
        rule.span.line if rule.span else 0,
        measure.seconds,
        measure.rows,
        measure.iterations,
        measure.seeks,
        measure.nexts,
        8 * values * measure.rows,
        _runs(trace.marks) if trace else (),
        tuple(trace.plans) if trace else (),
    )


def _runs(marks: list[Mark]) -> tuple[Run, ...]:
    """Differences between the totals after each run."""
    before = [Mark(0.0, 0, 0, 0, 0), *marks]
    return tuple(
        Run(
            b.seconds - a.seconds,
            b.rows - a.rows,
            b.new_rows - a.new_rows,
            b.seeks - a.seeks,
            b.nexts - a.nexts,
        )
        for a, b in zip(before, marks, strict=False)
    )


def _recursion(stratum: Stratum, rules: tuple[RuleProfile, ...]) -> tuple[str, tuple[Run, ...]] | None:
    """The recursive rules of a stratum together: sums per run.  None when none of them ran twice."""
    inside = [r.runs for r in rules if set(r.predicates) & set(stratum.predicates)]
    length = max(map(len, inside), default=0)
    if length < 2:
        return None
    sums = []
    for i in range(length):
        runs = [runs[i] for runs in inside if i < len(runs) and len(runs) > 1]
        sums.append(
            Run(
                sum(r.seconds for r in runs),
                sum(r.rows for r in runs),
                sum(r.new_rows for r in runs),
                sum(r.seeks for r in runs),
                sum(r.nexts for r in runs),
            )
        )
    return ", ".join(stratum.predicates), tuple(sums)


def _sources(rules: tuple[RuleProfile, ...]) -> dict[str, str]:
    """The texts of the files that contain the rules; a text that is not a file is left out."""
    texts = {}
    for file in sorted({rule.file for rule in rules if rule.file}):
        try:
            with open(file, encoding="utf-8", errors="replace") as opened:
                texts[file] = opened.read()
        except OSError:
            continue
    return texts
