"""Owns making rows of a head from a body's bindings: projection, literals, rounding, aggregation.

Architecture's `heads/` layer keeps derived predicates up to date; this module makes their rows in the first
place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dlog import column_functions
from dlog.aggregates import aggregate_named
from dlog.aggregates.aggregate import ADDED, IGNORED, MULTIPLIED
from dlog.aggregates.count import COUNT
from dlog.engine.body.bodies import BodyRunner
from dlog.engine.body.decomposed import WEIGHT
from dlog.engine.body.table import Table
from dlog.engine.head.groups import aggregate
from dlog.engine.head.power_sums import SumOverflow
from dlog.engine.state.store import Store
from dlog.errors import DataError, FunctionError
from dlog.ir.analysis.projection import stored_as
from dlog.ir.rules import Aggregate, Atom, Const, Form, Rule, Var, concat_keys
from dlog.planning.pipeline import Join, Pipeline
from dlog.planning.versions import declared_name
from dlog.storage.values import decode_value
from dlog.values import INT, Type


def head_variables(rule: Rule) -> tuple[str, ...]:
    """Variables that a plain rule's heads use, in the order of the first head's arguments."""
    return tuple(dict.fromkeys(a.name for h in rule.heads for a in h.args if isinstance(a, Var)))


def body_outputs(rule: Rule) -> tuple[str, ...]:
    """Variables that a rule needs from its body: its heads', or its groups and aggregates' arguments."""
    if not rule.aggregates:
        return head_variables(rule)
    names = [v.name for v in rule.groups]
    names += [a.argument.name for a in rule.aggregates if isinstance(a.argument, Var)]
    if any(a.function.in_order for a in rule.aggregates):
        names += concat_keys(rule)
    return tuple(dict.fromkeys(names))


def head_rows(store: Store, head: Atom, table: Table, rule: Rule) -> np.ndarray:
    """Rows of codes for one head, in the predicate's column order; not yet distinct."""
    if rule.aggregates:
        table = _with_values(head, table)
    columns = store.predicates[declared_name(head.predicate)].columns
    names = [a.name if isinstance(a, Var) else "" for a in head.args]
    base = _shared_base(table, names)
    if base is not None and all(stored_as(rule, a, c.type) for a, c in zip(head.args, columns, strict=True)):
        return base
    out = np.empty((len(head.args), table.n), np.int64)
    for index, (operand, column) in enumerate(zip(head.args, columns, strict=True)):
        if isinstance(operand, Const):
            code = store.encode(operand, column.type)
            if code is None:
                raise _unfit(head, rule, column.type, str(operand))
            out[index] = code
        else:
            out[index] = _codes(store, table, operand.name, rule, column.type, head)
    return out.T


def copied_rows(store: Store, head: Atom, forms: tuple[Form, ...], rule: Rule) -> np.ndarray | None:
    """Like `head_rows`, for a body that is one atom whose columns the head copies; None when it is not.

    It needs no plan and no join: small recursions begin with such a rule.  O(rows).
    """
    if rule.aggregates or len(forms) != 1 or not isinstance(forms[0], Atom):
        return None
    atom = forms[0]
    places = {a.name: place for place, a in enumerate(atom.args) if isinstance(a, Var)}
    columns = store.column_types(head.predicate)
    given = store.column_types(atom.predicate)
    taken = [places.get(a.name, -1) if isinstance(a, Var) else -1 for a in head.args]
    if len(places) < len(atom.args) or not taken or -1 in taken or atom.predicate not in store.relations:
        return None
    same = all(given[place] == rule.types[name] for name, place in places.items())
    if not same or not all(stored_as(rule, a, type) for a, type in zip(head.args, columns, strict=True)):
        return None
    rows = store.relations[atom.predicate].rows()
    return rows if taken == list(range(rows.shape[1])) else rows[:, taken]


def _shared_base(table: Table, names: list[str]) -> np.ndarray | None:
    """The join's own output array, when the head's columns are exactly its columns."""
    values = list(table.columns.values())
    if not names or list(table.columns) != names or not all(isinstance(v, np.ndarray) for v in values):
        return None
    base = values[0].base
    if not isinstance(base, np.ndarray) or base.shape != (len(names), table.n) or base.dtype != np.int64:
        return None
    # Other columns, such as the row number, may be in an array of the same shape.
    in_place = all(v.base is base and _address(v) == _address(base[i]) for i, v in enumerate(values))
    return base.T if in_place else None


def _address(values: np.ndarray) -> int:
    return int(values.__array_interface__["data"][0])


def fits(store: Store, atom: Atom) -> bool:
    """Whether the columns of a predicate can hold the literals of an atom."""
    types = store.column_types(atom.predicate)
    return all(
        not isinstance(a, Const) or store.encode(a, type) is not None
        for a, type in zip(atom.args, types, strict=True)
    )


def is_stored(store: Store, rule: Rule, head: Atom, columns: int | None = None) -> bool:
    """Whether a body's codes go into the head's (first) columns unchanged, without rounding."""
    types = store.column_types(head.predicate)
    pairs = list(zip(head.args, types, strict=True))[:columns]
    return all(isinstance(a, Const) or stored_as(rule, a, type) for a, type in pairs)


def _codes(store: Store, table: Table, name: str, rule: Rule, column: Type, head: Atom) -> np.ndarray:
    values, type = table.columns[name], rule.types[name]
    if not column.is_decimal:
        return values
    if not table.is_wide(name):
        if type.scale == column.scale:
            return values
        values = column_functions.widen(values, type).values
    codes, fits = column_functions.narrow(
        column_functions.Column(values, Type("decimal", type.scale, 38)), column
    )
    if not fits.all():
        row = int(np.flatnonzero(~fits)[0])
        raise _unfit(head, rule, column, str(values[row]))
    return codes


def _unfit(head: Atom, rule: Rule, type: Type, shown: str) -> DataError:
    return DataError(f"a value of {head.predicate} does not fit {type}: {shown}", span=rule.span)


# Aggregation


def aggregate_rule(runner: BodyRunner, rule: Rule, pipeline: Pipeline) -> Table:
    """One row per group, with a column for each group key and each result."""
    join = pipeline.operations[0]
    if only_counts(rule) and len(pipeline.operations) == 1 and isinstance(join, Join):
        n = runner.count(join)
        results = {a.result.name: np.full(min(n, 1), n, np.int64) for a in rule.aggregates}
        return Table(min(n, 1), results)
    return aggregate_table(runner, rule, runner.run(pipeline, weighted=takes_weights(rule)))


def aggregate_table(runner: BodyRunner, rule: Rule, table: Table) -> Table:
    """The same, from the assignments of the body."""
    table, weights = weigh(rule, table)
    groups, texts = group_codes(rule, table)
    arguments = [_weighted(a.op, argument_column(runner, a, table), weights) for a in rule.aggregates]
    try:
        keys, results_columns = aggregate(
            groups, table.n, arguments, runner.store.dictionary, _concat_order(runner, rule, table)
        )
    except SumOverflow as error:
        raise sum_overflow(runner.store, rule, table, error) from None
    except FunctionError as error:
        error.span = error.span or rule.span
        raise
    columns = {v.name: key for v, key in zip(rule.groups, keys, strict=True)}
    columns |= {name: values.take(columns[name]) for name, values in texts.items()}
    n = len(results_columns[0])
    found = Table(n, columns)
    needed = any(a.function.may_be_undefined for a in rule.aggregates)
    counts = _sizes(groups, table.n, runner.store.dictionary) if needed else None
    for item, column in zip(rule.aggregates, results_columns, strict=True):
        found = with_result(found, item, column, counts)
    return found


def _sizes(groups: list[np.ndarray], n: int, dictionary: Any) -> np.ndarray:
    """How many assignments each group has."""
    return aggregate(groups, n, [(COUNT.name, None)], dictionary)[1][0].codes


_DEFINED = "defined "  # prefix of the name of a column that tells which groups have a value


def with_result(
    table: Table, item: Aggregate, column: column_functions.Column, counts: np.ndarray | None
) -> Table:
    """A table of groups with the result of one more aggregate.  `counts` are the sizes of the groups, needed
    where a small group has no value."""
    table = table.with_column(item.result.name, column.values)
    if not item.function.may_be_undefined:
        return table
    assert counts is not None
    return table.with_column(
        _DEFINED + item.result.name, (counts >= item.function.least_count).astype(np.int64)
    )


def _with_values(head: Atom, table: Table) -> Table:
    """The groups for which all results that a head uses have a value."""
    for operand in head.args:
        if isinstance(operand, Var) and _DEFINED + operand.name in table.columns:
            table = table.filter(table.columns[_DEFINED + operand.name] > 0)
    return table


def group_codes(rule: Rule, table: Table) -> tuple[list[np.ndarray], dict[str, Any]]:
    """A number for each group key of each row; for decimals that the rule computed also their values."""
    groups, wide = [], {}
    for var in rule.groups:
        values = table.columns[var.name]
        if table.is_wide(var.name):
            encoded = values.dictionary_encode()
            values, wide[var.name] = encoded.indices.to_numpy(zero_copy_only=False), encoded.dictionary
        groups.append(np.ascontiguousarray(values, np.int64))
    return groups, wide


def only_counts(rule: Rule) -> bool:
    return not rule.groups and all(a.argument is None for a in rule.aggregates)


def argument_column(runner: BodyRunner, item: Aggregate, table: Table) -> column_functions.Column | None:
    return None if item.argument is None else runner.column(item.argument, table)


# Rows that represent several assignments


def takes_weights(rule: Rule) -> bool:
    """Whether a rule's aggregates can be computed from rows with weights."""
    return bool(rule.aggregates) and all(_takes_weights(rule, item) for item in rule.aggregates)


def _takes_weights(rule: Rule, item: Aggregate) -> bool:
    if item.function.weights != MULTIPLIED:
        return item.function.weights is not None
    return isinstance(item.argument, Var) and rule.types[item.argument.name].codes_add_up


def apart(table: Table) -> tuple[Table, np.ndarray | None]:
    """Splits a table into its rows and their weights (None if it has none)."""
    if WEIGHT not in table.columns:
        return table, None
    return table.only(tuple(v for v in table.columns if v != WEIGHT)), table.columns[WEIGHT]


def weigh(rule: Rule, table: Table) -> tuple[Table, np.ndarray | None]:
    """The weights of a table's rows, if it has any.  Rows are repeated where a sum of products could wrap."""
    table, weights = apart(table)
    if weights is None:
        return table, None
    most = int(weights.max()) if table.n else 0
    for item in rule.aggregates:
        if item.function.weights == MULTIPLIED and isinstance(item.argument, Var) and table.n:
            values = table.columns[item.argument.name]
            if most * max(abs(int(values.min())), abs(int(values.max()))) >= 1 << 63:
                return table.take(np.repeat(np.arange(table.n), weights)), None
    return table, weights


def _weighted(
    op: str, argument: column_functions.Column | None, weights: np.ndarray | None
) -> tuple[str, column_functions.Column | None]:
    function = aggregate_named(op)
    if weights is None or function.weights == IGNORED:
        return op, argument
    if function.weights == ADDED:
        assert function.merged_by is not None
        return function.merged_by, column_functions.Column(weights, INT)
    assert argument is not None
    return op, column_functions.Column(argument.values * weights, argument.type)


def _concat_order(runner: BodyRunner, rule: Rule, table: Table) -> list[np.ndarray] | None:
    """The columns that determine the order of concat, comparable by value: strings by text."""
    if not any(a.function.in_order for a in rule.aggregates):
        return None
    rank = runner.store.dictionary.rank
    return [
        table.columns[name] if rule.types[name].ordered_codes else rank[table.columns[name]]
        for name in concat_keys(rule)
        if not table.is_wide(name)
    ]


def sum_overflow(store: Store, rule: Rule, table: Table, error: SumOverflow) -> DataError:
    """The error that names the group of a row."""
    keys = ", ".join(_group_text(store, table, v.name, rule.types[v.name], error.row) for v in rule.groups)
    return DataError(f"the {error.what} of group [{keys}] does not fit {error.room}", span=rule.span)


def _group_text(store: Store, table: Table, name: str, type: Type, row: int) -> str:
    column = table.columns[name]
    if table.is_wide(name):
        return str(column[row])
    return type.shown(decode_value(column[row], type, store.dictionary))
