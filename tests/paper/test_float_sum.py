"""Section 2.3.4: sums of floats that no order, grouping or history of changes can alter."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np

from dlog.algebra import LIMBS, WORDS_PER_SUM, add_to_sum, exact_float, float_sums, round_sum


def test_borrow_stays_local() -> None:
    """The paper's example {2^500, -1}: two segments are stored, not a run of 500 ones."""
    words = exact_float(2.0**500)
    add_to_sum(words, 0, -1.0, 1)
    assert np.count_nonzero(words) == 2
    assert round_sum(words, 0, LIMBS) == 2.0**500
    add_to_sum(words, 0, 2.0**500, -1)
    assert round_sum(words, 0, LIMBS) == -1.0
    assert np.count_nonzero(words) == 1


def test_float_addition_is_not_associative_but_the_sum_is() -> None:
    summands = [2.0**53, 1.0, 1.0, -(2.0**53)]
    plain = {sum(p) for p in itertools.permutations(summands)}
    assert plain == {0.0, 1.0, 2.0}
    exact = {float_sums(np.array(p), np.array([0, 4]))[0] for p in itertools.permutations(summands)}
    assert exact == {2.0}


def test_errors_do_not_accumulate_over_time() -> None:
    """A maintained total, after thousands of changes, is the total of what is there now."""
    rng = random.Random(4)
    words = np.zeros(WORDS_PER_SUM, np.int64)
    present: list[float] = []
    for _ in range(3000):
        if present and rng.random() < 0.5:
            add_to_sum(words, 0, present.pop(rng.randrange(len(present))), -1)
        else:
            present.append(rng.choice([-1, 1]) * 10.0 ** rng.uniform(-300, 300))
            add_to_sum(words, 0, present[-1], 1)
    assert round_sum(words, 0, LIMBS) == math.fsum(present)
    for value in present:
        add_to_sum(words, 0, value, -1)
    assert not words.any()
