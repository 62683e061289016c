"""Memory: handing out, taking back, and giving back to the system."""

from __future__ import annotations

import gc
import threading
import weakref
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.errors import LimitError
from dlog.storage.arena import arena_kernels as memory
from dlog.storage.arena.arena import KEPT_BYTES, Arena
from dlog.storage.index.index import Index
from tests.storage.conftest import TINY

MIB = 1 << 20


@settings(deadline=None)
@given(st.integers(0, 1 << 36))
def test_size_class_is_the_smallest_that_fits(words: int) -> None:
    size_class = getattr(memory.size_class, "py_func", memory.size_class)
    class_words = getattr(memory.class_words, "py_func", memory.class_words)
    c = size_class(words)
    assert class_words(c) >= words
    assert c == 0 or class_words(c - 1) < words
    assert class_words(c) <= max(16, words * 1.125 + 16)
    assert c < memory.N_CLASSES


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(1, 400_000), st.booleans()), max_size=30), st.randoms())
def test_model_extents_never_overlap_and_all_come_back(
    requests: list[tuple[int, bool]], random: object
) -> None:
    arena = Arena(256 * MIB)
    held: list[tuple[int, int, int]] = []
    for words, give_back in requests:
        with arena.lock:
            record, base = arena.new_extent(words)
            held.append((base, words, record))
            spans = sorted((b, b + w) for b, w, _ in held)
            assert all(end <= start for (_, end), (start, _) in pairwise(spans))
            assert spans[0][0] >= memory.META_WORDS and spans[-1][1] <= len(arena.A)
            if give_back:
                random.shuffle(held)  # type: ignore[attr-defined]
                arena.release_extent(held.pop()[2])
        arena.check()
    with arena.lock:
        for _, _, record in held:
            arena.release_extent(record)
    assert arena.usage().used_words == arena.usage().used_extents == 0
    arena.check()


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_large_extents_go_back_to_the_system() -> None:
    arena = Arena()
    before = resident_bytes()
    with arena.lock:
        record, base = arena.new_extent(8 * MIB)
        arena.A[base : base + 8 * MIB] = 1
        assert resident_bytes() - before > 60 * MIB
        arena.release_extent(record)
    assert resident_bytes() - before < 8 * MIB


def test_memory_in_large_pages_goes_back_in_whole_ones() -> None:
    """Neighbours that are freed one after the other are kept while they are small, and given back where they
    fill pages together when they are large."""
    arena, n, page = Arena(256 * MIB, in_large_pages=True), KEPT_BYTES // 8 // 4, 2 * MIB // 8
    with arena.lock:
        _, *taken = [arena.new_extent(n) for _ in range(7)]  # memory for their records follows the first
        start, end = taken[0][1], taken[-1][1]
        assert end - start == 5 * n
        arena.A[start:end] = 1
        for record, _ in taken[:3]:
            arena.release_extent(record)
        assert np.all(arena.A[start:end] == 1)
        for record, _ in taken[3:-1]:
            arena.release_extent(record)
    arena.check()
    pages = end // page - -(-start // page)
    assert np.count_nonzero(arena.A[start:end] == 0) == pages * page > 0


def test_freed_neighbours_become_one_range() -> None:
    arena = Arena(256 * MIB)
    with arena.lock:
        records = [arena.new_extent(memory.LARGE_WORDS)[0] for _ in range(5)]
        top = arena.words[memory.BUMP]
        for i in (1, 3, 2):
            arena.release_extent(records[i])
        base = arena.new_extent(3 * memory.LARGE_WORDS)[1]
        assert arena.words[memory.BUMP] == top
    arena.check()
    assert base < top - 3 * memory.LARGE_WORDS


def test_arenas_are_apart_and_unmapped_when_dropped() -> None:
    arenas = [Arena() for _ in range(20)]
    indices = [Index.build(arena, [(i, i)], 2) for i, arena in enumerate(arenas)]
    assert [index.rows().tolist() for index in indices] == [[[i, i]] for i in range(20)]
    alive = [weakref.ref(arena) for arena in arenas]
    del arenas, indices
    gc.collect()
    assert not any(ref() for ref in alive)


@pytest.mark.skipif(TINY, reason="takes many rows")
def test_a_full_arena_is_a_limit_and_changes_nothing() -> None:
    arena = Arena(16 * MIB)
    index = Index.build(arena, np.arange(20_000).reshape(10_000, 2), 2)
    before = arena.usage()
    with pytest.raises(LimitError):
        index.apply(inserts=np.arange(4_000_000).reshape(2_000_000, 2))
    with pytest.raises(LimitError):
        Index.build(arena, np.arange(4_000_000).reshape(2_000_000, 2), 2)
    after = arena.usage()
    assert (before.used_words, before.used_extents) == (after.used_words, after.used_extents)
    assert len(index) == 10_000
    index.check()
    smaller, _ = index.apply(erases=[(0, 1)])
    assert len(smaller) == 9_999


@pytest.mark.skipif(TINY, reason="takes many rows")
@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1000), st.integers(3, 8), st.booleans())
def test_running_out_of_memory_is_always_a_limit(seed: int, size: int, in_place: bool) -> None:
    """Whatever is reserved beforehand is enough: no change stops half-way."""
    rng = np.random.default_rng(seed)
    index = Index.build(Arena(size * MIB), rng.integers(0, 10_000, (100, 2)), 2)
    model = set(map(tuple, index.rows().tolist()))
    with pytest.raises(LimitError):
        while True:
            batch = rng.integers(0, 10**6, (rng.integers(1, 3000), 2))
            if in_place:
                index.apply_in_place(inserts=batch)
            else:
                index, _ = index.apply(inserts=batch)
            model |= set(map(tuple, batch.tolist()))
    assert index.rows().tolist() == [list(row) for row in sorted(model)]
    index.check()


def test_a_long_chain_of_versions_leaks_nothing() -> None:
    arena = Arena(256 * MIB)
    index = Index.build(arena, [(i, 0) for i in range(200 if TINY else 20_000)], 2)
    reserved = 0
    for step in range(300):
        index = index.insert_row((step * 37 % 200, step + 1)) or index
        index = index.erase_row((step * 37 % 200, step + 1)) or index
        if step == 100:
            reserved = arena.usage().reserved_words
    assert arena.usage().reserved_words == reserved
    assert len(index) == (200 if TINY else 20_000)
    index.check()


@pytest.mark.skipif(TINY, reason="uncompiled kernels do not release the lock of the interpreter")
def test_threads_read_old_versions_while_one_writes() -> None:
    arena = Arena(512 * MIB)
    index = Index.build(arena, np.arange(40_000).reshape(20_000, 2), 2)
    expected, wrong = index.rows(), []
    done = threading.Event()

    def read(mine: Index) -> None:
        while not done.is_set():
            if not np.array_equal(mine.rows(), expected) or not mine.contains((0, 1)):
                wrong.append(1)
            mine = mine.snapshot()

    readers = [threading.Thread(target=read, args=(index.snapshot(),)) for _ in range(2)]
    for reader in readers:
        reader.start()
    later = index
    for i in range(300):
        later, _ = later.apply(inserts=[(i * 7, -1)], erases=[(2 * i, 2 * i + 1)])
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong
    later.check()
    index.check()
