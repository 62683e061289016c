"""Owns what is said of a recursion as a whole: how rows drive one another, on how many cores, and how what is
new is told.  Runs nothing."""

from __future__ import annotations

from collections.abc import Iterator

from dlog.engine.evaluate.chunks import find_pivots
from dlog.engine.evaluate.driven import Driven
from dlog.planning.options import ALWAYS, NEVER
from dlog.planning.versions import base_name


def explain_recursion(
    items: list[Driven | None], names: tuple[str, ...], runs: str, best: bool
) -> Iterator[str]:
    """`items` are the recursive rules, once for each recursive atom, None where rows cannot drive one; `runs`
    is the planner's option, `best`: only the best row of a key counts."""
    ready = [item for item in items if item is not None]
    if len(ready) < len(items):
        yield "in rounds, all new rows of one at a time: rules compute on columns, or combine values"
        return
    pivots = None if best else find_pivots(ready, names)
    if any(item.predicates.intersection(names) for item in ready):
        yield "row by row, in rounds: bodies read derived rows beside the new one, and what is new goes into"
        yield "  their indices between rounds; on one core"
    else:
        yield "row by row: what a new row leads to is derived at once, in one call"
    if pivots is not None:
        column = _columns(ready, pivots)
        yield f"  in chunks of {column}, which every rule hands on, so that chunks never meet:"
        yield "  each stays in the caches, and -j N does N at a time"
    elif not any(item.predicates.intersection(names) for item in ready):
        yield "  on one core: no column is handed on by every rule, so rows from anywhere can meet"
    yield f"  what is new is told by {_sets(runs, best, chunked=pivots is not None)}"


def _columns(items: list[Driven], pivots: dict[str, int]) -> str:
    """The variables that are handed on, by the words of the rules."""
    drivers = [item.driver for item in items]
    return " and ".join(dict.fromkeys(str(d.args[pivots[base_name(d.predicate)]]) for d in drivers))


def _sets(runs: str, best: bool, chunked: bool) -> str:
    if best:
        return "a hash table with the best row of each key"
    if runs == ALWAYS:
        return "sorted runs, as is asked for, while rounds are not thin"
    told = "a bitmap where rows lie dense, else a hash table"
    if chunked or runs == NEVER:
        return f"{told}; --stats says which it was"
    return f"{told}, or sorted runs where many come at a time; --stats says which it was"
