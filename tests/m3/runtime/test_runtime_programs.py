"""Shipped M3 programs at work: after every batch the numbers of DuckDB, from files and from Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dlog.errors import DataError, DlogError
from dlog.m3 import check, parse, parse_file, run
from dlog.m3.runtime.runtime import Runtime
from dlog.m3.runtime.streams import Reader, run_files
from dlog.m3.syntax import ast
from tests.oracle.m3_naive import Naive
from tests.oracle.m3_shipped import PROGRAMS, Relations, apply, events_of, sql_of, tables_of

IDS = [path.name for path in PROGRAMS]


def shown(runtime: Runtime, name: str) -> dict[tuple[Any, ...], Any]:
    table = runtime[name]
    columns = [column.to_pylist() for column in table.columns]
    return {row[:-1]: row[-1] for row in zip(*columns, strict=True)}


def assert_agrees(runtime: Runtime, expected: dict[str, dict[Any, Any]]) -> int:
    for name, rows in expected.items():
        found = shown(runtime, name)
        if name == "COFACTOR":
            ((counted, last),) = rows.items() or [((0,), 0)]
            if counted[0]:
                value = found[()]
                flat = [value["1"], *value["2"], value["3"][0][0], value["3"][0][1], value["3"][1][1]]
                assert flat == pytest.approx([float(x) for x in (*counted, last)])
        else:
            kept = {key: value for key, value in found.items() if abs(value) > 1e-9}
            assert kept == pytest.approx({k: v for k, v in rows.items() if abs(v) > 1e-9}), name
    return sum(map(bool, expected.values()))


@pytest.mark.parametrize("path", PROGRAMS, ids=IDS)
def test_oracle_duckdb_after_every_batch(path: Path) -> None:
    program = parse_file(path)
    runtime, relations = Runtime(program), Relations(program)
    for table, rows in tables_of(program).items():
        runtime.load(table, rows)
    compared = 0
    events = events_of(program)
    for number, event in enumerate(events, 1):
        runtime.apply(event.relation, [row for row, _ in event.rows], [n for _, n in event.rows])
        relations.apply(event)
        if event.kind == ast.BATCH or number % 11 == 0 or number == len(events):
            compared += assert_agrees(runtime, relations.results(sql_of(path)))
            runtime.check()
    assert compared > 0


NOT_OF_THE_ROWS = {
    "STOCK",
    "TOUCHED",
    "BUSY",
}  # they depend on the order of the rows: the naive interpreter decides


def test_sql_expresses_every_query_of_shipped_programs() -> None:
    for path in PROGRAMS:
        assert {q.name for q in parse_file(path).queries} - sql_of(path).keys() <= NOT_OF_THE_ROWS, path.name


@pytest.mark.parametrize(
    "path", [p for p in PROGRAMS if p.name.startswith("constructs")], ids=lambda p: p.name
)
def test_oracle_naive_after_every_batch(path: Path) -> None:
    program = check(parse_file(path))
    runtime, oracle = Runtime(program, checked=True), Naive(program, tables_of(program))
    for table, rows in tables_of(program).items():
        runtime.load(table, rows)
    oracle.ready()
    for event in events_of(program):
        runtime.apply(event.relation, [row for row, _ in event.rows], [n for _, n in event.rows])
        apply(oracle, event)
        for name in NOT_OF_THE_ROWS & {q.name for q in program.queries}:
            kept = {key: value for key, value in shown(runtime, name).items() if value != 0}
            assert kept == oracle.query(name), name


@pytest.mark.parametrize("batch", [1, 3, 1000])
@pytest.mark.parametrize("path", PROGRAMS, ids=IDS)
def test_oracle_duckdb_after_all_files(path: Path, batch: int) -> None:
    program = parse_file(path)
    runtime, relations = Runtime(program), Relations(program)
    run_files(runtime, Reader(path.parent), batch)
    for event in events_of(program):
        relations.apply(event)
    assert_agrees(runtime, relations.results(sql_of(path)))


@pytest.mark.parametrize("path", [p for p in PROGRAMS if p.name != "regression.m3"], ids=lambda p: p.name)
def test_deleting_everything_leaves_nothing(path: Path) -> None:
    """Rows that come and go in another order: no entry, no memory and no rest of a float stays."""
    program = parse_file(path)
    runtime = Runtime(program)
    for table, rows in tables_of(program).items():
        runtime.load(table, rows)
    there: dict[str, list[Any]] = {}
    for event in events_of(program):
        runtime.apply(event.relation, [row for row, _ in event.rows], [n for _, n in event.rows])
        for row, n in event.rows:
            rows = there.setdefault(event.relation, [])
            rows.append(row) if n > 0 else rows.remove(row)
    for relation, rows in there.items():
        for start in range(0, len(rows), 3):
            part = rows[start : start + 3]
            runtime.apply(relation, part[::-1], [-1] * len(part))
    for name in sql_of(path):
        assert not any(shown(runtime, name).values()), name


def run_text(text: str, folder: Path, **options: Any) -> tuple[Runtime, Reader]:
    warnings: list[str] = []
    runtime, reader = Runtime(parse(text)), Reader(folder, warn=warnings.append, **options)
    run_files(runtime, reader)
    return runtime, reader


STREAM = """CREATE STREAM R(a int, b double) FROM FILE 'r.csv' LINE DELIMITED CSV (delimiter := '|');
DECLARE MAP Q(double)[][a: int] := 0; DECLARE QUERY Q := Q(double)[][a];
ON BATCH UPDATE OF R { Q[][a] += AggSum([a], (DELTA R)(a, b) * b); }"""


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("1|2.5\n1|1.5\n2|7\n", {(1,): 4.0, (2,): 7.0}),
        ("1|2.5|1\n1|1.5|1\n2|7|1\n2|7|-1\n", {(1,): 4.0}),  # multiplicities
        ("1|2.5|\n1|1.5|\n2|7|\n", {(1,): 4.0, (2,): 7.0}),  # a delimiter at the end
        ("1|2.5|3\n", {(1,): 7.5}),
        ("", {}),
    ],
)
def test_conventions_of_files(tmp_path: Path, lines: str, expected: dict) -> None:
    (tmp_path / "r.csv").write_text(lines)
    runtime, _ = run_text(STREAM, tmp_path)
    assert shown(runtime, "Q") == expected


@pytest.mark.parametrize(
    ("bad", "reason"),
    [("x|1", "is not an int"), ("1", "found 1"), ("1|2|3|4", "found 4"), ("1|one", "is not a float")],
)
def test_bad_rows_are_reported_with_file_and_line(tmp_path: Path, bad: str, reason: str) -> None:
    (tmp_path / "r.csv").write_text(f"1|2.5\n{bad}\n1|1.5\n")
    with pytest.raises(DlogError, match=reason) as error:
        run_text(STREAM, tmp_path)
    assert error.value.render().startswith(f"{tmp_path / 'r.csv'}:2: error: ")
    runtime, reader = run_text(STREAM, tmp_path, skip_bad_rows=True)
    assert (shown(runtime, "Q"), reader.skipped) == ({(1,): 4.0}, 1)


def test_skipped_rows_are_reported_in_the_order_of_lines(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("x|1\n1|2.5\n1\n\n1|one\n")
    warnings: list[str] = []
    run_files(Runtime(parse(STREAM)), Reader(tmp_path, skip_bad_rows=True, warn=warnings.append))
    assert [w.split("r.csv:")[1].split(":")[0] for w in warnings] == ["1", "3", "5"]


def test_a_bad_event_is_reported_with_its_line(tmp_path: Path) -> None:
    """Blank lines and rows that were refused before it do not move it."""
    text = """CREATE STREAM R(A int)
    FROM FILE 'r.csv' LINE DELIMITED CSV(delimiter := '|', deletions := 'true');
    DECLARE MAP Q(int)[][] := AggSum([], R(A:int) * A:int); DECLARE QUERY Q := Q(int)[][];
    ON + R(A:int) { Q(int)[][] += A:int; }"""
    (tmp_path / "r.csv").write_text("1|1|5\n\n2|1|6\n3|2|7\n4|1|8\n")
    with pytest.raises(DlogError, match="2 is neither 1") as error:
        run_text(text, tmp_path)
    shown_error = error.value.render()
    assert shown_error.startswith(f"{tmp_path / 'r.csv'}:4: error: ") and "3|2|7" in shown_error
    runtime, reader = run_text(text, tmp_path, skip_bad_rows=True)
    assert (shown(runtime, "Q"), reader.skipped) == ({(): 19}, 1)


def test_a_missing_file_is_reported_at_its_declaration(tmp_path: Path) -> None:
    with pytest.raises(DlogError, match="there is no file") as error:
        run_text(STREAM, tmp_path)
    assert error.value.line == 1


def test_an_unreadable_file_is_reported_at_its_declaration(tmp_path: Path) -> None:
    for file in ("folder.csv", "damaged.csv.gz"):
        text = f"CREATE STREAM R(a int) FROM FILE '{file}' LINE DELIMITED CSV; DECLARE QUERY Q := 0;"
        if file.endswith(".gz"):
            (tmp_path / file).write_bytes(b"this is not compressed")
        else:
            (tmp_path / file).mkdir()
        with pytest.raises(DlogError, match=f"cannot read .*{file}") as error:
            run_text(text, tmp_path)
        assert error.value.render().startswith("<string>:1:1: error: ")
        _, reader = run_text(text, tmp_path, skip_bad_rows=True)
        assert reader.left_out == ["R"]


def test_a_missing_file_that_is_skipped_is_not_a_bad_row(tmp_path: Path) -> None:
    warnings: list[str] = []
    reader = Reader(tmp_path, skip_bad_rows=True, warn=warnings.append)
    run_files(Runtime(parse(STREAM)), reader)
    assert (reader.skipped, reader.left_out) == (0, ["R"])
    assert str(tmp_path / "r.csv") in warnings[0] and "stream R has no rows" in warnings[1]


@pytest.mark.parametrize(
    ("type_", "number", "good"),
    [
        ("long", -(2**63), False), ("long", -(2**63) + 1, True), ("long", 2**63 - 1, True),
        ("int", 2**31, False), ("int", 2**31 - 1, True), ("int", -(2**31), True),
        ("int", -(2**31) - 1, False), ("short", 2**15, False), ("byte", -(2**7) - 1, False),
        ("byte", -(2**7), True),
    ],
)  # fmt: skip
def test_numbers_that_their_type_cannot_hold(tmp_path: Path, type_: str, number: int, good: bool) -> None:
    """From a file with its line, from Python with its row; one row by itself too."""
    text = STREAM.replace("a int, b double", f"a {type_}, b double").replace("[a: int]", f"[a: {type_}]")
    (tmp_path / "r.csv").write_text(f"1|2.5\n\n{number}|1.5\n1|1.5\n")
    runtime = Runtime(parse(text))
    if good:
        runtime.apply("R", [(number, 1.5)])
        runtime.insert("R", number, 1.5)
        assert shown(runtime, "Q") == {(number,): 3.0}
        assert shown(run_text(text, tmp_path)[0], "Q") == {(1,): 4.0, (number,): 1.5}
        return
    with pytest.raises(DataError, match=rf"R: row 1: a: {number} is not between"):
        runtime.apply("R", [(1, 2.5), (number, 1.5)])
    with pytest.raises(DataError, match=f"a: {number} is not between"):
        runtime.insert("R", number, 1.5)
    assert shown(runtime, "Q") == {}
    with pytest.raises(DataError) as error:
        run_text(text, tmp_path)
    assert error.value.render().startswith(f"{tmp_path / 'r.csv'}:3: error: a: {number} is not between ")
    runtime, reader = run_text(text, tmp_path, skip_bad_rows=True)
    assert (shown(runtime, "Q"), reader.skipped) == ({(1,): 4.0}, 1)


def test_a_number_beyond_the_63_bits_of_a5(tmp_path: Path) -> None:
    runtime = Runtime(
        parse("CREATE STREAM R(A int); DECLARE MAP Q(int)[][] := 0; ON + R(A:int) { Q[][] += A:int; }")
    )
    runtime.insert("R", 2**62 - 1)
    with pytest.raises(DataError, match="is not between"):
        runtime.insert("R", 2**62)


def test_a_format_that_is_not_read_is_never_skipped(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("1|2.5\n")
    text = STREAM.replace("CSV (delimiter", "ORDERBOOK (delimiter")
    with pytest.raises(DlogError, match="only CSV files"):
        run_text(text, tmp_path, skip_bad_rows=True)


def test_streams_with_an_order_are_merged_by_it(tmp_path: Path) -> None:
    text = """
    CREATE STREAM R(A int) FROM FILE 'r.csv' LINE DELIMITED CSV (delimiter := '|', deletions := 'true');
    CREATE STREAM S(A int) FROM FILE 's.csv' LINE DELIMITED CSV (delimiter := '|', deletions := 'true');
    DECLARE MAP LAST(int)[][] := 0; DECLARE MAP SEEN(int)[][I:int, A:int] := 0; DECLARE MAP N(int)[][] := 0;
    ON + R(A:int) { N[][] += 1; SEEN[][I:int, A:int] += (I:int ^= N[][]); }
    ON - R(A:int) { N[][] += 1; SEEN[][I:int, A:int] += (I:int ^= N[][]) * 10; }
    ON + S(A:int) { N[][] += 1; SEEN[][I:int, A:int] += (I:int ^= N[][]) * 100; }"""
    (tmp_path / "r.csv").write_text("1|1|7\n4|0|7\n")
    (tmp_path / "s.csv").write_text("2|1|8\n3|1|9\n9|0|9\n")
    for batch in (1, 2, 1000):
        runtime = Runtime(parse(text))
        run_files(runtime, Reader(tmp_path), batch)
        assert shown(runtime, "SEEN") == {(1, 7): 1, (2, 8): 100, (3, 9): 100, (4, 7): 10}


def test_command_line(tmp_path: Path) -> None:
    import subprocess
    import sys

    (tmp_path / "r.csv").write_text("1|2.5\nbad\n2|4\n")
    (tmp_path / "p.m3").write_text(STREAM)
    command = [sys.executable, "-m", "dlog", "m3-run", str(tmp_path / "p.m3")]
    failed = subprocess.run(command, capture_output=True, text=True)
    assert failed.returncode == 1
    assert failed.stderr.startswith(f"{tmp_path / 'r.csv'}:2: error: ") and not failed.stdout
    for format, expected in (
        ("table", "Q\n a  value\n 1  2.5\n 2  4.0\n2 rows\n"),
        ("csv", "a,value\n1,2.5\n2,4.0\n"),
    ):
        done = subprocess.run(
            [*command, "--skip-bad-rows", "--format", format], capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (0, expected)
        assert "1 bad row skipped" in done.stderr
    done = subprocess.run([*command, "--skip-bad-rows", "--format=json"], capture_output=True, text=True)
    assert json.loads(done.stdout) == {"Q": [{"a": 1, "value": 2.5}, {"a": 2, "value": 4.0}]}


def test_run_takes_batches_of_any_relation() -> None:
    program = parse(
        """CREATE TABLE S(a int, c int); CREATE STREAM R(a int, b int);
        DECLARE MAP V(long)[][a: int] := 0; DECLARE MAP Q(long)[][] := 0;
        ON BATCH UPDATE OF R { Q[][] += AggSum([], (DELTA R)(a, b) * b * V[][a]); }
        ON SYSTEM READY { V[][a] := AggSum([a], S(a, c) * c); }"""
    )
    done = run(program, [("S", [(1, 10), (1, 5), (2, 1)]), ("R", [(1, 2), (3, 9)]), ("R", [(2, 4)], [-3])])
    assert done["Q"].to_pylist() == [{"value": 30 - 12}]


@pytest.mark.parametrize("threads", [None, 2])
@pytest.mark.parametrize(
    "name", ["constructs.a5.m3", "missed_trades.m3", "order_book.m3", "inputs.a5.m3", "tpch3.m3"]
)
def test_the_machine_can_pause_anywhere(
    name: str, threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = next(path for path in PROGRAMS if path.name == name)
    program = parse_file(path)
    whole, pausing = Runtime(program), Runtime(program, threads=threads)
    run_files(whole, Reader(path.parent))
    monkeypatch.setattr("dlog.m3.runtime.worker.BUDGET", 1)
    run_files(pausing, Reader(path.parent))
    assert [(n, t.to_pylist()) for n, t in pausing.results()] == [
        (n, t.to_pylist()) for n, t in whole.results()
    ]


def test_progress_moves_and_batches_are_whole(tmp_path: Path) -> None:
    """Rows go to the machine in growing parts; a batch that a part would end in goes with it."""
    (tmp_path / "r.csv").write_text("".join(f"{i % 7}|{i}\n" for i in range(5000)))
    reported: list[int] = []
    runtime = Runtime(parse(STREAM))
    run_files(
        runtime,
        Reader(tmp_path),
        700,
        lambda stage, _, done, __: reported.append(done) if stage == "run" else None,
    )
    assert (
        reported[:2] == [0, 1400]
        and reported == sorted(set(reported))
        and all(n % 700 == 0 for n in reported)
    )
    assert shown(runtime, "Q") == {(k,): float(sum(range(k, 5000, 7))) for k in range(7)}
