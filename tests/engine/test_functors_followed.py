"""Random programs that call functors, under random transactions of every kind."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

import dlog
from dlog.engine.maintain.strategies import SELECTABLE
from dlog.engine.maintain.trace.offer import TRACE
from tests.engine.functors import IMPLEMENTATIONS
from tests.engine.machine import Seen, machine
from tests.engine.mixed import MIXED
from tests.oracle.programs import ALL

STRATEGIES = (None, *sorted(SELECTABLE), MIXED)
FUNCTORS = ALL.with_("functors", "functor_aggregates")


def run(programs: int, steps: int, features=FUNCTORS, random: bool = False) -> Seen:  # type: ignore[no-untyped-def]
    seen = Seen()
    base = machine(STRATEGIES, features=features, seen=seen)

    class FunctorMachine(base):  # type: ignore[misc, valid-type]
        def opened(self, data: st.DataObject) -> dlog.Database:
            strategy = TRACE if self.strategy == MIXED else self.strategy
            self.seen["calls"] += "@" in "".join(self.author.lines[14:])
            return dlog.Database(source=self.author.text, strategy=strategy, functions=IMPLEMENTATIONS)

    run_state_machine_as_test(
        FunctorMachine,
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


def test_oracle_functors_under_transactions() -> None:
    seen = run(15, 8)
    assert seen["calls"] > seen["programs"] / 4 > 1, seen


@pytest.mark.fuzz
def test_fuzz_functors_under_transactions() -> None:
    print(dict(run(1000, 20, random=True)))
