"""Owns evaluation on demand: goals of a program computed over base facts, with as little else as they need.

The rewriting is `dlog.ir.goals.magic`'s.  Its other predicates are dropped when the goals are computed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from dlog.engine.evaluate.evaluate import Evaluation, evaluate
from dlog.engine.head.conflicts import check_constraints
from dlog.engine.state.store import Store
from dlog.ir.goals.goals import asked_for
from dlog.ir.goals.magic import Rewriting, goal_directed
from dlog.ir.rules import Program
from dlog.planning.versions import COUNTER, facts_name
from dlog.storage.relation.relation import Relation


def derived_predicates(program: Program) -> frozenset[str]:
    return frozenset(name for stratum in program.strata for name in stratum.predicates)


def rewriting_for(
    program: Program, store: Store, pending: frozenset[str], goals: Mapping[str, str] | None = None
) -> Rewriting:
    """The program that computes some predicates, by default all that it asks for.  The store has all rows of
    those that are not `pending`.
    """
    based = frozenset(name for name in program.predicates if store.rows(_first(store, name, pending)))
    if goals is None:
        goals = asked_for(program, based)
    strata = tuple(s for s in program.strata if pending.intersection(s.predicates))
    return goal_directed(replace(program, strata=strata), based, goals)


def _first(store: Store, name: str, derived: Collection[str]) -> str:
    """The name of the relation that evaluation begins with: of a derived predicate its base facts."""
    return facts_name(name) if name in derived and facts_name(name) in store.relations else name


def evaluate_goals(
    program: Program, rewriting: Rewriting, store: Store, evaluation: Evaluation
) -> dict[str, Relation]:
    """Runs a rewriting of a program; the rows of what it computes in full, by name, and the counter of
    numbers.  `store` does not change.

    Raises violations of functions or constraints among the goals.
    """
    new = rewriting.program
    work = store.under(dict(new.predicates))
    work.relations = dict(store.relations)
    for stratum in new.strata:
        for name in stratum.predicates:
            if name in program.predicates and name in store.relations:
                work.relations[name] = store.relations[_first(store, name, new.stratum_of)].snapshot()
            else:
                work.clear(name)
    for name in new.predicates:
        if name not in work.relations:
            work.clear(name)
    evaluate(replace(new, constraints=()), work, evaluation)
    computed = {name: work.relations[name] for name in rewriting.full}
    if COUNTER in work.relations:
        computed[COUNTER] = work.relations[COUNTER]
    checked = [c for c in program.constraints if c.violations in computed]
    check_constraints(replace(program, constraints=tuple(checked)), work)
    return computed


def described(rewriting: Rewriting) -> list[str]:
    """What is computed to which extent, as text; nothing if that is everything in full."""
    if not rewriting.restricted and not rewriting.left_out:
        return []
    lines = ["goal-directed: rules run only as far as outputs, queries and checks need them"]
    for name, parts in rewriting.restricted.items():
        lines.append(f"  {name}: only the requested rows, in {' and '.join(parts)}")
    if rewriting.restricted:
        lines.append("  (b: rows are requested for given values of this argument, f: for all of them)")
    for name, why in rewriting.full.items():
        if not rewriting.program.predicates[name].auxiliary:
            lines.append(f"  {name}: in full, because {why}")
    lines += [f"  {name}: not evaluated, because nothing needs it" for name in rewriting.left_out]
    return lines
