"""Owns the explanation of levels of maps as text: every map with its definition, level, first content and
readers, and what each event does to it and why; then what several choices of maps are expected to cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from dlog.m3.syntax import ast
from dlog.multilevel.initial import Zero
from dlog.multilevel.notation import text
from dlog.multilevel.program import MapReport, Refusal, Step
from dlog.multilevel.selection.choice import Selection
from dlog.multilevel.selection.estimate import Estimate
from dlog.multilevel.selection.sizes import ROWS
from dlog.views.levels.program import Levels
from dlog.views.levels.sampled import Sample
from dlog.views.levels.statements import Done, order_keys, statements

Selections = Mapping[str, Selection | Refusal]
EVENTS = {ast.BATCH: "rows of {}", ast.INSERT: "+{}", ast.DELETE: "-{}", ast.READY: "tables are loaded"}
SIGNS = {0: ast.BATCH, 1: ast.INSERT, -1: ast.DELETE}


def explain(levels: Levels, selections: Selections | None = None, sample: Sample | None = None) -> str:
    """With selections, they stand side by side at the end, as estimated from the sample.

    >>> from dlog.views.levels.program import levels
    >>> from dlog.views.sql.files import parse_sql
    >>> query = parse_sql("CREATE STREAM R(a int); SELECT COUNT(DISTINCT a) AS n FROM R;")
    >>> explain(levels(query)).splitlines()[2]
    'n[] := AggSum([], EXISTS(R(a)))'
    """
    lines = [*_lines(levels), *(_compared(selections, sample) if selections and sample else ())]
    return "\n".join(lines) + "\n"


def _lines(levels: Levels) -> Iterator[str]:
    yield f"levels of maps: {levels.query.reason}"
    done, ordered = statements(levels.m3), order_keys(levels.m3)
    for report in levels.program.maps:
        yield ""
        yield f"{signature(report)} := {text(report.definition)}"
        yield f"  level {report.level}; {'; '.join(_facts(levels, report, ordered[report.name]))}"
        for one in done:
            if one.statement.target.name == report.name:
                yield from _statement(one, report)
    reported = {report.name for report in levels.program.maps}
    for declared in levels.m3.maps:
        if declared.name not in reported:
            yield from _helper(declared, done)
    shown = [*_columns(levels), *_order(levels)]
    yield from ("", *shown) if shown else ()


def signature(report: MapReport) -> str:
    """`M2[a]`; `M2[b][a]` if b is an input variable.

    >>> signature(MapReport("M", ("b",), ("a",), ast.Constant("int", 1), 1, Zero(), (), ()))
    'M[b][a]'
    """
    inputs = f"[{', '.join(report.inputs)}]" if report.inputs else ""
    return f"{report.name}{inputs}[{', '.join(report.keys)}]"


def _facts(levels: Levels, report: MapReport, ordered: tuple[str, ...]) -> Iterator[str]:
    readers = [name for name in report.readers if name != report.name]
    values = _values(levels)
    shown = [q.name for q in levels.m3.queries if q.name in values and _reads(q.expression, report.name)]
    if report.name == levels.query.present:
        yield "shows which groups there are"
    if shown:
        yield f"read by the column{'s' if len(shown) > 1 else ''} {', '.join(shown)}"
    if readers:
        yield f"read by {', '.join(readers)}"
    if ordered:
        yield f"ordered by {', '.join(ordered)}, of which ranges are read"
    if isinstance(report.initial, Zero):
        yield f"empty at first, since {report.initial.reason}"
    else:
        yield report.initial.reason


def _reads(node: ast.Node, name: str) -> bool:
    return any(isinstance(n, ast.MapAccess) and n.name == name for n in node.walk())


def _statement(one: Done, report: MapReport) -> Iterator[str]:
    reason = next((s.reason for s in report.steps if _when(s) == (one.event, one.relation)), "")
    yield f"  {EVENTS[one.event].format(one.relation)}: {one.statement.op} since {reason}"
    yield f"    {text(one.statement.target)} {one.statement.op} {text(one.statement.expression)}"


def _when(step: Step) -> tuple[str, str | None]:
    return (ast.READY, None) if step.event is None else (SIGNS[step.event.sign], step.event.relation)


def _helper(declared: ast.MapDeclaration, done: list[Done]) -> Iterator[str]:
    """Maps of a batch, and maps in which a statement waits for others."""
    yield ""
    what = "rows of the batch" if declared.definition is not None else "a change that waits for others"
    yield f"{declared.name}[{', '.join(k.name for k in declared.keys)}]: {what}"
    for one in done:
        if one.statement.target.name == declared.name:
            yield f"    {text(one.statement.target)} {one.statement.op} {text(one.statement.expression)}"


def _columns(levels: Levels) -> Iterator[str]:
    """How columns are computed that are not groups."""
    values = _values(levels)
    for query in levels.m3.queries:
        if query.name in values:
            yield f"column {query.name} := {text(query.expression)}"


def _values(levels: Levels) -> set[str]:
    """The names of the queries that columns show."""
    return {name for column in levels.columns for name in (column.value, column.divisor) if name}


def _order(levels: Levels) -> Iterator[str]:
    names = [column.name for column in levels.query.columns]
    if levels.query.order:
        items = (names[o.column] + (" DESC" if o.descending else "") for o in levels.query.order)
        yield f"shown in the order of {', '.join(items)}"


# ---- selections side by side


def _compared(selections: Selections, sample: Sample) -> Iterator[str]:
    """A column for each selection: how many maps, the time for a row of each stream, memory."""
    yield ""
    yield f"estimates, {_basis(selections, sample)}"
    known = sample.known
    streams = next((list(p.estimate.time) for p in selections.values() if isinstance(p, Selection)), [])
    times = [[f"us for a row of {stream}", *_cells(selections, _time_of(stream))] for stream in streams]
    rows = [
        ["", *selections],
        ["maps", *_cells(selections, lambda e: f"{len(e.maps):,}")],
        *times,
        ["us for a row, with memory", *_cells(selections, lambda e: _short(e.cost(known)))],
        ["KB", *_cells(selections, lambda e: _short(e.bytes / 1e3))],
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for name, *cells in rows:
        shown = (cell.rjust(w) for cell, w in zip(cells, widths[1:], strict=True))
        yield "  ".join(["", name.ljust(widths[0]), *shown]).rstrip()
    for name, selection in selections.items():
        if isinstance(selection, Refusal):
            yield f"  {name}: there is no program: {selection.reason}"


def _basis(selections: Selections, sample: Sample) -> str:
    every = {s.name for p in selections.values() if isinstance(p, Selection) for s in p.program.m3.sources}
    if not sample.relations:
        return f"where each relation is taken to have {ROWS:,.0f} rows"
    rest = f"; others are taken to have {ROWS:,.0f} rows" if every - set(sample.relations) else ""
    return f"by the {sample.by} of {', '.join(sample.relations)}{rest}"


def _cells(selections: Selections, shown: Callable[[Estimate], str]) -> Iterator[str]:
    for selection in selections.values():
        yield shown(selection.estimate) if isinstance(selection, Selection) else "-"


def _time_of(stream: str) -> Callable[[Estimate], str]:
    return lambda estimate: _short(estimate.time[stream])


def _short(number: float) -> str:
    """Three digits.

    >>> [_short(n) for n in (0.01234, 1.5, 1234567)]
    ['0.0123', '1.50', '1,230,000']
    """
    if number >= 1000:
        digits = len(str(int(number))) - 3
        return f"{round(number, -digits):,.0f}"
    return f"{number:.0f}" if number >= 100 else f"{number:#.3g}"
