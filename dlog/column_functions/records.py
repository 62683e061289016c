"""Owns making records from columns of fields, and taking them apart.  Which record is which the dictionary's
table knows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.column_functions.columns import Column, Dictionary, Result, unless_all
from dlog.ir.record_forms import branch_of, field_of
from dlog.values import RecordType, Type


def compute(name: str, inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    """A constructor, or a field of its records."""
    found = field_of(name)
    if found is not None:
        return _field(inputs[0], *found, output, dictionary)
    assert isinstance(output, RecordType)
    number = output.numbers[branch_of(name)]
    shape = dictionary.records.shape(number, output.constructors[number].kinds)
    return Column(dictionary.records.store(shape, [c.codes for c in inputs]), output), None


def _field(record: Column, branch: str, index: int, output: Type, dictionary: Dictionary) -> Result:
    type = record.type
    assert isinstance(type, RecordType)
    codes, defined = dictionary.records.field(record.codes, type.numbers[branch], index)
    return Column(codes, output), unless_all(np.asarray(defined))
