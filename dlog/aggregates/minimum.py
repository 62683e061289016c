"""`min(x)`: the least value; of strings by text."""

from __future__ import annotations

from dlog.aggregates.aggregate import ANY_TYPE, IGNORED, Aggregate
from dlog.aggregates.references import EXTREME_MERGE, SCAN_STATE

MIN = Aggregate(
    name="min",
    over="any type with an order",
    gives="the least value",
    argument=ANY_TYPE,
    fold="dlog.engine.head.groups:fold_least",
    state=SCAN_STATE,
    merge=EXTREME_MERGE,
    merged_by="min",
    weights=IGNORED,
    direction=1,
)
