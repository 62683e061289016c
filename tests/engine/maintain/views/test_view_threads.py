"""View trees of a database that may use several cores: the same answers, after aborted transactions, too."""

from __future__ import annotations

import random

import pytest

import dlog
from dlog.m3.runtime import parts, runtime

SOURCE = """
r(a, b) -> int(a), int(b).
s(b, c) -> int(b), int(c).
t(c, d) -> int(c), int(d).
total[a] = x, lines[a] = n <- agg<<x = sum(b * d), n = count()>> r(a, b), s(b, c), t(c, d).
all[] = x <- agg<<x = sum(d)>> s(_, c), t(c, d).
"""


@pytest.mark.parametrize("jobs", [2, 3])
def test_differential_jobs(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "WORTH_THREADS", 0)
    monkeypatch.setattr(parts, "SMALL_BATCH", 20)
    made = []
    divided = runtime.Runtime._divided
    monkeypatch.setattr(runtime.Runtime, "_divided", lambda *given: made.append(divided(*given)) or made[-1])
    one = dlog.Database(source=SOURCE, strategy="views")
    several = dlog.Database(source=SOURCE, strategy="views", jobs=jobs)
    source = random.Random(jobs)
    for step in range(30):
        rows = {
            name: [(source.randrange(12), source.randrange(12)) for _ in range(source.choice([1, 5, 60]))]
            for name in source.sample("rst", source.randint(1, 3))
        }
        fails = step % 5 == 4
        for database in (one, several):
            try:
                with database.transaction() as tx:
                    for name, some in rows.items():
                        (tx.erase if step % 3 == 2 else tx.insert)(name, some)
                    if fails:
                        raise KeyError
            except KeyError:
                assert fails
        for name in ("total", "lines", "all"):
            assert list(several[name]) == list(one[name])
    assert any(found is not None for found in made)
