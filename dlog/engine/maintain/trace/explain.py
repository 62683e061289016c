"""Owns how a trace is explained: what leads from a changed row to the places where it matters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING

from dlog.engine.maintain.trace.granularity import CONTEXTS, Crowd
from dlog.engine.state.store import Store
from dlog.ir.rules import Rule
from dlog.sensitivity.intervals import Intervals
from dlog.sensitivity.watches import EXACT, FREE, TRACED, WILD, Watch

if TYPE_CHECKING:
    from dlog.engine.maintain.trace.planned import Traces


def explain_traces(
    store: Store, rule: Rule, traces: Traces, granularity: str, intervals: Sequence[Intervals] | None
) -> Iterator[str]:
    """`intervals` are the sensitivity indices, if they exist."""
    keys = ", ".join(name for name, _ in traces.keys)
    where = f"line {rule.span.line}: " if rule.span else ""
    yield f"{where}trace ({granularity}) in the key order [{keys}]"
    if granularity != EXACT and intervals is not None:
        yield from (f"  {_crowd(traces, crowd)}" for crowd in traces.crowds)
        elsewhere = "elsewhere " if traces.crowds else ""
        yield f"  {elsewhere}coarse, since a changed row meets at most {CONTEXTS} contexts in vain"
    if intervals is None:
        yield "  not built yet: the next transaction evaluates the rule again and records where it looks"
        yield f"  {_expected(store, traces)}"
    for watch in traces.upkeep.watched.watches:
        yield f"  {_watch(traces, watch, intervals)}"
    for leap, own in traces.upkeep.shared_intervals(intervals or ()):
        shared = [watch for watch in leap.upkeep.watched.watches if watch.atom < len(traces.atoms)]
        where = f"in the shared leap of {_names(traces)[leap.watch.key]}"
        yield from (
            f"  {where}, {_watch(traces, watch, own or None)}" for watch in shared if watch.how == TRACED
        )


def _crowd(traces: Traces, crowd: Crowd) -> str:
    """How a leap is traced that one changed row may meet in many contexts."""
    name, many = _names(traces).get(crowd.slot, "?"), f"{crowd.contexts:,} contexts"
    if crowd.walk:
        by = f"{crowd.walk:,.0f} times the operations"
        if crowd.is_exact:
            return f"exact at {name}, since a coarse trace would take {by}"
        return f"coarse at {name}, though that takes {by}: an exact trace takes too much memory"
    if crowd.is_shared:
        return f"shared at {name}, since up to {many} differ only in what {name} does not depend on"
    if crowd.is_exact:
        return f"exact at {name}, since a changed row may meet {many}"
    if crowd.bytes == inf:
        return f"coarse at {name}, though a changed row may meet {many}: an exact trace takes too much memory"
    return (
        f"coarse at {name}, though a changed row may meet {many}: an exact trace would take"
        f" {crowd.bytes / 1e6:,.1f} MB, and {crowd.room / 1e6:,.1f} MB are left"
    )


def _names(traces: Traces) -> dict[int | None, str]:
    return {slot: name for name, slot in traces.compiled.names}


def _expected(store: Store, traces: Traces) -> str:
    """The size of a trace that is not built yet."""
    size = traces.expected_bytes(store)
    if not size:
        return "it needs no intervals"
    shown = f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size:,.0f} bytes"
    return f"it is expected to need {shown} of intervals"


def _watch(traces: Traces, watch: Watch, intervals: Sequence[Intervals] | None) -> str:
    use, atom = traces.atoms[watch.atom], traces.compiled.read[watch.atom]
    if watch.level < 0:
        return f"{atom}: evaluated again when its first row is inserted or its last row erased"
    where = f"{atom} by {', '.join(str(atom.args[c]) for c in use.columns[: watch.level + 1])}"
    return f"{where}: {_found(traces, watch, intervals)}"


def _found(traces: Traces, watch: Watch, intervals: Sequence[Intervals] | None) -> str:
    """What leads from a changed row to where it was used."""
    names = _names(traces)
    if watch.how == FREE and watch.depth == 0:
        return "the whole body is evaluated again, since nothing leads to a part of it"
    if watch.how == FREE:
        return "needs no sensitivity index: a changed row tells where it was used"
    if watch.how == WILD:
        roaming = ", ".join(names.get(traces.upkeep.watched.keys[d], "?") for d in watch.wild)
        return f"needs no sensitivity index: few values of {roaming} go with a changed row"
    assert watch.how == TRACED
    if watch.below:
        return "by the sensitivity index of the next column"
    others = ", ".join(names.get(slot, "?") for slot in watch.others)
    index = None if intervals is None else intervals[watch.note]
    size = "" if index is None else f": {len(index):,} intervals, {index.bytes:,} bytes"
    shared = "of what the shared leap finds, " if watch.own is not None else ""
    return f"{shared}sensitivity index by {others or 'nothing else'}{size}"
