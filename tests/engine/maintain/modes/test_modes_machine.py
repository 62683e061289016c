"""Random programs with modes that switch on the way, under random transactions of every kind."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from dlog.engine.maintain.strategies import SELECTABLE
from tests.engine.machine import Seen
from tests.engine.maintain.modes.machine import modes_machine
from tests.oracle.programs import ALL, CONJUNCTIVE

STRATEGIES = (None, *sorted(SELECTABLE))


def run(programs: int, steps: int, random: bool = False) -> Seen:
    seen = Seen()
    for features in (ALL, CONJUNCTIVE.with_("comparisons", "functions")):
        run_state_machine_as_test(
            modes_machine(STRATEGIES, features, seen),
            settings=settings(
                max_examples=programs // 2,
                stateful_step_count=steps,
                derandomize=not random,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                phases=list(Phase) if random else [Phase.explicit, Phase.generate],
                print_blob=True,
            ),
        )
    return seen


def busy(seen: Seen) -> None:
    for kind in ("changes", "on_read", "transactions", "rules added", "aborted", "reopened"):
        assert seen[kind] >= seen["programs"] / 8, (kind, seen)


def test_oracle_modes_that_switch() -> None:
    busy(run(16, 16))


@pytest.mark.fuzz
def test_fuzz_modes_that_switch() -> None:
    seen = run(1000, 30, random=True)
    busy(seen)
    print(dict(seen))
