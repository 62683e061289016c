"""Owns the text of pictures: runs with raised and lowered parts, their widths, lines that fit.

Widths are those of Helvetica, which every PDF reader has and whose widths Arial and Liberation Sans share; so
a text that fits its box here fits it in both formats.  Knows nothing of trees.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

# Thousandths of the size, from the space on.
_HELVETICA = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
    333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
)  # fmt: skip
_BOLD = (
    278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 333, 333, 584, 584, 584, 611,
    975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 333, 278, 333, 584, 556,
    333, 556, 611, 556, 611, 556, 333, 611, 611, 278, 278, 556, 278, 889, 611, 611,
    611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389, 280, 389, 584,
)  # fmt: skip
PLUS, TIMES, DELTA = "\N{CIRCLED PLUS}", "\N{CIRCLED TIMES}", "\N{GREEK SMALL LETTER DELTA}"
EXISTS = "\N{THERE EXISTS}"
SHAPES = (PLUS, TIMES)  # drawn, since not every font has them
_OTHERS = {PLUS: 860, TIMES: 860, DELTA: 556, EXISTS: 549}
_UNKNOWN = 1000  # a letter beyond ASCII is assumed to be wide

SMALL = 0.72  # of raised and lowered parts
RAISED, LOWERED = -0.36, 0.22  # of the size, down is positive


@dataclass(frozen=True)
class Run:
    """Characters in one size; `shift` is how far they are below the line, in sizes of the line."""

    text: str
    scale: float = 1.0
    shift: float = 0.0
    bold: bool = False

    def width(self, size: float) -> float:
        return sum(_width(character, self.bold) for character in self.text) * size * self.scale / 1000


Text = tuple[Run, ...]


def _width(character: str, bold: bool) -> int:
    code, table = ord(character) - 32, _BOLD if bold else _HELVETICA
    return table[code] if 0 <= code < len(table) else _OTHERS.get(character, _UNKNOWN)


def plain(text: str, bold: bool = False) -> Text:
    return (Run(text, bold=bold),)


def raised(text: str) -> Text:
    return (Run(text, SMALL, RAISED),)


def lowered(text: str) -> Text:
    return (Run(text, SMALL, LOWERED),)


def width(text: Iterable[Run], size: float) -> float:
    """
    >>> width(plain("AB"), 10)
    13.34
    """
    return sum(run.width(size) for run in text)


def string(text: Iterable[Run]) -> str:
    """The characters alone."""
    return "".join(run.text for run in text)


def wrapped(pieces: Sequence[Text], size: float, room: float, indent: float) -> list[Text]:
    """Lines of whole pieces; all but the first are shorter, as they are indented.

    A piece that is wider than a line is cut between characters.  O(characters).
    """
    lines: list[Text] = []
    line: Text = ()
    used, limit = 0.0, room
    for piece in pieces:
        for part in _cut(piece, size, room - indent):
            wide = width(part, size)
            if line and used + wide > limit:
                lines.append(line)
                line, used, limit = (), 0.0, room - indent
            line, used = line + part, used + wide
    return [*lines, line] if line else lines


def _cut(piece: Text, size: float, room: float) -> list[Text]:
    if width(piece, size) <= room:
        return [piece]
    parts: list[Text] = []
    part: Text = ()
    used = 0.0
    for run in piece:
        for character in run.text:
            one = replace(run, text=character)
            if part and used + one.width(size) > room:
                parts.append(part)
                part, used = (), 0.0
            part, used = _appended(part, one), used + one.width(size)
    return [*parts, part] if part else parts


def _appended(text: Text, run: Run) -> Text:
    if text and replace(text[-1], text="") == replace(run, text=""):
        return (*text[:-1], replace(run, text=text[-1].text + run.text))
    return (*text, run)


# Operators


def split_shapes(text: Iterable[Run]) -> list[Run]:
    """Runs in which each operator that is drawn is alone."""
    found: list[Run] = []
    for run in text:
        part = ""
        for character in run.text:
            if character in SHAPES:
                found += [replace(run, text=part)] if part else []
                found.append(replace(run, text=character))
                part = ""
            else:
                part += character
        found += [replace(run, text=part)] if part else []
    return found


Strokes = tuple[tuple[float, float], float, list[tuple[tuple[float, float], ...]]]


def operator_strokes(upright: bool, x: float, y: float, size: float) -> Strokes:
    """The centre and radius of the circle of ⊕ (upright) or ⊗ at x on the line y, and its bars."""
    radius = size * 0.34
    cx, cy = x + size * _OTHERS[PLUS] / 2000, y - size * 0.34
    reach = radius if upright else radius * math.sqrt(0.5)
    ends = ((reach, 0.0), (0.0, reach)) if upright else ((reach, reach), (reach, -reach))
    bars = [((cx - dx, cy - dy), (cx + dx, cy + dy)) for dx, dy in ends]
    return (cx, cy), radius, list(bars)
