"""Owns the machine of random transactions for programs whose predicates have modes, which switch on the way.

What a database computes before somebody asks must never show: whoever reads, at whatever moment and by
whatever way, gets what the naive evaluator gives; a subscriber gets the difference of two such states.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

import dlog
from dlog.engine.commit.commits import Commit
from dlog.engine.maintain import modes as modes_module
from dlog.errors import ConstraintError, DataError, DlogErrors, SourceError
from dlog.ir.goals.materialize import ALWAYS, CHANGES, MODES, modes
from dlog.storage.relation.relation import Relation
from tests.engine.machine import KINDS, REFUSED, Contents, Seen, TransactionMachine
from tests.oracle.bodies import Features
from tests.oracle.changes import Transaction
from tests.oracle.compare import same
from tests.oracle.naive import Facts, evaluate_base

OWN_KINDS = (
    *KINDS,
    *["switch"] * 4,
    *["subscribe", "change"] * 2,
    "unsubscribe",
    "snapshot",
    "branch",
    "checkout",
    "reopen",
    "build",
)


class ModesMachine(TransactionMachine):
    def __init__(self) -> None:
        super().__init__()
        self.random = random.Random(0)
        self.subscriptions: dict[str, tuple[Any, list[dlog.engine.transaction.Change]]] = {}
        self.snapshots: list[tuple[Any, Facts, Any]] = []
        self.branches: dict[str, Any] = {}
        self.changes_program = False
        self.last: tuple[Commit, Facts] | None = None

    @precondition(lambda self: self.started)
    @rule(data=st.data(), kind=st.sampled_from(OWN_KINDS))
    def step(self, data: st.DataObject, kind: str) -> None:
        getattr(self, kind)(data)

    def opened(self, data: st.DataObject) -> dlog.Database:
        self.folder: Path | None = None
        if not data.draw(st.booleans(), label="in a folder"):
            return super().opened(data)
        place = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.folder, program = place / "db", place / "program.dl"
        program.write_text(self.author.text)
        return dlog.Database(self.folder, program=program, strategy=self.strategy, durability="none")

    def reopen(self, data: st.DataObject) -> None:
        if self.folder is None:
            return
        if data.draw(st.booleans(), label="checkpoint"):
            self.db.checkpoint()
        if self.db.current_branch != "main":
            self.branches[self.db.current_branch] = self.state()
            self.restore(self.branches["main"])
        self.db.close()
        self.subscriptions, self.snapshots = {}, []
        self.db = dlog.Database(self.folder, strategy=self.strategy, durability="none")
        self.fresh = True
        self.seen["reopened"] += 1

    def build(self, data: st.DataObject) -> None:
        """States of strategies, and explanations, which choose strategies."""
        self.db.build_states()
        self.db.explain(all=data.draw(st.booleans(), label="all"))
        self.fresh = True

    def begin(self, data: st.DataObject) -> None:
        self.random = random.Random(data.draw(st.integers(0, 9), label="seed of reads"))
        unread = modes_module.UNREAD
        modes_module.UNREAD = data.draw(st.sampled_from((0, 1, 3)), label="unread")
        self.stack.callback(setattr, modes_module, "UNREAD", unread)
        for number in range(3):
            lines = self.join_of_all(data, f"w{number}")
            self.author.lines += lines
            text = "\n".join(lines)
            self.change_program(partial(self.db.add_rules, text), lines)

    def join_of_all(self, data: st.DataObject, name: str) -> list[str]:
        """A predicate with all columns of two others, which no rule reads: each row has one derivation."""
        shown_ones = [p for p in self.program.predicates.values() if not p.auxiliary and p.columns]
        known = [p for p in shown_ones if not any("(" in str(c.type) for c in p.columns)]
        if not known:
            return []
        one, other = (data.draw(st.sampled_from(known), label="joined") for _ in range(2))
        first, types = [f"a{i}" for i in range(len(one.columns))], [str(c.type) for c in one.columns]
        second = [f"b{i}" for i in range(len(other.columns))]
        for i, column in enumerate(other.columns):
            if str(column.type) in types and data.draw(st.booleans(), label="shared"):
                second[i] = first[types.index(str(column.type))]
                break
        shown = dict(zip((*first, *second), (*types, *(str(c.type) for c in other.columns)), strict=True))
        names = data.draw(st.permutations(list(shown)), label="head")
        head, declared = f"{name}({', '.join(names)})", ", ".join(f"{shown[v]}({v})" for v in names)
        return [f"{head} -> {declared}.", f"{head} <- {one.show(tuple(first))}, {other.show(tuple(second))}."]

    # Modes

    @property
    def derived(self) -> list[str]:
        return [name for name in self.db.predicates() if name in self.db.program.stratum_of]

    def switch(self, data: st.DataObject) -> None:
        """Another mode for a predicate, if it can have it."""
        if not self.derived:
            return
        leaves = [name for name in self.derived if name.startswith("w")]
        kinds = [self.derived, *[leaves] * bool(leaves)]
        name = data.draw(st.sampled_from(data.draw(st.sampled_from(kinds))))
        mode = data.draw(st.sampled_from((*MODES, CHANGES)))
        try:
            commit = self.db.execute(f".materialize {name} {mode}")
        except (SourceError, DlogErrors):
            self.seen[f"not {mode}"] += 1
            return
        for _, got in self.subscriptions.values():
            got.clear()
        self.reported(commit, {})  # type: ignore[arg-type]
        self.fresh = True
        self.seen[mode] += 1

    def store_all(self) -> None:
        for name in modes(self.db.program):
            self.db.execute(f".materialize {name} {ALWAYS}")

    # Who asks

    def subscribe(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.derived or self.db.predicates()))
        if name not in self.subscriptions:
            got: list[dlog.engine.transaction.Change] = []
            self.subscriptions[name] = self.db.subscribe(name, got.append), got

    def unsubscribe(self, data: st.DataObject) -> None:
        if self.subscriptions:
            name = data.draw(st.sampled_from(sorted(self.subscriptions)))
            self.subscriptions.pop(name)[0].close()

    def snapshot(self, data: st.DataObject) -> None:
        self.snapshots.append((self.db.snapshot(), self.expected, self.program))

    def branch(self, data: st.DataObject) -> None:
        if len(self.branches) < 3:
            name = f"b{len(self.db.branches())}"
            self.db.branch(name)
            self.branches[name] = self.state()

    def checkout(self, data: st.DataObject) -> None:
        if self.branches:
            self.branches[self.db.current_branch] = self.state()
            name = data.draw(st.sampled_from(sorted(self.branches)))
            self.db.checkout(name)
            self.restore(self.branches[name])
            self.fresh = True
            self.seen["checked out"] += 1

    def state(self) -> Any:
        author = (
            list(self.author.lines),
            list(self.author.predicates),
            list(self.away),
            list(self.constraints),
        )
        return [list(part) for part in author], self.program, self.base, self.expected, self.taken

    def restore(self, state: Any) -> None:
        (lines, predicates, away, constraints), self.program, self.base, self.expected, self.taken = state
        self.author.lines, self.author.predicates = list(lines), list(predicates)
        self.away, self.constraints = list(away), list(constraints)

    # Transactions

    def accepts(self, transaction: Transaction) -> bool:
        return super().accepts(transaction) and not self.has_facts_of_unstored(transaction)

    def has_facts_of_unstored(self, transaction: Transaction) -> bool:
        said, predicates = modes(self.db.program), self.db.program.predicates
        refuses = {n for n, mode in said.items() if mode == CHANGES or predicates[n].is_functional}
        return any(change.predicate in refuses for change in transaction)

    def commit(self, transaction: Transaction) -> None:
        """A value that does not fit is reported when it is computed: no mode may put that off here."""
        later = self.after(transaction)
        try:
            evaluate_base(self.program, later)
        except ConstraintError:
            pass
        except REFUSED:
            self.store_all()
        if self.has_facts_of_unstored(transaction):
            self.store_all()
        for name in self.subscriptions:
            self.subscriptions[name][1].clear()
        super().commit(transaction)

    def change_program(self, step: Callable[[], object], added: list[str]) -> bool:
        for name in self.subscriptions:
            self.subscriptions[name][1].clear()
        before, self.changes_program = (self.db.program, self.db.version), True
        try:
            return super().change_program(step, added)
        except (SourceError, DlogErrors):  # some predicate must be stored
            assert (self.db.program, self.db.version) == before
            self.seen["must be stored"] += 1
            self.store_all()
            return super().change_program(step, added)
        finally:
            self.changes_program = False

    def refuses(self, step: Callable[[], object], kinds: Any = (ConstraintError, DataError)) -> None:
        if self.changes_program and SourceError not in kinds:
            self.store_all()  # it may be a value that does not fit
        super().refuses(step, kinds)

    def shown(self) -> Contents:
        return {}

    def reported(self, commit: Commit, before: Contents) -> None:
        self.last = commit, self.expected

    def same_relations(self, relations: dict[str, Relation], kept: dict[str, Relation]) -> None:
        """A strategy that was chosen again may have added its state, as long as that is empty."""
        assert {name: relations[name] for name in kept} == kept
        assert not any(len(relations[name]) for name in relations.keys() - kept.keys())

    def has_relations(self, relations: dict[str, Relation]) -> None:
        """What is stored may follow who asks, whatever becomes of the transaction."""

    # What must be true

    def same_as_before(self) -> None:
        self.last = None
        super().same_as_before()

    @invariant()
    def compare(self) -> None:
        if not self.fresh:
            return
        self.fresh = False
        self.seen["compared"] += 1
        if self.last is not None:
            self.check_report(*self.last)
            self.last = None
        self.db.check()
        self.db.verify()
        for name in self.db.predicates():
            if self.random.random() < 0.3:
                self.read(name)
        for view, expected, program in self.snapshots[-5:]:
            name = self.random.choice(list(expected))
            if not program.predicates[name].auxiliary:
                self.same_rows(view[name].rows(), expected[name], name, program)
        self.db.check()

    def read(self, name: str) -> None:
        arguments = [f"x{i}" for i in range(len(self.db.program.predicates[name].columns))]
        way = self.random.randrange(4)
        if way == 0:
            rows = self.db[name].rows()
        elif way == 1:
            rows = self.db.snapshot()[name].rows()
        elif way == 2 and arguments:
            atom = self.db.program.predicates[name].show(tuple(arguments))
            rows = self.db.query(f"?- {atom}.").rows()
        else:
            self.snapshots.append((self.db.snapshot(), self.expected, self.program))
            return
        self.same_rows(rows, self.expected[name], name, self.program)

    def same_rows(self, rows: Any, expected: Any, name: str, program: Any) -> None:
        same(rows, expected, [column.type for column in program.predicates[name].columns], name)

    def check_report(self, commit: Commit, before: Facts) -> None:
        said = modes(self.db.program)
        for name in self.db.predicates():
            change = commit.changes.get(name)
            old, new = before.get(name, set()), self.expected[name]
            if change is not None:
                self.same_rows(change.inserted.rows(), new - old, name, self.program)
                self.same_rows(change.erased.rows(), old - new, name, self.program)
            else:
                assert (name in said and name not in self.subscriptions) or new == old, name
            if name in self.subscriptions and new != old:
                (got,) = self.subscriptions[name][1]
                assert got is change or repr(got) == repr(change)


def modes_machine(strategies: tuple[str | None, ...], features: Features, seen: Seen) -> type[ModesMachine]:
    return type(
        "ModesMachine", (ModesMachine,), {"strategies": strategies, "features": features, "seen": seen}
    )
