"""Owns how one rule can be sharded: the variables that can own the shard, and what each choice costs.

A pure function of the rule and the sizes of what it reads; how choices are combined to strata and blocks is
`dlog.spark.plan.shards`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dlog.ir.rules import Atom, Conj, Const, Disjunction, Negation, Rule, Var
from dlog.spark.plan.places import WHOLE, Place, RulePlan, Shape, columns_of, split


def rule_placed(
    shape: Shape, rule: Rule, places: Mapping[str, Place], inside: Mapping[str, Place]
) -> RulePlan | None:
    """The rule such that its results are at these places; None if that is impossible."""
    here = {places[head.predicate] for head in rule.heads}
    if here == {WHOLE}:
        return _whole_rule(rule, inside)
    if WHOLE in here:
        return None
    owners = {head.args[places[head.predicate]] for head in rule.heads}
    if len(owners) != 1:
        return None
    (owner,) = owners
    head = rule.heads[0]
    column = shape.program.predicates[head.predicate].columns[places[head.predicate]]
    if isinstance(owner, Const):
        plan = _whole_rule(rule, inside)
        return plan and RulePlan(rule, None, plan.places, owner=(owner, column.type))
    if any(not _same(rule, owner, shape, h, places[h.predicate]) for h in rule.heads):
        return None
    if rule.aggregates and owner.name not in {v.name for v in rule.groups}:
        return None
    return _rule_on(shape, rule, owner.name, inside)


def rule_options(shape: Shape, rule: Rule, inside: Mapping[str, Place]) -> Iterator[RulePlan]:
    """All plans of a rule whose results may be anywhere."""
    for variable in (*rule.universals, *rule.body.exists):
        if plan := _rule_on(shape, rule, variable.name, inside):
            yield plan
            if any(copy in shape.heavy for copy in plan.reads()):
                yield from _rule_splits(shape, rule, variable.name, inside)
    if plan := _whole_rule(rule, inside):
        yield plan


def cheapest(shape: Shape, plans: Iterable[RulePlan]) -> RulePlan | None:
    def cost(plan: RulePlan) -> float:
        """A rule that is not distributed does all of the work in one process."""
        alone = sum(shape.rows(name) for name, _ in plan.reads()) * shape.shards
        reading = read_cost(shape, plan.reads()) + (alone if plan.variable is None else 0)
        return reading + work(shape, [plan])

    return min(plans, key=cost, default=None)


def _whole_rule(rule: Rule, inside: Mapping[str, Place]) -> RulePlan | None:
    if any(inside.get(atom.predicate, WHOLE) != WHOLE for atom, _ in rule.body.atoms()):
        return None
    return whole(rule)


def _rule_on(shape: Shape, rule: Rule, variable: str, inside: Mapping[str, Place]) -> RulePlan | None:
    """The rule with a variable that owns the shard; None if no atom restricts it to its values, or if what is
    placed inside the block is not on it."""
    places: dict[int, Place] = {}
    for number, (atom, _) in enumerate(rule.body.atoms()):
        columns = [
            c
            for c, arg in enumerate(atom.args)
            if isinstance(arg, Var) and arg.name == variable and _same(rule, arg, shape, atom, c)
        ]
        fixed = inside.get(atom.predicate)
        if fixed is None:
            places[number] = columns[0] if columns else WHOLE
        elif fixed == WHOLE or fixed in columns:
            places[number] = fixed
        else:
            return None
    if not _restricted(rule.body, variable, iter(places.values())):
        return None
    merged = bool(rule.aggregates) and variable not in {v.name for v in rule.groups}
    if merged and not all(a.function.merge is not None for a in rule.aggregates):
        return None
    return RulePlan(rule, variable, places, merged=merged)


def _rule_splits(shape: Shape, rule: Rule, first: str, inside: Mapping[str, Place]) -> Iterator[RulePlan]:
    """The rule with heavy values of its first key split by each variable that is next to it in an atom."""
    atoms = [atom for atom, _ in rule.body.atoms()]
    if any(inside.get(atom.predicate, WHOLE) != WHOLE for atom in atoms):
        return
    for second in (*rule.universals, *rule.body.exists):
        if second.name == first:
            continue
        places = {i: _split_place(shape, rule, atom, first, second.name) for i, atom in enumerate(atoms)}
        places |= {i: WHOLE for i, atom in enumerate(atoms) if atom.predicate in inside}
        outer = [i for i, atom in enumerate(atoms) if any(atom is form for form in rule.body.forms)]
        if not any(places[i] != WHOLE and columns_of(places[i])[1] is not None for i in outer):
            continue
        merged = bool(rule.aggregates) and not {first, second.name} <= {v.name for v in rule.groups}
        if not merged or all(a.function.merge is not None for a in rule.aggregates):
            yield RulePlan(rule, first, places, merged=merged, second=second.name)


def _split_place(shape: Shape, rule: Rule, atom: Atom, first: str, second: str) -> Place:
    found: dict[str, int] = {}
    for column, arg in enumerate(atom.args):
        if isinstance(arg, Var) and arg.name in (first, second) and _same(rule, arg, shape, atom, column):
            found.setdefault(arg.name, column)
    return split(found[first], found.get(second)) if first in found else WHOLE


def _restricted(conj: Conj, variable: str, places: Iterator[Place]) -> bool:
    """Whether every assignment goes through a placed atom.  `places` come in the order of `Conj.atoms`."""
    found = False
    for form in conj.forms:
        if isinstance(form, Atom):
            found |= next(places) != WHOLE
        elif isinstance(form, Disjunction):
            branches = [_restricted(branch, variable, places) for branch in form.branches]
            found |= bool(branches) and all(branches)
        elif isinstance(form, Negation):
            for _ in form.body.atoms():
                next(places)
    return found


def _same(rule: Rule, var: Var, shape: Shape, atom: Atom, column: int) -> bool:
    """Whether a column holds the variable's values unchanged, so that their hashes agree."""
    stored = shape.program.predicates[atom.predicate].columns[column].type
    type = rule.types[var.name]
    return (stored.name, stored.scale) == (type.name, type.scale)


def read_cost(shape: Shape, reads: Iterable[tuple[str, Place]]) -> float:
    """Rows that shards load.  The shard of a heavy value has nearly all, and the others wait for it."""
    return sum(
        shape.rows(copy[0]) * (shape.shards if copy[1] == WHOLE or copy in shape.heavy else 1)
        for copy in set(reads)
    )


def work(shape: Shape, plans: Iterable[RulePlan]) -> float:
    """Approximate rows that joins go through.  A rule that no variable owns does all of its work in each
    shard, or in one for which the others wait."""
    return sum(_join_rows(shape, p.rule) * (shape.shards if p.variable is None else 1) for p in plans)


def _join_rows(shape: Shape, rule: Rule) -> float:
    """Reading costs more than joining, except for joins that close cycles: triangles of n edges can be
    n^1.5.
    """
    atoms = [form for form in rule.body.forms if isinstance(form, Atom)]
    if len(atoms) < 2:
        return 0.0
    sizes = [shape.rows(atom.predicate) for atom in atoms]
    seen: dict[str, int] = {}
    for atom in atoms:
        for name in {arg.name for arg in atom.args if isinstance(arg, Var)}:
            seen[name] = seen.get(name, 0) + 1
    closed = len(atoms) > 2 and all(count > 1 for count in seen.values())
    return float(max(sizes)) ** 1.5 if closed else float(sum(sizes))


def whole(rule: Rule) -> RulePlan:
    return RulePlan(rule, None, {number: WHOLE for number, _ in enumerate(rule.body.atoms())})
