"""The parameters of `.input` and `.output`."""

from pathlib import Path

import pytest

from dlog.errors import DataError
from dlog.io import InputOptions, OutputOptions, ParameterError, read
from dlog.io.csv_writer import header_line
from dlog.values import INT


def test_input_defaults_are_souffles():
    options = InputOptions.from_params("edge", {}, "facts")
    assert options.path == Path("facts/edge.facts")
    assert (options.format, options.delimiter, options.quoted, options.header) == ("text", "\t", False, False)


def test_output_defaults_are_souffles():
    options = OutputOptions.from_params("inst.reach", {}, "out")
    assert options.path == Path("out/inst.reach.csv")
    assert (options.delimiter, options.quoted, options.full_precision) == ("\t", False, False)


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"IO": "csv"}, "f/r.csv"),
        ({"IO": "tsv"}, "f/r.tsv"),
        ({"IO": "json"}, "f/r.json"),
        ({"IO": "parquet"}, "f/r.parquet"),
        ({"IO": "arrow"}, "f/r.arrow"),
        ({"filename": "x.dat"}, "f/x.dat"),
        ({"filename": "/abs/x.dat"}, "/abs/x.dat"),
        ({"name": "other"}, "f/other.facts"),
    ],
)
def test_input_paths(params, path):
    assert InputOptions.from_params("r", params, "f").path == Path(path)


def test_rfc4180_brings_its_delimiter_unless_one_is_given():
    assert InputOptions.from_params("r", {"rfc4180": "true"}).delimiter == ","
    assert InputOptions.from_params("r", {"rfc4180": True, "delimiter": ";"}).delimiter == ";"
    assert InputOptions.from_params("r", {"IO": "csv", "rfc4180": False}).delimiter == "\t"


def test_escaped_tab_is_a_tab():
    assert InputOptions.from_params("r", {"delimiter": "\\t"}).delimiter == "\t"


def test_the_header_line_may_be_given():
    options = OutputOptions.from_params("r", {"headers": True, "attributeNames": "from\tto"})
    assert header_line([("x", INT), ("y", INT)], options) == "from\tto\n"
    assert InputOptions.from_params("r", {"attributeNames": "from\tto"}).path.name == "r.facts"


@pytest.mark.parametrize("name", ["headers", "header"])
def test_both_spellings_of_header(name):
    assert InputOptions.from_params("r", {name: "true"}).header
    assert not OutputOptions.from_params("r", {name: "false"}).header


def test_the_ending_tells_the_format_only_without_io():
    assert InputOptions.from_params("r", {"filename": "a.parquet"}).format == "parquet"
    assert InputOptions.from_params("r", {"filename": "a.jsonl.gz"}).format == "json"
    assert InputOptions.from_params("r", {"filename": "a.csv"}).delimiter == "\t"
    assert InputOptions.from_params("r", {"filename": "a.json", "IO": "file"}).format == "text"


def test_columns_are_numbers():
    assert InputOptions.from_params("r", {"columns": "0:2:1"}).columns == (0, 2, 1)
    assert InputOptions.from_params("r", {"columns": 3}).columns == (3,)


def test_standard_streams_have_no_path():
    assert InputOptions.from_params("r", {"IO": "stdin"}, "f").path is None
    assert OutputOptions.from_params("r", {"IO": "stdout"}, "f").path is None
    assert OutputOptions.from_params("r", {"filename": "x.csv"}, "-").path is None
    assert OutputOptions.from_params("r", {"IO": "json"}, "-").format == "json"


def test_compress_adds_gz_to_the_default_name_only():
    assert OutputOptions.from_params("r", {"compress": "true"}, "o").path == Path("o/r.csv.gz")
    assert OutputOptions.from_params("r", {"compress": 1, "filename": "x"}, "o").path == Path("o/x")
    assert OutputOptions.from_params("r", {"compress": True, "IO": "parquet"}, "o").path == Path(
        "o/r.parquet"
    )


@pytest.mark.parametrize(
    ("params", "parameter", "help"),
    [
        ({"delimeter": ","}, "delimeter", 'did you mean "delimiter"?'),
        ({"io": "file"}, "io", 'did you mean "IO"?'),
        ({"precision": "full"}, "precision", "known: "),
        ({"IO": "parqet"}, "IO", 'did you mean "parquet"?'),
        ({"IO": "stdout"}, "IO", "known: file, csv"),
        ({"IO": "mysql"}, "IO", "known: "),
        ({"dbname": "a.db"}, "dbname", "write filename"),
        ({"IO": "csv", "dbname": "a.db"}, "dbname", "write filename"),
        ({"IO": "sqlite", "dbname": "s3://a/b"}, "dbname", "its path"),
        ({"IO": "sqlite", "filename": "s3://a/b"}, "filename", "its path"),
        ({"columns": "0,1"}, "columns", 'columns="0:2"'),
        ({"columns": ""}, "columns", None),
        ({"columns": "0:9999999999"}, "columns", None),
        ({"compress": "maybe"}, "compress", None),
        ({"delimiter": ""}, "delimiter", None),
        ({"delimiter": "\n"}, "delimiter", None),
        ({"delimiter": 'a"', "rfc4180": True}, "delimiter", None),
        ({"filename": True}, "filename", None),
        ({"format": "list"}, "format", "IO=json"),
        ({"format": "lost", "IO": "json"}, "format", 'did you mean "list"?'),
    ],
)
def test_wrong_input_parameters_are_named(params, parameter, help):
    with pytest.raises(DataError) as caught:
        InputOptions.from_params("r", params, "f")
    assert caught.value.parameter == parameter
    if help:
        assert help in caught.value.help


def test_wrong_output_parameters_are_named():
    with pytest.raises(ParameterError) as caught:
        OutputOptions.from_params("r", {"columns": "0"})
    assert caught.value.parameter == "columns"
    with pytest.raises(ParameterError) as caught:
        OutputOptions.from_params("r", {"precision": "12"})
    assert "9 or full" in caught.value.message


def test_columns_must_be_as_many_as_the_relation_has(tmp_path):
    (tmp_path / "r.facts").write_text("1\t2\n")
    with pytest.raises(ParameterError, match="names 1 columns, r has 2") as caught:
        read(InputOptions.from_params("r", {"columns": "0"}, tmp_path), [("x", INT), ("y", INT)])
    assert caught.value.parameter == "columns"
