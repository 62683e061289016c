"""Owns components: `.init a = X<T>` becomes the statements of X, with names that begin with `a.`

    # .comp Graph<Node> { .decl edge(x: Node, y: Node)  .decl loop(x: Node)  loop(x) :- edge(x, x). }
    # .init roads = Graph<symbol>       becomes
    # .decl roads.edge(x: symbol, y: symbol)  .decl roads.loop(x: symbol)  roads.loop(x) :- roads.edge(x, x).

From syntax tree to syntax tree, before names are resolved.  Components stay in the tree, where a later
`.init` finds them; they say nothing by themselves.  A name is looked up in the instance, then in those
around it, then in the program.  What bases declare belongs to the instance, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dlog.errors import Diagnostics, did_you_mean, place
from dlog.language import ast
from dlog.language.blocks import grouped
from dlog.language.declare import CANONICAL_TYPE
from dlog.language.source import InstanceSpan, Span


@dataclass
class Definition:
    """A component: its own statements, and the components that are defined in it."""

    name: str
    params: tuple[str, ...]
    bases: tuple[ast.ComponentRef, ...]
    span: Span
    statements: list[ast.Node] = field(default_factory=list)
    components: dict[str, Definition] = field(default_factory=dict)


@dataclass
class Contents:
    """What an instance declares, with its bases; shared by all of its scopes."""

    path: str = ""
    relations: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    inits: set[str] = field(default_factory=set)
    components: dict[str, Definition] = field(default_factory=dict)


@dataclass
class Scope:
    """Where the names of one component of an instance are looked up."""

    contents: Contents
    parent: Scope | None = None
    given: dict[str, tuple[str, Scope]] = field(default_factory=dict)  # what its parameters are, and where

    def relation(self, name: str) -> str:
        own = self.contents
        if self.parent is None:
            return name
        if name in own.relations or name.partition(".")[0] in own.inits:
            return f"{own.path}.{name}"
        return self.parent.relation(name)

    def type(self, name: str) -> str:
        own = self.contents
        if name in self.given:
            given, scope = self.given[name]
            return scope.type(given)
        if self.parent is None:
            return name
        if name in own.types or name.partition(".")[0] in own.inits:
            return f"{own.path}.{name}"
        return self.parent.type(name)

    def component(self, name: str) -> Definition | None:
        if name in self.given:
            given, scope = self.given[name]
            return scope.component(given)
        if name in self.contents.components:
            return self.contents.components[name]
        return None if self.parent is None else self.parent.component(name)

    def known(self) -> set[str]:
        names = {*self.given, *self.contents.components}
        return names if self.parent is None else names | self.parent.known()


def instantiate(program: ast.Program, diagnostics: Diagnostics) -> ast.Program:
    """REQUIRES: includes are expanded.  O(size of the result) if there are components, else O(statements)."""
    if not any(isinstance(s, ast.COMPONENTS) for s in program.statements):
        return program
    statements, components = _nested(grouped(program.statements), diagnostics)
    world = Scope(Contents(components=components))
    kept = [s for s in program.statements if isinstance(s, ast.Component)]
    made = [*_Instances(diagnostics).statements(statements, world)]
    if not diagnostics.errors:
        _check_unused(world, frozenset(), diagnostics)
    return ast.Program((*kept, *made), span=program.span)


def _check_unused(
    scope: Scope, params: frozenset[str], diagnostics: Diagnostics, inherited: bool = False
) -> None:
    """Reports unknown components, also where nothing is instantiated.

    `inherited`: the scope may have components of bases, which are not looked for.
    """
    for component in scope.contents.components.values():
        given = params | {*component.params}
        inner = Scope(Contents(components=component.components), scope)
        inits = [s.component for s in component.statements if isinstance(s, ast.Init)]
        below = inherited or bool(component.bases)
        for ref, where, hidden in (
            *((base, scope, inherited) for base in component.bases),
            *((init, inner, below) for init in inits),
        ):
            found = where.component(ref.name)
            if ref.name not in given and (found is not None or not hidden):
                _fits(ref, found, where, (), diagnostics)
        _check_unused(inner, given, diagnostics, below)


def without_components(program: ast.Program) -> ast.Program:
    """Only what is outside of components."""
    kept = tuple(s for s in program.statements if not isinstance(s, ast.COMPONENTS))
    return program if len(kept) == len(program.statements) else replace(program, statements=kept)


def _nested(
    statements: Iterable[ast.Node], diagnostics: Diagnostics
) -> tuple[list[ast.Node], dict[str, Definition]]:
    """The statements outside of components, and the components."""
    outside: list[ast.Node] = []
    components: dict[str, Definition] = {}
    for statement in statements:
        if isinstance(statement, ast.Component):
            start = statement.start
            inside, below = _nested(statement.statements, diagnostics)
            own = start.component
            new = Definition(own.name, own.args, start.bases, start.span, inside, below)
            _define(components, new, diagnostics)
        elif isinstance(statement, ast.ComponentStart):
            message = f"component {statement.component.name} is not closed"
            diagnostics.error(message, statement.span, "close it with }")
        elif isinstance(statement, ast.ComponentEnd):
            diagnostics.error("this closes no component", statement.span)
        else:
            outside.append(statement)
    return outside, components


def _define(components: dict[str, Definition], new: Definition, diagnostics: Diagnostics) -> None:
    first = components.setdefault(new.name, new)
    if first is not new:
        help = f"the first definition is at {place(first.span, new.span)}"
        diagnostics.error(f"component {new.name} is defined twice", new.span, help)


class _Instances:
    """Makes instances.  `path`: the components whose instances are being made."""

    def __init__(self, diagnostics: Diagnostics):
        self.diagnostics = diagnostics
        self.path: list[Definition] = []

    def statements(self, statements: Sequence[ast.Node], scope: Scope) -> Iterator[ast.Node]:
        """Statements outside of components, with the contents of `.init`."""
        seen: dict[str, ast.Init] = {}
        for statement in statements:
            if isinstance(statement, ast.Init):
                yield from self.once(statement, statement.name, scope, seen)
            elif isinstance(statement, ast.Override):
                self.diagnostics.error("`.override` belongs into a component", statement.span)
            else:
                yield statement

    def once(self, init: ast.Init, path: str, scope: Scope, seen: dict[str, ast.Init]) -> Iterator[ast.Node]:
        first = seen.setdefault(init.name, init)
        if first is init:
            yield from self.instance(init, path, scope)
        else:
            help = f"the first `.init {init.name}` is at {place(first.span, init.span)}"
            what = "made twice" if first == init else "an instance of two components"
            self.diagnostics.error(f"{init.name} is {what}", init.span, help)

    def instance(self, init: ast.Init, path: str, scope: Scope) -> Iterator[ast.Node]:
        contents = Contents(path)
        before = len(self.diagnostics.errors)
        parts = self.parts(init.component, scope, contents, frozenset(), ())
        if len(self.diagnostics.errors) > before:
            return
        definition = scope.component(init.component.name)
        assert definition is not None
        if any(definition is other for other in self.path):
            message = f"component {definition.name} contains an instance of itself"
            names = " in ".join(d.name for d in (definition, *reversed(self.path)))
            self.diagnostics.error(message, init.span, f"the instances: {names}")
            return
        self.path.append(definition)
        note = f"in the instance {path} of component {definition.name}"
        inits: dict[str, ast.Init] = {}
        for own, statement in parts:
            if isinstance(statement, ast.Init):
                yield from self.once(statement, f"{path}.{statement.name}", own, inits)
            else:
                yield renamed(statement, own, note)
        self.path.pop()

    def parts(
        self,
        ref: ast.ComponentRef,
        scope: Scope,
        contents: Contents,
        overridden: frozenset[str],
        derived: tuple[str, ...],
    ) -> list[tuple[Scope, ast.Node]]:
        """The statements of a component after those of its bases, each with its scope."""
        definition = scope.component(ref.name)
        if not self.fits(ref, definition, scope, derived):
            return []
        assert definition is not None
        given = {param: (arg, scope) for param, arg in zip(definition.params, ref.args, strict=True)}
        own = Scope(contents, scope, given)
        overrides = {s.predicate: s for s in definition.statements if isinstance(s, ast.Override)}
        for name, component in definition.components.items():
            contents.components[name] = component
        below = [
            part
            for base in definition.bases
            for part in self.parts(
                base, own, contents, overridden | overrides.keys(), (*derived, definition.name)
            )
        ]
        self.check_overrides(definition, overrides, below)
        for statement in definition.statements:
            _declare(statement, contents)
        mine = [
            (own, kept)
            for s in definition.statements
            if not isinstance(s, ast.Override) and (kept := _without(s, overridden)) is not None
        ]
        return below + mine

    def fits(
        self, ref: ast.ComponentRef, definition: Definition | None, scope: Scope, derived: tuple[str, ...]
    ) -> bool:
        return _fits(ref, definition, scope, derived, self.diagnostics)

    def check_overrides(
        self,
        definition: Definition,
        overrides: dict[str, ast.Override],
        below: list[tuple[Scope, ast.Node]],
    ) -> None:
        declared = {s.name: s for _, s in below if isinstance(s, ast.Declaration)}
        for name, override in overrides.items():
            if name not in declared:
                help = did_you_mean(name, declared, f"a base of {definition.name} must declare it")
                self.diagnostics.error(f"no base of {definition.name} declares {name}", override.span, help)
            elif "overridable" not in declared[name].qualifiers:
                where = place(declared[name].span, override.span)
                help = f"add `overridable` to its declaration at {where}"
                self.diagnostics.error(f"{name} cannot be overridden", override.span, help)


def _fits(
    ref: ast.ComponentRef,
    definition: Definition | None,
    scope: Scope,
    derived: tuple[str, ...],
    diagnostics: Diagnostics,
) -> bool:
    """Whether a component exists and takes these parameters; reports it if not."""
    if definition is None:
        help = did_you_mean(ref.name, scope.known(), f"define it: .comp {ref.name} {{ ... }}")
        diagnostics.error(f"unknown component {ref.name}", ref.span, help)
    elif definition.name in derived:
        path = " : ".join((*derived[derived.index(definition.name) :], definition.name))
        message = f"component {definition.name} is its own base"
        diagnostics.error(message, ref.span, f"the bases: {path}")
    elif len(ref.args) != len(definition.params):
        count = len(definition.params)
        need = f"{count or 'no'} parameter{'' if count == 1 else 's'}"
        given = f"{len(ref.args)} {'is' if len(ref.args) == 1 else 'are'} given"
        help = f"{definition.name} is defined at {place(definition.span, ref.span)}"
        diagnostics.error(f"component {ref.name} takes {need}, but {given}", ref.span, help)
    else:
        return True
    return False


def _declare(statement: ast.Node, contents: Contents) -> None:
    if isinstance(statement, ast.Declaration):
        contents.relations.add(statement.name)
    elif isinstance(statement, ast.TypeDeclaration):
        contents.types.add(statement.name)
    elif isinstance(statement, ast.Init):
        contents.inits.add(statement.name)


def _without(statement: ast.Node, overridden: frozenset[str]) -> ast.Node | None:
    """A statement without what it says of overridden predicates; None if nothing is left."""
    if isinstance(statement, ast.Facts):
        return None if statement.predicate in overridden else statement
    if not isinstance(statement, ast.Rule):
        return statement
    heads = tuple(h for h in statement.heads if _head_name(h) not in overridden)
    if len(heads) == len(statement.heads):
        return statement
    return replace(statement, heads=heads) if heads else None


def _head_name(head: ast.Node) -> str:
    atom = head.left if isinstance(head, ast.Comparison) else head
    return atom.name if isinstance(atom, ast.Call | ast.Application) else ""


# Names


def renamed(node: ast.Node, scope: Scope, note: str) -> ast.Node:
    """A node of a component as it is in an instance; its spans say which instance.  O(nodes)."""
    changed: dict[str, Any] = {}
    for part in ast.parts(type(node)):
        value = getattr(node, part)
        if isinstance(value, ast.Node):
            changed[part] = renamed(value, scope, note)
        elif isinstance(value, tuple) and value and isinstance(value[0], ast.Node):
            changed[part] = tuple(renamed(item, scope, note) for item in value)
    match node:
        case ast.Call() | ast.Application() | ast.Declaration():
            changed["name"] = scope.relation(node.name)
        case ast.Facts() | ast.Directive():
            changed["predicate"] = scope.relation(node.predicate)
        case ast.TypeRef() | ast.TypeDeclaration():
            name = scope.type(node.name)
            changed["name"] = CANONICAL_TYPE.get(name, name)
    span = node.span and InstanceSpan(node.span.source, node.span.start, node.span.end, note)
    return replace(node, **changed, span=span)
