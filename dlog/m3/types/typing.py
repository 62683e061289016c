"""Owns how types of M3 relate in each dialect: promotion, comparison, casts.  Knows no scopes and no tree
walk.

None stands for an unknown type, after an error: it fits everywhere, so that one mistake is reported
once.
"""

from __future__ import annotations

from collections.abc import Iterable

from dlog.m3.syntax.ast import A5, DBTOASTER, TypeDefinition, TypeParameter, TypeRef

# Each integer or float type is part of those after it.
NUMERIC: dict[str, tuple[str, ...]] = {
    A5: ("int", "float"),
    DBTOASTER: ("byte", "short", "int", "long", "float", "double"),
}
INTEGERS = ("byte", "short", "int", "long")
FLOATS = ("float", "double")
TEXTS = ("string", "char")
BUILTIN = frozenset((*INTEGERS, *FLOATS, *TEXTS, "date"))


class Types:
    """The types of one program."""

    def __init__(self, dialect: str, definitions: Iterable[TypeDefinition] = ()):
        self.dialect = dialect
        self.order = NUMERIC[dialect]
        self.schemas = {definition.name: definition.schema for definition in definitions}

    def is_number(self, type_: TypeRef | None) -> bool:
        return type_ is None or type_.name in self.order

    def is_ring(self, type_: TypeRef | None) -> bool:
        """Whether values of the type add and multiply: numbers, and user-defined types."""
        return self.is_number(type_) or (type_ is not None and type_.name not in BUILTIN)

    def is_custom(self, type_: TypeRef | None) -> bool:
        return type_ is not None and type_.name not in BUILTIN

    def sum(self, left: TypeRef | None, right: TypeRef | None) -> TypeRef | None:
        """The type of a sum, or None.  REQUIRES: `adds(left, right)`."""
        if left is None or right is None:
            return left or right
        if self.is_custom(left):
            return left if left.params else right
        return left if self.order.index(left.name) >= self.order.index(right.name) else right

    def adds(self, left: TypeRef | None, right: TypeRef | None) -> bool:
        if left is None or right is None:
            return True
        if self.is_custom(left) or self.is_custom(right):
            return same_ring(left, right)
        return self.is_number(left) and self.is_number(right)

    def product(self, left: TypeRef | None, right: TypeRef | None) -> TypeRef | None:
        """The type of a product.  REQUIRES: `multiplies(left, right)`."""
        if left is None or right is None:
            return left or right
        if self.is_custom(left) and self.is_custom(right):
            return self._joined(left, right)
        if self.is_custom(left) or self.is_custom(right):
            return left if self.is_custom(left) else right
        return self.sum(left, right)

    def multiplies(self, left: TypeRef | None, right: TypeRef | None) -> bool:
        """Numbers with numbers; elements of one ring; and an element with a number (whether the ring has
        products with floats is known when the program runs).
        """
        if left is None or right is None:
            return True
        if self.is_custom(left) and self.is_custom(right):
            return left.name == right.name
        if self.is_custom(left) or self.is_custom(right):
            return self.is_number(right if self.is_custom(left) else left)
        return self.is_number(left) and self.is_number(right)

    def compares(self, left: TypeRef | None, right: TypeRef | None) -> bool:
        """Whether = and < make sense between values of two types."""
        if left is None or right is None:
            return True
        names = {left.name, right.name}
        if self.is_number(left) and self.is_number(right):
            return True
        if names <= set(TEXTS) or names == {"date"}:
            return True
        return self.dialect == DBTOASTER and "date" in names and bool(names & {"int", "long"})

    def fits(self, value: TypeRef | None, target: TypeRef | None) -> bool:
        """Whether every value of one type is one of the other: integers widen, and become floats."""
        if value is None or target is None or value == target:
            return True
        if self.is_custom(value) or self.is_custom(target):
            return same_ring(value, target)
        if value.name in self.order and target.name in self.order:
            return self.order.index(value.name) <= self.order.index(target.name)
        return value.name == "char" and target.name == "string"

    def _joined(self, left: TypeRef, right: TypeRef) -> TypeRef:
        """The parameters of a product, as the type's schema says; none if it does not say enough."""
        schema = self.schemas.get(left.name, ())
        if left.params == right.params:
            pairs: list[TypeParameter | None] = [
                _combined(how, a, b) for how, a, b in zip(schema, left.params, right.params, strict=False)
            ]
            if len(schema) != len(left.params):
                return left
        elif len(schema) == len(left.params) == len(right.params):
            pairs = [
                _combined(how, a, b) for how, a, b in zip(schema, left.params, right.params, strict=True)
            ]
        else:
            return TypeRef(left.name)
        known = tuple(p for p in pairs if p is not None)
        return TypeRef(left.name, known if len(known) == len(pairs) else ())


def _combined(how: str, left: TypeParameter, right: TypeParameter) -> TypeParameter | None:
    if how == "static":
        return left if left == right else None
    if isinstance(left, int) and isinstance(right, int):
        if how == "dynamic_sum":
            return left + right
        if how == "dynamic_min":
            return min(left, right)
    return None


def same_ring(left: TypeRef, right: TypeRef) -> bool:
    """Parameters count where both are known."""
    return left.name == right.name and (left.params == right.params or not (left.params and right.params))
