"""Owns the picture of levels of maps: a box for each map, below those that read it, and arrows from what is
read to what is updated with it, in the colour of the stream whose rows do this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dlog.multilevel.notation import text
from dlog.multilevel.order import reads
from dlog.multilevel.program import MapReport
from dlog.views.levels.explain import signature
from dlog.views.levels.program import Levels
from dlog.views.levels.statements import order_keys
from dlog.views.picture.files import write_scene
from dlog.views.picture.layered import Layers, layers
from dlog.views.picture.picture import LINE, MARGIN, SIZE, arrow, heading
from dlog.views.picture.scene import BLACK, GREY, Colour, Label, Line, Rectangle, Scene, hues
from dlog.views.picture.text import Text, plain, width, wrapped

_PAD, _INSET, _LEFT, _WAY = 7.0, 3.0, 14.0, 3.0
_ROOM = (520.0, 900.0)  # of legend and definitions: at least, at most


def write_levels(levels: Levels, path: str | Path, title: str = "Levels of maps") -> str:
    """Into a file whose name ends in .svg, .pdf or .dot.  Returns what the format cannot show."""
    return write_scene(path, lambda: draw_levels(levels, title), lambda: levels_dot(levels, title))


@dataclass(frozen=True)
class _Box:
    report: MapReport
    lines: tuple[Text, ...]
    streams: tuple[str, ...]  # those that change it
    again: bool  # some event computes it again
    width: float
    height: float


@dataclass(frozen=True)
class Graph:
    """Boxes, and for each pair (read, updated) of them the streams whose rows do this."""

    boxes: list[_Box]
    edges: dict[tuple[int, int], list[str]]
    colours: dict[str, tuple[Colour, Colour]]

    @staticmethod
    def of(levels: Levels) -> Graph:
        reports = levels.program.maps
        ordered = order_keys(levels.m3)
        places = {report.name: place for place, report in enumerate(reports)}
        edges: dict[tuple[int, int], list[str]] = {}
        for report in reports:
            for step in report.steps:
                for name in sorted(reads(step.statement) & places.keys() - {report.name}):
                    event = step.event.relation if step.event is not None else ""
                    found = edges.setdefault((places[name], places[report.name]), [])
                    found += [event] if event and event not in found else []
        streams = [source.name for source in levels.m3.sources if source.kind == "stream"]
        colours = dict(zip(streams, hues(len(streams)), strict=True))
        return Graph([_box(r, ordered[r.name]) for r in reports], edges, colours)


def _box(report: MapReport, ordered: tuple[str, ...]) -> _Box:
    name, _, keys = signature(report).partition("[")
    lines = (plain(name, bold=report.level == 0), *_keys(f"[{keys}"))
    lines += (plain(f"ordered by {', '.join(ordered)}"),) if ordered else ()
    streams = tuple(dict.fromkeys(s.event.relation for s in report.steps if s.event is not None))
    again = any(s.statement.op == ":=" for s in report.steps if s.event is not None)
    wide = max(width(line, SIZE) for line in lines) + 2 * _PAD + 2 * _INSET * again
    return _Box(report, lines, streams, again, wide, LINE * len(lines) + 2 * _PAD + 2 * _INSET * again)


def _keys(written: str) -> tuple[Text, ...]:
    return tuple(wrapped([plain(f"{part} ") for part in written.split()], SIZE, 130.0, 0.0))


def draw_levels(levels: Levels, title: str = "Levels of maps") -> Scene:
    graph, scene = Graph.of(levels), Scene(title)
    placed = layers([(box.width, box.height) for box in graph.boxes], graph.edges)
    room = min(max(placed.width, _ROOM[0]), _ROOM[1])
    scene.width = 2 * MARGIN + max(placed.width, room)
    scene.add(Label(MARGIN, MARGIN + 4, plain(title, bold=True), 15.0))
    corner = MARGIN + max(0.0, (room - placed.width) / 2), MARGIN + 24
    for edge in placed.bends:
        _edge(scene, graph, placed, edge, corner)
    for box, (x, y) in zip(graph.boxes, placed.centres, strict=True):
        _outline(scene, graph, box, (x + corner[0], y + corner[1]))
    y = _legend(scene, graph, corner[1] + placed.height + 34)
    scene.height = _definitions(scene, levels, y, room) + MARGIN
    return scene


def _outline(scene: Scene, graph: Graph, box: _Box, centre: tuple[float, float]) -> None:
    x, y = centre[0] - box.width / 2, centre[1] - box.height / 2
    part = box.width / max(1, len(box.streams))
    for place, stream in enumerate(box.streams):
        scene.add(Rectangle(x + place * part, y, part, box.height, 0.0, graph.colours[stream][0]))
    scene.add(Rectangle(x, y, box.width, box.height, 0.0, None, BLACK, 1.2))
    inset = _INSET if box.again else 0.0
    if box.again:
        inner = (x + inset, y + inset, box.width - 2 * inset, box.height - 2 * inset)
        scene.add(Rectangle(*inner, 0.0, None, BLACK, 0.8))
    for number, line in enumerate(box.lines):
        baseline = y + inset + _PAD + LINE * number + LINE * 0.72
        scene.add(Label(centre[0] - width(line, SIZE) / 2, baseline, line, SIZE))


def _edge(
    scene: Scene, graph: Graph, placed: Layers, edge: tuple[int, int], corner: tuple[float, float]
) -> None:
    """A line in the colour of each stream, from what is read up to what is updated."""
    low, high = edge
    dx, dy = corner
    (x, y), (end, above) = placed.centres[low], placed.centres[high]
    streams = graph.edges[edge]
    for number, colour in enumerate([graph.colours[s][1] for s in streams] or [GREY]):
        shift = dx + _WAY * (number - (len(streams) - 1) / 2)
        points = [(x + shift, y - graph.boxes[low].height / 2 + dy)]
        points.append((x + shift, placed.rows[placed.row_of[low]][0] + dy))
        for row, place in zip(range(placed.row_of[low] - 1, -1, -1), placed.bends[edge], strict=False):
            top, bottom = placed.rows[row]
            points += [(place + shift, bottom + dy), (place + shift, top + dy)]
        bottom = placed.rows[placed.row_of[high]][1]
        tip = above + graph.boxes[high].height / 2
        points += [(end + shift, bottom + 12 + dy), (end + shift, tip + 6 + dy)]
        scene.add(Line(tuple(points), colour, 1.6))
    every = {name for (_, to), names in graph.edges.items() if to == high for name in names}
    colour = graph.colours[streams[0]][1] if len(every) == 1 else BLACK
    arrow(scene, (end + dx, tip + dy), max(1, len(streams)), colour)


def _legend(scene: Scene, graph: Graph, y: float) -> float:
    y = heading(scene, "Legend", y)
    x, mark = MARGIN + _LEFT, MARGIN + 36
    notes = [
        (1, "a map with its keys; those that the query shows are bold"),
        (2, "a double outline: some event computes it again (:=), after all updates (+=)"),
        (0, "an arrow: what is read there is added up here, when a row of the stream of this colour changes"),
    ]
    for outlines, note in notes:
        for number in range(outlines):
            inset = number * 2.5
            box = (x - 9 + inset, y - 9 + inset, 18 - 2 * inset, 11 - 2 * inset)
            scene.add(Rectangle(*box, 0.0, None, BLACK, 1.2 - 0.4 * number))
        if not outlines:
            scene.add(Line(((x, y + 2), (x, y - 4)), BLACK, 1.6))
            arrow(scene, (x, y - 11), 1, BLACK)
        scene.add(Label(mark, y, plain(note), 10.0))
        y += 16
    for stream, (pale, strong) in graph.colours.items():
        scene.add(Rectangle(x - 7, y - 9, 13, 11, 0.0, pale, strong, 1.2))
        scene.add(Label(mark, y, plain(f"rows of {stream} change it"), 10.0))
        y += 16
    return y + 18


def _definitions(scene: Scene, levels: Levels, y: float, room: float) -> float:
    y = heading(scene, "Definitions", y)
    for line in _defined(levels):
        pieces = [plain(f"{word} ") for word in line.split()]
        for number, part in enumerate(wrapped(pieces, SIZE, room, 24.0)):
            scene.add(Label(MARGIN + (24.0 if number else 0.0), y, part, SIZE))
            y += 18
    return y


def _defined(levels: Levels) -> Iterator[str]:
    for report in levels.program.maps:
        yield f"{signature(report)} := {text(report.definition)}"
    for query in levels.m3.queries:
        yield f"column {query.name} := {text(query.expression)}"


# ---- DOT


def levels_dot(levels: Levels, title: str = "Levels of maps") -> str:
    """The same graph for Graphviz, which places it itself."""
    graph = Graph.of(levels)
    below = "".join(f"{_escaped(line)}\\l" for line in _defined(levels))
    lines = [
        "digraph levels {",
        f'  label="{_escaped(title)}\\n\\n{below}"; labelloc=b; labeljust=l; fontname="Helvetica";',
        "  rankdir=BT;",
        '  node [fontname="Helvetica", fontsize=11, shape=box]; edge [penwidth=1.6];',
    ]
    for number, box in enumerate(graph.boxes):
        fills = ":".join(graph.colours[s][0] for s in box.streams) or "white"
        style = "striped" if len(box.streams) > 1 else "filled"
        label = "\\n".join(_escaped("".join(run.text for run in line)) for line in box.lines)
        outline = 2 if box.again else 1
        lines.append(
            f'  m{number} [label="{label}", style={style}, fillcolor="{fills}", peripheries={outline}];'
        )
    for (low, high), streams in graph.edges.items():
        colour = ":".join(graph.colours[s][1] for s in streams) or GREY
        lines.append(f'  m{low} -> m{high} [color="{colour}"];')
    return "\n".join([*lines, "}", ""])


def _escaped(written: str) -> str:
    return written.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
