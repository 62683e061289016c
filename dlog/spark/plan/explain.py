"""Owns the text for a plan of shards: per rule, what is partitioned, replicated and merged, and why."""

from __future__ import annotations

from collections.abc import Iterator

from dlog.ir.rules import Rule
from dlog.spark.plan.places import WHOLE, Place, RulePlan
from dlog.spark.plan.shards import EXCHANGE, HERE, Block, StratumPlan


def explain_blocks(blocks: list[Block], predicate: str | None = None) -> str:
    """Block by block; with a predicate, only its rules."""
    lines = []
    for number, block in enumerate(blocks, 1):
        plans = [p for p in block.plans if predicate is None or predicate in p.stratum.predicates]
        if plans:
            lines.append(f"{_title(number, block)}:")
            lines += [line for plan in plans for line in _stratum(plan)]
    return "\n".join(lines) if lines else "nothing to shard: no rule runs"


def _title(number: int, block: Block) -> str:
    if block.kind == HERE:
        return f"block {number}, in one process"
    if block.kind == EXCHANGE:
        return f"block {number}, a job for each step of the recursion"
    return f"block {number}, one job"


def _stratum(plan: StratumPlan) -> Iterator[str]:
    names = ", ".join(plan.stratum.predicates)
    if plan.kind == HERE:
        yield f"  {names}: cannot shard, because {plan.why}"
        yield from (f"    {_place(rule)}{rule}" for rule in plan.stratum.rules)
        return
    if plan.kind == EXCHANGE:
        yield f"  {names}: exchanged between steps, because {plan.why}"
    elif plan.stratum.recursive:
        yield f"  {names}: to the fixpoint inside each shard"
    for rule in plan.rules:
        yield f"    {_place(rule.rule)}{rule.rule}"
        yield from (f"      {line}" for line in _rule(rule, plan.kind))
    for name, place in plan.places.items():
        yield f"    {name} {_derived(plan, place)}"


def _place(rule: Rule) -> str:
    return f"{rule.span.file}:{rule.span.line}: " if rule.span else ""


def _rule(plan: RulePlan, kind: str) -> Iterator[str]:
    if plan.variable is not None:
        yield f"first key {plan.variable}: its shard owns the assignment"
        if plan.second is not None:
            yield f"values of {plan.variable} that have many rows are split by {plan.second}"
    elif plan.owner is not None:
        yield f"in the shard of {plan.owner[0]} alone"
    elif plan.once:
        yield "in the first shard alone: no variable can own the shards"
    else:
        yield "in every shard: cheaper than a first key, by the rows that it reads and joins"
    atoms = [atom for atom, _ in plan.rule.body.atoms()]
    own = [str(a) for i, a in enumerate(atoms) if plan.places[i] != WHOLE]
    rest = [str(a) for i, a in enumerate(atoms) if plan.places[i] == WHOLE]
    if own:
        yield f"partitioned by {plan.variable}: {', '.join(own)}"
    if rest:
        yield f"replicated: {', '.join(rest)}"
    if plan.rule.aggregates and kind == EXCHANGE:
        yield "its values are combined in the shard of their key, in the next step"
    elif plan.rule.aggregates and plan.merged:
        groups = ", ".join(map(str, plan.rule.groups)) or "none"
        keys = plan.variable if plan.second is None else f"{plan.variable} and {plan.second}"
        yield f"aggregates in parts, then merged: the groups ({groups}) do not contain {keys}"
    elif plan.rule.aggregates and plan.variable is not None:
        yield f"aggregates final in the shard: the groups contain {plan.variable}"


def _derived(plan: StratumPlan, place: Place | None) -> str:
    if place is not None and place != WHOLE:
        return f"is then partitioned by column {place + 1}"
    if place == WHOLE:
        return "is then whole in every shard"
    if any(rule.merged for rule in plan.rules):
        return "is then merged in one process"
    return "is then scattered: its readers wait for the next block"
