"""Owns how levels of maps are explained."""

from __future__ import annotations

from dlog.engine.maintain.multilevel.rule_levels import RuleLevels
from dlog.engine.state.store import Store
from dlog.views.levels.explain import explain


def explain_levels(shared: RuleLevels, store: Store, reason: str) -> list[str]:
    """Every map with its definition, what it is read by, and what each change does to it; then what several
    choices of maps would cost."""
    selections, sample = shared.selections(store)
    _, *lines = explain(shared.current(store), selections, sample).rstrip().split("\n")
    return [f"multilevel: levels of maps, because {reason}", *lines]
