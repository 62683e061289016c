"""Owns the classes of an equivalence relation: how they change when pairs come and go, and their closure.

*Pairs* (x, y) say that x and y are equivalent; *members* are the values in pairs.  *Classes* are rows
(member, representative): a representative is a member of its own class.  Which member it is depends on the
order in which pairs came; nothing else does.  Knows nothing of rules or transactions.
"""

from __future__ import annotations

import numpy as np

from dlog.heads.class_kernels import join_nodes, rows_of, write_pairs
from dlog.heads.lookup import look_up
from dlog.jit import Bools, Words
from dlog.storage.index.batch import Change
from dlog.storage.index.index import Index
from dlog.storage.relation.relation import Relation, in_order

BY_MEMBER, BY_CLASS = (0, 1), (1, 0)


def class_change(classes: Relation, pairs: Relation, inserted: Words, erased: Words) -> tuple[Change, Bools]:
    """(Net change of the classes when pairs change, which inserted pairs it needed.)

    REQUIRES: `classes` are those of the pairs before; `pairs` has those after, at least where some are
    erased.  Inserting joins classes: only members of the smaller ones get another representative, O(n log n)
    for n members that join one by one.  Erasing costs O(c log c) for c pairs of the classes that lose some.

    >>> from dlog.storage.arena.arena import Arena
    >>> classes, pairs = Relation(Arena(1 << 28), 2), Relation(Arena(1 << 28), 2)
    >>> new = np.array([[1, 2], [4, 5], [2, 1]])
    >>> change, needed = class_change(classes, pairs, new, new[:0])
    >>> change.inserted.tolist(), needed.tolist()
    ([[1, 1], [2, 1], [4, 4], [5, 4]], [True, True, False])
    """
    members, old = _dissolved(classes, erased)
    which, others = _rows(pairs.add_order(BY_MEMBER), members)
    first = np.concatenate([inserted[:, 0], members[which]])
    second = np.concatenate([inserted[:, 1], others])
    codes, back = np.unique(np.concatenate([first, second]), return_inverse=True)
    found, rest = look_up(classes, codes[:, None])
    whole = (found > 0) & ~_contained(members, codes)
    nodes, of_code = np.unique(np.where(whole, rest[:, 0], codes), return_inverse=True)
    is_whole = np.zeros(len(nodes), bool)
    is_whole[of_code[whole]] = True
    node_of = of_code[back]
    by_class = classes.add_order(BY_CLASS)
    sizes = np.ones(len(nodes), np.int64)
    sizes[is_whole] = np.bincount(_rows(by_class, nodes[is_whole])[0], minlength=int(is_whole.sum()))
    was = is_whole | _contained(np.unique(old), nodes)
    best, joined = _joined(node_of[: len(first)], node_of[len(first) :], 2 * sizes + was)
    alone, moved = ~is_whole, is_whole & (best != np.arange(len(nodes)))
    number, moving = _rows(by_class, nodes[moved])
    gained = np.concatenate([nodes[alone], moving])
    now = np.concatenate([nodes[best[alone]], nodes[best[moved]][number]])
    lost, before = np.concatenate([members, moving]), np.concatenate([old, nodes[moved][number]])
    n = len(inserted)
    needed = joined[:n] | ((inserted[:, 0] == inserted[:, 1]) & (found[back[:n]] == 0))
    return _net(np.column_stack([gained, now]), np.column_stack([lost, before])), needed


def _dissolved(classes: Relation, erased: Words) -> tuple[Words, Words]:
    """The members of classes that lose a pair, ascending, and their representatives."""
    _, rest = look_up(classes, np.unique(erased)[:, None])
    representatives = np.unique(rest[:, 0])
    which, members = _rows(classes.add_order(BY_CLASS), representatives)
    order = np.argsort(members)
    return members[order], representatives[which][order]


def _rows(index: Index, keys: Words) -> tuple[Words, Words]:
    """(Number of the key, second value) of each row that begins with one of these ascending keys."""
    which = values = np.empty(0, np.int64)
    keys = np.ascontiguousarray(keys)
    if not len(keys) or not len(index):
        return which, values
    n = rows_of(index.arena.A, index.root, keys, len(keys), which, values, 0)
    which, values = np.empty(n, np.int64), np.empty(n, np.int64)
    rows_of(index.arena.A, index.root, keys, len(keys), which, values, n)
    return which, values


def _joined(first: Words, second: Words, score: Words) -> tuple[Words, Bools]:
    """(The node that represents each node, which edges joined two trees.)"""
    n = len(score)
    parent, best, joined = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(len(first), bool)
    first, second = (np.ascontiguousarray(side, np.int64) for side in (first, second))
    join_nodes(first, second, len(first), np.ascontiguousarray(score, np.int64), n, parent, best, joined)
    return best, joined


def _contained(ascending: Words, values: Words) -> Bools:
    """Which values are among ascending ones."""
    if not len(ascending):
        return np.zeros(len(values), bool)
    at = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    return ascending[at] == values


def _net(gained: Words, lost: Words) -> Change:
    """Without rows that are in both.  REQUIRES: a member is in each of them at most once."""
    gained, lost = in_order(gained), in_order(lost)
    if not len(gained) or not len(lost):
        return Change(gained, lost)
    _, here, there = np.intersect1d(gained[:, 0], lost[:, 0], assume_unique=True, return_indices=True)
    same = gained[here, 1] == lost[there, 1]
    return Change(np.delete(gained, here[same], 0), np.delete(lost, there[same], 0))


def class_pairs(classes: Relation, pairs: Relation, member: int) -> Words:
    """The pairs of a member's class.  O(c log n) for c of them.  REQUIRES: it is a member."""
    _, rest = look_up(classes, np.array([[member]]))
    members = _rows(classes.add_order(BY_CLASS), rest[:, 0])[1]
    which, others = _rows(pairs.add_order(BY_MEMBER), members)
    return np.column_stack([members[which], others])


# The closure


def are_equivalent(classes: Relation, pair: Words) -> bool:
    """Whether the two values of one row are in the same class."""
    found, rest = look_up(classes, np.unique(pair)[:, None])
    return bool((found > 0).all() and (rest == rest[0]).all())


def closure_size(classes: Relation) -> int:
    """How many pairs of members are equivalent.  O(members)."""
    _, sizes = np.unique(classes.rows()[:, 1], return_counts=True)
    return int((sizes * sizes).sum())


def closure_rows(classes: Relation) -> Words:
    """All pairs of equivalent members, in order.  O(pairs)."""
    rows = classes.rows()
    members, representatives = np.ascontiguousarray(rows[:, 0]), rows[:, 1]
    _, group, sizes = np.unique(representatives, return_inverse=True, return_counts=True)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    grouped = members[np.argsort(group, kind="stable")]
    out = np.empty((int((sizes * sizes).sum()), 2), np.int64)
    write_pairs(members, group.reshape(-1), len(members), starts, grouped, out.reshape(-1))
    return out


def canonical(classes: Relation) -> Words:
    """The classes with the least member as representative: equal for equal classes.  O(members)."""
    rows = classes.rows()
    _, first, group = np.unique(rows[:, 1], return_index=True, return_inverse=True)
    return np.column_stack([rows[:, 0], rows[first, 0][group.reshape(-1)]])
