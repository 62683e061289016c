"""Owns the two forms of a version's state and the conversions between them.

*Shown* is the state of a live database: program, all relations, what is still to be evaluated.  `Facts` is
the state in files: the program's text, base facts and memory (`dlog.engine.state.memory`).  Converting either
into the other is O(predicates); in the second direction everything that rules derive is still to be
evaluated.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dlog.durable.replay import Facts, or_empty
from dlog.engine.evaluate.demand import derived_predicates
from dlog.engine.evaluate.evaluate import Evaluation, evaluate
from dlog.engine.evaluated import Shown, start_relations
from dlog.engine.maintain.cones import stale_predicates, with_fresh
from dlog.engine.maintain.idle import begin_idle, evaluated_at_first
from dlog.engine.maintain.maintain import Maintenance
from dlog.engine.maintain.strategy import net_difference
from dlog.engine.state.layers import in_layers
from dlog.engine.state.limits import Watch
from dlog.engine.state.memory import memory, memory_in
from dlog.engine.state.store import Store
from dlog.engine.statements import settled
from dlog.engine.view import View, interruptible
from dlog.ir.check import load_program
from dlog.ir.rules import Program
from dlog.language import ast
from dlog.language.printing import format_node
from dlog.language.source import Source
from dlog.planning.versions import facts_name, is_memory
from dlog.storage.arena.arena import Arena
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import Relation


def program_text(tree: ast.Program) -> str:
    """O(program)."""
    return "".join(f"{format_node(statement)}\n" for statement in tree.statements)


def base_relations(program: Program, relations: dict[str, Relation]) -> dict[str, Relation]:
    """The base facts of every predicate that a user can see."""
    found = {}
    for name, predicate in program.predicates.items():
        if not predicate.auxiliary:
            facts = relations.get(facts_name(name))
            found[name] = relations[name] if facts is None else facts
    return found


def stored_relations(
    program: Program, relations: dict[str, Relation], pending: Collection[str] = ()
) -> dict[str, Relation]:
    """What files have of a state: base facts and memory."""
    return base_relations(program, relations) | memory(program, relations, pending)


def facts_of(state: Shown | Facts) -> tuple[str, dict[str, Relation]]:
    """(Program text, base facts)."""
    if isinstance(state, Facts):
        return state.program, state.relations
    return program_text(state.tree), stored_relations(state.program, state.relations, state.pending)


def shown_of(state: Shown | Facts, version: int, store: Store, name: str) -> Shown:
    """A state to read from or to continue with; `name` stands for its program in messages."""
    if not isinstance(state, Facts):
        return state
    tree, program = load_program(Source(name, state.program))
    relations = {
        p.name: or_empty(state.relations, p.name, p.arity, store.arena) for p in program.predicates.values()
    }
    derived = derived_predicates(program)
    relations |= {facts_name(n): relations[n] for n in derived}
    relations |= memory_in(program, state.relations)
    return Shown(settled(tree, program), program, relations, dict(program.predicates), version, derived)


def completed(shown: Shown, view: View) -> Shown:
    """The same with everything evaluated.  `view` provides the store and limits."""
    program = shown.program
    if not shown.pending and not stale_predicates(program, shown.relations):
        return shown
    store, watch = view.store.snapshot_of(shown.relations, shown.predicates), Watch(view.limits)
    with interruptible(watch):
        if shown.pending:
            store.relations = start_relations(program, shown.relations, derived_predicates(program))
            evaluate(program, store, Evaluation(watch))
        else:
            store.relations = with_fresh(program, program.strata, store, Evaluation(watch))
    return shown._replace(relations=in_layers(store.relations), pending=frozenset())


def begun(shown: Shown, view: View) -> Shown:
    """The same with everything evaluated that is stored before the first read, to continue with."""
    if not shown.pending:
        return shown
    program, maintenance = shown.program, Maintenance.of(shown.program)
    store, watch = view.store.snapshot_of(shown.relations, shown.predicates), Watch(view.limits)
    with interruptible(watch):
        store.relations = start_relations(program, shown.relations, derived_predicates(program))
        evaluate(evaluated_at_first(maintenance, program), store, Evaluation(watch))
        begin_idle(maintenance, program, store)
    return shown._replace(relations=in_layers(store.relations), pending=frozenset())


def changes_between(
    before: Mapping[str, Relation], after: Mapping[str, Relation], arena: Arena
) -> dict[str, Change]:
    """The rows inserted and deleted, of the predicates that exist afterwards, and all memory that does not.
    O(difference)."""
    found = {
        name: Change(relation.rows()[:0], relation.rows())
        for name, relation in before.items()
        if is_memory(name) and name not in after and relation
    }
    for name, relation in after.items():
        change = net_difference(or_empty(before, name, relation.arity, arena), relation)
        if change:
            found[name] = change
    return found
