"""Owns which predicates depend on each other, by name, before anything else is known."""

from __future__ import annotations

from collections.abc import Iterable

import rustworkx

from dlog.language import ast


class Dependencies:
    """Built when first asked: most programs never do."""

    def __init__(self, program: ast.Program):
        self.program = program
        self.component: dict[str, int] | None = None

    def are_recursive(self, heads: Iterable[str], used: Iterable[str]) -> bool:
        """Whether a predicate that a rule uses needs one of its heads in turn.

        O(size of the program) at first, O(predicates) afterwards.
        """
        if self.component is None:
            self.component = _components(self.program)
        own = {self.component[name] for name in heads if name in self.component}
        return any(self.component.get(name) in own for name in used)


def _components(program: ast.Program) -> dict[str, int]:
    """The number of each predicate's strongly connected component."""
    graph = rustworkx.PyDiGraph(multigraph=False)
    ids: dict[str, int] = {}

    def node(name: str) -> int:
        if name not in ids:
            ids[name] = graph.add_node(name)
        return ids[name]

    for statement in program.statements:
        if isinstance(statement, ast.Rule):
            heads = [node(head_name(head)) for head in statement.heads]
            for used in statement.walk():
                if isinstance(used, ast.Call | ast.Application):
                    for head in heads:
                        graph.add_edge(node(used.name), head, None)
    components = rustworkx.strongly_connected_components(graph)
    return {graph[i]: number for number, members in enumerate(components) for i in members}


def head_name(head: ast.Node) -> str:
    """The predicate of `R(x)` or `F[x] = y`; "" for what is not a head."""
    if isinstance(head, ast.Comparison):
        head = head.left
    return head.name if isinstance(head, ast.Call | ast.Application) else ""
