"""Random programs with records and algebraic data types: the engine agrees with the naive evaluator."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.storage.dictionary.records.table import RecordTable
from tests.engine.followed import follow
from tests.engine.test_random_programs import agree
from tests.examples import relaxed
from tests.oracle.records import record_programs


@relaxed(100)
@given(record_programs())
def test_oracle_records(text: str) -> None:
    agree(text)


@relaxed(60)
@given(st.data(), record_programs())
def test_oracle_records_in_transactions(data: st.DataObject, text: str) -> None:
    follow(data, text)


@pytest.mark.parametrize("strategy", ["delta", "trace", "trace-exact", "views", "multilevel", "join_graph"])
def test_oracle_records_under_each_strategy(strategy: str) -> None:
    @relaxed(30)
    @given(st.data(), record_programs())
    def check(data: st.DataObject, text: str) -> None:
        follow(data, text, strategy)

    check()


def test_oracle_records_collected_after_each_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordTable, "may_be_garbage", True)

    @relaxed(60)
    @given(st.data(), record_programs())
    def check(data: st.DataObject, text: str) -> None:
        follow(data, text, data.draw(st.sampled_from([None, "delta", "trace"])))

    check()


@pytest.mark.fuzz
@relaxed(3000, random=True)
@given(st.data(), record_programs(derived=5))
def test_fuzz_records(data: st.DataObject, text: str) -> None:
    follow(data, text)
