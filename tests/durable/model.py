"""Owns what a durable database must be: a plain model of facts, versions and branches, and its comparison.

The model keeps every version whole and every parent, and shares nothing with dlog.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from pathlib import Path

import dlog

FOLDER = Path("state")
PROGRAM = """
edge(x, y) -> int(x), int(y).
name(x, t) -> int(x), string(t).
price[t] = v -> string(t), int(v).
seen(x) -> int(x).
flag() -> .
reach(x, y) <- edge(x, y).
reach(x, z) <- reach(x, y), edge(y, z).
seen(x) <- edge(x, _).
called(t, n) <- name(x, t), reach(x, n).
total[] = s <- agg<<s = sum(v)>> price[_] = v.
edge(1, 2). name(1, "one"). price["tea"] = 3. seen(100).
"""
Row = tuple[object, ...]
Base = dict[str, set[Row]]
START: Base = {
    "edge": {(1, 2)},
    "name": {(1, "one")},
    "price": {("tea", 3)},
    "seen": {(100,)},
    "flag": set(),
}
RULE = "loop(x) <- reach(x, x)."


def derive(base: Base, rule: bool) -> Base:
    """Every predicate, from base facts."""
    after: dict[object, set[object]] = {}
    for x, y in base["edge"]:
        after.setdefault(x, set()).add(y)
    reach, new = set(base["edge"]), set(base["edge"])
    while new:
        new = {(x, z) for x, y in new for z in after.get(y, ())} - reach
        reach |= new
    found = {name: set(rows) for name, rows in base.items()}
    found["reach"] = reach
    found["seen"] |= {(x,) for x, _ in base["edge"]}
    found["called"] = {(t, n) for x, t in base["name"] for x2, n in reach if x == x2}
    found["total"] = {(sum(v for _, v in base["price"]),)} if base["price"] else set()  # type: ignore[misc]
    if rule:
        found["loop"] = {(x,) for x, y in reach if x == y}
    return found


@dataclass
class Model:
    states: dict[int, tuple[Base, bool, frozenset[str]]] = field(
        default_factory=lambda: {0: (copy.deepcopy(START), False, frozenset())}
    )
    parents: dict[int, tuple[int, ...]] = field(default_factory=lambda: {0: ()})
    heads: dict[str, int] = field(default_factory=lambda: {"main": 0})
    last: int = 0

    def base(self, branch: str) -> Base:
        return self.states[self.heads[branch]][0]

    def commit(
        self,
        branch: str,
        inserts: Base,
        erases: Base,
        *,
        rule: bool = False,
        batch: str | None = None,
        merged: int | None = None,
    ) -> None:
        head = self.heads[branch]
        base, had_rule, batches = self.states[head]
        later = {
            name: (rows - erases.get(name, set())) | inserts.get(name, set()) for name, rows in base.items()
        }
        batches |= {batch} if batch is not None else set()
        if merged is not None:
            batches |= self.states[merged][2]
        self.last += 1
        self.states[self.last] = (later, had_rule or rule, batches)
        self.parents[self.last] = (head,) if merged is None else (head, merged)
        self.heads[branch] = self.last

    def ancestors(self, version: int) -> set[int]:
        found, waiting = set(), [version]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting += self.parents[one]
        return found

    def merge_changes(self, branch: str, other: str) -> tuple[Base, Base]:
        """(Inserts, erases) of what the other branch changed since both were one."""
        common = self.ancestors(self.heads[branch]) & self.ancestors(self.heads[other])
        before, after = self.states[max(common)][0], self.base(other)
        return (
            {name: after[name] - before[name] for name in after},
            {name: before[name] - after[name] for name in after},
        )

    def conflicts(self, branch: str, inserts: Base, erases: Base) -> bool:
        rows = (self.base(branch)["price"] - erases.get("price", set())) | inserts.get("price", set())
        return len({key for key, _ in rows}) < len(rows)


def same_state(model: Model, branch: str, db: dlog.Database) -> str:
    """What differs between the state of a branch and what is checked out; "" if nothing does."""
    base, rule, batches = model.states[model.heads[branch]]
    if db.version != model.heads[branch]:
        return f"version {db.version} instead of {model.heads[branch]}"
    for name, rows in derive(base, rule).items():
        if name not in db or db[name].rows() != sorted(rows):
            return f"{name}: {db[name].rows() if name in db else None} instead of {sorted(rows)}"
    for name, rows in base.items():
        if db.base(name).rows() != sorted(rows):
            return f"base facts of {name}"
    if set(db._timeline.heads[branch].batches.all()) != batches:
        return "batches"
    return ""


def same(model: Model, db: dlog.Database, *, thorough: bool = True) -> str:
    """The same for all branches, versions and invariants.  `db` is on main, and is again afterwards."""
    if db.branches() != model.heads:
        return f"branches {db.branches()} instead of {model.heads}"
    for branch in model.heads:
        db.checkout(branch)
        if wrong := same_state(model, branch, db):
            return f"{branch}: {wrong}"
        if thorough:
            db.check()
            db.verify()
    db.checkout("main")
    db.store.dictionary.check()
    return ""
