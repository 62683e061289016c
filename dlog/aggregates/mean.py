"""`mean(x)`: the float nearest to the exact mean."""

from __future__ import annotations

from dlog.aggregates.aggregate import NUMBERS, Aggregate
from dlog.aggregates.references import SUM_MERGE, SUM_STATE

MEAN = Aggregate(
    name="mean",
    over="numbers",
    gives="a float",
    argument=NUMBERS,
    result="float",
    elsewhere=("avg", "average"),
    fold="dlog.engine.head.groups:fold_mean",
    state=SUM_STATE,
    merge=SUM_MERGE,
    moments=(1,),
    finish="dlog.engine.head.power_sums:mean_of_sums",
    is_quotient=True,
)
