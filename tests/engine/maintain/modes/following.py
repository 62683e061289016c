"""Owns a database whose predicates have modes that switch at random, and what must be true after each step.

Whoever reads, at whatever moment and by whatever way, gets what the naive evaluator gives; a subscriber gets
the difference of two such states; a database that stores everything and finds changes by deltas reports the
same changes.  What fails changes nothing.  In the end all facts go, and nothing is left.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

import dlog
from dlog.engine.commit.commits import Change, Commit
from dlog.engine.maintain import modes as modes_module
from dlog.engine.maintain.join_graph import offer
from dlog.engine.maintain.strategies import SELECTABLE
from dlog.engine.maintain.trace.offer import TRACE
from dlog.engine.saving import save
from dlog.engine.state.limits import Limits
from dlog.errors import ConstraintError, DlogErrors, Interrupted, SourceError
from dlog.ir.goals.materialize import CHANGES, MODES, modes
from tests.engine.machine import interrupted_at
from tests.engine.maintain.modes.bodies import Base, Program, Row, apply, literal
from tests.engine.mixed import MIXED, mixed
from tests.oracle.naive import evaluate_base

STRATEGIES = (None, *SELECTABLE, MIXED, *["join_graph"] * 4)
STEPS = {
    "change": 12,
    "batch": 1,
    "switch": 4,
    "subscribe": 2,
    "unsubscribe": 1,
    "snapshot": 1,
    "roll_back": 1,
    "violate": 1,
    "interrupt": 1,
    "branch": 1,
    "checkout": 1,
    "reopen": 1,
    "another_head": 1,
    "build": 1,
}


@lru_cache(maxsize=8)
def checked(text: str) -> Any:
    return dlog.check(text)


class Subscriber:
    """Holds the rows of a predicate by what it is told."""

    def __init__(self, database: dlog.Database, name: str, rows: set[Row]):
        self.rows, self.told = set(rows), 0
        self.subscription = database.subscribe(name, self.note)

    def note(self, change: Change) -> None:
        erased, inserted = set(change.erased.rows()), set(change.inserted.rows())
        assert erased <= self.rows and not inserted & self.rows and not erased & inserted
        self.rows = (self.rows - erased) | inserted
        self.told += 1


class Followed:
    """REQUIRES: it is used as a context."""

    def __init__(self, seed: int, seen: Counter[str]):
        self.random, self.seen, self.stack = Random(seed), seen, ExitStack()
        self.author = Program(self.random)
        self.lines = [*self.author.lines]
        self.base: Base = {shape.name: set() for shape in self.author.base}
        self.strategy = self.random.choice(STRATEGIES)
        self.subscribers: dict[str, Subscriber] = {}
        self.snapshots: list[tuple[Any, dict[str, set[Row]]]] = []
        self.branches: dict[str, tuple[list[str], Base]] = {}

    def __enter__(self) -> Followed:
        patch = self.stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(modes_module, "UNREAD", self.random.choice((0, 1, 3)))
        if self.strategy is None and self.random.random() < 0.5:
            patch.setattr(offer, "BETTER", 0.0)  # the graph is chosen for all that are not stored
        self.db = self._opened()
        if self.strategy == MIXED:
            self.stack.enter_context(mixed(self.random.randrange(99), self.random.random() < 0.5))
        self.plain = dlog.Database(source=self.author.text, strategy="delta")
        self._evaluate()
        return self

    def __exit__(self, *error: object) -> None:
        self.stack.close()

    def _opened(self) -> dlog.Database:
        strategy = TRACE if self.strategy == MIXED else self.strategy
        self.options: dict[str, Any] = {"strategy": strategy}
        self.folder: Path | None = None
        if self.random.random() < 0.6:
            return dlog.Database(source=self.author.text, **self.options)
        self.folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory())) / "db"
        self.options["durability"] = "none"
        return dlog.Database(self.folder, source=self.author.text, **self.options)

    def _evaluate(self) -> None:
        program = checked("\n".join(self.lines) + "\n")
        base = {name: set(self.base.get(name, ())) for name in program.predicates}
        self.expected = evaluate_base(program, base)

    # Steps

    def step(self) -> None:
        kind = self.random.choices([*STEPS], [*STEPS.values()])[0]
        getattr(self, kind)()
        self.seen[kind] += 1
        self.compare()

    def change(self, rows: int | None = None, also: str = "", look: int = 0) -> None:
        """With Ctrl-C at some look at the limits, if it is not 0."""
        changes = self.author.changes(self.base, rows or self.random.choice((1, 1, 1, 2, 4, 9)))
        text = self._text(changes)
        with interrupted_at(look):
            commit = self.db.execute(also + text)
        reference = self.plain.execute(text)
        apply(self.base, changes)
        before = self.expected
        self._evaluate()
        self.reported(commit, reference, before)  # type: ignore[arg-type]

    def batch(self) -> None:
        self.change(60)

    def _text(self, changes: list[tuple[str, str, Row]]) -> str:
        shapes = {shape.name: shape for shape in self.author.base}
        shown = [op + shapes[name].show(tuple(map(literal, row))) for op, name, row in changes]
        return ", ".join(shown) + "."

    def switch(self) -> None:
        """Another mode, by itself or in a transaction with facts."""
        derived = [name for name in self.db.predicates() if name in self.db.program.stratum_of]
        name, mode = self.random.choice(derived), self.random.choice((*MODES, CHANGES))
        directive = f".materialize {name} {mode}\n"
        try:
            if self.random.random() < 0.3:
                self.change(also=directive)
            else:
                self.db.execute(directive)
        except (SourceError, DlogErrors):
            self.seen[f"not {mode}"] += 1
        else:
            self.seen[mode] += 1

    def another_head(self) -> None:
        """A rule comes, or one goes again."""
        extra = [line for line in self.lines if line.startswith("u") and "<-" in line]
        if extra and self.random.random() < 0.5:
            gone = self.random.choice(extra)
            if self._program_change(lambda db: db.remove_rule(gone)):
                self.lines.remove(gone)
        elif len(extra) < 3:
            name = f"u{self.random.randrange(1000)}"
            shape, text = self.author.rule(name, self.random.randint(2, 4))
            if not any(line.startswith(f"{name}(") for line in self.lines):
                added = [shape.declared(), text]
                self._program_change(lambda db: db.add_rules("\n".join(added)))
                self.lines += added
        self._evaluate()

    def _program_change(self, step: Callable[[dlog.Database], object]) -> bool:
        """Not possible where a predicate that is not stored needs the rule."""
        try:
            step(self.db)
        except (SourceError, DlogErrors):
            return False
        step(self.plain)
        return True

    def subscribe(self) -> None:
        name = self.random.choice(self.db.predicates())
        if name not in self.subscribers:
            self.subscribers[name] = Subscriber(self.db, name, self.expected[name])

    def unsubscribe(self) -> None:
        if self.subscribers:
            name = self.random.choice(sorted(self.subscribers))
            self.subscribers.pop(name).subscription.close()

    def snapshot(self) -> None:
        self.snapshots = [*self.snapshots[-3:], (self.db.snapshot(), self.expected)]

    def build(self) -> None:
        """States of strategies, and explanations, which choose strategies; MIXED choices have no offers."""
        if self.random.random() < 0.5:
            self.db.build_states()
        self.db.explain(all=self.strategy != MIXED and self.random.random() < 0.3)

    # What fails

    def roll_back(self) -> None:
        with self.db.transaction() as transaction:
            transaction.execute(self._text(self.author.changes(self.base, 3)))
            transaction.rollback()

    def violate(self) -> None:
        """A row that the constraint forbids, among others."""
        shape = self.author.base[0]
        broken = "^" if shape.functional else "+", shape.name, self.author.broken(shape)
        text = self._text([*self.author.changes(self.base, self.random.randint(0, 3)), broken])
        with pytest.raises(ConstraintError):
            self.db.execute(text)

    def interrupt(self) -> None:
        """Ctrl-C somewhere; a quick transaction gets through."""
        self.db.limits = Limits(timeout=3600)
        version = self.db.version
        try:
            self.change(look=self.random.randint(1, 8))
        except Interrupted:
            assert self.db.version == version
            self.seen["interrupted"] += 1
        finally:
            self.db.limits = Limits()

    # Other versions

    def branch(self) -> None:
        if len(self.branches) < 3:
            name = f"b{len(self.db.branches())}"
            self.db.branch(name)
            self.plain.branch(name)
            self.branches[name] = self._state()

    def checkout(self) -> None:
        if self.branches:
            self._switch_to(self.random.choice(sorted(self.branches)))

    def _switch_to(self, name: str) -> None:
        self.branches[self.db.current_branch] = self._state()
        self.db.checkout(name)
        self.plain.checkout(name)
        lines, base = self.branches[name]
        self.lines, self.base = [*lines], {name: set(rows) for name, rows in base.items()}
        self._evaluate()
        for name in [name for name in self.subscribers if name not in self.expected]:
            self.subscribers.pop(name).subscription.close()
        for name, subscriber in self.subscribers.items():
            subscriber.rows = set(self.expected[name])

    def _state(self) -> tuple[list[str], Base]:
        return [*self.lines], {name: set(rows) for name, rows in self.base.items()}

    def reopen(self) -> None:
        if self.folder is None:
            return
        if self.random.random() < 0.5:
            self.db.checkpoint()
        if self.db.current_branch != "main":
            self._switch_to("main")
        self.db.close()
        self.subscribers, self.snapshots = {}, []
        self.db = dlog.Database(self.folder, **self.options)

    # What must be true

    def reported(self, commit: Commit, reference: Commit, before: dict[str, set[Row]]) -> None:
        """REQUIRES: the program is the same."""
        unstored = modes(self.db.program)
        for name in self.plain.predicates():
            inserted, erased = self.expected[name] - before[name], before[name] - self.expected[name]
            for change in (commit.changes.get(name), reference.changes.get(name)):
                if change is not None:
                    assert set(change.inserted.rows()) == inserted, name
                    assert set(change.erased.rows()) == erased, name
                elif change is None and (name not in unstored or name in self.subscribers):
                    assert not inserted and not erased, name

    def compare(self) -> None:
        for name, subscriber in self.subscribers.items():
            assert subscriber.rows == self.expected[name], name
        if self.random.random() < 0.1:
            self.db.check()
        if self.random.random() < 0.1:
            self.db.verify()
        for name in self.db.predicates():
            if self.random.random() < 0.15:
                assert_rows(self._read(name), self.expected[name], name)
        for view, expected in self.snapshots:
            name = self.random.choice(view.predicates())
            if self.random.random() < 0.3:
                assert_rows(view[name].rows(), expected[name], name)

    def _read(self, name: str) -> list[Row]:
        """In one of the ways to read."""
        columns = [f"x{i}" for i in range(len(self.db.program.predicates[name].columns))]
        way = self.random.choice(("rows", "snapshot", "query", "why", "saved"))
        self.seen[way] += 1
        if way == "snapshot":
            return self.db.snapshot()[name].rows()
        if way == "query":
            return self.db.query(self.db.program.predicates[name].show(tuple(columns))).rows()
        if way == "why" and name in self.db.program.stratum_of:
            for row in sorted(self.expected[name])[:1]:
                self.db.why(self.db.program.predicates[name].show(tuple(map(literal, row))))
        if way == "saved" and self.random.random() < 0.3:
            with tempfile.TemporaryDirectory() as folder:
                save(self.db, Path(folder) / "saved")
        return self.db[name].rows()

    def compare_all(self) -> None:
        for name in self.db.predicates():
            assert_rows(self.db[name].rows(), self.expected[name], name)
            assert_rows(self.plain[name].rows(), self.expected[name], name)
        self.db.check()
        self.db.verify()

    def empty(self) -> None:
        """All facts go, in some transactions."""
        while any(self.base.values()):
            gone = [("-", name, row) for name, rows in self.base.items() for row in sorted(rows)]
            some = self.random.sample(gone, min(len(gone), self.random.choice((1, 3, 10, 100))))
            commit, reference = self.db.execute(self._text(some)), self.plain.execute(self._text(some))
            before = self.expected
            apply(self.base, some)
            self._evaluate()
            self.reported(commit, reference, before)  # type: ignore[arg-type]
            self.compare()
        self.compare_all()


def assert_rows(rows: list[Row], expected: set[Row], name: str) -> None:
    assert len(rows) == len(set(rows)), name
    assert set(rows) == expected, name


def follow(seed: int, steps: int, seen: Counter[str]) -> None:
    """A random program under random steps, which end empty."""
    with Followed(seed, seen) as followed:
        seen["programs"] += 1
        for _ in range(steps):
            followed.step()
        followed.compare_all()
        followed.empty()


@contextmanager
def named(seed: int) -> Iterator[None]:
    """An error says which seed it has."""
    try:
        yield
    except Exception as error:
        with suppress(Exception):
            error.add_note(f"seed {seed}")
        raise
