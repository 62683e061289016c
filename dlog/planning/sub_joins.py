"""Owns the description of a join that is done in parts: sub-joins first, then the join that reads them.

A *sub-join* is a conjunction whose result becomes a temporary relation.  It serves one of three purposes:

    reduces      a semijoin: it holds only what the whole join implies, and is read beside the atoms it is
                 made of, so that rows without a match are never visited
    eliminates   it replaces its forms; variables that are no longer needed are dropped.  If
                 assignments count (a bag), each of its rows has a *weight*: how many it stands for
    filters      it replaces an atom and smaller ones that restrict its rows

Correct output: the assignments of the outputs, each as often as the product of its weights, are those of
the undivided join.  Knows nothing of costs and data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise, permutations

from dlog.ir.rules import Atom, Conj, Const, Disjunction, Form, Negation, Operand, Primitive, Var

PREFIX = "$sub"
WEIGHT = "$weight"
_PERMUTATIONS = 24


@dataclass(frozen=True)
class SubJoin:
    """`name(outputs)` holds the results of the forms; as a function to weights if `weighted`.

    `rows` and `cost` are estimates.
    """

    name: str
    forms: tuple[Form, ...]
    outputs: tuple[str, ...]
    weighted: bool
    reduces: bool
    rows: float = 0.0
    cost: float = 0.0
    order: tuple[str, ...] = ()  # its key order, as estimated

    @property
    def weights(self) -> tuple[str, ...]:
        """Variables whose product is the weight of an assignment."""
        return weights_of(self.forms)

    @property
    def arity(self) -> int:
        return len(self.outputs) + self.weighted

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.outputs)}) <- {', '.join(map(str, self.forms))}"


@dataclass(frozen=True)
class Probe:
    """An atom of the last join that is probed for each of its rows, by hash: its keys are bound by others."""

    atom: Atom

    @property
    def predicate(self) -> str:
        return self.atom.predicate

    @property
    def keys_only(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.atom.keys if isinstance(a, Var))

    @property
    def weighted(self) -> bool:
        return self.atom.is_functional


@dataclass(frozen=True)
class Decomposition:
    """Sub-joins in the order in which they are computed, and the join of the rest.

    With `chunk`, a variable, everything that has it is done range by range of its values.
    """

    sub_joins: tuple[SubJoin, ...]
    forms: tuple[Form, ...]
    outputs: tuple[str, ...]
    bag: bool
    chunk: str | None = None
    cost: float = 0.0
    implied: Mapping[Atom, frozenset[str]] = field(default_factory=dict)  # what semijoins were made of
    rejected: tuple[tuple[str, float], ...] = ()  # other plans and their estimated cost, for explanations
    probes: tuple[Probe, ...] = ()
    count: bool = False
    key_order: tuple[str, ...] = ()  # of the last join, as estimated

    @property
    def weighted(self) -> bool:
        """Whether rows of the result stand for several assignments."""
        return bool(weights_of(self.forms))

    def joined(self) -> tuple[Form, ...]:
        """The forms of the last join that are not probed."""
        return tuple(f for f in self.forms if not any(f is probe.atom for probe in self.probes))

    def joined_weights(self) -> tuple[str, ...]:
        return weights_of(self.joined())

    def chunked(self) -> tuple[SubJoin, ...]:
        """The sub-joins that are computed again for each range of the chunk variable."""
        return tuple(s for s in self.sub_joins if self.chunk is not None and self.chunk in s.outputs)


def weights_of(forms: Iterable[Form]) -> tuple[str, ...]:
    return tuple(
        a.name
        for form in forms
        if isinstance(form, Atom) and is_sub_join(form.predicate)
        for a in form.args
        if isinstance(a, Var) and a.name.startswith(WEIGHT)
    )


def is_sub_join(predicate: str) -> bool:
    return predicate.startswith(PREFIX)


def read_atom(sub_join: SubJoin, variables: Sequence[str], number: int) -> Atom:
    """The atom that reads a sub-join's relation under the given names; `number` makes its weight's name."""
    args = [Var(v) for v in variables]
    if sub_join.weighted:
        args.append(Var(f"{WEIGHT}{number}"))
    return Atom(sub_join.name, tuple(args), len(variables))


def chunkable(d: Decomposition, variable: str) -> bool:
    """Whether the whole can be done range by range of a variable.

    Every use of a sub-join that has the variable among its outputs must have it in the same column, and what
    is computed from such a sub-join must retain the variable.
    """
    if not any(variable in _variables(f) for f in d.forms if isinstance(f, Atom)):
        return False
    parts = {s.name: s for s in d.sub_joins if variable in s.outputs}
    for reader in (*d.sub_joins, None):
        forms = d.forms if reader is None else reader.forms
        for form in forms:
            if isinstance(form, Atom) and form.predicate in parts:
                column = parts[form.predicate].outputs.index(variable)
                if form.args[column] != Var(variable) or (reader is not None and reader.name not in parts):
                    return False
    return all(not is_sub_join(atom.predicate) for f in d.forms for atom in _nested_atoms(f))


def _variables(form: Form) -> set[str]:
    return Conj((), (form,)).variables()


def _nested_atoms(form: Form) -> Iterator[Atom]:
    if not isinstance(form, Atom):
        yield from (atom for atom, _ in Conj((), (form,)).atoms())


# Equal except for the names of variables


def canonical(forms: Sequence[Form], outputs: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """(A text that is the same for conjunctions equal up to renaming, the outputs in its own order).

    Tries the orders of atoms: exact for up to four, then only some.  O(orders * size).
    """
    atoms = sorted((f for f in forms if isinstance(f, Atom)), key=lambda a: (a.predicate, len(a.args)))
    others = [f for f in forms if not isinstance(f, Atom)]
    wanted = set(outputs)
    best: tuple[str, tuple[str, ...]] | None = None
    for order in islice(permutations(atoms), _PERMUTATIONS):
        if any(a.predicate > b.predicate for a, b in pairwise(order)):
            continue
        names: dict[str, int] = {}
        parts = [_numbered(atom, names) for atom in order]
        for form in others:
            for var in Conj((), (form,)).occurrences():
                names.setdefault(var.name, len(names))
        if others:
            numbers = {name: f"?{number}" for name, number in names.items()}
            parts += sorted(str(rename(form, numbers)) for form in others)
        kept = tuple(sorted(wanted, key=lambda v: names[v]))
        text = "; ".join((*parts, *(str(names[v]) for v in kept)))
        if best is None or text < best[0]:
            best = text, kept
    assert best is not None
    return best


def shared_text(forms: Sequence[Form], outputs: Iterable[str], weighted: bool) -> tuple[str, tuple[str, ...]]:
    """As `canonical`, for the result of a sub-join: equal texts mean equal relations, column by column."""
    text, kept = canonical(forms, outputs)
    return f"{text} | {weighted}", kept


def _numbered(atom: Atom, names: dict[str, int]) -> str:
    """An atom with numbers for variables, new ones where a variable is new."""
    args = [
        f"?{names.setdefault(a.name, len(names))}" if isinstance(a, Var) else f"{a.kind} {a}"
        for a in atom.args
    ]
    return f"{atom.predicate}({', '.join(args)})"


def rename(form: Form, names: Mapping[str, str]) -> Form:
    """The form with other variables."""
    if isinstance(form, Atom):
        return replace(form, args=tuple(_operand(a, names) for a in form.args))
    if isinstance(form, Primitive):
        output = None if form.output is None else _operand(form.output, names)
        return replace(form, inputs=tuple(_operand(a, names) for a in form.inputs), output=output)
    if isinstance(form, Negation):
        return replace(form, body=_conj(form.body, names))
    assert isinstance(form, Disjunction)
    return replace(form, branches=tuple(_conj(b, names) for b in form.branches))


def _conj(conj: Conj, names: Mapping[str, str]) -> Conj:
    exists = tuple(Var(names.get(v.name, v.name)) for v in conj.exists)
    return Conj(exists, tuple(rename(f, names) for f in conj.forms))


def _operand(operand: Operand, names: Mapping[str, str]) -> Operand:
    if isinstance(operand, Const):
        return operand
    return Var(names.get(operand.name, operand.name))
