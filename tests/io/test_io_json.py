"""JSON rows: the forms taken, the rows refused, and the bytes written."""

import datetime as dt
import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.errors import DataError
from dlog.io import InputOptions, OutputOptions, json_reader, nullary_table, read, to_arrow, write
from dlog.values import BOOL, DATE, DATETIME, DECIMAL, FLOAT, INT, STRING, UNSIGNED

XS = [("x", INT), ("s", STRING)]


def load(tmp_path, text, columns, /, **params):
    (tmp_path / "r.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    loaded = read(InputOptions.from_params("r", {"IO": "json", **params}, tmp_path), columns)
    loaded.check()
    return loaded


def rows(loaded):
    return list(zip(*(column.to_pylist() for column in loaded.table.columns), strict=True))


def reasons(loaded):
    return [(rejected.line, rejected.reason) for rejected in loaded.rejected]


@pytest.mark.parametrize(
    "text",
    [
        '{"x": 1, "s": "a"}\n{"s": "b", "x": 2}\n',
        '{"x": 1, "s": "a", "more": [1]}\r\n\n{"s": "b", "x": 2.0}',
        '[1, "a"]\n[2, "b"]\n',
        '[[1, "a"], [2, "b"]]',
        '[\n  [1, "a"],\n  [2, "b"]\n]\n',
        '[{"x": 1, "s": "a"}, {"x": 2, "s": "b"}]',
        '{\n "x": 1,\n "s": "a"}\n{"x": 2,\n "s": "b"}\n',
        '{"x": 1, "s": "a"} {"x": 2.0, "s": "b"}\n',
        '\ufeff{"x": 1, "s": "a"}\n[2, "b"]\n',
    ],
)
def test_forms_of_rows(tmp_path, text):
    loaded = load(tmp_path, text, XS)
    assert rows(loaded) == [(1, "a"), (2, "b")]
    assert loaded.rejected == []


@pytest.mark.parametrize("text", ["", "\n\n", "[]", "[\n]\n"])
def test_no_rows(tmp_path, text):
    loaded = load(tmp_path, text, XS)
    assert rows(loaded) == [] and loaded.rejected == []


def test_types_from_json(tmp_path):
    columns = [("u", UNSIGNED), ("f", FLOAT), ("b", BOOL), ("d", DATE), ("t", DATETIME), ("m", DECIMAL)]
    values = '[18446744073709551615, 3, true, "2024-02-29", "2024-02-29T01:02:03", {}]'
    expected = (2**64 - 1, 3.0, True, dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 1, 2, 3))
    for number in ["0.123456", '"0.123456"']:
        loaded = load(tmp_path, values.format(number) + "\n", columns)
        assert rows(loaded) == [(*expected, Decimal("0.123456"))]
    names = [name for name, _ in columns]
    object_text = json.dumps(dict(zip(names, json.loads(values.format(1)), strict=True)))
    assert rows(load(tmp_path, object_text, columns)) == [(*expected, Decimal(1))]


def test_floats_that_are_not_finite(tmp_path):
    loaded = load(tmp_path, '["nan"]\n["-inf"]\n[NaN]\n["x"]\n', [("f", FLOAT)])
    assert repr(rows(loaded)) == "[(nan,), (-inf,), (nan,)]"
    assert reasons(loaded) == [(4, 'f: "x" is a string, float expected')]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"x": null, "s": "a"}', "x: is null, int expected"),
        ('{"x": 1, "s": null}', "s: is null, string expected"),
        ('{"x": 1}', "no column s"),
        ('{"x": 1.5, "s": "a"}', "x: 1.5 has a fraction, int expected"),
        ('{"x": true, "s": "a"}', "x: True is a bool, int expected"),
        ('{"x": "1", "s": "a"}', 'x: "1" is a string, int expected'),
        ('{"x": [1], "s": "a"}', "x: [1] is a list, int expected"),
        (
            '{"x": 9223372036854775808, "s": "a"}',
            "x: 9223372036854775808 is outside the range of int (64 bits)",
        ),
        ('{"x": 1, "s": 5}', "s: 5 is an int, string expected"),
        ('{"x": 1, "s": "\\ud800"}', 's: "?" contains half a surrogate pair, which has no UTF-8 form'),
        ('{"x": 1, "s": "a"', "malformed JSON: Expecting ',' delimiter at column 18"),
        ('{"x": 1 "s": "a"}', "malformed JSON: Expecting ',' delimiter at column 9"),
        ("[1]", "expected 2 columns, found 1"),
        ("7", "a row is an object or an array"),
        (b'{"x": 1, "s": "\xff"}', "is not UTF-8 text"),
    ],
)
@pytest.mark.parametrize("first", ['{"x": 0, "s": "first"}', '[0, "first"]'])
def test_bad_rows_are_refused_with_line_and_reason(tmp_path, line, reason, first):
    raw = line if isinstance(line, bytes) else line.encode()
    text = first.encode() + b"\n\n" + raw + b'\n{"x": 2, "s": "last"}\n'
    loaded = load(tmp_path, text, XS)
    assert rows(loaded) == [(0, "first"), (2, "last")]
    assert reasons(loaded) == [(3, reason)]
    assert loaded.rejected[0].text == raw.decode(errors="replace")


def test_bad_rows_of_an_array_have_their_lines(tmp_path):
    loaded = load(tmp_path, '[\n[1, "a"],\n[2, 3],\n\n{"x": 4}, [5, "b"]\n]', XS)
    assert rows(loaded) == [(1, "a"), (5, "b")]
    assert reasons(loaded) == [(3, "s: 3 is an int, string expected"), (5, "no column s")]


def test_a_broken_array_gives_the_rows_before(tmp_path):
    loaded = load(tmp_path, '[[1, "a"],\n[2, "b"],\n[3, oops', XS)
    assert rows(loaded) == [(1, "a"), (2, "b")]
    assert reasons(loaded) == [(3, "malformed JSON: Expecting value at column 5; nothing after it was read")]


def test_an_array_that_is_not_utf8(tmp_path):
    with pytest.raises(DataError, match="is not UTF-8 text"):
        load(tmp_path, b'[[1, "\xff"]]', XS)


def test_chosen_columns_of_arrays(tmp_path):
    loaded = load(tmp_path, '["a", 0, 1]\n["b"]\n{"x": 1, "s": "c"}\n', XS, columns="2:0")
    assert rows(loaded) == [(1, "a")]
    assert reasons(loaded) == [(2, "expected at least 3 columns, found 1"), (3, "a row is an array")]


def test_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(json_reader, "BLOCK_BYTES", 100)
    text = "".join(f'{{"x": {i}, "s": "a"}}\n' for i in range(50)) + '{"x": 1}\n' + '{"x": 50, "s": "a"}\n'
    seen = []
    (tmp_path / "r.json").write_text(text)
    loaded = read(tmp_path / "r.json", XS, progress=lambda *now: seen.append(now))
    assert rows(loaded) == [(i, "a") for i in range(51)]
    assert reasons(loaded) == [(51, "no column s")]
    assert len(seen) > 3 and seen[-1] == (len(text), len(text))


def test_nullary(tmp_path):
    for text, held in [("", 0), ("{}\n", 1), ("[]\n", 1), ("{}\n{}\n", 1), ("[{}]", 1)]:
        assert load(tmp_path, text, []).table.num_rows == held, text
    options = OutputOptions.from_params("r", {"IO": "json"}, tmp_path)
    write(nullary_table(1), options, [])
    assert options.path.read_bytes() == b"{}\n"


def test_golden_objects_and_arrays(tmp_path):
    columns = [("x", INT), ('s"', STRING), ("f", FLOAT), ("d", DATE), ("m", DECIMAL), ("b", BOOL)]
    data = [(1, 'a"\\\n\x01é', 0.1, dt.date(2024, 1, 2), Decimal("2.50"), True)]
    options = OutputOptions.from_params("r", {"IO": "json"}, tmp_path)
    write(to_arrow(data, columns), options)
    assert options.path.read_text() == (
        '{"x": 1, "s\\"": "a\\"\\\\\\n\\u0001é", "f": 0.1, "d": "2024-01-02", "m": 2.5, "b": true}\n'
    )
    options = OutputOptions.from_params("r", {"IO": "json", "format": "list"}, tmp_path)
    write(to_arrow([(1, float("inf")), (2, float("nan"))], [("x", INT), ("f", FLOAT)]), options)
    assert options.path.read_text() == '[1, "inf"]\n[2, "nan"]\n'


@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"])), min_size=1))
@settings(max_examples=100, deadline=None)
def test_oracle_written_strings_are_json(tmp_path_factory, strings):
    path = tmp_path_factory.mktemp("json") / "r.json"
    write(to_arrow([(s,) for s in strings], [("s", STRING)]), OutputOptions.for_path(path))
    assert [json.loads(line)["s"] for line in path.read_bytes().decode().split("\n")[:-1]] == strings


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "x": st.sampled_from([0, 5, 2.0, 1.5, None, "a", True]),
                "s": st.sampled_from(["a", "", None, 3]),
            },
        ),
        max_size=6,
    )
)
@settings(max_examples=150, deadline=None)
def test_differential_fast_and_careful(objects):
    import pyarrow as pa

    from dlog.io.source import Source

    text = "".join(json.dumps(row) + "\n" for row in objects)
    source, options = Source("f", pa.py_buffer(text.encode())), InputOptions("r", format="json")
    usual = json_reader.read_json(source, options, XS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_reader, "_read_objects", lambda *_: None)
        careful = json_reader.read_json(source, options, XS)
    assert usual == careful
    good = [
        (int(row["x"]), row["s"])
        for row in objects
        if type(row.get("x")) in (int, float) and row["x"] == int(row["x"]) and isinstance(row.get("s"), str)
    ]
    assert rows(usual) == good and usual.rejected_count == len(objects) - len(good)


@pytest.mark.parametrize(("format", "first"), [("list", [1, 'a"']), ("object", {"x": 1, "s": 'a"'})])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_document_is_one_array(tmp_path, format, first, count):
    """`IO=jsonfile` is Soufflé's: the rows in one array, each on a line, as lists unless told otherwise."""
    params = {"IO": "jsonfile"} if format == "list" else {"IO": "jsonfile", "format": format}
    options = OutputOptions.from_params("r", params, tmp_path)
    write(to_arrow([(i, 'a"') for i in range(1, count + 1)], XS), options, XS)
    text = (tmp_path / "r.json").read_text()
    assert [row == first for row in json.loads(text)][:1] == [True][:count]
    assert len(json.loads(text)) == count
    assert text.startswith("[") and text.endswith("]\n") and text.count("\n") == max(count, 1)
    assert rows(read(InputOptions.from_params("r", {"IO": "jsonfile"}, tmp_path), XS)) == [
        (i, 'a"') for i in range(1, count + 1)
    ]


def test_the_bytes_of_a_document(tmp_path):
    options = OutputOptions.from_params("r", {"IO": "jsonfile"}, tmp_path)
    write(to_arrow([(1, "a"), (2, "b")], XS), options, XS)
    assert (tmp_path / "r.json").read_bytes() == b'[[1, "a"],\n[2, "b"]]\n'
