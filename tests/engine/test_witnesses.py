"""What the variables of inline aggregates mean, by definition: loops over rows say what each rule derives.

The naive evaluator gets rules after lowering, which decides about these variables; this oracle does not.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

import dlog
from dlog.engine.maintain.strategies import SELECTABLE
from tests.engine.machine import Seen, machine
from tests.engine.mixed import MIXED
from tests.examples import relaxed
from tests.oracle.bodies import Features

Rows = set[tuple[int, ...]]

DECLARATIONS = "e(x, y) -> int(x), int(y). g(x) -> int(x). e(0, 0). g(0). "


def extreme(candidates: Rows, place: int = -1, choose: Callable[..., int] = max) -> Rows:
    """The rows with the extreme value at a place."""
    best = choose((row[place] for row in candidates), default=None)
    return {row for row in candidates if row[place] == best}


def count(e: Rows, x: int) -> int:
    return sum(a == x for a, _ in e)


RULES: dict[str, Callable[[Rows, Rows], Rows]] = {
    "p(x, n) <- n = max y : { e(x, y) }.": lambda e, g: extreme(e),
    "p(x, n) <- g(x), n = max y : { e(x, y) }.": lambda e, g: {
        row for (k,) in g for row in extreme({(x, y) for x, y in e if x == k})
    },
    "p(x) <- x = min x : { e(_, x) }.": lambda e, g: {(y,) for _, y in extreme(e, choose=min)},
    "p(x) <- n = min y : { e(x, y) }, !g(x).": lambda e, g: {
        (x,) for x, _ in extreme(e, choose=min) if (x,) not in g
    },
    "p(x, z, n) <- n = max y + w : { e(x, y), e(z, w), x != z }.": lambda e, g: extreme(
        {(x, z, y + w) for x, y in e for z, w in e if x != z}
    ),
    "p(k, x) <- g(k), n = max y : { e(x, y), x >= k }.": lambda e, g: {
        (k, x) for (k,) in g for x, _ in extreme({(x, y) for x, y in e if x >= k})
    },
    "p(x, n) <- n = max m : { e(x, _), m = count : { e(x, _) } }.": lambda e, g: extreme(
        {(x, count(e, x)) for x, _ in e}
    ),
    "p(z) <- n = max y : { g(y), m = max x : { e(z, x) }, y <= m }.": lambda e, g: {
        (z,) for z, _ in extreme({(z, y) for (y,) in g for z, m in extreme(e) if y <= m})
    },
    "p(x) <- n = max y : { e(x, y) }, m = min y : { e(x, y) }.": lambda e, g: {
        (x,) for x, _ in extreme(e) for z, _ in extreme(e, choose=min) if x == z
    },
    "p(c) <- c = count : { n = max y : { e(x, y) }, g(x) }.": lambda e, g: {
        (sum(len(extreme({(a, b) for a, b in e if a == x})) > 0 for (x,) in g),)
    },
    "p(s) <- s = sum z : { g(z), n = max y : { e(x, y) }, z < x }.": lambda e, g: {
        (sum(z for (z,) in g for x in {x for x, _ in extreme(e)} if z < x),)
    },
}

_CHANGES = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from("+-"),
            st.one_of(st.tuples(st.integers(0, 3), st.integers(0, 3)), st.tuples(st.integers(0, 3))),
        ),
        min_size=1,
        max_size=4,
    ),
    max_size=6,
)


@pytest.mark.parametrize("rule", RULES)
@relaxed(12)
@given(changes=_CHANGES, strategy=st.sampled_from((None, *SELECTABLE)))
def test_oracle_witnesses_under_transactions(
    rule: str, changes: list[list[tuple[str, tuple[int, ...]]]], strategy: str | None
) -> None:
    db = dlog.Database(source=DECLARATIONS + rule, strategy=strategy)
    base: dict[int, Rows] = {2: {(0, 0)}, 1: {(0,)}}
    for transaction in changes:
        with db.transaction() as tx:
            for op, row in transaction:
                name = "e" if len(row) == 2 else "g"
                (tx.insert if op == "+" else tx.erase)(name, [row])
                (base[len(row)].add if op == "+" else base[len(row)].discard)(row)
        assert set(db["p"].rows()) == RULES[rule](base[2], base[1]), (rule, base)
        db.check()


def run(programs: int, random: bool = False) -> Seen:
    features = Features(("int", "string", "decimal")).with_(
        "witnesses", "comparisons", "arithmetic", "negation"
    )
    seen = Seen()
    run_state_machine_as_test(
        machine((None, *sorted(SELECTABLE), MIXED), features, seen),
        settings=settings(
            max_examples=programs,
            stateful_step_count=8,
            derandomize=not random,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=list(Phase) if random else [Phase.explicit, Phase.generate],
            print_blob=True,
        ),
    )
    return seen


def test_oracle_random_programs_with_witnesses() -> None:
    seen = run(20)
    assert seen["compared"] > 4 * seen["programs"], seen


@pytest.mark.fuzz
def test_fuzz_random_programs_with_witnesses() -> None:
    assert run(500, random=True)["programs"] >= 500
