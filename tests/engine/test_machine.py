"""Random programs under random transactions of every kind, by one machine (see `tests.engine.machine`)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from dlog.engine.maintain.strategies import SELECTABLE
from tests.engine.machine import Seen, machine
from tests.engine.mixed import MIXED

STRATEGIES = (None, *sorted(SELECTABLE), MIXED)


BATCHES = 4  # of programs that are drawn until all has been met


def run(
    programs: int, steps: int, random: bool = False, number: int | None = None, seen: Seen | None = None
) -> Seen:
    """`number`: of the batch, in place of a seed that follows from the name of the test; adds to `seen`."""
    seen = Seen() if seen is None else seen
    kind = machine(STRATEGIES, seen=seen)
    run_state_machine_as_test(
        kind if number is None else seed(number)(kind),
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


def is_busy(seen: Seen) -> bool:
    try:
        busy(seen)
    except AssertionError:
        return False
    return True


def test_oracle_transactions_of_every_kind() -> None:
    """Hypothesis draws constants that it finds in the source, so programs change with edits elsewhere: one
    batch that has met too little of a kind is followed by others, and all together have to be busy."""
    seen = Seen()
    for number in range(BATCHES):
        run(20, 10, number=number, seen=seen)
        if is_busy(seen):
            break
    busy(seen)


@pytest.mark.fuzz
def test_fuzz_transactions_of_every_kind() -> None:
    seen = run(2000, 22, random=True)  # 20 transactions and more: some steps do nothing
    busy(seen)
    assert seen["programs"] >= 2000
    print(dict(seen))
