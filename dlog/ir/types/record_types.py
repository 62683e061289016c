"""Owns the types of records in rules: which declared type each constructor makes, and what its fields hold.

A branch of an algebraic data type belongs to one type.  What `[a, b]` makes is known from where it is used: a
column, a field, another variable.  Once it is, its fields have the declared types, which may say the same of
the records inside them; so this is repeated until nothing new is known.
"""

from __future__ import annotations

from dlog.ir.lower.named_types import NamedTypes
from dlog.ir.primitives import RECORD
from dlog.ir.record_forms import branch_of
from dlog.ir.rules import Const, Operand, Primitive, Rule
from dlog.ir.types.type_nodes import Node, Reason, join, restrict, spell
from dlog.ir.types.typecheck import TypeChecker, called, text_of
from dlog.language.source import Span
from dlog.values import RecordType


def settle(checker: TypeChecker) -> None:
    """Types for all record forms.  O(forms) per round, a round for each depth of nesting."""
    pending = [_Form(checker, rule, form) for rule, form in checker.record_forms]
    while pending:
        waiting = [form for form in pending if not form.settle()]
        if len(waiting) == len(pending):
            break
        pending = waiting
    for form in pending:
        form.refuse()


def refuse_unknown(checker: TypeChecker) -> None:
    """Reports variables, literals and columns of which nothing says which records they are."""
    for rule in checker.lowered.rules:
        for form in rule.body.walk():
            for operand in getattr(form, "args", ()):
                _refuse(checker, rule, operand)
        for head in rule.heads:
            for operand in head.args:
                _refuse(checker, rule, operand)

    for name, shape in checker.shapes.items():
        for index, node in enumerate(checker.columns[name]):
            _refuse_node(checker, node, shape.argument(name, index), shape.span)


def _refuse(checker: TypeChecker, rule: Rule, operand: Operand) -> None:
    _refuse_node(checker, checker.node(rule, operand), called(operand), operand.span or rule.span)


def _refuse_node(checker: TypeChecker, node: Node, what: str, span: Span | None) -> None:
    node = node.find()
    if node.candidates == (RECORD,) and not node.spoiled:
        node.spoiled = True
        help = "declare the argument of a predicate that has it, with a type of records"
        checker.diagnostics.error(f"the type of {what} is not known", span, help)


class _Form:
    def __init__(self, checker: TypeChecker, rule: Rule, form: Primitive):
        assert form.output is not None
        self.checker, self.rule, self.form = checker, rule, form
        self.output: Operand = form.output
        self.branch = branch_of(form.name)
        self.node = checker.node(rule, self.output)

    @property
    def types(self) -> NamedTypes:
        return self.checker.lowered.types

    def settle(self) -> bool:
        """Whether the type is known, and its fields have been typed."""
        owner = self.types.branches.get(self.branch) if self.branch else None
        if owner is not None:
            self.restrict(owner)
        node = self.node.find()
        if node.spoiled:
            return True
        type = self.types.record(node.candidates[0]) if len(node.candidates) == 1 else None
        if type is None:
            return False
        self.fields(type)
        return True

    def restrict(self, owner: str) -> None:
        reason = Reason(text_of(self.form), (owner,), self.form.span)
        if not restrict(self.node, (owner,), reason):
            self.conflict(self.output, self.node, owner)

    def conflict(self, operand: Operand, node: Node, wanted: str) -> None:
        here = node.find().candidates
        message = f"{called(operand)} is {spell(here)}, but {text_of(self.form)} is {wanted}"
        sides = [(called(operand), self.checker.why(self.rule, operand, (wanted,)))]
        self.checker.conflict(message, self.form.span, sides, self.rule, [operand])
        node.find().spoiled = True

    def fields(self, type: RecordType) -> None:
        constructor = type.constructor(self.branch)
        if constructor is None:  # `[..]` for an algebraic data type
            branches = " or ".join(f"${c.name}" for c in type.constructors[:3])
            help = f"its values are written {branches}"
            self.error(f"{text_of(self.form)} is a record, and {type} is not a type of records", help)
            return
        n, given = len(constructor.fields), len(self.form.inputs)
        if n != given:
            what = f"${self.branch}" if self.branch else f"a record of {type}"
            declared = ", ".join(f"{name}: {of}" for name, of in constructor.fields)
            message = f"{what} has {n} field{'' if n == 1 else 's'}, but {given} {_are(given)} given"
            self.error(message, f"its fields are {declared}" if n else f"write {what}")
            return
        for operand, (name, of) in zip(self.form.inputs, constructor.fields, strict=True):
            self.field(type, operand, name, of.name)

    def field(self, type: RecordType, operand: Operand, name: str, wanted: str) -> None:
        of = f"${self.branch}" if self.branch else str(type)
        reason = Reason(f"field {name} of {of}", (wanted,), self.form.span)
        node = self.checker.node(self.rule, operand)
        here = node.find().candidates
        if not join(node, Node((wanted,), reason)):
            message = f"{called(operand)} is {spell(here)}, but field {name} of {of} is {wanted}"
            sides = [(called(operand), self.checker.why(self.rule, operand, (wanted,)))]
            span = operand.span or self.form.span
            self.checker.conflict(message, span, sides, self.rule, [operand])
        elif not isinstance(operand, Const):
            self.checker.used(self.rule, operand, reason)

    def error(self, message: str, help: str) -> None:
        self.checker.diagnostics.error(message, self.form.span, help)

    def refuse(self) -> None:
        """Nothing says which type it is, or it is not one of records."""
        node = self.node.find()
        if RECORD in node.candidates and not node.spoiled:
            node.spoiled = True
            help = "declare the argument of a predicate that has it, with a type of records"
            self.error(f"the type of {text_of(self.form)} is not known", help)


def _are(n: int) -> str:
    return "is" if n == 1 else "are"
