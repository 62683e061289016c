"""Owns the memory of maps: where their tables are, when one is rebuilt, larger or smaller.

Correct output: a map behaves as a dict from keys to values in which missing keys are 0.  Its memory is in
proportion to its entries that are not 0, or to the rows that are known to come: a table is rebuilt when
five eighths of it are full, as large as its live slots need; if most rows are new keys, twice that while
it is modest, or as large as rows to come may need, by the share of them that brings new keys.  It is also
rebuilt when many rows were added since the live slots were last counted.  So a row costs amortised O(1), and
dead slots are found without counting every one.

Knows nothing of statements; values are words, as a ring lays them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dlog.jit import Floats, Words
from dlog.m3.runtime.layout import (
    CHANGE_WORDS,
    CHUNK,
    EMPTY,
    EXACT,
    EXACT_WORDS,
    LAST,
    LINE,
    M_BASE,
    M_CHANGED,
    M_DRAINED,
    M_INDEX,
    M_INDICES,
    M_KEYS,
    M_KINDS,
    M_LIMIT,
    M_LINKED,
    M_LOGGED,
    M_MASK,
    M_ORDER,
    M_ORDERS,
    M_ROOM,
    M_SHIFT,
    M_UPDATES,
    M_USED,
    M_VALUES,
    M_WORDS,
    M_WORDS_OF_MAP,
    T_WORDS,
)
from dlog.m3.runtime.maps.apart import Elements
from dlog.m3.runtime.maps.apart_kernels import read_whole, write_whole
from dlog.m3.runtime.maps.change_kernels import check_changed, list_changed
from dlog.m3.runtime.maps.exact import WideSums
from dlog.m3.runtime.maps.exact_kernels import check_sums, read_sums
from dlog.m3.runtime.maps.map_check_kernels import check_table
from dlog.m3.runtime.maps.map_kernels import (
    changed_much,
    clear_table,
    count_live,
    count_used,
    link_table,
    read_entries,
    take_over,
)
from dlog.m3.runtime.maps.orders import Orders, order_words, sum_parts
from dlog.storage.arena.arena import Arena
from dlog.storage.arena.regions import Memory

SMALLEST = 8  # slots
FULL = 5  # eighths of a table's slots may be used
LEAP = 16  # times the slots that are needed: the most that is made for rows to come
MODEST = 1 << 21  # words of a table that may be made larger than needed, so that it is rebuilt less often
LISTED = 256  # slots that are listed before they are moved
COUNT_AFTER = 1 << 12  # rows at least, before live slots are counted


@dataclass(frozen=True)
class Shape:
    """The shape of a map: the kinds of its value words, the keys of each index, and all keys as each order
    sorts them.
    """

    keys: int
    kinds: tuple[int, ...]
    indices: tuple[tuple[int, ...], ...] = ()
    apart: bool = False  # values lie apart from slots.  REQUIRES: keys, no indices, no orders
    orders: tuple[tuple[int, ...], ...] = ()
    summed: int = 0  # value words that trees have, with their sums: all of a ring's, or none
    drained: bool = False  # changes are drained.  REQUIRES: not apart, the first value word is an integer

    @property
    def is_exact(self) -> bool:
        """Whether values are exact sums of floats."""
        return self.kinds[:1] == (EXACT,)


class Maps:
    """The maps of one program.  A map is known by its address in `words`."""

    def __init__(self, shapes: Sequence[Shape], arena: Memory | None = None):
        self.arena: Memory = arena or Arena(in_large_pages=True)
        self.shapes = tuple(shapes)
        self.addresses = addresses(shapes)
        self.words = self._headers()
        self._own_words = self.words[: M_WORDS_OF_MAP * len(shapes)]
        self._listed = np.zeros(LISTED, np.int64)  # memory of `take_over`
        self._records = [-1] * len(shapes)
        self._rooms = [0] * len(shapes)  # the most rows that were lately added at once, at most a chunk
        self._used = [0] * len(shapes)  # slots in use when M_UPDATES was 0
        self._added = [0] * len(shapes)  # rows that were added before M_UPDATES was 0
        self._elements = {
            i: Elements(self.arena, self.words, self.addresses[i], len(shape.kinds))
            for i, shape in enumerate(shapes)
            if shape.apart
        }
        self._sums = {
            i: WideSums(self.arena, self.words, self.addresses[i])
            for i, shape in enumerate(shapes)
            if shape.is_exact
        }
        self._orders = {
            i: Orders(self.arena, self.words, self.addresses[i])
            for i, shape in enumerate(shapes)
            if shape.orders
        }
        for address in self.addresses:
            self.words[address + M_LOGGED] = -1
        for i in range(len(shapes)):
            self._make(i, SMALLEST if shapes[i].keys else 1)

    def _headers(self) -> Words:
        at = M_WORDS_OF_MAP * len(self.shapes)
        lists: list[int] = []
        words = np.zeros(at, np.int64)
        for address, shape in zip(self.addresses, self.shapes, strict=True):
            words[address + M_KEYS] = shape.keys
            words[address + M_VALUES] = len(shape.kinds)
            words[address + M_INDICES] = len(shape.indices)
            words[address + M_DRAINED] = shape.keys + len(shape.kinds) if shape.drained else 0
            words[address + M_KINDS] = at + len(lists)
            lists += shape.kinds
            words[address + M_INDEX] = at + len(lists)
            for index in shape.indices:
                lists += [len(index), *index]
            words[address + M_ORDERS] = len(shape.orders)
            lists += self._order_words(at + len(lists), shape)
            words[address + M_ORDER] = at + len(lists) - len(shape.orders) * T_WORDS
        return np.concatenate([words, np.array(lists, np.int64)])

    @staticmethod
    def _order_words(at: int, shape: Shape) -> list[int]:
        """The places of each order's keys, the kinds of parts, then the orders; to be put at a place."""
        parts = sum_parts(shape.kinds[: shape.summed])
        lists = [place for order in shape.orders for place in order]
        kinds = at + len(lists)
        lists += [word for part in parts for word in part]
        for i in range(len(shape.orders)):
            values, sums = shape.summed if parts else 0, EXACT_WORDS if shape.is_exact else 2
            lists += order_words(shape.keys, len(parts), sums, values, at + i * shape.keys, kinds)
        return lists

    # ---- growing and shrinking

    def grow(self, address: int, room: int, coming: int = 0) -> None:
        """A table with room for this many more entries, and perhaps for rows that are coming.  O(slots)."""
        i = address // M_WORDS_OF_MAP
        self._rooms[i] = max(self._rooms[i], room)
        used, updates = int(self.words[address + M_USED]), int(self.words[address + M_UPDATES])
        if used + room <= self._most(i):  # only elements are missing
            self._provide(i)
            return
        if 4 * (used - self._used[i]) > 3 * updates:  # most rows are new keys: few slots can be dead
            coming = min(coming, _keys(self._used[i], used, updates) - used)
            self._renew(i, self._ample(i, used, room, coming))
        else:
            self._renew(i, _slots(count_live(self.arena.A, self.words, address) + room))

    def _ample(self, i: int, used: int, room: int, coming: int) -> int:
        """Slots for a map to which most rows bring a new key."""
        slots = _slots(used + room)
        if used and coming > room:
            return max(slots, min(_slots_filled(used + coming), LEAP * slots))
        return 2 * slots if 2 * slots * self._width(i) <= MODEST else slots

    def give_wide(self, address: int) -> None:
        """Wide sums for a map of exact sums."""
        self._sums[address // M_WORDS_OF_MAP].grow()

    def give_links(self, address: int) -> None:
        """Memory for the chains of a map, and the chains.  O(slots)."""
        i = address // M_WORDS_OF_MAP
        self._renew(i, int(self.words[address + M_MASK]) + 1, with_links=True)
        link_table(self.arena.A, self.words, address)

    def give_trees(self, address: int) -> None:
        """The trees of an ordered map.  O(n log n)."""
        i = address // M_WORDS_OF_MAP
        self._orders[i].make(self.entries(i))

    def give_pages(self, address: int) -> None:
        """Nodes for the trees of an ordered map."""
        self._orders[address // M_WORDS_OF_MAP].give_pages()

    def settle(self) -> None:
        """Free the memory of maps that shrank.  Amortised O(1) for each row that was added."""
        address = changed_much(self._own_words, 0, COUNT_AFTER)
        while address >= 0:
            i, slots = address // M_WORDS_OF_MAP, int(self.words[address + M_MASK]) + 1
            self._count_from_zero(i)
            self._used[i] = int(self.words[address + M_USED])
            live = count_live(self.arena.A, self.words, address)
            self._rooms[i], self.words[address + M_ROOM] = max(int(self.words[address + M_ROOM]), 1), 0
            wanted = _slots(live + self._rooms[i]) if self.shapes[i].keys else 1
            if 4 * wanted < slots:
                self._renew(i, wanted)
            if i in self._orders:
                self._orders[i].shrink()
            address = changed_much(self._own_words, address + M_WORDS_OF_MAP, COUNT_AFTER)

    def _renew(self, i: int, slots: int, with_links: bool = False) -> None:
        """A table of this many slots with what is in the old one; with links also if that one has them."""
        if i in self._orders:  # the log has slots
            self._orders[i].apply()
        address, record = self.addresses[i], self._records[i]
        base, old = int(self.words[address + M_BASE]), int(self.words[address + M_MASK]) + 1
        words, is_linked = int(self.words[address + M_WORDS]), self.words[address + M_LINKED]
        self._take(i, slots, with_links or words > self._bare(i))
        take_over(self.arena.A, self.words, address, base, old, words, self._listed)
        self._used[i] = int(self.words[address + M_USED])
        self._provide(i)
        if self.shapes[i].drained and self.words[address + M_CHANGED] != LAST:
            list_changed(self.arena.A, self.words, address)
        if is_linked:
            link_table(self.arena.A, self.words, address)
        with self.arena.lock:
            self.arena.release_extent(record)

    def _most(self, i: int) -> int:
        """How many slots of a table may be used."""
        return (int(self.words[self.addresses[i] + M_MASK]) + 1) * FULL // 8

    def _provide(self, i: int) -> None:
        """Elements for as many more entries as were ever requested at once, if values are apart."""
        if i in self._elements:
            elements, address, most = self._elements[i], self.addresses[i], self._most(i)
            wanted = min(int(self.words[address + M_USED]) + self._rooms[i], most)
            if elements.number > 2 * most:
                elements.pack(wanted)
            elements.provide(wanted, most)
            self.words[address + M_LIMIT] = min(most, elements.number)

    def _make(self, i: int, slots: int, with_links: bool = False) -> None:
        """An empty table in place of the current one, in the same memory.  O(slots)."""
        if i in self._orders:
            self._orders[i].drop()
        self._take(i, slots, with_links)
        clear_table(self.arena.A, self.words, self.addresses[i])
        self.words[self.addresses[i] + M_UPDATES] = 0
        if i in self._elements:
            self._elements[i].begin_anew()
            self.words[self.addresses[i] + M_LIMIT] = 0

    def _take(self, i: int, slots: int, with_links: bool) -> None:
        """Memory for a table in place of the current one."""
        address = self.addresses[i]
        links = len(self.shapes[i].indices) if with_links else 0
        self.words[address + M_WORDS] = self._bare(i) + links
        words = slots * self._width(i)
        with self.arena.lock:
            self._records[i], base = self.arena.new_extent(max(words, 1))
        self.words[address + M_BASE] = base
        self.words[address + M_MASK] = slots - 1
        self.words[address + M_SHIFT] = 64 - (slots.bit_length() - 1) if slots > 1 else 63
        self.words[address + M_LIMIT] = self._most(i)
        self._count_from_zero(i)
        self._used[i] = 0

    def _count_from_zero(self, i: int) -> None:
        """Rows that are added to a map."""
        self._added[i] += int(self.words[self.addresses[i] + M_UPDATES])
        self.words[self.addresses[i] + M_UPDATES] = 0

    def empty(self, i: int) -> None:
        """Drop all entries.  O(1), and O(wide sums)."""
        record = self._records[i]
        self._make(i, SMALLEST if self.shapes[i].keys else 1)
        with self.arena.lock:
            self.arena.release_extent(record)
        if i in self._sums:
            self._sums[i].free()

    def release(self) -> None:
        """Give all memory back to the arena, which others may use.  REQUIRES: no map is used any more."""
        for orders in self._orders.values():
            orders.drop()
        for elements in self._elements.values():
            elements.begin_anew()
        for sums in self._sums.values():
            sums.release()
        with self.arena.lock:
            for record in self._records:
                self.arena.release_extent(record)

    # ---- copies

    def copies(self) -> list[Words]:
        """The words of every table, a row for each slot, with its element; then all wide sums.  O(memory)."""
        for i in self._sums.keys() & self._orders.keys():  # trees have wide sums, and are not copied
            self._orders[i].drop()
        return [self._copy(i) for i in range(len(self.shapes))] + [w.copy() for w in self._sums.values()]

    def _copy(self, i: int) -> Words:
        if i not in self._elements:
            return self._words(i).reshape(-1, self._width(i)).copy()
        address, shape = self.addresses[i], self.shapes[i]
        out = np.zeros((int(self.words[address + M_MASK]) + 1, shape.keys + len(shape.kinds)), np.int64)
        write_whole(self.arena.A, self.words, address, out.reshape(-1))
        return out

    def put_back(self, copies: list[Words]) -> None:
        """Restore all tables.  REQUIRES: `copies` of these maps.  O(memory)."""
        tables, sums = copies[: len(self.shapes)], copies[len(self.shapes) :]
        for i, (address, copy) in enumerate(zip(self.addresses, tables, strict=True)):
            record = self._records[i]
            self._make(i, len(copy), not self.shapes[i].apart and copy.shape[1] > self._bare(i))
            with self.arena.lock:
                self.arena.release_extent(record)
            if i in self._elements:
                self._put_back_apart(i, copy)
            else:
                self._words(i)[:] = copy.reshape(-1)
            self._used[i] = count_used(self.arena.A, self.words, address)
            if self.shapes[i].drained:
                list_changed(self.arena.A, self.words, address)
            self.words[address + M_USED] = self._used[i]
        for wide, copy in zip(self._sums.values(), sums, strict=True):
            wide.put_back(copy)

    def _put_back_apart(self, i: int, copy: Words) -> None:
        self.words[self.addresses[i] + M_USED] = np.count_nonzero(copy[:, 0] != EMPTY)
        self._provide(i)
        read_whole(self.arena.A, self.words, self.addresses[i], copy.reshape(-1))

    def _bare(self, i: int) -> int:
        """Words of a slot without links; rounded up to whole cache lines, if that is little more."""
        words = self.shapes[i].keys + (1 if self.shapes[i].apart else len(self.shapes[i].kinds))
        words += CHANGE_WORDS if self.shapes[i].drained else 0
        more = -words % LINE
        return words + more if 4 * more <= words > LINE // 2 and not self.shapes[i].indices else words

    def _width(self, i: int) -> int:
        """Words of a slot and of its heads."""
        words = int(self.words[self.addresses[i] + M_WORDS])
        return 2 * words - self._bare(i)

    def _words(self, i: int) -> Words:
        address = self.addresses[i]
        base, slots = int(self.words[address + M_BASE]), int(self.words[address + M_MASK]) + 1
        return self.arena.A[base : base + slots * self._width(i)]

    # ---- reading

    def table(self, i: int) -> Words:
        """(slots, words): the table itself, to be read or written."""
        address = self.addresses[i]
        base, slots = int(self.words[address + M_BASE]), int(self.words[address + M_MASK]) + 1
        width = int(self.words[address + M_WORDS])
        return self.arena.A[base : base + slots * width].reshape(slots, width)

    def entries(self, i: int) -> Words:
        """(words, entries): the keys and value words of all entries whose value is not 0.  O(slots)."""
        address, shape = self.addresses[i], self.shapes[i]
        capacity = count_live(self.arena.A, self.words, address)
        out = np.empty((shape.keys + len(shape.kinds)) * max(capacity, 1), np.int64)
        n = read_entries(self.arena.A, self.words, address, out, max(capacity, 1))
        return out.reshape(-1, max(capacity, 1))[:, :n]

    def added(self, i: int) -> int:
        """How many rows were ever added to a map, and slots that were cleared."""
        return self._added[i] + int(self.words[self.addresses[i] + M_UPDATES])

    def live(self, i: int) -> int:
        """How many entries have a value that is not 0.  O(slots)."""
        return int(count_live(self.arena.A, self.words, self.addresses[i]))

    def sums(self, i: int) -> tuple[Words, Floats]:
        """(keys, entries) and the rounded values of a map of exact sums.  O(slots)."""
        address, keys = self.addresses[i], self.shapes[i].keys
        capacity = max(count_live(self.arena.A, self.words, address), 1)
        words, out = np.empty(max(keys, 1) * capacity, np.int64), np.empty(capacity)
        n = read_sums(self.arena.A, self.words, address, words, out, capacity)
        return words.reshape(-1, capacity)[:keys, :n], out[:n]

    def memory(self) -> int:
        """Bytes of all tables and elements."""
        tables = sum(self._words(i).nbytes for i in range(len(self.shapes)))
        tables += sum(elements.memory() for elements in self._elements.values())
        tables += sum(orders.memory() for orders in self._orders.values())
        return tables + sum(wide.memory() for wide in self._sums.values())

    def order_memory(self, i: int) -> int:
        """Bytes of the trees of a map."""
        return self._orders[i].memory() if i in self._orders else 0

    def check(self) -> None:
        """Assert that every table is consistent.  O(slots * longest chain)."""
        for i, orders in self._orders.items():
            orders.check(self.entries(i))
        for i, elements in self._elements.items():
            elements.check(self.table(i))
        for i in self._sums:
            assert check_sums(self.arena.A, self.words, self.addresses[i]) == 0, f"map {i} has an unsound sum"
            others = self._orders[i].wide_sums() if i in self._orders else []
            self._sums[i].check(self.table(i), self.shapes[i].keys, others)
        for address in self.addresses:
            broken = check_table(self.arena.A, self.words, address)
            assert broken == 0, f"map at {address} violates rule {broken}"
            is_drained = bool(self.words[address + M_DRAINED])
            assert not is_drained or check_changed(self.arena.A, self.words, address), (
                "changes are not listed"
            )
            used, limit = self.words[address + M_USED], self.words[address + M_LIMIT]
            assert self.words[address + M_KEYS] == 0 or used <= limit


def addresses(shapes: Sequence[Shape]) -> list[int]:
    return [M_WORDS_OF_MAP * i for i in range(len(shapes))]


def _keys(before: int, used: int, rows: int) -> int:
    """An estimate of the number of keys, from how many of some rows brought a new one:
    one of n keys is new with the share of n that was not there before.
    """
    repeated = rows - (used - before)
    return (before + used) * rows // (2 * repeated) if repeated > 0 else 1 << 62


def _slots(entries: int) -> int:
    """At most half full, so that a table is not rebuilt soon; new memory costs more than a probe."""
    return max(SMALLEST, 1 << (2 * entries - 1).bit_length()) if entries else SMALLEST


def _slots_filled(entries: int) -> int:
    """As many as this many entries, and a chunk of rows that might all be new, need."""
    return 1 << (-(-8 * (entries + CHUNK) // FULL) - 1).bit_length()
