"""The properties of random statements, for as long as it takes to find something: `make fuzz`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from . import test_ir_random as random_statements
from .statements import facts, statements
from .types import test_ir_types_random as random_types

EXAMPLES = 20_000
chances = st.randoms(use_true_random=False)
PROPERTIES: list[tuple[Any, tuple[Any, ...]]] = [
    (random_statements.test_invariant_normal_form, (statements(),)),
    (random_statements.test_order_of_literals_changes_nothing, (statements(), chances)),
    (random_statements.test_names_of_variables_change_nothing, (statements(), chances)),
    (random_statements.test_oracle_meaning_of_a_statement, (statements(), facts(), chances)),
    (
        random_types.test_order_of_statements_changes_no_type,
        (random_types.declarations, random_types.all_facts, random_types.programs, chances),
    ),
]


@pytest.mark.fuzz
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("property", "strategies"), PROPERTIES, ids=lambda p: getattr(p, "__name__", ""))
def test_fuzz(property: Any, strategies: tuple[Any, ...]) -> None:
    long = settings(random_statements.relaxed, max_examples=EXAMPLES)
    long(given(*strategies)(property.hypothesis.inner_test))()
