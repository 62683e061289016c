"""Owns delta variants as plans: each begins with a change, so that its work follows the change.

Knows nothing of when they run: `explain` of any strategy uses them to show what a changed row costs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from dlog.engine.body.default_statistics import DefaultStatistics
from dlog.engine.maintain.body_changes import LastingRunner, Planned, Standing
from dlog.ir.rules import Conj
from dlog.planning.arrange import AtomUse
from dlog.planning.compile import CompiledJoin, estimate_join
from dlog.planning.decompose import SECONDS
from dlog.planning.deltas import Variant
from dlog.planning.pipeline import Anti, Join, Operation, Pipeline, Union, plan_pipeline
from dlog.planning.versions import base_name, is_change


def plan_variants(variants: Sequence[Variant], outputs: tuple[str, ...], bag: bool) -> list[Planned]:
    """`bag`: every assignment is counted, so that signed sums are exact."""
    return [Planned(v, _pipeline(v, outputs, bag)) for v in variants]


def _pipeline(variant: Variant, outputs: tuple[str, ...], bag: bool) -> Pipeline:
    if variant.group >= 0:
        outputs = tuple(dict.fromkeys((*variant.outer, *outputs)))
    return plan_pipeline(variant.forms, outputs, variant.types, bag and variant.group < 0)


def compiled_variant(runner: LastingRunner, join: Join) -> CompiledJoin:
    return runner.planned(join, list(join.forms), join.outputs, None).compiled


def explain_variants(runner: LastingRunner, variants: Iterable[Planned]) -> Iterator[str]:
    """For each predicate that may change, how the rest of the body is joined with a row that is inserted,
    and what that is expected to cost."""
    for planned in variants:
        join = planned.join
        if not planned.variant.change.predicate.startswith("+") or join is None:
            continue
        uses = [u for u in compiled_variant(runner, join).atoms if not is_change(u.predicate)]
        reads = ", ".join(f"{u.predicate} by {_columns(runner, u)}" for u in uses) or "nothing else"
        shown = re.sub(r"~\d+", "", str(planned.variant.change))  # show a copy of a variable as the variable
        later = dict.fromkeys(_read(planned.pipeline.operations[1:]))
        then = f", then row by row {', '.join(later)}" if later else ""
        yield f"{shown}: reads {reads}{then}; {_estimate(runner, join)}"


def rows_of_changes(runner: LastingRunner, variants: Iterable[Planned]) -> dict[str, float]:
    """By predicate that may change: how many assignments a row that is inserted is expected to add."""
    found = dict[str, float]()
    for planned in variants:
        if planned.variant.change.predicate.startswith("+") and planned.join is not None:
            name = planned.variant.changed
            found[name] = found.get(name, 0.0) + _expected(runner, planned.join)[0]
    return found


def _expected(runner: LastingRunner, join: Join) -> tuple[float, float]:
    """(Bindings, us) of one changed row."""
    statistics = DefaultStatistics(Standing(runner.store, None))
    order = estimate_join(join.forms, join.outputs, join.bag, statistics)
    return order.sizes[-1] if order.sizes else 1.0, order.cost * SECONDS * 1e6


def _estimate(runner: LastingRunner, join: Join) -> str:
    """The cost of one changed row, as text."""
    bindings, microseconds = _expected(runner, join)
    shown = f"{bindings:.2g}" if bindings < 10 else f"{bindings:,.0f}"
    time = f"~{microseconds:,.0f} us" if microseconds >= 1 else "under 1 us"
    return f"per row ~{shown} bindings, {time}"


def _columns(runner: LastingRunner, use: AtomUse) -> str:
    columns = runner.store.predicates[base_name(use.predicate)].columns
    return "(" + ", ".join(columns[c].name for c in use.columns) + ")" if use.columns else "any row"


def _read(operations: Iterable[Operation]) -> Iterator[str]:
    """The predicates that later operations of a pipeline read."""
    for operation in operations:
        match operation:
            case Join():
                yield from (atom.predicate for atom, _ in Conj((), operation.forms).atoms())
            case Anti():
                yield from _read(operation.body.operations)
            case Union():
                for branch in operation.branches:
                    yield from _read(branch.operations)
