"""`concat(x)`: one text, joined in the order of the body's key variables."""

from __future__ import annotations

from dlog.aggregates.aggregate import Aggregate
from dlog.aggregates.references import TEXT_STATE

CONCAT = Aggregate(
    name="concat",
    over="strings",
    gives="one text, joined in the order of the body's key variables",
    argument=("string",),
    fold="dlog.engine.head.groups:fold_concat",
    state=TEXT_STATE,
    in_order=True,
    makes_texts=True,
)
