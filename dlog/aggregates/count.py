"""`count()`: how many assignments a group has."""

from __future__ import annotations

from dlog.aggregates.aggregate import ADDED, Aggregate
from dlog.aggregates.references import SUM_MERGE, SUM_STATE

COUNT = Aggregate(
    name="count",
    over="assignments",
    gives="how many",
    result="int",
    over_nothing=0,
    fold="dlog.engine.head.groups:fold_count",
    state=SUM_STATE,
    merge=SUM_MERGE,
    merged_by="sum",
    moments=(),
    finish="dlog.engine.head.power_sums:count_of_sums",
    weights=ADDED,
    in_ring=True,
    grows=True,
)
