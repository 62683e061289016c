"""Owns how bindings pass sideways through one body: which columns of each atom are known when it is reached,
and the demand that follows (the sideways information passing of magic sets).

    # same(x, y) <- parent(x, p), same(p, q), parent(y, q).      with x known:
    # parent(x, p) gives p, so same is requested for p:             wanted(p) <- wanted(x), parent(x, p).

Demand may ask for too much, never for too little: it leaves out negations and whatever is not
connected with the bindings passed.  Inside a recursion only stored values are passed on: numbers computed
from numbers could continue forever where the rules themselves end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from dlog.ir.goals.goals import Restriction, names_of, operand_type
from dlog.ir.lower.quantify import form_bindings
from dlog.ir.rules import Atom, Conj, Const, Disjunction, Form, Negation, Operand, Predicate, Primitive, Rule


@dataclass(frozen=True)
class Demand:
    """`args` of a restricted predicate are requested whenever `forms` hold."""

    predicate: str
    restriction: Restriction
    args: tuple[Operand, ...]
    forms: tuple[Form, ...]


@dataclass
class Bindings:
    """What is known at one point of a body.

    `selective` variables have a value that a constant, or the demand for the head, has narrowed down;
    `stored` ones have a value that some fact holds.
    """

    bound: set[str] = field(default_factory=set)
    selective: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    prefix: list[Form] = field(default_factory=list)

    def copy(self) -> Bindings:
        return Bindings(set(self.bound), set(self.selective), set(self.stored), list(self.prefix))


@dataclass
class Passing:
    """One body during rewriting.  `choose` returns by which of the known columns a predicate is restricted,
    None if it is computed in full; `rename` gives the name of a restricted predicate.
    """

    rule: Rule
    predicates: Mapping[str, Predicate]
    recursive: Collection[str]  # predicates that depend on the head
    restricted: Callable[[str], bool]  # whether a predicate may be
    eager: Collection[str]
    choose: Callable[[str, Restriction], Restriction | None]
    rename: Callable[[str, Restriction], str]
    demands: list[Demand] = field(default_factory=list)

    def run(self, guard: Atom | None) -> Conj:
        """The body over restricted predicates, forms in their old order.  O(forms^2) per conjunction."""
        known = Bindings()
        if guard is not None:
            names = names_of(guard.args)
            known = Bindings(set(names), set(names), set(names), [guard])
        return self.conj(self.rule.body, known)

    def conj(self, conj: Conj, known: Bindings) -> Conj:
        waiting = dict(enumerate(conj.forms))
        done: dict[int, Form] = {}
        while waiting:
            index = min(waiting, key=lambda i: (self.rank(i, waiting, known), i))
            done[index] = self.form(waiting.pop(index), known)
        return replace(conj, forms=tuple(done[i] for i in sorted(done)))

    def rank(self, index: int, waiting: Mapping[int, Form], known: Bindings) -> int:
        """Computations at once, then atoms that are narrowed down, stored before derived before recursive."""
        form = waiting[index]
        if isinstance(form, Primitive):
            return 0 if _needed(form, known.bound) <= known.bound else 9
        if isinstance(form, Negation):
            return 8 if any(not isinstance(f, Negation) for f in waiting.values()) else 0
        if isinstance(form, Disjunction):
            return 4 if all(i >= index or isinstance(f, Negation) for i, f in waiting.items()) else 9
        derived = self.restricted(form.predicate)
        if self.narrowed(form, known):
            return 3 if form.predicate in self.recursive else 2 if derived else 1
        return 6 if derived else 5

    def narrowed(self, atom: Atom, known: Bindings) -> bool:
        return any(isinstance(a, Const) or a.name in known.selective for a in atom.args)

    def form(self, form: Form, known: Bindings) -> Form:
        if isinstance(form, Atom):
            return self.atom(form, known)
        if isinstance(form, Primitive):
            return self.primitive(form, known)
        if isinstance(form, Negation):
            return replace(form, body=self.conj(form.body, known.copy()))
        return self.disjunction(form, known)

    def atom(self, atom: Atom, known: Bindings) -> Atom:
        narrowed = self.narrowed(atom, known)
        restriction = self.restriction(atom, known)
        if restriction is not None:
            args = tuple(atom.args[i] for i in sorted(restriction))
            forms = _connected(known.prefix, names_of(args))
            self.demands.append(Demand(atom.predicate, restriction, args, forms))
            atom = replace(atom, predicate=self.rename(atom.predicate, restriction))
        names = names_of(atom.args)
        known.bound |= names
        known.stored |= names
        if narrowed:
            known.selective |= names
        known.prefix.append(atom)
        return atom

    def restriction(self, atom: Atom, known: Bindings) -> Restriction | None:
        if not self.restricted(atom.predicate):
            return None
        passed = known.bound if atom.predicate in self.eager else known.selective
        if atom.predicate in self.recursive:
            passed = passed & known.stored
        columns = self.predicates[atom.predicate].columns
        fitting = [operand_type(self.rule, a) == c.type for a, c in zip(atom.args, columns, strict=True)]
        bound = [isinstance(a, Const) or a.name in passed for a in atom.args]
        return self.choose(
            atom.predicate, frozenset(i for i in range(len(columns)) if fitting[i] and bound[i])
        )

    def primitive(self, form: Primitive, known: Bindings) -> Primitive:
        inputs = names_of(form.inputs) & known.bound
        names = names_of(form.args)
        if inputs <= known.selective:
            known.selective |= names
        if form.name == "eq" and inputs <= known.stored and self.same_type(form):
            known.stored |= names
        known.bound |= names
        known.prefix.append(form)
        return form

    def same_type(self, form: Primitive) -> bool:
        return len({operand_type(self.rule, a) for a in form.args}) == 1

    def disjunction(self, form: Disjunction, known: Bindings) -> Disjunction:
        inside = [known.copy() for _ in form.branches]
        branches = tuple(self.conj(b, k) for b, k in zip(form.branches, inside, strict=True))
        new = replace(form, branches=branches)
        given = form_bindings(form)
        if inside:
            known.selective |= given.intersection(*(k.selective for k in inside))
            known.stored |= given.intersection(*(k.stored for k in inside))
        known.bound |= given
        known.prefix.append(new)
        return new


def _needed(form: Primitive, bound: set[str]) -> set[str]:
    """What must be bound first.  An equality binds either side from the other."""
    names = names_of(form.inputs)
    if form.name == "eq" and len(names - bound) == 1 and form.inputs[0] != form.inputs[1]:
        return names & bound
    return names


def _connected(prefix: list[Form], wanted: set[str]) -> tuple[Form, ...]:
    """The guard, and the forms that bear on some variables, in order."""
    chosen: set[int] = set()
    names = set(wanted)
    grown = True
    while grown:
        grown = False
        for index, form in enumerate(prefix):
            used = Conj((), (form,)).variables()
            if index not in chosen and used & names:
                chosen.add(index)
                names |= used
                grown = True
    return tuple(form for index, form in enumerate(prefix) if index in chosen)
