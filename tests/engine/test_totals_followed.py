"""Random programs with recursive sums and counts: the engine agrees with the naive evaluator."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.followed import follow
from tests.engine.test_random_programs import agree
from tests.examples import relaxed
from tests.oracle.totals import totals


@relaxed(150)
@given(totals())
def test_oracle_totals(text: str) -> None:
    agree(text)


@relaxed(80)
@given(st.data(), totals())
def test_oracle_totals_in_transactions(data: st.DataObject, text: str) -> None:
    follow(data, text)


@pytest.mark.fuzz
@relaxed(3000, random=True)
@given(st.data(), totals())
def test_fuzz_totals(data: st.DataObject, text: str) -> None:
    follow(data, text)
