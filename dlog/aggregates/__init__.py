"""Owns the registry of aggregates: one file each, listed here and nowhere else.

To add one, write its file and add its object to `_REGISTERED` (see CONTRIBUTING.md).
"""

from __future__ import annotations

from dlog.aggregates.aggregate import Aggregate, load
from dlog.aggregates.concat import CONCAT
from dlog.aggregates.count import COUNT
from dlog.aggregates.count_distinct import COUNT_DISTINCT
from dlog.aggregates.maximum import MAX
from dlog.aggregates.mean import MEAN
from dlog.aggregates.minimum import MIN
from dlog.aggregates.references import USER_STATE
from dlog.aggregates.stddev import STDDEV
from dlog.aggregates.stddev_pop import STDDEV_POP
from dlog.aggregates.sum import SUM
from dlog.aggregates.user import USER, user_aggregate
from dlog.aggregates.variance import VARIANCE
from dlog.aggregates.variance_pop import VARIANCE_POP

_REGISTERED = (
    *(COUNT, SUM, MIN, MAX, MEAN, CONCAT),
    *(VARIANCE, STDDEV, VARIANCE_POP, STDDEV_POP, COUNT_DISTINCT),
)

# By name and alias.
AGGREGATES: dict[str, Aggregate] = {name: one for one in _REGISTERED for name in (one.name, *one.aliases)}

COFACTOR = "cofactor"  # in `agg<<...>>` only: rewritten to sums (`dlog.ir.lower.cofactors`)

__all__ = ["AGGREGATES", "COFACTOR", "Aggregate", "aggregate_named", "elsewhere", "load", "states"]


def aggregate_named(name: str) -> Aggregate:
    """REQUIRES: there is one with this name or alias, or the program declares it."""
    return user_aggregate(name) if name.startswith(USER) else AGGREGATES[name]


def states() -> list[str]:
    """The classes that maintain aggregates, in the order of their states in a rule."""
    return list(dict.fromkeys([*(one.state for one in _REGISTERED), USER_STATE]))


def elsewhere() -> dict[str, str]:
    """Names of aggregates in other languages -> their names here."""
    return {word: one.name for one in _REGISTERED for word in one.elsewhere}
