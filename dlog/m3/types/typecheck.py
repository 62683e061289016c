"""Owns the check of an M3 program: names, scopes, binding patterns and types, each error with its place.

Correct output: the same program with every type filled in (of variables, maps and map accesses), and with
`AggSum` around the expression of a statement whose output variables are more than the target's keys.

An expression must be evaluable from left to right: a relation, a map or a lift binds variables; everything
else needs them bound.  Trigger parameters are bound in the whole body.
"""

from __future__ import annotations

from dataclasses import replace

from dlog.errors import Diagnostics, did_you_mean, place
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import A5, BATCH, READY, TABLE, TypeRef
from dlog.m3.syntax.dialects import MULTIPLICITY
from dlog.m3.types.expressions import Binding, Context, Expressions, Result, Scope
from dlog.m3.types.typing import BUILTIN, Types


def check(program: ast.Program) -> ast.Program:
    """The program with all types.  Raises every error at once.  O(nodes)."""
    diagnostics = Diagnostics()
    checked = _Checker(program, diagnostics).program()
    diagnostics.raise_if_any()
    return checked


class _Checker:
    def __init__(self, program: ast.Program, diagnostics: Diagnostics):
        self.given = program
        self.dialect = program.dialect
        self.diagnostics = diagnostics
        self.types = Types(program.dialect, program.types)
        self.maps = {declared.name: self._typed(declared) for declared in program.maps}
        self.sources = {source.name: source for source in program.sources}
        self.expressions = Expressions(program.dialect, self.types, self.maps, self.sources, diagnostics)

    def program(self) -> ast.Program:
        self._check_names()
        for node in self.given.walk():
            if isinstance(node, TypeRef):
                self._check_type(node)
        maps = tuple(self._map(declared) for declared in self.given.maps)
        queries = tuple(self._query(query) for query in self.given.queries)
        triggers = tuple(self._trigger(trigger) for trigger in self.given.triggers)
        return replace(self.given, maps=maps, queries=queries, triggers=triggers)

    def error(self, message: str, node: ast.Node, help: str | None = None) -> None:
        self.diagnostics.error(message, node.span, help)

    # Names and types

    def _check_names(self) -> None:
        for what, nodes in (
            ("type", self.given.types),
            ("relation", self.given.sources),
            ("map", self.given.maps),
            ("query", self.given.queries),
        ):
            seen: dict[str, ast.Node] = {}
            for node in nodes:
                name = node.name
                if name in seen:
                    where = place(seen[name].span, node.span) if seen[name].span else "before"
                    self.error(f"{what} {name} is already declared, in {where}", node)
                seen.setdefault(name, node)

    def _check_type(self, type_: TypeRef) -> None:
        defined = {definition.name: definition for definition in self.given.types}
        if type_.name in BUILTIN or type_.name in defined:
            return
        help = did_you_mean(
            type_.name, [*BUILTIN, *defined], f"write CREATE TYPE {type_.name} FROM FILE '..';"
        )
        self.error(f"unknown type {type_.name}", type_, help)

    def _typed(self, declared: ast.MapDeclaration) -> ast.MapDeclaration:
        """A map without a type has that of its first statement that has one."""
        if declared.type is not None:
            return declared
        for node in self.given.walk():
            if isinstance(node, ast.Assign) and node.target.name == declared.name and node.target.type:
                return replace(declared, type=node.target.type)
        help = f"write {declared.name}(long)[..] or another type"
        self.error(f"map {declared.name} has no type", declared, help)
        return declared

    # Declarations

    def _map(self, given: ast.MapDeclaration) -> ast.MapDeclaration:
        declared = self.maps[given.name] if self.maps[given.name].span == given.span else self._typed(given)
        if declared.type is not None and not self.types.is_ring(declared.type):
            help = "keys hold texts and dates; values of maps add and multiply"
            self.error(f"map {declared.name} cannot have values of type {declared.type}", declared.type, help)
        for column in (*declared.inputs, *declared.keys):
            self._check_key_type(column)
        if declared.definition is None:
            return declared
        scope = {c.name: Binding(c.type, c) for c in declared.inputs}
        result = self.expressions.visit(declared.definition, scope, Context(definition=True))
        self._check_definition(declared, result.type, {**scope, **result.outputs})
        return replace(declared, definition=result.node)

    def _check_key_type(self, column: ast.Column) -> None:
        if self.types.is_custom(column.type):
            self.error(f"{column.name}: values of type {column.type} cannot be keys", column)

    def _check_definition(self, declared: ast.MapDeclaration, type_: TypeRef | None, found: Scope) -> None:
        definition = declared.definition
        assert definition is not None
        if isinstance(definition, ast.Constant) and definition.value == 0:
            return  # no information
        for key in declared.keys:
            if key.name not in found:
                message = f"key {key.name} of map {declared.name} is not bound by its definition"
                self.error(message, key, did_you_mean(key.name, found))
            elif not self.types.fits(found[key.name].type, key.type):
                self.error(f"key {key.name} is {key.type}, but {found[key.name].type} in the definition", key)
        self._check_fits(type_, declared, definition)

    def _check_fits(self, type_: TypeRef | None, declared: ast.MapDeclaration, node: ast.Node) -> None:
        zero = isinstance(node, ast.Constant) and node.value == 0
        if zero or self.types.fits(type_, declared.type):
            return
        help = None
        if self.types.is_number(type_) and self.types.is_number(declared.type):
            help = f"declare {declared.name} as {type_}"
            if type_ is not None and type_.name == MULTIPLICITY[self.dialect]:
                help += f": relations count in {type_}"
        self.error(f"{type_} does not fit into map {declared.name} of type {declared.type}", node, help)

    def _query(self, query: ast.Query) -> ast.Query:
        result = self.expressions.visit(query.expression, {}, Context())
        return replace(query, expression=result.node)

    # Triggers

    def _trigger(self, trigger: ast.Trigger) -> ast.Trigger:
        scope: Scope = {}
        parameters: tuple[ast.Variable, ...] = ()
        if trigger.event != READY:
            scope, parameters = self._header(trigger)
        context = Context(batch_of=trigger.relation if trigger.event == BATCH else None)
        statements = tuple(self._statement(s, scope, context) for s in trigger.statements)
        return replace(trigger, parameters=parameters, statements=statements)

    def _header(self, trigger: ast.Trigger) -> tuple[Scope, tuple[ast.Variable, ...]]:
        """What a trigger binds: its parameters, with the types of the relation's columns."""
        assert trigger.relation is not None
        source = self.sources.get(trigger.relation)
        if source is None:
            help = did_you_mean(trigger.relation, self.sources, "declare it with CREATE STREAM")
            self.error(f"unknown relation {trigger.relation}", trigger, help)
            return {p.name: Binding(p.type, p) for p in trigger.parameters}, trigger.parameters
        if source.kind == TABLE:
            help = "tables do not change: declare it as a stream, or use ON SYSTEM READY"
            self.error(f"{source.name} is a table", trigger, help)
        if trigger.event == BATCH:
            return {}, ()
        if len(trigger.parameters) != len(source.columns):
            message = (
                f"{source.name} has {_count(len(source.columns), 'column')}, not {len(trigger.parameters)}"
            )
            self.error(message, trigger)
        scope: Scope = {}
        parameters = []
        for parameter, column in zip(trigger.parameters, source.columns, strict=False):
            if parameter.type is not None and parameter.type != column.type:
                message = f"{parameter.name} is {parameter.type}, but column {column.name} is {column.type}"
                self.error(message, parameter)
            scope[parameter.name] = Binding(column.type, parameter)
            parameters.append(replace(parameter, type=column.type))
        for parameter in trigger.parameters[len(parameters) :]:
            scope[parameter.name] = Binding(None, parameter)
        return scope, tuple(parameters)

    def _statement(self, node: ast.Assign | ast.If, scope: Scope, context: Context) -> ast.Assign | ast.If:
        if isinstance(node, ast.Assign):
            return self._assign(node, scope, context)
        condition = self.expressions.visit(node.condition, scope, context).node
        assert isinstance(condition, ast.Comparison)
        return replace(
            node,
            condition=condition,
            then=tuple(self._statement(s, scope, context) for s in node.then),
            otherwise=tuple(self._statement(s, scope, context) for s in node.otherwise),
        )

    def _assign(self, node: ast.Assign, scope: Scope, context: Context) -> ast.Assign:
        target = node.target
        declared = self.expressions.declared(target)
        if declared is not None:
            scope = self._with_inputs(target, declared, scope)
        result = self.expressions.visit(node.expression, scope, context)
        if declared is None:
            return replace(node, expression=result.node)
        keys = self._keys(target, declared, {**scope, **result.outputs})
        self._check_fits(result.type, declared, node.expression)
        expression = self._summed(node, result)
        inputs, keys = keys[: len(target.inputs)], keys[len(target.inputs) :]
        target = replace(target, type=declared.type, inputs=inputs, keys=keys)
        if target.initial is not None:
            target = replace(target, initial=self._initial(target, declared, scope, context))
        return replace(node, target=target, expression=expression)

    def _with_inputs(self, target: ast.MapAccess, declared: ast.MapDeclaration, scope: Scope) -> Scope:
        """Input variables of a target that are not parameters range over those that the map has."""
        known = zip(target.inputs, declared.inputs, strict=False)
        return {**{v.name: Binding(column.type, v) for v, column in known}, **scope}

    def _keys(
        self, target: ast.MapAccess, declared: ast.MapDeclaration, found: Scope
    ) -> tuple[ast.Variable, ...]:
        """The target's inputs and keys with their types; each is bound by header or expression."""
        columns = (*declared.inputs, *declared.keys)
        variables = (*target.inputs, *target.keys)
        typed = list(variables)
        for index, (column, variable) in enumerate(zip(columns, variables, strict=False)):
            binding = found.get(variable.name)
            if binding is None:
                help = did_you_mean(variable.name, found, "bind it in the expression")
                self.error(f"key {variable.name} is not bound by the expression", variable, help)
                continue
            typed[index] = replace(variable, type=binding.type)
            self.expressions.check_annotation(variable, binding)
            if not self.types.fits(binding.type, column.type):
                message = f"{variable.name} is {binding.type}, but key {column.name} is {column.type}"
                self.error(message, variable)
        return tuple(typed)

    def _initial(
        self, target: ast.MapAccess, declared: ast.MapDeclaration, scope: Scope, context: Context
    ) -> ast.Node:
        """The initial value of an entry that is written to: its keys are bound."""
        assert target.initial is not None
        known = {v.name: Binding(v.type, v) for v in (*target.inputs, *target.keys)}
        result = self.expressions.scalar(target.initial, {**known, **scope}, context, "in an initial value")
        self._check_fits(result.type, declared, target.initial)
        return result.node

    def _summed(self, node: ast.Assign, result: Result) -> ast.Node:
        """With AggSum around it if it has more output variables than the target has keys."""
        names = [v.name for v in (*node.target.inputs, *node.target.keys)]
        extra = [name for name in result.outputs if name not in names]
        if not extra:
            return result.node
        if self.dialect == A5:
            help = f"write AggSum([{', '.join(names)}], ...)"
            message = f"the expression also binds {', '.join(extra)}, which {node.target.name} has no key for"
            self.error(message, node.expression, help)
        kept = {v.name: v for v in node.target.keys if v.name in result.outputs}
        keys = tuple(replace(v, type=result.outputs[v.name].type) for v in kept.values())
        return ast.AggSum(keys, result.node, span=node.expression.span)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
