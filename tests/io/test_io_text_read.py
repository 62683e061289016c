"""Reading delimited text: what is taken, and what is refused on which line and why."""

import datetime as dt
import gzip
import io
from decimal import Decimal

import pytest

from dlog.errors import DataError
from dlog.io import InputOptions, csv_reader, read
from dlog.io.columns import KEPT_REJECTIONS
from dlog.values import (
    BOOL,
    DATE,
    DATETIME,
    DECIMAL,
    DURATION,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    UNSIGNED,
    decimal,
)

XY = [("x", INT), ("y", INT)]
FINER = "is finer than a microsecond"


def load(tmp_path, text, columns, /, **params):
    data = text if isinstance(text, bytes) else text.encode()
    (tmp_path / "r.facts").write_bytes(data)
    loaded = read(InputOptions.from_params("r", params, tmp_path), columns)
    loaded.check()
    return loaded


def rows(loaded):
    return list(zip(*(column.to_pylist() for column in loaded.table.columns), strict=True))


def reasons(loaded):
    return [(rejected.line, rejected.reason) for rejected in loaded.rejected]


def test_plain_rows(tmp_path):
    loaded = load(tmp_path, "1\t2\n-3\t4\n", XY)
    assert rows(loaded) == [(1, 2), (-3, 4)]
    assert (loaded.rejected, loaded.rejected_count) == ([], 0)


def test_every_type(tmp_path):
    columns = [
        ("i", INT),
        ("u", UNSIGNED),
        ("f", FLOAT),
        ("s", STRING),
        ("b", BOOL),
        ("d", DATE),
        ("t", DATETIME),
        ("m", DECIMAL),
        ("n", decimal(5, 2)),
    ]
    line = "-1\t18446744073709551615\t1.5\t a b \ttrue\t2024-02-29\t2024-02-29T01:02:03.5\t3.25\t-999.99\n"
    loaded = load(tmp_path, line, columns)
    assert rows(loaded) == [
        (
            -1,
            2**64 - 1,
            1.5,
            " a b ",
            True,
            dt.date(2024, 2, 29),
            dt.datetime(2024, 2, 29, 1, 2, 3, 500000),
            Decimal("3.25"),
            Decimal("-999.99"),
        )
    ]
    types = [str(type) for type in loaded.table.schema.types]
    assert types[-2:] == ["decimal128(18, 6)", "decimal128(18, 2)"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x1f", 31),
        ("0X1F", 31),
        ("-0x10", -16),
        ("0b101", 5),
        ("+7", 7),
        ("007", 7),
        (" 7 ", 7),
        ("-9223372036854775808", -(2**63)),
        ("0xffffffffffffffff", -1),
        ("0b1" + "0" * 63, -(2**63)),
    ],
)
def test_numbers_souffle_writes(tmp_path, text, value):
    assert rows(load(tmp_path, f"{text}\t1\n", XY)) == [(value, 1)]


@pytest.mark.parametrize(
    ("type", "text", "reason"),
    [
        (INT, "", "v: is empty, int expected"),
        (INT, "abc", 'v: "abc" is not an int'),
        (INT, "1.0", 'v: "1.0" is not an int'),
        (INT, "1_000", 'v: "1_000" is not an int'),
        (INT, "\u0661", 'v: "\u0661" is not an int'),
        (INT, "9223372036854775808", "v: 9223372036854775808 is outside the range of int (64 bits)"),
        (INT, "0x10000000000000000", "v: 0x10000000000000000 is outside the range of int (64 bits)"),
        (INT, "9" * 5000, "v: " + "9" * 57 + "... is outside the range of int (64 bits)"),
        (UNSIGNED, "-1", "v: -1 is outside the range of unsigned (64 bits)"),
        (
            UNSIGNED,
            "18446744073709551616",
            "v: 18446744073709551616 is outside the range of unsigned (64 bits)",
        ),
        (FLOAT, "1,5", 'v: "1,5" is not a float'),
        (FLOAT, "", "v: is empty, float expected"),
        (FLOAT, "1e400", "v: 1e400 is outside the range of float"),
        (BOOL, "yes", 'v: "yes" is not a bool (true or false)'),
        (DATE, "2023-02-29", 'v: "2023-02-29" is not a date (YYYY-MM-DD)'),
        (DATE, "2023-2-9", 'v: "2023-2-9" is not a date (YYYY-MM-DD)'),
        (DATE, "0000-01-01", 'v: "0000-01-01" is not a date (YYYY-MM-DD)'),
        (DATETIME, "2023-01-01T25:00:00", 'v: "2023-01-01T25:00:00" is not a datetime (YYYY-MM-DDTHH:MM:SS)'),
        (
            DATETIME,
            "2023-01-01 00:00:00.0000001",
            'v: "2023-01-01 00:00:00.0000001" is finer than a microsecond',
        ),
        (DURATION, "-PT1.0000001S", f'v: "-PT1.0000001S" {FINER}'),
        (DURATION, "PT1.1234567", 'v: "PT1.1234567" is not a duration (P1DT2H3M4.5S)'),
        (DECIMAL, "1.2345678", "v: 1.2345678 has more than 6 digits after the point"),
        (DECIMAL, "1234567890123", "v: 1234567890123 is outside the range of decimal"),
        (DECIMAL, "nan", 'v: "nan" is not a decimal'),
        (decimal(5, 2), "1000.00", "v: 1000.00 is outside the range of decimal(5, 2)"),
        (decimal(5, 2), "1.234", "v: 1.234 has more than 2 digits after the point"),
    ],
)
def test_bad_cells_are_refused_with_line_and_reason(tmp_path, type, text, reason):
    good = {"int": "5", "unsigned": "5", "float": "5", "bool": "true", "date": "2020-01-01"}
    good |= {"datetime": "2020-01-01T00:00:00", "duration": "PT5S"}
    fine = good.get(type.name, "5")
    loaded = load(tmp_path, f"a\t{fine}\nb\t{text}\nc\t{fine}\n", [("k", STRING), ("v", type)])
    assert loaded.table.column(0).to_pylist() == ["a", "c"]
    assert reasons(loaded) == [(2, reason)]
    assert loaded.rejected[0].file == str(tmp_path / "r.facts")
    assert loaded.rejected[0].text == f"b\t{text}"[:200] + ("..." if len(text) > 198 else "")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-01-31", dt.datetime(2024, 1, 31)),
        ("2024-01-31 10:20", dt.datetime(2024, 1, 31, 10, 20)),
        ("2024-01-31T10:20:30.25", dt.datetime(2024, 1, 31, 10, 20, 30, 250000)),
        ("2024-01-31T10:20:30.1234560", dt.datetime(2024, 1, 31, 10, 20, 30, 123456)),
    ],
)
def test_forms_of_datetimes(tmp_path, text, value):
    assert rows(load(tmp_path, text + "\n", [("t", DATETIME)])) == [(value,)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-01-31T10:20:30Z", dt.datetime(2024, 1, 31, 10, 20, 30, 0, dt.UTC)),
        ("2024-01-31T10:20:30+02:00", dt.datetime(2024, 1, 31, 8, 20, 30, 0, dt.UTC)),
        ("2024-01-31 10:20-0130", dt.datetime(2024, 1, 31, 11, 50, 0, 0, dt.UTC)),
        ("2024-01-31T10+23:59", dt.datetime(2024, 1, 30, 10, 1, 0, 0, dt.UTC)),
        (" 2024-01-31T10:20:30.25Z ", dt.datetime(2024, 1, 31, 10, 20, 30, 250000, dt.UTC)),
    ],
)
def test_forms_of_timestamps(tmp_path, text, value):
    assert rows(load(tmp_path, text + "\n", [("t", TIMESTAMP)])) == [(value,)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("PT0S", dt.timedelta(0)),
        ("P1W1D", dt.timedelta(8)),
        ("-P1DT2H3M4.5S", -dt.timedelta(1, 4, 500_000, 0, 3, 2)),
        ("+PT36H", dt.timedelta(1.5)),
        (" PT0.000001S", dt.timedelta(microseconds=1)),
        ("P106751991D", dt.timedelta(106751991)),
        ("PT0000000000000000000001S", dt.timedelta(seconds=1)),
    ],
)
def test_forms_of_durations(tmp_path, text, value):
    assert rows(load(tmp_path, text + "\nPT1S\n", [("t", DURATION)])) == [
        (value,),
        (dt.timedelta(seconds=1),),
    ]


def test_wrong_number_of_columns(tmp_path):
    loaded = load(tmp_path, "1\t2\n3\n4\t5\t6\n7\t8\n", XY)
    assert rows(loaded) == [(1, 2), (7, 8)]
    assert reasons(loaded) == [(2, "expected 2 columns, found 1"), (3, "expected 2 columns, found 3")]


def test_first_bad_column_is_named_once(tmp_path):
    loaded = load(tmp_path, "x\ty\n", XY)
    assert reasons(loaded) == [(1, 'x: "x" is not an int')]
    assert loaded.rejected_count == 1


def test_details_are_capped_and_all_are_counted(tmp_path):
    loaded = load(tmp_path, "1\t2\nbad\n" * 100, XY)
    assert loaded.table.num_rows == 100
    assert loaded.rejected_count == 100
    assert [r.line for r in loaded.rejected] == list(range(2, 2 * KEPT_REJECTIONS + 1, 2))


def test_empty_strings_are_values(tmp_path):
    loaded = load(tmp_path, "\t\nNULL\tNA\n", [("a", STRING), ("b", STRING)])
    assert rows(loaded) == [("", ""), ("NULL", "NA")]


def test_blank_lines_are_not_rows(tmp_path):
    assert rows(load(tmp_path, "\n1\t2\n\n3\t4\n\n", XY)) == [(1, 2), (3, 4)]
    loaded = load(tmp_path, "\n1\t2\n\nx\t4\n\n", XY)
    assert rows(loaded) == [(1, 2)]
    assert reasons(loaded) == [(4, 'x: "x" is not an int')]


def test_a_blank_line_is_the_empty_string_where_a_row_is_one_string(tmp_path):
    assert rows(load(tmp_path, "a\n\nb\n\n", [("s", STRING)])) == [("a",), ("",), ("b",), ("",)]
    assert rows(load(tmp_path, "\n", [("s", STRING)])) == [("",)]
    assert rows(load(tmp_path, "", [("s", STRING)])) == []


@pytest.mark.parametrize("text", ["1\t2\r\n3\t4\r\n", "1\t2\n3\t4\r\n", "1\t2\r\n3\t4\r", "1\t2\r\n3\t4"])
def test_carriage_returns_end_lines(tmp_path, text):
    assert rows(load(tmp_path, text, XY)) == [(1, 2), (3, 4)]
    assert rows(load(tmp_path, text, [("a", STRING), ("b", STRING)])) == [("1", "2"), ("3", "4")]


def test_a_carriage_return_within_a_line_is_text(tmp_path):
    loaded = load(tmp_path, "a\rb\tc\nd\te\r\r\n", [("a", STRING), ("b", STRING)])
    assert rows(loaded) == [("a\rb", "c"), ("d", "e\r")]


def test_quotes_are_plain_characters(tmp_path):
    loaded = load(tmp_path, 'a"b\t"c\n"d"\t""\n', [("a", STRING), ("b", STRING)])
    assert rows(loaded) == [('a"b', '"c'), ('"d"', '""')]


def test_unicode(tmp_path):
    text = "\ufeffähnlich\t日本語\n🙂\te\u0301\n"
    loaded = load(tmp_path, text, [("a", STRING), ("b", STRING)])
    assert rows(loaded) == [("ähnlich", "日本語"), ("🙂", "e\u0301")]


def test_bytes_that_are_not_utf8(tmp_path):
    loaded = load(tmp_path, b"a\t1\n\xff\xfe\t2\nb\tx\nc\t\xff\n", [("s", STRING), ("n", INT)])
    assert rows(loaded) == [("a", 1)]
    assert reasons(loaded) == [
        (2, "s: is not UTF-8 text"),
        (3, 'n: "x" is not an int'),
        (4, "n: is not UTF-8 text"),
    ]
    assert loaded.rejected[0].text == "\ufffd\ufffd\t2"


@pytest.mark.parametrize("delimiter", [",", "::", "→", " ", "|"])
def test_delimiters(tmp_path, delimiter):
    text = f"1{delimiter}a\n2{delimiter}b\nx{delimiter}c\n"
    loaded = load(tmp_path, text, [("n", INT), ("s", STRING)], delimiter=delimiter)
    assert rows(loaded) == [(1, "a"), (2, "b")]
    assert reasons(loaded) == [(3, 'n: "x" is not an int')]


def test_header_is_skipped_and_counts_as_a_line(tmp_path):
    loaded = load(tmp_path, "x\ty\n1\t2\n3\tz\n", XY, headers=True)
    assert rows(loaded) == [(1, 2)]
    assert reasons(loaded) == [(3, 'y: "z" is not an int')]
    assert rows(load(tmp_path, "x\ty", XY, headers=True)) == []


def test_chosen_columns(tmp_path):
    text = "1\ta\t2\n3\tb\t4\t5\n6\tc\n"
    loaded = load(tmp_path, text, [("x", INT), ("y", INT), ("s", STRING)], columns="0:2:1")
    assert rows(loaded) == [(1, 2, "a"), (3, 4, "b")]
    assert reasons(loaded) == [(3, "expected at least 3 columns, found 2")]


def test_chosen_columns_that_are_not_there(tmp_path):
    loaded = load(tmp_path, "a\nb\t1\n\n", [("s", STRING)], columns="1")
    assert rows(loaded) == [("1",)]
    assert reasons(loaded) == [(1, "expected at least 2 columns, found 1")]
    assert load(tmp_path, "a\n", [("s", STRING)], columns="999999999").rejected_count == 1


def test_one_source_column_twice(tmp_path):
    loaded = load(tmp_path, "1\ta\n2\tb\n", [("x", INT), ("s", STRING)], columns="0:0")
    assert rows(loaded) == [(1, "1"), (2, "2")]


def test_rfc4180(tmp_path):
    text = 'a,"b,""c"""\n"two\nlines",\n"",x\n'
    loaded = load(tmp_path, text, [("a", STRING), ("b", STRING)], rfc4180=True)
    assert rows(loaded) == [("a", 'b,"c"'), ("two\nlines", ""), ("", "x")]


def test_rfc4180_lines_are_those_of_the_file(tmp_path):
    text = '"two\nlines",1\r\n"x",y\r\n"quoted","3"\r\nlast,4,5\r\n'
    loaded = load(tmp_path, text, [("a", STRING), ("b", INT)], rfc4180=True)
    assert rows(loaded) == [("two\nlines", 1), ("quoted", 3)]
    assert reasons(loaded) == [(3, 'b: "y" is not an int'), (5, "expected 2 columns, found 3")]
    assert loaded.rejected[0].text == '"x",y'


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('"a"b,1', "text follows a closing quote"),
        ('""b,1', "text follows a closing quote"),
        ('"a""b,1', "a quote is not closed"),
    ],
)
def test_rfc4180_wrong_quotes(tmp_path, line, reason):
    loaded = load(tmp_path, f"x,0\n{line}\ny,2\n", [("a", STRING), ("b", INT)], rfc4180=True)
    assert rows(loaded) == [("x", 0), ("y", 2)]
    assert reasons(loaded) == [(2, reason)]


def test_rfc4180_empty_quotes_are_not_a_blank_line(tmp_path):
    loaded = load(tmp_path, '""\n\n1\n', [("x", INT)], rfc4180=True)
    assert rows(loaded) == [(1,)]
    assert reasons(loaded) == [(1, "x: is empty, int expected")]


def test_rfc4180_quote_inside_an_unquoted_cell_is_text(tmp_path):
    loaded = load(tmp_path, 'pipe 5",1\n"x",2\n', [("a", STRING), ("b", INT)], rfc4180=True)
    assert rows(loaded) == [('pipe 5"', 1), ("x", 2)]


def test_rfc4180_delimiter_of_several_characters(tmp_path):
    loaded = load(tmp_path, '"a::b"::1\nc::2\n', [("a", STRING), ("b", INT)], rfc4180=True, delimiter="::")
    assert rows(loaded) == [("a::b", 1), ("c", 2)]


def test_blocks_are_cut_at_lines_and_lines_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 50)
    text = "".join(f"{i}\t{i}\n" for i in range(500)) + "bad\n" + "1\t" + "2" * 5 + "\n"
    loaded = load(tmp_path, text, XY)
    assert rows(loaded) == [(i, i) for i in range(500)] + [(1, 22222)]
    assert reasons(loaded) == [(501, "expected 2 columns, found 1")]


def test_a_line_longer_than_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 50)
    long = "x" * 300
    loaded = load(tmp_path, f"a\t1\n{long}\t2\nb\t3\n", [("s", STRING), ("n", INT)])
    assert rows(loaded) == [("a", 1), (long, 2), ("b", 3)]


def test_gzip_is_known_by_its_bytes(tmp_path):
    packed = gzip.compress(b"1\t2\n") + gzip.compress(b"3\t4\n")
    assert rows(load(tmp_path, packed, XY)) == [(1, 2), (3, 4)]
    assert rows(load(tmp_path, packed, XY, compress=True)) == [(1, 2), (3, 4)]
    assert rows(load(tmp_path, "1\t2\n", XY, compress=True)) == [(1, 2)]
    (tmp_path / "z.facts.gz").write_bytes(packed)
    assert read(InputOptions.from_params("z", {}, tmp_path), XY).table.num_rows == 2


def test_broken_gzip(tmp_path):
    (tmp_path / "r.gz").write_bytes(gzip.compress(b"1\t2\n" * 1000)[:-9])
    with pytest.raises(DataError, match="cannot decompress"):
        read(tmp_path / "r.gz", XY)
    (tmp_path / "r.gz").write_bytes(b"1\t2\n")
    with pytest.raises(DataError, match="is not a gzip file"):
        read(tmp_path / "r.gz", XY)


def test_missing_file_names_file_and_folder(tmp_path):
    with pytest.raises(DataError) as caught:
        read(InputOptions.from_params("edge", {}, tmp_path), XY)
    assert caught.value.message == (
        f'cannot read the facts of edge: there is no file "edge.facts" in "{tmp_path}"'
    )
    assert caught.value.help == "give the facts folder with -F"
    with pytest.raises(DataError, match=r'there is no folder ".*nowhere"'):
        read(InputOptions.from_params("edge", {}, tmp_path / "nowhere"), XY)


def test_a_folder_is_not_a_file(tmp_path):
    (tmp_path / "r.facts").mkdir()
    with pytest.raises(DataError, match=r"cannot read .*: Is a directory") as caught:
        read(InputOptions.from_params("r", {}, tmp_path), XY)
    assert "--spark" in caught.value.help


def test_standard_input():
    options = InputOptions.from_params("r", {"IO": "stdin", "delimiter": ","})
    loaded = read(options, XY, stdin=io.BytesIO(b"1,2\n3\n"))
    assert rows(loaded) == [(1, 2)]
    assert str(loaded.rejected[0]) == "<stdin>:2: expected 2 columns, found 1"


def test_nullary_relations(tmp_path):
    assert load(tmp_path, "", []).table.num_rows == 0
    assert load(tmp_path, "()\n", []).table.num_rows == 1
    assert load(tmp_path, "()\r\n\n()\n", []).table.num_rows == 1
    loaded = load(tmp_path, "()\n1\n", [])
    assert loaded.table.num_rows == 1
    assert reasons(loaded) == [(2, "expected () or nothing")]


def test_progress_rises_to_the_size_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 64)
    (tmp_path / "r.facts").write_bytes(b"1\t2\n" * 100)
    seen = []
    read(tmp_path / "r.facts", XY, progress=lambda done, total: seen.append((done, total)))
    assert len(seen) > 3
    assert seen == sorted(seen) and seen[-1] == (400, 400)
    assert {total for _, total in seen} == {400}
