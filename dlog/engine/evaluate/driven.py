"""Owns driven rules: variants of recursive rules as plans that one row of the recursive atom drives.

A variant can be driven if one join does all its body and its heads take values unchanged.  Everything
else (strings and decimals computed on columns) runs in rounds: see `evaluate`.  Knows nothing of
queues or of when a plan runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from dlog.engine.body.replan import REPLAN
from dlog.engine.head.heads import body_outputs, fits, is_stored
from dlog.engine.state.measure import RuleMeasure
from dlog.engine.state.store import Store
from dlog.ir.record_forms import is_record_form
from dlog.ir.rules import Atom, Conj, Const, Form, Primitive, Rule
from dlog.lftj import opcodes as o
from dlog.lftj.assemble import Assembled, assemble
from dlog.lftj.drive_layout import EQUALS, PARAMETER, REPEATS
from dlog.lftj.plan import Emit, Leap, Seek
from dlog.planning.compile import CompiledJoin, compile_join
from dlog.planning.cross_products import cross_products
from dlog.planning.pipeline import in_kernel
from dlog.planning.versions import base_name, is_change


@dataclass(frozen=True)
class Driven:
    """A variant of a rule: `driver` is the atom whose rows are given, `forms` are the rest of the body.

    If derivations are counted, every assignment is one.
    """

    rule: Rule
    driver: Atom
    forms: tuple[Form, ...]
    measure: RuleMeasure
    counted: bool = False

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The outputs of the body: the variables of heads."""
        return tuple(dict.fromkeys(body_outputs(self.rule)))

    @cached_property
    def uses_records(self) -> bool:
        """Whether it makes records or takes them apart."""
        return any(isinstance(f, Primitive) and is_record_form(f.name) for f in Conj((), self.forms).walk())

    @cached_property
    def predicates(self) -> frozenset[str]:
        """What the rest of the body reads, negated or not."""
        return frozenset(map(base_name, self.versions))

    @cached_property
    def versions(self) -> frozenset[str]:
        """The same by the names of the versions that it reads."""
        return frozenset(atom.predicate for atom, _ in Conj((), self.forms).atoms())


@dataclass(frozen=True)
class DrivenPlan:
    """`binding` has the action for each column of the driver (see `lftj.drive`)."""

    compiled: CompiledJoin
    assembled: Assembled
    binding: tuple[tuple[int, int], ...]
    sizes: tuple[int, ...]
    lookup: tuple[int, ...] = ()  # the words of a look-up (see `lftj.drive`), if it is one

    def suits(self, store: Store) -> bool:
        """Whether the relations still have about the sizes the plan was made for."""
        return all(
            store.rows(use.predicate) <= REPLAN * max(64, size)
            for use, size in zip(self.compiled.atoms, self.sizes, strict=True)
        )


def driven(store: Store, rule: Rule, forms: tuple[Form, ...], measure: RuleMeasure) -> Driven | None:
    """A delta variant as a driven rule; None if it cannot be one."""
    single = all(in_kernel(form, rule.types, records=True) for form in forms)
    if rule.aggregates or not single or not all(_simple_head(store, rule, head) for head in rule.heads):
        return None
    driver = next(f for f in forms if isinstance(f, Atom) and is_change(f.predicate))
    rest = tuple(f for f in forms if f is not driver)
    return Driven(rule, driver, rest, measure)


def plan_driven(store: Store, item: Driven) -> DrivenPlan | None:
    """None if no row can match the driver: it holds a literal that its type cannot."""
    columns = store.column_types(item.driver.predicate)
    given = zip(item.driver.args, columns, strict=True)
    codes = [store.encode(a, t) if isinstance(a, Const) else 0 for a, t in given]
    if any(code is None for code in codes):
        return None
    compiled = compile_join(
        item.forms,
        item.outputs,
        item.rule.types,
        store.column_types,
        store,
        store.encode,
        bag=item.counted,
        driver=item.driver,
        shape=store.dictionary.records.shape,
    )
    compiled = replace(compiled, cross_products=_cross_products(store, item))
    slots = dict(compiled.given)
    binding: list[tuple[int, int]] = []
    first: dict[str, int] = {}
    for column, (operand, code) in enumerate(zip(item.driver.args, codes, strict=True)):
        if isinstance(operand, Const):
            binding.append((EQUALS, code or 0))
        elif operand.name in first:
            binding.append((REPEATS, first[operand.name]))
        else:
            first[operand.name] = column
            binding.append((PARAMETER, o.HEADER + slots[operand.name]))
    sizes = tuple(store.rows(use.predicate) for use in compiled.atoms)
    assembled = assemble(compiled.plan)
    places = {operand: column for column, (kind, operand) in enumerate(binding) if kind == PARAMETER}
    lookup = _lookup(assembled, places) if len(places) == len(binding) else ()
    return DrivenPlan(compiled, assembled, tuple(binding), sizes, lookup)


def _cross_products(store: Store, item: Driven) -> tuple[tuple[str, ...], ...]:
    """The parts of a body that nothing connects; the driver counts, however few rows it has now."""
    driver = replace(item.driver, predicate=base_name(item.driver.predicate))
    return cross_products(
        (driver, *item.forms), lambda name: max(store.rows(name), 2 if name == driver.predicate else 0)
    )


def _lookup(assembled: Assembled, places: dict[int, int]) -> tuple[int, ...]:
    """The words of a look-up; none if a plan is more than that.  `places`: parameter -> driver's column."""
    plan = assembled.plan
    if plan.arities != (2,) or len(plan.steps) != 3:
        return ()
    seek, leap, emit = plan.steps
    if not isinstance(seek, Seek) or not isinstance(leap, Leap) or not isinstance(emit, Emit):
        return ()
    if leap.lower or leap.upper or o.HEADER + seek.operand not in places:
        return ()
    columns = [-1 if slot == leap.slot else places.get(o.HEADER + slot, -2) for slot in emit.slots]
    if -2 in columns:
        return ()
    return (assembled.ranges[0], places[o.HEADER + seek.operand], len(columns), *columns)


def place(rule: Rule) -> str:
    """The position of a rule, for messages."""
    return f"{rule.span.file}:{rule.span.line} ({rule.heads[0].predicate})" if rule.span else str(rule)


def head_sources(store: Store, item: Driven, head: Atom) -> list[tuple[int, int]]:
    """Where each column of a head comes from: (column of the output, -), or (-1, a constant)."""
    outputs = item.outputs
    types = store.column_types(head.predicate)
    sources = []
    for operand, type in zip(head.args, types, strict=True):
        if isinstance(operand, Const):
            code = store.encode(operand, type)
            assert code is not None
            sources.append((-1, code))
        else:
            sources.append((outputs.index(operand.name), 0))
    return sources


def _simple_head(store: Store, rule: Rule, head: Atom) -> bool:
    return bool(head.args) and fits(store, head) and is_stored(store, rule, head)
