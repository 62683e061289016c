"""Owns forms -> join plan: a key order, the steps of the triejoin, and the column orders its atoms need.

Correct output: every binding of the outputs that satisfies all forms; in a bag once for each assignment of
all variables, otherwise at least once.  Whatever the key order, each atom is read in the order in which its
columns are bound, so the order decides which indices are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from dlog.ir.rules import Atom, Form, Var
from dlog.lftj.plan import (
    Compare,
    Count,
    Emit,
    Leap,
    Or,
    Plan,
    RangeStep,
    RankCompare,
    Step,
)
from dlog.planning.arrange import AtomUse, arranged, arrangement
from dlog.planning.block import Block, Compiler, Encode, Shape, cut, no_shapes
from dlog.planning.cost import Statistics
from dlog.planning.cross_products import cross_products
from dlog.planning.key_order import Implied, KeyOrder
from dlog.values import Type

Comparison: TypeAlias = Compare | RankCompare

_ESTIMATED = 6  # variables up to which an estimate compares all orders: 2 ms; each further one doubles it


@dataclass(frozen=True)
class CompiledJoin:
    plan: Plan
    atoms: tuple[AtomUse, ...]
    outputs: tuple[str, ...]
    key_order: KeyOrder
    uses_ranks: bool
    cross_products: tuple[tuple[str, ...], ...] = ()
    given: tuple[tuple[str, int], ...] = ()  # variables of the driver and the slots that they come in
    names: tuple[tuple[str, int], ...] = ()  # all variables and their slots, to show the plan
    leftover: tuple[Comparison, ...] = ()  # comparisons that are left to test on the output rows
    read: tuple[Atom, ...] = ()  # the atom of each use


def compile_join(
    forms: Sequence[Form],
    outputs: Sequence[str],
    types: Mapping[str, Type],
    columns: Callable[[str], Sequence[Type]],
    statistics: Statistics,
    encode: Encode,
    *,
    bag: bool = False,
    count: bool = False,
    driver: Atom | None = None,
    first: str | None = None,
    implied: Implied | None = None,
    post_join: bool = False,
    alike: bool = False,
    shape: Shape = no_shapes,
) -> CompiledJoin:
    """A plan for a conjunction of kernel forms.

    `columns` gives the types of a predicate's columns, `encode` the code of a literal in a type (None if
    the type cannot hold it).  With `count` the plan only counts assignments.  A `driver` is an atom besides
    the forms whose rows are given one by one: its variables are parameters of the plan, bound before it runs.
    `first` names a variable to begin with; `implied` gives the atoms that are semijoins, and of what.
    `alike`: all branches of a disjunction bind what they share in the order of the first, whatever indices
    that takes.  `shape` gives the numbers of shapes, for forms that make records.

    If `post_join`, the caller makes the comparisons that would come last, of outputs only: on arrays
    they take 3 ns a row, in the join 30, and the join's last level can then be written in batches.
    """
    compiler = Compiler(types, columns, statistics, encode, first, implied)
    compiler.alike = alike
    compiler.shape = shape
    known = () if driver is None else tuple(dict.fromkeys(a.name for a in driver.args if isinstance(a, Var)))
    given = tuple((name, compiler.slot(name)) for name in known)
    steps, key_order = compiler.block(list(forms), set(known), set(outputs), bag or count)
    uses = [AtomUse(s.atom.predicate, tuple(s.order), tuple(s.together)) for s in compiler.atoms]
    chosen = [arrangement(use, statistics.known_orders(use.predicate)) for use in uses]
    steps = arranged(steps, [(use.columns, columns) for use, columns in zip(uses, chosen, strict=True)])
    uses = [replace(use, columns=columns) for use, columns in zip(uses, chosen, strict=True)]
    slots = tuple(compiler.slot(v) for v in outputs)
    if not bag and not count:
        steps = cut(steps, set(slots))
    constants = {slot for slot, _ in compiler.constants.values()}
    left = last_comparisons(steps, set(slots), constants) if post_join else ()
    steps = steps[: len(steps) - len(left)]
    ranked = compiler.ranked > sum(isinstance(step, RankCompare) for step in left)
    plan = Plan(
        tuple(len(state.order) for state in compiler.atoms),
        (*steps, Count() if count else Emit(slots)),
        tuple(compiler.constants.values())
        + tuple(compiler.extra_constants)
        + tuple((slot, 0) for _, slot in given),
    )
    tied = cross_products(forms if driver is None else (driver, *forms), statistics.rows)
    names = tuple(compiler.slots.items())
    read = tuple(state.atom for state in compiler.atoms)
    return CompiledJoin(plan, tuple(uses), tuple(outputs), key_order, ranked, tied, given, names, left, read)


def last_comparisons(steps: Sequence[Step], outputs: set[int], constants: set[int]) -> tuple[Comparison, ...]:
    """Those at the end of a plan, of an output with another or with a constant."""
    found: list[Comparison] = []
    for step in reversed(steps):
        if not isinstance(step, Compare | RankCompare):
            break
        operands = {step.a, step.b}
        if not operands & outputs or not operands <= outputs | constants:
            break
        found.append(step)
    return tuple(reversed(found))


def estimate_join(
    forms: Sequence[Form],
    outputs: Sequence[str],
    bag: bool,
    statistics: Statistics,
    first: str | None = None,
    implied: Implied | None = None,
) -> KeyOrder:
    """Approximately the key order that `compile_join` would choose, and its cost: not all orders of many
    variables.
    """
    compiler = Compiler({}, lambda name: (), statistics, lambda const, type: None, first, implied)
    compiler.exhaustive = _ESTIMATED
    return Block(compiler, list(forms), set(), set(outputs), bag).choose()


def begins_with(compiled: CompiledJoin, variable: str) -> bool:
    """Whether a plan begins with the choice of a variable: only then can its range be split."""
    steps = compiled.plan.steps
    leap = next((step for step in steps if isinstance(step, Leap | Or | RangeStep)), None)
    return isinstance(leap, Leap) and (variable, leap.slot) in compiled.names
