"""The table of records: equal values have one code, whatever comes and goes, and come back unchanged."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.durable.checkpoint import values_of
from dlog.durable.records import read_values, values_parts
from dlog.durable.replay import restore_texts, restore_values
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.values import decode, encode
from dlog.values import Branch, RecordType, Type
from dlog.values.misfit import Misfit
from dlog.values.record_text import jsonable, order_key, plain_text, read, text_of, value_of
from tests.examples import relaxed

PROGRAM = dlog.check(
    """
    .type List = [head: number, tail: List]
    .type Mixed = Empty {} | Leaf {s: symbol, f: float, u: unsigned, b: bool}
        | Node {l: Mixed, p: List, r: Mixed}
    .type Nothing = []
    .type Day = [d: Date, n: Nothing]
    .type Date = [text: symbol]
    .decl p(l: List, m: Mixed, n: Nothing, d: Day)
    """
)
LIST, MIXED, NOTHING, DAY = (column.type for column in PROGRAM.predicates["p"].columns)

lists = st.recursive(st.none(), lambda inner: st.tuples(st.integers(-3, 3), inner), max_leaves=6)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4) | st.sampled_from(
    ['"', "a, b", ")]", ""]
)
leaves = st.builds(
    lambda *fields: Branch("Leaf", fields),
    texts,
    st.floats(allow_nan=False).map(lambda x: x + 0.0),
    st.integers(0, 2**64 - 1),
    st.booleans(),
)
mixed = st.recursive(
    st.just(Branch("Empty")) | leaves,
    lambda inner: st.builds(lambda *fields: Branch("Node", fields), inner, lists, inner),
    max_leaves=6,
)
days = st.none() | st.tuples(st.none() | st.tuples(texts), st.sampled_from([None, ()]))
CASES: list[tuple[Type, st.SearchStrategy[object]]] = [(LIST, lists), (MIXED, mixed), (DAY, days)]
anything = st.one_of(*(st.tuples(st.just(type), values) for type, values in CASES))


def same(a: object, b: object) -> bool:
    return repr(a) == repr(b)


@relaxed(200)
@given(st.lists(anything, max_size=12))
def test_oracle_codes_are_those_of_values(drawn: list[tuple[RecordType, object]]) -> None:
    dictionary = Dictionary()
    known: dict[tuple[str, str], int] = {}
    for type, value in drawn:
        code = int(encode([value], type, dictionary)[0])
        assert known.setdefault((type.name, repr(value)), code) == code
        assert sum(c == code for (name, _), c in known.items() if name == type.name) == 1
    for type, value in drawn:
        column = decode(np.array([known[type.name, repr(value)]]), type, dictionary)
        assert column.to_pylist() == [text_of(value, type)]
        assert same(type.python_values(column)[0], value)
    dictionary.records.check()


@relaxed(200)
@given(anything)
def test_texts_are_read_again(drawn: tuple[RecordType, object]) -> None:
    type, value = drawn
    assert same(read(text_of(value, type), type), value)
    assert same(read(text_of(value, type), type, strict=True), value)
    assert same(value_of(value, type), value)
    import json

    assert same(value_of(json.loads(jsonable(value, type)), type), value)


@relaxed(100)
@given(st.lists(mixed, max_size=10))
def test_oracle_order(values: list[object]) -> None:
    dictionary = Dictionary()
    codes = encode(values, MIXED, dictionary)
    assert isinstance(MIXED, RecordType)
    ranks = dictionary.records.ranks(codes, MIXED, dictionary) if len(codes) else codes
    by_rank = [values[i] for i in np.argsort(ranks, kind="stable")]
    assert [order_key(v, MIXED) for v in by_rank] == sorted(order_key(v, MIXED) for v in values)


@relaxed(100)
@given(st.lists(mixed, min_size=1, max_size=12), st.data())
def test_collected_records_are_gone_and_others_stay(values: list[object], data: st.DataObject) -> None:
    dictionary = Dictionary()
    table = dictionary.records
    codes = encode(values, MIXED, dictionary)
    kept = data.draw(st.lists(st.sampled_from(range(len(values)))))
    table.keep([codes[kept]])
    table.check()
    assert len(table) == size_of([values[i] for i in kept])
    column = decode(codes[kept], MIXED, dictionary)
    assert all(same(a, values[i]) for a, i in zip(MIXED.python_values(column), kept, strict=True))
    again = encode(values, MIXED, dictionary)
    assert (again[kept] == codes[kept]).all()
    table.check()
    assert len(table) == size_of(values)
    table.keep([])
    assert len(table) == 0


def size_of(values: list[object]) -> int:
    """Distinct values with fields, at any depth."""
    found: set[tuple[str, str]] = set()
    todo = [("Mixed", v) for v in values]
    while todo:
        type, value = todo.pop()
        fields = value.fields if isinstance(value, Branch) else value
        if not fields:
            continue
        found.add((type, repr(value)))
        if type == "List":
            todo.append(("List", fields[1]))
        elif value.name == "Node":
            todo += [("Mixed", fields[0]), ("List", fields[1]), ("Mixed", fields[2])]
    return len(found)


def test_pages_that_are_not_begun_have_no_block() -> None:
    dictionary = Dictionary()
    table = dictionary.records
    pair = table.shape(0, (0, 0))
    for size in (1020, 2, 1, 1, 5, 1030):  # up to the end of a page, and over it
        numbers = np.arange(table.numbers, table.numbers + size)
        codes = table.store(pair, [numbers, numbers])
        known = table.store(pair, [np.zeros(2000, np.int64), np.zeros(2000, np.int64)])
        table.keep([codes, known])
        table.check()
        assert (table.store(pair, [numbers, numbers]) == codes).all()
        assert (table.field(codes, 0, 1)[0] == numbers).all()


def test_pages_of_records_that_are_gone_take_no_memory() -> None:
    dictionary = Dictionary()
    table = dictionary.records
    pair = table.shape(0, (0, 0))
    kept = table.store(pair, [np.arange(5), np.arange(5)])
    table.keep([kept])
    before = table.memory
    for start in range(0, 200_000, 20_000):
        numbers = np.arange(start, start + 20_000)
        table.store(pair, [numbers, numbers + 1])
        table.keep([kept])
        table.check()
    assert table.numbers == 200_005
    assert table.memory < before + 200_000 // 1024 * 8 + 4096 * 8


@relaxed(60)
@given(st.lists(mixed, max_size=8), st.lists(mixed, max_size=8), st.data())
def test_restored_records_have_their_numbers(
    first: list[object], second: list[object], data: st.DataObject
) -> None:
    """As a checkpoint and a log would: two sections, with a collection between them."""
    dictionary = Dictionary()
    table = dictionary.records
    codes = encode(first, MIXED, dictionary) if first else np.empty(0, np.int64)
    kept = data.draw(st.lists(st.sampled_from(range(len(first))))) if first else []
    table.keep([codes[kept]])
    n = table.numbers
    sections = [values_of(dictionary, 0, n)]
    later = encode(second, MIXED, dictionary) if second else np.empty(0, np.int64)
    sections.append(values_of(dictionary, n, table.numbers))
    sections = [read_values(memoryview(b"".join(values_parts(values)))) for values in sections]
    other = Dictionary()
    other.encode(dictionary.texts())
    other.records.shape(7, (0,))  # shapes have other numbers there
    restore_texts(other, [])
    restore_values(other, sections)
    other.records.check()
    assert len(other.records) == len(table) and other.records.numbers == table.numbers
    for wanted, values in ((codes[kept], [first[i] for i in kept]), (later, second)):
        column = decode(wanted, MIXED, other)
        assert all(same(a, b) for a, b in zip(MIXED.python_values(column), values, strict=True))
        assert (encode(values, MIXED, other) == wanted).all() if values else True


def test_long_lists_need_no_recursion() -> None:
    dictionary = Dictionary()
    value = None
    for number in range(50_000):
        value = (number, value)
    code = encode([value], LIST, dictionary)
    text = decode(code, LIST, dictionary)[0].as_py()
    assert text.startswith("[49999, [49998, ") and len(dictionary.records) == 50_000
    assert isinstance(LIST, RecordType)
    again = encode(pa.array([text]), LIST, dictionary)
    assert again[0] == code[0]
    dictionary.records.keep([code])
    assert len(dictionary.records) == 50_000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[1]", "`,` expected"),
        ("[1, 2]", "is not a List"),
        ("[1, nil] x", "follows the value"),
        ("[1, nil", "`]` expected"),
        ("[a, nil]", "is not an int"),
        ("", "is not a List"),
        ("$Empty", "is not a List"),
    ],
)
def test_bad_texts(text: str, reason: str) -> None:
    assert isinstance(LIST, RecordType)
    with pytest.raises(Misfit, match=reason):
        read(text, LIST)


def test_strings_need_no_quotes_in_files() -> None:
    assert isinstance(MIXED, RecordType) and isinstance(DAY, RecordType)
    assert read("[[a b], nil]", DAY) == (("a b",), None)
    assert read('[["a, b"], []]', DAY) == (("a, b",), ())
    assert plain_text('[["a, b"], []]') == "[[a, b], []]"
    assert read("$Leaf(x, 1.5, 3, true)", MIXED) == Branch("Leaf", ("x", 1.5, 3, True))
