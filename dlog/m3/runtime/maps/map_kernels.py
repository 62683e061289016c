"""Owns maps inside kernels: finding, adding, chains by index, rebuilding a table.  See `layout`.

Knows nothing of names, types or statements.  Kernels never allocate memory: if a table may get too full they
return, and `maps` makes a new one.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import Words, helper, kernel, pointer, prefetch
from dlog.lftj.primitives import add, multiply
from dlog.m3.runtime.layout import (
    EMPTY,
    END_OF_CHAIN,
    M_APART,
    M_BASE,
    M_DRAINED,
    M_INDEX,
    M_INDICES,
    M_KEYS,
    M_LINKED,
    M_MASK,
    M_SHIFT,
    M_UPDATES,
    M_USED,
    M_VALUES,
    M_WORDS,
    M_WORDS_OF_MAP,
    UNLINKED,
)
from dlog.m3.runtime.maps.apart_kernels import give_back, take_element, value_at
from dlog.m3.runtime.maps.change_kernels import first_link, is_changed, keep_before, list_none
from dlog.m3.runtime.maps.exact_kernels import free_all_wide, is_exact
from dlog.m3.runtime.maps.order_kernels import empty_trees

MULTIPLIER = np.int64(-7046029254386353131)  # 2^64 / golden ratio, as a signed word
AHEAD = 16  # rows: memory is prefetched this far before it is needed
CLEARED = 256  # slots that are made empty together
SECOND = np.int64(-4417276706812531889)


@helper
def shifted(word, by):
    """Logical shift to the right."""
    return np.uint64(np.int64(word).view(np.uint64) >> np.uint64(by)).view(np.int64)


@helper
def hash_one(key):
    """Its upper bits choose the slot.  A float's code is often 0 in its lower half: the upper is mixed in."""
    return multiply(key ^ shifted(key, 32), MULTIPLIER)


@helper
def hash_more(hash, key):
    return multiply(add(hash ^ shifted(hash, 29), multiply(key, SECOND)), MULTIPLIER)


@helper
def is_live(arena, at, n):
    """Whether n value words are not all 0."""
    v = 0
    while v < n and arena[at + v] == 0:
        v += 1
    return v < n


@helper
def is_simple(maps, m):
    """Whether a value is one word of the slot, and it alone shows whether the slot is live."""
    return (
        maps[m + M_KEYS] > 0
        and maps[m + M_VALUES] == 1
        and maps[m + M_APART] == 0
        and maps[m + M_DRAINED] == 0
    )


@helper
def is_live_there(arena, at, keys):
    """1 or 0, for a slot of a simple map: without a branch, since it would be unpredictable."""
    return (1 if arena[at] != EMPTY else 0) & (1 if arena[at + keys] != 0 else 0)


@helper
def is_needed(arena, maps, m, at):
    """Whether a new table has to have the slot at a place, which is not empty."""
    return is_live(arena, value_at(arena, maps, m, at), maps[m + M_VALUES]) or is_changed(arena, maps, m, at)


@helper
def ask_for_value(arena, maps, m, at, end):
    """The value of the slot at a place, if that is before `end`, will be needed soon: where it is apart."""
    if maps[m + M_APART] != 0 and at < end and arena[at] != EMPTY:
        prefetch(arena, arena[at + maps[m + M_KEYS]])


@helper
def slot_hash(arena, at, n):
    """The hash of the first n words at a place; 0 for none."""
    if n == 0:
        return np.int64(0)
    hash = hash_one(arena[at])
    for j in range(1, n):
        hash = hash_more(hash, arena[at + j])
    return hash


@helper
def place_of(arena, base, words, mask, slot, key):
    """Where the slot of a key is, from the slot of its hash on, or the empty one where it would be; the value
    there is 0.  REQUIRES: a map with one key.
    """
    place = base + slot * words
    while arena[place] != key and arena[place] != EMPTY:
        slot = (slot + 1) & mask
        place = base + slot * words
    return place


@helper
def place_of_few(arena, base, words, mask, slot, count, a, b, c):
    """The same for up to three keys, of which the last is c; what follows the key of an empty slot is
    nothing.
    """
    if count == 2:
        return place_of_two(arena, base, words, mask, slot, a, b)
    place = base + slot * words
    while arena[place] != EMPTY:
        if arena[place] == a and (count < 2 or (arena[place + 1] == b and arena[place + 2] == c)):
            break
        slot = (slot + 1) & mask
        place = base + slot * words
    return place


@helper
def place_of_two(arena, base, words, mask, slot, a, b):
    place = base + slot * words
    while arena[place] != EMPTY and (arena[place] != a or arena[place + 1] != b):
        slot = (slot + 1) & mask
        place = base + slot * words
    return place


@helper
def places_of(maps, m, index):
    """Where the places of an index's keys are listed."""
    at = maps[m + M_INDEX]
    for _ in range(index):
        at += 1 + maps[at]
    return at


@helper
def sub_hash(arena, at, maps, places):
    """The hash of those keys of a slot that an index is by."""
    hash = np.int64(0)
    for j in range(maps[places]):
        key = arena[at + maps[places + 1 + j]]
        hash = hash_one(key) if j == 0 else hash_more(hash, key)
    return hash


@helper
def same_keys(arena, one, other, maps, places):
    for j in range(maps[places]):
        place = maps[places + 1 + j]
        if arena[one + place] != arena[other + place]:
            return False
    return True


@helper
def link(arena, maps, m, slot):
    """Put a slot in front of its chain in every index whose chain does not hold it.  O(indices) expected."""
    base, words, mask = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_MASK]
    at = base + slot * words
    links = at + first_link(maps, m)
    places = maps[m + M_INDEX]
    for index in range(maps[m + M_INDICES]):
        link_at = links + index
        if arena[link_at] == UNLINKED:
            heads = base + (mask + 1) * (words + index)
            place = shifted(sub_hash(arena, at, maps, places), maps[m + M_SHIFT])
            head = arena[heads + place]
            while head != 0 and not same_keys(arena, at, base + (head - 1) * words, maps, places):
                place = (place + 1) & mask
                head = arena[heads + place]
            arena[link_at] = head - 1  # END_OF_CHAIN when there was none
            arena[heads + place] = slot + 1
        places += 1 + maps[places]


@helper
def live_from(arena, maps, m, link_at, slot, before):
    """The first live slot of a chain from `slot` on, or END_OF_CHAIN.  Amortised O(1).

    Dead slots after `before` leave the chain; the head of a chain stays, since it holds the chain's keys.
    """
    base, words = maps[m + M_BASE], maps[m + M_WORDS]
    keys, values = maps[m + M_KEYS], maps[m + M_VALUES]
    while slot >= 0:
        at = base + slot * words
        if is_live(arena, at + keys, values):
            return slot
        following = arena[at + link_at]
        if before >= 0:
            arena[base + before * words + link_at] = following
            arena[at + link_at] = UNLINKED
        else:
            before = slot
        slot = following
    return np.int64(END_OF_CHAIN)


@helper
def has_zeros(maps, m):
    """Whether the value of an empty slot is 0, so that look-ups need no special case: for maps with one key
    and one word.  The words of others are set to 0 when a slot is taken, so that a new table costs less.
    """
    return maps[m + M_KEYS] == 0 or (maps[m + M_KEYS] == 1 and maps[m + M_VALUES] == 1)


@helper
def make_zero(arena, maps, m, at):
    """The value of a slot 0, in no chain."""
    if maps[m + M_APART] != 0:
        element = take_element(arena, maps, m)
        arena[at + maps[m + M_KEYS]] = element
        for w in range(element, element + maps[m + M_VALUES]):
            arena[w] = 0
        return
    links = at + first_link(maps, m)
    for w in range(at + maps[m + M_KEYS], links):
        arena[w] = 0
    for w in range(links, at + maps[m + M_WORDS]):
        arena[w] = UNLINKED


@helper
def take_slot(arena, maps, m, slot):
    """A slot that was empty now has a key."""
    maps[m + M_USED] += 1
    if maps[m + M_LINKED] != 0:
        link(arena, maps, m, slot)


@helper
def link_all(arena, maps, m):
    """Make the chains of all indices.  O(slots).  REQUIRES: slots have links."""
    base, words, slots = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_MASK] + 1
    keys, values = maps[m + M_KEYS], maps[m + M_VALUES]
    heads = base + slots * words
    for at in range(heads, heads + slots * maps[m + M_INDICES]):
        arena[at] = 0
    for slot in range(slots):
        at = base + slot * words
        if arena[at] != EMPTY:
            for w in range(at + first_link(maps, m), at + words):
                arena[w] = UNLINKED
            if is_live(arena, at + keys, values):
                link(arena, maps, m, slot)
    maps[m + M_LINKED] = 1


# ---- kernels for `maps`


@kernel
def clear_table(arena_words: Words, map_words: Words, m: int) -> None:
    """Make every slot empty, in memory of any content.  O(slots)."""
    clear(pointer(arena_words), pointer(map_words), m)


@helper
def empty_table(arena, maps, m):
    """Make every slot empty; their elements can be used again.  If changes are drained, entries of value 0
    stay instead."""
    if maps[m + M_DRAINED] != 0:
        make_all_zero(arena, maps, m)
        empty_trees(arena, maps, m)
        return
    if maps[m + M_APART] != 0 and maps[m + M_USED] > 0:
        base, words, keys = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_KEYS]
        for at in range(base, base + (maps[m + M_MASK] + 1) * words, words):
            if arena[at] != EMPTY:
                give_back(arena, maps, m, arena[at + keys])
    if is_exact(maps, m):
        free_all_wide(arena, maps, m)
    empty_trees(arena, maps, m)
    clear(arena, maps, m)


@helper
def make_all_zero(arena, maps, m):
    """Make all entries 0.  REQUIRES: changes are drained."""
    base, words, keys, values = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_KEYS], maps[m + M_VALUES]
    slots = maps[m + M_MASK] + 1
    for slot in range(slots if maps[m + M_USED] > 0 else 0):
        at = base + slot * words
        if (keys == 0 or arena[at] != EMPTY) and is_live(arena, at + keys, values):
            keep_before(arena, maps, m, slot)
            for v in range(values):
                arena[at + keys + v] = 0
    maps[m + M_UPDATES] += slots


@helper
def clear(arena, maps, m):
    base, slots = maps[m + M_BASE], maps[m + M_MASK] + 1
    clear_slots(arena, maps, m, base, base + slots * maps[m + M_WORDS])
    maps[m + M_USED], maps[m + M_LINKED] = 0, 0
    list_none(maps, m)
    maps[m + M_UPDATES] += slots  # so that a table that is far too large is shrunk


@helper
def clear_slots(arena, maps, m, start, end):
    """Make the slots between two places empty."""
    if maps[m + M_WORDS] == 2 and maps[m + M_KEYS] == 1 and has_zeros(maps, m):  # three times as fast
        for at in range(start, end, 2):
            arena[at], arena[at + 1] = EMPTY, 0
        return
    keys, zeros = maps[m + M_KEYS], has_zeros(maps, m)
    for at in range(start, end, maps[m + M_WORDS]):
        if zeros:
            make_zero(arena, maps, m, at)
        if keys > 0:
            arena[at] = EMPTY


@kernel
def link_table(arena_words: Words, map_words: Words, m: int) -> None:
    link_all(pointer(arena_words), pointer(map_words), m)


@kernel
def count_live(arena_words: Words, map_words: Words, m: int) -> int:
    """How many slots a new table would have to take over.  O(slots)."""
    arena, maps = pointer(arena_words), pointer(map_words)
    base, words = maps[m + M_BASE], maps[m + M_WORDS]
    keys, end = maps[m + M_KEYS], base + (maps[m + M_MASK] + 1) * words
    live = 0
    if is_simple(maps, m):
        for at in range(base, end, words):
            live += is_live_there(arena, at, keys)
        return live
    for at in range(base, end, words):
        ask_for_value(arena, maps, m, at + AHEAD * words, end)
        if (keys == 0 or arena[at] != EMPTY) and is_needed(arena, maps, m, at):
            live += 1
    return live


@kernel
def count_used(arena_words: Words, map_words: Words, m: int) -> int:
    """How many slots are not empty; of a map without keys, whether its entry is not 0.  O(slots)."""
    arena, maps = pointer(arena_words), pointer(map_words)
    base, words = maps[m + M_BASE], maps[m + M_WORDS]
    if maps[m + M_KEYS] == 0:
        return 1 if is_live(arena, base, maps[m + M_VALUES]) else 0
    used = 0
    for at in range(base, base + (maps[m + M_MASK] + 1) * words, words):
        if arena[at] != EMPTY:
            used += 1
    return used


@kernel
def changed_much(map_words: Words, m: int, least: int) -> int:
    """The first map from address m on that many rows were added to since its live slots were counted; -1."""
    while m < len(map_words):
        if map_words[m + M_UPDATES] > max(map_words[m + M_MASK] + 1, least):
            return m
        m += M_WORDS_OF_MAP
    return -1


@kernel
def take_over(
    arena_words: Words, map_words: Words, m: int, old_base: int, old_slots: int, old_words: int, listed: Words
) -> None:
    """Put the live slots of an old table into a new one, whose memory is of any content.  O(slots).

    The upper bits of hashes choose slots, so both tables are traversed from front to back; and slots of the
    new one are emptied just before they are needed, so that each cache line is loaded once.  Elements
    that are stored apart do not move; those of dead slots can be used again.  Live slots are listed first,
    as many as `listed` has room for: which slots are empty is unpredictable.
    REQUIRES: the new one has room.
    """
    arena, maps, places = pointer(arena_words), pointer(map_words), pointer(listed)
    base, words, shift = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_SHIFT]
    keys, end = maps[m + M_KEYS], base + words * (maps[m + M_MASK] + 1)
    step, clean, used, first = words * CLEARED, base, 0, 0
    moved = first_link(maps, m) if maps[m + M_APART] == 0 else keys + 1
    # Slots that wrapped around to the front, since the end was full, come last.
    while first < old_slots and keys > 0 and arena[old_base + first * old_words] != EMPTY:
        first += 1
    i = 0
    while i < old_slots:
        slot = first + i if first + i < old_slots else first + i - old_slots
        n = min(len(listed), old_slots - max(slot, i))
        found = list_live(arena, maps, m, old_base + slot * old_words, old_words, n, places)
        i, used = i + n, used + found
        for k in range(found):
            at = places[k]
            place = base + words * shifted(slot_hash(arena, at, keys), shift) if keys > 0 else base
            while True:
                if place >= clean:
                    cleaner = min(end, place + step)
                    clear_slots(arena, maps, m, clean, cleaner)
                    clean = cleaner
                if keys == 0 or arena[place] == EMPTY:
                    break
                place = place + words if place + words < end else base
            move_words(arena, place, at, moved)
    clear_slots(arena, maps, m, clean, end)
    maps[m + M_USED], maps[m + M_LINKED] = used, 0


@helper
def list_live(arena, maps, m, start, words, n, out):
    """List the places of those of n slots that are live; returns how many.  The elements of others, if
    they are apart, can be used again.
    """
    keys, apart, found = maps[m + M_KEYS], maps[m + M_APART], 0
    end = start + n * words
    if is_simple(maps, m):
        for at in range(start, end, words):
            out[found] = at
            found += is_live_there(arena, at, keys)
        return found
    for at in range(start, end, words):
        ask_for_value(arena, maps, m, at + AHEAD * words, end)
        if keys > 0 and arena[at] == EMPTY:
            continue
        if is_needed(arena, maps, m, at):
            out[found] = at
            found += 1
        elif apart != 0:
            give_back(arena, maps, m, arena[at + keys])
    return found


@helper
def move_words(arena, to, at, n):
    arena[to] = arena[at]
    if n > 1:
        arena[to + 1] = arena[at + 1]
    if n > 2:
        arena[to + 2] = arena[at + 2]
    if n > 3:
        arena[to + 3] = arena[at + 3]
    for w in range(4, n):
        arena[to + w] = arena[at + w]


@kernel
def read_entries(arena_words: Words, map_words: Words, m: int, out: Words, capacity: int) -> int:
    """Keys and values of all entries whose value is not 0: word w of entry i is out[w * capacity + i].

    Returns their number.  O(slots).
    """
    arena, maps = pointer(arena_words), pointer(map_words)
    base, words, keys, values = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_KEYS], maps[m + M_VALUES]
    n = 0
    for at in range(base, base + (maps[m + M_MASK] + 1) * words, words):
        if keys > 0 and arena[at] == EMPTY:
            continue
        value = value_at(arena, maps, m, at)
        if is_live(arena, value, values):
            for w in range(keys):
                out[w * capacity + n] = arena[at + w]
            for w in range(values):
                out[(keys + w) * capacity + n] = arena[value + w]
            n += 1
    return n
