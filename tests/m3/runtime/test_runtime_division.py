"""Which machine has which rows: few values are divided evenly; only columns that are read are copied; threads
end, and pass errors and interrupts on.
"""

from __future__ import annotations

import gc
import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.m3 import parse
from dlog.m3.runtime import parts
from dlog.m3.runtime.feeder import Step
from dlog.m3.runtime.layout import M_USED
from dlog.m3.runtime.runtime import Runtime
from dlog.m3.runtime.team import Team
from tests.examples import relaxed
from tests.m3.runtime.test_runtime_parts import HEAD, NAMES, SINGLE, TOTALS, check


def rows_of(keys: Any) -> np.ndarray:
    return np.stack([keys, np.ones(len(keys), np.int64), np.ones(len(keys), np.int64)]).astype(np.int64)


def entries(found: Runtime) -> list[int]:
    address = found.compiled.stores.map("V").address
    return [int(worker.maps.words[address + M_USED]) for worker in found._workers]


@pytest.mark.parametrize("batch", [10, 1000, 60_000])
@pytest.mark.parametrize("machines", [2, 3])
def test_few_values_are_divided_evenly(machines: int, batch: int) -> None:
    """Whatever their hashes are; several values may have the same hash."""
    found = Runtime(parse(TOTALS), threads=machines)
    words = rows_of(np.tile(np.arange(60) * 977, 1000))
    for start in range(0, 60_000, batch):
        found.apply_words("R", words[:, start : start + batch])
    found._apply_waiting()
    assert sum(entries(found)) == 60
    assert max(entries(found)) - min(entries(found)) <= 3
    found.check()


def test_a_frequent_value_is_divided_from_the_others() -> None:
    found = Runtime(parse(TOTALS), threads=2)
    found.apply_words("R", rows_of(np.r_[np.zeros(10_000), np.arange(10_000) % 100 + 1]))
    found.apply_words("R", rows_of(np.arange(101)))
    found._apply_waiting()
    assert min(entries(found)) <= 5 and sum(entries(found)) == 101


@relaxed(30)
@given(data=st.data())
def test_invariant_every_row_has_one_machine(data: Any) -> None:
    """The listed rows of all machines are all rows, each once and in order, also after others were seen."""
    machines = data.draw(st.integers(2, 5))
    found = Runtime(parse(TOTALS), threads=machines)
    assert found._parts is not None
    division = found._parts._division
    for _ in range(data.draw(st.integers(1, 3))):
        keys = data.draw(st.lists(st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(0, 5), max_size=1200))
        step = Step("R", rows_of(keys))
        division.see("R", step.words)
        listed = [division.list(step, p, np.empty(len(keys) + 512, np.int64)).copy() for p in range(machines)]
        assert all((np.diff(rows) > 0).all() for rows in listed)
        assert sorted(np.concatenate(listed).tolist()) == list(range(len(keys)))
        owners = {(keys[row], p) for p, rows in enumerate(listed) for row in rows.tolist()}
        assert len(owners) == len(set(keys)), "a value has two machines"


def test_columns_that_are_not_read_do_not_wait() -> None:
    """The code that would store a batch as a map is not part of a trigger that does not need it."""
    text = """CREATE STREAM R(a long, b long, c long, d long); DECLARE MAP V(long)[][a: long] := 0;
    ON BATCH UPDATE OF R { V(long)[][a] += AggSum([a], (DELTA R)(a, b, c, d) * c); }"""
    assert Runtime(parse(text)).compiled.columns_read["R"] == {0, 2, 4}
    joined = text.replace("* c)", "* (DELTA R)(a, e, c, d) * c)")
    assert Runtime(parse(joined)).compiled.columns_read["R"] == {0, 1, 2, 3, 4}


def test_waiting_events_that_fill_their_memory_are_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlog.m3.runtime.waiting.SMALL_BATCH", 8)
    monkeypatch.setattr("dlog.m3.runtime.waiting.MOST_WAITING", 16)
    monkeypatch.setattr(parts, "SMALL_BATCH", 8)
    program = check(parse(HEAD + SINGLE))
    one, found = Runtime(program, checked=True), Runtime(program, checked=True, threads=2)
    for i in range(40):  # signs change with each row: an event for each
        rows = [(i % 3, float(j)) for j in range(i % 7)]
        signs = [1 - 2 * (j % 2) for j in range(i % 7)]
        for each in (one, found):
            each.apply("R", rows, signs)
            each.apply("S", [(i % 3, i)])
    for name in NAMES:
        assert repr(found[name].to_pylist()) == repr(one[name].to_pylist()), name


def test_a_team_runs_jobs_everywhere_and_ends() -> None:
    before, seen = threading.active_count(), list[int]()
    team = Team(2)
    for _ in range(50):
        team.run(lambda: seen.append(threading.get_ident()), lambda: None)
    assert len(seen) == 150 and len(set(seen)) == 3 and threading.active_count() == before + 2
    del team
    gc.collect()
    for _ in range(1000):
        if threading.active_count() == before:
            break
        time.sleep(0.01)
    assert threading.active_count() == before


def test_an_interrupt_stops_a_team_and_comes_when_all_have_ended() -> None:
    team, stopped, ended = Team(1), threading.Event(), list[bool]()

    def job() -> None:
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        ended.append(stopped.wait(30))

    with pytest.raises(KeyboardInterrupt):
        team.run(job, stopped.set)
    assert ended == [True]
    team.run(lambda: ended.append(False), lambda: None)
    assert len(ended) == 3
