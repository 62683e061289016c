"""Owns branches and time as a user sees them: naming versions, switching to them, comparing and merging them.

Works with and without files: a database in memory has branches as long as it lives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from dlog.durable.past import Entry, Past, undone
from dlog.durable.records import BranchRecord
from dlog.durable.replay import or_empty
from dlog.durable.states import begun, changes_between, completed, facts_of, shown_of
from dlog.durable.timeline import MAIN, Moment, Timeline
from dlog.engine import database as engine
from dlog.engine.commit.commits import Changes, Commit
from dlog.engine.commit.printed_facts import fact_text
from dlog.engine.commit.record_uses import codes_in_relations
from dlog.engine.commit.result import Result
from dlog.engine.evaluated import Shown, view_of
from dlog.engine.maintain.facts import rows_with_keys
from dlog.engine.maintain.strategy import net_difference
from dlog.engine.state.shared_subjoins import SharedSubjoins
from dlog.engine.view import View
from dlog.errors import ConstraintError, DlogError
from dlog.heads.lookup import contained
from dlog.interrupts import uninterrupted
from dlog.ir.goals.materialize import DIRECTIVE
from dlog.ir.rules import Predicate
from dlog.jit import Words
from dlog.planning.options import Options
from dlog.planning.versions import is_memory
from dlog.storage.index.batch import Change as Difference
from dlog.storage.relation.relation import Relation

_NAME = re.compile(r"[^\W\d][\w./-]*")
_MOST_CLASHES = 5  # that a message shows


class Branching(engine.Database):
    """The operations of a database on its versions."""

    _timeline: Timeline = None  # type: ignore[assignment]  # until it is open
    current_branch: str = MAIN

    # Hooks for files

    def _write_branch(self, record: BranchRecord) -> None:
        """Called before a branch name is added or removed."""

    def _past(self) -> Past | None:
        """The commits that are still known individually."""
        return None

    # Names

    def branches(self) -> dict[str, int]:
        """The current version of each branch."""
        with self._lock:
            return {name: head.version for name, head in self._timeline.heads.items()}

    @uninterrupted
    def branch(self, name: str, of: str | None = None) -> None:
        """A new branch that begins with the state of another one, of the current one by default.

        Copies nothing, whatever the size of the database.  `checkout` goes to it.
        """
        if not _NAME.fullmatch(name):
            raise DlogError(
                f"{name!r} cannot be the name of a branch", help="a word that begins with a letter"
            )
        with self._lock:
            of = of or self.current_branch
            self._timeline.require(of)
            if name in self._timeline.heads:
                raise DlogError(f"there is a branch {name} already")
            self._write_branch(BranchRecord(name, of))
            self._timeline.branch(name, of)

    @uninterrupted
    def drop_branch(self, name: str) -> None:
        """Remove a name, and the versions that no other branch came from."""
        with self._lock:
            self._timeline.require(name)
            if name == MAIN:
                raise DlogError(
                    f"{MAIN} cannot be dropped", help="it is the branch that is current after opening"
                )
            if name == self.current_branch:
                help = f"check another branch out first, as in .checkout {MAIN}"
                raise DlogError(f"{name} cannot be dropped: it is the current branch", help=help)
            self._write_branch(BranchRecord(name, None))
            self._timeline.drop(name)

    # Switching

    @uninterrupted
    def checkout(self, name: str) -> None:
        """Switch to the head of another branch: transactions and queries refer to that one from now on.

        Derived rows are cached while the database is open, so switching back and forth computes none.  The
        first transaction on it that touches a rule builds the state of its strategy.  If what subscribers
        follow cannot be computed there, the branch stays what it was.
        """
        with self._lock:
            if self.pending:
                self.complete()
            before = self.current_branch
            self._switch(name)
            try:
                if self._maintenance.modes and not self.pending:
                    self._attend()
            except BaseException:
                self._switch(before)
                raise

    def _switch(self, name: str) -> None:
        shown = begun(self._shown_of(self._timeline.require(name)), self)
        self.current_branch = name
        self._take_up(shown)

    def _take_up(self, shown: Shown) -> None:
        store = self.store
        self.tree, self.program, store.relations, store.predicates, self.version, self.pending = shown
        store.options, store.inclusions = Options.of(self.program.pragmas), self.program.inclusions
        store.shared_subjoins = SharedSubjoins()
        self._choose_anew()

    def _show(self) -> None:
        engine.Database._show(self)
        timeline = self._timeline
        if timeline is not None:
            timeline.heads[self.current_branch].state = self._shown

    def held_records(self) -> Iterator[Words]:
        """Of all retained versions."""
        yield from engine.Database.held_records(self)
        for moment in self._timeline.moments() if self._timeline is not None else ():
            shown = self._shown_of(moment)
            yield from codes_in_relations(shown.relations, shown.predicates)

    def _next_version(self) -> int:
        return self._timeline.last + 1

    def _shown_of(self, moment: Moment) -> Shown:
        moment.state = shown_of(moment.state, moment.version, self.store, f"<version {moment.version}>")
        return moment.state

    # Reading the past

    @uninterrupted
    def at(self, when: int | str) -> View:
        """The state at a version, or at the head of a branch, for reading; it never changes.

        Versions are known back to the last checkpoint; heads of branches always.  O(rows that changed since,
        and bytes of the log that were not read before).
        """
        with self._lock:
            return view_of(self._shown_at(when), self)

    def _shown_at(self, when: int | str) -> Shown:
        timeline = self._timeline
        if isinstance(when, str) and not when.isdigit():
            return self._shown_of(timeline.require(when))
        version = int(when)
        for moment in timeline.moments():
            if moment.version == version:
                return self._shown_of(moment)
        return self._shown_before(version)

    def _shown_before(self, version: int) -> Shown:
        past = self._past()
        if past is not None and version in past.commits.keys() | past.programs.keys():
            heads = self._timeline.heads
            for name in (self.current_branch, *heads):
                way = past.way_back(heads[name].version, version)
                if way is not None:
                    _, base = facts_of(heads[name].state)
                    records = [past.commit(number) for number in way]
                    facts = undone(past.program(version), base, records, self.store.arena)
                    return shown_of(facts, version, self.store, f"<version {version}>")
        first = min(past.parents.values(), default=self.version) if past is not None else self.version
        since = f"versions are known from {first} on; " if past else ""
        help = f"{since}to keep a version, name it before a checkpoint: .branch NAME or db.branch(NAME)"
        if not 0 <= version <= self._timeline.last:
            raise DlogError(f"there is no version {version}: the last one is {self._timeline.last}")
        raise DlogError(f"version {version} is no longer known", help=help)

    def history(self) -> list[Entry]:
        """The commits since the last checkpoint, the earliest first; none for a database in memory.

        O(bytes of the log)."""
        with self._lock:
            past = self._past()
            return [] if past is None else past.entries()

    @uninterrupted
    def diff(self, one: int | str, other: int | str) -> Changes:
        """The rows inserted and deleted between two versions or branches, in base and derived predicates.

        Predicates that only one of them has count as empty in the other.
        """
        with self._lock:
            before, after = (completed(self._shown_at(when), self) for when in (one, other))
            for when, shown in ((one, before), (other, after)):
                if not shown.program.directed(DIRECTIVE):  # otherwise some of it may not be stored
                    self._remember(when, shown)
            predicates = {**before.program.predicates, **after.program.predicates}
            found = {}
            for name, predicate in predicates.items():
                if not predicate.auxiliary:
                    found[name] = net_difference(
                        *(
                            or_empty(shown.relations, name, predicate.arity, self.store.arena)
                            for shown in (before, after)
                        )
                    )
            changes = Changes(lambda: found, predicates, self.store.dictionary)
            self.store.dictionary.records.holders.add(changes)
            return changes

    def _remember(self, when: int | str, shown: Shown) -> None:
        """Cache the evaluated state of a branch."""
        if isinstance(when, str) and when in self._timeline.heads and when != self.current_branch:
            self._timeline.heads[when].state = shown

    # Merging

    def merge(self, name: str) -> Commit:
        """One transaction: another branch's changes of base facts since both had a common version.

        Rules are not merged.  If both changed the value of the same key of a function, it is an error and
        nothing changes.
        """
        with self._lock:
            moment, base = self._timeline.require(name), self._timeline.base(self.current_branch, name)
            if name == self.current_branch:
                raise DlogError(f"{name} is the current branch: there is nothing to merge")
            transaction = self.transaction()
            transaction.merged = moment
            before = {} if base is None else facts_of(base.state)[1]
            after = facts_of(moment.state)[1]
            for predicate, change in changes_between(before, after, self.store.arena).items():
                if is_memory(predicate):  # this branch has its own choices and numbers
                    continue
                self._require_same(predicate, change)
                self._require_one_value(name, predicate, change)
                for op, rows in (("-", change.erased), ("+", change.inserted)):
                    if len(rows):
                        transaction.changes.append((op, predicate, np.ascontiguousarray(rows)))
            try:
                return self.commit(transaction)
            except ConstraintError as error:
                error.message = f"{name} cannot be merged into {self.current_branch}: {error.message}"
                raise

    def _require_same(self, predicate: str, change: Difference) -> None:
        known = self.program.predicates.get(predicate)
        if known is None or known.arity != change.inserted.shape[1]:
            help = "rules and declarations are not merged: add it here first"
            raise DlogError(f"{self.current_branch} has no such predicate {predicate}", help=help)

    def _require_one_value(self, name: str, predicate: str, change: Difference) -> None:
        """Raises if a function has a changed value here for a key that has a different new one there."""
        known, relation = self.program.predicates[predicate], self.base_relation(predicate)
        if not known.is_functional or relation is None:
            return
        came, went = (Relation.build(self.store.arena, rows, known.arity) for rows in change)
        ours = rows_with_keys(relation, change.inserted, known.n_keys)
        ours = ours[~(contained(came, ours) | contained(went, ours))]
        if len(ours):
            raise self._clash(name, known, ours, rows_with_keys(came, ours, known.n_keys))

    def _clash(self, name: str, known: Predicate, ours: Words, theirs: Words) -> ConstraintError:
        """Both by key, in the same order."""
        here, shown = self.current_branch, _MOST_CLASHES
        lines = [f"{name} cannot be merged into {here}: both changed the value of the same key"]
        facts = [
            [fact_text(known, row) for row in Result("", known.columns, rows, self.store.dictionary).rows()]
            for rows in (ours[:shown], theirs[:shown])
        ]
        lines += [f"  {one} on {here}, {other} on {name}" for one, other in zip(*facts, strict=True)]
        lines += [f"  and {len(ours) - shown:,} more of {known.name}"] if len(ours) > shown else []
        help = f"make both agree, then merge again: ^{facts[0][0]}. on {name} takes the value of {here}"
        return ConstraintError("\n".join(lines), help=help)
