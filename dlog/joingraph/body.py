"""Owns what a join graph is made for: a conjunction of atoms and comparisons over codes.

Meaning.  An *assignment* gives every variable a code such that each atom's row is in its relation and all
comparisons hold.  The *view* is the bag of the output variables of all assignments.  A relation that occurs
twice is two atoms.  Codes are compared as signed integers, so a caller compares codes of types whose codes
are in the order of their values.

    # timeline(u, f, t) <- follower(u, f), tweet(u, t, d), d > 7.
    Body((Atom("follower", ("u", "f")), Atom("tweet", ("u", "t", "d"))), ("u", "f", "t"),
         (Comparison(">", "d", 7),))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

Operand: TypeAlias = str | int  # a variable, or a code

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Atom:
    """One occurrence of a relation; a variable may occur twice."""

    relation: str
    args: tuple[Operand, ...]

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(a for a in self.args if isinstance(a, str)))

    def column(self, variable: str) -> int:
        """The first column of a variable."""
        return self.args.index(variable)

    def __str__(self) -> str:
        return f"{self.relation}({', '.join(map(str, self.args))})"


@dataclass(frozen=True)
class Comparison:
    op: str
    left: Operand
    right: Operand

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(side for side in (self.left, self.right) if isinstance(side, str))

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True)
class Body:
    """REQUIRES: outputs and comparisons have variables of atoms; outputs are distinct."""

    atoms: tuple[Atom, ...]
    outputs: tuple[str, ...]
    comparisons: tuple[Comparison, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(v for atom in self.atoms for v in atom.variables))

    @property
    def relations(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(atom.relation for atom in self.atoms))

    def check(self) -> None:
        known = set(self.variables)
        assert set(self.outputs) <= known, "an output is in no atom"
        assert len(set(self.outputs)) == len(self.outputs), "an output occurs twice"
        for comparison in self.comparisons:
            assert comparison.op in COMPARISONS and comparison.variables, str(comparison)
            assert comparison.variables <= known, f"{comparison}: a variable is in no atom"

    def __iter__(self) -> Iterator[Atom]:
        return iter(self.atoms)
