"""Owns `.functor` declarations: which functors a program has, and whether each use fits."""

from __future__ import annotations

from collections.abc import Iterable

from dlog.aggregates.user import USER, user_name
from dlog.errors import Diagnostics, did_you_mean, place
from dlog.ir.functors import AGGREGATE, STATEFUL, Functor
from dlog.ir.lower.named_types import NamedTypes
from dlog.language import ast
from dlog.language.source import Span


class Functors:
    """The functors of one program.  A wrong declaration is reported, and so is no use of it."""

    def __init__(self, statements: Iterable[ast.Node], types: NamedTypes, diagnostics: Diagnostics):
        self.types, self.diagnostics = types, diagnostics
        self.declared: dict[str, ast.FunctorDeclaration] = {}
        self.known: dict[str, Functor] = {}
        for statement in statements:
            if isinstance(statement, ast.FunctorDeclaration):
                self._declare(statement)

    def _declare(self, node: ast.FunctorDeclaration) -> None:
        first = self.declared.setdefault(node.name, node)
        if first is not node:
            if first != node:
                help = f"the first declaration is at {place(first.span, node.span)}"
                self.diagnostics.error(f"functor {node.name} is declared twice", node.span, help)
            return
        references = (*(p.type for p in node.parameters if p.type is not None), node.result)
        types = [self.types.resolve(reference) for reference in references]
        if None in types or (AGGREGATE in node.words and not self._is_aggregate(node)):
            return
        *inputs, result = (type for type in types if type is not None)
        stateful = STATEFUL in node.words and AGGREGATE not in node.words
        self.known[node.name] = Functor(
            node.name, tuple(inputs), result, stateful, AGGREGATE in node.words, node.span
        )

    def _is_aggregate(self, node: ast.FunctorDeclaration) -> bool:
        if len(node.parameters) != 1:
            message = f"the aggregate {node.name} has {len(node.parameters)} arguments"
            self.diagnostics.error(message, node.span, "an aggregate has one argument: the value of a row")
            return False
        for reference in (node.parameters[0].type, node.result):
            type = self.types.resolve(reference) if reference is not None else None
            if reference is not None and type is not None and type.is_record:
                message = f"the aggregate {node.name} cannot have the record type {reference.name}"
                self.diagnostics.error(message, reference.span, "aggregate a field of the record")
                return False
        return True

    # Uses

    def function(self, name: str, arguments: int, span: Span) -> Functor | None:
        """The functor of `@name(..)`; None when it was reported."""
        functor = self._named(name, span)
        if functor is None:
            return None
        if functor.aggregate:
            help = f"write x = @{name} y : {{ ... }}, or agg<<x = @{name}(y)>>"
            self.diagnostics.error(f"@{name} is an aggregate, not a function", span, help)
            return None
        if len(functor.inputs) != arguments:
            need = f"{len(functor.inputs)} argument{'' if len(functor.inputs) == 1 else 's'}"
            given = f"{arguments} {'is' if arguments == 1 else 'are'} given"
            assert functor.span is not None
            help = f"it is declared at {place(functor.span, span)}"
            self.diagnostics.error(f"@{name} takes {need}, but {given}", span, help)
            return None
        return functor

    def aggregate(self, op: str, span: Span, arguments: int = 1) -> str | None:
        """The name of the aggregate `@name` in rules; None when it was reported."""
        name = op[len(USER) :]
        functor = self._named(name, span)
        if functor is None:
            return None
        if not functor.aggregate:
            one = f"declare it as one: .functor {functor} {AGGREGATE}".replace(f" {STATEFUL}", "")
            help = one if len(functor.inputs) == 1 else None
            self.diagnostics.error(f"@{name} is a function, not an aggregate", span, help)
            return None
        if arguments != 1:
            message = f"@{name} takes one argument"
            self.diagnostics.error(message, span, f"write @{name}(x)")
            return None
        return user_name(name, functor.inputs[0], functor.result)

    def _named(self, name: str, span: Span) -> Functor | None:
        if name not in self.declared:
            example = f"declare it, as in .functor {name}(x: number): number"
            help = did_you_mean(name, self.declared, example)
            self.diagnostics.error(f"functor {name} is not declared", span, help)
        return self.known.get(name)
