"""Owns what was decided, as text for the log: orders, materialised views, the optimiser, adaptations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dlog.m3.syntax import ast
from dlog.views.m3.export import Target
from dlog.views.m3.program import Writer
from dlog.views.orders.considered import Candidate, Choice, QueryPart, considered
from dlog.views.orders.orders import WORTH
from dlog.views.picture.notation import Notation, flat, scalar
from dlog.views.query import Query
from dlog.views.tree.build import NEEDED, PATHS, materialised_because
from dlog.views.tree.tree import OrderNode, View, ViewTree

# The variable order


def order_lines(query: Query, tree: ViewTree, dtree: Path | None) -> list[str]:
    """The order, and what else there was to choose from."""
    drawn = [line for root in tree.order.roots for line in _drawn(root, "")]
    if dtree is not None:
        head, chosen = f"given by {dtree}:", "without it, dlog would choose:"
    else:
        head, chosen = "found:", "considered, with expected rows of views and rows that changes touch:"
    return [head, *drawn, "", chosen, *(line for part in considered(query) for line in _part(query, part))]


def _drawn(node: OrderNode, margin: str) -> Iterator[str]:
    depends = f"  depends on {', '.join(node.depends)}" if node.depends else ""
    atoms = f"  lowest of {', '.join(node.atoms)}" if node.atoms else ""
    cache = "  to be materialised" if node.cache else ""
    yield f"{margin}{node.variable}{depends}{atoms}{cache}"
    for child in node.children:
        yield from _drawn(child, margin + "  ")


def _part(query: Query, part: QueryPart) -> Iterator[str]:
    if query.free and part.cost != part.other:
        free, anywhere = (part.cost, part.other) if part.free_first else (part.other, part.cost)
        yield (
            f"free variables on top: {free:,.0f}; anywhere: {anywhere:,.0f}; on top unless that is more than"
            f" {WORTH:g} times as much"
        )
    for choice in part.choices:
        yield from _choice(choice)


def _choice(choice: Choice) -> Iterator[str]:
    place = f"below {', '.join(choice.above)}" if choice.above else "at the top"
    others = sorted(
        (c for c in choice.candidates if c is not choice.chosen and c.cost is not None),
        key=lambda c: c.cost or 0.0,
    )
    yield f"{place}: {_candidate(choice.chosen)}"
    for other in others:
        yield f"  instead of {_candidate(other)}"
    untried = len(choice.candidates) - len(others) - 1
    if untried:
        yield f"  greedily, {untried} others were not tried"


def _candidate(candidate: Candidate) -> str:
    cost = f" ({candidate.cost:,.0f})" if candidate.cost is not None else ""
    return f"{', '.join(candidate.variables)}{cost}"


# Views


def materialised_lines(query: Query, tree: ViewTree, optimise: bool) -> list[str]:
    notation = Notation.of(tree, query)
    lines = []
    for view, reasons in materialised_because(tree, query, NEEDED if optimise else PATHS):
        name = flat([notation.name(view), *notation.keys(view)])
        because = f"yes, as {'; '.join(reasons)}" if reasons else f"no, as {_needless(view)}"
        lines.append(f"{name}: {because}")
    return lines


def _needless(view: View) -> str:
    if not view.changes:
        return "no relation changes that its parent joins with it"
    return "all changes of its parent come through it"


# The optimiser


def optimiser_lines(writer: Writer, optimise: bool) -> list[str]:
    tree, payloads = writer.tree, writer.payloads
    lines = [] if optimise else ["off: every view and every change is a map"]
    for view in tree.walk():
        if len(view.variables) > 1:
            first, *others = view.variables
            functions = ", ".join(map(scalar, view.factors))
            applied = f", with the functions {functions}" if functions else ""
            lines.append(f"chain compressed: {first} also sums out {', '.join(others)}{applied}")
        if view.is_indicator:
            parent = tree.parents[id(view)]
            lines.append(f"indicator {view.name}[{', '.join(view.keys)}] bounds the view at {parent.name}")
        several = () if view.is_leaf else payloads.of(view)
        if view.materialised and len(several) > 1:
            factors = writer.query.factors
            stored = (
                f"{payloads.name(view, p)}: {' * '.join(scalar(factors[i]) for i in p) or 'rows'}"
                for p in several
            )
            lines.append(f"several aggregates share the view at {view.name}: {'; '.join(stored)}")
    for (leaf, target), written in writer.changes.items():
        if written == "a map":
            how = f"DELTA_{target}, as it is read several times" if optimise else f"DELTA_{target}"
        else:
            how = f"inlined, as it is {written or 'a product of look-ups'}"
        lines.append(f"change of {target} with {leaf}: {how}")
    return lines or ["nothing to do"]


# The program


def adaptation_lines(before: ast.Program, after: ast.Program, text: str, to: Target) -> list[str]:
    lines = [f"for {to.consumer.title}, {'batches' if to.batch else 'single rows'}"]
    lines += _renamed("relation", [s.name for s in before.sources], [s.name for s in after.sources])
    lines += _renamed("map", [m.name for m in before.maps], [m.name for m in after.maps])
    lines += _renamed("variable", _variables(before), _variables(after))
    lost = _functions(before) - _functions(after)
    if lost:
        lines.append(f"functions written in other ways: {', '.join(sorted(lost))}")
    statements = {f"{t.event} {t.relation or ''}".strip(): len(t.statements) for t in after.triggers}
    lines.append(f"maps: {len(after.maps)}, queries: {len(after.queries)}, lines: {text.count(chr(10))}")
    return [*lines, *(f"statements on {event}: {number}" for event, number in statements.items())]


def _renamed(what: str, before: list[str], after: list[str]) -> list[str]:
    pairs = [f"{a} is {b}" for a, b in zip(before, after, strict=False) if a != b]
    return [f"{what} {pair}" for pair in dict.fromkeys(pairs)]


def _variables(program: ast.Program) -> list[str]:
    return [c.name for s in program.sources for c in s.columns]


def _functions(program: ast.Program) -> set[str]:
    return {node.function for node in program.walk() if isinstance(node, ast.Call)}
