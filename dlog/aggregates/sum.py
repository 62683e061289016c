"""`sum(x)`, or `total(x)`: the exact sum, an error if it does not fit; of floats rounded once."""

from __future__ import annotations

from dlog.aggregates.aggregate import MULTIPLIED, SUMMED, Aggregate
from dlog.aggregates.references import SUM_MERGE, SUM_STATE

SUM = Aggregate(
    name="sum",
    over="numbers or durations",
    gives="their sum, of the same type",
    argument=SUMMED,
    aliases=("total",),
    over_nothing=0,
    fold="dlog.engine.head.groups:fold_sum",
    state=SUM_STATE,
    merge=SUM_MERGE,
    merged_by="sum",
    moments=(1,),
    finish="dlog.engine.head.power_sums:sum_of_sums",
    weights=MULTIPLIED,
    in_ring=True,
    grows=True,
)
