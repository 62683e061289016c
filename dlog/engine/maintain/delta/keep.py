"""Owns the delta strategy: every rule of a stratum without recursion is maintained by its delta variants."""

from __future__ import annotations

from dlog.engine.maintain.delta.rule_deltas import RuleDeltas
from dlog.engine.maintain.rule_strategy import RuleStrategy
from dlog.engine.state.store import Store
from dlog.ir.rules import Rule
from dlog.planning.deltas import cover_variants, rule_variants


class DeltaStrategy(RuleStrategy):
    way = "delta"
    fires_joins = True

    def loses_state(self, store: Store) -> bool:
        return bool(self.aggregates) or not (self.by_existence or self.counts_are_one(store))


def rule_deltas(store: Store, rule: Rule, state: str, outputs: tuple[str, ...], bag: bool) -> RuleDeltas:
    """The method of deltas.  Without `bag` it is enough to find each lost or new row once."""
    find = rule_variants if bag else cover_variants
    return RuleDeltas(store, rule, find(rule, rule.body.predicates()), bag, outputs)
