"""Owns functions and relations of strings.  Knows nothing of numbers.

A function of one column, or of one column and constants, runs in Arrow once for each distinct text.  Where
several columns vary, kernels go over the dictionary's bytes; only `replace` and `split` by a varying text,
and patterns that RE2 does not support, are left to Python's own functions, 0.1 to 0.3 microseconds a row.  In
an Arrow result, null is undefined.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dlog.column_functions.columns import (
    Column,
    Dictionary,
    Mask,
    Result,
    at_places,
    row_texts,
    text_result,
    texts_of,
    unless_all,
)
from dlog.column_functions.text_kernels import (
    CONTAINS,
    ENDS,
    STARTS,
    copy_slices,
    parts_hold,
    slice_ends,
)
from dlog.ir.primitives import NEGATED_MATCH
from dlog.jit import Words
from dlog.values import INT, STRING, Type
from dlog.values.heavy import pc

_SPACES = "".join(c for c in map(chr, range(0x3001)) if c.isspace())  # there is none beyond
_LONGEST = 2**31  # characters

# ---- functions of one text


def of_texts(function: Callable[[pa.Array], pa.Array]) -> Callable[..., Result]:
    """A function from texts to texts, called once with all distinct ones."""

    def calculate(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
        texts, places = texts_of(inputs[0], dictionary)
        return text_result(function(texts), places, dictionary)

    return calculate


def lower(texts: pa.Array) -> pa.Array:
    return _ascii_or(texts, pc.ascii_lower, str.lower)


def upper(texts: pa.Array) -> pa.Array:
    return _ascii_or(texts, pc.ascii_upper, str.upper)


def _ascii_or(texts: pa.Array, simple: Callable[..., pa.Array], full: Callable[[str], str]) -> pa.Array:
    """Arrow maps one character to one; some letters need two, which Python handles."""
    if pc.all(pc.string_is_ascii(texts), min_count=0).as_py():
        return simple(texts)
    return pa.array(list(map(full, texts.to_pylist())), pa.string())


def trim(texts: pa.Array) -> pa.Array:
    return pc.utf8_trim(texts, _SPACES)


def length(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    texts, places = texts_of(inputs[0], dictionary)
    lengths = pc.utf8_length(texts).to_numpy(zero_copy_only=False).astype(np.int64)
    return at_places(lengths, np.ones(len(lengths), np.bool_), INT, places)


def code(inputs: Sequence[Column], output: Type, _: Dictionary) -> Result:
    """`ord`: the number of a text in the dictionary."""
    return Column(inputs[0].codes, INT), None


# ---- functions of several columns


def cat(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    """Of any number of columns."""
    return Column(dictionary.encode_joined([c.codes for c in inputs]), STRING), None


def _encoded(data: Any, ends: Words, dictionary: Dictionary) -> Words:
    """Codes of texts stored one after the other."""
    buffers = (pa.py_buffer(ends), pa.py_buffer(data))
    return dictionary.encode(pa.LargeStringArray.from_buffers(len(ends) - 1, *buffers))


def substr(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    """Characters start .. start + count - 1, as Soufflé has them: a start outside of the text gives "", and a
    negative count what is left."""
    texts, places = texts_of(inputs[0], dictionary)
    starts, counts = inputs[1].codes, inputs[2].codes
    start, count = _constant(starts), _constant(counts)
    if start is not None and count is not None and min(start, count) >= 0:
        pieces = pc.utf8_slice_codeunits(texts, start, min(start, _LONGEST) + min(count, _LONGEST))
        return text_result(pieces, places, dictionary)
    lengths = pc.utf8_length(texts).to_numpy(zero_copy_only=False)[places]
    inside = (starts >= 0) & (starts <= lengths)
    wanted = np.where(counts < 0, lengths, counts)
    return _slices(
        inputs[0].codes, np.where(inside, starts, 0), np.where(inside, wanted, 0), dictionary
    ), None


def _slices(codes: Words, firsts: Words, counts: Words, dictionary: Dictionary) -> Column:
    text, ends = dictionary.buffers()
    begins, out_ends = np.empty(len(codes), np.int64), np.empty(len(codes) + 1, np.int64)
    slice_ends(text, ends, codes, firsts, counts, begins, out_ends)
    out = np.empty(int(out_ends[-1]), np.uint8)
    copy_slices(text, begins, out_ends, out)
    return Column(_encoded(out, out_ends, dictionary), STRING)


def replace(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    """All occurrences of a text that is not empty."""
    old, new = (_constant(c.codes) for c in inputs[1:])
    if old is not None and new is not None:
        (pattern,), (replacement,) = (row_texts(_first(c), dictionary).to_pylist() for c in inputs[1:])
        if not pattern:  # Arrow would loop forever
            return inputs[0], None
        texts, places = texts_of(inputs[0], dictionary)
        replaced = pc.replace_substring(texts, pattern=pattern, replacement=replacement)
        return text_result(replaced, places, dictionary)
    rows = zip(*(row_texts(c, dictionary).to_pylist() for c in inputs), strict=True)
    replaced = pa.array([s.replace(old, new) if old else s for s, old, new in rows], pa.string())
    return text_result(replaced, None, dictionary)


# ---- parts


def part(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    """The i-th part, from 0."""
    lists, places = _split(inputs, dictionary)
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)[places]
    numbers = inputs[2].codes
    defined = (numbers >= 0) & (numbers < sizes)
    starts = lists.offsets.to_numpy()[:-1][places].astype(np.int64)
    rows = np.flatnonzero(defined)
    found, found_places = _distinct_parts(lists, starts[rows] + numbers[rows])
    codes = np.zeros(len(numbers), np.int64)
    codes[rows] = text_result(found, found_places, dictionary)[0].codes
    return Column(codes, STRING), unless_all(defined)


def parts(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> tuple[Words, Column]:
    """The different parts of each row's text: the rows they come from, rising, and the parts."""
    lists, places = _split(inputs, dictionary)
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    sizes = sizes[places]
    starts = lists.offsets.to_numpy()[:-1].astype(np.int64)[places]
    rows = np.repeat(np.arange(len(places)), sizes)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    found, found_places = _distinct_parts(lists, np.repeat(starts, sizes) + within)
    column, _ = text_result(found, found_places, dictionary)
    kept = np.sort(_first_of_kind(rows, column.codes))
    return rows[kept], Column(column.codes[kept], output)


def _first_of_kind(rows: Words, codes: Words) -> Words:
    """Numbers of the pairs that are the first of their kind.  O(n log n)."""
    order = np.lexsort((codes, rows))
    fresh = np.ones(len(order), bool)
    fresh[1:] = (rows[order][1:] != rows[order][:-1]) | (codes[order][1:] != codes[order][:-1])
    return order[fresh]


def _split(inputs: Sequence[Column], dictionary: Dictionary) -> tuple[pa.ListArray, Words]:
    """Lists of parts, and the place of each row's list; null for an empty separator."""
    separators = inputs[1].codes
    if len(separators) == 0:
        return pa.array([], pa.list_(pa.string())), separators
    if _constant(separators) is not None:
        (separator,) = row_texts(_first(inputs[1]), dictionary).to_pylist()
        texts, places = texts_of(inputs[0], dictionary)
        if separator:
            return pc.split_pattern(texts, pattern=separator), places
        return pa.nulls(len(texts), pa.list_(pa.string())), places
    rows = zip(*(row_texts(c, dictionary).to_pylist() for c in inputs[:2]), strict=True)
    lists = [text.split(separator) if separator else None for text, separator in rows]
    return pa.array(lists, pa.list_(pa.string())), np.arange(len(lists))


def _distinct_parts(lists: pa.ListArray, numbers: Words) -> tuple[pa.Array, Words]:
    """The distinct texts among the parts with these numbers, and the place of each."""
    encoded = lists.values.take(pa.array(numbers)).dictionary_encode()
    return encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


# ---- relations: the first argument is what to search for


def relation(
    constant: Callable[[pa.Array, str], pa.Array], varying: Callable[[Column, Column, Dictionary], Mask]
) -> Callable[..., Mask]:
    """A relation of a part or pattern and a text."""

    def calculate(inputs: Sequence[Column], dictionary: Dictionary) -> Mask:
        part, text = inputs
        if len(text) == 0:
            return np.zeros(0, np.bool_)
        if _constant(part.codes) is not None:
            (sought,) = row_texts(_first(part), dictionary).to_pylist()
            texts, places = texts_of(text, dictionary)
            return constant(texts, sought).to_numpy(zero_copy_only=False).astype(np.bool_)[places]
        return varying(part, text, dictionary)

    return calculate


def _held(kind: int) -> Callable[[Column, Column, Dictionary], Mask]:
    """Search for parts in texts, row by row."""

    def calculate(parts: Column, rows: Column, dictionary: Dictionary) -> Mask:
        text, ends = dictionary.buffers()
        out = np.empty(len(rows), np.int64)
        parts_hold(text, ends, parts.codes, rows.codes, kind, out)
        return out != 0

    return calculate


def _matcher(if_bad: bool) -> Callable[..., Mask]:
    """`match`; for a bad pattern the result is `if_bad`."""

    def match_one(texts: pa.Array, pattern: str) -> pa.Array:
        """Whole texts, by RE2, which is linear; what only Python supports (look-ahead, \\1), by Python."""
        if _is_linear(pattern):
            return pc.match_substring_regex(texts, rf"\A(?:{pattern})\z")
        compiled = _compiled(pattern)
        if compiled is None:
            return pa.array([if_bad] * len(texts), pa.bool_())
        return pa.array([compiled.fullmatch(text) is not None for text in texts.to_pylist()], pa.bool_())

    def match_many(patterns: Column, texts: Column, dictionary: Dictionary) -> Mask:
        """Each distinct pattern once, on the rows that have it."""
        distinct, numbers = texts_of(patterns, dictionary)
        order = np.argsort(numbers, kind="stable")
        bounds = np.searchsorted(numbers[order], np.arange(len(distinct) + 1))
        rows, result = row_texts(texts, dictionary), np.zeros(len(texts), np.bool_)
        for number, pattern in enumerate(distinct.to_pylist()):
            chosen = order[bounds[number] : bounds[number + 1]]
            result[chosen] = match_one(rows.take(pa.array(chosen)), pattern).to_numpy(zero_copy_only=False)
        return result

    return relation(match_one, match_many)


def bad_patterns(inputs: Sequence[Column], dictionary: Dictionary) -> int:
    """In how many rows the pattern of `match` is none.  O(distinct patterns)."""
    distinct, numbers = texts_of(inputs[0], dictionary)
    is_bad = [not _is_linear(pattern) and _compiled(pattern) is None for pattern in distinct.to_pylist()]
    return int(np.count_nonzero(np.array(is_bad, np.bool_)[numbers]))


def _is_linear(pattern: str) -> bool:
    """Whether RE2 accepts a pattern.  It is asked alone: "a)(b" must not match inside another group."""
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid:
        return False
    return True


def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern, re.ASCII)
    except (re.error, RecursionError, OverflowError):
        return None


def _constant(codes: Words) -> int | None:
    """The one value of a column, if it has only one."""
    return int(codes[0]) if len(codes) and (codes == codes[0]).all() else None


def _first(column: Column) -> Column:
    return Column(column.codes[:1], column.type)


FUNCTIONS: dict[tuple[str, int], Callable[..., Result]] = {
    ("lower", 1): of_texts(lower),
    ("upper", 1): of_texts(upper),
    ("trim", 1): of_texts(trim),
    ("strlen", 1): length,
    ("ord", 1): code,
    ("substr", 3): substr,
    ("replace", 3): replace,
    ("split", 3): part,
}

RELATIONS: dict[str, Callable[..., Mask]] = {
    "contains": relation(lambda texts, part: pc.match_substring(texts, part), _held(CONTAINS)),
    "starts_with": relation(lambda texts, part: pc.starts_with(texts, part), _held(STARTS)),
    "ends_with": relation(lambda texts, part: pc.ends_with(texts, part), _held(ENDS)),
    "match": _matcher(if_bad=False),
    NEGATED_MATCH: _matcher(if_bad=True),
}

# In how many rows a relation is undefined.
UNDEFINED: dict[str, Callable[..., int]] = {"match": bad_patterns, NEGATED_MATCH: bad_patterns}
