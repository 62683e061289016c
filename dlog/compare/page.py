"""Owns a comparison as an HTML page that is one file: the table with bars, and the time of each transaction
as lines.  All text of the program is escaped."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from dlog.compare.measure import OWN, Comparison, Measured
from dlog.compare.table import HEADER, cells, note, sentences
from dlog.engine.maintain.explain_offers import size_text, time_text
from dlog.profile.page import document, write_file

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 960, 300, 70, 24, 10
MOST_POINTS = 240  # of a line; neighbouring transactions share one
COLOURS = ("#1f6feb", "#b3480f", "#1a7f4b", "#8250df", "#bf3989", "#9a6700", "#57606a", "#0b7285")
STYLE = """tr.own { background: var(--accent-soft); }
td:last-child, th:last-child { text-align: left; white-space: normal; min-width: 220px; }
th:first-child, td:first-child { min-width: 150px; width: auto; }
polyline { fill: none; stroke-width: 1.6; } polyline.own { stroke-width: 3.2; opacity: 0.55; }
"""


def write_page(path: Path, comparison: Comparison) -> None:
    write_file(path, page(comparison))


def page(comparison: Comparison) -> str:
    name = comparison.program + (f": {comparison.predicate}" if comparison.predicate else "")
    body = "\n".join([*_totals(comparison, name), *_table(comparison), *_lines(comparison)])
    return document(f"{name}: strategies", body, STYLE)


def _measured(comparison: Comparison) -> list[tuple[str, Measured]]:
    """Each line that has times, with its colour."""
    runs = [run for run in comparison.runs if run.seconds]
    return [(COLOURS[number % len(COLOURS)], run) for number, run in enumerate(runs)]


def _totals(comparison: Comparison, name: str) -> Iterator[str]:
    yield f"<h1>{escape(name)}</h1>"
    yield f'<p class="quiet">Transactions of {escape(comparison.file)} under every strategy.</p>'
    own = comparison.own
    numbers = {
        "transactions": f"{comparison.transactions:,}",
        "median, own choice": time_text(own.median * 1e6),
        "of the fastest": f"{comparison.ratio:.2f} times",
        "memory": size_text(own.memory),
    }
    cards = "".join(
        f"<div><b>{number}</b><span class='quiet'>{title}</span></div>" for title, number in numbers.items()
    )
    yield f'<div class="totals">{cards}</div>'
    for sentence in sentences(comparison):
        yield f"<p>{escape(sentence)}</p>"


def _table(comparison: Comparison) -> Iterator[str]:
    most = max(run.total for run in comparison.runs if run.seconds)
    titles = "".join(f'<th data-sort="number">{name}</th>' for name in HEADER[1:])
    yield "<h2>Strategies</h2>"
    yield '<div class="rules scroll"><table class="sortable" id="strategies">'
    yield f"<thead><tr><th>{HEADER[0]}</th>{titles}<th>note</th></tr></thead><tbody>"
    for run in comparison.runs:
        kind = ' class="own"' if run.name == OWN else ""
        if run.refused:
            empty = '<td data-value="0"></td>' * (len(HEADER) - 1)
            yield f"<tr><td>{escape(run.name)}</td>{empty}<td>refused: {escape(run.refused)}</td></tr>"
            continue
        values = (run.build, run.median, run.total, run.operations or 0, run.memory)
        texts = zip(values, cells(run)[1:], strict=True)
        figures = "".join(f'<td data-value="{value}">{escape(text)}</td>' for value, text in texts)
        share = f'<div class="share" style="width:{100 * run.total / most:.1f}%"></div>'
        said = escape(note(comparison, run))
        yield f"<tr{kind}><td>{escape(run.name)}{share}</td>{figures}<td>{said}</td></tr>"
    yield "</tbody></table></div>"


def _lines(comparison: Comparison) -> Iterator[str]:
    """The time of each transaction, on a logarithmic scale."""
    found = _measured(comparison)
    times = [seconds for _, run in found for seconds in run.seconds]
    low = 10 ** math.floor(math.log10(max(min(times), 1e-7)))
    high = 10 ** math.ceil(math.log10(max(*times, 10 * low)))
    yield "<h2>Time of each transaction</h2>"
    yield '<div class="card">'
    yield f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" style="max-width:none" role="img">'
    for power in range(round(math.log10(low)), round(math.log10(high)) + 1):
        y = _height(10.0**power, low, high)
        yield f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{time_text(10.0**power * 1e6)}</text>'
    for colour, run in found:
        kind = ' class="own"' if run.name == OWN else ""
        points = " ".join(_points(run.seconds, comparison.transactions, low, high))
        yield (
            f'<g data-hint="{escape(run.name)}"><polyline{kind} points="{points}" stroke="{colour}">'
            f"<title>{escape(run.name)}</title></polyline></g>"
        )
    yield f'<text x="{LEFT}" y="{HEIGHT - 5}">1</text>'
    end = f"{comparison.transactions:,}"
    yield f'<text x="{WIDTH}" y="{HEIGHT - 5}" text-anchor="end">{end}</text></svg>'
    names = "".join(f'<span><i style="background:{c}"></i>{escape(run.name)}</span>' for c, run in found)
    yield f'<div class="legend">{names}</div></div>'


def _points(seconds: Sequence[float], transactions: int, low: float, high: float) -> Iterator[str]:
    """Means of neighbouring transactions; a single one is a short line."""
    each = -(-transactions // MOST_POINTS)
    step = (WIDTH - LEFT) / max(transactions, 1)
    for start in range(0, len(seconds), each):
        group = seconds[start : start + each]
        x, y = LEFT + step * (start + len(group) / 2), _height(sum(group) / len(group), low, high)
        if len(seconds) <= each:
            yield f"{LEFT},{y:.1f}"
        yield f"{x:.1f},{y:.1f}"


def _height(seconds: float, low: float, high: float) -> float:
    share = math.log(max(seconds, low) / low) / math.log(high / low)
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share
