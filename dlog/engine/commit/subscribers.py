"""Owns who is notified of commits, in which order, and what happens if one of them fails.

Knows nothing of transactions.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dlog.errors import SubscriberError

if TYPE_CHECKING:
    from dlog.engine.commit.commits import Change, Changes


class Subscribers:
    """Callbacks in the order of commits, each after its commit, one at a time, outside any lock.

    A callback may start transactions: their changes are delivered after all earlier ones.
    """

    def __init__(self) -> None:
        self.subscriptions: list[Subscription] = []
        self.predicates: frozenset[str] = frozenset()  # of all subscriptions
        self._waiting: deque[tuple[Subscription, Change]] = deque()
        self._delivering = threading.Lock()  # held by the thread that calls back

    def add(self, predicate: str, callback: Callable[[Change], None]) -> Subscription:
        subscription = Subscription(predicate, callback, self._remove)
        self.subscriptions.append(subscription)
        self.predicates = self.predicates | {predicate}
        return subscription

    def _remove(self, subscription: Subscription) -> None:
        self.subscriptions.remove(subscription)
        self.predicates = frozenset(other.predicate for other in self.subscriptions)

    def note(self, changes: Changes) -> None:
        """The notifications of a commit.  O(subscriptions)."""
        for subscription in self.subscriptions:
            if (change := changes.noted(subscription.predicate)) is not None:
                self._waiting.append((subscription, change))

    def tell(self) -> None:
        """Call back, unless a caller or another thread is already doing so.

        All subscribers are called; then, if callbacks failed, the first error is raised.
        """
        failed: SubscriberError | None = None
        while self._waiting and self._delivering.acquire(blocking=False):
            try:
                while self._waiting:
                    error = self._tell_one(*self._waiting.popleft())
                    failed = failed or error
            finally:
                self._delivering.release()
        if failed is not None:
            raise failed from failed.__cause__

    def _tell_one(self, subscription: Subscription, change: Change) -> SubscriberError | None:
        if subscription not in self.subscriptions:
            return None
        try:
            subscription.callback(change)
        except Exception as error:
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            failed = SubscriberError(f"committed, but a subscriber of {change.predicate} failed: {what}")
            failed.__cause__ = error
            return failed
        return None


@dataclass(eq=False)
class Subscription:
    """A callback that gets a predicate's changes until it is closed."""

    predicate: str
    callback: Callable[[Change], None]
    close_with: Callable[[Subscription], None] = field(repr=False)

    def close(self) -> None:
        self.close_with(self)
