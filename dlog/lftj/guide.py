"""Owns guides inside the machine: a run that is restricted to some values of its first variables.

A guide is a trie of *items* (lo, hi, child begin, child end), ITEM words each, in the state.  The
items of one node are contiguous, ascending and disjoint.  An item lets the variable of its depth have the
values from lo to hi; its children do the same for the next variable, and -1 for their begin leaves all
that comes below free.  No item is ever expanded into the values that it stands for.

A guided leap has four words: the item it is at and the end of its node (-1: it is free), and the bounds that
the item sets.  The guide has two words for each depth: begin and end of the node that is to be read there.
"""

from __future__ import annotations

from typing import Final

from dlog.jit import helper
from dlog.storage.index.trie_kernels import MAX_KEY

ITEM: Final = 4
CHILD: Final = 2  # in an item: the begin of its children
MIN_KEY: Final = -(2**63)
AT: Final = 0  # words of a guided leap
END: Final = 1
LOWER: Final = 2
UPPER: Final = 3


@helper
def first_item(state, own, depth):
    """Begin with the node of a depth (0: of a leap that is never guided); False if it has no item."""
    if depth == 0 or state[depth] < 0:
        state[own + AT] = -1
        state[own + LOWER] = MIN_KEY
        state[own + UPPER] = MAX_KEY
        if depth != 0:
            state[depth + 2] = -1
        return True
    state[own + AT] = state[depth]
    state[own + END] = state[depth + 1]
    return load_item(state, own, depth)


@helper
def next_item(state, own, depth):
    """Go to the next item of a node; False if there is none."""
    if state[own + AT] < 0:
        return False
    state[own + AT] += ITEM
    return load_item(state, own, depth)


@helper
def load_item(state, own, depth):
    """Set the bounds and the node below from the item; False at the end of the node."""
    item = state[own + AT]
    if item >= state[own + END]:
        return False
    state[own + LOWER] = state[item]
    state[own + UPPER] = state[item + 1]
    state[depth + 2] = state[item + CHILD]
    state[depth + 3] = state[item + CHILD + 1]
    return True
