"""`max(x)`: the greatest value; of strings by text."""

from __future__ import annotations

from dlog.aggregates.aggregate import ANY_TYPE, IGNORED, Aggregate
from dlog.aggregates.references import EXTREME_MERGE, SCAN_STATE

MAX = Aggregate(
    name="max",
    over="any type with an order",
    gives="the greatest value",
    argument=ANY_TYPE,
    fold="dlog.engine.head.groups:fold_greatest",
    state=SCAN_STATE,
    merge=EXTREME_MERGE,
    merged_by="max",
    weights=IGNORED,
    direction=-1,
)
