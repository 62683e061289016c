"""Pictures of view trees: boxes keep apart, texts fit their boxes, lines touch no other box; and each format
says the same.  Examined once by eye, then checked by these rules.
"""

from __future__ import annotations

import math
import re
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from fpdf.fonts import CORE_FONTS_CHARWIDTHS
from hypothesis import given
from hypothesis import strategies as st

from dlog.errors import DlogError
from dlog.views.orders.orders import find_order
from dlog.views.picture.dot import dot
from dlog.views.picture.layout import tidy
from dlog.views.picture.notation import Notation, explain
from dlog.views.picture.pdf import pdf
from dlog.views.picture.picture import draw, write_picture
from dlog.views.picture.scene import Ellipse, Item, Label, Line, Rectangle, Scene
from dlog.views.picture.svg import svg
from dlog.views.picture.text import Run, plain, string, width, wrapped
from dlog.views.sql.files import parse_sql
from dlog.views.tree.build import view_tree
from dlog.views.tree.tree import ViewTree
from tests.examples import relaxed
from tests.views.picture.trees import hybrid_tree, leaf, random_tree, tree, view

Box = tuple[float, float, float, float]  # left, top, right, bottom


def drawn_tree(scene: Scene) -> list[Item]:
    """What comes before the legend."""
    headings = [
        i for i, item in enumerate(scene.items) if isinstance(item, Label) and string(item.text) == "Legend"
    ]
    return scene.items[1 : headings[0]]  # without the title


def outer(item: Item) -> bool:
    return (isinstance(item, Ellipse) and item.width == 1.2) or (
        isinstance(item, Rectangle) and item.line == 1.2
    )


def box(item: Item) -> Box:
    if isinstance(item, Ellipse):
        (x, y), rx, ry = item.centre, item.rx, item.ry
        return x - rx, y - ry, x + rx, y + ry
    if isinstance(item, Rectangle):
        return item.x, item.y, item.x + item.width, item.y + item.height
    assert isinstance(item, Label)
    return item.x, item.y - item.size, item.x + width(item.text, item.size), item.y + item.size * 0.4


def overlap(a: Box, b: Box, slack: float = 0.0) -> bool:
    return a[0] < b[2] - slack and b[0] < a[2] - slack and a[1] < b[3] - slack and b[1] < a[3] - slack


def check_picture(scene: Scene, views: int) -> None:
    items = drawn_tree(scene)
    outlines = [item for item in items if outer(item)]
    assert len(outlines) == views
    for a, b in combinations(map(box, outlines), 2):
        assert not overlap(a, b)
    check_texts(items)
    check_lines(items, outlines)
    check_page(scene)


def check_texts(items: list[Item]) -> None:
    """The labels of a node follow its outlines, and lie in the innermost."""
    inside: Ellipse | Rectangle | None = None
    seen = 0
    for item in items:
        if isinstance(item, Ellipse | Rectangle):
            inside = item
        elif isinstance(item, Label):
            assert inside is not None
            left, right = item.x, item.x + width(item.text, item.size)
            corners = [
                (x, y) for x in (left, right) for y in (item.y - 0.72 * item.size, item.y + 0.2 * item.size)
            ]
            assert all(contains(inside, corner) for corner in corners), string(item.text)
            seen += 1
    assert seen


def contains(shape: Ellipse | Rectangle, point: tuple[float, float]) -> bool:
    if isinstance(shape, Ellipse):
        x, y = ((p - c) / r for p, c, r in zip(point, shape.centre, (shape.rx, shape.ry), strict=True))
        return math.hypot(x, y) <= 1.0
    left, top, right, bottom = box(shape)
    return left <= point[0] <= right and top <= point[1] <= bottom


def check_lines(items: list[Item], outlines: list[Item]) -> None:
    for line in items:
        if isinstance(line, Line):
            touched = [o for o in outlines if any(cuts(box(o), a, b) for a, b in pairwise(line.points))]
            assert not touched  # it ends at its nodes' outlines


def cuts(b: Box, start: tuple[float, float], end: tuple[float, float]) -> bool:
    """Whether a line goes through the inside of a box, by more than a rounding error."""
    steps = [
        (start[0] + (end[0] - start[0]) * t / 40, start[1] + (end[1] - start[1]) * t / 40) for t in range(41)
    ]
    return any(b[0] + 0.1 < x < b[2] - 0.1 and b[1] + 0.1 < y < b[3] - 0.1 for x, y in steps)


def check_page(scene: Scene) -> None:
    labels = [item for item in scene.items if isinstance(item, Label)]
    page = (0.0, 0.0, scene.width, scene.height)
    for label in labels:
        left, top, right, bottom = box(label)
        assert page[0] <= left and page[1] <= top and right <= page[2] and bottom <= page[3], string(
            label.text
        )
    labels.sort(key=lambda label: label.y)
    for index, a in enumerate(labels):
        for b in labels[index + 1 :]:
            if b.y > a.y + 30:
                break
            shared = min(a.size, b.size) * 0.55  # raised and lowered parts may meet between two lines
            assert not overlap(box(a), box(b), shared), (string(a.text), string(b.text))


# Trees


@given(st.integers(0, 10**6), st.integers(1, 30))
@relaxed(30)
def test_invariant_no_overlaps(seed: int, variables: int) -> None:
    drawn = random_tree(seed, variables)
    check_picture(draw(drawn), len(list(drawn.walk())))


@pytest.mark.fuzz
@given(st.integers(0, 10**6), st.integers(1, 60))
@relaxed(2000, random=True)
def test_invariant_no_overlaps_long(seed: int, variables: int) -> None:
    drawn = random_tree(seed, variables)
    check_picture(draw(drawn), len(list(drawn.walk())))


def test_paper_hybrid_tree() -> None:
    scene = draw(hybrid_tree(), "Hybrid tree")
    check_picture(scene, 10)
    items = drawn_tree(scene)
    rounded = [item for item in items if isinstance(item, Rectangle) and item.radius]
    assert len(rounded) == 1  # R, the stream
    doubled = [item for item in items if isinstance(item, Ellipse) and item.width == 0.8]
    assert len(doubled) == 4  # A, D, E, F
    fills = {item.fill for item in items if isinstance(item, Rectangle)}
    assert len(fills) == 4
    strong = [item for item in items if isinstance(item, Line) and item.width > 2]
    assert len(strong) == 3  # the path of R's changes: to C, to B, to A
    texts = [string(item.text) for item in items if isinstance(item, Label)]
    assert [t for t in texts if t.startswith("δ")] == ["δV@AR,S,T,U", "δV@BR,S", "δV@CR", "δR"]


def test_paper_definitions() -> None:
    """4.10.3, in the order of this tree's children."""
    assert explain(hybrid_tree()).split("\n\n")[1].splitlines() == [
        "V@A_{R,S,T,U}[] = ⊕_A (V@B_{R,S}[A] ⊗ V@E_{T,U}[A] ⊗ A)",
        "δV@A_{R,S,T,U}[] = ⊕_A (δV@B_{R,S}[A] ⊗ V@E_{T,U}[A] ⊗ A)",
        "V@B_{R,S}[A] = ⊕_B (V@C_R[A, B] ⊗ V@D_S[A, B])",
        "δV@B_{R,S}[A] = ⊕_B (δV@C_R[A, B] ⊗ V@D_S[A, B])",
        "V@C_R[A, B] = ⊕_C ⊕_extra R[A, B, C, extra]",
        "δV@C_R[A, B] = ⊕_C ⊕_extra δR[A, B, C, extra]",
        "V@D_S[A, B] = ⊕_D S[A, B, D]",
        "V@E_{T,U}[A] = ⊕_E (T[A, E] ⊗ V@F_U[E])",
        "V@F_U[E] = ⊕_F U[E, F]",
    ]


def test_two_streams_are_distinguished() -> None:
    both = tree(view("A", "", leaf("R", "A", changes=True), leaf("S", "A", changes=True)))
    assert "δ_R V@A_{R,S}[] = ⊕_A (δ_R R[A] ⊗ S[A])" in explain(both)
    strokes = {i.stroke for i in drawn_tree(draw(both)) if isinstance(i, Line)}
    assert len(strokes) == 2


def test_many_relations_have_room() -> None:
    many = tree(view("A", "", *(leaf(f"R{n}", "A", changes=True) for n in range(40))))
    scene = draw(many)
    check_picture(scene, 41)
    assert "V@A_{40 relations}[]" in explain(many)
    assert pdf(scene).startswith(b"%PDF")


def test_a_deep_tree_is_drawn() -> None:
    deep = view("x0", "", leaf("R", "x"))
    for n in range(1, 300):
        deep = view(f"x{n}", "", deep)
    scene = draw(tree(deep))
    assert len([item for item in drawn_tree(scene) if outer(item)]) == 301
    assert len(pdf(scene)) > 1000  # scaled down to the largest page there is


# Formats


def test_svg_is_xml_with_every_text() -> None:
    scene = draw(hybrid_tree())
    root = ElementTree.fromstring(svg(scene).encode())
    texts = "".join(element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text"))
    for word in ("Legend", "Definitions", "extra", "@A", "R,S,T,U", "materialised"):
        assert word in texts.replace(" ", "") or word in texts
    for element in root.iter("{http://www.w3.org/2000/svg}text"):
        assert float(element.get("textLength", "0")) > 0


def test_svg_escapes() -> None:
    odd = tree(view("a<b", "", leaf('R&"', ["a<b"])))
    ElementTree.fromstring(svg(draw(odd, "a < b & c")).encode())


def test_pdf_is_the_same_every_time() -> None:
    scene = draw(hybrid_tree())
    assert pdf(scene) == pdf(scene)
    assert pdf(scene).startswith(b"%PDF") and pdf(scene).rstrip().endswith(b"%%EOF")


def test_pdf_shows_letters_it_has_not() -> None:
    assert pdf(draw(tree(view("Ж", "", leaf("Я", ["Ж"])))))


def test_dot_has_every_view() -> None:
    text = dot(hybrid_tree())
    nodes = re.findall(r"^  (v\d+) \[label=", text, re.MULTILINE)
    edges = re.findall(r"^  (v\d+) -> (v\d+) \[", text, re.MULTILINE)
    assert len(nodes) == 10 and len(edges) == 9
    assert {child for _, child in edges} | {"v0"} == set(nodes)
    assert text.count("peripheries=2") == 4 and text.count('style="rounded,filled"') == 1
    assert text.count("penwidth=2") == 3
    unquoted = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    assert '"' not in unquoted and unquoted.count("[") == unquoted.count("]")


def test_files(tmp_path: Path) -> None:
    for suffix in ("svg", "pdf", "dot"):
        write_picture(hybrid_tree(), tmp_path / f"tree.{suffix}")
        assert (tmp_path / f"tree.{suffix}").stat().st_size > 500
    with pytest.raises(DlogError, match="cannot draw into"):
        write_picture(hybrid_tree(), tmp_path / "tree.png")
    with pytest.raises(DlogError, match="cannot write"):
        write_picture(hybrid_tree(), tmp_path / "none" / "tree.svg")


# Parts


@pytest.mark.parametrize("bold", [False, True])
def test_widths_are_helveticas(bold: bool) -> None:
    known = CORE_FONTS_CHARWIDTHS["helveticaB" if bold else "helvetica"]
    for code in range(32, 127):
        assert Run(chr(code), bold=bold).width(1000) == known[chr(code)], chr(code)


def test_wrapped_lines_have_room() -> None:
    pieces = [plain(f"word{n} " * (n % 3 + 1)) for n in range(40)] + [plain("x" * 200)]
    lines = wrapped(pieces, 10.0, 120.0, 20.0)
    assert "".join(string(line) for line in lines) == "".join(map(string, pieces))
    assert width(lines[0], 10.0) <= 120.0 and all(width(line, 10.0) <= 100.0 for line in lines[1:])


def test_layout_is_tidy() -> None:
    """Levels are straight, parents are over the middle of their children, mirrored trees mirror."""
    children = [[1, 2, 3], [4, 5], [], [6], [], [], []]
    sizes = [(20.0 + 7 * n, 10.0) for n in range(7)]
    placed = tidy(children, [0], sizes)
    for parent, below in enumerate(children):
        if below:
            ends = placed.centres[below[0]][0], placed.centres[below[-1]][0]
            assert placed.centres[parent][0] == pytest.approx(sum(ends) / 2)
        assert len({placed.centres[child][1] for child in below}) <= 1
    mirrored = tidy([list(reversed(below)) for below in children], [0], sizes)
    for here, there in zip(placed.centres, mirrored.centres, strict=True):
        assert here[0] == pytest.approx(placed.width - there[0])


def test_abbreviations_tell_apart() -> None:
    drawn: ViewTree = tree(view("p", "", leaf("HOUSE", "p"), leaf("SHOP", "p"), leaf("SHOPPING", "p")))
    short = Notation.of(drawn).short
    assert short["HOUSE"] == "H" and len(set(short.values())) == 3


def test_letters_that_pdf_lacks_are_reported(tmp_path: Path) -> None:
    query = parse_sql("CREATE STREAM R(a int, b string); SELECT COUNT(*) FROM R WHERE b = 'żółw';")
    tree = view_tree(query, find_order(query))
    assert write_picture(tree, tmp_path / "x.pdf", "x", query) == "żł"
    assert write_picture(tree, tmp_path / "x.svg", "x", query) == ""
    assert "żółw" in (tmp_path / "x.svg").read_text(encoding="utf-8")
