"""The experiments of chapter 6: every algorithm computes the same, and stores what the paper says."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given

from benchmarks import experiments, harness
from benchmarks.baselines import again, first_order
from dlog.m3.runtime.runtime import Runtime
from dlog.views.orders.orders import find_order
from tests.examples import relaxed
from tests.oracle.views_naive import naive
from tests.views.random_queries import Case, cases


@pytest.mark.parametrize("make", [first_order, again])
@relaxed(30)
@given(case=cases())
def test_oracle_baselines(make, case: Case) -> None:
    """First-order maintenance and re-evaluation of random queries under insertions and deletions."""
    if len({atom.relation for atom in case.query.atoms}) < len(case.query.atoms):
        return  # a self-join; re-evaluation is written for one atom of each relation
    runtime = Runtime(make(case.query, find_order(case.query)))
    present = {s.name: Counter(case.tables.get(s.name, ())) for s in case.query.sources}
    for table, rows in case.tables.items():
        runtime.load(table, rows)
    runtime.ready()
    for relation, rows, times in case.batches:
        runtime.apply(relation, rows, times)
        for row, n in zip(rows, times, strict=True):
            present[relation][row] += n
        present[relation] = +present[relation]
    expected = naive(case.query, present)
    for at, aggregate in enumerate(case.query.aggregates):
        rows = [tuple(row.values()) for row in runtime[aggregate.name].to_pylist()]
        found = sorted(row[-1] for row in rows if row[-1])
        assert found == pytest.approx(sorted(values[at] for values in expected.values() if values[at]))


@pytest.fixture
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "RUNS", 1)


def test_views_store_sums_and_the_others_rows(once: None) -> None:
    found = {factor: experiments.run(experiments.housing(factor, 300)) for factor in (1, 16)}
    for factor, measured in found.items():
        assert {m.result for m in measured.values()} == {factor**3 * 300 * 299 // 2}
    views, first = (
        [found[f][name].memory for f in (1, 16)] for name in (experiments.VIEWS, experiments.FIRST)
    )
    assert views[1] < 3 * views[0] and first[1] > 4 * first[0] > 4 * views[0]


def test_a_further_algorithm_is_one_line(once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = experiments.of_program(first_order, whole=True)
    monkeypatch.setitem(experiments.ALGORITHMS, "multilevel maps", slow)
    results = {}
    for experiment in (*map(experiments.housing, (1, 2), (40, 40)), experiments.retailer(1000)):
        results[experiment.name, experiment.factor, experiment.tuples] = experiments.run(experiment)
    lines = experiments.table(results).splitlines()
    assert lines[0].endswith("| DuckDB again | multilevel maps |") and len(lines) == 5
    root = ElementTree.fromstring(experiments.picture(results))
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert {*experiments.ALGORITHMS, "Throughput", "Memory", "scale factor"} <= set(texts)
    dots = sum(element.tag.endswith("ellipse") for element in root.iter())
    assert dots == 2 * 2 * len(experiments.ALGORITHMS)


def test_rows_of_growing_relations_have_the_factor() -> None:
    experiment = experiments.housing(4, 100)
    rows = {name: words.shape[1] for name, words in experiment.data.items()}
    assert set(rows.values()) == {100, 400} and rows["HOUSE"] == 400 and rows["TRANSPORT"] == 100
    for words in experiment.data.values():
        assert len(np.unique(words[0])) == 100
    assert sum(words.shape[1] for _, words in experiment.batches) == experiment.tuples
