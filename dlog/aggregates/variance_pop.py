"""`variance_pop(x)`: the float nearest to the variance of a whole population."""

from __future__ import annotations

from dlog.aggregates.aggregate import NUMBERS, Aggregate
from dlog.aggregates.references import SUM_MERGE, SUM_STATE

VARIANCE_POP = Aggregate(
    name="variance_pop",
    over="numbers",
    gives="the variance of a population, a float",
    argument=NUMBERS,
    result="float",
    elsewhere=("var_pop",),
    state=SUM_STATE,
    merge=SUM_MERGE,
    moments=(1, 2),
    finish="dlog.engine.head.power_sums:population_variance_of_sums",
)
