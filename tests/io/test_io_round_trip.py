"""What is written is read back the same: every type in every format."""

import datetime as dt
import math
import tempfile
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.io import InputOptions, OutputOptions, read, to_arrow, write
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

MONEY = decimal(7, 2)
TINY = decimal(18, 18)

anything = st.text(st.characters(blacklist_categories=["Cs"]))
# The unquoted format has no way to hold its own delimiter and line ends.
one_line = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\t\n\r"))

LONGEST = dt.timedelta(106_751_991)


def microseconds(number):
    return dt.timedelta(microseconds=number)


VALUES = {
    INT: st.integers(-(2**63), 2**63 - 1),
    UNSIGNED: st.integers(0, 2**64 - 1),
    FLOAT: st.floats().map(lambda value: value + 0.0),
    STRING: anything,
    BOOL: st.booleans(),
    DATE: st.dates(),
    DATETIME: st.datetimes(),
    TIMESTAMP: st.datetimes(timezones=st.just(dt.UTC)),
    DURATION: st.timedeltas(-LONGEST, LONGEST) | st.integers(-(10**12), 10**12).map(microseconds),
    DECIMAL: st.integers(-(10**18) + 1, 10**18 - 1).map(lambda n: Decimal(n).scaleb(-6)),
    MONEY: st.integers(-(10**7) + 1, 10**7 - 1).map(lambda n: Decimal(n).scaleb(-2)),
    TINY: st.integers(-(10**18) + 1, 10**18 - 1).map(lambda n: Decimal(n).scaleb(-18)),
}

# Parameters for writing, parameters for reading, and which strings the format can hold.
FORMATS = {
    "souffle": ({"precision": "full"}, {}, one_line),
    "souffle with header": ({"precision": "full", "headers": True}, {"headers": True}, one_line),
    "souffle compressed": ({"precision": "full", "compress": True}, {}, one_line),
    "long delimiter": ({"precision": "full", "delimiter": "\t|\t"}, {"delimiter": "\t|\t"}, one_line),
    "csv": ({"IO": "csv", "precision": "full"}, {"IO": "csv"}, anything),
    "json": ({"IO": "json"}, {"IO": "json"}, anything),
    "json arrays": ({"IO": "json", "format": "list", "compress": True}, {"IO": "json"}, anything),
    "parquet": ({"IO": "parquet"}, {"IO": "parquet"}, anything),
    "sqlite": ({"IO": "sqlite"}, {"IO": "sqlite"}, anything),
    "arrow": ({"IO": "arrow", "compress": True}, {"IO": "arrow"}, anything),
}


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_round_trip(name, data):
    writing, reading, strings = FORMATS[name]
    types = data.draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4))
    columns = [(f"c{i}", type) for i, type in enumerate(types)]
    cells = [strings if type == STRING else VALUES[type] for type in types]
    rows = data.draw(st.lists(st.tuples(*cells), max_size=6))
    with tempfile.TemporaryDirectory() as folder:
        output = OutputOptions.from_params("r", writing, folder)
        write(to_arrow(rows, columns), output, columns)
        where = {**reading, "filename": output.path.name}
        loaded = read(InputOptions.from_params("r", where, folder), columns)
    loaded.check()
    assert loaded.rejected == []
    assert loaded.table.schema.types == to_arrow([], columns).schema.types
    back = list(zip(*(column.to_pylist() for column in loaded.table.columns), strict=True))
    assert [shown(row) for row in back] == [shown(row) for row in rows]


def shown(row):
    """Values and their types; NaN is itself."""
    return [("nan",) if isinstance(v, float) and math.isnan(v) else (type(v), v) for v in row]


def test_nine_digits_read_back_as_the_nearest_float_of_32_bits(tmp_path):
    import numpy as np

    singles = np.random.default_rng(7).standard_normal(1000).astype(np.float32)
    options = OutputOptions.from_params("r", {}, tmp_path)
    write(to_arrow(singles.astype(np.float64), [("f", FLOAT)]), options)
    back = read(options.path, [("f", FLOAT)]).table.column(0).to_numpy()
    assert (back.astype(np.float32) == singles).all()


def test_edges_of_time(tmp_path):
    rows = [(dt.date.min, dt.datetime.min), (dt.date.max, dt.datetime.max)]
    columns = [("d", DATE), ("t", DATETIME)]
    for kind in ["file", "json", "parquet", "arrow"]:
        options = OutputOptions.from_params("r", {"IO": kind}, tmp_path)
        write(to_arrow(rows, columns), options, columns)
        loaded = read(
            InputOptions.from_params("r", {"IO": kind, "filename": options.path.name}, tmp_path), columns
        )
        assert [tuple(row.values()) for row in loaded.table.to_pylist()] == rows
