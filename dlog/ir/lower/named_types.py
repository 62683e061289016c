"""Owns type names: the built-in types, Soufflé's subtypes and unions as names for one of them, and the types
of records, each with its constructors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dlog.errors import Diagnostics, did_you_mean, place
from dlog.language import ast
from dlog.language.foreign import type_help
from dlog.language.printing import format_node
from dlog.values import (
    BUILTIN_TYPES,
    DECIMAL,
    FLOAT,
    INT,
    MAX_PRECISION,
    TYPES,
    UNSIGNED,
    Constructor,
    RecordType,
    Type,
    decimal,
)

# The names of types that other names stand for; those that are Soufflé's own have no other meaning there.
_TAKEN = frozenset(name for type in TYPES if len(type.names) > 1 for name in type.names) | {
    UNSIGNED.name,
    FLOAT.name,
}


def _is_same(declaration: ast.TypeDeclaration) -> bool:
    """`.type string = symbol`: a name for the type that already has it."""
    bases = {base.name for base in declaration.bases}
    return declaration.name in BUILTIN_TYPES and bases == {declaration.name}


class NamedTypes:
    """Resolves type names.  A name whose declaration is wrong resolves to None: it was reported."""

    def __init__(self, declarations: Iterable[ast.TypeDeclaration], diagnostics: Diagnostics):
        self.diagnostics = diagnostics
        self.declarations: dict[str, ast.TypeDeclaration] = {}
        self.known: dict[str, Type | None] = dict(BUILTIN_TYPES)
        for declaration in declarations:
            if not _is_same(declaration):
                self.declare(declaration)
                if declaration.name not in _TAKEN:
                    self.known.pop(declaration.name, None)
        self.branches: dict[str, str] = {}  # the type that each branch belongs to
        self._declare_records()
        for name in self.declarations:
            self.base(name, ())
        self._define_records()

    def declare(self, declaration: ast.TypeDeclaration) -> None:
        first = self.declarations.setdefault(declaration.name, declaration)
        if declaration.name in _TAKEN:
            del self.declarations[declaration.name]
            self.diagnostics.error(
                f"{declaration.name} is a built-in type", declaration.span, "choose another name"
            )
        elif first is not declaration and (first != declaration or first.span != declaration.span):
            help = f"the first declaration is at {place(first.span, declaration.span)}"
            self.diagnostics.error(f"type {declaration.name} is declared twice", declaration.span, help)

    # Records

    def record(self, name: str) -> RecordType | None:
        """The type of records with this name."""
        type = self.known.get(name)
        return type if isinstance(type, RecordType) else None

    def owner(self, literal: object) -> str | None:
        """The type of a literal that begins with a branch."""
        branch = re.match(r"\$([?\w.]+)", str(literal))
        return self.branches.get(branch.group(1)) if branch else None

    def _declare_records(self) -> None:
        """Types without their constructors, which may mention any of them."""
        self._records = [d for d in self.declarations.values() if d.branches]
        self._definitions: dict[str, tuple[Constructor, ...]] = {}
        for declaration in self._records:
            signature = "\n".join(sorted(self._mentioned(declaration)))
            self.known[declaration.name] = RecordType(
                declaration.name, signature=signature, definitions=self._definitions
            )

    def _mentioned(self, declaration: ast.TypeDeclaration) -> list[str]:
        """The text of a declaration, and of all that it mentions."""
        found, todo = {declaration.name: declaration}, [declaration]
        while todo:
            for node in todo.pop().walk():
                if isinstance(node, ast.TypeRef) and node.name in self.declarations.keys() - found.keys():
                    found[node.name] = self.declarations[node.name]
                    todo.append(found[node.name])
        return [format_node(declaration) for declaration in found.values()]

    def _define_records(self) -> None:
        for declaration in self._records:
            name, seen = declaration.name, set[str]()
            constructors = []
            for branch in declaration.branches:
                owner = self.branches.get(branch.name, name)
                if branch.name in seen or owner != name:
                    help = "the branches of all types have different names"
                    self.diagnostics.error(f"{branch.name} is already a branch of {owner}", branch.span, help)
                elif branch.name:
                    self.branches[branch.name] = name
                seen.add(branch.name)
                constructors.append(Constructor(branch.name, self._fields(branch)))
            self._definitions[name] = tuple(constructors)

    def _fields(self, branch: ast.BranchType) -> tuple[tuple[str, Type], ...]:
        fields: dict[str, Type] = {}
        for parameter in branch.fields:
            assert parameter.type is not None
            type = self.resolve(parameter.type) or INT
            if type.no_field:
                message = f"a field cannot be {type.called} yet"
                self.diagnostics.error(message, parameter.type.span, type.no_field)
            if parameter.name in fields:
                message = f"two fields are called {parameter.name}"
                self.diagnostics.error(message, parameter.span, "give each field a different name")
            fields[parameter.name] = type
        return tuple(fields.items())

    def resolve(self, reference: ast.TypeRef) -> Type | None:
        """The built-in type of a reference, None when it has none (and that was reported)."""
        if reference.name not in self.known:
            otherwise = f"declare it: .type {reference.name} <: symbol"
            meant = type_help(reference.name) or did_you_mean(
                reference.name, {*self.known, *self.declarations}, otherwise
            )
            self.diagnostics.error(f"unknown type {reference.name}", reference.span, meant)
            return None
        if reference.params:
            return self.sized(reference)
        return self.known[reference.name]

    def sized(self, reference: ast.TypeRef) -> Type | None:
        """`decimal(p, s)`, or `decimal(p)` with the usual digits after the point."""
        sizes = reference.params
        if reference.name != "decimal":
            help = "only decimal(p, s) does"
            if reference.name in ("int", "unsigned", "float"):
                help = f"only in the declaration of a predicate, as in p(x) -> {reference.name}[32](x)."
            self.diagnostics.error(f"{reference.name} takes no sizes here", reference.span, help)
            return None
        precision, scale = (*sizes, min(sizes[0], DECIMAL.scale))[:2]
        if len(sizes) > 2 or not 0 <= scale <= precision <= MAX_PRECISION or precision == 0:
            shown = f"decimal({', '.join(map(str, sizes))})"
            help = f"write decimal(p, s) with s digits after the point, 0 <= s <= p <= {MAX_PRECISION}"
            self.diagnostics.error(f"bad sizes: {shown}", reference.span, help)
            return None
        return decimal(precision, scale)

    def base(self, name: str, path: tuple[str, ...]) -> Type | None:
        """The built-in type of a declared name, found through the names in its declaration."""
        if name in self.known:
            return self.known[name]
        if name in path:
            cycle = " <: ".join((*path[path.index(name) :], name))
            help = "a type must derive from a built-in type, directly or through other types"
            self.diagnostics.error(
                f"type {name} is declared in terms of itself: {cycle}", self.declarations[name].span, help
            )
            self.known.update(dict.fromkeys(path))
            return None
        declaration = self.declarations[name]
        bases = [self.reference(reference, (*path, name)) for reference in declaration.bases]
        if name not in self.known:
            self.known[name] = self.common(declaration, bases)
        return self.known[name]

    def _not_a_base(self, name: str) -> str | None:
        """Why a type has no subtypes: it is a union, or it has records."""
        declaration = self.declarations.get(name)
        if declaration is None or declaration.kind == "subtype":
            return None
        if declaration.branches:
            return f"{name}, a type of records"
        if len(declaration.bases) == 1:
            return self._not_a_base(declaration.bases[0].name)
        return f"{name}, a union"

    def reference(self, reference: ast.TypeRef, path: tuple[str, ...]) -> Type | None:
        if reference.params or reference.name not in self.declarations:
            return self.resolve(reference)
        return self.base(reference.name, path)

    def common(self, declaration: ast.TypeDeclaration, bases: list[Type | None]) -> Type | None:
        if None in bases or not bases:
            return None
        if declaration.kind == "subtype" and (what := self._not_a_base(declaration.bases[0].name)):
            message = f"type {declaration.name} cannot be a subtype of {what}"
            help = "the base of a subtype is a built-in type or another subtype"
            self.diagnostics.error(message, declaration.span, help)
        if len(set(bases)) > 1:
            names = " and ".join(sorted({str(b) for b in bases}))
            help = "all parts of a union must be of one built-in type"
            self.diagnostics.error(f"type {declaration.name} mixes {names}", declaration.span, help)
            return None
        return bases[0]
