"""`stddev_pop(x)`: the float nearest to the standard deviation of a whole population."""

from __future__ import annotations

from dlog.aggregates.aggregate import NUMBERS, Aggregate
from dlog.aggregates.references import SUM_MERGE, SUM_STATE

STDDEV_POP = Aggregate(
    name="stddev_pop",
    over="numbers",
    gives="the standard deviation of a population, a float",
    argument=NUMBERS,
    result="float",
    elsewhere=("pstdev",),
    state=SUM_STATE,
    merge=SUM_MERGE,
    moments=(1, 2),
    finish="dlog.engine.head.power_sums:population_deviation_of_sums",
)
