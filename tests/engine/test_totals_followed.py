"""Random programs with recursive sums and counts: the engine agrees with the naive evaluator."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.commit.printed_facts import fact_text
from dlog.engine.why import derivation
from dlog.errors import DataError
from tests.engine.followed import follow
from tests.engine.test_random_programs import agree
from tests.examples import relaxed
from tests.oracle.derivations import acyclic
from tests.oracle.totals import totals


@relaxed(60)
@given(totals())
def test_oracle_totals(text: str) -> None:
    agree(text)


@relaxed(40)
@given(st.data(), totals())
def test_oracle_totals_in_transactions(data: st.DataObject, text: str) -> None:
    follow(data, text)


@pytest.mark.fuzz
@relaxed(3000, random=True)
@given(st.data(), totals())
def test_fuzz_totals(data: st.DataObject, text: str) -> None:
    follow(data, text)


def test_every_row_has_a_derivation() -> None:
    """By earlier rounds only, also from totals that have grown since; the programs have such rows."""
    replaced = 0

    @relaxed(25)
    @given(totals())
    def check(text: str) -> None:
        nonlocal replaced
        try:
            db = dlog.Database(source=text)
        except DataError:
            return
        for name in db.predicates():
            for row in db[name].rows()[:6]:
                root = derivation(db, fact_text(db.program.predicates[name], row))
                nodes = list(acyclic(root))
                assert all(node.parts or node.assignments or node.by == "fact" for node in nodes)
                replaced += any(node.replaced for node in nodes)

    check()
    assert replaced
