"""Owns how levels of maps are explained."""

from __future__ import annotations

from dlog.views.levels.explain import explain
from dlog.views.levels.program import Levels


def explain_levels(levels: Levels, reason: str) -> list[str]:
    """Every map with its definition, what it is read by, and what each change does to it."""
    _, *lines = explain(levels).rstrip().split("\n")
    return [f"multilevel: levels of maps, because {reason}", *lines]
