"""Owns a process that commits until it is killed, and an account of confirmed commits, outside the store.

The nth commit is a function of n, so the state after n commits is known, but for a branch that has been made
or dropped already for the next one.  In rounds of ten: five commits on main, a branch and two commits there,
one on main, a merge, and the branch goes.  In between there are checkpoints.
"""

from __future__ import annotations

import copy
import os
from typing import NamedTuple

import dlog
from tests.durable.model import PROGRAM, Model

TRIAL = "trial"


class Plan(NamedTuple):
    """What the nth commit does."""

    n: int
    branch: str
    merges: bool

    def rows(self) -> tuple[set[tuple[int, int]], set[tuple[int, int]], str]:
        """(Edges that come, edges that go, a name)."""
        n = self.n
        return {(n % 17, n % 13), (n % 5, n)}, {((n - 9) % 5, n - 9)}, f"name {n}"


def plan(n: int) -> Plan:
    place = n % 10
    return Plan(n, TRIAL if place in (6, 7) else "main", place == 9)


def has_trial(n: int) -> bool:
    """Whether the branch must be there for the nth commit."""
    return 6 <= n % 10 <= 9


def work(folder: str, account: str, durability: str) -> None:
    """Never ends by itself."""
    reported = os.open(account, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    db = dlog.Database(folder, source=PROGRAM, durability=durability)
    while True:
        n = max(db.branches().values()) + 1
        os.write(reported, f"try {n}\n".encode())
        _branch(db, n)
        _commit(db, plan(n))
        os.write(reported, f"done {n}\n".encode())
        if n % 23 == 0:
            db.checkpoint()


def _branch(db: dlog.Database, n: int) -> None:
    """Before the nth commit."""
    db.checkout("main")
    if has_trial(n) and TRIAL not in db.branches():
        db.branch(TRIAL)
    elif not has_trial(n) and TRIAL in db.branches():
        db.drop_branch(TRIAL)
    db.checkout(plan(n).branch)


def _commit(db: dlog.Database, plan: Plan) -> None:
    if plan.merges:
        db.merge(TRIAL)
        return
    inserts, erases, name = plan.rows()
    with db.transaction(batch_id=f"batch {plan.n}") as tx:
        tx.erase("edge", sorted(erases))
        tx.insert("edge", sorted(inserts))
        tx.insert("name", [(plan.n, name)])


class Expected:
    """The states that may be there after n commits; n only grows."""

    def __init__(self) -> None:
        self.model, self.n = Model(), 0

    def after(self, n: int) -> list[Model]:
        for k in range(self.n + 1, n + 1):
            _fork(self.model, k)
            _follow(self.model, plan(k))
        self.n = n
        later = copy.deepcopy(self.model)
        _fork(later, n + 1)
        return [self.model, later]


def _fork(model: Model, n: int) -> None:
    if has_trial(n):
        model.heads.setdefault(TRIAL, model.heads["main"])
    else:
        model.heads.pop(TRIAL, None)


def _follow(model: Model, plan: Plan) -> None:
    if plan.merges:
        inserts, erases = model.merge_changes("main", TRIAL)
        model.commit("main", inserts, erases, merged=model.heads[TRIAL])
    else:
        came, went, name = plan.rows()
        model.commit(
            plan.branch,
            {"edge": came, "name": {(plan.n, name)}},  # type: ignore[dict-item]
            {"edge": went},  # type: ignore[dict-item]
            batch=f"batch {plan.n}",
        )
    for version in [v for v in model.states if v < model.last - 20]:
        del model.states[version]
