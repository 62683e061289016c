"""Owns declared subtypes and unions: which values of one built-in type a rule may pass where.

    .type Even <: number       every value of Even is a number; not every number is an Even
    .type Any = Even | Odd     a value of Even or of Odd is one of Any

A variable has every type that its atoms declare for it, so it has what these types have in common: that must
not be nothing.  What a head receives must belong to the type that the head declares.  Literals and what is
computed belong to every type, negated atoms only ask, and `as(x, T)` says what x is.  What the syntax tree
declares is all that this needs: kinds of values are checked by `typecheck`, whatever subtypes say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from dlog.errors import Diagnostics, place
from dlog.language import ast
from dlog.language.source import Span
from dlog.values import BUILTIN_TYPES

_ALTERNATIVES = 64  # conjunctions that one rule may stand for; of more, the disjunctions are left out

# The types of which a value has at least one, none of them a subtype of another; None: nothing is known.
Types = frozenset[str] | None


class Hierarchy:
    """The types of a program: for each of them what it is a subtype of, or what it unites."""

    def __init__(self, declarations: Iterable[ast.TypeDeclaration]):
        self.declarations = {d.name: d for d in declarations}

    def matters(self) -> bool:
        """Whether some type is neither built in nor another name for one, nor a type of records."""
        return any(self._is_subtype(d) or len(d.bases) > 1 for d in self.declarations.values())

    @staticmethod
    def _is_subtype(declaration: ast.TypeDeclaration) -> bool:
        return declaration.kind != "union" and not declaration.branches

    def types(self, name: str) -> Types:
        """What a name in a declaration means."""
        return self._types(name, frozenset())

    def _types(self, name: str, path: frozenset[str]) -> Types:
        declaration = self.declarations.get(name)
        if declaration is None:
            return frozenset({BUILTIN_TYPES[name].name}) if name in BUILTIN_TYPES else None
        if name in path:  # was reported
            return None
        if self._is_subtype(declaration) or declaration.branches:
            return frozenset({name})
        united = [self._types(base.name, path | {name}) for base in declaration.bases]
        if any(types is None for types in united):
            return None
        everything = {name for types in united if types is not None for name in types}
        return frozenset(t for t in everything if not any(t != u and self.below(t, u) for u in everything))

    def below(self, name: str, other: str) -> bool:
        """Whether every value of one type is a value of the other.  REQUIRES: neither is a union."""
        return other in self.above(name)

    def above(self, name: str) -> list[str]:
        """The type, then what it is a subtype of, up to the built-in type."""
        chain = [name]
        while (declaration := self.declarations.get(chain[-1])) is not None and declaration.bases:
            base = self.types(declaration.bases[0].name)
            if base is None or len(base) != 1 or base <= set(chain):
                return chain  # a cycle, an unknown type or a union: was reported
            chain += base
        return chain

    def common(self, a: Types, b: Types) -> Types:
        """What two sets have in common; the first where they are of different built-in types.

        The result is empty only if the types exclude each other.
        """
        if a is None or b is None:
            return b if a is None else a
        if self.roots(a) != self.roots(b):
            return a
        lower = {x for x in a for y in b if self.below(x, y)}
        return frozenset(lower | {y for y in b for x in a if self.below(y, x)})

    def fits(self, given: Types, wanted: Types) -> bool:
        if given is None or wanted is None or self.roots(given) != self.roots(wanted):
            return True
        return all(any(self.below(x, y) for y in wanted) for x in given)

    def roots(self, types: frozenset[str]) -> set[str]:
        return {self.above(name)[-1] for name in types}


@dataclass
class _Class:
    """Variables of one conjunction that are compared with each other, so that they have the same types."""

    types: Types = None
    because: list[tuple[str, str, Span]] = field(default_factory=list)  # the type, of what, and where


def check_subtypes(program: ast.Program, diagnostics: Diagnostics) -> None:
    """Reports variables without a type, and arguments of heads that a declaration excludes.

    REQUIRES: components are expanded.  O(alternatives of a rule * its size) for each rule.
    """
    hierarchy = Hierarchy(s for s in program.statements if isinstance(s, ast.TypeDeclaration))
    if not hierarchy.matters() or _is_legacy(program):
        return
    declared = {s.name: s for s in program.statements if isinstance(s, ast.Declaration)}
    for statement in program.statements:
        if isinstance(statement, ast.Rule):
            _check_rule(statement, hierarchy, declared, diagnostics)


def _is_legacy(program: ast.Program) -> bool:
    """`.pragma "legacy"`: as in Soufflé, values then pass to subtypes."""
    return any(isinstance(s, ast.Pragma) and s.key == "legacy" for s in program.statements)


def _check_rule(
    rule: ast.Rule, hierarchy: Hierarchy, declared: dict[str, ast.Declaration], diagnostics: Diagnostics
) -> None:
    for forms in _alternatives(rule.body):
        found = _Conjunction(hierarchy, declared, forms, rule)
        errors = list(found.errors())
        if errors:
            message, span, help = errors[0]
            diagnostics.error(message, span, help)
            return


def _alternatives(body: ast.Node | None) -> list[list[ast.Node]]:
    """The conjunctions of which a body is the disjunction."""
    match body:
        case None:
            return [[]]
        case ast.Conjunction():
            product: list[list[ast.Node]] = [[]]
            for item in body.items:
                parts = _alternatives(item)
                if len(product) * len(parts) <= _ALTERNATIVES:
                    product = [[*left, *right] for left in product for right in parts]
            return product
        case ast.Disjunction():
            return [forms for item in body.items for forms in _alternatives(item)]
    return [[body]]


class _Conjunction:
    """The types of the variables of one conjunction, and of the heads over it."""

    def __init__(
        self,
        hierarchy: Hierarchy,
        declared: dict[str, ast.Declaration],
        forms: Sequence[ast.Node],
        rule: ast.Rule,
    ):
        self.hierarchy, self.declared, self.rule = hierarchy, declared, rule
        self.classes: dict[tuple[int, str], _Class] = {}
        self.contradictions: list[tuple[str, Span, str]] = []
        outside = [node for form in (*forms, *rule.heads) for node in _outside_aggregates(form)]
        self.shared = {n.name for n in outside if isinstance(n, ast.Variable)}
        self.records: list[tuple[ast.Node, ast.Record, int]] = []
        for form in forms:
            self.visit(form, 0)
        for head in rule.heads:
            for argument, type, _ in self.arguments(head):
                self.fields(argument, self.hierarchy.types(type), 0)
                self.aggregates(argument, 0)
        for value, record, scope in self.records:
            self.fields(record, self.given(value, scope), scope)

    # What conditions say

    def visit(self, form: ast.Node, scope: int) -> None:
        match form:
            case ast.Conjunction():
                for item in form.items:
                    self.visit(item, scope)
            case ast.Comparison():
                self.visit_comparison(form, scope)
            case ast.Call():
                self.visit_atom(form, scope)
        self.aggregates(form, scope)

    def visit_atom(self, atom: ast.Node, scope: int) -> None:
        for argument, type, what in self.arguments(atom):
            wanted = self.hierarchy.types(type)
            if isinstance(argument, ast.Variable):
                self.restrict(argument, wanted, what, scope)
            self.fields(argument, wanted, scope)

    def visit_comparison(self, form: ast.Comparison, scope: int) -> None:
        for side, other in ((form.left, form.right), (form.right, form.left)):
            if isinstance(side, ast.Application):
                self.visit_atom(ast.Comparison("=", side, other, span=form.span), scope)
            elif isinstance(side, ast.Variable) and isinstance(other, ast.Cast):
                self.restrict(side, self.hierarchy.types(other.type.name), "as(..)", scope)
            elif isinstance(side, ast.Record):
                self.records.append((other, side, scope))
            self.fields(side, None, scope)
        left, right = self.source(form.left, scope), self.source(form.right, scope)
        if left is not None and right is not None:
            self.unite(left, right, form.span)

    def source(self, term: ast.Node, scope: int) -> tuple[ast.Variable, int] | None:
        """The variable whose types a term has."""
        if isinstance(term, ast.Variable):
            return term, scope
        if isinstance(term, ast.InlineAggregate) and isinstance(term.target, ast.Variable):
            return (term.target, scope or id(term)) if term.op in ("min", "max", "sum") else None
        return None

    def aggregates(self, node: ast.Node, scope: int) -> None:
        """The bodies of the aggregates in a form; variables that are only in one are its own."""
        for aggregate in _aggregates(node):
            for forms in _alternatives(aggregate.body)[:1]:
                for form in forms if len(_alternatives(aggregate.body)) == 1 else ():
                    self.visit(form, scope or id(aggregate))

    def fields(self, term: ast.Node, types: Types, scope: int) -> None:
        """What the type of a record says of the variables in its fields."""
        if isinstance(term, ast.Branch):
            owner = [
                d for d in self.hierarchy.declarations.values() for b in d.branches if b.name == term.name
            ]
            types = frozenset({owner[0].name}) if owner and term.name else None
        if not isinstance(term, ast.Branch | ast.Record) or types is None or len(types) != 1:
            return
        (name,) = types
        branches = self.hierarchy.declarations[name].branches if name in self.hierarchy.declarations else ()
        wanted = getattr(term, "name", "")
        for branch in (b for b in branches if b.name == wanted):
            for parameter, argument in zip(branch.fields, term.args, strict=False):
                assert parameter.type is not None
                of_field = self.hierarchy.types(parameter.type.name)
                if isinstance(argument, ast.Variable):
                    self.restrict(argument, of_field, f"field {parameter.name} of {name}", scope)
                self.fields(argument, of_field, scope)

    # Types of variables

    def of(self, variable: ast.Variable, scope: int) -> _Class:
        key = (0 if variable.name in self.shared else scope, variable.name)
        return self.classes.setdefault(key, _Class())

    def restrict(self, variable: ast.Variable, types: Types, what: str, scope: int) -> None:
        known = self.of(variable, scope)
        left = self.hierarchy.common(known.types, types)
        if left is not None and not left:
            self.contradict(variable.name, variable.span, known, (_shown(types), what, variable.span))
            return
        known.types = left
        if types is not None:
            known.because.append((_shown(types), what, variable.span))

    def unite(self, a: tuple[ast.Variable, int], b: tuple[ast.Variable, int], span: Span) -> None:
        one, other = self.of(*a), self.of(*b)
        if one is other:
            return
        left = self.hierarchy.common(one.types, other.types)
        if left is not None and not left:
            self.contradict(a[0].name, span, one, other.because[0])
            return
        one.types, one.because = left, [*one.because, *other.because]
        for key, known in self.classes.items():
            if known is other:
                self.classes[key] = one

    def contradict(self, name: str, span: Span, known: _Class, new: tuple[str, str, Span]) -> None:
        excluded = [b for b in known.because if b[0] != new[0]][:1] or known.because[:1]
        reasons = [f"{type} by {what} at {place(at, span)}" for type, what, at in (*excluded, new)]
        types = " and ".join(dict.fromkeys(type for type, _, _ in (*excluded, new)))
        message = f"type conflict: no value of {name} is both {types}"
        help = f"it is {' and '.join(reasons)}; as(x, T) says that x is of type T"
        self.contradictions.append((message, span, help))

    def given(self, term: ast.Node, scope: int) -> Types:
        """The types that a term is known to have."""
        if isinstance(term, ast.Cast):
            return self.hierarchy.types(term.type.name)
        source = self.source(term, scope)
        return self.of(*source).types if source is not None else None

    # What heads want

    def errors(self) -> Iterator[tuple[str, Span, str]]:
        yield from self.contradictions
        for head in self.rule.heads:
            for argument, type, what in self.arguments(head):
                given = self.given(argument, 0)
                if not self.hierarchy.fits(given, self.hierarchy.types(type)):
                    name, has = argument.span.text(), _shown(given)
                    message = f"type conflict: {name} is {has}, but {what} is {type}"
                    value = argument.term if isinstance(argument, ast.Cast) else argument
                    cast = f"as({value.span.text()}, {type})"
                    yield (
                        message,
                        argument.span,
                        f"a value of {has} may be none of {type}; {cast} says that it is",
                    )

    def arguments(self, atom: ast.Node) -> Iterator[tuple[ast.Node, str, str]]:
        """The arguments of an atom, the types that they are declared to have, and what they are called."""
        value: tuple[ast.Node, ...] = ()
        if isinstance(atom, ast.Comparison):
            left, right = atom.left, atom.right
            if atom.op == "<=" and isinstance(left, ast.Call) and isinstance(right, ast.Call):
                yield from self.arguments(left)  # a subsumption
                yield from self.arguments(right)
                return
            atom, value = left, (right,)
        declaration = self.declared.get(atom.name) if isinstance(atom, ast.Call | ast.Application) else None
        if declaration is None or not isinstance(atom, ast.Call | ast.Application):
            return
        parameters = (*declaration.keys, *((declaration.value,) if declaration.value else ()))
        for parameter, argument in zip(parameters, (*atom.args, *value), strict=False):
            if parameter.type is not None:
                what = f"argument {parameter.name} of {declaration.name}"
                yield argument, parameter.type.name, what


def _outside_aggregates(node: ast.Node) -> Iterator[ast.Node]:
    if not isinstance(node, ast.InlineAggregate):
        yield node
        for child in node.children():
            yield from _outside_aggregates(child)


def _aggregates(node: ast.Node) -> Iterator[ast.InlineAggregate]:
    """The outermost aggregates of a form, none of those under its negations."""
    if isinstance(node, ast.InlineAggregate):
        yield node
    elif not isinstance(node, ast.Negation | ast.Conjunction):
        for child in node.children():
            yield from _aggregates(child)


def _shown(types: Types) -> str:
    return " or ".join(sorted(types)) if types else "a value"
