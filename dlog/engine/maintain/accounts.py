"""Owns what maintenance has cost: time by stratum and strategy, and whether it is far from the estimate.
Knows no strategy.

The time of a transaction is compared with the estimate for as many rows as it changed.  Kernels that are
loaded and collected garbage make some transactions slow, so what counts is the ratio that three of four of
the last transactions exceed.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, MutableSet
from dataclasses import dataclass, field

FIRST_CHECK = 64  # transactions before the first comparison; the next ones are after twice as many each
RECENT = 64  # transactions that are compared
FAR = 4.0  # times the estimate

clock: Callable[[], float] = time.perf_counter  # seconds
processor_clock: Callable[[], float] = time.thread_time  # the same without other programs, but a system call


@dataclass
class Account:
    """The cost of a stratum in the transactions in which one strategy maintained it."""

    number: int = -1  # of the stratum
    due: MutableSet[int] = field(default_factory=set)  # strata whose costs are to be compared
    times: int = 0
    seconds: float = 0.0
    next_check: int = FIRST_CHECK
    recent: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=RECENT))

    def note(self, seconds: float, share: float, rows: int) -> None:
        """A transaction took so long, this stratum a share of it, for so many changed rows.  O(1)."""
        self.times += 1
        self.seconds += seconds
        self.recent.append((share, rows))
        if self.times == self.next_check:
            self.next_check *= 2
            self.due.add(self.number)

    def begin_again(self) -> None:
        """Compare the next transactions, as soon as there are enough."""
        self.recent.clear()
        self.next_check = self.times + RECENT

    def ratio(self, estimate: Callable[[int], float]) -> float:
        """The ratio of measured to estimated times that three of four of the last transactions exceed; the
        estimate is in us for a number of changed rows."""
        ratios = sorted(1e6 * seconds / estimate(rows) for seconds, rows in self.recent)
        return ratios[len(ratios) // 4] if len(ratios) == RECENT else 0.0

    def __str__(self) -> str:
        """REQUIRES: there were some."""
        transactions = "transaction" if self.times == 1 else "transactions"
        return f"{self.times:,} {transactions}, {self.seconds / self.times * 1e6:,.0f} us each"


class Spent(dict[str, Account]):
    """The accounts of one stratum by strategy."""

    def __init__(self, number: int, due: MutableSet[int]):
        super().__init__()
        self.number, self.due = number, due

    def moved(self, number: int, due: MutableSet[int]) -> Spent:
        """The same accounts, of a stratum of another program."""
        self.number, self.due = number, due
        for account in self.values():
            account.number, account.due = number, due
        return self

    def __missing__(self, way: str) -> Account:
        account = self[way] = Account(self.number, self.due)
        return account

    def __str__(self) -> str:
        """Empty if nothing was measured."""
        parts = [f"{way} in {account}" for way, account in self.items() if account.times]
        return f"measured: {'; '.join(parts)}" if parts else ""
