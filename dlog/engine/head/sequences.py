"""Owns sequences as rules: which columns of the numbered rows are where in the head.

# f[g, i] = x <- f'rows(g, a, x), i = 0.      with `numbers`: i is the place of (a, x) among those of g

The rows have the groups first, then what they are ordered by.  Knows nothing of transactions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dlog.heads.sequences.sequences import Numbered, numbered
from dlog.ir.rules import Atom, Rule, Stratum
from dlog.jit import Words
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.relation.relation import Relation
from dlog.values import Type


@dataclass(frozen=True)
class Sequence:
    """`sources`: for each argument of the head the column of the rows, -1 for the number."""

    head: str
    rows: str
    n_groups: int
    sources: tuple[int, ...]
    types: tuple[Type, ...]  # of the columns of the rows

    @classmethod
    def of(cls, stratum: Stratum) -> Sequence:
        """REQUIRES: the stratum has a sequence."""
        rule = stratum.sequence
        assert rule is not None
        return sequence_of(rule)

    @property
    def by_codes(self) -> bool:
        """Whether the order of codes is that of the values."""
        return all(type.ordered_codes for type in self.types[self.n_groups :])

    def facts(self, found: Numbered) -> Words:
        """Rows of the head."""
        columns = [found.numbers if source < 0 else found.rows[:, source] for source in self.sources]
        return np.stack(columns, axis=1)

    def order(self, rows: Words, dictionary: Dictionary) -> Words:
        """The places of rows in order.  O(rows log rows), and the order of new texts."""
        keys = [
            rows[:, c] if type.ordered_codes or c < self.n_groups else dictionary.ranks(rows[:, c])[0]
            for c, type in enumerate(self.types)
        ]
        return np.lexsort(keys[::-1])

    def all_facts(self, relation: Relation, dictionary: Dictionary) -> Words:
        """The head's rows for all rows.  O(rows log rows)."""
        rows = relation.rows()
        if not self.by_codes:
            rows = rows[self.order(rows, dictionary)]
        return self.facts(numbered(rows, self.n_groups))

    def row_of(self, relation: Relation, fact: tuple[int, ...], dictionary: Dictionary) -> tuple[int, ...]:
        """The row that a fact of the head numbers.  O(rows log rows)."""
        rows = relation.rows()
        if not self.by_codes:
            rows = rows[self.order(rows, dictionary)]
        found = (self.facts(numbered(rows, self.n_groups)) == np.array(fact)).all(axis=1)
        return tuple(rows[found][0].tolist())


def sequence_of(rule: Rule) -> Sequence:
    (head,) = rule.heads
    atom = next(form for form in rule.body.forms if isinstance(form, Atom))
    names = [getattr(arg, "name", "") for arg in atom.args]
    sources = tuple(names.index(name) if (name := getattr(a, "name", "")) in names else -1 for a in head.args)
    types = tuple(rule.types[name] for name in names)
    return Sequence(head.predicate, atom.predicate, head.n_keys - 1, sources, types)
