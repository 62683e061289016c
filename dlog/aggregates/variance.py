"""`variance(x)`: the float nearest to the variance of a sample, undefined for one value."""

from __future__ import annotations

from dlog.aggregates.aggregate import NUMBERS, Aggregate
from dlog.aggregates.references import SUM_MERGE, SUM_STATE

VARIANCE = Aggregate(
    name="variance",
    over="numbers",
    gives="the variance of a sample, a float",
    argument=NUMBERS,
    result="float",
    elsewhere=("var", "var_samp"),
    least_count=2,
    state=SUM_STATE,
    merge=SUM_MERGE,
    moments=(1, 2),
    finish="dlog.engine.head.power_sums:sample_variance_of_sums",
)
