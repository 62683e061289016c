"""Owns scene -> SVG.  Every run of text has the width that it was measured with, whatever font is
available.
"""

from __future__ import annotations

from html import escape

from dlog.views.picture.scene import Ellipse, Item, Label, Line, Polygon, Rectangle, Scene
from dlog.views.picture.text import PLUS, SHAPES, Run, operator_strokes, split_shapes

_FONT = "Helvetica, Arial, Liberation Sans, sans-serif"


def svg(scene: Scene) -> str:
    width, height = _number(scene.width), _number(scene.height)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}pt" height="{height}pt"'
        f' viewBox="0 0 {width} {height}" font-family="{_FONT}">',
        f"<title>{escape(scene.title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for item in scene.items:
        lines += _written(item)
    return "\n".join([*lines, "</svg>", ""])


def _written(item: Item) -> list[str]:
    if isinstance(item, Ellipse):
        x, y, rx, ry = map(_number, (*item.centre, item.rx, item.ry))
        return [
            f'<ellipse cx="{x}" cy="{y}" rx="{rx}" ry="{ry}"{_paint(item.fill, item.stroke, item.width)}/>'
        ]
    if isinstance(item, Rectangle):
        place = f'x="{_number(item.x)}" y="{_number(item.y)}"'
        size = f'width="{_number(item.width)}" height="{_number(item.height)}" rx="{_number(item.radius)}"'
        return [f"<rect {place} {size}{_paint(item.fill, item.stroke, item.line)}/>"]
    if isinstance(item, Polygon):
        return [f'<polygon points="{_points(item.points)}" fill="{item.fill}"/>']
    if isinstance(item, Line):
        return [f'<polyline points="{_points(item.points)}"{_paint(None, item.stroke, item.width)}/>']
    return _label(item)


def _label(label: Label) -> list[str]:
    found, x = [], label.x
    for run in split_shapes(label.text):
        size = label.size * run.scale
        y = label.y + run.shift * label.size
        if run.text in SHAPES:
            found += _operator(run, x, y, size, label.colour)
        elif run.text.strip():
            found.append(_text(run, x, y, label))
        x += run.width(label.size)
    return found


def _text(run: Run, x: float, y: float, label: Label) -> str:
    weight = ' font-weight="bold"' if run.bold else ""
    begin = len(run.text) - len(run.text.lstrip(" "))
    x += Run(" " * begin, run.scale, bold=run.bold).width(label.size)
    shown = Run(run.text.strip(" "), run.scale, run.shift, run.bold)
    return (
        f'<text x="{_number(x)}" y="{_number(y)}" font-size="{_number(label.size * run.scale)}"'
        f' textLength="{_number(shown.width(label.size))}" lengthAdjust="spacingAndGlyphs"'
        f' fill="{label.colour}"{weight}>{escape(shown.text)}</text>'
    )


def _operator(run: Run, x: float, y: float, size: float, colour: str) -> list[str]:
    (cx, cy), radius, strokes = operator_strokes(run.text == PLUS, x, y, size)
    width = _number(size * 0.07)
    paint = f' fill="none" stroke="{colour}" stroke-width="{width}"'
    circle = f'<circle cx="{_number(cx)}" cy="{_number(cy)}" r="{_number(radius)}"{paint}/>'
    return [circle, *(f'<polyline points="{_points(stroke)}"{paint}/>' for stroke in strokes)]


def _paint(fill: str | None, stroke: str | None, width: float) -> str:
    line = f' stroke="{stroke}" stroke-width="{_number(width)}"' if stroke else ""
    return f' fill="{fill or "none"}"{line}'


def _points(points: tuple[tuple[float, float], ...]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
