"""Owns the explanation of a recursion as a whole: how rows drive one another, on how many cores, and how new
rows are detected.  Runs nothing."""

from __future__ import annotations

from collections.abc import Iterator

from dlog.engine.evaluate.chunks import find_pivots
from dlog.engine.evaluate.driven import Driven
from dlog.planning.options import ALWAYS, NEVER
from dlog.planning.versions import base_name


def explain_recursion(
    items: list[Driven | None], names: tuple[str, ...], runs: str, best: bool
) -> Iterator[str]:
    """`items` are the recursive rules, once for each recursive atom, None if rows cannot drive one; `runs`
    is the planner's option, `best`: only the best row of a key counts."""
    ready = [item for item in items if item is not None]
    if len(ready) < len(items):
        yield "in rounds, all new rows of one at a time: rules compute on columns, or combine values"
        return
    pivots = None if best else find_pivots(ready, names)
    if any(item.predicates.intersection(names) for item in ready):
        yield "row by row, in rounds: bodies read derived rows besides the new one, and new rows are added to"
        yield "  their indices between rounds; on one core"
    else:
        yield "row by row: what follows from a new row is derived at once, in one call"
    if pivots is not None:
        column = _columns(ready, pivots)
        yield f"  in chunks of {column}, which every rule passes on, so that chunks are independent:"
        yield "  each fits in the caches, and -j N does N at a time"
    elif not any(item.predicates.intersection(names) for item in ready):
        yield "  on one core: no column is passed on by every rule, so any two rows can meet"
    yield f"  new rows are detected with {_sets(runs, best, chunked=pivots is not None)}"


def _columns(items: list[Driven], pivots: dict[str, int]) -> str:
    """The variables that are passed on, as the rules write them."""
    drivers = [item.driver for item in items]
    return " and ".join(dict.fromkeys(str(d.args[pivots[base_name(d.predicate)]]) for d in drivers))


def _sets(runs: str, best: bool, chunked: bool) -> str:
    if best:
        return "a hash table with the best row of each key"
    if runs == ALWAYS:
        return "sorted runs, as requested, while rounds are not thin"
    sets = "a bitmap if rows are dense, else a hash table"
    if chunked or runs == NEVER:
        return f"{sets}; --stats says which it was"
    return f"{sets}, or sorted runs if many come at a time; --stats says which it was"
