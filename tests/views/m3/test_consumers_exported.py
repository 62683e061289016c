"""`dlog m3 --for CONSUMER`: what is exported is what the consumer accepts, and means the same.

`tests.oracle.m3_consumers` says what each consumer accepts; here every shipped query, small queries for each
rule, and random queries are held against it, and run over changes.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given

from dlog import m3
from dlog.errors import DlogError
from dlog.m3.runtime.runtime import Runtime
from dlog.views.m3.export import Target, consumer_text, export, target
from dlog.views.orders.orders import find_order
from dlog.views.query import Query
from dlog.views.sql.files import parse_sql
from dlog.views.tree.build import NEEDED, PATHS, view_tree
from tests.examples import relaxed
from tests.oracle.m3_consumers import complaints
from tests.oracle.m3_readers import A5, DBT, FIVM
from tests.oracle.views_naive import naive
from tests.test_errors import command
from tests.views.random_queries import Case, cases
from tests.views.sql.test_sql_files import ORDERS, QUERIES

READERS = {"a5": A5, "dbtoaster": DBT, "fivm": FIVM}
TARGETS = [target(*given) for given in (("a5",), ("dbtoaster",), ("dbtoaster", True), ("fivm",))]
NAMES = [f"{to.consumer.name}{' in batches' if to.batch else ''}" for to in TARGETS]
FILE = " FROM FILE 'x.csv' LINE DELIMITED CSV (delimiter := '|');"
STREAMS = f"""
CREATE STREAM SALES(item int, price int, day date, text string, w double){FILE}
CREATE STREAM ITEMS(item int, kind int){FILE}
CREATE TABLE KINDS(kind int, factor int){FILE}
"""
JOIN = "FROM SALES NATURAL JOIN ITEMS NATURAL JOIN KINDS"


def text_of(sql: str, to: Target) -> str:
    query = parse_sql(sql if "CREATE" in sql else STREAMS + sql)
    return consumer_text(query, view_tree(query, find_order(query)), to)


def accepted(text: str, to: Target) -> str:
    assert complaints(text, READERS[to.consumer.name]) == []
    return text


def results(text: str, to: Target, changes: list[tuple[str, list[tuple], list[int]]]) -> dict[str, dict]:
    """After the changes, whose relations are numbered in the order of the program."""
    runtime = Runtime(m3.parse(text, dialect=to.consumer.dialect))
    names = [source.name for source in runtime.program.sources]
    kinds = {source.name: source.kind for source in runtime.program.sources}
    for number, rows, times in changes:
        name = names[int(number)]
        if kinds[name] == "table":
            runtime.load(name, rows)
            continue
        runtime.apply(name, rows, times)
    runtime.ready()
    return {
        name.removeprefix("m_"): {
            tuple(row.values())[:-1]: list(row.values())[-1] for row in table.to_pylist()
        }
        for name, table in runtime.results()
    }


# ---- every shipped query


@pytest.mark.parametrize("to", TARGETS, ids=NAMES)
@pytest.mark.parametrize("name", [name for name in QUERIES if name != "update_r_ring"])
def test_shipped_queries_are_accepted(name: str, to: Target) -> None:
    """Their results are those of DuckDB: see `test_sql_files`."""
    for order in {None, ORDERS[name]}:
        for optimise in (True, False):
            accepted(export(QUERIES[name], None, order, to.consumer.name, to.batch, optimise), to)


def test_a_ring_of_ones_own_is_accepted() -> None:
    for to in TARGETS[1:]:
        accepted(export(QUERIES["update_r_ring"], None, ORDERS["update_r"], to.consumer.name, to.batch), to)


# ---- random queries


def follow(case: Case, to: Target, keep: str = NEEDED) -> None:
    """Accepted, and after every change the same as the definition of the query."""
    tree = view_tree(case.query, case.order or find_order(case.query), keep == NEEDED, keep)
    text = accepted(consumer_text(with_files(case.query), tree, to), to)
    runtime = Runtime(m3.parse(text, dialect=to.consumer.dialect))
    used = [s for s in case.query.sources if case.query.atoms_of(s.name)]
    named = {s.name: own.name for s, own in zip(used, runtime.program.sources, strict=True)}
    present = {s.name: Counter(case.tables.get(s.name, ())) for s in case.query.sources}
    for table, rows in case.tables.items():
        runtime.load(named[table], rows)
    runtime.ready()
    for relation, rows, times in case.batches:
        runtime.apply(named[relation], rows, times)
        for row, n in zip(rows, times, strict=True):
            present[relation][row] += n
        present[relation] = +present[relation]
    expected = naive(case.query, present)
    found = {name.removeprefix("m_"): table for name, table in runtime.results()}
    keys = len(case.query.free)
    root = tree.root.keys
    for at, aggregate in enumerate(case.query.aggregates):
        rows = [tuple(row.values()) for row in found[aggregate.name].to_pylist()]
        values = {tuple(row[root.index(v)] for v in case.query.free): row[-1] for row in rows}
        wanted = {group: value[at] for group, value in expected.items() if value[at]}
        assert len(rows) == len(values) and keys == len(case.query.free)
        assert {group: value for group, value in values.items() if value} == pytest.approx(wanted)


def with_files(query: Query) -> Query:

    return replace(query, sources=tuple(replace(s, file="x.csv") for s in query.sources))


@pytest.mark.parametrize("to", TARGETS, ids=NAMES)
@relaxed(25)
@given(case=cases())
def test_oracle_random_queries(to: Target, case: Case) -> None:
    follow(case, to)


@pytest.mark.parametrize("to", TARGETS, ids=NAMES)
@relaxed(10)
@given(case=cases(cyclic=True))
def test_oracle_random_cycles(to: Target, case: Case) -> None:
    follow(case, to)


@pytest.mark.parametrize("to", TARGETS, ids=NAMES)
@relaxed(6)
@given(case=cases())
def test_oracle_plain_programs(to: Target, case: Case) -> None:
    follow(case, Target(to.consumer, to.batch, optimise=False), PATHS)


@pytest.mark.fuzz
@pytest.mark.parametrize("to", TARGETS, ids=NAMES)
@relaxed(1500, random=True)
@given(case=cases() | cases(cyclic=True))
def test_fuzz_random_queries(to: Target, case: Case) -> None:
    follow(case, to)


# ---- one rule after the other: each test fails if the rule is not followed


def both(sql: str) -> list[tuple[Target, str]]:
    """For the consumers that generate C++, accepted."""
    return [(to, accepted(text_of(sql, to), to)) for to in TARGETS if to.consumer.in_cpp]


def test_a_query_with_keys_is_the_map_of_its_name() -> None:
    for _, text in both(f"SELECT kind, SUM(price) AS revenue {JOIN} GROUP BY kind"):
        assert "DECLARE QUERY revenue := revenue(long)[][kind];" in text


CHANGES = [
    ("2", [(1, 10), (2, 100)], []),
    ("1", [(7, 1), (8, 2), (9, 1)], [1, 1, 1]),
    ("0", [(7, 4, None, "a", 0.5), (8, 3, None, "b", 0.1), (9, 5, None, "a", 0.2)], [1, 1, 1]),
    ("0", [(7, 6, None, "a", 0.25), (8, 3, None, "b", 0.1), (7, 4, None, "a", 0.5)], [1, -1, -1]),
]


def dated(changes: list[tuple[str, list[tuple], list[int]]]) -> list[tuple[str, list[tuple], list[int]]]:
    from datetime import date

    day = date(1995, 3, 1)
    return [(r, [tuple(day if v is None else v for v in row) for row in rows], n) for r, rows, n in changes]


def test_means_and_sums_of_maps_with_keys_are_maps_that_triggers_keep() -> None:
    """Of the groups that change only; a group whose rows are gone has no mean."""
    shown = "kind, AVG(price) AS mean, SUM(price * w - factor) AS both_ways, COUNT(*) AS n"
    sql = f"SELECT {shown} {JOIN} GROUP BY kind"
    for to, text in both(sql):
        assert "DECLARE QUERY mean := mean(double)[][kind];" in text
        found = results(text, to, dated(CHANGES))
        assert found["mean"] == {(1,): 5.5}
        assert found["both_ways"] == {(1,): pytest.approx(6 * 0.25 + 5 * 0.2 - 20)}
        assert found["n"] == {(1,): 2}


def test_means_without_keys_are_maps() -> None:
    for to, text in both(f"SELECT AVG(price) AS mean, COUNT(*) AS n {JOIN}"):
        assert "DECLARE QUERY mean := mean(double)[][];" in text
        assert results(text, to, dated(CHANGES))["mean"] == {(): 5.5}


def test_results_that_are_one_map_are_two() -> None:
    for to, text in both(f"SELECT kind, SUM(price) AS first, SUM(price) AS second {JOIN} GROUP BY kind"):
        found = results(text, to, dated(CHANGES))
        assert found["first"] == found["second"] == {(1,): 11}


def test_only_changed_groups_are_computed_again() -> None:
    """Statements of a mean cost what a row changes, however many groups there are."""
    to = target("dbtoaster")
    text = accepted(text_of(f"SELECT kind, AVG(price) AS mean {JOIN} GROUP BY kind", to), to)
    runtime = Runtime(m3.parse(text))
    many = 3000
    runtime.load("KINDS", [(k, 1) for k in range(many)])
    runtime.ready()
    runtime.apply("ITEMS", [(k, k) for k in range(many)])
    ((_, rows, _),) = dated([("0", [(k, k, None, "", 1.0) for k in range(many)], [])])
    runtime.apply("SALES", rows)
    assert runtime["mean"].num_rows == many - 1  # a mean of 0 is no entry
    assert runtime["CHANGED_GROUPS"].num_rows == 1
    runtime.check()


def test_the_system_is_ready_in_every_program() -> None:
    for to in TARGETS:
        text = accepted(text_of(f"CREATE STREAM RR(aa int){FILE} SELECT SUM(aa) FROM RR", to), to)
        assert "ON SYSTEM READY {\n}" in text


def test_products_of_integers_have_64_bits() -> None:
    sql = f"SELECT SUM(price * item * kind * 3 * 5 * EXTRACT(YEAR FROM day) - 20000000000) AS x {JOIN}"
    for text in (" ".join(text.split()) for _, text in both(sql)):
        assert " int" not in text.replace("(DELTA", "") and ": int" not in text and "20000000000L" in text
        assert "* 15L" in text and "[date_part: long]('year', day) * 1L" in text
    assert "price int" in text_of(sql, target("a5"))  # has 63 bits there


def test_maps_over_tables_are_filled_when_the_system_is_ready() -> None:
    sql = "SELECT kind, AVG(factor) AS mean, SUM(factor) AS sum FROM KINDS GROUP BY kind"
    for to in TARGETS:
        text = accepted(text_of(sql, to), to)
        found = results(text, to, [("0", [(1, 10), (1, 20), (2, 5)], [])])
        assert found["mean"] == {(1,): 15, (2,): 5} and found["sum"] == {(1,): 30, (2,): 5}


def test_lists_are_equalities_in_a5() -> None:
    shown = "SUM(price) AS x, SUM(CASE WHEN kind IN (1, 3) THEN 1 ELSE 0 END) AS y"
    sql = f"SELECT {shown} {JOIN} WHERE item IN (7, 8, 7)"
    for to in TARGETS:
        text = accepted(text_of(sql, to), to)
        assert (" IN [" in text) == to.consumer.in_cpp
        found = results(text, to, dated(CHANGES))
        assert found["x"] == {(): 6} and found["y"] == {(): 1}


FUNCTIONS = {
    "ABS(price - 5)": 4 * 0 + 1 + 0,
    "EXTRACT(YEAR FROM day) - 1994": 2,
    "EXTRACT(MONTH FROM day)": 6,
    "EXTRACT(DAY FROM day)": 2,
    "GREATEST(price, 6)": 12,
    "LEAST(price, 5, item)": 10,
    "SQRT(price * price)": 11,
    "DEGREES(RADIANS(price))": 11,
    "POW(price, 2)": 61,
    "price / item": 6 / 7 + 5 / 9,
    "CASE WHEN SUBSTRING(text, 1, 1) = 'a' THEN 1 ELSE 0 END": 2,
    "CASE WHEN text LIKE 'a%' THEN 1 ELSE 0 END": 2,
    "[cast_float: double](price)": 11,
    "[div: double](price, item)": 6 / 7 + 5 / 9,
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_have_the_names_of_the_consumer(function: str) -> None:
    for to in TARGETS:
        text = accepted(text_of(f"SELECT SUM({function}) AS x {JOIN}", to), to)
        assert results(text, to, dated(CHANGES))["x"] == {(): pytest.approx(FUNCTIONS[function])}


REFUSED = {
    ("a5", "COS(price)"): ("a5 has no function cos", "dbtoaster and fivm have it"),
    ("fivm", "[cast_int: int](w)"): ("fivm has no function cast_int", "a5 has it"),
    ("a5", "CASE WHEN SUBSTRING(text, 2) = 'a' THEN 1 ELSE 0 END"): (
        "a5 has no function substring",
        "write the number of characters, too",
    ),
}


@pytest.mark.parametrize(("consumer", "function"), REFUSED)
def test_functions_that_a_consumer_lacks_are_refused_with_its_name(consumer: str, function: str) -> None:
    with pytest.raises(DlogError) as found:
        text_of(f"SELECT SUM({function}) AS x {JOIN}", target(consumer))
    message, help = REFUSED[consumer, function]
    assert (found.value.message, found.value.help) == (message, help)
    assert found.value.span is not None


def test_functions_of_ones_own_need_a_file_of_cpp() -> None:
    m3.register_function("half_of", lambda x: x / 2, ("number",))
    sql = f"SELECT SUM([half_of: double](price)) AS x {JOIN}"
    for to in TARGETS:
        with pytest.raises(DlogError, match=f"{to.consumer.name} has no function half_of"):
            text_of(sql, to)
    types = "CREATE TYPE Half FROM FILE 'half.hpp';"
    assert "[half_of: double]" in text_of(types + STREAMS + sql, target("fivm"))


def test_names_are_those_of_cpp() -> None:
    """Of one letter, of C++, of generated code; two that differ in case; a result named as a column."""
    sql = f"""
    CREATE STREAM t(t int, E int, class int, h2 int, price int){FILE}
    CREATE STREAM T0(t int, nxt int, "new" int){FILE}
    SELECT t, SUM(class) AS price, SUM(h2 * nxt) AS t, SUM("new") AS delete, COUNT(*) AS data
    FROM t NATURAL JOIN T0 GROUP BY t"""
    sql = sql.replace('"new" int', "new_ int").replace('SUM("new")', "SUM(new_)")
    for to, text in both(sql.replace("SUM(h2 * nxt) AS t,", "SUM(h2 * nxt) AS q,")):
        found = results(text, to, [("0", [(1, 2, 3, 4, 5)], [1]), ("1", [(1, 10, 20)], [1])])
        assert found == {
            "price": {(1,): 3}, "q": {(1,): 40}, "delete": {(1,): 20}, "data": {(1,): 1},
        }  # fmt: skip


def test_dates_as_keys() -> None:
    for to in TARGETS:
        text = accepted(text_of(f"SELECT day, SUM(price) AS x {JOIN} GROUP BY day", to), to)
        ((key,),) = results(text, to, dated(CHANGES))["x"]
        assert key.isoformat() == "1995-03-01"


# ---- the checks themselves: each complains of what consumers rejected

WRONG = {
    "query revenue is not the map of that name": (
        "DECLARE QUERY revenue := revenue",
        "DECLARE QUERY revenue := x",
    ),
    "no ON SYSTEM READY, or several": ("ON SYSTEM READY {", "ON SYSTEM READY { } ON SYSTEM READY {"),
    "an integer of 32 bits is declared": ("price long", "price int"),
    "map AGG_VIEW_factor over tables is not filled when the system is ready": (
        "  AGG_VIEW_factor(long)[][kind] :=",
        "  AGG_VIEW_factor(long)[][kind] +=",
    ),
    "price cannot be a name": ("price", "t"),
}


@pytest.mark.parametrize("complaint", WRONG)
def test_the_checks_complain(complaint: str) -> None:
    text = text_of(f"SELECT kind, SUM(price * 2) AS revenue {JOIN} GROUP BY kind", target("fivm"))
    before, after = WRONG[complaint]
    assert before in text
    changed = re.sub(rf"\b{re.escape(before)}" if before[0].isalpha() else re.escape(before), after, text)
    assert complaint.replace("price cannot", "t cannot") in complaints(changed, FIVM)


def test_the_checks_complain_of_ints_that_overflow() -> None:
    text = " ".join(text_of(f"SELECT SUM(1 - EXTRACT(YEAR FROM day)) AS x {JOIN}", target("fivm")).split())
    assert not complaints(text, FIVM)
    assert any("may overflow" in c for c in complaints(text.replace(" * 1L", ""), FIVM))
    text = text_of(f"SELECT SUM(CASE WHEN price > 1 THEN 70000 ELSE 60000 END) AS x {JOIN}", target("fivm"))
    assert not complaints(text, FIVM)
    assert any("may overflow" in c for c in complaints(text.replace("0000L", "0000000000"), FIVM))


# ---- commands


def test_the_command_names_the_consumer() -> None:
    query = "programs/sql/open_orders.sql"
    for arguments, same in (
        (("--dialect", "a5"), ("--for", "a5")),
        (("--dialect", "dbtoaster"), ("--for", "dbtoaster")),
        ((), ("--for", "dbtoaster", "--single")),
        (("--batch",), ("--for", "fivm")),
    ):
        out, err, status = command("m3", query, *arguments)
        assert (err, status) == ("", 0) and out == command("m3", query, *same)[0]
    for arguments, message in (
        (
            ("--for", "a5", "--batch"),
            "error: a5 has no batch triggers\nhelp: leave out --batch, or choose fivm\n",
        ),
        (
            ("--for", "fivm", "--single"),
            "error: fivm runs triggers for batches only\nhelp: leave out --single, or choose dbtoaster\n",
        ),
        (("--for", "fimv"), "error: no program fimv is known that reads M3\nhelp: did you mean fivm?\n"),
        (
            ("--for", "spark"),
            "error: no program spark is known that reads M3\nhelp: one of a5, dbtoaster, fivm\n",
        ),
    ):
        assert command("m3", query, *arguments)[1:] == (message, 1)
