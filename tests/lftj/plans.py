"""Owns random join problems: small relations and valid plans over them, for Hypothesis."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from dlog.lftj.plan import (
    BINARY_OPS,
    COMPARISONS,
    Compare,
    Compute,
    Count,
    Emit,
    Exists,
    Holds,
    Leap,
    Not,
    Or,
    Plan,
    RangeStep,
    RankCompare,
    Seek,
    Step,
    Value,
)
from tests.lftj.formulas import MAX, MIN, Relation

SMALL = range(-1, 4)
EXTREMES = (MIN, MIN + 1, MAX - 1, MAX)
CODES = st.one_of(st.sampled_from(SMALL), st.sampled_from(SMALL), st.sampled_from(EXTREMES))
RANKS = (2, 0, 3, 1)  # of the codes 0..3
CONSTANTS = ((0, 0), (1, 1), (2, 3), (3, 2))  # slot, code: small numbers for ranges and strings


@dataclass(frozen=True)
class Problem:
    plan: Plan
    relations: tuple[Relation, ...]


@dataclass
class Scope:
    """What a step may use: bound slots and each atom's next level."""

    bound: list[int]
    levels: dict[int, int]
    depth: int = 0

    def inner(self) -> Scope:
        return Scope(list(self.bound), dict(self.levels), self.depth + 1)


@dataclass
class Builder:
    """Draws steps one by one; every slot is bound at most once in the whole plan: no scope can clash."""

    draw: st.DrawFn
    relations: tuple[Relation, ...]
    arities: tuple[int, ...]
    keys: tuple[int, ...]  # how many columns of each atom determine the others
    slots: int = len(CONSTANTS)

    def fresh(self) -> int:
        self.slots += 1
        return self.slots - 1

    def steps(self, scope: Scope, most: int) -> tuple[Step, ...]:
        steps: list[Step] = []
        for _ in range(self.draw(st.integers(0, most))):
            step = self.step(scope)
            if step is not None:
                steps.append(step)
        return tuple(steps)

    def step(self, scope: Scope) -> Step | None:
        kinds = [
            "leap",
            "leap",
            "leap",
            "seek",
            "seek",
            "value",
            "compare",
            "compute",
            "range",
            "rank",
            "holds",
        ]
        if scope.depth < 2:
            kinds += ["not", "exists", "or", "or"]
        return getattr(self, self.draw(st.sampled_from(kinds)) + "_step")(scope)

    def leap_step(self, scope: Scope) -> Step | None:
        ready = [(a, n) for a, n in sorted(scope.levels.items()) if n < self.arities[a]]
        if not ready:
            return None
        participants = tuple(self.draw(st.lists(st.sampled_from(ready), min_size=1, max_size=3, unique=True)))
        bounds = st.lists(st.tuples(st.sampled_from(scope.bound), st.booleans()), max_size=2)
        lower, upper = (tuple(self.draw(st.one_of(st.just([]), bounds))) for _ in range(2))
        for atom, _ in participants:
            scope.levels[atom] += 1
        step = Leap(self.fresh(), participants, lower, upper)
        scope.bound.append(step.slot)
        return step

    def seek_step(self, scope: Scope) -> Step | None:
        ready = [a for a, n in sorted(scope.levels.items()) if n < self.arities[a]]
        if not ready:
            return None
        atom = self.draw(st.sampled_from(ready))
        scope.levels[atom] += 1
        return Seek(atom, scope.levels[atom] - 1, self.draw(st.sampled_from(scope.bound)))

    def value_step(self, scope: Scope) -> Step | None:
        ready = [a for a, n in sorted(scope.levels.items()) if self.keys[a] <= n < self.arities[a]]
        if not ready:
            return None
        atom = self.draw(st.sampled_from(ready))
        step = Value(atom, scope.levels[atom], self.fresh())
        scope.levels[atom] += 1
        scope.bound.append(step.slot)
        return step

    def compare_step(self, scope: Scope) -> Step:
        a, b = (self.draw(st.sampled_from(scope.bound)) for _ in range(2))
        return Compare(self.draw(st.sampled_from(COMPARISONS)), a, b)

    def rank_step(self, scope: Scope) -> Step:
        a, b = (self.draw(st.sampled_from(range(len(CONSTANTS)))) for _ in range(2))
        return RankCompare(self.draw(st.sampled_from(COMPARISONS)), a, b)

    def holds_step(self, scope: Scope) -> Step | None:
        atoms = range(len(self.arities))
        return Holds(self.draw(st.sampled_from(atoms))) if atoms else None

    def compute_step(self, scope: Scope) -> Step:
        a, b = (self.draw(st.sampled_from(scope.bound)) for _ in range(2))
        op = self.draw(st.sampled_from([op for op in BINARY_OPS if op != "pow"]))
        step = Compute(op, self.draw(st.sampled_from(["int", "unsigned"])), self.fresh(), a, b)
        scope.bound.append(step.dst)
        return step

    def range_step(self, scope: Scope) -> Step:
        start, end, by = (self.draw(st.sampled_from(range(len(CONSTANTS)))) for _ in range(3))
        step = RangeStep(self.fresh(), start, end, self.draw(st.sampled_from([None, by])))
        scope.bound.append(step.slot)
        return step

    def not_step(self, scope: Scope) -> Step:
        return Not(self.steps(scope.inner(), 3))

    def exists_step(self, scope: Scope) -> Step:
        return Exists(self.steps(scope.inner(), 3))

    def or_step(self, scope: Scope) -> Step:
        """What all branches bind is one slot, by a copy at the end of each: fresh slots never coincide."""
        common = self.fresh()
        scopes, branches = [], []
        for _ in range(self.draw(st.integers(1, 3))):
            scopes.append(scope.inner())
            steps = self.steps(scopes[-1], 3)
            source = self.draw(st.sampled_from(scopes[-1].bound))
            branches.append((*steps, Compute("copy", "int", common, source)))
        scope.bound.append(common)
        first = scopes[0].levels
        scope.levels = {a: n for a, n in first.items() if all(s.levels.get(a) == n for s in scopes)}
        return Or(tuple(branches))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    arities = tuple(draw(st.lists(st.sampled_from([0, 1, 1, 2, 2, 2, 3]), max_size=4)))
    keys = tuple(draw(st.one_of(st.just(n), st.integers(0, n))) for n in arities)  # mostly all: a set
    relations = tuple(draw(relation(n, k)) for n, k in zip(arities, keys, strict=True))
    builder = Builder(draw, relations, arities, keys)
    scope = Scope([slot for slot, _ in CONSTANTS], dict.fromkeys(range(len(arities)), 0))
    steps = builder.steps(scope, 6)
    emit = Emit(tuple(draw(st.lists(st.sampled_from(scope.bound), max_size=4))))
    end = draw(st.sampled_from([emit, emit, Emit(tuple(scope.bound)), Count()]))
    return Problem(Plan(arities, (*steps, end), CONSTANTS), relations)


def relation(arity: int, keys: int) -> st.SearchStrategy[Relation]:
    """Rows of which no two agree in their first `keys` columns."""
    rows = st.sets(st.tuples(*[CODES] * arity), max_size=12)
    return rows.map(lambda found: set({row[:keys]: row for row in sorted(found)}.values()))
