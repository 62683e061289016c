"""kill -9 at any moment: what was acknowledged is there, what is there was attempted, and all is sound."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from pathlib import Path

import pytest

import dlog
from tests.durable.killed import Expected, work
from tests.durable.model import same


def _kill_in_a_loop(folder: Path, rounds: int, durability: str) -> int:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.durable.killed", "dlog.durable.database", "dlog.engine.why"])
    rng = random.Random(rounds)
    account, expected = folder / "account", Expected()
    for _ in range(rounds):
        before = account.stat().st_size if account.exists() else 0
        process = context.Process(target=work, args=(str(folder / "s"), str(account), durability))
        process.start()
        while not account.exists() or account.stat().st_size < before + 30:
            assert process.is_alive()
            time.sleep(0.001)
        time.sleep(rng.random() * 0.05)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        _require_sound(folder, account, expected)
    return len(account.read_text().splitlines())


def _require_sound(folder: Path, account: Path, expected: Expected) -> None:
    lines = [line.split() for line in account.read_text().splitlines()]
    tried, done = (max((int(n) for word, n in lines if word == w), default=0) for w in ("try", "done"))
    with dlog.Database(folder / "s") as db:
        last = max(db.branches().values())
        assert done <= last <= tried
        found = [same(model, db) for model in expected.after(last)]
        assert "" in found, found


@pytest.mark.parametrize("durability", ["full", "none"])
def test_invariant_killed_again_and_again(tmp_path: Path, durability: str) -> None:
    assert _kill_in_a_loop(tmp_path, 5, durability) >= 20


@pytest.mark.fuzz
@pytest.mark.parametrize("durability", ["full", "group"])
def test_invariant_killed_two_hundred_times(tmp_path: Path, durability: str) -> None:
    _kill_in_a_loop(tmp_path, 200, durability)
