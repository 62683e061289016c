"""Owns the hash that decides which shard a value belongs to: MurmurHash3 as in Spark's `hash`.

32 bits, seed 42; a text's last bytes, fewer than four, are mixed one by one, each with its sign.  All words
stay below 2^32 and only low halves of products are used, so that the same text runs uncompiled.
"""

from __future__ import annotations

from typing import Final

from dlog.jit import Bytes, Words, helper, kernel

SEED: Final = 42
LOW: Final = 0xFFFFFFFF


@helper
def mixed(h: int, k: int) -> int:
    k = ((k & LOW) * 0xCC9E2D51) & LOW
    k = ((k << 15) | (k >> 17)) & LOW
    k = (k * 0x1B873593) & LOW
    h = h ^ k
    h = ((h << 13) | (h >> 19)) & LOW
    return (h * 5 + 0xE6546B64) & LOW


@helper
def finished(h: int, length: int) -> int:
    """The hash with its sign, as a Spark int."""
    h = h ^ (length & LOW)
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & LOW
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & LOW
    h = h ^ (h >> 16)
    return h - ((h >> 31) << 32)


@kernel
def hash_ints(values: Words, n: int, shards: int, out: Words) -> None:
    """Values of four bytes: dates and booleans.  3 ns each."""
    for i in range(n):
        out[i] = finished(mixed(SEED, int(values[i])), 4) % shards


@kernel
def hash_longs(values: Words, n: int, shards: int, out: Words) -> None:
    """Values of eight bytes.  4 ns each."""
    for i in range(n):
        value = int(values[i])
        out[i] = finished(mixed(mixed(SEED, value), value >> 32), 8) % shards


@kernel
def hash_texts(data: Bytes, offsets: Words, n: int, shards: int, out: Words) -> None:
    """Texts data[offsets[i]:offsets[i + 1]].  1 ns a byte."""
    for i in range(n):
        start, end = int(offsets[i]), int(offsets[i + 1])
        h = SEED
        at = start
        while at + 4 <= end:
            word = int(data[at]) | int(data[at + 1]) << 8 | int(data[at + 2]) << 16 | int(data[at + 3]) << 24
            h = mixed(h, word)
            at += 4
        while at < end:
            byte = int(data[at])
            h = mixed(h, byte - ((byte >> 7) << 8))
            at += 1
        out[i] = finished(h, end - start) % shards


@kernel
def order_by_shard(owners: Words, n: int, shards: int, order: Words, bounds: Words) -> None:
    """Rows by shard, in their original order; shard s has order[bounds[s]:bounds[s + 1]].  2 ns each, where a
    sort took 50.  REQUIRES: bounds is zero."""
    for i in range(n):
        bounds[owners[i]] += 1
    begin = 0
    for shard in range(shards):
        count = bounds[shard]
        bounds[shard] = begin
        begin += count
    for i in range(n):
        order[bounds[owners[i]]] = i
        bounds[owners[i]] += 1
    for shard in range(shards, 0, -1):
        bounds[shard] = bounds[shard - 1]
    bounds[0] = 0
