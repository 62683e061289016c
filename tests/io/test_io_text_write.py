"""Golden bytes: text output as Soufflé prints it."""

import datetime as dt
import gzip
import io
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.io import OutputOptions, OutputSet, arrow_schema, nullary_table, to_arrow, write
from dlog.values import BOOL, DATE, DATETIME, DECIMAL, FLOAT, INT, STRING, UNSIGNED, decimal
from dlog.values.float import float_texts


def written(tmp_path, rows, columns, /, **params):
    options = OutputOptions.from_params("r", params, tmp_path)
    write(to_arrow(rows, columns), options, columns)
    return options.path.read_bytes()


def column_text(tmp_path, values, type, /, **params):
    return written(tmp_path, [(value,) for value in values], [("v", type)], **params).decode().splitlines()


def test_rows_are_separated_by_tabs(tmp_path):
    rows = [(1, 'say "hi"'), (-2, ""), (3, "tab\there")]
    data = written(tmp_path, rows, [("x", INT), ("s", STRING)])
    assert data == b'1\tsay "hi"\n-2\t\n3\ttab\there\n'


def test_rfc4180_quotes_strings_and_nothing_else(tmp_path):
    rows = [(1, 'say "hi", you'), (2, "")]
    data = written(tmp_path, rows, [("x", INT), ("s", STRING)], rfc4180=True)
    assert data == b'1,"say ""hi"", you"\n2,""\n'


def test_header_and_delimiter(tmp_path):
    data = written(tmp_path, [(1, 2)], [("x", INT), ("y", INT)], headers=True, delimiter="::")
    assert data == b"x::y\n1::2\n"


def test_integers(tmp_path):
    assert column_text(tmp_path, [-(2**63), 2**63 - 1], INT) == [
        "-9223372036854775808",
        "9223372036854775807",
    ]
    assert column_text(tmp_path, [2**64 - 1], UNSIGNED) == ["18446744073709551615"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5"),
        (3.0, "3"),
        (-0.0, "0"),
        (1e20, "1e+20"),
        (1e-7, "1e-07"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1 / 3, "0.333333333"),
        (123456789.0, "123456789"),
        (1234567890.0, "1.23456789e+09"),
        (999999999.5, "1e+09"),
        (0.1 + 0.2, "0.3"),
        (2.5e-10, "2.5e-10"),
        (float("inf"), "inf"),
        (float("-inf"), "-inf"),
        (float("nan"), "nan"),
    ],
)
def test_floats_have_nine_digits(tmp_path, value, text):
    assert column_text(tmp_path, [value], FLOAT) == [text]


def test_floats_in_full_precision(tmp_path):
    values = [0.1 + 0.2, 3.0, 1e20, 1 / 3, -0.0]
    expected = ["0.30000000000000004", "3", "1e+20", "0.3333333333333333", "0"]
    assert column_text(tmp_path, values, FLOAT, precision="full") == expected


@given(st.lists(st.floats() | st.decimals(-10000, 10000, places=9).map(float) | st.floats(1e-5, 1e10)))
@settings(max_examples=300, deadline=None)
def test_oracle_nine_digits(values):
    expected = ["nan" if v != v else f"{v + 0.0:.9g}" for v in values]
    assert float_texts(pa.array(values, pa.float64())).to_pylist() == expected


@given(st.integers(10**8, 10**9 - 1), st.integers(-4, 8))
@settings(max_examples=300, deadline=None)
def test_oracle_nine_digits_at_ties(digits, exponent):
    """Values next to the middle between two numbers of 9 digits, where rounding is hardest."""
    middle = float(Decimal(digits).scaleb(exponent - 8) + Decimal(5).scaleb(exponent - 9))
    values = [middle, float.fromhex(middle.hex()) * (1 + 2**-52), middle * (1 - 2**-53)]
    assert float_texts(pa.array(values)).to_pylist() == [f"{v:.9g}" for v in values]


def test_other_types(tmp_path):
    assert column_text(tmp_path, [True, False], BOOL) == ["true", "false"]
    assert column_text(tmp_path, [dt.date(1, 2, 3), dt.date(2024, 2, 29)], DATE) == [
        "0001-02-03",
        "2024-02-29",
    ]
    moments = [dt.datetime(2024, 2, 29), dt.datetime(2024, 2, 29, 1, 2, 3, 40)]
    assert column_text(tmp_path, moments, DATETIME) == ["2024-02-29T00:00:00", "2024-02-29T01:02:03.000040"]


def test_decimals_of_the_default_scale_are_trimmed(tmp_path):
    values = [Decimal(text) for text in ["3", "3.5", "-0.000001", "120", "0", "-12.340000", "100.01"]]
    assert column_text(tmp_path, values, DECIMAL) == [
        "3.0",
        "3.5",
        "-0.000001",
        "120.0",
        "0.0",
        "-12.34",
        "100.01",
    ]


def test_declared_decimals_have_all_their_digits(tmp_path):
    assert column_text(tmp_path, [Decimal("3.5"), Decimal(-7)], decimal(10, 2)) == ["3.50", "-7.00"]
    assert column_text(tmp_path, [Decimal("3"), Decimal(-7)], decimal(10, 0)) == ["3", "-7"]
    assert column_text(tmp_path, [Decimal("-0.001")], decimal(18, 18)) == ["-0.001000000000000000"]
    assert column_text(tmp_path, [Decimal("1.5")], decimal(10, 6)) == ["1.500000"]


def test_nullary_rows(tmp_path):
    options = OutputOptions.from_params("r", {}, tmp_path)
    write(nullary_table(1), options, [])
    assert options.path.read_bytes() == b"()\n"
    write(nullary_table(0), options, [])
    assert options.path.read_bytes() == b""


def test_no_rows(tmp_path):
    assert written(tmp_path, [], [("x", INT)]) == b""
    assert written(tmp_path, [], [("x", INT)], header=True) == b"x\n"


def test_gzip(tmp_path):
    assert gzip.decompress(written(tmp_path, [(1,), (2,)], [("x", INT)], compress=True)) == b"1\n2\n"
    assert (tmp_path / "r.csv.gz").exists()


def test_standard_output():
    stdout = io.BytesIO()
    with OutputSet(stdout=stdout) as outputs:
        options = OutputOptions.from_params("reach", {"IO": "stdout"})
        outputs.write(to_arrow([(1, 2)], [("x", INT), ("y", INT)]), options)
        outputs.print_size("edge", 12)
        outputs.write(nullary_table(1), OutputOptions.from_params("flag", {}, "-"))
    assert stdout.getvalue() == (
        b"---------------\nreach\n===============\n1\t2\n===============\n"
        b"edge\t12\n"
        b"---------------\nflag\n===============\n()\n===============\n"
    )


def test_standard_output_with_header():
    stdout = io.BytesIO()
    options = OutputOptions.from_params("r", {"IO": "stdout", "headers": True})
    write(to_arrow([(1, 2)], [("x", INT), ("y", INT)]), options, stdout=stdout)
    assert stdout.getvalue() == b"---------------\nr\nx\ty\n===============\n1\t2\n===============\n"


def test_sliced_and_chunked_tables(tmp_path):
    table = pa.concat_tables([to_arrow([(i,)], [("x", INT)]) for i in range(10)]).slice(3, 4)
    options = OutputOptions.from_params("r", {}, tmp_path)
    write(table, options)
    assert options.path.read_bytes() == b"3\n4\n5\n6\n"
    column = pa.array([Decimal("1.5"), Decimal("2.5"), Decimal("3.5")], pa.decimal128(18, 6)).slice(1)
    write(pa.Table.from_arrays([column], schema=arrow_schema([("d", DECIMAL)])), options)
    assert options.path.read_bytes() == b"2.5\n3.5\n"


def test_progress_counts_rows(tmp_path):
    seen = []
    table = to_arrow([(i,) for i in range(200_000)], [("x", INT)])
    write(table, OutputOptions.from_params("r", {}, tmp_path), progress=lambda *now: seen.append(now))
    assert len(seen) > 1 and seen == sorted(seen) and seen[-1] == (200_000, 200_000)
