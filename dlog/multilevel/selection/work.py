"""Owns estimates of the time a statement takes for one row: loops over entries, look-ups, range reads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import Names, inputs, outputs, visible
from dlog.multilevel.selection.sizes import RANGE, Size, selectivity

# Microseconds, from one-row changes of the workload of benchmarks/levels.py.
STATEMENT = 0.02
LOOK_UP = 0.03
LOOP = 0.2  # to begin to read entries by some of their keys
ENTRY = 0.02  # that is read so
STEP = 0.02  # of a tree, in a range read or when an entry of an ordered map changes
ADD = 0.03
INEQUALITIES = ("<", "<=", ">", ">=")


@dataclass
class Reads:
    """How maps are read: by which keys, if not by all, and by ranges of which."""

    keys: set[tuple[str, tuple[int, ...]]] = field(default_factory=set)
    ranges: set[tuple[str, int]] = field(default_factory=set)


@dataclass(frozen=True)
class Work:
    """`time` in microseconds without the target; `rows`, how many are added to it."""

    time: float
    rows: float
    reads: Reads


def work(right: Node, bound: Names, wanted: Names, sizes: Mapping[str, Size]) -> Work:
    """Of a right side as M3 reads it.  `bound`: parameters of the event, `wanted`: keys of the target;
    `sizes` by map, whose domains are in the order of its keys.  What is not there is a map of a batch, with
    one row.
    """
    walk = _Walk(sizes)
    rows = walk.rows(right, bound, wanted, 1.0)
    return Work(walk.time, rows, walk.reads)


def corrected(found: Work, factor: float) -> Work:
    """The same with so many times as many rows.

    >>> corrected(Work(STATEMENT + 1.5, 3, Reads()), 2)
    Work(time=3.02, rows=6, reads=Reads(keys=set(), ranges=set()))
    """
    time = STATEMENT + factor * (found.time - STATEMENT)
    return Work(time, factor * found.rows, found.reads)


class _Walk:
    def __init__(self, sizes: Mapping[str, Size]):
        self.sizes, self.time, self.reads = sizes, STATEMENT, Reads()
        self.domains: dict[str, float] = {}

    def rows(self, node: Node, bound: Names, wanted: Names, n: float) -> float:
        """How many rows there are after an expression is joined to `n` rows.  `wanted`: the names that are
        used outside.
        """
        match node:
            case ast.Product():
                return self._product(node.factors, bound, wanted, n)
            case ast.Sum():
                return sum(self.rows(term, bound, wanted, n) for term in node.terms)
            case ast.AggSum():
                return self._sum(node, bound, n)
            case ast.MapAccess():
                return self._access(node, bound, n)
            case ast.Exists() | ast.Domain():
                return self.rows(node.body, bound, wanted | outputs(node), n)
            case ast.Lift():
                return self._lift(node, bound, n)
            case ast.Comparison():
                self._inside(node, bound, n)
                return n * selectivity(node, self.domains)
            case ast.In() | ast.Call():
                self._inside(node, bound, n)
                return n * selectivity(node, self.domains)
        return n

    def _inside(self, node: Node, bound: Names, n: float) -> None:
        for child in node.children():
            self.rows(child, bound, outputs(child), n)

    def _lift(self, node: ast.Lift, bound: Names, n: float) -> float:
        self.rows(node.body, bound, bound, n)
        self.domains.setdefault(node.variable.name, 1.0 if not visible(node.body) else 1000.0)
        return n

    def _sum(self, node: ast.AggSum, bound: Names, n: float) -> float:
        keys = outputs(node)
        rows = self.rows(node.body, bound, keys, n)
        groups = math.prod(self.domains.get(k, 1.0) for k in keys - bound)
        return min(rows, n * groups)

    def _product(self, factors: tuple[Node, ...], bound: Names, wanted: Names, n: float) -> float:
        left = list(factors)
        while left:
            batch = (f for f in left if inputs(f) <= bound and self._is_batch(f, bound))
            factor = next(batch, left[0])
            left = [f for f in left if f is not factor]
            if isinstance(factor, ast.MapAccess):
                ranges = [f for f in left if self._key(f, factor, bound)]
                if ranges:
                    left = [f for f in left if not any(f is r for r in ranges)]
                    n = self._range(factor, ranges, left, bound, wanted, n)
                    bound |= outputs(factor)
                    continue
            n = self.rows(factor, bound, wanted.union(*map(visible, left)), n)
            rows = (f for f in factor.walk() if isinstance(f, ast.DeltaRelation))
            bound = bound.union(outputs(factor), *map(outputs, rows))
        return n

    def _is_batch(self, node: Node, bound: Names) -> bool:
        """Whether it has only rows of a batch, which the machine joins first."""
        if visible(node) <= bound:
            return False
        match node:
            case ast.DeltaRelation():
                return True
            case ast.MapAccess():
                return node.name not in self.sizes
            case ast.Product():
                return any(self._is_batch(f, bound) for f in node.factors)
            case ast.Sum():
                return all(self._is_batch(term, bound) for term in node.terms)
            case ast.AggSum() | ast.Exists() | ast.Domain():
                return self._is_batch(node.body, bound)
        return False

    # ---- reads of maps

    def _places(self, access: ast.MapAccess, bound: Names) -> tuple[int, ...]:
        return tuple(i for i, k in enumerate(access.keys) if k.name in bound)

    def _matches(self, access: ast.MapAccess, places: tuple[int, ...]) -> float:
        """The entries that agree; the domains of its keys are noted."""
        size = self.sizes.get(access.name)
        if size is None:
            return 1.0
        domains = list(size.domains.items())
        for key, (_, values) in zip(access.keys, domains, strict=True):
            self.domains[key.name] = min(values, self.domains.get(key.name, values))
        return size.matches(domains[i][0] for i in places)

    def _access(self, access: ast.MapAccess, bound: Names, n: float) -> float:
        places = self._places(access, bound)
        matches = self._matches(access, places)
        if len(places) == len(access.keys):
            self.time += n * LOOK_UP
            return n * min(matches, 1.0)
        if places:
            self.reads.keys.add((access.name, places))
        self.time += n * (LOOP + matches * ENTRY)
        return n * matches

    # ---- ranges

    def _key(self, factor: Node, access: ast.MapAccess, bound: Names) -> str | None:
        """The key of a map that a comparison, or a sum of comparisons, restricts to a range."""
        parts = [n for n in factor.walk() if isinstance(n, ast.Comparison)]
        is_range = isinstance(factor, ast.Comparison | ast.Sum) and not outputs(factor)
        if not is_range or not parts or any(p.op not in INEQUALITIES for p in parts):
            return None
        new = outputs(access) - bound
        keys = {s.name for p in parts for s in (p.left, p.right) if isinstance(s, ast.Variable)} & new
        if len(keys) != 1 or inputs(factor) - bound - keys:
            return None
        return next(iter(keys))

    def _range(
        self,
        access: ast.MapAccess,
        ranges: list[Node],
        left: list[Node],
        bound: Names,
        wanted: Names,
        n: float,
    ) -> float:
        """A sum over a range, if its keys are used nowhere else; else the entries in the range are read.
        Between an old and a new bound there are few.
        """
        places = self._places(access, bound)
        key = next(k for f in ranges if (k := self._key(f, access, bound)))
        matches = self._matches(access, places)
        self.reads.ranges.add((access.name, [k.name for k in access.keys].index(key)))
        for factor in ranges:
            self._inside(factor, bound | outputs(access), n)
        self.time += n * STEP * math.log2(matches + 2)
        if not (outputs(access) - bound) & wanted.union(*map(visible, left)):
            return n
        moved = any(isinstance(f, ast.Sum) for f in ranges)
        share = 1 / max(self.domains.get(key, 1.0), 1.0) if moved else RANGE
        read = min(matches, matches * share + 1) if moved else matches * share
        self.time += n * (LOOP + read * ENTRY)
        return n * read


def written(rows: float, is_ordered: bool, entries: float) -> float:
    """The time to add rows to a map of so many entries."""
    return rows * (ADD + (STEP * math.log2(entries + 2) if is_ordered else 0.0))


def slot_words(keys: int, value: int, indices: int, orders: int) -> int:
    """Words for an entry of a map: in its table, with a link and a head for each index, and in its trees."""
    return keys + value + 2 * indices + orders * 2 * (keys + value)
