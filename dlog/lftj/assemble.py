"""Owns the translation of a plan into the words that the machine runs.

Every step becomes one or two instructions; control is wired by addresses, `fail` being the place of the last
other choice when the step begins:

conjunction   the next step's `fail` is this step's own second entry (Leap, RangeStep, Or), else unchanged
Not           inner failure is success: it leads to the next step; reaching the inner end leads to `fail`
Exists        the inner end leads to the next step, whose `fail` is that from before: the cut
Or            the failure of a branch leads to the next branch; a branch that ends records where to come back
to

Knows the numbers of `opcodes`, and nothing of data.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dlog.jit import Words
from dlog.lftj import opcodes as o
from dlog.lftj.plan import (
    Compare,
    Compute,
    Emit,
    Exists,
    Holds,
    Leap,
    MakeRecord,
    Not,
    Or,
    Plan,
    RangeStep,
    RankCompare,
    ReadField,
    Seek,
    Step,
    Value,
)
from dlog.lftj.primitives import OPERATION

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Assembled:
    """A plan in words.  `initial` is the state before a run, except for the atoms' ranges and indices."""

    plan: Plan
    code: Words
    initial: Words
    ranges: tuple[int, ...]  # address of the range block of level 0 of each atom
    levels: Words  # for each atom that address and the number of its levels
    first: tuple[int, int] | None  # addresses of the bounds of the first Leap, both inclusive

    @property
    def n_columns(self) -> int:
        """The number of columns of the output; -1 if the plan only counts."""
        end = self.plan.steps[-1]
        return len(end.slots) if isinstance(end, Emit) else -1


def assemble(plan: Plan) -> Assembled:
    """O(size of the plan)."""
    plan.check()
    assembler = Assembler(plan)
    return finished(assembler, assembler.program())


def finished(assembler: Assembler, code: Words) -> Assembled:
    """The code and the state that an assembler has laid out.  O(size of the plan)."""
    plan = assembler.plan
    state = np.zeros(assembler.top + o.CHUNK, np.int64)
    state[o.PC] = assembler.start
    state[o.STATUS] = o.BUDGET
    state[[o.SCRATCH, o.SCRATCH_NEXT, o.SCRATCH_END]] = assembler.top
    for slot, word in plan.constants:
        state[o.HEADER + slot] = word
    for address, word in assembler.words_at.items():
        state[address] = word
    for atom, arity in enumerate(plan.arities):
        for level in range(arity):
            block = assembler.block(atom, level)
            state[block + o.COLUMN] = level
            state[block + o.LAST] = level + 1 == arity
            state[block + o.DIRECTORY] = 0 if level == 0 else -1
    ranges = tuple(assembler.block(atom, 0) for atom in range(len(plan.arities)))
    if assembler.first is not None:
        state[list(assembler.first)] = INT64_MIN, INT64_MAX
    levels = np.array(list(zip(ranges, plan.arities, strict=True)), np.int64).reshape(-1)
    return Assembled(plan, code, state, ranges, levels, assembler.first)


@dataclass
class Label:
    """An address in the code that may become known later."""

    address: int = -1


@dataclass
class Assembler:
    plan: Plan
    words: list[int | Label] = field(default_factory=list)
    top: int = 0  # the first free word of the state
    start: int = 0
    first: tuple[int, int] | None = None
    words_at: dict[int, int] = field(default_factory=dict)  # words of the state that do not begin as 0
    _atoms: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.top = o.HEADER + self.plan.n_slots
        for arity in self.plan.arities:
            self._atoms.append(self.top)
            self.top += o.RANGE * (arity + 1)

    # ---- words

    def here(self) -> Label:
        return Label(len(self.words))

    def put(self, op: int, fail: Label, *args: int | Label, next: Label | None = None) -> Label:
        """Append an instruction, which continues after itself by default; return its address."""
        at = self.here()
        args += (0,) * (2 - len(args))
        following = Label(at.address + o.ARGS + len(args))
        self.words += [op, next or following, fail, *args]
        return at

    def own(self, n: int) -> int:
        """Take n words of the state."""
        self.top += n
        return self.top - n

    def slot(self, slot: int) -> int:
        return o.HEADER + slot

    def block(self, atom: int, level: int) -> int:
        return self._atoms[atom] + o.RANGE * level

    # ---- the whole

    def program(self) -> Words:
        fail = self.put(o.HALT, Label(0))
        self.start = len(self.words)
        *steps, end = self.plan.steps
        first = next((step for step in steps if isinstance(step, Leap)), None)
        batch = steps.pop() if steps and self.is_batched(steps[-1]) else None
        for step in steps:
            fail = self.step(step, fail, step is first)
        if isinstance(batch, Leap):
            self.leap(batch, fail, batch is first, end)
        elif isinstance(end, Emit):
            self.put(o.EMIT, fail, len(end.slots), *map(self.slot, end.slots))
        else:
            self.put(o.COUNT, fail)
        return np.array([w.address if isinstance(w, Label) else w for w in self.words], np.int64)

    def is_batched(self, step: Step) -> bool:
        """Whether the last step can be run in batches together with the end of the plan."""
        arities = self.plan.arities
        return isinstance(step, Leap) and all(level + 1 == arities[a] for a, level in step.participants)

    # ---- steps: each method returns where a later failure has to go

    def steps(self, steps: tuple[Step, ...], fail: Label) -> Label:
        for step in steps:
            fail = self.step(step, fail)
        return fail

    def step(self, step: Step, fail: Label, first: bool = False) -> Label:
        match step:
            case Leap():
                return self.leap(step, fail, first)
            case Or():
                return self.disjunction(step, fail)
            case RangeStep():
                return self.range_step(step, fail)
            case Not():
                following = Label()
                self.steps(step.steps, following)
                self.put(o.JUMP, fail, next=fail)
                following.address = len(self.words)
            case Exists():
                self.steps(step.steps, fail)
            case _:
                self.simple(step, fail)
        return fail

    def leap(self, step: Leap, fail: Label, first: bool, end: Step | None = None) -> Label:
        """With an `end` of the plan, both together as a batch."""
        lower = [(self.slot(operand), int(strict)) for operand, strict in step.lower]
        upper = [(self.slot(operand), int(strict)) for operand, strict in step.upper]
        if first:
            self.first = (self.own(1), self.own(1))
            lower.append((self.first[0], 0))
            upper.append((self.first[1], 0))
        n = len(step.participants)
        tail = len(self.words) + o.L_RANGES + n + 2 * len(lower + upper)  # columns, or the next instruction
        args = [self.slot(step.slot), self.own(2 * n + 1), n, len(lower), len(upper), tail]
        args += [self.block(atom, level) for atom, level in step.participants]
        args += [word for bound in lower + upper for word in bound]
        if isinstance(end, Emit):
            args += [len(end.slots), *(-1 if slot == step.slot else self.slot(slot) for slot in end.slots)]
        elif end is not None:
            args.append(-1)
        following = Label()
        at = self.put(o.LEAP_OPEN if end is None else o.BATCH_OPEN, fail, *args, next=following)
        again = self.put(o.LEAP_NEXT if end is None else o.BATCH_NEXT, fail, at)
        following.address = len(self.words) if end is None else again.address
        return again

    def disjunction(self, step: Or, fail: Label) -> Label:
        branch_of = self.own(1)
        following = Label()
        for i, branch in enumerate(step.branches):
            other = fail if i + 1 == len(step.branches) else Label()
            self.put(o.SET, fail, branch_of, self.steps(branch, other), next=following)
            if other is not fail:
                other.address = len(self.words)
        again = self.put(o.REDO, fail, branch_of)
        following.address = len(self.words)
        return again

    def range_step(self, step: RangeStep, fail: Label) -> Label:
        by = -1 if step.step is None else self.slot(step.step)
        args = (self.slot(step.slot), self.own(2), self.slot(step.start), self.slot(step.end), by)
        following = Label()
        at = self.put(o.RANGE_OPEN, fail, *args, o.KIND[step.kind], next=following)
        again = self.put(o.RANGE_NEXT, fail, at)
        following.address = len(self.words)
        return again

    def simple(self, step: Step, fail: Label) -> None:
        match step:
            case Seek():
                self.put(o.SEEK, fail, self.block(step.atom, step.level), self.slot(step.operand))
            case Value():
                self.put(o.VALUE, fail, self.block(step.atom, step.level), self.slot(step.slot))
            case Holds():
                self.put(o.HOLDS, fail, self.block(step.atom, 0))
            case Compare() | RankCompare():
                op = o.COMPARE if isinstance(step, Compare) else o.RANK_COMPARE
                self.put(op, fail, o.COMPARISON[step.op], self.slot(step.a), self.slot(step.b))
            case Compute():
                b = step.a if step.b < 0 else step.b
                operation = (OPERATION[step.op], o.KIND[step.kind])
                self.put(o.COMPUTE, fail, *operation, self.slot(step.dst), self.slot(step.a), self.slot(b))
            case MakeRecord():
                arity, fields = len(step.fields), map(self.slot, step.fields)
                self.put(o.MAKE, fail, step.shape, arity, self.own(arity), self.slot(step.dst), *fields)
            case ReadField():
                slots = self.slot(step.dst), self.slot(step.record)
                self.put(o.FIELD, fail, step.constructor, step.index, *slots)
