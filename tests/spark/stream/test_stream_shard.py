"""The process of a shard without Spark: what comes twice is taken once, and what is killed continues."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dlog
from dlog.errors import DlogError
from dlog.io import Rejected
from dlog.spark.stream.files import Rows
from dlog.spark.stream.placing import place_program
from dlog.spark.stream.setup import Options, Places
from dlog.spark.stream.shard import ask, packed, unpacked
from dlog.spark.stream.sharded import Processes

PROGRAM = """
sale(id, shop) -> int(id), string(shop).
boss[s] = b -> string(s), int(b).
sale(0, "north").  sale(1, "south").  sale(2, "east").  sale(3, "west").
sold[shop] = n <- agg<<n = count()>> sale(_, shop).
.output sold
"""


def rows_of(*facts: tuple[int, str, str]) -> Rows:
    ids, shops, signs = zip(*facts, strict=True)
    return Rows(pa.table({"id": ids, "shop": shops}), np.array(signs), [Rejected("f", 3, "why", "text")])


def test_packs_hold_what_was_put_in() -> None:
    rows = rows_of((1, "a", "+"), (2, "b", "-"))
    again = unpacked(packed(rows))
    assert (again.table.to_pylist(), again.signs.tolist()) == (rows.table.to_pylist(), ["+", "-"])
    assert again.bad == rows.bad and again.table.schema == rows.table.schema


def test_a_batch_is_taken_once_also_by_a_shard_that_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text(PROGRAM)
    checked = dlog.Database(program).program
    placing = place_program(checked, ["boss", "sale"], 1)
    places = Places(program, [], tmp_path / "out", tmp_path / "state")
    places.checkpoint.mkdir()
    options = Options(shards=1, format="json")
    batch = {"do": "batch", "number": 0, "about": [["sale", "f", 1.0]]}
    data = [packed(rows_of((4, "north", "+"), (1, "south", "-")))]
    changes = tmp_path / "out" / "changes" / "sold" / "batch-00000000-shard-0000.json"

    shards = Processes(places, {"boss": "in", "sale": "in"}, options, placing)
    shards.wait(None)
    (port,) = shards.ports
    another = [packed(rows_of((9, "west", "+")))]
    assert ask(port, shards.key, batch, another) == {"partials": []}
    shards.drop()  # an error elsewhere: nothing is left of it, and the batch may come with other rows
    assert ask(port, shards.key, batch, data) == {"partials": []}
    assert ask(port, shards.key, batch, another) == {"partials": []}  # a task that is tried again
    assert not changes.exists()
    assert shards.commit() == [{"inserted": 1, "erased": 2}]
    first = changes.read_text()
    assert ask(port, shards.key, batch, another) == {"partials": []}
    assert shards.commit() == [{"inserted": 0, "erased": 0}]
    with pytest.raises(DlogError, match=r"the batch failed: KeyError\('nothing'\)"):
        ask(port, shards.key, {**batch, "number": 1, "about": [["nothing", "f", 1.0]]}, data)
    with pytest.raises(DlogError, match="the process of a shard has ended"):
        ask(port, "00" * 32, batch, data)  # without its key
    shards._started[0].kill()
    shards._started[0].wait()
    assert shards.ended() == 0
    with pytest.raises(DlogError, match="the process of a shard has ended"):
        ask(port, shards.key, batch, data)
    shards.end()

    shards = Processes(places, {"boss": "in", "sale": "in"}, options, placing)
    shards.wait(None)
    ask(shards.ports[0], shards.key, batch, another)
    assert shards.commit() == [{"inserted": 0, "erased": 0}]
    twice = [packed(Rows(pa.table({"s": ["a", "a"], "b": [1, 2]}), np.array(["+", "+"]), []))]
    with pytest.raises(DlogError) as caught:  # as one engine says it, and in the file that the user has
        ask(shards.ports[0], shards.key, {"do": "batch", "number": 1, "about": [["boss", "f", 1.0]]}, twice)
    assert caught.value.render().startswith(f"{program}:3:1: error: two values for one key of boss:\n")
    assert "\nboss[s] = b -> string(s), int(b).\n^^^^" in caught.value.render()
    shards.write_values()
    shards.end()
    assert changes.read_text() == first
    values = (tmp_path / "out" / "values" / "sold" / "shard-0000.csv").read_text()
    assert values.splitlines() == ["east\t1", "north\t2", "west\t1"]
    with dlog.Database(places.shard(0), read_only=True) as database:
        assert database.version == 1
