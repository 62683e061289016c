"""Owns the choice of column orders for a whole program: what its plans will read, in the fewest orders.

The plans are those that would be made now, from the current statistics: what is derived later is assumed to
have a usual size, and joins in parts are treated as if they were one.  If a plan turns out different, the
order it needs is built on demand.  So the number of orders is minimal for the plans foreseen, with no
guarantee for others.  Each plan sees what was chosen for those before it: of key orders with the same cost it
takes one that needs no other column order.  Answers and the cost of joins do not depend on it.

A predicate of two columns leaves no choice: its own order always exists, and there is one other.  If
everything is small the planning would cost more than the orders it saves, so orders are built on demand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from dlog.engine.body.default_statistics import DefaultStatistics
from dlog.engine.body.readable import TABLE
from dlog.engine.head.heads import body_outputs
from dlog.engine.state.store import Store
from dlog.ir.rules import Atom, Conj, Form, Program, Rule, Var
from dlog.planning.arrange import AtomUse, arrangement
from dlog.planning.compile import CompiledJoin, compile_join
from dlog.planning.indices import Order, choose_orders
from dlog.planning.pipeline import Anti, Join, Pipeline, Union, bound_behind, form_variables, plan_pipeline
from dlog.planning.versions import base_name, is_change, is_old
from dlog.values import INT

# From this many rows on, building one column order costs more than planning dozens of rules again, at 0.5 ms
# each.
# With 300 rules over relations of 6,000 rows, ten fewer orders were not worth the planning.
LARGE = 1 << 17

Body = tuple[Rule, tuple[Form, ...]]  # a rule, and the forms of one of its variants


def choose_for_program(program: Program, store: Store, bodies: Iterable[Body]) -> None:
    """Before anything is evaluated.  O(planning of bodies that read wide predicates)."""
    forget(store)
    wanted = wide_predicates(program, store)
    for rule, forms in bodies if wanted else ():
        choose(store, body_uses(rule, forms, store, wanted), wanted)


def forget(store: Store) -> None:
    """Drops the orders chosen in advance; they are no longer needed."""
    store.chosen_orders.clear()
    store.requirements.clear()


def choose(store: Store, uses: Iterable[AtomUse], wanted: Collection[str]) -> None:
    """The fewest orders of `wanted` predicates for these uses and those before, besides what exists."""
    changed = set()
    for use in uses:
        name = _stored_as(use.predicate)
        known = store.requirements.setdefault(name, set())
        if name in wanted and use.together not in known:
            known.add(use.together)
            changed.add(name)
    for name in changed:
        existing = store.orders(name)
        choice = choose_orders(store.predicates[name].arity, list(store.requirements[name]), existing)
        store.chosen_orders[name] = choice.orders[len(existing) :]


def wide_predicates(program: Program, store: Store) -> frozenset[str]:
    """Predicates for which a choice is worth planning ahead: shared ones that are, or may become, large."""
    shared = shared_predicates(program)
    if not shared or max(map(store.rows, program.predicates)) < LARGE:
        return frozenset()
    derived = {name for stratum in program.strata for name in stratum.predicates}
    return frozenset(name for name in shared if name in derived or store.rows(name) >= LARGE)


def shared_predicates(program: Program) -> frozenset[str]:
    """Predicates of more than two columns that are read in several places.  O(program)."""
    wide = {name for name, predicate in program.predicates.items() if predicate.arity > 2}
    bodies = [rule.body for stratum in program.strata for rule in stratum.rules] if wide else []
    read = Counter(atom.predicate for body in bodies for atom, _ in body.atoms())
    return frozenset(name for name in wide if read[name] > 1)


# What plans read


def body_uses(
    rule: Rule, forms: tuple[Form, ...], store: Store, wanted: Collection[str] | None = None
) -> Iterator[AtomUse]:
    """What the plan of a body would read; with `wanted`, only of joins that read one of these predicates."""
    pipeline = plan_pipeline(forms, body_outputs(rule), rule.types, bool(rule.aggregates))
    yield from _pipeline_uses(pipeline, rule, store, (), wanted)


def _pipeline_uses(
    pipeline: Pipeline, rule: Rule, store: Store, bound: tuple[str, ...], wanted: Collection[str] | None
) -> Iterator[AtomUse]:
    for operation in pipeline.operations:
        match operation:
            case Join():
                read = Conj((), operation.forms).predicates()
                if operation.forms and (wanted is None or not read.isdisjoint(wanted)):
                    yield from _join_uses(operation, rule, store, bound)
            case Anti():
                yield from _pipeline_uses(operation.body, rule, store, bound, wanted)
            case Union():
                for branch in operation.branches:
                    yield from _pipeline_uses(branch, rule, store, bound, wanted)
        bound = bound_behind(operation, bound)


def _join_uses(join: Join, rule: Rule, store: Store, bound: tuple[str, ...]) -> Iterator[AtomUse]:
    """A recursive variant is driven by what is new; a join after others begins with a table of bindings."""
    forms = list(join.forms)
    driver = next((f for f in forms if isinstance(f, Atom) and is_change(f.predicate)), None)
    if driver is not None:
        forms.remove(driver)
    for use in planned_behind(join, forms, rule, store, bound, driver).atoms:
        if use.predicate != TABLE and not is_change(use.predicate):
            yield use


def planned_behind(
    join: Join,
    forms: Sequence[Form],
    rule: Rule,
    store: Store,
    bound: tuple[str, ...],
    driver: Atom | None = None,
) -> CompiledJoin:
    """The plan of some forms of a join that continues from bindings of some variables, before there are
    any.
    """
    shared = tuple(v for v in bound if any(v in form_variables(f) for f in forms))
    if bound:
        forms = [Atom(TABLE, tuple(map(Var, shared)), len(shared)), *forms]
    types = {**rule.types, "$number": INT}
    columns = lambda name: [INT] * len(shared) if name == TABLE else store.column_types(name)  # noqa: E731
    return compile_join(
        forms,
        join.outputs,
        types,
        columns,
        DefaultStatistics(store),
        store.encode,
        bag=join.bag,
        driver=driver,
    )


# The resulting orders


def orders_with_readers(
    store: Store, name: str, uses: Iterable[tuple[AtomUse, str]], chosen: Sequence[Order] = ()
) -> dict[Order, list[str]]:
    """The orders that a predicate has, or gets when plans run one after the other, with their readers."""
    readers: dict[Order, list[str]] = {order: [] for order in store.orders(name)}
    for use, user in uses:
        orders = [*readers, *chosen]
        columns = arrangement(use, orders)
        order = next((o for o in orders if o[: len(columns)] == columns), None)
        if order is None:
            rest = (c for c in range(store.predicates[name].arity) if c not in columns)
            order = (*columns, *rest)
        users = readers.setdefault(order, [])
        if user not in users:
            users.append(user)
    return readers


def _stored_as(name: str) -> str:
    return base_name(name) if is_old(name) else name
