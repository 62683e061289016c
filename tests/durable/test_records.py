"""What is written is read back as it was."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.durable import frames
from dlog.durable.columns import pack, unpack
from dlog.durable.records import BranchRecord, CommitRecord, Texts, read_record
from dlog.durable.replay import restore_texts
from dlog.heads.counts import net_change
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.index.batch import Change

WORDS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-300, 300), st.integers(2**31 - 9, 2**32 + 9))


@given(st.lists(WORDS, max_size=40), st.booleans())
def test_invariant_columns_come_back(values: list[int], in_order: bool) -> None:
    array = np.array(sorted(values) if in_order else values, np.int64)
    data = b"before" + b"".join(pack(array)) + b"behind"
    found, end = unpack(memoryview(data), 6)
    assert found.tolist() == array.tolist() and data[end:] == b"behind"


def test_columns_take_as_few_bytes_as_they_need() -> None:
    sizes = [sum(map(len, pack(np.arange(1000) * step))) - 18 for step in (0, 1, 300, 10**9, 10**16)]
    assert sizes == [0, 1000, 2000, 4000, 8000]


@st.composite
def changes(draw: st.DrawFn) -> Change:
    arity = draw(st.integers(0, 4))
    parts = [
        np.array(draw(st.lists(st.tuples(*[WORDS] * arity), max_size=30)), np.int64).reshape(-1, arity)
        if arity
        else np.empty((draw(st.integers(0, 1)), 0), np.int64)
        for _ in range(2)
    ]
    return Change(*parts)


COMMITS = st.builds(
    CommitRecord,
    st.integers(0, 2**63),
    st.floats(0, 1e12),
    st.text(min_size=1),
    st.dictionaries(st.text(min_size=1, max_size=9), changes(), max_size=3),
    st.none() | st.text(),
    st.none() | st.text(),
    st.none() | st.integers(0, 2**63),
    st.none() | st.builds(Texts, st.integers(0, 99), st.just(np.array([1, 2])), st.just(b"abc")),
)


def shape(record: CommitRecord) -> object:
    rows = {n: [(p.shape, p.tolist()) for p in change] for n, change in record.changes.items()}
    texts = record.texts and (record.texts.first, record.texts.lengths.tolist(), bytes(record.texts.data))
    return (
        record.version,
        record.time,
        record.branch,
        rows,
        record.program,
        record.batch_id,
        record.merged,
        texts,
    )


@given(COMMITS)
def test_invariant_commits_come_back(record: CommitRecord) -> None:
    found = read_record(memoryview(b"".join(record.parts())))
    assert isinstance(found, CommitRecord) and shape(found) == shape(record)


@given(st.text(), st.none() | st.text())
def test_invariant_branches_come_back(name: str, of: str | None) -> None:
    assert read_record(memoryview(b"".join(BranchRecord(name, of).parts()))) == BranchRecord(name, of)


@given(st.lists(st.binary(max_size=50), max_size=6))
def test_invariant_frames_come_back(payloads: list[bytes]) -> None:
    data = frames.header(frames.LOG, 3) + b"".join(
        frames.frame_of(len(p), zlib.crc32(p), 0) + p for p in payloads
    )
    assert frames.read_header(data, Path("x"), frames.LOG) == 3
    found, tail = frames.records(data, Path("x"))
    assert [bytes(one.payload) for one in found] == payloads and not tail.cut


@given(st.lists(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=6), max_size=8))
def test_oracle_changes_that_follow_each_other(steps: list[list[tuple[int, bool]]]) -> None:
    """Undone and done again, one by one and all at once."""
    before: set[int] = {0, 1}
    state, made = set(before), []
    for step in steps:
        later = (state - {k for k, there in step if not there}) | {k for k, there in step if there}
        made.append(Change(_rows(later - state), _rows(state - later)))
        state = later
    if not made:
        return
    net = net_change(made)
    assert (before | _set(net.inserted)) - _set(net.erased) == state
    assert not _set(net.inserted) & before and _set(net.erased) <= before


def _rows(keys: set[int]) -> np.ndarray:
    return np.array(sorted((k, k) for k in keys), np.int64).reshape(-1, 2)


def _set(rows: np.ndarray) -> set[int]:
    return {int(k) for k, _ in rows}


def test_texts_keep_their_codes() -> None:
    one, other = Dictionary(), Dictionary()
    one.encode(pa.array(["b", "", "ä€", "a"]))
    parts = [Texts(0, *one.since(0, 1)), Texts(1, *one.since(1, 4))]
    restore_texts(other, parts)
    assert other.texts().to_pylist() == ["b", "", "ä€", "a"]
    for wrong in (parts[1:], parts, [Texts(4, *one.since(0, 1))]):
        with pytest.raises(ValueError, match="code"):
            restore_texts(Dictionary() if wrong is parts[1:] else other, wrong)
