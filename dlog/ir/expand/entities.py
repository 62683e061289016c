"""Owns entity types with reference modes: an entity is the value that names it.

    # person(p), person_name(p : n) -> string(n).        becomes
    # person(p) -> string(p).  person_name[p] = n -> string(p), string(n).
    # person_name[p] = p <- person(p).

So `likes("ann", "bob")` is about two persons, and a person prints as its name.  Where an entity type is on
the right of `->` it declares a type and is a condition: `likes(x, y) -> person(x), person(y).`  Whatever
creates or erases the fact of a reference mode does so with the entity: `+person_name[p] = "ann"` is
`+person("ann")`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dlog.errors import Diagnostics
from dlog.ir.expand.inlining import variables
from dlog.language import ast


@dataclass(frozen=True)
class Entities:
    """`by_reference`: reference mode -> entity type."""

    types: Mapping[str, ast.Entity]
    by_reference: Mapping[str, str]


def entities_of(program: ast.Program) -> Entities:
    """REQUIRES: without blocks."""
    found = {s.name: s for s in program.statements if isinstance(s, ast.Entity)}
    return Entities(found, {s.reference: s.name for s in found.values()})


def without_entities(program: ast.Program, diagnostics: Diagnostics) -> ast.Program:
    """O(size of the program) if it has entity types, else O(statements)."""
    entities = entities_of(program)
    expansion = _Expansion(entities, diagnostics)
    if not entities.types and not any(expansion.has_reference(s) for s in program.statements):
        return program
    statements = [part for s in program.statements for part in expansion.statements(s)]
    return ast.Program(tuple(statements), span=program.span)


class _Expansion:
    def __init__(self, entities: Entities, diagnostics: Diagnostics):
        self.entities, self.diagnostics = entities, diagnostics

    def has_reference(self, statement: ast.Node) -> bool:
        """Whether a statement has an `R(x : y)`."""
        kinds = (ast.Rule, ast.DeltaRule, ast.DeltaStatement, ast.Constraint, ast.Query, ast.SequenceRule)
        return isinstance(statement, kinds) and any(isinstance(n, ast.Reference) for n in statement.walk())

    def statements(self, statement: ast.Node) -> Iterator[ast.Node]:
        match statement:
            case ast.Entity():
                yield from _defining(statement)
            case ast.Facts() if statement.predicate in self.entities.by_reference:
                yield from self.facts(statement)
            case ast.Directive() if statement.predicate in self.entities.by_reference:
                yield from self.directive(statement)
            case ast.Constraint():
                yield from self.declared_columns(statement)
                yield self.body(statement)
            case ast.Rule() | ast.DeltaStatement() | ast.DeltaRule():
                yield from self.with_heads(statement)
            case _:
                yield self.body(statement)

    # What is declared

    def declared_columns(self, node: ast.Constraint) -> Iterator[ast.Node]:
        """`likes(x, y) -> person(x)` declares the type of the first argument."""
        items = node.right.items if isinstance(node.right, ast.Conjunction) else (node.right,)
        types: dict[str, ast.TypeRef] = {}
        for item in items:
            argument = item.args[0] if isinstance(item, ast.Call) and len(item.args) == 1 else None
            if isinstance(item, ast.Call) and isinstance(argument, ast.Variable):
                entity = self.entities.types.get(item.name)
                if entity is not None:
                    types[argument.name] = replace(entity.type, params=(), span=item.span)
        left: ast.Node = node.left
        value: ast.Node | None = None
        if isinstance(left, ast.Comparison) and left.op == "=":
            value, left = left.right, left.left
        if not types or not isinstance(left, ast.Call | ast.Application):
            return
        nodes = (*left.args, *((value,) if value is not None else ()))
        names = [n.name for n in nodes if isinstance(n, ast.Variable)]
        if len(names) != len(nodes) or len(set(names)) != len(names) or not types.keys() & set(names):
            return
        columns = tuple(ast.Parameter(n, types.get(n), span=node.span) for n in names)
        keys, last = (columns, None) if value is None else (columns[:-1], columns[-1])
        yield ast.Declaration(left.name, keys, last, span=node.span)

    # What is stated

    def facts(self, node: ast.Facts) -> Iterator[ast.Node]:
        entity = self.entities.by_reference[node.predicate]
        for row in node.rows:
            if len(row) != 2 or row[0] != row[1]:
                self.not_its_name(node.predicate, entity, node.span)
        rows = tuple(row[-1:] for row in node.rows)
        yield ast.Facts(entity, rows, False, node.offsets, span=node.span)

    def directive(self, node: ast.Directive) -> Iterator[ast.Node]:
        if node.kind in ("input", "stream", "table"):
            entity = self.entities.by_reference[node.predicate]
            message = f"{node.predicate} follows from {entity}: .{node.kind} cannot be used"
            self.diagnostics.error(message, node.span, f"write .{node.kind} {entity}")
        else:
            yield node

    def not_its_name(self, reference: str, entity: str, span: Any) -> None:
        message = f"{reference} gives each {entity} another name than its own"
        self.diagnostics.error(message, span, f"an entity is the value that names it: write {entity}(value)")

    # Heads

    def with_heads(self, node: Any) -> Iterator[ast.Node]:
        deltas = not isinstance(node, ast.Rule)
        heads = node.deltas if isinstance(node, ast.DeltaStatement) else node.heads
        if not any(self.reference(h.atom if deltas else h) for h in heads):
            yield self.body(node)
            return
        body = None if isinstance(node, ast.DeltaStatement) else node.body
        bound = set() if body is None else set(variables(body))
        given: dict[str, ast.Node] = {}
        conditions: list[ast.Node] = []
        kept: list[ast.Node] = []
        for head in heads:
            found = self.reference(head.atom if deltas else head)
            if found is None:
                kept.append(head)
                continue
            entity, key, value = found
            if deltas and head.op == "^":
                message = f"an entity keeps its name: ^{self.named(entity)} is not possible"
                help = f"insert another {entity}, and erase this one"
                self.diagnostics.error(message, head.span, help)
                continue
            if isinstance(key, ast.Variable) and key.name not in bound:
                given[key.name] = value
            elif key != value:
                if body is None and all(isinstance(n, ast.Constant) for n in (key, value)):
                    self.not_its_name(self.named(entity), entity, head.span)
                conditions.append(ast.Comparison("=", key, value, span=head.span))
            atom = ast.Call(entity, (value,), span=head.span)
            kept.append(replace(head, atom=atom) if deltas else atom)
        made = tuple(dict.fromkeys(_put(head, given) for head in kept))
        if not made:
            return
        if isinstance(node, ast.DeltaStatement):
            yield replace(node, deltas=made)
            return
        if conditions:
            items = (*((body,) if body is not None else ()), *conditions)
            body = items[0] if len(items) == 1 else ast.Conjunction(items, span=node.span)
        yield self.body(replace(node, heads=made, body=body))

    def named(self, entity: str) -> str:
        return self.entities.types[entity].reference

    def reference(self, node: ast.Node) -> tuple[str, ast.Node, ast.Node] | None:
        """(Entity type, key, value) of `R[key] = value` or `R(key : value)`."""
        if isinstance(node, ast.Comparison) and node.op == "=" and isinstance(node.left, ast.Application):
            entity = self.entities.by_reference.get(node.left.name)
            if entity is not None and len(node.left.args) == 1:
                return entity, node.left.args[0], node.right
        if isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.args[0], ast.Reference):
            entity = self.entities.by_reference.get(node.name)
            if entity is not None:
                return entity, node.args[0].key, node.args[0].value
        return None

    # Bodies

    def body(self, node: Any) -> Any:
        """With `R[x] = y` for `R(x : y)`, and events of entities for those of their reference modes."""
        if isinstance(node, ast.Delta) and (found := self.reference(node.atom)):
            entity, key, value = found
            event = replace(node, atom=ast.Call(entity, (value,), span=node.span))
            same = ast.Comparison("=", key, value, span=node.span)
            return event if key == value else ast.Conjunction((event, same), span=node.span)
        if isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.args[0], ast.Reference):
            pair = node.args[0]
            if node.name not in self.entities.by_reference:
                message = f"{node.name} is not a reference mode"
                help = f"declare it, as in person(p), {node.name}(p : n) -> string(n)."
                self.diagnostics.error(message, node.span, help)
                return ast.Comparison("=", pair.key, pair.value, span=node.span)
            function = ast.Application(node.name, (pair.key,), span=node.span)
            return ast.Comparison("=", function, pair.value, span=node.span)
        return _rebuilt(node, self.body)


def _defining(entity: ast.Entity) -> Iterator[ast.Node]:
    span: Any = entity.span
    key, value = (ast.Parameter(name, entity.type, span=span) for name in entity.variables)
    yield ast.Declaration(entity.name, (key,), span=span)
    plain = replace(entity.type, params=())
    parameters = (replace(key, type=plain), replace(value, type=plain))
    yield ast.Declaration(entity.reference, parameters[:1], parameters[1], span=span)
    variable = ast.Variable(key.name, span=span)
    function = ast.Application(entity.reference, (variable,), span=span)
    head = ast.Comparison("=", function, variable, span=span)
    yield ast.Rule((head,), ast.Call(entity.name, (variable,), span=span), span=span)


def _put(node: ast.Node, given: Mapping[str, ast.Node]) -> Any:
    if isinstance(node, ast.Variable):
        return given.get(node.name, node)
    return _rebuilt(node, lambda child: _put(child, given))


def _rebuilt(node: Any, change: Any) -> Any:
    """The same node with changed children, or itself if none has changed."""
    changed: dict[str, Any] = {}
    for part in ast.parts(type(node)):
        value = getattr(node, part)
        if isinstance(value, ast.Node):
            new: Any = change(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], ast.Node):
            new = tuple(change(item) for item in value)
        else:
            continue
        if new is not value and new != value:
            changed[part] = new
    return replace(node, **changed) if changed else node
