"""Owns what the queries over a social network are compared with that stores no join graph: followers of
followers by nested loops, and the full outer join as one wide table (GraphIVM 8.3), both written by hand.

They know their query, check nothing, and only follow new tweets.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.jit import Words, kernel, pointer

# q_fan_out(f, g, u, t, d) <- follower(g, f), follower(u, g), tweet[u, t] = d.
NULL = -1
ROOM = 1 << 16  # rows of the view that one tweet may have


class NestedLoops:
    """Followers in the order of the users whom they follow."""

    def __init__(self, followers: Words, users: int):
        order = np.argsort(followers[:, 0], kind="stable")
        self.targets = np.ascontiguousarray(followers[order, 1])
        self.starts = np.searchsorted(followers[order, 0], np.arange(users + 1)).astype(np.int64)
        self.out = np.zeros(5 * ROOM, np.int64)

    def tweet(self, row: Sequence[int]) -> int:
        """How many rows the view gains; they are in `out`."""
        return second_degree(self.starts, self.targets, *row, self.out)


@kernel
def second_degree(
    starts_words: Words, targets_words: Words, user: int, tweet: int, day: int, out_words: Words
) -> int:
    """Both followers, then the tweet, column by column."""
    starts, targets, out = pointer(starts_words), pointer(targets_words), pointer(out_words)
    to = 0
    for i in range(starts[user], starts[user + 1]):
        middle = targets[i]
        for j in range(starts[middle], starts[middle + 1]):
            out[to] = targets[j]
            out[ROOM + to] = middle
            out[2 * ROOM + to] = user
            out[3 * ROOM + to] = tweet
            out[4 * ROOM + to] = day
            to += 1
    return to


class OuterJoin:
    """The full outer join of both atoms of `follower` with `tweet`: rows of f, g, u, t, d and the next row of
    the same u.  A user without tweets has NULL for t and d.

    The table does not say which pairs of f and g there are, but only which rows: a tweet of a user who has
    tweeted before needs the different ones among these.
    """

    def __init__(self, followers: Words, users: int, tweets: int):
        loops = NestedLoops(followers, users)
        pairs = [(u, loops.tweet((u, NULL, NULL))) for u in range(users)]
        most = max(n for _, n in pairs)
        self.table = np.zeros((sum(n for _, n in pairs) + (tweets + 1) * (most + 1), 6), np.int64)
        self.first, self.used = np.full(users, NULL, np.int64), np.zeros(1, np.int64)
        for user, n in pairs:
            loops.tweet((user, NULL, NULL))
            rows = loops.out.reshape(5, ROOM)[:, :n].T
            start = int(self.used[0])
            self.table[start : start + n, :5] = rows
            self.table[start : start + n, 5] = np.arange(start - 1, start + n - 1)
            if n:
                self.table[start, 5] = NULL
                self.first[user] = start + n - 1
            self.used[0] += n
        self.seen = np.zeros(4 << int(most + 1).bit_length(), np.int64)
        self.out = np.zeros(5 * ROOM, np.int64)

    def tweet(self, row: Sequence[int]) -> int:
        """How many rows the view gains; they are in `out`."""
        self.seen[:] = 0
        return enter_tweet(self.table.reshape(-1), self.first, self.used, self.seen, *row, self.out)


@kernel
def enter_tweet(
    table_words: Words,
    first_words: Words,
    used_words: Words,
    seen_words: Words,
    user: int,
    tweet: int,
    day: int,
    out_words: Words,
) -> int:
    """`seen` is a hash table of row numbers plus 1, empty, of twice as many words as there are pairs."""
    table, first, used = pointer(table_words), pointer(first_words), pointer(used_words)
    seen, out, mask = pointer(seen_words), pointer(out_words), len(seen_words) - 1
    to, row, last = 0, first[user], first[user]
    while row >= 0:
        at = 6 * row
        slot = (table[at] * 7919 + table[at + 1] * 104729) & mask
        while seen[slot] > 0:
            other = 6 * (seen[slot] - 1)
            if table[other] == table[at] and table[other + 1] == table[at + 1]:
                break
            slot = (slot + 1) & mask
        if seen[slot] == 0:
            seen[slot] = row + 1
            out[to] = table[at]
            out[ROOM + to] = table[at + 1]
            out[2 * ROOM + to] = user
            out[3 * ROOM + to] = tweet
            out[4 * ROOM + to] = day
            if table[at + 3] == NULL:
                table[at + 3] = tweet
                table[at + 4] = day
            else:
                new = used[0]
                used[0] = new + 1
                table[6 * new] = table[at]
                table[6 * new + 1] = table[at + 1]
                table[6 * new + 2] = user
                table[6 * new + 3] = tweet
                table[6 * new + 4] = day
                table[6 * new + 5] = last
                last = new
            to += 1
        row = table[at + 5]
    first[user] = last
    return to
