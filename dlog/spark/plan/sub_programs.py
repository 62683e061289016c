"""Owns the programs that shards run: a block's rules over the names of copies.  Knows nothing of files.

# triangle(x, y, z) <- edge(x, y), edge(y, z), edge(x, z).      with first key x, becomes
# triangle(x, y, z) <- edge@0(x, y), edge@whole(y, z), edge@0(x, z).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from dlog.ir.lower.literals import literal_value
from dlog.ir.rules import Atom, Conj, Disjunction, Form, Negation, Predicate, Program, Rule, Stratum
from dlog.language import ast
from dlog.spark.plan.hashing import shard_of_value
from dlog.spark.plan.places import WHOLE, Place, RulePlan
from dlog.spark.plan.shards import Block


@dataclass(frozen=True)
class Input:
    """A copy that a shard loads, into a relation of the program it runs."""

    predicate: str
    place: Place
    local: str


@dataclass(frozen=True)
class Partial:
    """A rule whose aggregates each shard computes in part; `number` tells it from others of the block."""

    number: int
    plan: RulePlan
    rule: Rule  # over the names of copies


@dataclass(frozen=True)
class SubProgram:
    """The program that the shards of a block run.  `plans` has who runs a rule, by the rule's id."""

    program: Program
    inputs: tuple[Input, ...]
    plans: Mapping[int, RulePlan]
    partials: tuple[Partial, ...] = ()

    def of_shard(self, shard: int, shards: int) -> Program:
        """The program without rules that other shards run."""
        strata = []
        for stratum in self.program.strata:
            rules = tuple(r for r in stratum.rules if runs_here(self.plans[r.id], shard, shards))
            if rules:
                strata.append(replace(stratum, rules=rules))
        return replace(self.program, strata=tuple(strata), rules=tuple(r for s in strata for r in s.rules))


def runs_here(plan: RulePlan, shard: int, shards: int) -> bool:
    if plan.once:
        return shard == 0
    if plan.owner is None:
        return True
    constant, type = plan.owner
    return shard_of_value(literal_value(constant.kind, constant.value, type), type, shards) == shard


def copy_name(predicate: str, place: Place) -> str:
    return f"{predicate}@{'whole' if place == WHOLE else place}"


def block_program(program: Program, block: Block, based: Iterable[str]) -> SubProgram:
    """The strata of a block over copies of what it reads and, where it derives predicates with base facts at
    a place, over these."""
    derived = block.derives
    names = {copy: copy_name(*copy) for copy in block.reads()}
    inputs = [Input(name, place, local) for (name, place), local in sorted(names.items())]
    inputs += [Input(n, p, n) for n, p in derived.items() if n in set(based) and p is not None]
    strata: list[Stratum] = []
    plans: dict[int, RulePlan] = {}
    partials: list[Partial] = []
    for plan in block.plans:
        rules = []
        for rule_plan in plan.rules:
            rule = replace(renamed(rule_plan, lambda copy: names.get(copy, copy[0])), id=len(plans))
            plans[rule.id] = rule_plan
            if rule_plan.merged:
                partials.append(Partial(len(partials), rule_plan, rule))
            else:
                rules.append(rule)
        strata.append(replace(plan.stratum, rules=tuple(rules)))
    predicates = {n: program.predicates[n] for n in derived}
    predicates |= {local: named(program.predicates[copy[0]], local) for copy, local in names.items()}
    return SubProgram(sub_program(program, predicates, strata), tuple(inputs), plans, tuple(partials))


def sub_program(program: Program, predicates: dict[str, Predicate], strata: Iterable[Stratum]) -> Program:
    """A program of only these strata: no inputs, constraints or outputs."""
    strata = tuple(strata)
    return replace(
        program,
        predicates=predicates,
        rules=tuple(rule for stratum in strata for rule in stratum.rules),
        strata=strata,
        facts=(),
        deltas=(),
        constraints=(),
        queries=(),
        directives=(),
        source=ast.Program((), span=program.source.span),
    )


def named(predicate: Predicate, name: str) -> Predicate:
    return Predicate(name, predicate.columns, predicate.n_keys, auxiliary=True)


def renamed(plan: RulePlan, name: Callable[[tuple[str, Place]], str]) -> Rule:
    """The rule with each atom of its body under another name, by predicate and place."""
    copies = iter(list(plan.reads()))
    return replace(plan.rule, body=_renamed(plan.rule.body, copies, name))


def _renamed(
    conj: Conj, copies: Iterator[tuple[str, Place]], name: Callable[[tuple[str, Place]], str]
) -> Conj:
    forms: list[Form] = []
    for form in conj.forms:
        if isinstance(form, Atom):
            forms.append(replace(form, predicate=name(next(copies))))
        elif isinstance(form, Negation):
            forms.append(replace(form, body=_renamed(form.body, copies, name)))
        elif isinstance(form, Disjunction):
            branches = tuple(_renamed(branch, copies, name) for branch in form.branches)
            forms.append(replace(form, branches=branches))
        else:
            forms.append(form)
    return replace(conj, forms=tuple(forms))
