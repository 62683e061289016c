"""Owns type names: the built-in types, and Soufflé's subtypes and unions as names for one of them."""

from __future__ import annotations

from collections.abc import Iterable

from dlog.errors import Diagnostics, did_you_mean, place
from dlog.language import ast
from dlog.language.foreign import type_help
from dlog.values import BUILTIN_TYPES, DECIMAL, MAX_PRECISION, RESERVED_TYPES, Type, decimal


class NamedTypes:
    """Resolves type names.  A name whose declaration is wrong resolves to None: it was reported."""

    def __init__(self, declarations: Iterable[ast.TypeDeclaration], diagnostics: Diagnostics):
        self.diagnostics = diagnostics
        self.declarations: dict[str, ast.TypeDeclaration] = {}
        self.known: dict[str, Type | None] = dict(BUILTIN_TYPES)
        for declaration in declarations:
            self.declare(declaration)
            if declaration.name not in RESERVED_TYPES:
                self.known.pop(declaration.name, None)
        for name in self.declarations:
            self.base(name, ())

    def declare(self, declaration: ast.TypeDeclaration) -> None:
        first = self.declarations.setdefault(declaration.name, declaration)
        if declaration.name in RESERVED_TYPES:
            del self.declarations[declaration.name]
            self.diagnostics.error(
                f"{declaration.name} is a built-in type", declaration.span, "choose another name"
            )
        elif first is not declaration and first != declaration:
            help = f"the first declaration is at {place(first.span, declaration.span)}"
            self.diagnostics.error(f"type {declaration.name} is declared twice", declaration.span, help)

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
            self.diagnostics.error(
                f"{reference.name} takes no sizes", reference.span, "only decimal(p, s) does"
            )
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

    def reference(self, reference: ast.TypeRef, path: tuple[str, ...]) -> Type | None:
        if reference.params or reference.name not in self.declarations:
            return self.resolve(reference)
        return self.base(reference.name, path)

    def common(self, declaration: ast.TypeDeclaration, bases: list[Type | None]) -> Type | None:
        if None in bases or not bases:
            return None
        if len(set(bases)) > 1:
            names = " and ".join(sorted({str(b) for b in bases}))
            help = "all parts of a union must be of one built-in type"
            self.diagnostics.error(f"type {declaration.name} mixes {names}", declaration.span, help)
            return None
        return bases[0]
