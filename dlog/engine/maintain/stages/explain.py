"""Owns how the maintenance of a recursive stratum is explained."""

from __future__ import annotations

from dataclasses import replace

from dlog.engine.head.heads import body_outputs
from dlog.engine.maintain.body_changes import LastingRunner
from dlog.engine.maintain.variants import explain_variants, plan_variants
from dlog.engine.state.store import Store
from dlog.ir.rules import Stratum
from dlog.planning.deltas import rule_variants


def explain_stages(stratum: Stratum, reads: frozenset[str], store: Store) -> list[str]:
    """As text; `reads` are all predicates that may change."""
    lines = [
        "stages, because it is recursive",
        "each fact has a stage and the number of its derivations from lower stages",
    ]
    for name, op in stratum.combine.items():
        lines.append(f"{name}: {op} of what is derived; derivations of that value count")
    for rule in stratum.rules:
        variants = rule_variants(rule, reads)
        types = {name: type for v in variants for name, type in v.types.items()}
        runner = LastingRunner(store, replace(rule, types={**rule.types, **types}))
        planned = plan_variants(variants, body_outputs(rule), True)
        lines += [line for line in explain_variants(runner, planned) if line not in lines]
    return lines
