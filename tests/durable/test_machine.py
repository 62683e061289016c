"""A machine of transactions, branches, reopenings and crashes, compared with a plain model at each step."""

from __future__ import annotations

import copy
import random
from collections import Counter

import pytest
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

import dlog
from dlog.errors import ConstraintError, DlogError, StoreError
from tests.durable.model import FOLDER, PROGRAM, RULE, Base, Model, derive, same, same_state
from tests.durable.simulated import Crash, SimulatedFiles

KEYS = st.integers(0, 5)
EDGES = st.tuples(KEYS, KEYS)
NAMES = st.tuples(KEYS, st.sampled_from(["", "one", "ä€", "a longer text", "x" * 40]))
PRICES = st.tuples(st.sampled_from(["tea", "nuts", "salt"]), KEYS)
KINDS = (
    *["change"] * 4,
    "set_price",
    *["checkout", "merge", "crash", "crash_in_commit"] * 2,
    *("many", "fork", "drop", "checkpoint", "reopen", "add_rule", "look_back", "compare_branches", "repeat"),
)
Change = tuple[Base, Base]


class DurableMachine(RuleBasedStateMachine):
    durability = "full"
    seen: Counter[str] = Counter()

    @initialize()
    def start(self) -> None:
        self.files, self.model, self.on = SimulatedFiles(), Model(), "main"
        self.forgotten = 0  # versions up to this one may be gone
        self.open()

    def open(self) -> None:
        self.db = dlog.Database(FOLDER, source=PROGRAM, durability=self.durability, files=self.files)
        self.db.checkout(self.on)

    @rule(data=st.data(), kind=st.sampled_from(KINDS))
    def step(self, data: st.DataObject, kind: str) -> None:
        self.seen[kind] += 1
        getattr(self, kind)(data)
        assert same_state(self.model, self.on, self.db) == ""

    # Transactions

    def change(self, data: st.DataObject) -> None:
        inserts, erases = self.drawn(data)
        batch = data.draw(st.none() | st.sampled_from(["b1", "b2", "b3"]), label="batch")
        self.commit(inserts, erases, batch)

    def drawn(self, data: st.DataObject) -> Change:
        drawn = [
            {
                "edge": data.draw(st.sets(EDGES, max_size=3)),
                "name": data.draw(st.sets(NAMES, max_size=2)),
                "price": data.draw(st.sets(PRICES, max_size=1)),
                "seen": data.draw(st.sets(st.tuples(KEYS), max_size=1)),
                "flag": data.draw(st.sampled_from([set(), {()}])),
            }
            for _ in range(2)
        ]
        return drawn[0], drawn[1]

    def set_price(self, data: st.DataObject) -> None:
        """A value for a key of a function, whatever it had: what merges meet from both sides."""
        key, value = data.draw(PRICES, label="price")
        replaced = {row for row in self.model.base(self.on)["price"] if row[0] == key}
        with self.db.transaction() as tx:
            tx.upsert("price", [(key, value)])
        self.model.commit(self.on, {"price": {(key, value)}}, {"price": replaced - {(key, value)}})

    def many(self, data: st.DataObject) -> None:
        start = data.draw(st.integers(0, 3), label="start")
        self.commit({"name": {(n, f"text {n % 7}") for n in range(start, start + 100)}}, {}, None)

    def commit(self, inserts: Base, erases: Base, batch: str | None) -> None:
        expected = self.after(inserts, erases, batch)
        try:
            commit = self.run(inserts, erases, batch)
        except ConstraintError:
            assert expected is None
            self.seen["conflict"] += 1
            return
        assert expected is not None and commit.repeated == (expected.last == self.model.last)
        self.model = expected

    def after(self, inserts: Base, erases: Base, batch: str | None) -> Model | None:
        """The model after a transaction; None if it must fail."""
        if batch is not None and batch in self.model.states[self.model.heads[self.on]][2]:
            return self.model
        if self.model.conflicts(self.on, inserts, erases):
            return None
        later = copy.deepcopy(self.model)
        later.commit(self.on, inserts, erases, batch=batch)
        return later

    def run(self, inserts: Base, erases: Base, batch: str | None) -> dlog.engine.transaction.Commit:
        with self.db.transaction(batch_id=batch) as tx:
            for name, rows in erases.items():
                if rows:
                    tx.erase(name, sorted(rows))
            for name, rows in inserts.items():
                if rows:
                    tx.insert(name, sorted(rows))
        assert tx.commit_info is not None
        return tx.commit_info

    def add_rule(self, data: st.DataObject) -> None:
        self.db.execute(RULE)
        self.model.commit(self.on, {}, {}, rule=True)

    def repeat(self, data: st.DataObject) -> None:
        """A batch that is delivered twice counts once."""
        for n in range(2):
            self.commit({"edge": {(n, n)}}, {}, "twice")

    # Branches

    def fork(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(["trial", "other"]), label="name")
        if name not in self.model.heads:
            self.db.branch(name)
            self.model.heads[name] = self.model.heads[self.on]

    def drop(self, data: st.DataObject) -> None:
        if "other" in self.model.heads and self.on != "other":
            self.db.drop_branch("other")
            del self.model.heads["other"]

    def checkout(self, data: st.DataObject) -> None:
        self.on = data.draw(st.sampled_from(sorted(self.model.heads)), label="to")
        self.db.checkout(self.on)

    def merge(self, data: st.DataObject) -> None:
        if len(self.model.heads) == 1:
            self.fork(data)
        other = data.draw(st.sampled_from(sorted(self.model.heads.keys() - {self.on})), label="from")
        if data.draw(st.booleans(), label="both set a price"):
            self.set_price(data)
            self.on_branch(other, data)
        inserts, erases = self.model.merge_changes(self.on, other)
        if self.model.conflicts(self.on, inserts, erases):
            with pytest.raises(ConstraintError, match=f"{other} cannot be merged into {self.on}: ") as error:
                self.db.merge(other)
            ours, theirs = (dict(self.model.base(name)["price"]) for name in (self.on, other))
            reported = [line.strip() for line in str(error.value).splitlines()[1:]]
            assert reported and all(
                f'price["{k}"] = {ours[k]} on {self.on}, price["{k}"] = {theirs[k]} on {other}' in reported
                for k in ours.keys() & {key for key, _ in inserts["price"]}
                if (k, ours[k]) not in erases["price"] | inserts["price"]
            )
            self.seen["conflict of a merge"] += 1
            event("conflict of a merge")
            return
        self.db.merge(other)
        self.seen["merged"] += 1
        self.model.commit(self.on, inserts, erases, merged=self.model.heads[other])

    def on_branch(self, other: str, data: st.DataObject) -> None:
        """A price of another branch."""
        here, self.on = self.on, other
        self.db.checkout(other)
        self.set_price(data)
        self.on = here
        self.db.checkout(here)

    def compare_branches(self, data: st.DataObject) -> None:
        one, other = (data.draw(st.sampled_from(sorted(self.model.heads))) for _ in range(2))
        before, after = (derive(*self.model.states[self.model.heads[name]][:2]) for name in (one, other))
        expected = {
            name: (
                sorted(after.get(name, set()) - before.get(name, set())),
                sorted(before.get(name, set()) - after.get(name, set())),
            )
            for name in {**before, **after}
        }
        found = {n: (c.inserted.rows(), c.erased.rows()) for n, c in self.db.diff(one, other).items()}
        assert found == {name: change for name, change in expected.items() if change != ([], [])}

    # Time

    def checkpoint(self, data: st.DataObject) -> None:
        self.db.checkpoint()
        self.forgotten = self.model.last

    def look_back(self, data: st.DataObject) -> None:
        version = data.draw(st.integers(0, self.model.last), label="version")
        try:
            view = self.db.at(version)
        except DlogError:
            assert version < self.forgotten or not self.reachable(version)
            return
        base, rule, _ = self.model.states[version]
        for name, rows in derive(base, rule).items():
            assert view[name].rows() == sorted(rows)
        self.seen["looked back"] += 1

    def reachable(self, version: int) -> bool:
        """Whether some branch came from a version by commits alone: merges are not gone back through."""
        for head in self.model.heads.values():
            while head != version and self.model.parents[head]:
                head = self.model.parents[head][0]
            if head == version:
                return True
        return False

    # Endings

    def reopen(self, data: st.DataObject) -> None:
        self.db.close()
        self.open()
        self.compare_all()

    def crash(self, data: st.DataObject) -> None:
        """Between two operations: nothing that was acknowledged is lost."""
        self.end(data)
        self.open()
        self.compare_all()

    def crash_in_commit(self, data: st.DataObject) -> None:
        """In the middle of a transaction: all of it is there, or nothing."""
        inserts, erases = self.drawn(data)
        expected = self.after(inserts, erases, None)
        self.files.arm(data.draw(st.integers(1, 2), label="operation"), crash=True)
        try:
            self.run(inserts, erases, None)
        except (Crash, ConstraintError):
            pass
        else:
            assert expected is not None
            self.model = expected
        self.files.disarm()
        self.end(data)
        self.open()
        candidates = [self.model] + ([expected] if expected is not None else [])
        found = [same_state(model, self.on, self.db) for model in candidates]
        assert "" in found, found
        self.model = candidates[found.index("")]
        self.compare_all()

    def end(self, data: st.DataObject) -> None:
        if data.draw(st.booleans(), label="power is lost"):
            self.files.lose_power(random.Random(data.draw(st.integers(0, 999), label="seed")))
        else:
            self.files.kill()

    def compare_all(self) -> None:
        self.db.checkout("main")
        assert same(self.model, self.db) == ""
        self.db.checkout(self.on)
        with pytest.raises(StoreError, match="in use"):
            dlog.Database(FOLDER, files=self.files)


def run_machines(examples: int, steps: int, durability: str = "full") -> Counter[str]:
    seen: Counter[str] = Counter()
    machine = type("DurableMachine", (DurableMachine,), {"durability": durability, "seen": seen})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    )
    return seen


def test_oracle_transactions_branches_and_crashes() -> None:
    seen = run_machines(12, 25)
    reported = ("conflict", "conflict of a merge", "merged", "looked back")
    assert not {kind for kind in (*KINDS, *reported) if not seen[kind]}, seen


@pytest.mark.fuzz
@pytest.mark.parametrize("durability", ["full", "group"])
def test_oracle_transactions_branches_and_crashes_long(durability: str) -> None:
    assert run_machines(400, 40, durability)["conflict of a merge"] > 100
