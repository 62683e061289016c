"""Owns the picture of a plan: one row for each step, in the order they run, one column for each atom.

A dot marks that a step reads a level of an atom's index; beside it is the column at that level.  The dots of
a leap, which intersects several atoms, are joined; an atom's own dots are on one line, its trie from the
first level down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from dlog.engine.body.readable import TABLE
from dlog.lftj import plan as p
from dlog.planning.compile import CompiledJoin
from dlog.planning.versions import base_name, is_change, is_old

STEP, TOP, ATOM, INDENT, MARGIN, CHARACTER = 30, 58, 150, 18, 14, 7.3


@dataclass
class _Row:
    """A step as it is drawn: `dots` are the levels read of each atom."""

    depth: int
    label: str
    kind: str
    dots: dict[int, int] = field(default_factory=dict)
    expected: str = ""


def picture(join: CompiledJoin, rows: Mapping[str, int], columns: Mapping[str, tuple[str, ...]]) -> str:
    """Inline SVG.  `rows` and `columns` are those of the predicates.  O(steps * atoms)."""
    *steps, end = join.plan.steps
    lines = list(_steps([*steps, *join.leftover, end], 0, _names(join)))
    if join.given:  # a row of the recursive atom drives the plan
        lines.insert(0, _Row(0, f"given a new row with {', '.join(name for name, _ in join.given)}", "block"))
    sizes = dict(zip(join.key_order.variables, join.key_order.sizes, strict=True))
    for line in lines:
        if line.kind == "leap" and line.label.split()[1] in sizes:
            line.expected = _round(sizes[line.label.split()[1]])
    left = MARGIN + max(max(len(line.label) * CHARACTER + line.depth * INDENT for line in lines), 120) + 24
    width = left + ATOM * len(join.atoms) + 96
    height = TOP + STEP * len(lines) + MARGIN
    parts = [*_heads(join, rows, columns, left), *_tries(lines, left)]
    for i, line in enumerate(lines):
        parts += _line(line, TOP + STEP * i + STEP / 2, left, width, join, columns)
    return (
        f'<svg class="plan" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}" '
        f'role="img" aria-label="plan">{"".join(parts)}</svg>'
    )


def _names(join: CompiledJoin) -> dict[int, str]:
    """The name of a slot: its variable, or a constant's code."""
    constants = {slot: f"constant {code}" for slot, code in join.plan.constants}
    names = {slot: "?" if name.startswith("$temporary") else name for name, slot in join.names}
    return constants | names


def _steps(steps: Sequence[p.Step], depth: int, names: Mapping[int, str]) -> Iterator[_Row]:
    for step in steps:
        yield from _step(step, depth, names)


def _step(step: p.Step, depth: int, names: Mapping[int, str]) -> Iterator[_Row]:
    def name(slot: int) -> str:
        return names.get(slot, "?")

    match step:
        case p.Leap():
            low = [f"{'>' if strict else '≥'} {name(slot)}" for slot, strict in step.lower]
            high = [f"{'<' if strict else '≤'} {name(slot)}" for slot, strict in step.upper]
            label = " ".join([f"each {name(step.slot)}", *low, *high])
            yield _Row(depth, label, "leap", dict(step.participants))
        case p.Seek():
            yield _Row(depth, f"find {name(step.operand)}", "seek", {step.atom: step.level})
        case p.Value():
            yield _Row(depth, f"take {name(step.slot)}", "seek", {step.atom: step.level})
        case p.Holds():
            yield _Row(depth, "holds", "seek", {step.atom: 0})
        case p.Compare() | p.RankCompare():
            yield _Row(depth, f"{name(step.a)} {step.op} {name(step.b)}", "test")
        case p.Compute():
            by = f" {name(step.b)}" if step.b >= 0 else ""
            yield _Row(depth, f"{name(step.dst)} = {step.op} {name(step.a)}{by}", "test")
        case p.MakeRecord():
            yield _Row(depth, f"{name(step.dst)} = record of {', '.join(map(name, step.fields))}", "test")
        case p.ReadField():
            label = f"{name(step.dst)} = field {step.index + 1} of {name(step.record)}"
            yield _Row(depth, label, "test")
        case p.RangeStep():
            yield _Row(depth, f"each {name(step.slot)} from {name(step.start)} to {name(step.end)}", "test")
        case p.Not() | p.Exists():
            label = "only if there is no" if isinstance(step, p.Not) else "if there is any"
            yield _Row(depth, label, "block")
            yield from _steps(step.steps, depth + 1, names)
        case p.Or():
            for number, branch in enumerate(step.branches):
                yield _Row(depth, "or" if number else "either", "block")
                yield from _steps(branch, depth + 1, names)
        case p.Emit():
            yield _Row(depth, f"row ({', '.join(map(name, step.slots))})", "emit")
        case p.Count():
            yield _Row(depth, "count", "emit")


def _heads(
    join: CompiledJoin, rows: Mapping[str, int], columns: Mapping[str, tuple[str, ...]], left: float
) -> Iterator[str]:
    yield f'<text class="quiet" x="{MARGIN}" y="{TOP - 12}">step</text>'
    for number, use in enumerate(join.atoms):
        x = left + ATOM * number
        order = ", ".join(_column(use.predicate, c, columns) for c in use.columns)
        count = rows.get(base_name(use.predicate))
        hint = f"index by {order}" if order else "any row"
        below = _shorten(f"by {order}" if order else "any row", 21)
        if count is not None and not is_change(use.predicate):
            hint += f"; {count:,} rows at the end"
        yield (
            f'<g data-hint="{escape(hint)}"><title>{escape(hint)}</title>'
            f'<text class="atom" x="{x}" y="20">{escape(_shorten(_title(use.predicate), 19))}</text>'
            f'<text class="quiet" x="{x}" y="38">{escape(below)}</text></g>'
        )
    yield (
        f'<text class="quiet" x="{left + ATOM * len(join.atoms) + 80:.0f}" y="{TOP - 12}" '
        f'text-anchor="end">expected</text>'
    )


def _tries(lines: list[_Row], left: float) -> Iterator[str]:
    """The line that connects an atom's dots."""
    for atom in sorted({atom for line in lines for atom in line.dots}):
        used = [i for i, line in enumerate(lines) if atom in line.dots]
        x, y1, y2 = _x(atom, left), TOP + STEP * (used[0] + 0.5), TOP + STEP * (used[-1] + 0.5)
        yield f'<line class="trie" x1="{x}" y1="{y1}" x2="{x}" y2="{y2}"/>'


def _line(
    line: _Row,
    y: float,
    left: float,
    width: float,
    join: CompiledJoin,
    columns: Mapping[str, tuple[str, ...]],
) -> Iterator[str]:
    yield f'<line class="grid" x1="{MARGIN}" y1="{y + STEP / 2}" x2="{width - MARGIN}" y2="{y + STEP / 2}"/>'
    x: float = MARGIN + line.depth * INDENT
    yield f'<text class="{line.kind}" x="{x}" y="{y + 4}">{escape(line.label)}</text>'
    if len(line.dots) > 1:
        ends = sorted(_x(atom, left) for atom in line.dots)
        yield f'<line class="leapfrog" x1="{ends[0]}" y1="{y}" x2="{ends[-1]}" y2="{y}"/>'
    for atom, level in line.dots.items():
        use = join.atoms[atom]
        column = _column(use.predicate, use.columns[level], columns) if level < len(use.columns) else ""
        dot = _x(atom, left)
        yield f'<circle class="{line.kind}" cx="{dot}" cy="{y}" r="5"/>'
        yield f'<text class="quiet" x="{dot + 10}" y="{y - 5}">{escape(_shorten(column, 16))}</text>'
    if line.expected:
        x = width - 16
        yield f'<text class="quiet" x="{x:.0f}" y="{y + 4}" text-anchor="end">~{line.expected}</text>'


def _x(atom: int, left: float) -> float:
    return left + ATOM * atom + 6


def _title(predicate: str) -> str:
    if predicate == TABLE:
        return "rows so far"
    name = base_name(predicate)
    return f"new {name}" if is_change(predicate) else f"old {name}" if is_old(predicate) else name


def _column(predicate: str, column: int, columns: Mapping[str, tuple[str, ...]]) -> str:
    names = columns.get(base_name(predicate), ())
    return names[column] if column < len(names) else f"column {column + 1}"


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _round(size: float) -> str:
    return f"{size:.2g}" if size < 10 else f"{size:,.0f}"
