"""Owns how a trace is explained: what leads from a changed row to the places where it matters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dlog.ir.rules import Rule
from dlog.sensitivity.intervals import Intervals
from dlog.sensitivity.watches import EXACT, FREE, TRACED, WILD, Watch

if TYPE_CHECKING:
    from dlog.engine.maintain.trace.rule_traces import Traces


def explain_traces(
    rule: Rule, traces: Traces, granularity: str, intervals: Sequence[Intervals] | None
) -> Iterator[str]:
    """`intervals` are the sensitivity indices, if they exist."""
    keys = ", ".join(name for name, _ in traces.keys)
    where = f"line {rule.span.line}: " if rule.span else ""
    yield f"{where}trace ({granularity}) in the key order [{keys}]"
    if intervals is None:
        yield "  not built yet: the next transaction evaluates the rule again and records where it looks"
        yield f"  {_expected(traces, granularity)}"
    for watch in traces.upkeep.watched.watches:
        yield f"  {_watch(traces, watch, intervals)}"


def _expected(traces: Traces, granularity: str) -> str:
    """The size of a trace that is not built yet."""
    size = traces.expected_bytes()
    if not size:
        return "it needs no intervals"
    shown = f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size:,.0f} bytes"
    several = " at least, one for each operation" if granularity == EXACT else ""
    return f"it is expected to need {shown} of intervals{several}"


def _watch(traces: Traces, watch: Watch, intervals: Sequence[Intervals] | None) -> str:
    use, atom = traces.atoms[watch.atom], traces.compiled.read[watch.atom]
    if watch.level < 0:
        return f"{atom}: evaluated again when its first row is inserted or its last row erased"
    where = f"{atom} by {', '.join(str(atom.args[c]) for c in use.columns[: watch.level + 1])}"
    return f"{where}: {_found(traces, watch, intervals)}"


def _found(traces: Traces, watch: Watch, intervals: Sequence[Intervals] | None) -> str:
    """What leads from a changed row to where it was used."""
    names = {slot: name for name, slot in traces.compiled.names}
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
    return f"sensitivity index by {others or 'nothing else'}{size}"
