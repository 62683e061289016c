"""Owns the picture of a view tree: the hybrid tree of the paper (4.10), its legend and the definitions.

Circles are views at variables, rectangles are relations.  Every relation has a colour, and a variable those
of all relations it belongs to; a double outline is a materialised view, rounded corners are a stream, and
lines in a stream's colour are the path of its changes to the root.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dlog.views.picture.files import write_scene
from dlog.views.picture.layout import Layout, tidy
from dlog.views.picture.notation import Notation, changes_of, definitions
from dlog.views.picture.scene import (
    BLACK,
    GREY,
    Colour,
    Ellipse,
    Label,
    Line,
    Polygon,
    Rectangle,
    Scene,
    striped,
)
from dlog.views.picture.scene import hues as hues_of
from dlog.views.picture.text import DELTA, EXISTS, Text, plain, width, wrapped
from dlog.views.query import Query
from dlog.views.tree.tree import View, ViewTree, atom_of

MARGIN = 28.0
SIZE = 11.0  # of text in the tree
LINE = 15.0  # from one line of text to the next
_ROOM = 130.0  # for a line of keys
_PAD = 6.0
_INSET = 3.0  # between the lines of a double outline
_MOST_WAYS = 6  # delta paths that are drawn side by side
_TEXT_WIDTH = (520.0, 900.0)  # of legend and definitions: at least, at most


def write_picture(
    tree: ViewTree, path: str | Path, title: str = "View tree", query: Query | None = None
) -> str:
    """Into a file whose name ends in .svg, .pdf or .dot.  The query gives what aggregates need at a view.

    Returns the characters that the format cannot show: PDF has those of Western European languages only.
    """
    from dlog.views.picture.dot import dot

    return write_scene(path, lambda: draw(tree, title, query), lambda: dot(tree, title, query))


@dataclass(frozen=True)
class Node:
    """A view with the lines of its text and the size of its outline."""

    view: View
    lines: tuple[Text, ...]
    width: float
    height: float


def draw(tree: ViewTree, title: str = "View tree", query: Query | None = None) -> Scene:
    """O(views * depth)."""
    notation = Notation.of(tree, query)
    nodes, children = _nodes(tree, notation)
    layout = tidy(children, [0], [(node.width, node.height) for node in nodes], gap=18.0, level_gap=38.0)
    colours = colours_of(tree)
    scene = Scene(title)
    room = min(max(layout.width, _TEXT_WIDTH[0]), _TEXT_WIDTH[1])
    left = MARGIN + max(0.0, (room - layout.width) / 2)
    scene.width = 2 * MARGIN + max(layout.width, room)
    scene.add(Label(MARGIN, MARGIN + 4, plain(title, bold=True), 15.0))
    top = MARGIN + 24
    placed = _moved(layout, left, top)
    for parent, below in enumerate(children):
        for child in below:
            _edge(scene, nodes, placed, parent, child, colours)
    for node, centre in zip(nodes, placed.centres, strict=True):
        _outline(scene, node, centre, colours)
        _lines(scene, node, centre)
    y = _legend(scene, tree, notation, colours, top + layout.height + 34, room)
    y = _definitions(scene, tree, notation, y, room)
    scene.height = y + MARGIN
    return scene


def colours_of(tree: ViewTree) -> dict[str, tuple[Colour, Colour]]:
    """A pale and a strong colour for each relation; an indicator has those of its own."""
    names = tree.root.atoms
    own = dict(zip(names, hues_of(len(names)), strict=True))
    return {name: own[atom_of(name)] for name in tree.root.relations}


def fills_of(view: View, colours: dict[str, tuple[Colour, Colour]]) -> list[Colour]:
    """Those of the relations that the view's variables belong to; grey above several roots."""
    own = set(view.variables)
    leaves = [leaf for leaf in view.walk() if leaf.is_leaf and own & set(leaf.keys)]
    return [colours[leaf.name][0] for leaf in leaves if not leaf.is_indicator] or ["#eeeeee"]


# Nodes


def _nodes(tree: ViewTree, notation: Notation) -> tuple[list[Node], list[list[int]]]:
    """Parents first, with the places of each node's children."""
    nodes: list[Node] = []
    children: list[list[int]] = []
    waiting: list[tuple[View, int | None]] = [(tree.root, None)]
    while waiting:
        view, parent = waiting.pop()
        if parent is not None:
            children[parent].append(len(nodes))
        waiting.extend((child, len(nodes)) for child in reversed(view.children))
        nodes.append(_node(view, notation))
        children.append([])
    return nodes, children


def _node(view: View, notation: Notation) -> Node:
    name = (*(plain(DELTA) if view.changes else ()), *notation.name(view))
    lines = (name, *wrapped(notation.keys(view), SIZE, _ROOM, 0.0))
    wide = max(width(line, SIZE) for line in lines)
    high = LINE * len(lines)
    inset = _INSET if view.materialised else 0.0
    if view.is_leaf:
        return Node(view, lines, wide + 2 * (_PAD + inset), high + 2 * (_PAD + inset))
    # The smallest ellipse around a box of this shape has its sides times the root of 2.
    rx, ry = (side / math.sqrt(2) + 3 + inset for side in (wide, high))
    return Node(view, lines, 2 * max(rx, ry), 2 * ry)


def _moved(layout: Layout, dx: float, dy: float) -> Layout:
    centres = [(x + dx, y + dy) for x, y in layout.centres]
    levels = [(top + dy, bottom + dy) for top, bottom in layout.levels]
    return Layout(centres, levels, layout.depths, layout.width, layout.height)


def _outline(
    scene: Scene, node: Node, centre: tuple[float, float], colours: dict[str, tuple[Colour, Colour]]
) -> None:
    view, (x, y) = node.view, centre
    if view.is_leaf:
        radius = 9.0 if view.changes else 0.0
        box = (x - node.width / 2, y - node.height / 2, node.width, node.height)
        pale, strong = colours[view.name]
        fill, line = ("#ffffff", strong) if view.is_indicator else (pale, BLACK)
        scene.add(Rectangle(*box, radius, fill, line, 1.2))
        if view.materialised:
            inner = (box[0] + _INSET, box[1] + _INSET, box[2] - 2 * _INSET, box[3] - 2 * _INSET)
            scene.add(Rectangle(*inner, max(0.0, radius - _INSET), None, line, 0.8))
        return
    rx, ry = node.width / 2, node.height / 2
    scene.add(*striped(centre, rx, ry, fills_of(view, colours)))
    scene.add(Ellipse(centre, rx, ry, None, BLACK, 1.2))
    if view.materialised:
        scene.add(Ellipse(centre, rx - _INSET, ry - _INSET, None, BLACK, 0.8))


def _lines(scene: Scene, node: Node, centre: tuple[float, float]) -> None:
    x, y = centre
    top = y - LINE * len(node.lines) / 2
    for index, line in enumerate(node.lines):
        baseline = top + LINE * index + LINE * 0.72
        scene.add(Label(x - width(line, SIZE) / 2, baseline, line, SIZE))


# Edges


def _edge(
    scene: Scene,
    nodes: Sequence[Node],
    placed: Layout,
    parent: int,
    child: int,
    colours: dict[str, tuple[Colour, Colour]],
) -> None:
    """From a child up to its parent: grey, or one line in the colour of each stream that passes here.

    Lines cross the gap between levels only; through their own level they go straight.
    """
    (px, py), (cx, cy) = placed.centres[parent], placed.centres[child]
    above, below = placed.levels[placed.depths[parent]][1], placed.levels[placed.depths[child]][0]
    ends = cy - nodes[child].height / 2, py + nodes[parent].height / 2
    changes = changes_of(nodes[child].view)
    ways = [colours[name][1] for name in changes] if len(changes) <= _MOST_WAYS else [BLACK]
    if not changes:
        ways = [GREY]
    most = (len(ways) - 1) / 2 * 3.2
    lean = (px > cx) - (px < cx)  # lines that lean are shifted downwards too, so that they keep apart
    for index, colour in enumerate(ways):
        shift = index * 3.2 - most
        bends = (cx + shift, below - most + lean * shift), (px + shift, above + most + lean * shift)
        points = ((cx + shift, ends[0]), *bends, (px + shift, ends[1]))
        scene.add(Line(points, colour, 2.2 if changes else 1.0))
    if changes:
        arrow(scene, (px, ends[1]), len(ways), ways[0] if len(ways) == 1 else BLACK)


def arrow(scene: Scene, tip: tuple[float, float], ways: int, colour: Colour) -> None:
    half, (x, y) = 3.5 + 1.6 * (ways - 1), tip
    scene.add(Polygon(((x, y), (x - half, y + 8), (x + half, y + 8)), colour))


# Legend and definitions


def _legend(
    scene: Scene,
    tree: ViewTree,
    notation: Notation,
    colours: dict[str, tuple[Colour, Colour]],
    y: float,
    room: float,
) -> float:
    """Draws it; returns the y coordinate below it."""
    y = heading(scene, "Legend", y)
    x, mark = MARGIN + 14, MARGIN + 36
    rows: list[tuple[list[Ellipse | Rectangle | Line | Polygon], str]] = [
        ([Ellipse((x, -3.5), 9, 6, "#eeeeee", BLACK, 1.2)], "a circle is the view at a variable, V@variable"),
        (
            [Ellipse((x, -3.5), 9, 6, "#eeeeee", BLACK, 1.2), Ellipse((x, -3.5), 6.5, 3.5, None, BLACK, 0.8)],
            "a double outline: the view is materialised",
        ),
        (
            [Rectangle(x - 9, -9, 18, 11, 0, "#eeeeee", BLACK, 1.2)],
            "a rectangle is a relation; this one, a table",
        ),
        (
            [Rectangle(x - 9, -9, 18, 11, 5, "#eeeeee", BLACK, 1.2)],
            "rounded corners: a stream, whose rows change",
        ),
        (
            [Line(((x, 2), (x, -4)), BLACK, 2.2), Polygon(((x, -11), (x - 4, -3), (x + 4, -3)), BLACK)],
            f"the path of changes, in the stream's colour; views on it have a {DELTA}",
        ),
        ([*striped((x, -3.5), 9, 6, ["#cfe3fb", "#fbd9cf"])], "the colours of all relations of the variable"),
    ]
    if tree.root.atoms != tree.root.relations:
        text = f"{EXISTS}R is an indicator: 1 where R has a row; it keeps a view of a cycle as small as R"
        rows.append(([Rectangle(x - 9, -9, 18, 11, 5, "#ffffff", colours[tree.root.atoms[0]][1], 1.2)], text))
    for shapes, text in rows:
        scene.add(*(_down(shape, y) for shape in shapes))
        for line in wrapped([plain(f"{word} ") for word in text.split()], 10.0, room - 40, 0.0):
            scene.add(Label(mark, y, line, 10.0))
            y += 16
    return _relations(scene, tree, notation, colours, y + 6, room) + 18


def _down(shape: Ellipse | Rectangle | Line | Polygon, y: float) -> Ellipse | Rectangle | Line | Polygon:
    if isinstance(shape, Ellipse):
        centre = (shape.centre[0], shape.centre[1] + y)
        return Ellipse(centre, shape.rx, shape.ry, shape.fill, shape.stroke, shape.width)
    if isinstance(shape, Rectangle):
        place = (shape.x, shape.y + y, shape.width, shape.height)
        return Rectangle(*place, shape.radius, shape.fill, shape.stroke, shape.line)
    points = tuple((px, py + y) for px, py in shape.points)
    return (
        Polygon(points, shape.fill) if isinstance(shape, Polygon) else Line(points, shape.stroke, shape.width)
    )


def _relations(
    scene: Scene,
    tree: ViewTree,
    notation: Notation,
    colours: dict[str, tuple[Colour, Colour]],
    y: float,
    room: float,
) -> float:
    """Each relation with its colour and its short name, as many in a line as have room."""
    x = MARGIN
    for name in tree.root.atoms:
        text = plain(notation.meant[name])
        needed = 18 + width(text, 10.0) + 16
        if x > MARGIN and x + needed > MARGIN + room:
            x, y = MARGIN, y + 16
        scene.add(Rectangle(x, y - 9, 13, 11, 0, colours[name][0], colours[name][1], 1.2))
        scene.add(Label(x + 18, y, text, 10.0))
        x += needed
    return y + 16


def _definitions(scene: Scene, tree: ViewTree, notation: Notation, y: float, room: float) -> float:
    y = heading(scene, "Definitions", y)
    if any(len(products) > 1 for products in notation.lifted.values()):
        note = "<x, y> are the products that several aggregates need there, each stored separately"
        scene.add(Label(MARGIN, y, plain(note), 10.0, GREY))
        y += 18
    for pieces in definitions(tree, notation):
        for number, line in enumerate(wrapped(pieces, SIZE, room, 24.0)):
            scene.add(Label(MARGIN + (24.0 if number else 0.0), y, line, SIZE))
            y += 18
    return y


def heading(scene: Scene, text: str, y: float) -> float:
    scene.add(Label(MARGIN, y, plain(text, bold=True), 12.0))
    return y + 20
