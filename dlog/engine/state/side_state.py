"""Owns the protocol of state beside the store: arrays that are changed in place, not versions of relations.

The store has a *stamp* for such a state: a relation without columns, whose identity says which version of the
state belongs to the relations beside it.  A commit keeps the new stamp and an abort brings back the old one,
with no call to anyone; the next transaction finds out which it was.

1 `begin`: the stamp that is found is the last one (the last transaction was committed: `settle`), or the one
before (it was rolled back: `undo`).  2 the state changes.  3 `end` puts a new stamp into the store.  Several
strata may share a state, each with a stamp of its own name.  Where neither stamp is found, the state is made
anew, between `restart` and `end`.
"""

from __future__ import annotations

from dlog.engine.state.store import Store
from dlog.storage.arena.arena import Arena
from dlog.storage.relation.relation import Relation


class SideState:
    """A state overrides `settle`, `undo`, `memory` and `check`."""

    before: Relation | None = None  # the stamp of the version before the last transaction
    after: Relation | None = None  # that of the version after it

    def settle(self) -> None:
        """The last transaction was committed: what would undo it is not needed any more."""

    def undo(self) -> None:
        """Bring back the state before the last transaction.  O(what that changed)."""
        raise NotImplementedError

    def memory(self) -> int:
        """Its bytes."""
        return 0

    def check(self) -> None:
        """Assert every invariant.  REQUIRES: is_current."""

    def is_known(self, store: Store, name: str) -> bool:
        """Whether a stamp belongs to a version that the state has, or can go back to."""
        stamp = store.relations.get(name)
        return stamp is not None and (stamp is self.after or stamp is self.before)

    def is_current(self, store: Store, name: str) -> bool:
        stamp = store.relations.get(name)
        return stamp is not None and stamp is self.after

    def begin(self, store: Store, name: str) -> None:
        """A transaction begins at the version of a stamp.  REQUIRES: it is known."""
        self.begin_at(store.relations[name])

    def begin_at(self, stamp: Relation) -> None:
        """The same."""
        if stamp is self.after:
            self.settle()
        else:
            self.undo()
        self.before, self.after = stamp, None

    def begin_step(self, stamp: Relation, committed: Relation | None) -> bool:
        """A step of a transaction begins at the version of a stamp; the transaction began at that of the
        committed one.  The steps are undone together.  Returns whether it is the first one."""
        if stamp is self.after:
            if committed is self.before and committed is not None and committed is not stamp:
                return False
            self.settle()
        else:
            self.undo()
        self.before, self.after = stamp, None
        return True

    def cancel_step(self) -> None:
        """Nothing has changed since `begin_step` has returned true."""
        self.after = self.before

    def restart(self) -> None:
        """The state is made anew, or dropped: no stamp belongs to it any more."""
        self.before = self.after = None

    def end(self, store: Store, name: str) -> None:
        """The state is that of the relations in the store; a state that strata share has one new stamp."""
        store.relations[name] = self.new_stamp(store.arena)

    def new_stamp(self, arena: Arena) -> Relation:
        """The same stamp for all strata, until the next transaction begins."""
        if self.after is None:
            before = self.before  # another object for an empty relation is made faster than another relation
            self.after = Relation(arena, 0) if before is None else before.same()
        return self.after

    def forget(self, store: Store, name: str) -> None:
        """The relations are going to change without the state."""
        store.relations.pop(name, None)
