"""Owns nested loops written by hand for single queries, over the arrays of a join graph: its kernels' limit.

Each knows its query and its plan, checks nothing, and writes to an array that is large enough.
"""

from __future__ import annotations

from dlog.jit import Words, helper, kernel, pointer
from dlog.joingraph.graph_kernels import find_value, key_hash
from dlog.joingraph.layout import ID_MASK, NUMBER_BITS, NUMBER_MASK


@helper
def first_of(A, near):
    """Where the entries of a list begin."""
    return near if A[near + 1] >> NUMBER_BITS == 0 else A[near]


@helper
def rows_of(A, header):
    """Where the payload rows of a join tuple begin."""
    return header + 1 if A[header] >> NUMBER_BITS == 0 else A[header + 1]


# view(u, f1, f2, t) <- f(u, f1), f(f2, u), tweet(f2, t).


@kernel
def fan_out(
    A_words: Words,
    header: Words,
    vertex: int,
    columns: int,
    tweet_words: Words,
    n: int,
    out_words: Words,
    room: int,
) -> int:
    """The rows of the view for n tweets.  `vertex` is that of f2, its side 0 that of f(f2, u); `columns` is
    where a 0 is listed."""
    A, words, tweets, out = pointer(A_words), pointer(header), pointer(tweet_words), pointer(out_words)
    to = 0
    for tweet in range(0, 2 * n, 2):
        hash = key_hash(words, columns, 1, tweets, tweet)
        value = find_value(A, words, vertex, columns, hash, tweets, tweet)
        if value == 0:
            continue
        first = first_of(A, value + 1)
        for place in range(first, first + (A[value + 2] & NUMBER_MASK)):
            user = A[A[place]] & ID_MASK
            if A[user + 2] & NUMBER_MASK == 0:
                continue
            followers = A[user + 1] + 1
            row = rows_of(A, followers)
            number = A[followers] & NUMBER_MASK
            for i in range(number):
                out[to + i] = A[user]
                out[room + to + i] = A[row + i]
                out[2 * room + to + i] = tweets[tweet]
                out[3 * room + to + i] = tweets[tweet + 1]
                out[4 * room + to + i] = 1
            to += number
    return to
