"""`count_distinct(x)`: how many distinct values a group has."""

from __future__ import annotations

from dlog.aggregates.aggregate import ANY_TYPE, IGNORED, Aggregate
from dlog.aggregates.references import DISTINCT_MERGE, DISTINCT_STATE
from dlog.values.record import ANY_RECORD

COUNT_DISTINCT = Aggregate(
    name="count_distinct",
    over="any type",
    gives="how many distinct values",
    argument=(*ANY_TYPE, ANY_RECORD),
    result="int",
    elsewhere=("distinct_count", "countd", "n_unique", "nunique"),
    over_nothing=0,
    fold="dlog.engine.head.groups:fold_distinct",
    state=DISTINCT_STATE,
    merge=DISTINCT_MERGE,
    weights=IGNORED,
    is_distinct=True,
    grows=True,
)
