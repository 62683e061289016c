"""Updates that factorise against the same updates multiplied out."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.errors import DlogError
from dlog.m3.syntax import ast
from dlog.m3.syntax.parse import parse
from dlog.m3.syntax.print import print_program
from dlog.m3.types.typecheck import check
from dlog.views.orders.orders import find_order
from dlog.views.regression import Cofactor, cofactor_query
from dlog.views.run.maintained import Maintained
from dlog.views.sql.files import parse_sql
from tests.examples import relaxed
from tests.views.random_queries import Case, cases

values = st.integers(-2, 2)


@st.composite
def updates(draw, query):
    """A stream with several columns, its parts, and products of such parts."""
    wide = [
        s for s in query.sources if s.kind == ast.STREAM and len(s.columns) > 1 and query.atoms_of(s.name)
    ]
    if not wide:
        return None
    source = draw(st.sampled_from(wide))
    columns = draw(st.permutations([c.name for c in source.columns]))
    cut = draw(st.integers(1, len(columns) - 1))
    parts = [columns[:cut], columns[cut:]]
    if len(parts[1]) > 1 and draw(st.booleans()):
        parts = [parts[0], parts[1][:1], parts[1][1:]]
    often = st.sampled_from((1, 1, 2, -1))
    part_rows = [st.lists(st.tuples(st.tuples(*[values] * len(part)), often), max_size=4) for part in parts]
    given = draw(st.lists(st.tuples(*part_rows), min_size=1, max_size=3))
    return source, parts, given


def expanded(source: ast.Source, parts: list[list[str]], update: list) -> tuple[list[tuple], list[int]]:
    rows, times = [], []
    for chosen in itertools.product(*update):
        found = {
            name: v
            for part, (row, _) in zip(parts, chosen, strict=True)
            for name, v in zip(part, row, strict=True)
        }
        rows.append(tuple(found[c.name] for c in source.columns))
        times.append(math.prod(n for _, n in chosen))
    return rows, times


def follow(case: Case, given_) -> None:
    source, parts, products = given_
    one = Maintained(case.query, case.order, products={source.name: parts})
    other = Maintained(case.query, case.order)
    for table, rows in case.tables.items():
        one.load(table, rows)
        other.load(table, rows)
    for number, (relation, rows, times) in enumerate(case.batches):
        one.apply(relation, rows, times)
        other.apply(relation, rows, times)
        if number < len(products):
            update = products[number]
            one.apply_product(
                source.name,
                *([row for row, _ in part] for part in update),
                multiplicities=[[n for _, n in part] for part in update],
            )
            other.apply(source.name, *expanded(source, parts, update))
        assert one.result().equals(other.result())
        one.runtime.check()


@st.composite
def products(draw, cyclic=False):
    case = draw(cases(cyclic=cyclic))
    return case, draw(updates(case.query))


@relaxed(20)
@given(products())
def test_oracle_multiplied_out(given) -> None:
    case, update = given
    if update is not None:
        follow(case, update)


@pytest.mark.fuzz
@relaxed(500, random=True)
@given(products(cyclic=True))
def test_fuzz_multiplied_out(given) -> None:
    case, update = given
    if update is not None:
        follow(case, update)


HOUSES = """
    CREATE STREAM HOUSE(postcode int, area int, price int);
    CREATE TABLE SHOP(postcode int, sales int);
    SELECT COUNT(*), SUM(area * sales) FROM HOUSE NATURAL JOIN SHOP;
"""


def test_the_product_is_never_made() -> None:
    """No map of the triggers has variables of two parts, and the text can be read again."""
    kept = Maintained(parse_sql(HOUSES), products={"HOUSE": [["postcode"], ["area", "price"]]})
    text = print_program(kept.runtime.program)
    check(parse(text))
    trigger = text[text.index("ON BATCH UPDATE OF HOUSE_PART2") :]
    assert "FACTOR_HOUSE_" in trigger and "[][postcode, area" not in trigger


def test_elements_of_a_ring() -> None:
    query = cofactor_query(parse_sql(HOUSES), ["area", "price", "sales"])
    one = Maintained(query, find_order(query), products={"HOUSE": [["postcode"], ["area"], ["price"]]})
    other = Maintained(query, find_order(query))
    for kept in (one, other):
        kept.load("SHOP", [(1, 5), (2, 7), (2, 8)])
    one.apply_product("HOUSE", [(1,), (2,)], [(3,), (4,)], [(10,), (20,), (30,)])
    other.apply("HOUSE", list(itertools.product((1, 2), (3, 4), (10, 20, 30))))
    found, expected = Cofactor.of(one), Cofactor.of(other)
    assert found.names == expected.names and found.count == expected.count == 18
    assert found.sums.tolist() == expected.sums.tolist()
    assert found.products.tolist() == expected.products.tolist()


def test_errors() -> None:
    query = parse_sql(HOUSES)
    for parts in (
        [["postcode", "area", "price"]],
        [["postcode"], ["area"]],
        [["postcode"], ["area", "area"]],
        [],
    ):
        with pytest.raises(DlogError, match="these are not the parts of HOUSE"):
            Maintained(query, products={"HOUSE": parts})
    with pytest.raises(DlogError, match="SHOP is a table"):
        Maintained(query, products={"SHOP": [["postcode"], ["sales"]]})
    kept = Maintained(query, products={"HOUSE": [["postcode"], ["area", "price"]]})
    with pytest.raises(DlogError, match="SHOP has no parts"):
        kept.apply_product("SHOP", [], [])
    with pytest.raises(DlogError, match="HOUSE has 2 parts, not 1"):
        kept.apply_product("HOUSE", [])
