"""Owns the kernels of row queues: rows in order of arrival, each once, and the sets that detect new rows.

All queues of a recursion are in three arrays, so that one kernel call can work on any of them:

queues   QUEUE words for each queue (see below), then the packing of each: lows, then widths of its columns
rows     column c of row i of a queue is at Q_BASE + c * Q_CAPACITY + i
seen     the set of a queue's rows, Q_SIZE words from Q_SEEN on, in one of these forms:
         BITMAP  one bit for every possible row
         HASH    open addressing over packed rows, -1 for an empty slot
         WIDE    open addressing over pairs (hash of the row, its number; -1 for an empty slot), for rows that
                 do not fit one word
         BEST    as WIDE, for rows that are a key and a value: each key once, with its best row
         KEYED   open addressing over pairs (packed row, its support; -1 for an empty slot), and
         CELLS   for every possible row its support, 0 if it is not there: both of counted queues only,
                 whose rows have a support after their columns (see `storage.queue.support_kernels`)
         RUNS    no set, but room for packed rows that wait to be looked up among sorted runs, many at once:
                 Q_WAITING of them from Q_SEEN on.  Such a queue has only rows that have yet to drive.

A row is packed in mixed radix: ((c0 - low0) * width1 + (c1 - low1)) * width2 + ...; the owner makes sure that
the product of the widths fits.  Packed rows are in the order of rows.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.jit import Words, helper, kernel
from dlog.storage.arena.pointer import pointer

Q_ARITY: Final = 0
Q_BASE: Final = 1
Q_CAPACITY: Final = 2
Q_COUNT: Final = 3
Q_READY: Final = 4  # rows before this one may drive; -1: all
Q_METHOD: Final = 5
Q_SEEN: Final = 6
Q_SIZE: Final = 7
Q_ROOM: Final = 9  # words set aside for its set
Q_PACK: Final = 8  # where in `queues` the lows of the columns are, the widths after them
Q_COMBINE: Final = 10  # 0, or MIN or MAX: of the rows of a key only that with the best value counts
Q_DRIVEN: Final = 11  # rows before this one have driven some plan
Q_STALE: Final = 12  # rows that a better one has replaced
Q_COUNTED: Final = 13  # 1: rows have a support
Q_WAITING: Final = 14  # packed rows that have not been looked up yet
QUEUE: Final = 15

BITMAP: Final = 0
HASH: Final = 1
WIDE: Final = 2
BEST: Final = 3
CELLS: Final = 4
KEYED: Final = 5
RUNS: Final = 6

MIN: Final = 1
MAX: Final = 2

MULTIPLIER: Final = -7046029254386353131  # 2^64 / golden ratio, as a signed word
WORD_MASK: Final = (1 << 63) - 1
OUT_OF_RANGE: Final = -1


@helper
def absorb(queues, q, rows, seen, out, capacity, n, sources, at, scratch):
    """Append to queue q those of n rows that it lacks, each once; return how many, or OUT_OF_RANGE.

    Column c of row i is out[capacity * s + i] with s = sources[at + 2 * c], or the constant
    sources[at + 2 * c + 1] when s is negative; `scratch` holds 2 * capacity words.  When a value is outside
    its column's range nothing is added.  REQUIRES: room for n more rows, in a hash table too.  O(n) expected.
    With runs, rows are not appended but wait: 0.
    """
    q *= QUEUE
    if queues[q + Q_METHOD] == RUNS:
        return let_wait(queues, q, seen, out, capacity, n, sources, at, scratch)
    if queues[q + Q_METHOD] >= WIDE:
        return absorb_wide(queues, q, rows, seen, out, capacity, n, sources, at)
    if not pack_rows(queues, q, out, capacity, n, sources, at, scratch):
        return np.int64(OUT_OF_RANGE)
    if queues[q + Q_METHOD] == BITMAP:
        found = add_bits(seen, queues[q + Q_SEEN], scratch, n, capacity)
    else:
        found = add_keys(seen, queues[q + Q_SEEN], queues[q + Q_SIZE] - 1, scratch, n, capacity)
    base = queues[q + Q_BASE] + queues[q + Q_COUNT]
    for c in range(queues[q + Q_ARITY]):
        source = sources[at + 2 * c]
        if source < 0:
            for j in range(found):
                rows[base + j] = sources[at + 2 * c + 1]
        else:
            source *= capacity
            for j in range(found):
                rows[base + j] = out[source + scratch[capacity + j]]
        base += queues[q + Q_CAPACITY]
    queues[q + Q_COUNT] += found
    return found


@helper
def let_wait(queues, q, seen, out, capacity, n, sources, at, scratch):
    """Put n packed rows after those that wait; 0, or OUT_OF_RANGE."""
    if not pack_rows(queues, q, out, capacity, n, sources, at, scratch):
        return np.int64(OUT_OF_RANGE)
    base = queues[q + Q_SEEN] + queues[q + Q_WAITING]
    for i in range(n):
        seen[base + i] = scratch[i]
    queues[q + Q_WAITING] += n
    return np.int64(0)


@helper
def pack_rows(queues, q, out, capacity, n, sources, at, keys):
    """Packed rows into `keys`; False if a value is outside its column's range."""
    arity = queues[q + Q_ARITY]
    lows = queues[q + Q_PACK]
    for i in range(n):
        keys[i] = 0
    for c in range(arity):
        low = queues[lows + c]
        width = queues[lows + arity + c]
        source = sources[at + 2 * c]
        outside = np.int64(0)
        if source < 0:
            offset = sources[at + 2 * c + 1] - low
            outside += offset < 0 or offset >= width
            for i in range(n):
                keys[i] = keys[i] * width + offset
        else:
            source *= capacity
            for i in range(n):
                offset = out[source + i] - low
                outside += (offset < 0) | (offset >= width)
                keys[i] = keys[i] * width + offset
        if outside > 0:
            return False
    return True


@helper
def add_bits(seen, base, keys, n, positions):
    """Set the bits of n keys; positions of those that were new go after the keys.  Returns their number."""
    found = np.int64(0)
    for i in range(n):
        key = keys[i]
        word, bit = base + (key >> 6), np.int64(1) << (key & 63)
        old = seen[word]
        seen[word] = old | bit
        keys[positions + found] = i
        found += (old & bit) == 0
    return found


@helper
def add_keys(seen, base, mask, keys, n, positions):
    """As `add_bits`, for a hash table of mask + 1 slots."""
    found = np.int64(0)
    for i in range(n):
        key = keys[i]
        slot = home(key, mask)
        while seen[base + slot] >= 0 and seen[base + slot] != key:
            slot = (slot + 1) & mask
        if seen[base + slot] < 0:
            seen[base + slot] = key
            keys[positions + found] = i
            found += 1
    return found


@helper
def home(key, mask):
    """Where a packed row belongs in a table of mask + 1 slots."""
    return (((key * np.int64(MULTIPLIER)) & np.int64(WORD_MASK)) >> 20) & mask


@helper
def find_key(seen, base, mask, key):
    """The slot of a packed row in a table of pairs, or the empty one where it belongs."""
    slot = home(key, mask)
    while seen[base + 2 * slot] >= 0 and seen[base + 2 * slot] != key:
        slot = (slot + 1) & mask
    return slot


@helper
def support_of(queues, q, rows, i):
    """The words after row i of a counted queue, whose words begin at q."""
    return rows[queues[q + Q_BASE] + queues[q + Q_ARITY] * queues[q + Q_CAPACITY] + i]


@helper
def absorb_wide(queues, q, rows, seen, out, capacity, n, sources, at):
    """`absorb` for WIDE and BEST: rows are compared column by column if hashes agree."""
    arity = queues[q + Q_ARITY]
    base, stride = queues[q + Q_BASE], queues[q + Q_CAPACITY]
    before = queues[q + Q_COUNT]
    count = before
    for i in range(n):
        for c in range(arity):
            source = sources[at + 2 * c]
            value = sources[at + 2 * c + 1] if source < 0 else out[capacity * source + i]
            rows[base + c * stride + count] = value
        if queues[q + Q_METHOD] == BEST:
            count += add_best(queues, q, rows, seen, count)
        else:
            count += add_wide(queues, q, rows, seen, count)
    queues[q + Q_COUNT] = count
    return count - before


@helper
def add_wide(queues, q, rows, seen, row):
    """Put a row that is in the queue into its table; 0 if an equal one exists, else 1."""
    arity = queues[q + Q_ARITY]
    base, stride = queues[q + Q_BASE], queues[q + Q_CAPACITY]
    table = queues[q + Q_SEEN]
    hash = hash_columns(rows, base + row, stride, arity)
    slot = find_wide(queues, q, rows, seen, row, arity, hash)
    if seen[table + 2 * slot + 1] >= 0:
        return 0
    seen[table + 2 * slot] = hash
    seen[table + 2 * slot + 1] = row
    return 1


@helper
def add_best(queues, q, rows, seen, row):
    """Put a row that is in the queue into its table, if it is the best of its key; else 0.

    A row of this key that has driven nothing yet takes the better value, 0; otherwise the new row replaces
    it, to drive in its turn, 1.
    """
    n_keys = queues[q + Q_ARITY] - 1
    base, stride = queues[q + Q_BASE], queues[q + Q_CAPACITY]
    table = queues[q + Q_SEEN]
    hash = hash_columns(rows, base + row, stride, n_keys)
    slot = find_wide(queues, q, rows, seen, row, n_keys, hash)
    other = seen[table + 2 * slot + 1]
    if other >= 0:
        values = base + n_keys * stride
        value, known = rows[values + row], rows[values + other]
        if value >= known if queues[q + Q_COMBINE] == MIN else value <= known:
            return 0
        if other >= queues[q + Q_DRIVEN]:
            rows[values + other] = value
            return 0
        queues[q + Q_STALE] += 1
    seen[table + 2 * slot] = hash
    seen[table + 2 * slot + 1] = row
    return 1


@helper
def hash_columns(rows, at, stride, columns):
    """A hash of the first columns of a row."""
    hash = np.int64(0)
    for c in range(columns):
        hash = (hash ^ rows[at + c * stride]) * np.int64(MULTIPLIER)
        hash ^= (hash >> 29) & ((np.int64(1) << 35) - 1)
    return hash


@helper
def find_wide(queues, q, rows, seen, row, columns, hash):
    """The slot of a row that agrees with `row` in its first columns, or the empty one where it belongs."""
    base, stride = queues[q + Q_BASE], queues[q + Q_CAPACITY]
    table = queues[q + Q_SEEN]
    mask = (queues[q + Q_SIZE] >> 1) - 1
    slot = hash & mask
    while seen[table + 2 * slot + 1] >= 0:
        if seen[table + 2 * slot] == hash:
            other = seen[table + 2 * slot + 1]
            c = 0
            while c < columns and rows[base + c * stride + other] == rows[base + c * stride + row]:
                c += 1
            if c == columns:
                break
        slot = (slot + 1) & mask
    return slot


@kernel
def fill_seen(queue_words: Words, q: int, row_words: Words, seen_words: Words) -> int:
    """Put all rows of a queue, which are distinct (if values combine, their keys), into its empty set.

    O(rows).
    """
    queues, rows, seen = pointer(queue_words), pointer(row_words), pointer(seen_words)
    q *= QUEUE
    count = queues[q + Q_COUNT]
    for i in range(count):
        if queues[q + Q_METHOD] == WIDE:
            add_wide(queues, q, rows, seen, i)
            continue
        if queues[q + Q_METHOD] == BEST:
            add_best(queues, q, rows, seen, i)
            continue
        key = pack_row(queues, q, rows, i)
        if queues[q + Q_METHOD] == CELLS:
            seen[queues[q + Q_SEEN] + key] = support_of(queues, q, rows, i)
        elif queues[q + Q_METHOD] == KEYED:
            slot = queues[q + Q_SEEN] + 2 * find_key(
                seen, queues[q + Q_SEEN], (queues[q + Q_SIZE] >> 1) - 1, key
            )
            seen[slot], seen[slot + 1] = key, support_of(queues, q, rows, i)
        elif queues[q + Q_METHOD] == BITMAP:
            seen[queues[q + Q_SEEN] + (key >> 6)] |= np.int64(1) << (key & 63)
        else:
            mask = queues[q + Q_SIZE] - 1
            slot = home(key, mask)
            while seen[queues[q + Q_SEEN] + slot] >= 0:
                slot = (slot + 1) & mask
            seen[queues[q + Q_SEEN] + slot] = key
    return 0


@kernel
def pack_queue(queue_words: Words, q: int, row_words: Words, out: Words) -> int:
    """The packed rows of a queue.  O(rows)."""
    queues, rows = pointer(queue_words), pointer(row_words)
    q *= QUEUE
    for i in range(queues[q + Q_COUNT]):
        out[i] = pack_row(queues, q, rows, i)
    return 0


@kernel
def clear_bits(seen: Words, base: int, keys: Words, n: int) -> int:
    """Empty a bitmap that holds just these keys: a sparse one is not traversed as a whole.  O(n)."""
    for i in range(n):
        seen[base + (keys[i] >> 6)] = 0
    return 0


@kernel
def unpack_keys(keys: Words, n: int, arity: int, lows: Words, out: Words, stride: int) -> int:
    """Rows from packed ones that ascend: column c of row i goes to out[c * stride + i].  O(n * arity)."""
    rows = pointer(out)
    run, run_key, width = np.int64(-1), np.int64(-1), lows[2 * arity - 1]
    for i in range(n):
        key = keys[i]
        if key - run_key >= width or run < 0:
            run = key // width
            run_key = run * width
        put_row(run, key - run_key, arity, lows, rows, np.int64(i), stride)
    return 0


@helper
def put_row(run, rest, arity, lows, rows, row, stride):
    """Write one row: all columns but the last from their packed form `run`, the last from its offset."""
    rows[row + (arity - 1) * stride] = rest + lows[arity - 1]
    for c in range(arity - 2, -1, -1):
        upper = run // lows[arity + c] if c > 0 else np.int64(0)
        rows[row + c * stride] = run - upper * lows[arity + c] + lows[c]
        run = upper


@helper
def pack_row(queues, q, rows, i):
    arity = queues[q + Q_ARITY]
    lows = queues[q + Q_PACK]
    at = queues[q + Q_BASE] + i
    key = np.int64(0)
    for c in range(arity):
        key = key * queues[lows + arity + c] + rows[at] - queues[lows + c]
        at += queues[q + Q_CAPACITY]
    return key


@kernel
def read_bits(
    seen: Words, base: int, words: int, arity: int, lows: Words, out: Words, stride: int, at: int
) -> int:
    """The rows of a bitmap in order: column c of row i goes to out[at + c * stride + i].  Returns how many.

    `lows` are the lows of the columns, then their widths.  O(words + rows * arity).
    """
    rows = pointer(out)
    row = np.int64(at)
    run, run_key, width = np.int64(-1), np.int64(-1), lows[2 * arity - 1]
    for w in range(words):
        word = seen[base + w]
        while word != 0:
            bit = word & -word
            word ^= bit
            key = (np.int64(w) << 6) + bit_number(bit)
            if key - run_key >= width or run < 0:  # the rows of one run share all columns but the last
                run = key // width
                run_key = run * width
            put_row(run, key - run_key, arity, lows, rows, row, stride)
            row += 1
    return int(row - at)


@helper
def bit_number(bit):
    """The number of the only bit of a word.  O(log bits)."""
    if bit < 0:
        return 63
    n = 0
    if bit >= np.int64(1) << 32:
        bit >>= 32
        n += 32
    if bit >= 1 << 16:
        bit >>= 16
        n += 16
    if bit >= 1 << 8:
        bit >>= 8
        n += 8
    if bit >= 1 << 4:
        bit >>= 4
        n += 4
    if bit >= 1 << 2:
        bit >>= 2
        n += 2
    return n + (bit >> 1)
