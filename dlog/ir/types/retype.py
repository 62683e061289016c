"""Owns typed rules: types on every variable and literal, and conversions made explicit.

An int operand of a float operation becomes `to_float` of it; with decimals it stays: it is one with scale 0.
`as(x, T)` that changes no bits becomes an equality.
"""

from __future__ import annotations

from dataclasses import replace

from dlog.errors import Diagnostics
from dlog.ir.lower.literals import ZERO, denotes, literal_value
from dlog.ir.primitives import signature_of
from dlog.ir.rules import Atom, Conj, Const, Form, Negation, Operand, Primitive, Rule, Var
from dlog.ir.types.decimals import (
    EXACT_PRECISION,
    auxiliary_column,
    literal_scale,
    same_digits,
    scale_decimals,
)
from dlog.ir.types.typecheck import TypeChecker
from dlog.values import STRING, Type


def typed_rule(checker: TypeChecker, rule: Rule) -> Rule:
    """REQUIRES: all types are known, and auxiliary predicates of the body were typed before."""
    types = {name: checker.type_of(node) for name, node in checker.variables[rule.id].items()}
    scale_decimals(rule, types, checker.column_type, checker.lowered.functors.known)
    for head in rule.heads:
        shape = checker.shapes[head.predicate]
        if shape.auxiliary and shape.declaration is None:
            for index, operand in enumerate(head.args):
                if type := auxiliary_column(rule, types, operand):
                    checker.declared[head.predicate, index] = type
    return _Retyper(checker, rule, types).rule_with_types()


def literal_fits(literal: Const, type: Type, diagnostics: Diagnostics) -> bool:
    """Whether a literal denotes a value of a type; reports it if its type is right and its value is not."""
    if not denotes(literal.kind, literal.value, type):
        return False  # a conflict that is already reported
    try:
        literal_value(literal.kind, literal.value, type)
    except ValueError as error:
        shown = str(literal) if len(str(literal)) < 60 else str(literal)[:57] + "..."
        diagnostics.error(f"bad literal: {shown} {error}", literal.span)
        return False
    return True


class _Retyper:
    def __init__(self, checker: TypeChecker, rule: Rule, types: dict[str, Type]):
        self.checker, self.rule, self.types = checker, rule, types
        self.fresh_count = 0
        self.made: set[str] = set()

    def rule_with_types(self) -> Rule:
        heads = tuple(map(self.atom, self.rule.heads))
        aggregates = tuple(
            replace(a, argument=None if a.argument is None else self.operand(a.argument))
            for a in self.rule.aggregates
        )
        body = self.conj(self.rule.body)
        computed = self.rule.computed | self.made
        return replace(
            self.rule, heads=heads, body=body, aggregates=aggregates, types=self.types, computed=computed
        )

    def atom(self, atom: Atom) -> Atom:
        """A literal in an atom has the type of its column, digits included."""
        args = [
            self.literal(a, self.checker.column_type(atom.predicate, i)) if isinstance(a, Const) else a
            for i, a in enumerate(atom.args)
        ]
        return replace(atom, args=tuple(args))

    def operand(self, operand: Operand) -> Operand:
        """A literal elsewhere has the digits it is written with."""
        if isinstance(operand, Var):
            return operand
        type = self.checker.type_of(self.checker.node(self.rule, operand))
        if operand.kind == ZERO:
            kind, value = type.zero
            operand = replace(operand, kind=kind, value=value)
        if type.is_decimal:
            type = Type("decimal", literal_scale(operand), EXACT_PRECISION)
        return self.literal(operand, type)

    def literal(self, literal: Const, type: Type) -> Const:
        fits = literal_fits(literal, type, self.checker.diagnostics)
        return replace(literal, type=type) if fits else literal

    def conj(self, conj: Conj) -> Conj:
        forms: list[Form] = []
        for form in conj.forms:
            if isinstance(form, Atom):
                forms += self.aligned(self.atom(form))
            elif isinstance(form, Primitive):
                forms += self.primitive(form)
            elif isinstance(form, Negation):
                forms.append(replace(form, body=self.conj(form.body)))
            else:
                forms.append(replace(form, branches=tuple(map(self.conj, form.branches))))
        return replace(conj, forms=tuple(forms))

    def aligned(self, atom: Atom) -> list[Form]:
        """An atom of a body, with separate variables where its columns have other digits."""
        forms: list[Form] = []
        args = list(atom.args)
        for index, operand in enumerate(atom.args):
            column = self.checker.column_type(atom.predicate, index)
            if isinstance(operand, Var) and not same_digits(self.types[operand.name], column):
                args[index] = self.fresh(Type("decimal", column.scale))
                forms.append(Primitive("eq", (args[index], operand), None, atom.span))
        return [*forms, replace(atom, args=tuple(args))]

    def primitive(self, form: Primitive) -> list[Form]:
        inputs = tuple(map(self.operand, form.inputs))
        output = None if form.output is None else self.operand(form.output)
        form = replace(form, inputs=inputs, output=output)
        if output is None:
            return [form]
        if form.name == "add" and self.type(output) == STRING:
            return [replace(form, name="cat")]
        if form.name.startswith("as_") and self.type(inputs[0]).name == form.name[3:]:
            return [Primitive("eq", (output, inputs[0]), None, form.span)]
        if signature_of(form.name, len(inputs)).promotes and not self.type(output).is_decimal:
            return self.widened(form, self.type(output))
        return [form]

    def widened(self, form: Primitive, type: Type) -> list[Form]:
        """Operands that widen to the type of the result are converted first."""
        forms: list[Form] = []
        inputs = []
        for operand in form.inputs:
            if type.name in self.type(operand).widens_to and type.conversion is not None:
                temporary = self.fresh(type)
                forms.append(Primitive(type.conversion, (operand,), temporary, form.span))
                operand = temporary
            inputs.append(operand)
        return [*forms, replace(form, inputs=tuple(inputs))]

    def fresh(self, type: Type) -> Var:
        while (name := f"_w{self.fresh_count}") in self.types:
            self.fresh_count += 1
        self.types[name] = type
        self.made.add(name)
        return Var(name)

    def type(self, operand: Operand) -> Type:
        if isinstance(operand, Var):
            return self.types[operand.name]
        return operand.type or self.checker.type_of(self.checker.node(self.rule, operand))
