"""Owns the check of M3's expressions: what each binds, what it needs bound, its type.  Knows no
statements.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from dlog.errors import Diagnostics, did_you_mean, place
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import A5, TABLE, TypeRef
from dlog.m3.syntax.dialects import CONDITION, MULTIPLICITY
from dlog.m3.types import functions
from dlog.m3.types.typing import TEXTS, Types


@dataclass(frozen=True)
class Binding:
    """The type of a bound variable, and where it was bound; in a5 whether it was written with a type."""

    type: TypeRef | None
    node: ast.Node | None = None

    @property
    def annotated(self) -> bool:
        return isinstance(self.node, ast.Column) or (
            isinstance(self.node, ast.Variable) and self.node.type is not None
        )


Scope = dict[str, Binding]  # the variables that are bound


@dataclass(frozen=True)
class Context:
    """Where an expression is: in the definition of a map, or in a trigger of a batch of some relation."""

    definition: bool = False
    batch_of: str | None = None


@dataclass(frozen=True)
class Result:
    """The expression with all types, its type (None if unknown), and the variables it binds, in order."""

    node: ast.Node
    type: TypeRef | None
    outputs: Scope = field(default_factory=dict)


class Expressions:
    """`visit(node, scope, context)` for every kind of expression."""

    def __init__(
        self,
        dialect: str,
        types: Types,
        maps: dict[str, ast.MapDeclaration],
        sources: dict[str, ast.Source],
        diagnostics: Diagnostics,
    ):
        self.dialect, self.types, self.maps, self.sources = dialect, types, maps, sources
        self.diagnostics = diagnostics

    def error(self, message: str, node: ast.Node, help: str | None = None) -> None:
        self.diagnostics.error(message, node.span, help)

    def visit(self, node: ast.Node, scope: Scope, context: Context) -> Result:
        method = getattr(self, f"_{type(node).__name__.lower()}")
        return method(node, scope, context)

    def scalar(self, node: ast.Node, scope: Scope, context: Context, what: str = "here") -> Result:
        """An expression that must have one value: it may bind no variable."""
        result = self.visit(node, scope, context)
        if result.outputs:
            names = ", ".join(result.outputs)
            help = "bind it to the left, or sum it out: AggSum([], ...)"
            self.error(f"{names} is not bound {what}, where one value is needed", node, help)
        return result

    def declared(self, access: ast.MapAccess) -> ast.MapDeclaration | None:
        """The declaration of a map that is read or written, after checking its type and number of keys."""
        declared = self.maps.get(access.name)
        if declared is None:
            help = did_you_mean(
                access.name, self.maps, f"declare it: DECLARE MAP {access.name}(..)[][..] := 0;"
            )
            self.error(f"unknown map {access.name}", access, help)
            return None
        if access.type is not None and declared.type is not None and access.type != declared.type:
            message = f"map {access.name} is of type {declared.type}, not {access.type}"
            self.error(message, access.type)
        for what, found, expected in (
            ("input variable", access.inputs, declared.inputs),
            ("key", access.keys, declared.keys),
        ):
            if len(found) != len(expected):
                count = f"{len(expected)} {what}{'' if len(expected) == 1 else 's'}"
                self.error(f"map {access.name} has {count}, not {len(found)}", access)
        return declared

    def check_annotation(self, variable: ast.Variable, binding: Binding) -> None:
        """In a5 a variable is its name and its type, float if none is written: all uses must agree."""
        if self.dialect != A5 or binding.type is None:
            return
        written = variable.type
        if written is not None and written != binding.type:
            self.error(f"{variable.name} is {binding.type}, not {written}", variable)
        elif binding.type.name != "float" and (written is not None) != binding.annotated:
            has, lacks = (variable, binding.node) if written is not None else (binding.node, variable)
            self._half_annotated(variable, binding, has, lacks)

    def _half_annotated(
        self, variable: ast.Variable, binding: Binding, has: ast.Node | None, lacks: ast.Node | None
    ) -> None:
        where = lacks if isinstance(lacks, ast.Variable) else variable
        other = has if where is lacks else lacks
        seen = f" in {place(other.span, where.span)}" if other is not None and other.span else ""
        message = f"{variable.name} has no type here, which means float in a5, but has one{seen}"
        self.error(message, where, f"write {variable.name}:{binding.type}")

    # Values

    def _constant(self, node: ast.Constant, scope: Scope, context: Context) -> Result:
        return Result(node, TypeRef(node.type))

    def _variable(self, node: ast.Variable, scope: Scope, context: Context) -> Result:
        binding = scope.get(node.name)
        if binding is None:
            help = did_you_mean(node.name, scope, "a relation, a map or (x ^= ..) to the left binds it")
            if "-" in node.name:
                help = f"a5 reads one name here; for a difference, write {node.name.replace('-', ' - ')}"
            self.error(f"{node.name} is not bound here", node, help)
            return Result(node, node.type)
        self.check_annotation(node, binding)
        return Result(replace(node, type=binding.type), binding.type)

    def _call(self, node: ast.Call, scope: Scope, context: Context) -> Result:
        results = [self.scalar(a, scope, context, "in an argument") for a in node.arguments]
        function = functions.lookup(node.function)
        if self.types.is_custom(node.type):
            pass  # a function of the ring, which is known when the program runs
        elif function is None:
            otherwise = "add it by dlog.m3.register_function, in a file for --functions"
            help = did_you_mean(node.function, functions.known(), otherwise)
            self.error(f"unknown function {node.function}", node, help)
        else:
            self._check_arguments(node, function, results)
        return Result(replace(node, arguments=tuple(r.node for r in results)), node.type)

    def _check_arguments(self, node: ast.Call, function: functions.Function, results: list[Result]) -> None:
        if len(results) < function.least or (len(results) > len(function.takes) and not function.more):
            most = "or more" if function.more else f"to {len(function.takes)}" if function.optional else ""
            wanted = f"{function.least} {most}".strip()
            noun = "argument" if wanted == "1" else "arguments"
            self.error(f"{function.name} takes {wanted} {noun}, not {len(results)}", node)
        for index, result in enumerate(results):
            kind = function.kind_of(index)
            if kind is not None and not self._is_kind(result.type, kind):
                self.error(f"{function.name} takes a {kind} here, not {result.type}", node.arguments[index])
        if not self._is_kind(node.type, function.gives):
            self.error(f"{function.name} gives a {function.gives}, not {node.type}", node.type)

    def _is_kind(self, type_: TypeRef | None, kind: str) -> bool:
        if type_ is None or kind == functions.ANY:
            return True
        if kind == functions.STRING:
            return type_.name in TEXTS
        return type_.name == "date" if kind == functions.DATE else self.types.is_number(type_)

    # Conditions

    def _condition(self, node: ast.Node) -> Result:
        return Result(node, TypeRef(CONDITION[self.dialect]))

    def _comparison(self, node: ast.Comparison, scope: Scope, context: Context) -> Result:
        left = self.scalar(node.left, scope, context, "in a comparison")
        right = self.scalar(node.right, scope, context, "in a comparison")
        if not self.types.compares(left.type, right.type):
            self.error(f"{left.type} cannot be compared with {right.type}", node)
        return self._condition(replace(node, left=left.node, right=right.node))

    def _in(self, node: ast.In, scope: Scope, context: Context) -> Result:
        operand = self.scalar(node.operand, scope, context, "before IN")
        for value in node.values:
            if not self.types.compares(operand.type, TypeRef(value.type)):
                self.error(f"{operand.type} cannot be compared with {value.type}", value)
        return self._condition(replace(node, operand=operand.node))

    def _lift(self, node: ast.Lift, scope: Scope, context: Context) -> Result:
        body = self.scalar(node.body, scope, context, "in a lift")
        self._check_untyped(node.body, scope)
        variable, binding = node.variable, scope.get(node.variable.name)
        if binding is not None:
            if not self.types.compares(binding.type, body.type):
                message = f"{variable.name} is {binding.type} and cannot equal a value of type {body.type}"
                self.error(message, node)
            self.check_annotation(variable, binding)
            typed = replace(variable, type=binding.type)
            return self._condition(replace(node, variable=typed, body=body.node))
        if self.types.is_custom(body.type):
            self.error(f"a value of type {body.type} cannot be bound to a variable", node)
        self._check_lifted(variable, body.type)
        result = self._condition(replace(node, variable=replace(variable, type=body.type), body=body.node))
        return replace(result, outputs={variable.name: Binding(body.type, variable)})

    def _check_untyped(self, body: ast.Node, scope: Scope) -> None:
        """In a5 the type of a lifted value counts, so its variables must have been written with theirs."""
        for inner in body.walk() if self.dialect == A5 else ():
            if not isinstance(inner, ast.Variable) or inner.type is not None or inner.name not in scope:
                continue
            type_ = scope[inner.name].type
            if type_ is not None and type_.name != "float":
                message = f"{inner.name} has no type, so a5 takes it for a float in this lift"
                self.error(message, inner, f"write {inner.name}:{type_} here and where it is bound")

    def _check_lifted(self, variable: ast.Variable, type_: TypeRef | None) -> None:
        if self.dialect != A5 or type_ is None or variable.type == type_:
            return
        if variable.type is not None:
            self.error(f"{variable.name} is {variable.type}, but its value is {type_}", variable)
        elif type_.name != "float":
            message = f"a5 takes {variable.name} for a float, but its value is {type_}"
            self.error(message, variable, f"write {variable.name}:{type_}")

    def _exists(self, node: ast.Exists | ast.Domain, scope: Scope, context: Context) -> Result:
        body = self.visit(node.body, scope, context)
        return replace(self._condition(replace(node, body=body.node)), outputs=body.outputs)

    _domain = _exists

    # Sums and products

    def _product(self, node: ast.Product, scope: Scope, context: Context) -> Result:
        outputs: Scope = {}
        factors: list[ast.Node] = []
        type_: TypeRef | None = None
        for factor in node.factors:
            result = self.visit(factor, {**scope, **outputs}, context)
            outputs |= result.outputs
            factors.append(result.node)
            self._check_ring(result.type, factor)
            if not self.types.is_ring(result.type):
                continue
            if not self.types.multiplies(type_, result.type):
                self.error(f"{type_} and {result.type} cannot be multiplied", factor)
                type_ = None
            type_ = self.types.product(type_, result.type)
        return Result(replace(node, factors=tuple(factors)), type_, outputs)

    def _sum(self, node: ast.Sum, scope: Scope, context: Context) -> Result:
        results = [self.visit(term, scope, context) for term in node.terms]
        type_: TypeRef | None = None
        for term, result in zip(node.terms, results, strict=True):
            self._check_ring(result.type, term)
            if self.types.is_ring(result.type) and not self.types.adds(type_, result.type):
                self.error(f"{type_} and {result.type} cannot be added", term)
            elif self.types.is_ring(result.type):
                type_ = self.types.sum(type_, result.type)
            self._check_same_outputs(node.terms[0], results[0], term, result)
        return Result(replace(node, terms=tuple(r.node for r in results)), type_, results[0].outputs)

    def _check_same_outputs(self, first: ast.Node, expected: Result, term: ast.Node, found: Result) -> None:
        for one, other, node in ((expected, found, term), (found, expected, first)):
            for name in one.outputs:
                if name not in other.outputs:
                    help = "all terms of a sum bind the same variables; sum it out by AggSum"
                    self.error(f"{name} is not bound in this term, but in another", node, help)
                    return

    def _check_ring(self, type_: TypeRef | None, node: ast.Node) -> None:
        if not self.types.is_ring(type_):
            help = "compare it in braces, {x = 'a'}, or bind it, (x ^= 'a')"
            self.error(f"a value of type {type_} can be neither added nor multiplied", node, help)

    def _aggsum(self, node: ast.AggSum, scope: Scope, context: Context) -> Result:
        body = self.visit(node.body, scope, context)
        found = {**scope, **body.outputs}
        keys: list[ast.Variable] = []
        outputs: Scope = {}
        for key in node.keys:
            if key.name not in found:
                help = did_you_mean(key.name, found, "only variables that the body binds can be kept")
                self.error(f"{key.name} is not bound in this AggSum", key, help)
                outputs[key.name] = Binding(None, key)
                keys.append(key)
                continue
            self.check_annotation(key, found[key.name])
            keys.append(replace(key, type=found[key.name].type))
            if key.name in body.outputs:
                outputs[key.name] = body.outputs[key.name]
        return Result(replace(node, keys=tuple(keys), body=body.node), body.type, outputs)

    # Relations and maps

    def _relation(self, node: ast.Relation, scope: Scope, context: Context) -> Result:
        source = self._source(node)
        if source is not None and source.kind != TABLE and not context.definition:
            help = "read a map that stores it; (DELTA R)(..) are the rows of a batch"
            self.error(f"{source.name} is a stream: its rows are not stored", node, help)
        return self._rows(node, source, scope)

    def _deltarelation(self, node: ast.DeltaRelation, scope: Scope, context: Context) -> Result:
        source = self._source(node)
        if source is not None and not context.definition and context.batch_of != source.name:
            help = f"only ON BATCH UPDATE OF {source.name} has it"
            self.error(f"there is no batch of {source.name} here", node, help)
        return self._rows(node, source, scope)

    def _source(self, node: ast.Relation | ast.DeltaRelation) -> ast.Source | None:
        source = self.sources.get(node.name)
        if source is None:
            help = did_you_mean(node.name, self.sources, "declare it with CREATE STREAM or CREATE TABLE")
            self.error(f"unknown relation {node.name}", node, help)
        elif len(source.columns) != len(node.variables):
            count = f"{len(source.columns)} column{'' if len(source.columns) == 1 else 's'}"
            self.error(f"{node.name} has {count}, not {len(node.variables)}", node)
        return source

    def _rows(
        self, node: ast.Relation | ast.DeltaRelation, source: ast.Source | None, scope: Scope
    ) -> Result:
        columns = [c.type for c in source.columns] if source is not None else []
        variables, outputs = self._bind(node.variables, columns, scope)
        return Result(replace(node, variables=variables), TypeRef(MULTIPLICITY[self.dialect]), outputs)

    def _mapaccess(self, node: ast.MapAccess, scope: Scope, context: Context) -> Result:
        declared = self.declared(node)
        for variable in node.inputs:
            if variable.name not in scope:
                help = "an input variable must be bound to the left"
                self.error(f"{variable.name} is not bound here", variable, help)
        inputs, _ = self._bind(node.inputs, [c.type for c in declared.inputs] if declared else [], scope)
        keys, outputs = self._bind(node.keys, [c.type for c in declared.keys] if declared else [], scope)
        type_ = declared.type if declared is not None else node.type
        typed = replace(node, type=type_, inputs=inputs, keys=keys)
        if node.initial is not None:
            typed = replace(typed, initial=self._initial(node, type_, scope, outputs, context))
        return Result(typed, type_, outputs)

    def _initial(
        self, node: ast.MapAccess, type_: TypeRef | None, scope: Scope, outputs: Scope, context: Context
    ) -> ast.Node:
        """The initial value of entries that are read: it binds the keys that are not bound yet."""
        assert node.initial is not None
        result = self.visit(node.initial, scope, context)
        zero = isinstance(node.initial, ast.Constant) and node.initial.value == 0
        if not zero and set(result.outputs) != set(outputs):
            wanted = ", ".join(outputs) or "no variable"
            found = ", ".join(result.outputs) or "none"
            self.error(f"the initial value must bind {wanted}, not {found}", node.initial)
        if not zero and not self.types.fits(result.type, type_):
            self.error(f"{result.type} does not fit into map {node.name} of type {type_}", node.initial)
        return result.node

    def _bind(
        self, variables: Iterable[ast.Variable], columns: list[TypeRef], scope: Scope
    ) -> tuple[tuple[ast.Variable, ...], Scope]:
        """Variables of a relation or map: those bound are looked up, the others get the column's type."""
        outputs: Scope = {}
        typed = []
        for index, variable in enumerate(variables):
            column = columns[index] if index < len(columns) else None
            binding = scope.get(variable.name) or outputs.get(variable.name)
            if binding is None:
                if self.dialect == A5 and variable.type is not None and column not in (None, variable.type):
                    self.error(f"{variable.name} is {variable.type}, but the column is {column}", variable)
                binding = outputs[variable.name] = Binding(column, variable)
            else:
                self.check_annotation(variable, binding)
                if not self.types.compares(binding.type, column):
                    self.error(f"{variable.name} is {binding.type}, but the column is {column}", variable)
            typed.append(replace(variable, type=binding.type))
        return tuple(typed), outputs
