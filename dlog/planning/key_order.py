"""Owns the choice of a key order: in which order the variables of a join are bound.

Every order gives the same answer; the cheapest by the estimates of `cost` is chosen.  Up to EXHAUSTIVE
variables all orders are compared, by dynamic programming over the sets of variables bound so far; beyond that
the next variable is the cheapest one at each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from dlog.ir.rules import Atom, Form, Primitive, Var
from dlog.planning.cost import AtomModel, Statistics, extend
from dlog.planning.indices import serves

# Atoms that read a semijoin, with the variables of the forms it was made of: once these are all bound, the
# semijoin adds nothing.
Implied: TypeAlias = Mapping[Atom, frozenset[str]]

EXHAUSTIVE = 8
OPEN = 2.0  # cost of beginning a leap, against a value visited
_FILTER = 0.5  # share of the bindings that pass a comparison
OUTPUT = 2.0  # cost of a row that is written, sorted and deduplicated, against one that is visited
_SAME = 1e-9  # relative difference up to which two costs are the same
_NEW_INDEX = 5.0  # cost per row of a column order that does not exist yet


@dataclass(frozen=True)
class KeyOrder:
    """Variables in the order they are bound, with the number of bindings expected after each."""

    variables: tuple[str, ...]
    sizes: tuple[float, ...]
    cost: float

    def led_by(self, names: Sequence[str]) -> KeyOrder:
        """The same variables, those among `names` first, in that order.  Its cost is not
        estimated again."""
        first = [name for name in names if name in self.variables]
        return replace(self, variables=(*first, *(v for v in self.variables if v not in first)))


@dataclass(frozen=True)
class _State:
    """`reduced` has, for each semijoin that has been read, the share of bindings that it left."""

    cost: float
    size: float
    order: tuple[str, ...]
    sizes: tuple[float, ...]
    bound: frozenset[str]
    reduced: tuple[tuple[int, float], ...] = ()


class _Search:
    def __init__(
        self,
        models: Sequence[AtomModel],
        others: Sequence[Form],
        needed: frozenset[str],
        bag: bool,
        statistics: Statistics,
        implied: Implied,
    ):
        self.models = models
        self.wanted: frozenset[str] = frozenset()  # all variables to be bound
        implied = _implied_by(models, implied)
        self.semijoins = [(i, implied[m.atom]) for i, m in enumerate(models) if m.atom in implied]
        self.factors = [m for m in models if m.atom not in implied]
        self.primitives = [f for f in others if isinstance(f, Primitive)]
        self.equalities = [_inputs(f) for f in self.primitives if f.name == "eq"]
        self.results = [
            *((_inputs(f), f.output.name) for f in self.primitives if isinstance(f.output, Var)),
            *(_value(m.atom) for m in models if m.atom.is_functional and isinstance(m.atom.args[-1], Var)),
        ]
        self.needed = needed
        self.bag = bag
        self.statistics = statistics
        self.given: frozenset[str] = frozenset()  # bound before the join begins
        self._missing: dict[tuple[str, ...], int] = {}

    def closure(self, bound: frozenset[str]) -> frozenset[str]:
        """Adds what is determined by what is bound: results of primitives, values of functions."""
        if not self.equalities and not self.results:
            return bound
        known = set(bound)
        changed = True
        while changed:
            changed = False
            for names in self.equalities:
                if len(names - known) == 1:
                    known |= names
                    changed = True
            for names, value in self.results:
                if value not in known and names <= known:
                    known.add(value)
                    changed = True
        return frozenset(known)

    def step(self, state: _State, name: str) -> _State:
        visited, kept, reduced = self.reach(state, name)
        filters = sum(
            1
            for f in self.primitives
            if f.output is None
            and f.name != "eq"
            and {a.name for a in f.inputs if isinstance(a, Var)} <= state.bound | {name}
            and any(isinstance(a, Var) and a.name == name for a in f.inputs)
        )
        kept *= _FILTER**filters
        if not self.bag and self.needed <= state.bound:
            # Only existence matters now: the first match ends the search below this binding.
            visited, kept = min(visited, 2.0), min(kept, 1.0)
        bound = self.closure(state.bound | {name})
        size, reduced = self.restored(state.size * kept, reduced, bound)
        return _State(
            state.cost + state.size * (OPEN + visited),
            size,
            (*state.order, name),
            (*state.sizes, size),
            bound,
            reduced,
        )

    def reach(self, state: _State, name: str) -> tuple[float, float, tuple[tuple[int, float], ...]]:
        """As `extend`, with the semijoins that take part and add something."""
        after = state.bound | {name}
        informative = [
            i for i, origin in self.semijoins if name in self.models[i].columns and not origin <= after
        ]
        last = self.wanted <= after
        if not informative:
            return *extend(self.factors, name, state.bound, last), state.reduced
        _, without = extend(self.factors, name, state.bound)
        models = [*self.factors, *(self.models[i] for i in informative)]
        visited, kept = extend(models, name, state.bound, last)
        share = (kept / without if without else 1.0) ** (1 / len(informative))
        return visited, kept, (*state.reduced, *((i, share) for i in informative))

    def restored(
        self, size: float, reduced: tuple[tuple[int, float], ...], bound: frozenset[str]
    ) -> tuple[float, tuple[tuple[int, float], ...]]:
        """What a semijoin removed is not removed again by the atoms it was made of."""
        origins = dict(self.semijoins)
        left = []
        for i, share in reduced:
            if origins[i] <= bound:
                size /= max(share, 1e-9)
            else:
                left.append((i, share))
        return size, tuple(left)

    def finish(self, state: _State) -> float:
        return state.cost + OUTPUT * state.size + self.new_indices(state.order)

    def new_indices(self, order: tuple[str, ...]) -> float:
        """The cost of building column orders that do not exist yet."""
        total = 0.0
        for model in self.models:
            columns = [*model.constants, *(c for v in order for c in model.columns.get(v, ()))]
            existing = self.statistics.orders(model.atom.predicate)
            if existing and not any(list(o[: len(columns)]) == columns for o in existing):
                total += _NEW_INDEX * model.rows
        return total

    def is_scan(self, names: Sequence[str]) -> bool:
        """Whether the join only reads one relation from end to end, and compares its columns."""
        if len(self.models) != 1 or self.semijoins or self.results or self.equalities:
            return False
        atom = self.models[0].atom
        plain = all(isinstance(a, Var) for a in atom.args) and len(self.models[0].columns) == len(atom.args)
        compared = all(isinstance(a, Var) for f in self.primitives for a in f.inputs)
        visited = set(self.models[0].columns)
        return plain and compared and set(names) == visited and (self.bag or visited <= self.needed)

    def scan_order(self) -> list[str]:
        """The variables of one atom in an existing column order: any other would have to be built."""
        atom = self.models[0].atom
        existing = self.statistics.orders(atom.predicate)
        order = existing[0] if existing else range(len(atom.args))
        return [a.name for a in (atom.args[c] for c in order) if isinstance(a, Var)]

    def is_better(self, a: _State, b: _State) -> bool:
        """Of orders with the same cost, the one that needs fewer new column orders."""
        if abs(a.cost - b.cost) > _SAME * b.cost:
            return a.cost < b.cost
        return self.missing(a.order) < self.missing(b.order)

    def missing(self, order: tuple[str, ...]) -> int:
        """Column orders that would have to be built; those that are foreseen anyway count half."""
        if order not in self._missing:
            self._missing[order] = sum(self.lacks(model, order) for model in self.models)
        return self._missing[order]

    def lacks(self, model: AtomModel, order: tuple[str, ...]) -> int:
        name = model.atom.predicate
        known = {*model.constants, *(c for v in self.given for c in model.columns.get(v, ()))}
        needed = (frozenset(known), *(frozenset(model.columns.get(v, ())) - known for v in order))
        existing = self.statistics.known_orders(name, foreseen=False)
        if not existing or any(serves(o, needed) for o in existing):
            return 0
        return 1 if any(serves(o, needed) for o in self.statistics.known_orders(name)) else 2


def _implied_by(models: Sequence[AtomModel], implied: Implied) -> Implied:
    """The semijoins that other atoms imply.  In a sub-join that lacks forms which a semijoin was made of, it
    may be the only one to bind a variable: then it is an atom like any other.
    """
    bound = {v for m in models if m.atom not in implied for v in m.columns}
    return {atom: origin for atom, origin in implied.items() if origin <= bound}


def _inputs(form: Primitive) -> set[str]:
    return {a.name for a in form.inputs if isinstance(a, Var)}


def _value(atom: Atom) -> tuple[set[str], str]:
    """The keys of a function, and the variable of its value."""
    value = atom.args[-1]
    assert isinstance(value, Var)
    return {a.name for a in atom.keys if isinstance(a, Var)}, value.name


def choose_key_order(
    models: Sequence[AtomModel],
    others: Sequence[Form],
    variables: Iterable[str],
    bound: Iterable[str],
    needed: Iterable[str],
    bag: bool,
    statistics: Statistics,
    first: str | None = None,
    implied: Implied | None = None,
    exhaustive: int = EXHAUSTIVE,
) -> KeyOrder:
    """The cheapest order of `variables`, given what is already bound.  `needed` are the outputs.

    With `first`, among the orders that begin with it.  O(2^n n) estimates for n <= `exhaustive` variables,
    O(n^2) beyond.
    """
    search = _Search(models, others, frozenset(needed), bag, statistics, implied or {})
    names = tuple(dict.fromkeys(variables))
    search.wanted, search.given = frozenset(names), frozenset(bound)
    start = _State(0.0, 1.0, (), (), search.closure(frozenset(bound)))
    if first is None and not start.bound and search.is_scan(names):
        for name in search.scan_order():
            start = search.step(start, name)
    if first is not None and first not in start.bound:
        start = search.step(start, first)
    todo = [v for v in names if v not in start.bound]
    best = _exhaustive(search, start, todo) if len(todo) <= exhaustive else _greedy(search, start, todo)
    return KeyOrder(best.order, best.sizes, search.finish(best))


def _exhaustive(search: _Search, start: _State, todo: list[str]) -> _State:
    """Best state for each set of variables bound, level by level."""
    wanted = frozenset(todo)
    level = {start.bound & wanted: start}
    complete: list[_State] = []
    while level:
        after: dict[frozenset[str], _State] = {}
        for done, state in level.items():
            if done == wanted:
                complete.append(state)
                continue
            for name in todo:
                if name in done:
                    continue
                next_state = search.step(state, name)
                key = next_state.bound & wanted
                if key not in after or search.is_better(next_state, after[key]):
                    after[key] = next_state
        level = after
    return min(complete, key=search.finish)


def _greedy(search: _Search, state: _State, todo: list[str]) -> _State:
    while any(v not in state.bound for v in todo):
        options = [search.step(state, v) for v in todo if v not in state.bound]
        state = min(options, key=lambda s: (s.cost + s.size, s.order))
    return state
