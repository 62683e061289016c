"""Owns tables and lines for people: answers of queries, changes of a commit, the measures of a run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

from dlog.errors import ProgramWarning
from dlog.ir.analysis.warnings import has_results, program_warnings
from dlog.ir.primitives import PARTIAL, TOTAL
from dlog.ir.rules import Primitive, Program, Rule, Var

if TYPE_CHECKING:
    from dlog.engine.commit.commits import Commit
    from dlog.engine.commit.result import Result
    from dlog.engine.database import Database


def print_queries(database: Database) -> None:
    """Each query of a program and its answer."""
    for text, result in database.queries():
        print(text)
        print_rows(result)


def print_rows(result: Result, file: TextIO | None = None) -> None:
    """Rows under the names of their columns, aligned, and their number."""
    out = file or sys.stdout
    if not result.columns:
        print("yes" if len(result) else "no", file=out)
        return
    types = [column.type for column in result.columns]
    rows = [[type.shown(v) for v, type in zip(row, types, strict=True)] for row in result.rows()]
    header = [column.name for column in result.columns]
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    for row in (header, *rows):
        print(
            (" " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True))).rstrip(), file=out
        )
    print(f"{len(rows):,} row{'' if len(rows) == 1 else 's'}", file=out)


def print_stats(database: Database, file: TextIO | None = None) -> None:
    """One line per rule, slowest first, on standard error by default."""
    print(database.measures, file=file or sys.stderr)


def change_parts(commit: Commit, database: Database) -> list[str]:
    """`+2 edge`, `-1 +1 price`: base predicates first, then in the order of strata."""
    from dlog.engine.commit.printed_facts import in_order

    return [
        f"{signed_counts(len(change.inserted), len(change.erased))} {name}"
        for name in in_order(database.program, commit.changes)
        for change in [commit.changes[name]]
    ]


def cost_text(commit: Commit, database: Database) -> str:
    """`12 operations; delta: far (4); stages: reach (8); 0.4 ms`: what a commit cost, and how predicates
    were maintained, with the operations of each."""
    known = database.program.predicates
    ways: dict[str, list[str]] = {}
    for name, way in commit.ways.items():
        if name in known and not known[name].auxiliary:
            ways.setdefault(way, []).append(f"{name} ({commit.costs.get(name, 0):,})")
    predicates = [f"{way}: {', '.join(names)}" for way, names in ways.items()]
    return "; ".join([f"{commit.operations:,} operations", *predicates, milliseconds(commit.seconds)])


def oracle_lines(commit: Commit, database: Database) -> list[str]:
    """`p re-examined at x in [2, 2], [6, +inf]`: each rule that a trace led to the places of a change; then
    what is stored for these predicates: `p: 12 intervals, 384 bytes (trace, exact)`."""
    known = database.program.predicates
    reports = [report for report in commit.oracle_reports() if report.predicate in known]
    reports = [report for report in reports if not known[report.predicate].auxiliary]
    sizes = database.trace_sizes() if reports else {}
    traced = [name for name in dict.fromkeys(report.predicate for report in reports) if name in sizes]
    return [str(report) for report in reports] + [
        f"{name}: {intervals:,} intervals, {size:,} bytes (trace, {granularity})"
        for name in traced
        for granularity, intervals, size in [sizes[name]]
    ]


def signed_counts(inserted: int, erased: int) -> str:
    """
    >>> signed_counts(1, 2000)
    '-2,000 +1'
    """
    return " ".join(f"{sign}{n:,}" for sign, n in (("-", erased), ("+", inserted)) if n)


def milliseconds(seconds: float) -> str:
    """
    >>> milliseconds(0.0004), milliseconds(0.25), milliseconds(12.3)
    ('0.4 ms', '250 ms', '12.3 s')
    """
    if seconds >= 10:
        return f"{seconds:.1f} s"
    amount = seconds * 1000
    return f"{amount:.0f} ms" if amount >= 10 else f"{amount:.1f} ms"


def run_warnings(program: Program) -> list[str]:
    """What is probably a mistake in a program that ran."""
    found = program_warnings(program)
    if not has_results(program):
        help = "add .output PREDICATE, or a query: ?- p(x)."
        message = "the run writes and prints nothing: the program has no .output, .printsize or query"
        found.append(ProgramWarning(message, help=help))
    return [warning.render() for warning in found]


def undefined_warnings(database: Database) -> list[str]:
    """One for each rule in which primitives were undefined: its conditions were perhaps meant to hold."""
    measures = sorted(database.measures.rules.values(), key=lambda m: m.rule.id)
    return [_undefined_warning(m.rule, m.undefined) for m in measures if m.undefined]


def _undefined_warning(rule: Rule, times: int) -> str:
    forms = [f for f in rule.body.walk() if isinstance(f, Primitive) and _may_be_undefined(rule, f)]
    texts = dict.fromkeys(" ".join(f.span.text().split()) for f in forms if f.span is not None)
    what = " or ".join(list(texts)[:3]) or "a primitive"
    place = f"{rule.span.file}:{rule.span.line}: " if rule.span is not None else ""
    count = "once" if times == 1 else f"{times:,} times"
    return f"{place}warning: {what} had no value {count}; where it has none the condition is false"


def _may_be_undefined(rule: Rule, form: Primitive) -> bool:
    if form.name in PARTIAL:
        return True
    types = [rule.types[operand.name] for operand in form.args if isinstance(operand, Var)]
    return form.name in TOTAL and any(type.has_undefined_sums for type in types)
