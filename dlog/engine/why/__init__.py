"""Owns why a fact holds: one well-founded derivation, found by searching backwards.  Nothing is stored.

    alternatives   rules as alternatives to derive a head; running a body for some goals only
    founded        the search inside a recursion: what holds without supporting itself
    tree           the derivation, node by node
    text           the derivation as text

Correct output: each node follows from its children by the rule it names; leaves are base facts, negations and
primitives that hold; no node is its own ancestor.
"""

from __future__ import annotations

import numpy as np

from dlog.engine.commit.printed_facts import fact_text
from dlog.engine.statements import read_fact
from dlog.engine.view import View
from dlog.engine.why.text import tree_text
from dlog.engine.why.tree import Derivation, derive
from dlog.errors import DataError
from dlog.heads.classes import are_equivalent
from dlog.storage.dictionary.records.uses import in_use
from dlog.storage.values import decode_value

__all__ = ["Derivation", "derivation", "derivation_tree"]


def derivation(view: View, fact: str) -> Derivation:
    """One derivation of a fact as it is written in a program.  Raises if it does not hold."""
    with in_use():
        return _derivation(view, fact)


def _derivation(view: View, fact: str) -> Derivation:
    name, codes = read_fact(view, fact)
    predicate = view.program.predicates[name]
    if not _holds(view, name, codes):
        columns = enumerate(predicate.columns)
        row = [decode_value(codes[0, i], c.type, view.store.dictionary) for i, c in columns]
        raise DataError(f"{fact_text(predicate, row)} does not hold")
    return derive(view, name, tuple(codes[0].tolist()))


def _holds(view: View, name: str, codes: np.ndarray) -> bool:
    classes = view.program.equivalences.get(name)
    if classes is not None:
        return are_equivalent(view.store.relations[classes], codes)
    return view.store.relations[name].contains(codes[0].tolist())


def derivation_tree(view: View, fact: str) -> str:
    """The same as a tree of lines."""
    return tree_text(derivation(view, fact))
