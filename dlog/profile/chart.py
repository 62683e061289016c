"""Owns bars: rows per run as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dlog.profile.data import Run

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 150, 64, 22, 10
MOST_BARS = 120


def bars(runs: Sequence[Run]) -> str:
    """One bar per run, or per group of neighbouring ones when they are many."""
    each = -(-len(runs) // MOST_BARS)
    groups = [runs[i : i + each] for i in range(0, len(runs), each)]
    most = max(max(sum(r.rows for r in group) for group in groups), 1)
    room = WIDTH - LEFT
    step = room / len(groups)
    gap = 2 if step > 6 else 0
    parts = []
    for i, group in enumerate(groups):
        rows = sum(r.rows for r in group)
        height = (HEIGHT - BOTTOM - TOP) * rows / most
        hint = _hint(i * each + 1, group)
        parts.append(
            f'<g data-hint="{escape(hint)}"><rect class="hit" x="{LEFT + i * step:.1f}" y="{TOP}" '
            f'width="{step:.1f}" height="{HEIGHT - BOTTOM - TOP}"/>'
            f'<rect class="bar" x="{LEFT + i * step + gap / 2:.1f}" y="{HEIGHT - BOTTOM - height:.1f}" '
            f'width="{max(step - gap, 1):.1f}" height="{height:.1f}"><title>{escape(hint)}</title></rect></g>'
        )
    base = HEIGHT - BOTTOM
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="rows per run">'
        f'<line class="axis" x1="{LEFT}" y1="{base}" x2="{WIDTH}" y2="{base}"/>'
        f'<line class="grid" x1="{LEFT}" y1="{TOP}" x2="{WIDTH}" y2="{TOP}"/>'
        f'<text x="{LEFT - 8}" y="{TOP + 4}" text-anchor="end">{most:,}</text>'
        f'<text x="{LEFT - 8}" y="{base + 4}" text-anchor="end">0</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 5}">run 1</text>'
        f'<text x="{WIDTH}" y="{HEIGHT - 5}" text-anchor="end">{len(runs):,}</text>'
        f"{''.join(parts)}</svg>"
    )


def _hint(first: int, group: Sequence[Run]) -> str:
    last = first + len(group) - 1
    name = f"run {first:,}" if first == last else f"runs {first:,} to {last:,}"
    rows, seconds = sum(r.rows for r in group), sum(r.seconds for r in group)
    return f"{name}: {rows:,} rows, {milliseconds(seconds)}"


def milliseconds(seconds: float) -> str:
    """
    >>> milliseconds(0.00042), milliseconds(0.25), milliseconds(1.234), milliseconds(12.3)
    ('0.42 ms', '250 ms', '1.23 s', '12.3 s')
    """
    if seconds >= 1:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    amount = seconds * 1000
    return f"{amount:.0f} ms" if amount >= 10 else f"{amount:.2f} ms"
