"""Owns the explanation of column orders: which a predicate has, or will have, and their readers."""

from __future__ import annotations

from collections.abc import Iterator

from dlog.engine.evaluate.column_orders import body_uses, choose_for_program, orders_with_readers
from dlog.engine.evaluate.driven import place
from dlog.engine.evaluate.evaluate import program_bodies
from dlog.engine.state.store import Store
from dlog.ir.rules import Program
from dlog.planning.arrange import AtomUse
from dlog.planning.indices import Order


def explain_orders(program: Program, store: Store) -> Iterator[str]:
    """All predicates that rules read, with their orders.  Runs nothing, changes nothing."""
    view = store.under(store.predicates)
    view.requirements, view.chosen_orders = {}, {}
    choose_for_program(program, view, program_bodies(program))
    uses: dict[str, list[tuple[AtomUse, str]]] = {}
    for rule, forms in program_bodies(program):
        for use in body_uses(rule, forms, view):
            uses.setdefault(use.predicate, []).append((use, place(rule)))
    orders_of = {
        name: orders_with_readers(view, name, found, view.chosen_orders.get(name, ()))
        for name, found in sorted(uses.items())
    }
    if orders_of:
        total = sum(map(len, orders_of.values()))
        names = f"{len(orders_of)} predicates" if len(orders_of) > 1 else "predicate"
        yield f"column orders: {total} in all, of the {names} that rules read; each with its readers"
    for name, orders in orders_of.items():
        yield f"  {name}: {len(orders)}"
        for order, users in orders.items():
            yield f"    by {_columns(view, name, order)}: {', '.join(users) or _unread(order)}"


def _columns(store: Store, name: str, order: Order) -> str:
    columns = store.predicates[name].columns
    return ", ".join(columns[c].name for c in order) or "no column"


def _unread(order: Order) -> str:
    return "as it is stored" if order == tuple(range(len(order))) else "for changes and queries"
