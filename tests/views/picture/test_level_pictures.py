"""Pictures of levels of maps: as those of view trees are, boxes keep apart and lines touch no other box; and
each format has all maps.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.errors import DlogError
from dlog.views.levels.program import Levels, levels
from dlog.views.picture.layered import layers
from dlog.views.picture.levels import Graph, draw_levels, levels_dot, write_levels
from dlog.views.sql.files import read_sql
from tests.examples import relaxed
from tests.test_errors import ROOT, command
from tests.views.picture.test_pictures import check_picture


def of(name: str) -> Levels:
    query = read_sql(ROOT / "programs" / f"{name}.sql", levels=True)
    return levels(query)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["finance/vwap", "finance/mst", "tpch/q3", "tpch/q18", "tpch/q9"])
def test_boxes_keep_apart(name: str) -> None:
    found = of(name)
    check_picture(draw_levels(found, "maps"), len(found.program.maps))


def test_arrows_are_statements() -> None:
    """From each map that is read to the map that is updated, in the colours of the streams."""
    found = of("finance/mst")
    names = [report.name for report in found.program.maps]
    edges = {(names[low], names[high]): streams for (low, high), streams in Graph.of(found).edges.items()}
    assert {high for _, high in edges} == {"mst", "count"}
    assert {low for low, high in edges if high == "mst"} == set(names) - {"mst", "count"}
    assert all(set(streams) == {"BIDS", "ASKS"} for streams in edges.values())
    joined = {
        (box.report.name, box.streams) for box in Graph.of(of("tpch/q3")).boxes if len(box.streams) == 3
    }
    assert joined == {(name, ("CUSTOMER", "ORDERS", "LINEITEM")) for name in ("revenue", "count")}


def test_formats(tmp_path: Path) -> None:
    found = of("finance/vwap")
    assert not any(write_levels(found, tmp_path / f"maps.{end}", "maps") for end in ("svg", "pdf", "dot"))
    text = "".join(ElementTree.parse(tmp_path / "maps.svg").getroot().itertext())
    assert all(report.name in text and report.name in levels_dot(found) for report in found.program.maps)
    assert (tmp_path / "maps.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "maps.dot").read_text().count("->") == 3
    with pytest.raises(DlogError, match="cannot draw"):
        write_levels(found, tmp_path / "maps.png")


def test_commands(tmp_path: Path) -> None:
    query, picture = str(ROOT / "programs" / "finance" / "vwap.sql"), tmp_path / "maps.svg"
    for words in (["explain", query], ["m3", query, "--levels"]):
        assert command(*words, "--tree", str(picture))[2] in (None, 0)
        assert "ordered by" in picture.read_text()
        picture.unlink()


GRAPHS = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=24)


@given(GRAPHS, st.lists(st.integers(5, 90), min_size=12, max_size=12))
@relaxed(40)
def test_invariant_layers(edges: list[tuple[int, int]], widths: list[int]) -> None:
    """What leads up is below; nodes of a row keep the gap; an edge passes each row between."""
    found = layers([(w, 20) for w in widths], edges, gap=9)
    for (low, high), bends in found.bends.items():
        assert found.row_of[low] > found.row_of[high]
        assert len(bends) == found.row_of[low] - found.row_of[high] - 1
    for row in set(found.row_of):
        boxes = sorted((found.centres[n][0], widths[n]) for n in range(12) if found.row_of[n] == row)
        boxes += [
            (x, 0)
            for (low, _), bends in found.bends.items()
            for x, r in _passed(found.row_of[low], bends)
            if r == row
        ]
        boxes.sort()
        for (x, w), (y, v) in pairwise(boxes):
            assert y - x >= (w + v) / 2 - 1e-6


def _passed(row: int, bends: list[float]) -> list[tuple[float, int]]:
    return [(x, row - 1 - i) for i, x in enumerate(bends)]
