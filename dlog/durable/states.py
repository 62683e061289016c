"""Owns the two forms of a version's state and the ways between them.

*Shown* is what a live database has: program, all relations, what is still to be evaluated.  `Facts` is what
files have: the program's text and base facts.  The first gives the second in O(predicates), and so does the
second the first, with everything that rules derive still to be evaluated.
"""

from __future__ import annotations

from typing import Any

from dlog.durable.replay import Facts
from dlog.engine.demand import derived_predicates
from dlog.engine.evaluate import Evaluation, evaluate
from dlog.engine.layers import in_layers
from dlog.engine.limits import Watch
from dlog.engine.statements import settled
from dlog.engine.store import Store
from dlog.engine.view import View, interruptible
from dlog.ir.check import load_program
from dlog.ir.rules import Program
from dlog.language import ast
from dlog.language.printing import format_node
from dlog.language.source import Source
from dlog.planning.versions import facts_name
from dlog.storage.relation import Relation

# (tree, program, relations, predicates, version, pending), as `Database._show` leaves it
Shown = tuple[ast.Program, Program, dict[str, Relation], Any, int, frozenset[str]]


def program_text(tree: ast.Program) -> str:
    """O(program)."""
    return "".join(f"{format_node(statement)}\n" for statement in tree.statements)


def base_relations(program: Program, relations: dict[str, Relation]) -> dict[str, Relation]:
    """The base facts of every predicate that a user knows."""
    found = {}
    for name, predicate in program.predicates.items():
        if not predicate.auxiliary:
            facts = relations.get(facts_name(name))
            found[name] = relations[name] if facts is None else facts
    return found


def facts_of(state: Shown | Facts) -> tuple[str, dict[str, Relation]]:
    """(Program text, base facts)."""
    if isinstance(state, Facts):
        return state.program, state.relations
    tree, program, relations, *_ = state
    return program_text(tree), base_relations(program, relations)


def shown_of(state: Shown | Facts, version: int, store: Store, name: str) -> Shown:
    """A state to read from or to go on with; `name` stands for its program in messages."""
    if not isinstance(state, Facts):
        return state
    tree, program = load_program(Source(name, state.program))
    relations: dict[str, Relation] = {}
    for predicate in program.predicates.values():
        found = state.relations.get(predicate.name)
        if found is None or found.arity != predicate.arity:
            found = Relation(store.arena, predicate.arity)
        relations[predicate.name] = found
    derived = derived_predicates(program)
    relations |= {facts_name(n): relations[n] for n in derived}
    return settled(tree, program), program, relations, dict(program.predicates), version, derived


def completed(shown: Shown, view: View) -> Shown:
    """The same with everything evaluated.  `view` lends its store and limits."""
    tree, program, relations, predicates, version, pending = shown
    if not pending:
        return shown
    store = view.store.snapshot_of(relations, predicates)
    derived = derived_predicates(program)
    store.relations = {
        **{name: relations[name] for name in program.predicates if name not in derived},
        **{name: relations[facts_name(name)].snapshot() for name in derived},
        **{facts_name(name): relations[facts_name(name)] for name in derived},
    }
    watch = Watch(view.limits)
    with interruptible(watch):
        evaluate(program, store, Evaluation(watch))
    return tree, program, in_layers(store.relations), predicates, version, frozenset()


def view_of(shown: Shown, view: View) -> View:
    """To read, in any thread."""
    tree, program, relations, predicates, version, pending = shown
    made = View(tree, program, view.store.snapshot_of(relations, predicates), view.limits, version)
    made.pending = pending
    return made
