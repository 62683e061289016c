"""Owns the loops of choices: which rows of a batch are chosen, and rows that begin with given keys.

Knows nothing of rules.
"""

from __future__ import annotations

from dlog.jit import Bools, Words, kernel
from dlog.storage.index.trie_kernels import end_position, key_at, next_position, run_end, seek_lub


@kernel
def choose_rows(numbers: Words, domains: int, n: int, used: Bools, chosen: Bools) -> None:
    """Of n rows in order, which are chosen: those whose keys no row before them has, in no domain.

    Row i has the key numbers[d * n + i] of domain d; used[d * n + k] says whether key k is taken, first by
    rows from before.  O(n domains).
    """
    for i in range(n):
        free = True
        for d in range(domains):
            if used[d * n + numbers[d * n + i]]:
                free = False
                break
        chosen[i] = free
        if free:
            for d in range(domains):
                used[d * n + numbers[d * n + i]] = True


@kernel
def rows_beginning(
    arena: Words, root: int, keys: Words, n: int, d: int, arity: int, out: Words, room: int
) -> int:
    """The rows of an index that begin with one of n keys of d columns, as long as there is room; returns how
    many there are.  O(n d log rows + rows found)."""
    end = end_position(arena, root)
    found = 0
    for i in range(n):
        low, high = 0, end
        for c in range(d):
            low = seek_lub(arena, root, c, low, high, keys[i * d + c])
            if low >= high or key_at(arena, root, c, low) != keys[i * d + c]:
                low = high
                break
            high = run_end(arena, root, c, low, high)
        while low < high:
            if found < room:
                for c in range(arity):
                    out[found * arity + c] = key_at(arena, root, c, low)
            found += 1
            low = next_position(arena, root, low)
    return found
