"""`stddev(x)`: the float nearest to the standard deviation of a sample, undefined for one value."""

from __future__ import annotations

from dlog.aggregates.aggregate import NUMBERS, Aggregate
from dlog.aggregates.references import SUM_MERGE, SUM_STATE

STDDEV = Aggregate(
    name="stddev",
    over="numbers",
    gives="the standard deviation of a sample, a float",
    argument=NUMBERS,
    result="float",
    elsewhere=("std", "stdev", "stddev_samp"),
    least_count=2,
    state=SUM_STATE,
    merge=SUM_MERGE,
    moments=(1, 2),
    finish="dlog.engine.head.power_sums:sample_deviation_of_sums",
)
