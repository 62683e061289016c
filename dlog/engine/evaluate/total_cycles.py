"""Owns why a recursive sum has no value: a group that needs itself, or integers that wrap.

Knows nothing of how the groups are found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import rustworkx

from dlog.engine.commit.printed_facts import literal_text
from dlog.engine.state.store import Store
from dlog.errors import DataError
from dlog.ir.analysis.contributions import Contributions
from dlog.ir.rules import Program
from dlog.storage.values import decode_value
from dlog.values import Type

_SHOWN = 6  # groups of a cycle that a message names


@dataclass(frozen=True)
class Need:
    """Row i of `keys`, a group of a total, needs row i of `needed`, a group of the same or another total."""

    keys: tuple[str, np.ndarray]
    needed: tuple[str, np.ndarray]


def check_cycles(
    program: Program, store: Store, totals: Mapping[str, Contributions], needs: Sequence[Need]
) -> None:
    """Raises for a group whose total is computed from itself.  O(n log n)"""
    groups, edges = _numbered(needs)
    graph = rustworkx.PyDiGraph()
    graph.add_nodes_from(range(len(groups)))
    graph.add_edges_from_no_data(edges)
    cycle = rustworkx.digraph_find_cycle(graph)
    if not cycle:
        return
    path = [groups[source] for source, _ in cycle]
    op = totals[path[0][0]].adding_up.aggregates[0].op
    texts = [_shown(program, store, *group) for group in (*path, path[0])]
    if len(texts) > _SHOWN:
        texts = [*texts[: _SHOWN - 1], f"... ({len(texts) - _SHOWN} more)", texts[-1]]
    steps = f"{texts[0]} needs {', which needs '.join(texts[1:])}"
    message = f"the {op} {texts[0]} is computed from itself: {steps}"
    help = "sums that are computed from sums need data without cycles; a constraint can say so"
    raise DataError(message, span=totals[path[0][0]].adding_up.span, help=help)


def wraps(name: str, a: np.ndarray, b: np.ndarray, type: Type | None) -> bool:
    """Whether a sum, difference or product of integers leaves 64 bits in some row.  O(n)

    Floats decide where the result is far from the limit."""
    unsigned = type is not None and type.kernel == "unsigned"
    bias, limit = (1 << 63, 1 << 64) if unsigned else (0, 1 << 63)
    x, y = a.astype(np.float64) + bias, b.astype(np.float64) + bias
    large = np.flatnonzero(np.abs(_results(name, x, y)) >= limit / 2)
    exact = ((int(a[i]) + bias, int(b[i]) + bias) for i in large)
    least = 0 if unsigned else -limit
    return any(not least <= _results(name, *pair) < limit for pair in exact)


def _results(name: str, x: Any, y: Any) -> Any:
    return x * y if name == "mul" else x - y if name == "sub" else x + y


def _numbered(needs: Sequence[Need]) -> tuple[list[tuple[str, tuple[int, ...]]], list[tuple[int, int]]]:
    """Groups by number, and pairs of numbers."""
    numbers: dict[tuple[str, tuple[int, ...]], int] = {}
    edges: list[tuple[int, int]] = []
    for need in needs:
        columns = []
        for name, keys in (need.keys, need.needed):
            rows = map(tuple, keys.tolist())
            columns.append([numbers.setdefault((name, row), len(numbers)) for row in rows])
        edges += zip(*columns, strict=True)
    return list(numbers), edges


def _shown(program: Program, store: Store, name: str, keys: tuple[int, ...]) -> str:
    columns = program.predicates[name].columns
    texts = [
        literal_text(decode_value(code, column.type, store.dictionary), column.type)
        for code, column in zip(keys, columns, strict=False)
    ]
    return f"{name}[{', '.join(texts)}]"
