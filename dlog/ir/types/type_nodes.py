"""Owns types that are not known yet: which built-in types remain possible, and why.

A node represents the type of a column, a variable or a literal.  Nodes that must have the same type are
joined (union-find).  Restrictions only remove candidates, so the result does not depend on their order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dlog.aggregates.aggregate import SUMMED
from dlog.errors import place
from dlog.ir.lower.literals import CANDIDATES
from dlog.ir.primitives import ANY, DATES, NUMERIC, RECORD, VALUES
from dlog.language.source import Span

Candidates = tuple[str, ...]
_KEPT_REASONS = 8


@dataclass(frozen=True)
class Reason:
    """Why a node has the types it has: what restricted it to which candidates, and where."""

    what: str
    candidates: Candidates
    span: Span | None


class Node:
    """One unknown type.  A `spoiled` one was reported, and is ignored from then on."""

    __slots__ = ("candidates", "declared", "parent", "reasons", "spoiled")

    def __init__(self, candidates: Candidates = ANY, reason: Reason | None = None, declared: bool = False):
        self.parent: Node | None = None
        self.candidates = candidates
        self.reasons = [reason] if reason else []
        self.declared = declared
        self.spoiled = False

    def find(self) -> Node:
        """The node that represents all it was joined with.  Amortised O(log n): paths are halved."""
        node = self
        while node.parent is not None:
            if node.parent.parent is not None:
                node.parent = node.parent.parent
            node = node.parent
        return node

    @property
    def settled(self) -> bool:
        return len(self.find().candidates) == 1

    @property
    def only(self) -> str:
        """REQUIRES: settled."""
        (name,) = self.find().candidates
        return name

    def against(self, candidates: Candidates) -> Reason | None:
        """The reason that rules out some candidates: one that excludes all of them, if there is one."""
        reasons = self.find().reasons
        for reason in reasons:
            if not common(reason.candidates, candidates):
                return reason
        return reasons[-1] if reasons else None


def common(a: Candidates, b: Candidates) -> Candidates:
    """The types in both.  RECORD has every type of records.

    >>> common(("int", RECORD), ("int", "List"))
    ('int', 'List')
    """
    both = tuple(c for c in a if c in b or (RECORD in b and c not in ANY))
    return (*both, *(c for c in b if RECORD in a and c not in ANY and c not in both))


def restrict(node: Node, candidates: Candidates, reason: Reason | None = None) -> bool:
    """Restricts the candidates; False, with nothing changed, when none would be left."""
    root = node.find()
    left = common(root.candidates, candidates)
    if not left:
        return root.spoiled
    if left != root.candidates:
        root.candidates = left
        if reason is not None and len(root.reasons) < _KEPT_REASONS:
            root.reasons.append(reason)
    return True


def join(a: Node, b: Node) -> bool:
    """Makes two nodes one; False, with nothing changed, when they have no type in common."""
    a, b = a.find(), b.find()
    if a is b or a.spoiled or b.spoiled:
        return True
    both = common(a.candidates, b.candidates)
    if not both:
        return False
    b.parent = a
    a.candidates = both
    a.declared |= b.declared
    a.reasons = (a.reasons + b.reasons)[:_KEPT_REASONS]
    return True


def because(name: str, reason: Reason | None, span: Span | None) -> str | None:
    """Why something has its type, unless the message points there anyway."""
    if reason is None or reason.span is None or (span is not None and reason.span.start == span.start):
        return None
    return f"{name} is {spell(reason.candidates)} by {reason.what} at {place(reason.span, span)}"


def spell(candidates: Iterable[str]) -> str:
    """The name of a set of types in messages."""
    names = tuple(candidates)
    special = {
        frozenset(ANY): "any value",
        frozenset(VALUES): "a value other than a record",
        frozenset(DATES): "a date",
        frozenset(SUMMED): "a number or a duration",
        frozenset(CANDIDATES["string"]): "string",
    }
    if frozenset(names) not in special and set(NUMERIC) <= set(names) and "string" not in names:
        return "a number"  # what arithmetic accepts before more is known
    return special.get(frozenset(names)) or listed(names)


def listed(names: tuple[str, ...]) -> str:
    """
    >>> listed(("int", "float", "decimal"))
    'int, float or decimal'
    """
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
