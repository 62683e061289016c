"""Owns the choice of one predicate's rows while its stratum is evaluated.

Correct output: rows that were chosen before stay, if they are derived from facts and from each other; besides
them the first candidates of each round are chosen, lowest first, that agree with no chosen row in a domain.
A candidate that is left out stays left out, since chosen rows stay: so one look at each is enough.
"""

from __future__ import annotations

import numpy as np

from dlog.engine.head.value_order import in_value_order
from dlog.engine.state.store import Store
from dlog.heads.choice import also_chosen
from dlog.heads.lookup import contained
from dlog.ir.rules import Choice
from dlog.jit import Words
from dlog.planning.versions import given_name


class Choosing:
    """Lifecycle.  1 `take` is given base facts, then the candidates of each round: it chooses only what was
    chosen before, if anything was.  2 when nothing more follows from these rows, `open` chooses among all
    candidates so far, and `take` among all that come."""

    def __init__(self, store: Store, name: str, choice: Choice):
        """REQUIRES: the predicate has its base facts.  Takes them out."""
        self.store, self.name, self.choice = store, name, choice
        self.given = store.relations.pop(given_name(name), None)
        self.facts = store.relations[name].rows()
        store.clear(name)
        self.is_open = not self.given

    def take(self, candidates: Words) -> Words:
        """Adds the candidates that are chosen; returns them."""
        if not self.is_open:
            assert self.given is not None
            candidates = candidates[contained(self.given, candidates)]
        chosen = self.store.relations[self.name]
        ordered = in_value_order(self.store, self.name, candidates)
        new = also_chosen(chosen, ordered, self.choice.domains)
        return chosen.apply_in_place(inserts=new).inserted

    def open(self) -> Words:
        """The same among all candidates so far, whatever was chosen before."""
        if self.is_open:
            return self.facts[:0]
        self.is_open = True
        derived = self.store.relations[self.choice.candidates].rows()
        return self.take(np.concatenate([self.facts, derived]))
