"""Owns the choice between deltas and traces, rule by rule, by what each would have to keep.

Deltas begin with the changed row, so each atom that may change asks for column orders of the others; a trace
reads what the evaluation reads, and keeps sensitivity indices instead.  A row costs about the same either way
where both have what they need, and single rows go a shorter way with deltas.  So deltas are taken unless what
they need beyond the indices that are there is much larger than the trace.  Predicates that are said never to
change ask for nothing.  Reads statistics only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from dlog.engine.evaluate.column_orders import LARGE
from dlog.engine.maintain.delta.rule_deltas import RuleDeltas
from dlog.engine.maintain.trace.rule_traces import TraceDeltas, untraceable
from dlog.engine.state.store import Store
from dlog.ir.rules import Rule
from dlog.planning.arrange import AtomUse
from dlog.planning.deltas import rule_variants
from dlog.planning.indices import Requirement, choose_orders
from dlog.planning.versions import base_name, is_change
from dlog.sensitivity.watches import COARSE, EXACT

DELTA, TRACE, TRACE_EXACT, VIEWS = "delta", "trace", "trace-exact", "views"
GRANULARITY = {TRACE: COARSE, TRACE_EXACT: EXACT}
MUCH_LARGER = 2.0  # times the bytes of the trace


@dataclass(frozen=True)
class Choice:
    """How a rule is kept, and why."""

    way: str
    reason: str


def choose_way(
    store: Store, rule: Rule, wanted: str | None, no_views: str = "", tables: Collection[str] = ()
) -> Choice:
    """The way of one rule; `wanted` is the strategy that a user asked for, `no_views` why it has no view tree
    though one was looked for, `tables` the predicates that never change.
    """
    choice = _chosen(store, rule, wanted, tables)
    if wanted == VIEWS:
        return Choice(DELTA, f"it has no view tree: {no_views or 'it has no aggregate'}")
    return Choice(choice.way, f"{choice.reason}; no view tree: {no_views}") if no_views else choice


def _chosen(store: Store, rule: Rule, wanted: str | None, tables: Collection[str]) -> Choice:
    reason = untraceable(rule)
    if wanted in GRANULARITY:
        return (
            Choice(DELTA, f"{reason}, so it has no trace") if reason else Choice(wanted, "it was asked for")
        )
    if wanted is not None:
        return Choice(DELTA, "it was asked for")
    if reason:
        return Choice(DELTA, f"{reason}, so it has no trace")
    return _by_cost(store, rule, tables)


def _by_cost(store: Store, rule: Rule, tables: Collection[str]) -> Choice:
    reads = {atom.predicate for atom, _ in rule.body.atoms()}
    if max(store.rows(name) for name in reads) < LARGE:
        return Choice(DELTA, "what it reads is small: any index is soon made")
    deltas = RuleDeltas(store, rule, rule_variants(rule, reads.difference(tables)), bag=True)
    orders, size = missing_orders(store, (use for uses in deltas.uses() for use in uses))
    if orders == 0:
        return Choice(DELTA, "it needs no further column order")
    traces = TraceDeltas(store, rule, "~", COARSE).planned_traces()
    own = traces.expected_bytes() + missing_orders(store, traces.atoms)[1]
    lacks = "one further column order" if orders == 1 else f"{orders} further column orders"
    compared = f"deltas need {lacks} of {_mb(size)}, a trace {_mb(own)}"
    if own * MUCH_LARGER < size:
        return Choice(TRACE, compared)
    return Choice(DELTA, compared)


def missing_orders(store: Store, uses: Iterable[AtomUse]) -> tuple[int, float]:
    """How many column orders are not there that some plans read, and their bytes."""
    needed: dict[str, set[Requirement]] = {}
    for use in uses:
        if not is_change(use.predicate) and use.columns:
            together = use.together or tuple(frozenset({c}) for c in use.columns)
            needed.setdefault(base_name(use.predicate), set()).add(together)
    count, size = 0, 0.0
    for name, requirements in needed.items():
        arity, existing = store.predicates[name].arity, list(store.orders(name))
        chosen = choose_orders(arity, sorted(requirements, key=str), existing)
        new = len(chosen.orders) - len(existing)
        count += new
        size += 8.0 * new * arity * store.rows(name)
    return count, size


def _mb(size: float) -> str:
    return f"{size / 1e6:,.1f} MB"
