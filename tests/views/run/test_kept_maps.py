"""What has changed in maps is the difference of their values, whether statements add to them or replace
them.
"""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from dlog.m3.syntax.parse import parse
from dlog.multilevel.notation import read
from dlog.multilevel.program import compile
from dlog.views.run.kept_maps import KeptMaps

SOURCES = parse("CREATE STREAM R(a int, b int); CREATE STREAM S(c int, d int);", dialect="dbtoaster").sources
DEFINITIONS = {
    "added": {"q": "AggSum([b], R(a, b) * a)", "n": "AggSum([b], R(a, b))"},
    "replaced": {
        "q": "AggSum([b], R(a, b) * a * {(4 * AggSum([], S(c, d) * {c > a})) < AggSum([], S(c, d))})",
        "n": "AggSum([b], R(a, b) * {(4 * AggSum([], S(c, d) * {c > a})) < AggSum([], S(c, d))})",
    },
    "both": {
        "q": """AggSum([a, b], R(a, b) *
            {(2 * AggSum([], S(c, d) * d)) < (a * AggSum([], R(e, f) * {e > a} * f))})""",
        "n": "AggSum([b, a], R(a, b) * AggSum([], S(b, d) * d))",
    },
    "without keys": {"q": "AggSum([], R(a, b) * {AggSum([], S(c, d) * {c > a} * d) < (3 * a)})"},
    "at first": {"q": "AggSum([b], (b ^= 7) * {AggSum([], S(c, d) * d) < 3})"},
}


@pytest.mark.parametrize("case", DEFINITIONS)
def test_oracle_differences(case: str) -> None:
    definitions = {name: read(text) for name, text in DEFINITIONS[case].items()}
    found = compile(definitions, SOURCES)
    replaced = {s.target.name for t in found.m3.triggers for s in t.statements if s.op == ":="}  # type: ignore[union-attr]
    assert ("q" in replaced) == (case != "added")
    keys = found.map("q").keys[::-1]
    kept = KeptMaps(found.m3, {name: name for name in definitions}, keys)
    rng = random.Random(case)
    for _ in range(2):
        state: dict[tuple[int, ...], dict[str, int]] = {}
        rows: Counter[tuple[str, tuple[int, int]]] = Counter()
        for step in range(30):
            if step:
                change(kept, rows, rng, last=step == 29)
            follow(kept, state)
            assert shown(state) == entries(kept, keys), step
            kept.check()
        assert case == "at first" or not shown(state)
        kept.reset()


def change(kept: KeptMaps[str], rows: Counter, rng: random.Random, last: bool) -> None:
    """Some rows of each relation come or go; at the end all go."""
    for relation in ("R", "S"):
        there = sorted(row for name, row in rows if name == relation and rows[name, row])
        going = there if last else rng.sample(there, min(len(there), rng.choice((0, 1, 3))))
        coming = [] if last else [(rng.randrange(4), rng.randrange(4)) for _ in range(rng.randrange(4))]
        for sign, some in (
            (-1, [r for r in going for _ in range(rows[relation, r] if last else 1)]),
            (1, coming),
        ):
            if some:
                kept.apply(relation, np.array(some, np.int64).reshape(-1, 2), sign)
            for row in some:
                rows[relation, row] += sign


def follow(kept: KeptMaps[str], state: dict[tuple[int, ...], dict[str, int]]) -> None:
    found = kept.changed()
    for i, key in enumerate(map(tuple, found.keys.tolist())):
        known = state.setdefault(key, dict.fromkeys(kept.roots, 0))
        for name in kept.roots:
            assert found.before[name][i] == known[name], (key, name)
            known[name] = int(found.after[name][i])
    assert not len(kept.changed().keys)


def shown(state: dict[tuple[int, ...], dict[str, int]]) -> dict[tuple[int, ...], dict[str, int]]:
    return {key: values for key, values in state.items() if any(values.values())}


def entries(kept: KeptMaps[str], keys: tuple[str, ...]) -> dict[tuple[int, ...], dict[str, int]]:
    """What the maps have, read as a whole."""
    found: dict[tuple[int, ...], dict[str, int]] = {}
    for name in kept.roots:
        for row in kept.runtime[name].to_pylist():
            key = tuple(row[k] for k in keys)
            found.setdefault(key, dict.fromkeys(kept.roots, 0))[name] = row["value"]
    return shown(found)
