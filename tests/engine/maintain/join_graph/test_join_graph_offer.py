"""When a join graph is chosen without being requested, and why it is not."""

from __future__ import annotations

import dlog

CHANGES = "\n.materialize far changes"
TWO = """
follower(u, f) -> int(u), int(f). tweet(u, t) -> int(u), int(t).
far(f, u, t) <- follower(u, f), tweet(u, t).
"""
CYCLE = """
follower(u, f) -> int(u), int(f). tweet(u, t) -> int(u), int(t).
far(f, u, t) <- follower(u, f), tweet(u, t), follower(f, t).
"""


def database(text: str, each: int) -> dlog.Database:
    """Of ten users with so many followers each, and as many tweets, while somebody subscribes."""
    db = dlog.Database(source=text)
    db.apply(
        insert={
            "follower": [(u, f) for u in range(10) for f in range(each)],
            "tweet": [(u, t) for u in range(10) for t in range(each)],
        }
    )
    db.subscribe("far", lambda change: None)
    db.apply(insert={"tweet": [(0, 10_000)]})
    return db


def test_chosen_where_a_row_gives_many() -> None:
    text = database(TWO + CHANGES, 400).explain()
    assert "maintained by strategy join_graph, because a changed row gives about 400 rows" in text
    assert "maintained by strategy delta" in database(TWO + CHANGES, 20).explain()


def test_not_chosen_for_stored_heads() -> None:
    db = database(TWO, 400)
    assert "maintained by strategy delta" in db.explain()
    assert "its links are kept beside the indices that other strategies read, too" in db.explain(all=True)


def test_refusals_have_reasons() -> None:
    few = database(TWO + CHANGES, 20).explain(all=True)
    assert "a changed row gives about 20.1 rows, which deltas find about as fast" in few
    assert "join_graph    refused: its atoms join in a cycle" in _request(CYCLE)
    assert "join_graph    refused: its atoms join in a cycle" in database(CYCLE + CHANGES, 20).explain(
        all=True
    )


def _request(text: str) -> str:
    db = dlog.Database(source=text, strategy="join_graph")
    return db.explain(all=True)


def test_a_subscriber_gets_the_same_after_the_choice_has_changed() -> None:
    """Deltas at first; a graph once there are many rows."""
    db = dlog.Database(source=TWO + CHANGES)
    got: list[tuple[int, int]] = []
    db.subscribe("far", lambda change: got.append((len(change.inserted), len(change.erased))))
    ways = []
    for n in (1, 40, 600):
        db.apply(insert={"follower": [(1, 1000 * n + f) for f in range(n)], "tweet": [(1, n)]})
        db.apply(insert={"tweet": [(1, -n)]}, erase={"tweet": [(1, n)]})
        ways.append(db.explain().count("strategy join_graph"))
        followers = len(db["follower"])
        assert got[-1] == (followers, followers)
        db.check()
    assert ways[0] == 0 and ways[-1] == 1


def test_not_chosen_where_functions_are_evaluated_on_its_rows() -> None:
    text = TWO.replace("far(f, u, t)", "far(f, u, t, n)").replace(
        "tweet(u, t).\n", "tweet(u, t), n = f + t.\n"
    )
    found = database(text + CHANGES, 400).explain(all=True)
    assert "maintained by strategy delta" in found
    assert "on request only: a changed row gives about 400 rows, which deltas find faster" in found


def test_deltas_are_estimated_by_the_rows_of_the_change() -> None:
    found = database(TWO + CHANGES, 400).explain(all=True)
    (line,) = (line for line in found.splitlines() if line.strip().startswith("delta "))
    assert line.split()[1:3] == ["210", "us"] and 10 < float(line.split()[3]) < 20, line
