"""A transaction that is refused on the short path leaves the store's relations as they were."""

from __future__ import annotations

import pytest

import dlog
from dlog.engine.maintain.triggers.trigger_search import NEVER
from dlog.errors import ConstraintError

PROGRAM = """
f[x] = y -> int(x), int(y).  g(y) -> int(y).
f[1] = 2.  g(2).  g(3).
p(x, y) <- f[x] = y, g(y).
"""


@pytest.mark.parametrize("strategy", (None, "delta"))
def test_a_refused_first_row_adds_no_relation(strategy: str | None) -> None:
    """Not even the empty counts of a head whose rows are derived once."""
    db = dlog.Database(source=PROGRAM, strategy=strategy)
    relations, kept = db.store.relations, dict(db.store.relations)
    for _ in range(2):
        with pytest.raises(ConstraintError):
            db.apply(insert={"f": [(1, 3)]})
        assert db.store.relations is relations
        assert relations == kept
    assert db._maintenance.triggers["f", 1] is not NEVER, "the rows took the general path"
    db.apply(insert={"f": [(4, 3)]})
    assert sorted(db["p"].rows()) == [(1, 2), (4, 3)]
    db.check()
    db.verify()
