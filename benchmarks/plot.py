"""Line charts as SVG: a panel for each measure, both axes logarithmic, drawn with dlog's own pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dlog.views.picture.scene import BLACK, GREY, Ellipse, Label, Line, Rectangle, Scene, hues
from dlog.views.picture.svg import svg
from dlog.views.picture.text import plain, width

Points = Sequence[tuple[float, float]]
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, SIZE = 330.0, 230.0, 52.0, 40.0, 30.0, 9.0


@dataclass(frozen=True)
class Panel:
    """`series` are points by name; `across` and `up` say what the axes are."""

    title: str
    across: str
    up: str
    series: Mapping[str, Points]


def chart(title: str, panels: Sequence[Panel]) -> str:
    """SVG of the panels side by side, with one legend.  Each name has the same colour in all panels."""
    names = list(dict.fromkeys(name for panel in panels for name in panel.series))
    colours = {name: strong for name, (_, strong) in zip(names, hues(len(names)), strict=True)}
    scene = Scene(title, WIDTH * len(panels) + 16, HEIGHT + 24 + 14 * len(names))
    for number, panel in enumerate(panels):
        _panel(scene, panel, 8 + WIDTH * number, colours)
    for number, name in enumerate(names):
        y = HEIGHT + 22 + 14 * number
        scene.add(Line(((LEFT, y - 3), (LEFT + 18, y - 3)), colours[name], 2.0))
        scene.add(Label(LEFT + 24, y, plain(name), SIZE))
    return svg(scene)


def _panel(scene: Scene, panel: Panel, left: float, colours: Mapping[str, str]) -> None:
    x0, x1, y0, y1 = left + LEFT, left + WIDTH - 12, HEIGHT - BOTTOM, TOP
    points = [point for series in panel.series.values() for point in series]
    across, up = _Axis([x for x, _ in points], x0, x1), _Axis([y for _, y in points], y0, y1)
    scene.add(Label(x0, TOP - 10, plain(panel.title, bold=True), SIZE + 1))
    scene.add(Rectangle(x0, y1, x1 - x0, y0 - y1, stroke=GREY))
    for value in across.ticks:
        x = across.place(value)
        scene.add(Line(((x, y0), (x, y0 + 3)), GREY), _centred(_number(value), x, y0 + 13))
    for value in up.ticks:
        y = up.place(value)
        scene.add(Line(((x0, y), (x1, y)), "#e4e4e4", 0.6))
        text = _number(value)
        scene.add(Label(x0 - 5 - width(plain(text), SIZE), y + 3, plain(text), SIZE))
    scene.add(_centred(panel.across, (x0 + x1) / 2, y0 + 28))
    scene.add(Label(left, TOP - 10, plain(panel.up), SIZE - 1, GREY))
    for name, series in panel.series.items():
        placed = tuple((across.place(x), up.place(y)) for x, y in sorted(series))
        if len(placed) > 1:
            scene.add(Line(placed, colours[name], 1.6))
        scene.add(*(Ellipse(point, 2.6, 2.6, colours[name], BLACK, 0.4) for point in placed))


class _Axis:
    """Logarithmic, from the power of ten below the least value to the one above the greatest, or of two."""

    def __init__(self, values: Sequence[float], start: float, end: float):
        low, high = min(values), max(values)
        self.base = 10.0 if high / low > 30 else 2.0
        first, last = (
            f(math.log(v, self.base) + e) for f, v, e in ((math.floor, low, 1e-9), (math.ceil, high, -1e-9))
        )
        self.first, self.last = first, max(last, first + 1)
        self.start, self.end = start, end

    @property
    def ticks(self) -> list[float]:
        return [self.base**power for power in range(self.first, self.last + 1)]

    def place(self, value: float) -> float:
        part = (math.log(value, self.base) - self.first) / (self.last - self.first)
        return self.start + part * (self.end - self.start)


def _centred(text: str, x: float, y: float) -> Label:
    return Label(x - width(plain(text), SIZE) / 2, y, plain(text), SIZE)


def _number(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
