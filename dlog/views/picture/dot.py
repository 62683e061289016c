"""Owns view tree -> DOT, the text that Graphviz draws.  Nothing here needs Graphviz."""

from __future__ import annotations

from dlog.views.picture.notation import Notation, changes_of, definitions, flat
from dlog.views.picture.picture import colours_of, fills_of
from dlog.views.query import Query
from dlog.views.tree.tree import View, ViewTree


def dot(tree: ViewTree, title: str = "View tree", query: Query | None = None) -> str:
    """Nodes and edges as in the picture; the definitions are below it, as its label."""
    notation, colours = Notation.of(tree, query), colours_of(tree)
    numbers = {id(view): number for number, view in enumerate(tree.walk())}
    below = "".join(f"{_escaped(flat(pieces))}\\l" for pieces in definitions(tree, notation))
    short = "".join(f"{_escaped(meant)}\\l" for meant in notation.abbreviations)
    lines = [
        "digraph views {",
        f'  label="{_escaped(title)}\\n\\n{below}{short}"; labelloc=b; labeljust=l; fontname="Helvetica";',
        '  node [fontname="Helvetica", fontsize=11]; edge [dir=back];',
    ]
    for view in tree.walk():
        lines.append(f"  v{numbers[id(view)]} [{_attributes(view, notation, colours)}];")
        for child in view.children:
            style = _edge(child, colours)
            lines.append(f"  v{numbers[id(view)]} -> v{numbers[id(child)]} [{style}];")
    return "\n".join([*lines, "}", ""])


def _attributes(view: View, notation: Notation, colours: dict[str, tuple[str, str]]) -> str:
    delta = "δ" if view.changes else ""
    label = f"{delta}{_escaped(flat(notation.name(view)))}\\n{_escaped(flat(notation.keys(view)))}"
    outline = "peripheries=2" if view.materialised else "peripheries=1"
    if view.is_leaf:
        style = "rounded,filled" if view.changes else "filled"
        pale, strong = colours[view.name]
        fill = f'white", color="{strong}' if view.is_indicator else pale
        return f'label="{label}", shape=box, {outline}, style="{style}", fillcolor="{fill}"'
    fills = fills_of(view, colours)
    style = "wedged" if len(fills) > 1 else "filled"
    return f'label="{label}", shape=ellipse, {outline}, style={style}, fillcolor="{":".join(fills)}"'


def _edge(child: View, colours: dict[str, tuple[str, str]]) -> str:
    ways = [colours[name][1] for name in changes_of(child)]
    if not ways:
        return 'color="#8a8a8a", dir=none'
    return f'color="{":".join(ways)}", penwidth=2'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
