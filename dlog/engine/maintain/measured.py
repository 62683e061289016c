"""Owns the choice of a strategy by measurement: an estimate that is far too low is corrected, and all
strategies are asked again.

A strategy is found slow first by the clock and then, since the machine may be busy, by processor time.
Nothing is chosen back and forth: another strategy must be estimated to take less than half of what was
measured, and one that was found slow is not examined again before the data has outgrown the choice.  If two
were, it is the machine or the data, so the estimates of the others are corrected as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dlog.engine.maintain import accounts
from dlog.engine.maintain.accounts import FAR, Spent
from dlog.engine.maintain.offers import Question, estimate_of
from dlog.engine.maintain.strategies import REGISTRY
from dlog.engine.maintain.strategy import Strategy

MARGIN = 2.0  # how many times faster another strategy must be estimated to be


@dataclass(frozen=True)
class Slow:
    """A strategy that took far longer than estimated."""

    expected: float  # us for one row
    ratio: float  # of measured to estimated times

    def __str__(self) -> str:
        return (
            f"a row was estimated to take {self.expected:,.0f} us, and took {self.ratio:,.0f} times as long"
        )


@dataclass
class Measured:
    """Of all strata, by number."""

    due: set[int] = field(default_factory=set)  # those whose accounts are to be examined
    doubted: set[int] = field(default_factory=set)  # those that are measured by processor time
    again: set[int] = field(default_factory=set)  # those whose strategy is to be chosen again
    slow: dict[int, dict[str, Slow]] = field(default_factory=dict)  # by the strategy's name in the list

    @property
    def clock(self) -> Callable[[], float]:
        """What measures the next transaction."""
        return accounts.processor_clock if self.doubted else accounts.clock

    def factors(self, number: int) -> dict[str, float]:
        """By how much the costs of strategies are multiplied in a comparison."""
        found = {name: slow.ratio / MARGIN for name, slow in self.slow.get(number, {}).items()}
        if len(found) < 2:
            return found
        return dict.fromkeys((entry.name for entry in REGISTRY), min(found.values())) | found

    def examine(self, number: int, strategy: Strategy, question: Question, spent: Spent) -> None:
        """Note whether a strategy took far longer than estimated, and is to be compared with others again.
        Uses statistics only."""
        name, account = strategy.offered_as, spent[strategy.way]
        if not name or name in self.slow.get(number, {}):
            return
        offer = estimate_of(name, question)
        if offer is None:
            return
        ratio = account.ratio(lambda rows: offer.per_transaction + rows * offer.per_row)
        if ratio > FAR and number not in self.doubted:  # it may be the machine
            self.doubted.add(number)
            account.begin_again()
            return
        self.doubted.discard(number)
        if ratio > FAR:
            self.slow.setdefault(number, {})[name] = Slow(offer.per_transaction + offer.per_row, ratio)
            self.again.add(number)

    def explain(self, number: int) -> list[str]:
        return [f"{name}: {found}" for name, found in self.slow.get(number, {}).items()]
