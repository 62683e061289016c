"""Sub-joins that rules take for each other's sake: they are taken, and no answer depends on them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import dlog
from dlog.engine.body import shared_subjoin_choice
from dlog.engine.evaluate.evaluate import Evaluation, evaluate
from dlog.planning import decompose
from dlog.planning.options import ALWAYS, AUTO, NEVER

RULES = 16
PROGRAM = "\n".join(
    ["sold(i, d) -> int(i), int(d).  priced(i, c) -> int(i), int(c)."]
    + [f"t{k}(c) -> int(c)." for k in range(RULES)]
    + [f"n{k}[d] = n <- agg<<n = count()>> sold(i, d), priced(i, c), t{k}(c)." for k in range(RULES)]
    + [f"p{k}(d, c) <- sold(i, d), priced(i, c), t{k}(c), d != c." for k in range(3)]
)


def facts() -> dict[str, list[tuple[int, ...]]]:
    random = np.random.default_rng(1)

    def pairs(most: int) -> list[tuple[int, int]]:
        rows = np.stack([random.integers(0, 2000, 10_000), random.integers(0, most, 10_000)], axis=1)
        return [(a, b) for a, b in np.unique(rows, axis=0).tolist()]

    filters = {f"t{k}": [(int(c),) for c in random.choice(20, 14, replace=False)] for k in range(RULES)}
    return {"sold": pairs(50), "priced": pairs(20), **filters}


def evaluated(given: dict[str, list[tuple[int, ...]]], sharing: str) -> dlog.Database:
    database = dlog.Database(source=PROGRAM, evaluated=False)
    for name, rows in given.items():
        database.store.relations[name].apply_in_place(inserts=np.array(rows))
    database.store.options = replace(database.store.options, sharing=sharing)
    evaluate(database.program, database.store, Evaluation())
    return database


@pytest.mark.plan
@pytest.mark.parametrize("sharing", [AUTO, ALWAYS, NEVER])
def test_oracle_rules_that_share_a_sub_join(sharing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompose, "WORTHWHILE", 0.0)
    monkeypatch.setattr(shared_subjoin_choice, "JOINT", 0.0)
    given = facts()
    database = evaluated(given, sharing)
    countries: dict[int, list[int]] = {}
    for i, c in given["priced"]:
        countries.setdefault(i, []).append(c)
    joined = Counter((d, c) for i, d in given["sold"] for c in countries.get(i, ()))
    for k in range(RULES):
        kept = {c for (c,) in given[f"t{k}"]}
        sums: Counter[int] = Counter()
        for (d, c), n in joined.items():
            sums[d] += n * (c in kept)
        assert dict(database.store.relations[f"n{k}"].rows().tolist()) == {d: n for d, n in sums.items() if n}
        if k < 3:
            expected = sorted([d, c] for d, c in joined if c in kept and d != c)
            assert database.store.relations[f"p{k}"].rows().tolist() == expected
    plans = [d for _, d in database.store.decompositions.values() if d is not None and d.count is False]
    shared = [d for d in plans if any(set(s.outputs) == {"c", "d"} and s.weighted for s in d.sub_joins)]
    assert (len(shared) >= RULES) == (sharing != NEVER)
    assert ("computed once for all" in database.explain("n3")) == (sharing != NEVER)
