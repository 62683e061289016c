"""The fast and the careful reader of text, and a plain Python one, must judge every text alike."""

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.io import InputOptions, csv_reader, text_cells
from dlog.io.csv_reader import read_text
from dlog.io.csv_splitter import rows_of
from dlog.io.source import Source
from dlog.io.text_cells import convert
from dlog.values import BOOL, DATE, DATETIME, DECIMAL, FLOAT, INT, STRING, UNSIGNED
from tests.examples import relaxed

CELLS = {
    INT: ["0", "-5", "12", " 3", "4 ", "0x1F", "0b1", "+6", "", "x", "9" * 19, "9" * 18, "-", "1.0", "\x0b1"],
    UNSIGNED: ["0", "5", "-1", "0xff", "18446744073709551615", "18446744073709551616", "+1", ""],
    FLOAT: [
        "1",
        "1.5",
        "-2e3",
        ".5",
        "5.",
        "nan",
        "NAN(a1)",
        "-inf",
        "1e400",
        "1e-400",
        "+1",
        "",
        "1.5f",
        " 1",
    ],
    BOOL: ["true", "False", "TRUE", "0", "1", "t", "", " true", "tRue"],
    DATE: ["2024-02-29", "2023-02-29", " 2024-01-01 ", "0000-01-01", "2024-1-1", "", "9999-12-31"],
    DATETIME: ["2024-01-01", "2024-01-01 01:02", "2024-01-01T01:02:03.123", "2024-01-01T01:02:03Z", "x", ""],
    DECIMAL: [
        "1",
        "1.5",
        "-.5",
        "1e3",
        "1.0000000",
        "1.0000001",
        "123456789012.5",
        "1234567890123",
        "+2",
        "",
    ],
    STRING: ["", "a", " b ", '"q"', "ä", "a\rb", "a,b", '"x', "\r", 'y""z'],
}


def typed_columns(draw):
    types = draw(st.lists(st.sampled_from(list(CELLS)), min_size=1, max_size=3))
    return [(f"c{i}", type) for i, type in enumerate(types)]


@st.composite
def texts(draw):
    """Columns and a text whose lines mostly have that many cells, mostly of the right types."""
    columns = typed_columns(draw)
    lines = []
    for _ in range(draw(st.integers(0, 8))):
        cells = [draw(st.sampled_from(CELLS[type])) for _, type in columns]
        if draw(st.integers(0, 9)) == 0:
            cells = cells + ["z"] if draw(st.booleans()) else cells[1:]
        lines.append(cells)
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return columns, lines, end, draw(st.booleans())


def judged(text, columns, **options):
    source = Source("f", pa.py_buffer(text.encode()))
    loaded = read_text(source, InputOptions("r", **options), columns)
    loaded.check()
    values = [column.to_pylist() for column in loaded.table.columns]
    return repr(values), [(r.line, r.reason, r.text) for r in loaded.rejected], loaded.rejected_count


def checked_rows(*arguments):
    rows = rows_of(*arguments)
    rows.check()
    return rows


def checked_cells(cells, type):
    column, misfits = convert(cells, type)
    misfits.check()
    return column, misfits


def four_ways(text, columns, monkeypatch_context, **options):
    usual = judged(text, columns, **options)
    with monkeypatch_context() as patch:
        patch.setattr(csv_reader, "_SMALL", 3)
        patch.setattr(csv_reader, "_PIECES", 2)
        in_pieces = judged(text, columns, **options)
        patch.setattr(csv_reader, "BLOCK_BYTES", 20)
        in_blocks = judged(text, columns, **options)
        patch.setattr(csv_reader, "_read_fast", lambda *_: None)
        patch.setattr(csv_reader, "rows_of", checked_rows)
        patch.setattr(text_cells, "convert", checked_cells)
        carefully = judged(text, columns, **options)
    assert usual == carefully
    assert usual == in_pieces
    assert usual == in_blocks
    return usual


@given(texts())
@relaxed(120)
def test_differential_plain_text(case):

    columns, lines, end, ended = case
    text = end.join("\t".join(cells) for cells in lines) + (end if ended and lines else "")
    _, _, rejected = four_ways(text, columns, pytest.MonkeyPatch.context, delimiter="\t")
    strings = [type == STRING for _, type in columns]
    if all(strings):
        assert rejected == sum(len(cells) != len(columns) for cells in model_rows(text, len(columns)))


def model_rows(text, width):
    """Lines split at newlines, one carriage return before it dropped, blank ones dropped unless width 1."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    lines = [line.removesuffix("\r") for line in lines]
    return [line.split("\t") for line in lines if line or width == 1]


@given(st.text("ab\t\n\r\"'ä", max_size=40))
@relaxed(120)
def test_oracle_plain_strings(text):
    columns = [("a", STRING), ("b", STRING)]

    values, _, _ = four_ways(text, columns, pytest.MonkeyPatch.context, delimiter="\t")
    expected = [row for row in model_rows(text, 2) if len(row) == 2]
    assert values == repr([[row[i] for row in expected] for i in range(2)])


@given(texts())
@relaxed(90)
def test_differential_quoted_text(case):
    """Cells are quoted or not at random, quotes in them left single at random."""

    columns, lines, end, ended = case
    text = end.join(",".join(cells) for cells in lines) + (end if ended and lines else "")
    four_ways(text, columns, pytest.MonkeyPatch.context, delimiter=",", quoted=True)


@given(st.text('ab,\n\r"', max_size=40))
@relaxed(300)
def test_oracle_quoted_strings(text):

    columns = [("a", STRING), ("b", STRING)]
    values, _, _ = four_ways(text, columns, pytest.MonkeyPatch.context, delimiter=",", quoted=True)
    expected = [row for row in model_quoted_rows(text) if row is not None and len(row) == 2]
    assert values == repr([[row[i] for row in expected] for i in range(2)])


def model_quoted_rows(text):
    """Records by the grammar; a broken one (None) ends with its first line."""
    position = 0
    while position < len(text):
        start, cells = position, []
        while True:
            quoted = text[position : position + 1] == '"'
            match = re.compile(r'"((?:[^"]|"")*)"(?!")' if quoted else r"()([^,\n]*)").match(text, position)
            after = text[match.end() :] if match else None
            if match is None or (quoted and not re.match(r",|\r?\n|\r?\Z", after)):
                cells, position = None, (text + "\n").index("\n", start) + 1
                break
            cells.append(match[1].replace('""', '"') if quoted else match[2])
            position = match.end()
            if text[position : position + 1] == ",":
                position += 1
                continue
            if not quoted:
                cells[-1] = cells[-1].removesuffix("\r")
            position += len(re.match(r"\r?\n|\r?\Z", text[position:])[0])
            break
        if text[start:position] not in ("\n", "\r\n", "\r"):
            yield cells
