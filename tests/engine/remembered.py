"""Owns what a database remembers, as the oracle reads it: see `tests.oracle.memory`."""

from __future__ import annotations

import dlog
from dlog.engine.commit.result import Result
from tests.oracle.memory import Facts
from tests.oracle.values import canonical


def memory_of(db: dlog.Database) -> Facts:
    """The rows of predicates with memory, from its relations."""
    found = {}
    for name in db.program.remembered:
        rows = db.relation(name).rows()
        result = Result(name, db.program.predicates[name].columns, rows, db.store.dictionary)
        found[name] = {tuple(map(canonical, row)) for row in result.rows()}
    return found
