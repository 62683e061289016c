"""Tables of SQLite files: what is read, what is written, and what is refused."""

import datetime as dt
import sqlite3
from decimal import Decimal

import pytest

from dlog.errors import DataError
from dlog.io import InputOptions, OutputOptions, OutputSet, read, to_arrow, write
from dlog.values import BOOL, DATE, FLOAT, INT, STRING, UNSIGNED, decimal

EDGES = [("x", INT), ("y", INT)]


def made(path, *statements):
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def content(path, sql="SELECT * FROM r"):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def rows(path, fields, **params):
    loaded = read(InputOptions.from_params("r", {"IO": "sqlite", "filename": str(path), **params}), fields)
    loaded.check()
    return [tuple(row.values()) for row in loaded.table.to_pylist()], [
        (r.line, r.reason) for r in loaded.rejected
    ]


def save(path, data, columns, name="r", **params):
    options = OutputOptions.from_params(name, {"IO": "sqlite", "filename": str(path), **params})
    write(to_arrow(data, columns), options, columns)


def test_names_of_files_are_souffles(tmp_path):
    def path(**params):
        return InputOptions.from_params("r", {"IO": "sqlite", **params}, "f").path.as_posix()

    assert path() == "f/r.sqlite"
    assert path(name="s") == "f/s.sqlite"
    assert path(dbname="d.db") == "f/d.db"
    assert path(dbname="d.db", filename="e.db") == "f/e.db"
    assert path(dbname="/d.db") == "/d.db"
    assert OutputOptions.from_params("r", {"IO": "sqlite"}, "o").path.as_posix() == "o/r.sqlite"


def test_columns_go_by_position(tmp_path):
    made(tmp_path / "a.db", "CREATE TABLE r (a, b)", "INSERT INTO r VALUES (1, 2), (3, 4)")
    assert rows(tmp_path / "a.db", EDGES) == ([(1, 2), (3, 4)], [])
    assert rows(tmp_path / "a.db", EDGES, columns="1:0") == ([(2, 1), (4, 3)], [])


def test_columns_of_a_wider_table_go_by_name(tmp_path):
    made(tmp_path / "a.db", "CREATE TABLE r (y, id, x)", "INSERT INTO r VALUES (1, 2, 3)")
    assert rows(tmp_path / "a.db", EDGES) == ([(3, 1)], [])


def test_views_are_read(tmp_path):
    """Soufflé writes numbers of symbols, and a view with the symbols."""
    made(
        tmp_path / "a.db",
        "CREATE TABLE __SymbolTable (id INTEGER PRIMARY KEY, symbol TEXT UNIQUE)",
        "INSERT INTO __SymbolTable VALUES (1, 'a'), (2, 'b')",
        "CREATE TABLE _r ('0' INTEGER, '1' INTEGER, PRIMARY KEY ('0', '1')) WITHOUT ROWID",
        "INSERT INTO _r VALUES (1, 7), (2, 8)",
        "CREATE VIEW r AS SELECT s.symbol AS x, _r.'1' AS y FROM _r, __SymbolTable AS s WHERE _r.'0' = s.id",
    )
    assert sorted(rows(tmp_path / "a.db", [("x", STRING), ("y", INT)])[0]) == [("a", 7), ("b", 8)]
    with pytest.raises(DataError, match=r"r of .* is a view"):
        save(tmp_path / "a.db", [("a", 1)], [("x", STRING), ("y", INT)])


def test_cells_of_other_kinds_are_converted_or_rejected_with_reasons(tmp_path):
    made(
        tmp_path / "a.db",
        "CREATE TABLE r (i, s, b, d)",
        "INSERT INTO r VALUES (1, 'a', 1, '2026-01-31'), ('0x10', 5, 'true', '2026-02-01')",
        "INSERT INTO r VALUES (NULL, 'a', 1, '2026-01-31'), (2.5, 'a', 1, '2026-01-31')",
        "INSERT INTO r VALUES (1, x'00', 1, '2026-01-31'), (1, 'a', 2, '2026-02-30')",
        "INSERT INTO r VALUES (4.0, 'a', 0, '2026-03-01')",
    )
    columns = [("i", INT), ("s", STRING), ("b", BOOL), ("d", DATE)]
    good, bad = rows(tmp_path / "a.db", columns)
    assert good == [
        (1, "a", True, dt.date(2026, 1, 31)),
        (16, "5", True, dt.date(2026, 2, 1)),
        (4, "a", False, dt.date(2026, 3, 1)),
    ]
    assert bad == [
        (3, "i: is null, int expected"),
        (4, "i: 2.5 has a fraction, int expected"),
        (5, "s: b'\\x00' is a bytes, string expected"),
        (6, "b: 2 is an int, bool expected"),
    ]


def test_wrong_tables_are_refused(tmp_path):
    path = tmp_path / "a.db"
    made(path, "CREATE TABLE edges (x, y)", "CREATE TABLE r (y, x)", "CREATE TABLE s (a, b, c)")
    with pytest.raises(DataError, match="has no table edge") as caught:
        rows(path, EDGES, name="edge")
    assert "edges" in caught.value.help
    with pytest.raises(DataError, match="in another order") as caught:
        rows(path, EDGES)
    assert "columns=" in caught.value.help
    with pytest.raises(DataError, match="has 3 columns, r has 2") as caught:
        rows(path, EDGES, name="s")
    assert "a, b, c" in caught.value.help
    with pytest.raises(DataError, match="asks for number 7"):
        rows(path, EDGES, columns="0:7")
    (tmp_path / "text.db").write_text("1,2\n" * 300)
    with pytest.raises(DataError, match=r'cannot read ".*text\.db": file is not a database'):
        rows(tmp_path / "text.db", EDGES)
    with pytest.raises(DataError, match="no file"):
        rows(tmp_path / "none.db", EDGES)
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(DataError, match="r has no columns"):
        rows(path, [])


def test_values_are_written_as_sqlite_has_them(tmp_path):
    columns = [("i", INT), ("u", UNSIGNED), ("f", FLOAT), ("s", STRING), ("b", BOOL), ("m", decimal(9, 2))]
    data = [(-5, 2**64 - 1, 0.1, "it's", True, Decimal("1.50")), (6, 7, float("nan"), "", False, Decimal(2))]
    save(tmp_path / "new" / "a.db", data, columns)
    assert content(tmp_path / "new" / "a.db") == [
        (-5, str(2**64 - 1), 0.1, "it's", 1, "1.50"),
        (6, 7, "nan", "", 0, "2.00"),
    ]
    types = content(tmp_path / "new" / "a.db", "SELECT name, type FROM pragma_table_info('r')")
    assert types == [
        ("i", "INTEGER"),
        ("u", "BLOB"),
        ("f", "REAL"),
        ("s", "TEXT"),
        ("b", "INTEGER"),
        ("m", "TEXT"),
    ]


def test_rows_of_an_existing_table_are_replaced_and_all_else_stays(tmp_path):
    path = tmp_path / "a.db"
    made(
        path,
        "CREATE TABLE r (y INTEGER, x INTEGER, PRIMARY KEY (x, y))",
        "CREATE TABLE other (z)",
        "CREATE INDEX by_y ON r (y)",
        "INSERT INTO r VALUES (1, 2), (3, 4)",
        "INSERT INTO other VALUES (9)",
    )
    before = content(path, "SELECT sql FROM sqlite_master")
    save(path, [(2, 1), (5, 6)], EDGES)
    assert sorted(content(path, "SELECT x, y FROM r")) == [(2, 1), (5, 6)]
    assert content(path, "SELECT * FROM other") == [(9,)]
    assert content(path, "SELECT sql FROM sqlite_master") == before
    save(path, [], EDGES)
    assert content(path) == []


def test_tables_that_would_change_values_are_refused(tmp_path):
    path = tmp_path / "a.db"
    made(
        path, "CREATE TABLE r (x REAL, y INT)", "CREATE TABLE s (x INT, z INT)", "INSERT INTO r VALUES (1, 2)"
    )
    with pytest.raises(DataError, match="would change the values of x: it is REAL, not INTEGER"):
        save(path, [(1, 2)], EDGES)
    with pytest.raises(DataError, match="has other columns than s"):
        save(path, [(1, 2)], EDGES, name="s")
    with pytest.raises(DataError, match="r has no columns"):
        save(path, [()], [])
    assert content(path) == [(1.0, 2)]


def test_all_tables_of_a_run_appear_or_none(tmp_path):
    path, new = tmp_path / "a.db", tmp_path / "new.db"
    made(path, "CREATE TABLE r (x INT, y INT)", "INSERT INTO r VALUES (1, 2)")
    table = to_arrow([(3, 4)], EDGES)

    def options(name, file):
        return OutputOptions.from_params(name, {"IO": "sqlite", "filename": str(file)})

    with pytest.raises(RuntimeError), OutputSet() as outputs:
        outputs.write(table, options("r", path), EDGES)
        outputs.write(table, options("s", new), EDGES)
        raise RuntimeError
    assert content(path) == [(1, 2)] and not new.exists()
    with OutputSet() as outputs:
        outputs.write(table, options("r", path), EDGES)
        outputs.write(table, options("s", path), EDGES)
        assert content(path) == [(1, 2)], "readers see the table as before until all is written"
    assert content(path) == content(path, "SELECT * FROM s") == [(3, 4)]


def test_a_table_that_failed_leaves_nothing_in_a_later_commit(tmp_path):
    path = tmp_path / "a.db"
    made(path, "CREATE TABLE r (x INT CHECK (x < 9), y INT)", "INSERT INTO r VALUES (1, 2)")
    options = OutputOptions.from_params("r", {"IO": "sqlite", "filename": str(path)})
    outputs = OutputSet()
    with pytest.raises(DataError, match="CHECK constraint failed"):
        outputs.write(to_arrow([(3, 4), (9, 9)], EDGES), options, EDGES)
    outputs.commit()
    assert content(path) == [(1, 2)]


def test_one_table_takes_one_relation_and_one_file_one_format(tmp_path):
    table = to_arrow([(3, 4)], EDGES)

    def options(relation, kind, **params):
        params = {"IO": kind, "filename": str(tmp_path / "a.db"), **params}
        return OutputOptions.from_params(relation, params)

    with pytest.raises(DataError, match="as a SQLite file and as another"), OutputSet() as outputs:
        outputs.write(table, options("r", "sqlite"), EDGES)
        outputs.write(table, options("r", "csv"), EDGES)
    with pytest.raises(DataError, match="as a SQLite file and as another"), OutputSet() as outputs:
        outputs.write(table, options("r", "csv"), EDGES)
        outputs.write(table, options("r", "sqlite"), EDGES)
    with (
        pytest.raises(DataError, match="r and s would both be written to the table S"),
        OutputSet() as outputs,
    ):
        outputs.write(table, options("r", "sqlite", name="s"), EDGES)
        outputs.write(table, options("s", "sqlite", name="S"), EDGES)
    assert not list(tmp_path.iterdir())


def test_a_file_that_another_process_writes_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("dlog.io.sqlite_file.WAITING_SECONDS", 0.05)
    path = tmp_path / "a.db"
    made(path, "CREATE TABLE r (x INT, y INT)")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DataError, match="database is locked"):
        save(path, [(1, 2)], EDGES)
    other.close()
    save(path, [(1, 2)], EDGES)
    assert content(path) == [(1, 2)]


def test_many_rows(tmp_path):
    data = [(i, -i) for i in range(150_000)]
    save(tmp_path / "a.db", data, EDGES)
    assert rows(tmp_path / "a.db", EDGES) == (data, [])
