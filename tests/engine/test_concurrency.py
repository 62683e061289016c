"""Many threads: some commit, some read snapshots, which show one commit each, whole, as long as held."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, deque

import pytest

import dlog
from dlog.engine.maintain.strategies import SELECTABLE
from dlog.engine.view import View

RULES = """
    e(x, y) -> int(x), int(y).
    label[x] = s -> int(x), string(s).
    reach(x, y) <- e(x, y).
    reach(x, z) <- reach(x, y), e(y, z).
    two(x, z) <- e(x, y), e(y, z).
    degree[x] = n <- agg<<n = count()>> e(x, _).
    both(x, s) <- label[x] = s, !e(x, x).
    e(x, y) -> y < 90.
"""
NODES = 25


class Stress:
    def __init__(self, strategy: str | None):
        self.db = dlog.Database(source=RULES, strategy=strategy)
        self.stop = threading.Event()
        self.wrong: list[BaseException] = []
        self.seen: Counter[str] = Counter()
        self.held: deque[tuple[View, object]] = deque(maxlen=12)  # snapshots that outlive many commits

    def guarded(self, work: str, seed: int) -> threading.Thread:
        def run() -> None:
            rng = random.Random(seed)
            try:
                while not self.stop.is_set():
                    getattr(self, work)(rng)
                    self.seen[work] += 1
            except BaseException as error:
                self.wrong.append(error)
                self.stop.set()

        return threading.Thread(target=run)

    def write(self, rng: random.Random) -> None:
        rows = [(rng.randrange(NODES), rng.randrange(NODES)) for _ in range(rng.choice((1, 1, 3, 40)))]
        kind = rng.randrange(6)
        if kind == 0:
            self.db.apply(upsert={"label": [(x, f"{y} {rng.randrange(9)}") for x, y in rows]})
        elif kind == 1:
            with pytest.raises(dlog.ConstraintError):
                self.db.apply(insert={"e": [*rows, (1, 95)]})
        elif kind == 2:
            self.db.apply(erase={"e": self.db.snapshot()["e"].rows()[::2]})
        else:
            self.db.apply(insert={"e": rows[::2]}, erase={"e": rows[1::2]})

    def read(self, rng: random.Random) -> None:
        view = self.db.snapshot()
        edges, labels = view["e"].rows(), dict(view["label"].rows())
        whole = (view.version, edges)
        after: dict[int, set[int]] = {}
        for x, y in edges:
            after.setdefault(x, set()).add(y)
        assert dict(view["degree"].rows()) == {x: len(ys) for x, ys in after.items()}
        assert {*view["two"].rows()} == {
            (x, z) for x, ys in after.items() for y in ys for z in after.get(y, ())
        }
        assert {*view["both"].rows()} == {(x, s) for x, s in labels.items() if x not in after.get(x, ())}
        x = rng.randrange(NODES)
        assert {y for (y,) in view.query(f"?- reach({x}, y).").rows()} == reached(after, x)
        asked = view.query(f"?- e(y, {x}), two(z, y), reach(w, z), w < z.").rows()  # other column orders
        far = {w: reached(after, w) for w in after}
        before = {y for y, found in after.items() if x in found}
        two = {(z, y) for z in after for m in after[z] for y in after.get(m, set()) & before}
        assert {*asked} == {(y, z, w) for z, y in two for w in far if w < z and z in far[w]}
        assert (view.version, view["e"].rows()) == whole
        self.held.append((view, whole))

    def look_again(self, rng: random.Random) -> None:
        """Old snapshots do not change; dropping the last one frees its memory."""
        if self.held:
            view, whole = rng.choice(list(self.held))
            with LOOKING:  # a snapshot is for one thread at a time
                assert (view.version, view["e"].rows()) == whole
        time.sleep(0.001)


LOOKING = threading.Lock()


def reached(after: dict[int, set[int]], start: int) -> set[int]:
    found: set[int] = set()
    waiting = [start]
    while waiting:
        for y in after.get(waiting.pop(), ()):
            if y not in found:
                found.add(y)
                waiting.append(y)
    return found


def stress(strategy: str | None, commits: int, reads: int) -> None:
    some = Stress(strategy)
    works = [*["write"] * 2, *["read"] * 3, "look_again"]
    threads = [some.guarded(work, seed) for seed, work in enumerate(works)]
    for thread in threads:
        thread.start()
    while not some.stop.is_set() and (some.seen["read"] < reads or some.db.version < commits):
        time.sleep(0.02)
    some.stop.set()
    for thread in threads:
        thread.join()
    if some.wrong:
        raise some.wrong[0]
    some.held.clear()
    some.db.check()
    some.db.verify()
    some.db.store.arena.check()
    assert some.db.store.arena.usage().used_words < 1 << 20


def test_stress_of_readers_and_writers() -> None:
    stress(None, commits=100, reads=20)


@pytest.mark.fuzz
@pytest.mark.parametrize("strategy", (None, *sorted(SELECTABLE)))
def test_fuzz_readers_and_writers(strategy: str | None) -> None:
    stress(strategy, commits=5000, reads=2000)
