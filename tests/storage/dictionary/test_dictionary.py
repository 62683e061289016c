"""The string dictionary against a Python dict, and ranks against sorted()."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.storage.dictionary.dictionary import Dictionary

texts = st.text(st.characters(codec="utf-8"), max_size=6)
batches = st.lists(st.lists(texts, max_size=30), max_size=6)


@settings(deadline=None)
@given(batches, st.sampled_from([pa.string(), pa.large_string(), pa.string_view()]))
def test_model_codes_in_order_of_arrival(batches: list[list[str]], kind: pa.DataType) -> None:
    names = Dictionary()
    model: dict[str, int] = {}
    for batch in batches:
        expected = [model.setdefault(text, len(model)) for text in batch]
        codes = names.encode(pa.array(batch, kind))
        assert codes.tolist() == expected
        assert names.decode(codes).to_pylist() == batch
        names.check()
    assert names.texts().to_pylist() == list(model)
    assert [names.find(text) for text in model] == list(model.values())
    assert [names.decode_one(code) for code in model.values()] == list(model)


@settings(deadline=None)
@given(batches)
def test_model_rank_is_the_position_in_text_order(batches: list[list[str]]) -> None:
    names = Dictionary()
    for batch in batches:
        names.encode(pa.array(batch, pa.string()))
        all_texts = names.texts().to_pylist()
        order = sorted(all_texts)  # Python sorts by code points
        assert names.rank.tolist() == [order.index(text) for text in all_texts]


_PIECES = st.lists(st.sampled_from(["a", "b", "\0", "é", "漢", "common ", "0123456"]), max_size=9)


@settings(deadline=None, max_examples=30, derandomize=True)
@given(st.lists(_PIECES.map("".join), min_size=40, max_size=400), st.integers(0, 40))
def test_model_rank_of_many_texts_that_begin_alike(texts: list[str], known: int) -> None:
    """Enough of them for the radix sort, some in the order already; at last a few, which are merged."""
    names = Dictionary()
    for part in (texts[:known], texts[known:], ["new", "a new one", ""]):
        names.encode(pa.array(part, pa.string()))
        rank, order = names.ranking(len(names))
        assert [names.decode_one(code) for code in order.tolist()] == sorted(names.texts().to_pylist())
        assert rank[order].tolist() == list(range(len(names)))


_LENGTHS = st.integers(0, 40).map(lambda n: ("0123456789é" * 4)[:n])


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    st.lists(_PIECES.map("".join) | _LENGTHS, min_size=1, max_size=12),
    st.lists(st.lists(st.integers(0, 11), min_size=3, max_size=3), max_size=80),
    st.lists(st.lists(st.integers(0, 11), min_size=3, max_size=3), max_size=40),
    st.integers(1, 3),
)
def test_model_joined_texts(
    pieces: list[str], rows: list[list[int]], more: list[list[int]], width: int
) -> None:
    """New ones, known ones and repeated ones side by side, in any mixture; codes in order of arrival."""
    names = Dictionary()
    codes = names.encode(pa.array(pieces, pa.string()))
    model = {text: code for code, text in enumerate(names.texts().to_pylist())}
    for part in (rows, more, rows):
        chosen = np.array(part, np.int64).reshape(-1, 3)[:, :width] % len(pieces)
        expected = ["".join(pieces[i] for i in row) for row in chosen.tolist()]
        joined = names.encode_joined([codes[chosen[:, c]] for c in range(width)])
        assert joined.tolist() == [model.setdefault(text, len(model)) for text in expected]
        assert names.texts().to_pylist() == list(model)
        names.check()


def test_joined_texts_longer_than_all_room() -> None:
    names = Dictionary()
    long, short = names.encode(pa.array(["x" * 100_000, "y"]))
    rows = [np.array([long, short] * 40), np.array([long, long] * 40)]
    assert [len(t) for t in names.decode(names.encode_joined(rows)).to_pylist()] == [200_000, 100_001] * 40
    names.check()


def test_numbered_texts_have_distinct_hashes() -> None:
    """Texts that differ in a few digits must not share slots: look-ups would go through long runs."""
    for pattern in ("%d", "user%d@example.org", "team %07d", "%d" + " and more" * 5):
        names = Dictionary()
        names.encode(pa.array([pattern % i for i in range(30_000)]))
        slots = names._table
        hashes = slots[slots != 0] >> 32
        assert len(np.unique(hashes)) > 0.999 * len(hashes)
        displaced = (np.flatnonzero(slots) - hashes) & (len(slots) - 1)
        assert displaced.mean() < 1


@settings(deadline=None, max_examples=30, derandomize=True)
@given(st.lists(_PIECES.map("".join), min_size=1, max_size=60), st.data())
def test_model_ranks_compare_as_texts(texts: list[str], data: st.DataObject) -> None:
    """Of some codes, however many of the dictionary's texts have been put in order for them."""
    names = Dictionary()
    codes = names.encode(pa.array(texts, pa.string()))
    for _ in range(4):
        places = st.lists(st.integers(0, len(texts) - 1), max_size=8)
        a, b = (np.array(data.draw(places), np.int64) for _ in range(2))
        first, second = names.ranks(codes[a], codes[b])
        for i, x in zip(a, first, strict=True):
            for j, y in zip(b, second, strict=True):
                assert (x < y, x == y) == (texts[i] < texts[j], texts[i] == texts[j])


def test_rank_stays_until_a_text_is_added() -> None:
    names = Dictionary()
    names.encode(pa.array(["b", "a"]))
    rank = names.rank
    names.encode(pa.array(["a", "b", "a"]))
    assert names.rank is rank
    names.encode_one("aa")
    assert names.rank.tolist() == [2, 0, 1]


def test_growth_over_many_texts() -> None:
    names = Dictionary()
    many = [f"text number {i}" * (i % 5) for i in range(20_000)]
    codes = names.encode(pa.array(many))
    assert names.decode(codes).to_pylist() == many
    assert len(names) == len(set(many))
    names.check()


def test_one_text_longer_than_all_room() -> None:
    names = Dictionary()
    long = "x" * 1_000_000
    assert names.encode(pa.array(["a", long, "a", long])).tolist() == [0, 1, 0, 1]
    assert names.decode_one(1) == long


def test_dictionary_arrays_and_slices() -> None:
    names = Dictionary()
    array = pa.array(["x", "y", "x", "z"]).dictionary_encode()
    assert names.encode(array).tolist() == [0, 1, 0, 2]
    assert names.encode(pa.array(["q", "z", "y"]).slice(1)).tolist() == [2, 1]
    assert names.find("q") is None
    assert len(names) == 3


def test_texts_handed_out_stay_as_they_were() -> None:
    names = Dictionary()
    names.encode(pa.array(["first", "second"]))
    before = names.texts()
    names.encode(pa.array([f"more {i}" for i in range(5000)]))
    assert before.to_pylist() == ["first", "second"]


def test_unused_entries_of_a_dictionary_array_get_codes_but_rows_are_right() -> None:
    names = Dictionary()
    array = pa.DictionaryArray.from_arrays(pa.array([1, 1], pa.int8()), pa.array(["unused", "used"]))
    assert names.decode(names.encode(array)).to_pylist() == ["used", "used"]


@pytest.mark.parametrize("n", [0, 1])
def test_empty_and_single(n: int) -> None:
    names = Dictionary()
    assert len(names.encode(pa.array([""] * n, pa.string()))) == n
    assert names.decode(np.zeros(n, np.int64)).to_pylist() == [""] * n
