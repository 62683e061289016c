"""Owns the elements of a picture: shapes and labels at places, y growing downwards, in points.

Knows neither what they mean nor the format in which they are written.
"""

from __future__ import annotations

import colorsys
import math
from dataclasses import dataclass, field

from dlog.views.picture.text import Text

Point = tuple[float, float]
Colour = str  # "#rrggbb"
BLACK, GREY, WHITE = "#1a1a1a", "#8a8a8a", "#ffffff"


@dataclass(frozen=True)
class Ellipse:
    centre: Point
    rx: float
    ry: float
    fill: Colour | None = None
    stroke: Colour | None = None
    width: float = 1.0


@dataclass(frozen=True)
class Rectangle:
    x: float
    y: float
    width: float
    height: float
    radius: float = 0.0
    fill: Colour | None = None
    stroke: Colour | None = None
    line: float = 1.0


@dataclass(frozen=True)
class Polygon:
    points: tuple[Point, ...]
    fill: Colour


@dataclass(frozen=True)
class Line:
    points: tuple[Point, ...]
    stroke: Colour = BLACK
    width: float = 1.0


@dataclass(frozen=True)
class Label:
    """Text that begins at x; y is its line."""

    x: float
    y: float
    text: Text
    size: float
    colour: Colour = BLACK


Item = Ellipse | Rectangle | Polygon | Line | Label


@dataclass
class Scene:
    title: str
    width: float = 0.0
    height: float = 0.0
    items: list[Item] = field(default_factory=list)

    def add(self, *items: Item) -> None:
        self.items.extend(items)


def striped(centre: Point, rx: float, ry: float, colours: list[Colour]) -> list[Polygon]:
    """An ellipse cut into upright stripes of the same width, one for each colour."""
    stripes = []
    for index, colour in enumerate(colours):
        first, last = (-1 + 2 * i / len(colours) for i in (index, index + 1))
        xs = [first + (last - first) * step / 16 for step in range(17)]
        arc = [(x, math.sqrt(max(0.0, 1 - x * x))) for x in xs]
        outline = [(x, -y) for x, y in arc] + [(x, y) for x, y in reversed(arc)]
        points = tuple((centre[0] + rx * x, centre[1] + ry * y) for x, y in outline)
        stripes.append(Polygon(points, colour))
    return stripes


def hues(number: int) -> list[tuple[Colour, Colour]]:
    """A pale colour, on which black text is legible, and a strong one of the same hue, for each of many.

    Hues are apart by the golden section, so that neighbours differ whatever the number.
    """
    found = []
    for index in range(number):
        hue = (0.58 + index * 0.6180339887) % 1.0
        found.append((_hex(hue, 0.86, 0.72), _hex(hue, 0.42, 0.75)))
    return found


def _hex(hue: float, lightness: float, saturation: float) -> Colour:
    red, green, blue = colorsys.hls_to_rgb(hue, lightness, saturation)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"
