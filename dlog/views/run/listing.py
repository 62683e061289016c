"""Owns a running listing: the relation that joins give, maintained by its factors and listed without being
stored.  Changes in, rows out.  Knows no text.

Correct output: every row of the free variables that some assignment has, once, in ascending order of the
variables as the variable order has them, those above first; texts in the order in which they first came.  A
listing that has begun shows the relation as it was then, whatever changes later.

Costs.  A change costs its path, as far up as something appears or disappears.  The first row, and each after
it, takes one step down the factors for each variable: O(variables * log(rows of a factor)), whatever the size
of the result is, since no step fails.

>>> from dlog.views.sql.files import parse_sql
>>> listing = Listing(parse_sql('''
...     CREATE STREAM R(a int, b int); CREATE STREAM S(b int, c int);
...     SELECT DISTINCT b, a, c FROM R NATURAL JOIN S;'''))
>>> listing.apply("R", [(1, 7), (2, 7), (5, 8)])
>>> listing.apply("S", [(7, 10), (7, 11)])
>>> list(listing.rows())
[(7, 1, 10), (7, 1, 11), (7, 2, 10), (7, 2, 11)]
>>> listing.apply("R", [(1, 7)], [-1])
>>> next(listing.rows())
(7, 2, 10)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dlog.errors import DlogError, did_you_mean
from dlog.io import to_arrow
from dlog.jit import Words
from dlog.lftj.assemble import assemble
from dlog.lftj.plan import Emit, Leap, Plan, Seek, Step
from dlog.lftj.triejoin import Join
from dlog.m3.runtime.compile.values import KEY_TYPES, kind_of
from dlog.m3.runtime.encoding import columns_of, multiplicities_of
from dlog.m3.runtime.runtime import Runtime
from dlog.m3.runtime.streams import Progress, Reader, run_files
from dlog.m3.syntax import ast
from dlog.storage.arena.arena import Arena
from dlog.storage.relation.relation import Relation
from dlog.storage.values import decode
from dlog.views.m3.factors import factor_name, factor_program
from dlog.views.orders.factors import factorisation
from dlog.views.query import Query
from dlog.views.tree.tree import VariableOrder

MOST_ROWS = 1 << 16  # of one batch
FEW = 16  # rows that are listed before the first is given


class Listing:
    """A query without aggregates and its factors.  Tables and streams may change."""

    def __init__(
        self,
        query: Query,
        order: VariableOrder | None = None,
        sizes: Mapping[str, int] | None = None,
        stored: bool = False,
    ):
        """`stored`: the factors are maps of the program, too."""
        query.check()
        self.query = query
        self.factorisation = factorisation(query, order, sizes)
        program, self._changes = factor_program(self.factorisation, stored)
        self.runtime = Runtime(program, checked=True)
        self._nodes = self.factorisation.listed
        self._arena = Arena()
        self.factors = {n.variable: Relation(self._arena, len(n.depends) + 1) for n in self._nodes}
        self._assembled = assemble(self._plan())
        self.steps = 0  # done by listings so far: seeks and moves in factors

    @classmethod
    def of_files(
        cls,
        query: Query,
        reader: Reader,
        order: VariableOrder | None = None,
        progress: Progress | None = None,
    ) -> Listing:
        """With the rows of the files that the query names."""
        listing = cls(query, order, stored=True)
        run_files(listing.runtime, reader, MOST_ROWS, progress)
        for node in listing._nodes:
            rows = listing._entries(factor_name(node.variable))[:-1].T
            listing.factors[node.variable] = Relation.build(listing._arena, rows, len(node.depends) + 1)
        return listing

    @property
    def columns(self) -> tuple[str, ...]:
        return self.query.free

    @property
    def order(self) -> tuple[str, ...]:
        """The variables in whose order rows come."""
        return tuple(node.variable for node in self._nodes)

    def __len__(self) -> int:
        """The number of rows that factors store; the result may have many more."""
        return sum(map(len, self.factors.values()))

    # ---- changes

    def load(self, table: str, rows: Any) -> None:
        self.apply(table, rows)

    def apply(self, relation: str, rows: Any, multiplicities: Any = None) -> None:
        """Rows that are inserted, or deleted where their multiplicity is -1."""
        source = self._source(relation)
        table = to_arrow(rows, columns_of(source), relation)
        given = multiplicities_of(multiplicities, table.num_rows)
        words = self.runtime.encode_table(source, table, given)
        for start in range(0, words.shape[1], MOST_ROWS):
            self.apply_words(relation, np.ascontiguousarray(words[:, start : start + MOST_ROWS]))

    def apply_words(self, relation: str, words: Words) -> None:
        """The same of encoded columns, (columns + 1, rows), as `Runtime.apply_words`."""
        self.runtime.apply_words(relation, words)
        for variable, name in self._changes.maps[relation]:
            entries = self._entries(name)
            if entries.shape[1]:
                keys, signs = entries[:-1].T, entries[-1]
                factor = self.factors[variable]
                self.factors[variable] = factor.apply(keys[signs > 0], keys[signs < 0])[0]

    # ---- rows

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows, one after the other, as Python values."""
        kinds = [KEY_TYPES[kind_of(self.query.type_of(v))] for v in self.query.free]
        for words in self.batches():
            columns = [
                decode(c, t, self.runtime.dictionary).to_pylist() for c, t in zip(words, kinds, strict=True)
            ]
            yield from zip(*columns, strict=True)

    def batches(self) -> Iterator[Words]:
        """The rows as codes, (columns, rows): few at first, then more at a time."""
        if not self._is_possible():
            return
        held = [self.factors[node.variable] for node in self._nodes]  # versions stay while they are listed
        indices = [factor.index(range(factor.arity)) for factor in held]
        join = Join(self._assembled, self._arena.A, [index.root for index in indices])
        before = 0
        for words, n in join.buffers(first=FEW):
            done = join.counters()
            self.steps, before = self.steps + done.seeks + done.nexts - before, done.seeks + done.nexts
            yield words[:, :n]

    def _is_possible(self) -> bool:
        """Parts that share no variable with another: each must have a row."""
        for node in self.factorisation.order.roots:
            free = self.factors.get(node.variable)
            if not (len(free) if free is not None else self._exists(f"AGG_VIEW_{node.variable}")):
                return False
        bare = (leaf for leaf in self.factorisation.leaves.values() if not leaf.keys)
        return all(self._exists(f"VIEW_{leaf.atom.name}") for leaf in bare)

    def _exists(self, name: str) -> bool:
        return bool(self._entries(name).shape[1])

    def _entries(self, name: str) -> Words:
        return self.runtime.maps.entries(self.runtime.compiled.stores.map(name).number)

    def _source(self, name: str) -> ast.Source:
        source = self.runtime.program.source(name)
        if source is None:
            known = [s.name for s in self.runtime.program.sources]
            raise DlogError(f"there is no relation {name}", help=did_you_mean(name, known))
        return source

    def _plan(self) -> Plan:
        """One variable after the other: its values in its own factor, then down in those that need it."""
        slots = {variable: slot for slot, variable in enumerate(self.order)}
        keys = [(*node.depends, node.variable) for node in self._nodes]
        steps: list[Step] = []
        for own, (variable, slot) in enumerate(slots.items()):
            steps.append(Leap(slot, ((own, len(keys[own]) - 1),)))
            below = (atom for atom in range(own + 1, len(keys)) if variable in keys[atom])
            steps += [Seek(atom, keys[atom].index(variable), slot) for atom in below]
        steps.append(Emit(tuple(slots[v] for v in self.query.free)))
        return Plan(tuple(map(len, keys)), tuple(steps))

    def check(self) -> None:
        """Assert that no factor has a value without a continuation, and that maps are consistent."""
        self.runtime.check()
        for node in self._nodes:
            names = (*node.depends, node.variable)
            rows = self.factors[node.variable].rows()
            for child in node.children:
                if child.variable in self.factors:
                    above = rows[:, [names.index(v) for v in child.depends]].tolist()
                    below = self.factors[child.variable].rows()[:, : len(child.depends)].tolist()
                    assert set(map(tuple, above)) <= set(map(tuple, below))
