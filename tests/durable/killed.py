"""Owns a process that commits until it is killed, and an account of what it was told, outside of the store.

The nth commit is a function of n, so the state after n commits is known.
"""

from __future__ import annotations

import os

import dlog
from tests.durable.model import PROGRAM, Model


def rows_of(n: int) -> tuple[set[tuple[int, int]], set[tuple[int, int]], str]:
    """(Edges that come, edges that go, a name) of the nth commit."""
    return {(n % 17, n % 13), (n % 5, n)}, {((n - 9) % 5, n - 9)}, f"name {n}"


def work(folder: str, account: str, durability: str) -> None:
    """Never ends by itself."""
    told = os.open(account, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    db = dlog.Database(folder, source=PROGRAM, durability=durability)
    while True:
        n = db.version + 1
        os.write(told, f"try {n}\n".encode())
        _commit(db, n)
        os.write(told, f"done {n}\n".encode())
        if n % 23 == 0:
            db.checkpoint()


def _commit(db: dlog.Database, n: int) -> None:
    inserts, erases, name = rows_of(n)
    with db.transaction(batch_id=f"batch {n}") as tx:
        tx.erase("edge", sorted(erases))
        tx.insert("edge", sorted(inserts))
        tx.insert("name", [(n, name)])


def expected(n: int) -> Model:
    """The state after n commits."""
    model = Model()
    for k in range(1, n + 1):
        inserts, erases, name = rows_of(k)
        model.commit("main", {"edge": inserts, "name": {(k, name)}}, {"edge": erases}, batch=f"batch {k}")  # type: ignore[dict-item]
        for version in [v for v in model.states if v < model.last - 1]:
            del model.states[version]
    return model
