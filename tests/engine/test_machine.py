"""Random programs under random transactions of every kind, by one machine (see `tests.engine.machine`)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from dlog.engine.maintain.strategies import SELECTABLE
from tests.engine.machine import Seen, machine
from tests.engine.mixed import MIXED

STRATEGIES = (None, *sorted(SELECTABLE), MIXED)


def run(programs: int, steps: int, random: bool = False) -> Seen:
    seen = Seen()
    run_state_machine_as_test(
        machine(STRATEGIES, seen=seen),
        settings=settings(
            max_examples=programs,
            stateful_step_count=steps,
            derandomize=not random,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=list(Phase) if random else [Phase.explicit, Phase.generate],  # shrinking takes minutes
            print_blob=True,
        ),
    )
    return seen


def busy(seen: Seen) -> None:
    """Asserts that a run had something to find faults with."""
    assert seen["compared"] > 8 * seen["programs"], seen
    assert seen.share("derived with rows", "derived") > 0.6, seen
    assert seen.share("compared with DuckDB", "compared") > 0.25, seen
    for kind in ("transactions", "rules added", "rules removed", "rolled back", "aborted", "refused"):
        assert seen[kind] >= seen["programs"] / 8, (kind, seen)


def test_oracle_transactions_of_every_kind() -> None:
    busy(run(20, 10))


@pytest.mark.fuzz
def test_fuzz_transactions_of_every_kind() -> None:
    seen = run(2000, 22, random=True)  # 20 transactions and more: some steps do nothing
    busy(seen)
    assert seen["programs"] >= 2000
    print(dict(seen))
