"""Owns the names of the parts that several aggregates share.  They are loaded by `aggregate.load`.

A state class maintains aggregates under change, a merge class makes and merges the partial values of shards.
"""

from __future__ import annotations

_STATE = "dlog.engine.head.aggregate_state"
_MERGE = "dlog.spark.run.partial_values"

SUM_STATE = f"{_STATE}:SumPart"  # the number of assignments and exact sums
DISTINCT_STATE = "dlog.engine.head.distinct_state:DistinctPart"  # the distinct values of a group
SCAN_STATE = f"{_STATE}:ScanPart"  # the values of a group in order
TEXT_STATE = f"{_STATE}:TextPart"  # the texts of a group with what orders them

USER_STATE = "dlog.engine.head.user_state:UserPart"  # the values of a group, and an object in Python

SUM_MERGE = f"{_MERGE}:SumValues"
DISTINCT_MERGE = f"{_MERGE}:DistinctValues"
EXTREME_MERGE = f"{_MERGE}:ExtremeValues"
