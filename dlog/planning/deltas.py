"""Owns the algebra of deltas: from a rule's body to conjunctions that give the change of its assignments.

Correct output: let B be the set of assignments of a body's outer variables (its universals and its outermost
`exists` block) that satisfy it.  The variants of sign + and those of sign - give B(new) - B(old) as a signed
sum: each assignment that a *group* of variants gives counts once, with the group's sign, and an assignment
may be given with + by one group and with - by another (a net sum over all groups is exact; none of its
members is double).  Knows nothing of sizes, plans or heads.

The sum telescopes over the outermost forms: for form i the forms before it are read in the new version, those
after it in the old one, and form i itself is where it *becomes* true (+) or false (-).  For an atom these are
the relations `+R` and `-R`.  For other forms, with T+ (T-) a cover of the assignments where a form becomes
true (false), each of whose members implies that the form is true in the new (old) version:

    conjunction   T+: for each i, all others new, T+ of form i            T-: all others old, T- of form i
    disjunction   T+ of some branch                                       T- of some branch
    negation of M T- of M, and M is false now                             T+ of M, and M was false
    primitive     never                                                   never

A member of the cover of a disjunction becomes exact by adding that the whole was false before (is false now).
Its inner existential variables are among the outer ones there, under their own names, so a complex form
can give one outer assignment several times, and several of its variants may give the same one: that is the
purpose of groups.  A single atom never does, and neither does its negation if its outer variables determine
its row: `!denied(u, a)`, or `!price[p] = _` of a function.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeAlias, cast

from dlog.ir.analysis.projection import outer_variables
from dlog.ir.rules import Atom, Conj, Disjunction, Form, Negation, Operand, Primitive, Rule, Var
from dlog.planning.versions import base_name, erased_name, inserted_name, old_name
from dlog.values import Type

INSERT, ERASE = 1, -1
# The atom that reads a change, and what else must hold, in an order in which it can be evaluated.
Member: TypeAlias = tuple[Atom, tuple[Form, ...]]


@dataclass(frozen=True)
class Variant:
    """One conjunction over versioned names; forms[0] is the atom that reads the change of `changed`.

    Variants of one `group` are to be deduplicated together, over `outer`; without a group (-1) a variant
    gives each assignment once; with `once_per_row` it does so for each changed row.  `types` has every
    variable of the forms.
    """

    sign: int
    changed: str
    forms: tuple[Form, ...]
    group: int = -1
    outer: tuple[str, ...] = ()
    once_per_row: bool = True
    types: Mapping[str, Type] = field(default_factory=dict, compare=False, repr=False)

    @property
    def change(self) -> Atom:
        """The atom that reads the change."""
        assert isinstance(self.forms[0], Atom)
        return self.forms[0]

    def __str__(self) -> str:
        return f"{'+' if self.sign > 0 else '-'} {', '.join(map(str, self.forms))}"


def rule_variants(rule: Rule, changed: Collection[str]) -> list[Variant]:
    """The variants of a rule's body, given which predicates may change.  O(forms^2) forms.

    Of a rule with several changed predicates, a variant may be left out as long as the change it begins with
    is empty; predicates that did not change then have equal versions, old and new.
    """
    return body_variants(rule.body, rule.types, changed, outer_variables(rule))


def cover_variants(rule: Rule, changed: Collection[str]) -> list[Variant]:
    """Where to search for what becomes true or false: T+ and T- of the whole body.

    A variant of sign + implies that the body is true now, one of sign - that it was true before.  Together
    those of sign + hold every assignment that becomes true, and those of sign - every one that becomes false.
    """
    deltas = _Deltas(frozenset(changed), dict(rule.types))
    outer = outer_variables(rule)
    whole = Conj((), rule.body.forms)  # the outer variables keep their names
    return [
        Variant(sign, base_name(change.predicate), (change, *tail), -1, outer, types=deltas.types)
        for sign in (ERASE, INSERT)
        for change, tail in deltas.cover_conj(whole, sign)
    ]


def body_variants(
    body: Conj, types: Mapping[str, Type], changed: Collection[str], outer: tuple[str, ...]
) -> list[Variant]:
    """As `rule_variants`, for any conjunction."""
    deltas = _Deltas(frozenset(changed), dict(types))
    found = []
    has_branches = any(isinstance(form, Disjunction) for form in body.forms)
    for i, form in enumerate(body.forms):
        before = body.forms[:i]
        after = tuple(deltas.old(f) for f in body.forms[i + 1 :])
        for sign in (ERASE, INSERT):
            group = -1 if _gives_once(form) else 2 * i + (sign > 0)
            once = group < 0 or (_negates_atom(form) and not has_branches)
            for change, tail in deltas.exact(form, sign):
                forms = (change, *before, *tail, *after)
                name = base_name(change.predicate)
                found.append(Variant(sign, name, forms, group, outer, once, deltas.types))
    return found


def _gives_once(form: Form) -> bool:
    """Whether each change of a form gives an assignment of the outer variables once."""
    if isinstance(form, Negation) and _negates_atom(form):
        (atom,), inner = form.body.forms, {v.name for v in form.body.exists}
        keys = {a.name for a in cast(Atom, atom).keys if isinstance(a, Var)}
        return inner.isdisjoint(keys)  # a function has one value for its keys, in either version
    return isinstance(form, Atom)


def _negates_atom(form: Form) -> bool:
    """Whether a form is a negation that one row makes true or false."""
    return isinstance(form, Negation) and len(form.body.forms) == 1 and isinstance(form.body.forms[0], Atom)


@dataclass
class _Deltas:
    changed: frozenset[str]
    types: dict[str, Type]
    _fresh: Iterator[int] = field(default_factory=count)

    def exact(self, form: Form, sign: int) -> Iterator[Member]:
        """Conjunctions that together are exactly where a form becomes true (false)."""
        for change, tail in self.cover(form, sign):
            if isinstance(form, Disjunction):
                before = self.old(form) if sign == INSERT else form
                tail = (*tail, Negation(Conj((), (before,))))
            yield change, tail

    def cover(self, form: Form, sign: int) -> Iterator[Member]:
        """T+ or T-: each member begins with the atom that reads a change."""
        match form:
            case Atom():
                if form.predicate in self.changed:
                    name = inserted_name if sign == INSERT else erased_name
                    yield replace(form, predicate=name(form.predicate)), ()
            case Disjunction():
                for branch in form.branches:
                    yield from self.cover_conj(branch, sign)
            case Negation():
                false = form if sign == INSERT else self.old(form)
                for change, tail in self.cover_conj(form.body, -sign):
                    yield change, (*tail, false)
            case Primitive():
                pass

    def cover_conj(self, conj: Conj, sign: int) -> Iterator[Member]:
        """A copy that will be outside, beside the original: all it quantifies gets its own names."""
        forms = self.copy(conj, {v.name: self.fresh(v.name) for v in conj.exists}).forms
        for i, form in enumerate(forms):
            others = forms if sign == INSERT else tuple(self.old(f) for f in forms)
            for change, tail in self.cover(form, sign):
                yield change, (*others[:i], *tail, *others[i + 1 :])

    def copy(self, conj: Conj, names: Mapping[str, str]) -> Conj:
        """With variables renamed, and every variable that is quantified further inside under a fresh name."""
        exists = tuple(replace(v, name=names[v.name]) for v in conj.exists)
        return Conj(exists, tuple(self.copy_form(f, names) for f in conj.forms))

    def copy_form(self, form: Form, names: Mapping[str, str]) -> Form:
        match form:
            case Atom():
                return replace(form, args=tuple(_renamed(a, names) for a in form.args))
            case Primitive():
                output = None if form.output is None else _renamed(form.output, names)
                return replace(form, inputs=tuple(_renamed(a, names) for a in form.inputs), output=output)
            case Negation():
                return replace(form, body=self.copy_inner(form.body, names))
            case Disjunction():
                return replace(form, branches=tuple(self.copy_inner(b, names) for b in form.branches))

    def copy_inner(self, conj: Conj, names: Mapping[str, str]) -> Conj:
        return self.copy(conj, {**names, **{v.name: self.fresh(v.name) for v in conj.exists}})

    def fresh(self, name: str) -> str:
        renamed = f"{name.partition('~')[0]}~{next(self._fresh)}"
        self.types[renamed] = self.types[name]
        return renamed

    def old(self, form: Form) -> Form:
        return in_old_version(form, self.changed)


def in_old_version(form: Form, changed: Collection[str]) -> Form:
    """A form that reads changed predicates in their versions before the transaction."""
    match form:
        case Atom():
            old = form.predicate in changed
            return replace(form, predicate=old_name(form.predicate)) if old else form
        case Negation():
            return replace(form, body=_old_conj(form.body, changed))
        case Disjunction():
            return replace(form, branches=tuple(_old_conj(b, changed) for b in form.branches))
        case Primitive():
            return form


def _old_conj(conj: Conj, changed: Collection[str]) -> Conj:
    return replace(conj, forms=tuple(in_old_version(f, changed) for f in conj.forms))


def _renamed(operand: Operand, names: Mapping[str, str]) -> Operand:
    if isinstance(operand, Var) and operand.name in names:
        return replace(operand, name=names[operand.name])
    return operand
