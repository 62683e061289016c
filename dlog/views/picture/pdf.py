"""Owns scene -> PDF, of one page as large as the picture.  The only importer of fpdf.

Fonts are those that every PDF reader has: letters beyond Western European ones are shown as `?`.
"""

from __future__ import annotations

from datetime import UTC, datetime

from fpdf import FPDF

from dlog.views.picture.scene import Ellipse, Item, Label, Line, Polygon, Rectangle, Scene
from dlog.views.picture.text import DELTA, EXISTS, PLUS, SHAPES, Run, operator_strokes, split_shapes

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)  # the same picture is the same file, whenever it is drawn
_SYMBOLS = {DELTA: "d", EXISTS: "$"}  # where the font Symbol has them
_LARGEST = 14_400.0  # points: the longest side of a page that readers accept


def pdf(scene: Scene) -> bytes:
    scale = min(1.0, _LARGEST / max(scene.width, scene.height, 1.0))
    document = FPDF(unit=scale, format=(scene.width, scene.height))
    document.set_title(scene.title)
    document.set_creation_date(_EPOCH)
    document.set_auto_page_break(False)
    document.add_page()
    for item in scene.items:
        _draw(document, item)
    return bytes(document.output())


def _draw(document: FPDF, item: Item) -> None:
    if isinstance(item, Ellipse):
        style = _paint(document, item.fill, item.stroke, item.width)
        x, y = item.centre
        document.ellipse(x - item.rx, y - item.ry, 2 * item.rx, 2 * item.ry, style=style)
    elif isinstance(item, Rectangle):
        style = _paint(document, item.fill, item.stroke, item.line)
        rounded = item.radius > 0
        document.rect(
            item.x, item.y, item.width, item.height, style=style, round_corners=rounded,
            corner_radius=item.radius,
        )  # fmt: skip
    elif isinstance(item, Polygon):
        document.polygon(list(item.points), style=_paint(document, item.fill, None, 1.0))
    elif isinstance(item, Line):
        _paint(document, None, item.stroke, item.width)
        document.polyline(list(item.points), style="D")
    else:
        _label(document, item)


def _paint(document: FPDF, fill: str | None, stroke: str | None, width: float) -> str:
    if fill:
        document.set_fill_color(fill)
    if stroke:
        document.set_draw_color(stroke)
        document.set_line_width(width)
    return ("D" if stroke else "") + ("F" if fill else "")


def _label(document: FPDF, label: Label) -> None:
    x = label.x
    for run in split_shapes(label.text):
        size = label.size * run.scale
        y = label.y + run.shift * label.size
        if run.text in SHAPES:
            (cx, cy), radius, strokes = operator_strokes(run.text == PLUS, x, y, size)
            _paint(document, None, label.colour, size * 0.07)
            document.circle(cx, cy, radius, style="D")
            for (ax, ay), (bx, by) in strokes:
                document.line(ax, ay, bx, by)
        else:
            _text(document, run, x, y, size, label.colour)
        x += run.width(label.size)


def _text(document: FPDF, run: Run, x: float, y: float, size: float, colour: str) -> None:
    document.set_text_color(colour)
    for part in _by_font(run.text):
        if part in _SYMBOLS:
            document.set_font("Symbol", size=size * document.k)
            document.text(x, y, _SYMBOLS[part])
        elif part.strip():
            document.set_font("Helvetica", "B" if run.bold else "", size * document.k)
            document.text(x, y, part.encode("latin-1", "replace").decode("latin-1"))
        x += Run(part, bold=run.bold).width(size)


def _by_font(text: str) -> list[str]:
    parts: list[str] = []
    for character in text:
        if character in _SYMBOLS or not parts or parts[-1] in _SYMBOLS:
            parts.append(character)
        else:
            parts[-1] += character
    return parts
