"""Owns `T(x), !S(x)` where S is known to be a subset of T and nearly all of it: the few rows of T that S
lacks.

Correct output: the rows of T that S lacks, found by comparing counts (`dlog.storage.diff.complement`).
Knows that S is a subset of T from the rules (`dlog.ir.analysis.inclusions`) and from S having no base facts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dlog.engine.body.table import Table
from dlog.engine.state.store import Store
from dlog.ir.rules import Atom, Negation, Var
from dlog.planning.options import ALWAYS, NEVER
from dlog.planning.pipeline import Join
from dlog.planning.versions import facts_name
from dlog.storage.diff.complement import complement

# A row that is missing is found in 10 us, a row of T is looked up in S in 0.1 us.
SPARSE = 256


@dataclass(frozen=True)
class Complement:
    """Two forms of a join and the join without them."""

    whole: Atom
    part: Atom
    rest: Join

    def is_sparse(self, store: Store) -> bool:
        """Whether S is a subset of T, and few rows are missing.  Reads sizes only."""
        whole, part = self.whole.predicate, self.part.predicate
        facts = store.relations.get(facts_name(part))
        if (part, whole) not in store.inclusions or facts is None or len(facts):
            return False
        if store.options.complements == NEVER or self._order(store) is None:
            return False
        missing = store.rows(whole) - store.rows(part)
        return store.options.complements == ALWAYS or missing * SPARSE < store.rows(whole)

    def table(self, store: Store) -> Table:
        """The rows of T that S lacks.  REQUIRES: is_sparse."""
        order = self._order(store)
        assert order is not None
        whole, part = (store.relations[a.predicate].index(order) for a in (self.whole, self.part))
        names = tuple(v.name for v in self.whole.args if isinstance(v, Var))
        rows = complement(whole, part)
        return Table(len(rows), {names[c]: rows[:, i].copy() for i, c in enumerate(order)})

    def _order(self, store: Store) -> tuple[int, ...] | None:
        """A column order that both have."""
        there = store.orders(self.part.predicate)
        return next((order for order in store.orders(self.whole.predicate) if order in there), None)

    def __str__(self) -> str:
        return f"{self.whole}, !{self.part}"


def find_complement(join: Join) -> Complement | None:
    """`T(x, y), !S(x, y)` among the forms of a join: whole rows, of variables that differ."""
    atoms = [form for form in join.forms if isinstance(form, Atom)]
    for form in join.forms:
        if isinstance(form, Negation) and len(form.body.forms) == 1 and not form.body.exists:
            (part,) = form.body.forms
            for whole in atoms:
                if isinstance(part, Atom) and part.args == whole.args and _is_row(whole):
                    rest = tuple(f for f in join.forms if f is not whole and f is not form)
                    return Complement(whole, part, replace(join, forms=rest))
    return None


def _is_row(atom: Atom) -> bool:
    names = [a.name for a in atom.args if isinstance(a, Var)]
    return 0 < len(names) == len(set(names)) == len(atom.args)
