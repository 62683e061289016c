"""Owns what maintenance has cost: time by stratum and strategy.  Knows no strategy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Account:
    """The cost of a stratum in the transactions in which one strategy maintained it."""

    times: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        """REQUIRES: there were some."""
        transactions = "transaction" if self.times == 1 else "transactions"
        return f"{self.times:,} {transactions}, {self.seconds / self.times * 1e6:,.0f} us each"


class Spent(dict[str, Account]):
    """The accounts of one stratum by strategy."""

    def __missing__(self, way: str) -> Account:
        account = self[way] = Account()
        return account

    def __str__(self) -> str:
        """Empty if nothing was measured."""
        parts = [f"{way} in {account}" for way, account in self.items() if account.times]
        return f"measured: {'; '.join(parts)}" if parts else ""
