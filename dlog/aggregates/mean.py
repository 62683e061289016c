"""`mean(x)`: the float nearest to the exact mean; of durations, to the microsecond, half to even."""

from __future__ import annotations

from dlog.aggregates.aggregate import SUMMED, Aggregate
from dlog.aggregates.references import SUM_MERGE, SUM_STATE

MEAN = Aggregate(
    name="mean",
    over="numbers or durations",
    gives="a float; of durations, a duration",
    argument=SUMMED,
    elsewhere=("avg", "average"),
    fold="dlog.engine.head.groups:fold_mean",
    state=SUM_STATE,
    merge=SUM_MERGE,
    moments=(1,),
    finish="dlog.engine.head.power_sums:mean_of_sums",
    is_quotient=True,
)
