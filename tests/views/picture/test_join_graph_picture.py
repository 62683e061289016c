"""Pictures of join graphs: every atom and join variable is there once, in each format."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlog.joingraph.body import Atom, Body, Comparison
from dlog.joingraph.plan import Plan, plan_graph
from dlog.views.picture.join_graphs import draw_join_graphs, join_graphs_dot
from dlog.views.picture.scene import Ellipse, Label, Rectangle
from dlog.views.picture.text import string
from tests.test_cli import run

BODY = Body(
    (Atom("user", ("u", "g")), Atom("tweet", ("u", "t", "d")), Atom("retweet", ("w", "r", "t"))),
    ("g", "t", "r"),
    (Comparison(">", "d", 7),),
)
PROGRAM = """
follower(u, f) -> int(u), int(f). tweet(u, t) -> int(u), int(t).
timeline(f, u, t) <- follower(u, f), tweet(u, t).
n[u] = c <- agg<<c = count()>> follower(u, f), tweet(u, t).
"""


def planned() -> Plan:
    plan = plan_graph(BODY)
    assert isinstance(plan, Plan)
    return plan


def test_atoms_are_boxes_and_vertices_are_ellipses() -> None:
    scene = draw_join_graphs([planned()], "three")
    texts = [string(item.text).strip() for item in scene.items if isinstance(item, Label)]
    assert {"three", "user(u, g)", "tweet(u, t, d)", "retweet(w, r, t)", "payload g", "payload r"} <= {*texts}
    assert sum(isinstance(item, Rectangle) for item in scene.items) == 3
    assert sum(isinstance(item, Ellipse) for item in scene.items) == 2
    assert any(text.startswith("change of tweet(u, t, d): user by u") for text in texts)
    for item in scene.items:
        if isinstance(item, Rectangle):
            assert item.x >= 0 and item.x + item.width <= scene.width and item.y + item.height <= scene.height


def test_dot_joins_each_vertex_with_two_atoms() -> None:
    text = join_graphs_dot([planned(), planned()])
    assert text.count("shape=box") == 6 and text.count("shape=ellipse") == 4 and text.count(" -- ") == 8


@pytest.mark.parametrize("suffix", ["svg", "pdf", "dot"])
def test_explain_draws_the_graph_of_a_rule(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM, encoding="utf-8")
    drawn = tmp_path / f"graph.{suffix}"
    given = ["explain", str(tmp_path / "p.dl"), "timeline", "--strategy", "join_graph", "--tree", str(drawn)]
    done = run(*given)
    assert done.returncode == 0 and "join_graph" in done.stdout
    assert drawn.stat().st_size > 400
    if suffix != "pdf":
        assert "tweet(u, t)" in drawn.read_text(encoding="utf-8").replace("&#160;", " ")


def test_without_a_join_graph_the_view_tree_is_drawn(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM, encoding="utf-8")
    drawn = tmp_path / "tree.svg"
    done = run("explain", str(tmp_path / "p.dl"), "n", "--tree", str(drawn))
    assert done.returncode == 0 and "Legend" in drawn.read_text(encoding="utf-8")
