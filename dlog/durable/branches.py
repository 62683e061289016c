"""Owns branches and time as a user has them: naming versions, going to them, comparing and merging them.

Works with and without files: a database in memory has branches as long as it lives.
"""

from __future__ import annotations

import re

import numpy as np

from dlog.durable.past import Entry, Past, undone
from dlog.durable.records import BranchRecord
from dlog.durable.states import Shown, completed, facts_of, shown_of, view_of
from dlog.durable.timeline import MAIN, Moment, Timeline
from dlog.engine import database as engine
from dlog.engine.maintain import Maintenance
from dlog.engine.shared import SharedParts
from dlog.engine.strategy import net_difference
from dlog.engine.transaction import Changes, Commit
from dlog.engine.view import View
from dlog.errors import DlogError
from dlog.interrupts import uninterrupted
from dlog.planning.options import Options
from dlog.storage.batch import Change as Difference
from dlog.storage.relation import Relation

_NAME = re.compile(r"[^\W\d][\w./-]*")


class Branching(engine.Database):
    """What a database can do with its versions."""

    _timeline: Timeline
    current_branch: str = MAIN

    # What files add

    def _write_branch(self, record: BranchRecord) -> None:
        """Before a name of a branch comes or goes."""

    def _past(self) -> Past | None:
        """The commits that are still known one by one."""
        return None

    # Names

    def branches(self) -> dict[str, int]:
        """The version that each branch has come to."""
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
        """Forget a name, and the versions that no other branch came from."""
        with self._lock:
            self._timeline.require(name)
            if name in (MAIN, self.current_branch):
                raise DlogError(f"{name} cannot be dropped", help="check another branch out first")
            self._write_branch(BranchRecord(name, None))
            self._timeline.drop(name)

    # Going there

    @uninterrupted
    def checkout(self, name: str) -> None:
        """Go on from the head of another branch: transactions and queries are about that one from now on.

        What rules derive there is kept while the database lives, so to go back and forth costs nothing.
        """
        with self._lock:
            if self.pending:
                self.complete()
            moment = self._timeline.require(name)
            shown = completed(self._shown_of(moment), self)
            self.current_branch = name
            self._take_up(shown)

    def _take_up(self, shown: Shown) -> None:
        store = self.store
        self.tree, self.program, store.relations, store.predicates, self.version, self.pending = shown
        self._maintenance = Maintenance.of(self.program, self._maintenance.wanted)
        store.options, store.inclusions = Options.of(self.program.pragmas), self.program.inclusions
        store.shared_parts = SharedParts()
        self._show()

    def _show(self) -> None:
        super()._show()
        if hasattr(self, "_timeline"):
            self._timeline.heads[self.current_branch].state = self._shown

    def _next_version(self) -> int:
        return self._timeline.last + 1

    def _shown_of(self, moment: Moment) -> Shown:
        moment.state = shown_of(moment.state, moment.version, self.store, f"<version {moment.version}>")
        return moment.state

    # Looking back

    @uninterrupted
    def at(self, when: int | str) -> View:
        """The state at a version, or at the head of a branch, to read; it stays as it is.

        Versions are known back to the last checkpoint; heads of branches always.
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
                    facts = undone(past.program(version), base, way, self.store.arena)
                    return shown_of(facts, version, self.store, f"<version {version}>")
        first = min(past.parents.values(), default=self.version) if past is not None else self.version
        since = f"versions are known from {first} on; " if past else ""
        help = f"{since}a branch keeps a version for good: db.branch(NAME)"
        if not 0 <= version <= self._timeline.last:
            raise DlogError(f"there is no version {version}: the last one is {self._timeline.last}")
        raise DlogError(f"version {version} is not known any more", help=help)

    def history(self) -> list[Entry]:
        """The commits since the last checkpoint, the earliest first; none of a database in memory."""
        with self._lock:
            past = self._past()
            return [] if past is None else past.entries()

    @uninterrupted
    def diff(self, one: int | str, other: int | str) -> Changes:
        """What came and what went between two versions or branches: base facts, and what rules derive.

        Predicates that only one of them has count as empty in the other.
        """
        with self._lock:
            before, after = (completed(self._shown_at(when), self) for when in (one, other))
            for when, shown in ((one, before), (other, after)):
                self._remember(when, shown)
            predicates = {**before[1].predicates, **after[1].predicates}
            found = {}
            for name, predicate in predicates.items():
                if not predicate.auxiliary:
                    relations = [self._or_empty(shown, name, predicate.arity) for shown in (before, after)]
                    found[name] = net_difference(*relations)
            return Changes(found, predicates, self.store.dictionary)

    def _remember(self, when: int | str, shown: Shown) -> None:
        """What has been evaluated of a branch is kept."""
        if isinstance(when, str) and when in self._timeline.heads and when != self.current_branch:
            self._timeline.heads[when].state = shown

    def _or_empty(self, shown: Shown, name: str, arity: int) -> Relation:
        relation = shown[2].get(name)
        return (
            relation
            if relation is not None and relation.arity == arity
            else Relation(self.store.arena, arity)
        )

    # Merging

    def merge(self, name: str) -> Commit:
        """One transaction: what another branch changed of base facts since both were one.

        Rules are not merged.  Where both gave another value to a key of a function, it is an error and
        nothing changes.
        """
        with self._lock:
            moment, base = self._timeline.require(name), self._timeline.base(self.current_branch, name)
            if name == self.current_branch:
                raise DlogError(f"{name} is the current branch: there is nothing to merge")
            transaction = self.transaction()
            transaction.merged = moment
            for predicate, change in self._changed_since(base, moment).items():
                self._require_same(predicate, change)
                transaction.changes += [("-", predicate, change.erased)] if len(change.erased) else []
                transaction.changes += [("+", predicate, change.inserted)] if len(change.inserted) else []
            return self.commit(transaction)

    def _changed_since(self, base: Moment | None, moment: Moment) -> dict[str, Difference]:
        before = {} if base is None else facts_of(base.state)[1]
        found = {}
        for name, relation in facts_of(moment.state)[1].items():
            old = before.get(name)
            if old is None or old.arity != relation.arity:
                old = Relation(self.store.arena, relation.arity)
            change = net_difference(old, relation)
            if change:
                found[name] = Difference(*(np.ascontiguousarray(rows) for rows in change))
        return found

    def _require_same(self, predicate: str, change: Difference) -> None:
        known = self.program.predicates.get(predicate)
        if known is None or known.arity != change.inserted.shape[1]:
            help = "rules and declarations are not merged: add it here first"
            raise DlogError(f"{self.current_branch} has no such predicate {predicate}", help=help)
