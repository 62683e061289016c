"""Owns the translation of one conjunction into steps: what is read, tested and bound, and when.

Slots, constants and atoms are shared by all blocks of a plan; each block has its own bindings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from dlog.ir.lower.grounding import ground
from dlog.ir.record_forms import is_constructor
from dlog.ir.rules import Atom, Const, Disjunction, Form, Negation, Operand, Primitive, Var
from dlog.lftj.plan import (
    Compare,
    Exists,
    Holds,
    Leap,
    Not,
    Or,
    RangeStep,
    Seek,
    Step,
    Value,
    written,
)
from dlog.planning.cost import AtomModel, Statistics
from dlog.planning.key_order import EXHAUSTIVE, Implied, KeyOrder, choose_key_order
from dlog.planning.pipeline import form_variables, own_variables
from dlog.planning.primitive_steps import determines, try_primitive
from dlog.values import Type

Encode = Callable[[Const, Type], int | None]
Shape = Callable[[int, tuple[int, ...]], int]  # of a constructor and what its fields hold: a number


def no_shapes(constructor: int, kinds: tuple[int, ...]) -> int:
    raise AssertionError("this plan makes no records")


_FLIP = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _makes_record(form: Form) -> bool:
    return isinstance(form, Primitive) and is_constructor(form.name)


def cut(steps: list[Step], outputs: set[int]) -> list[Step]:
    """Short circuit (2.2.1): after the last output only existence matters."""
    last = max((i for i, step in enumerate(steps) if outputs & _bound_slots(step)), default=-1)
    tail = steps[last + 1 :]
    if any(isinstance(step, Leap | Or | RangeStep) for step in tail):
        return [*steps[: last + 1], Exists(tuple(tail))]
    return steps


def _bound_slots(step: Step) -> set[int]:
    """Slots that hold a value after a step: a disjunction binds what its branches bind."""
    if isinstance(step, Or):
        return {slot for branch in step.branches for inner in branch for slot in _bound_slots(inner)}
    return set(written(step))


@dataclass
class AtomState:
    """How far an atom has been read: `order` are the columns consumed so far.

    `together` are the same columns as sets: those of one set are read at once, so in any order.
    """

    id: int
    atom: Atom
    order: list[int] = field(default_factory=list)
    together: list[frozenset[int]] = field(default_factory=list)

    def consume(self, *columns: int) -> None:
        self.order += columns
        self.together.append(frozenset(columns))

    def columns_of(self, name: str) -> list[int]:
        return [
            i
            for i, a in enumerate(self.atom.args)
            if isinstance(a, Var) and a.name == name and i not in self.order
        ]


class Compiler:
    """Slots, constants and atoms are shared by all blocks of a plan; each block has its own bindings."""

    def __init__(
        self,
        types: Mapping[str, Type],
        columns: Callable[[str], Sequence[Type]],
        statistics: Statistics,
        encode: Encode,
        first: str | None = None,
        implied: Implied | None = None,
    ):
        self.types = types
        self.columns = columns
        self.statistics = statistics
        self.encode = encode
        self.first = first
        self.implied = implied or {}
        self.alike = False  # whether branches of a disjunction bind shared variables in the same order
        self.led_by: tuple[str, ...] = ()  # that of the first branch
        self.exhaustive = EXHAUSTIVE
        self.shape: Shape = no_shapes
        self.slots: dict[str, int] = {}
        self.constants: dict[int, tuple[int, int]] = {}  # code -> (slot, code)
        self.extra_constants: list[tuple[int, int]] = []
        self.atoms: list[AtomState] = []
        self.ranked = 0  # steps that compare strings

    def slot(self, name: str) -> int:
        return self.slots.setdefault(name, len(self.slots) + len(self.constants))

    def temporary(self) -> int:
        return self.slot(f"$temporary{len(self.slots)}")

    def constant(self, code: int) -> int:
        if code not in self.constants:
            self.constants[code] = (len(self.slots) + len(self.constants), code)
        return self.constants[code][0]

    def block(
        self, forms: list[Form], bound: set[str], needed: set[str], bag: bool
    ) -> tuple[list[Step], KeyOrder]:
        """Steps for a conjunction, given what is bound around it."""
        block = Block(self, forms, bound, needed, bag)
        block.run()
        return block.steps, block.key_order

    def type(self, operand: Operand) -> Type:
        if isinstance(operand, Const):
            assert operand.type is not None
            return operand.type
        return self.types[operand.name]


class Block:
    """The translation of one conjunction into steps.

    1 read constants and what is bound outside.  2 do all that is free: tests, computations, function values.
    3 leap to the next variable of the key order.  4 when no variable is left, let disjunctions generate.
    """

    def __init__(self, compiler: Compiler, forms: list[Form], bound: set[str], needed: set[str], bag: bool):
        self.c = compiler
        self.bound = set(bound)
        self.needed = needed
        self.bag = bag
        self.forms = forms
        self.steps: list[Step] = []
        self.pending = [f for f in forms if not isinstance(f, Atom)]
        self.atoms = [self.new_atom(f) for f in forms if isinstance(f, Atom)]
        self.key_order = KeyOrder((), (), 0.0)

    def new_atom(self, atom: Atom) -> AtomState:
        state = AtomState(len(self.c.atoms), atom)
        self.c.atoms.append(state)
        return state

    def run(self) -> None:
        self.key_order = self.choose()
        for state in self.atoms:
            if not self.cares(state):
                self.steps.append(Holds(state.id))
        for state in self.atoms:
            self.read_known(state)
        self.settle()
        for name in self.key_order.variables:
            if name not in self.bound:
                self.leap(name)
                self.settle()
        while self.pending:
            self.generate()
            self.settle()
            for name in self.key_order.variables:
                if name not in self.bound:
                    self.leap(name)
                    self.settle()

    # The relevant variables, and their order

    def cares(self, state: AtomState) -> bool:
        """Whether any column of an atom is used; otherwise it only has to have a row."""
        return any(isinstance(a, Const) or self.relevant(a.name) for a in state.atom.args)

    def relevant(self, name: str) -> bool:
        """In a bag every variable counts; otherwise one that occurs once and is not an output does not."""
        if self.bag or name in self.needed or name in self.bound:
            return True
        uses = sum(
            1
            for f in self.forms
            if isinstance(f, Atom)
            for a in f.args
            if isinstance(a, Var) and a.name == name
        )
        return uses > 1 or any(name in form_variables(f) for f in self.forms if not isinstance(f, Atom))

    def choose(self) -> KeyOrder:
        model = getattr(self.c.statistics, "model", None) or (lambda a: AtomModel.of(a, self.c.statistics))
        models = [model(s.atom) for s in self.atoms]
        names = [
            a.name
            for s in self.atoms
            for i, a in enumerate(s.atom.args)
            if isinstance(a, Var) and self.relevant(a.name) and not self.follows(s.atom, i)
        ]
        early = self.early_generators()
        bound = self.bound | {v for f in early for v in form_variables(f)}
        first = self.c.first if self.c.first in names and not self.bound else None
        return choose_key_order(
            models,
            self.pending,
            names,
            bound,
            self.needed,
            self.bag,
            self.c.statistics,
            first,
            self.c.implied,
            self.c.exhaustive,
        ).led_by(self.leading(names))

    def leading(self, names: Sequence[str]) -> list[str]:
        """Of the variables that another branch begins with, those that this one can begin with, too, without
        a cross product: each is in an atom with one before it."""
        found: list[str] = []
        for name in self.c.led_by:
            known = self.bound.union(found)
            atoms = [form_variables(s.atom) for s in self.atoms]
            if name not in names or (known and not any(name in a and a & known for a in atoms)):
                break
            found.append(name)
        return found

    def follows(self, atom: Atom, column: int) -> bool:
        """Whether a column is a function's value that only this atom has: in a bag it comes with the keys."""
        value = atom.args[column]
        if not self.bag or not atom.is_functional or column < atom.n_keys or not isinstance(value, Var):
            return False
        return value.name not in self.bound and value.name in own_variables(atom, self.forms, set())

    def early_generators(self) -> list[Form]:
        """Disjunctions without atoms, such as x = 1 ; x = 2: cheaper to generate from than to test."""
        return [
            f
            for f in self.pending
            if isinstance(f, Disjunction)
            and all(isinstance(g, Primitive) for b in f.branches for g in b.forms)
            and all(
                form_variables(f) - self.bound <= {v for g in b.forms for v in form_variables(g)}
                for b in f.branches
            )
            and all(determines(b.forms, self.bound) >= form_variables(f) - self.bound for b in f.branches)
        ]

    # Reading atoms

    def read_known(self, state: AtomState) -> None:
        """Narrow an atom by every column whose value is known now."""
        known = [
            i
            for i, a in enumerate(state.atom.args)
            if i not in state.order and (isinstance(a, Const) or a.name in self.bound)
        ]
        for level, column in enumerate(known, len(state.order)):
            operand = state.atom.args[column]
            self.steps.append(Seek(state.id, level, self.operand(operand, self.column_type(state, column))))
        if known:
            state.consume(*known)

    def column_type(self, state: AtomState, column: int) -> Type:
        return self.c.columns(state.atom.predicate)[column]

    def operand(self, operand: Operand, type: Type) -> int:
        if isinstance(operand, Var):
            return self.c.slot(operand.name)
        code = self.c.encode(operand, type)
        if code is None:  # the type cannot hold this literal: nothing equals it
            self.fail()
            code = 0
        return self.c.constant(code)

    def fail(self) -> None:
        self.steps.append(Compare("!=", self.c.constant(0), self.c.constant(0)))

    def bind(self, name: str) -> None:
        """A variable has its value now: every atom that has it is narrowed."""
        self.bound.add(name)
        for state in self.atoms:
            if state.columns_of(name):
                self.read_known(state)

    def leap(self, name: str) -> None:
        participants = []
        for state in self.atoms:
            if columns := state.columns_of(name):
                participants.append((state.id, len(state.order)))
                state.consume(columns[0])
        lower, upper = self.bounds(name)
        self.steps.append(Leap(self.c.slot(name), tuple(participants), tuple(lower), tuple(upper)))
        self.bind(name)

    def bounds(self, name: str) -> tuple[list[tuple[int, bool]], list[tuple[int, bool]]]:
        """Comparisons of this variable with what is known become bounds of its leap."""
        lower: list[tuple[int, bool]] = []
        upper: list[tuple[int, bool]] = []
        for form in list(self.pending):
            other = self.compared_with(form, name)
            if other is None or not isinstance(form, Primitive):
                continue
            op = form.name if form.inputs[1] is other else _FLIP[form.name]
            operand = self.operand(other, self.c.types[name])
            (lower if op in ("gt", "ge") else upper).append((operand, op in ("gt", "lt")))
            self.pending.remove(form)
        return lower, upper

    def compared_with(self, form: Form, name: str) -> Operand | None:
        if not isinstance(form, Primitive) or form.name not in _FLIP or not self.c.types[name].ordered_codes:
            return None
        a, b = form.inputs
        for this, other in ((a, b), (b, a)):
            if (
                isinstance(this, Var)
                and this.name == name
                and (isinstance(other, Const) or other.name in self.bound)
            ):
                if isinstance(other, Const) and self.c.encode(other, self.c.types[name]) is None:
                    return None
                return other
        return None

    # Steps that are free once their inputs are known

    def settle(self) -> None:
        progress = True
        while progress:
            progress = self.read_values()
            # Records are made after all tests: one that fails leaves none.
            for form in sorted(self.pending, key=_makes_record):
                if not (progress and _makes_record(form)) and self.try_form(form):
                    self.pending.remove(form)
                    progress = True

    def read_values(self) -> bool:
        """Values of functions whose keys are all known: one value each, no choice."""
        progress = False
        for state in self.atoms:
            atom, last = state.atom, len(state.atom.args) - 1
            if atom.is_functional and len(state.order) == last and last not in state.order:
                operand = atom.args[last]
                if (
                    isinstance(operand, Var)
                    and self.relevant(operand.name)
                    and operand.name not in self.bound
                ):
                    self.steps.append(Value(state.id, last, self.c.slot(operand.name)))
                    state.consume(last)
                    self.bind(operand.name)
                    progress = True
        return progress

    def try_form(self, form: Form) -> bool:
        if isinstance(form, Primitive):
            return try_primitive(self, form)
        assert isinstance(form, Negation | Disjunction)
        shared = form_variables(form) - own_variables(form, self.forms, self.needed | self.bound)
        if isinstance(form, Negation):
            if not shared <= self.bound:
                return False
            inner, _ = self.c.block(list(form.body.forms), self.bound, set(), False)
            self.steps.append(Not(tuple(inner)))
            return True
        if not form.branches:  # `false`
            self.fail()
            return True
        if shared <= self.bound:
            self.steps.append(Exists((self.or_step(form, set()),)))
            return True
        if form in self.early_generators():
            self.generate_from(form)
            return True
        return False

    def or_step(self, form: Disjunction, needed: set[str]) -> Step:
        branches = []
        around = self.c.led_by
        for branch in form.branches:
            steps, key_order = self.c.block(list(branch.forms), self.bound, needed, False)
            slots = {self.c.slot(v) for v in needed}
            branches.append(tuple(cut(steps, slots)))
            if self.c.alike and self.c.led_by == around:
                self.c.led_by = (*around, *(v for v in key_order.variables if v in needed))
        self.c.led_by = around
        return Or(tuple(branches))

    def generate(self) -> None:
        """Lets the first disjunction that can bind what is missing do so."""
        for form in self.pending:
            if isinstance(form, Disjunction):
                fresh = self.fresh(form)
                if fresh <= ground((form,), self.bound, fresh):
                    self.generate_from(form)
                    self.pending.remove(form)
                    return
        raise AssertionError(f"no order for {', '.join(map(str, self.pending))}")

    def fresh(self, form: Disjunction) -> set[str]:
        """The variables that a disjunction shares with its surroundings and has to bind itself."""
        shared = form_variables(form) - own_variables(form, self.forms, self.needed | self.bound)
        return shared - self.bound

    def generate_from(self, form: Disjunction) -> None:
        fresh = self.fresh(form)
        self.steps.append(self.or_step(form, fresh))
        for name in sorted(fresh):
            self.bind(name)
