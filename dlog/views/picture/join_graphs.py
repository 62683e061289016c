"""Owns the picture of join graphs: a box for each atom of a rule, joined by what it shares with others, and
below what a changed row of each atom goes through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dlog.joingraph.explain import describe
from dlog.joingraph.plan import Plan, PlannedAtom, Vertex
from dlog.views.picture.files import write_scene
from dlog.views.picture.layered import Edge, Layers, layers
from dlog.views.picture.picture import LINE, MARGIN, SIZE, heading
from dlog.views.picture.scene import BLACK, GREY, Colour, Ellipse, Label, Line, Rectangle, Scene, hues
from dlog.views.picture.text import Text, plain, width, wrapped

_PAD = 8.0
_ROOM = (460.0, 900.0)  # of the text below: at least, at most


def write_join_graphs(plans: Sequence[Plan], path: str | Path, title: str = "Join graph") -> str:
    """Into a file whose name ends in .svg, .pdf or .dot.  Returns what the format cannot show."""
    return write_scene(path, lambda: draw_join_graphs(plans, title), lambda: join_graphs_dot(plans, title))


@dataclass(frozen=True)
class _Node:
    lines: tuple[Text, ...]
    is_vertex: bool
    fill: Colour

    @property
    def size(self) -> tuple[float, float]:
        wide = max(width(line, SIZE) for line in self.lines) + (3 if self.is_vertex else 2) * _PAD
        return wide, LINE * len(self.lines) + 2 * _PAD


def _nodes(plans: Sequence[Plan]) -> tuple[list[_Node], list[Edge]]:
    """Atoms and vertices, and the edges between them, away from the first atom of each rule."""
    nodes, edges = list[_Node](), list[Edge]()
    names = dict.fromkeys(planned.atom.relation for plan in plans for planned in plan.atoms)
    colours = dict(zip(names, (pale for pale, _ in hues(len(names))), strict=True))
    for plan in plans:
        first = len(nodes)
        nodes += [_box(planned, colours[planned.atom.relation]) for planned in plan.atoms]
        nodes += [_vertex(vertex) for vertex in plan.vertices]
        edges += [(first + low, first + high) for low, high in _away(plan)]
    return nodes, edges


def _box(planned: PlannedAtom, fill: Colour) -> _Node:
    lines = [plain(str(planned.atom))]
    if planned.payload:
        lines.append(plain(f"payload {', '.join(planned.payload)}"))
    if planned.counted:
        lines.append(plain("rows are counted"))
    return _Node(tuple(lines), False, fill)


def _vertex(vertex: Vertex) -> _Node:
    return _Node((plain(", ".join(vertex.variables) or "all rows"),), True, "#ffffff")


def _away(plan: Plan) -> list[Edge]:
    """Edges (below, above) of the tree, by numbers of atoms and, after them, vertices."""
    found, reached = list[Edge](), [0]
    left = set(range(len(plan.vertices)))
    for atom in reached:
        for e in sorted(left & set(plan.atoms[atom].vertices)):
            left.discard(e)
            other, node = plan.vertices[e].other(atom), len(plan.atoms) + e
            found += [(node, atom), (other, node)]
            reached.append(other)
    return found


def draw_join_graphs(plans: Sequence[Plan], title: str = "Join graph") -> Scene:
    (nodes, edges), scene = _nodes(plans), Scene(title)
    placed = layers([node.size for node in nodes], edges, row_gap=28.0)
    room = min(max(placed.width, _ROOM[0]), _ROOM[1])
    scene.width = 2 * MARGIN + max(placed.width, room)
    scene.add(Label(MARGIN, MARGIN + 4, plain(title, bold=True), 15.0))
    corner = MARGIN + max(0.0, (room - placed.width) / 2), MARGIN + 24
    for edge in placed.bends:
        scene.add(_line(placed, edge, corner))
    for node, (x, y) in zip(nodes, placed.centres, strict=True):
        _outline(scene, node, x + corner[0], y + corner[1])
    y = _legend(scene, corner[1] + placed.height + 34)
    scene.height = _searches(scene, plans, y, room) + MARGIN
    return scene


def _line(placed: Layers, edge: Edge, corner: tuple[float, float]) -> Line:
    (x, y), (end, above) = placed.centres[edge[0]], placed.centres[edge[1]]
    points = [(x, y)]
    for row, place in zip(range(placed.row_of[edge[0]] - 1, -1, -1), placed.bends[edge], strict=False):
        points += [(place, placed.rows[row][1]), (place, placed.rows[row][0])]
    points.append((end, above))
    return Line(tuple((px + corner[0], py + corner[1]) for px, py in points), GREY, 1.6)


def _outline(scene: Scene, node: _Node, x: float, y: float) -> None:
    wide, high = node.size
    if node.is_vertex:
        scene.add(Ellipse((x, y), wide / 2, high / 2, node.fill, BLACK, 1.2))
    else:
        scene.add(Rectangle(x - wide / 2, y - high / 2, wide, high, 3.0, node.fill, BLACK, 1.2))
    for number, line in enumerate(node.lines):
        baseline = y - high / 2 + _PAD + LINE * number + LINE * 0.72
        scene.add(Label(x - width(line, SIZE) / 2, baseline, line, SIZE))


def _legend(scene: Scene, y: float) -> float:
    y = heading(scene, "Legend", y)
    for note in (
        "box: an atom, in the colour of its relation. Its rows with the same join values are one join tuple,",
        "with the values that the rule also needs (payload)",
        "ellipse: the variables on which two atoms join; both link to each of their values",
    ):
        scene.add(Label(MARGIN, y, plain(note), 10.0))
        y += 16
    return y + 18


def _searches(scene: Scene, plans: Sequence[Plan], y: float, room: float) -> float:
    y = heading(scene, "What a change goes through", y)
    for line in _described(plans):
        pieces = [plain(f"{word} ") for word in line.split()]
        for number, part in enumerate(wrapped(pieces, SIZE, room, 24.0)):
            scene.add(Label(MARGIN + (24.0 if number else 0.0), y, part, SIZE))
            y += 18
    return y


def _described(plans: Sequence[Plan]) -> list[str]:
    return [line for plan in plans for line in describe(plan) if line.startswith("change")]


def join_graphs_dot(plans: Sequence[Plan], title: str = "Join graph") -> str:
    """The same graph for Graphviz, which places it itself."""
    nodes, edges = _nodes(plans)
    below = "".join(f"{_escaped(line)}\\l" for line in _described(plans))
    lines = [
        "graph joins {",
        f'  label="{_escaped(title)}\\n\\n{below}"; labelloc=b; labeljust=l; fontname="Helvetica";',
        '  node [fontname="Helvetica", fontsize=11, style=filled];',
    ]
    for number, node in enumerate(nodes):
        label = "\\n".join(_escaped("".join(run.text for run in line)) for line in node.lines)
        shape = "ellipse" if node.is_vertex else "box"
        lines.append(f'  n{number} [label="{label}", shape={shape}, fillcolor="{node.fill}"];')
    lines += [f"  n{high} -- n{low};" for low, high in edges]
    return "\n".join([*lines, "}", ""])


def _escaped(written: str) -> str:
    return written.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
