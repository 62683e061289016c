"""Owns strata: which predicates depend on each other, in which order they are evaluated, and which cycles
are allowed.

A rule that removes rows, a subsumption, belongs to the stratum of its head; what else it reads comes before.

Positive recursion is allowed.  Recursive min and max are allowed as far as `monotone` permits, recursive sums
and counts as far as `totals` does.  Any other cycle through negation or aggregation is an error that shows
the cycle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

import rustworkx

from dlog.aggregates import AGGREGATES
from dlog.errors import Diagnostics, place
from dlog.ir.analysis.monotone import check_monotone
from dlog.ir.analysis.non_negative import NonNegative
from dlog.ir.analysis.totals import check_totals, totals_of, without_nothing
from dlog.ir.lower.aggregates import is_domain, used_by
from dlog.ir.lower.quantify import with_heads
from dlog.ir.rules import Atom, Predicate, Rule, Stratum
from dlog.language.source import Span

SUBSUMPTION = "subsumption"
AUTOINC = "autoinc()"
NUMBERING = "numbers"


@dataclass(frozen=True)
class Edge:
    """`head` needs `body`; `kind` is "" for a positive use, else "not", SUBSUMPTION, AUTOINC, NUMBERING or an
    aggregate."""

    head: str
    body: str
    kind: str
    span: Span | None


def stratify(
    predicates: dict[str, Predicate],
    rules: list[Rule],
    diagnostics: Diagnostics,
    constraints: Iterable[Rule] = (),
) -> tuple[Stratum, ...]:
    """Strata in an order in which each depends only on itself and those before it.  O(predicates + uses).

    `constraints` are the rules that derive violations: what they bound, recursive sums may add up."""
    edges = [edge for rule in rules for edge in _edges(rule, predicates)]
    inside: dict[str, list[Edge]] = defaultdict(list)
    by_head: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        for name in dict.fromkeys(h.predicate for h in rule.heads):
            by_head[name].append(rule)
    for edge in edges:
        inside[edge.head].append(edge)
    bounds = cache(lambda: NonNegative(predicates, rules, constraints))
    strata = []
    for component in _components(predicates, edges):
        own = {rule.id: rule for name in component for rule in by_head[name]}
        if own:
            members = set(component)
            within = [e for name in component for e in inside[name] if e.body in members]
            ordered = [own[i] for i in sorted(own)]
            strata.append(_stratum(component, ordered, within, predicates, bounds, diagnostics))
    return tuple(strata)


def _stratum(
    component: tuple[str, ...],
    rules: list[Rule],
    edges: list[Edge],
    predicates: dict[str, Predicate],
    bounds: Callable[[], NonNegative],
    diagnostics: Diagnostics,
) -> Stratum:
    subsumptions = tuple(rule for rule in rules if rule.removes)
    rules = [rule for rule in rules if not rule.removes]
    restricted = [part for rule in rules for part in _restricted(rule, component, bool(edges))]
    combine = _combine(restricted) if edges else {}
    totals = totals_of(restricted) if edges else {}
    forbidden = [e for e in edges if _is_forbidden(e, {**totals, **combine}, predicates)]
    if totals and not forbidden:
        known = bounds().given(totals)
        restricted = [without_nothing(rule, totals, known) for rule in restricted]
    if forbidden:
        _report_cycle(forbidden[0], edges, predicates, diagnostics)
    elif subsumptions and combine:
        _report_both(subsumptions[0], combine, diagnostics)
    elif combine and (names := [n for n in component if predicates[n].equivalence is not None]):
        _report_combined(combine, predicates[names[0]], diagnostics)
    elif subsumptions and (names := [n for n in component if predicates[n].equivalence is not None]):
        _report_subsumed(subsumptions[0], predicates[names[0]], diagnostics)
    elif totals:
        _check_totals(restricted, totals, known, combine, subsumptions, predicates, diagnostics)
    elif names := [n for n in component if predicates[n].choice is not None]:
        _check_choice(names[0], component, predicates, combine, subsumptions, diagnostics)
    else:
        for rule in restricted:
            check_monotone(rule, combine, diagnostics)
    return Stratum(component, tuple(restricted), bool(edges), combine, subsumptions, totals)


def _check_totals(
    rules: list[Rule],
    totals: dict[str, str],
    known: NonNegative,
    combine: dict[str, str],
    subsumptions: tuple[Rule, ...],
    predicates: dict[str, Predicate],
    diagnostics: Diagnostics,
) -> None:
    """Totals depend on themselves through plain rules only."""
    (name, op), *_ = totals.items()
    classes = [predicates[r.heads[0].predicate].equivalence for r in rules]
    others = [f"the {other} of {n}" for n, other in combine.items()]
    others += [f"the subsumption of {r.heads[0].predicate}" for r in subsumptions]
    others += [f"the equivalence relation {relation}" for relation in classes if relation is not None]
    chosen = [n for r in rules if predicates[n := r.heads[0].predicate].choice is not None]
    others += [f"the choice domain of {n}" for n in chosen]
    if not others:
        check_totals(rules, totals, predicates, known, diagnostics)
        return
    span = next(r.span for r in rules if r.heads[0].predicate == name)
    message = f"the recursive {op} of {name} and {others[0]} depend on each other"
    diagnostics.error(message, span, f"derive one of them from predicates that do not depend on {name}")


def _check_choice(
    name: str,
    component: tuple[str, ...],
    predicates: dict[str, Predicate],
    combine: dict[str, str],
    subsumptions: tuple[Rule, ...],
    diagnostics: Diagnostics,
) -> None:
    """Reports a choice that depends on rows which may go again, and they on it."""
    other = ""
    if combine:
        other, op = next(iter(combine.items()))
        other = f"the {op} of {other}"
    elif subsumptions:
        other = f"{subsumptions[0].heads[0].predicate}, which has a subsumption,"
    elif relations := [r for n in component if (r := predicates[n].equivalence) is not None]:
        other = f"the equivalence relation {relations[0]}"
    if other:
        message = f"{name}, which has a choice domain, and {other} depend on each other"
        help = "what is chosen stays, so choose from predicates that do not depend on the choice"
        diagnostics.error(message, predicates[name].span, help)


def _report_both(subsumption: Rule, combine: dict[str, str], diagnostics: Diagnostics) -> None:
    (name, op), *_ = combine.items()
    compared = subsumption.heads[0].predicate
    message = f"{compared} has a subsumption and depends on the {op} of {name}, which depends on it"
    help = f"use a subsumption of {name} in place of {op}, or take {op} in a rule outside the recursion"
    diagnostics.error(message, subsumption.span, help)


def _report_combined(combine: dict[str, str], classes: Predicate, diagnostics: Diagnostics) -> None:
    name, op = next(iter(combine.items()))
    message = f"the equivalence relation {classes.equivalence} and the {op} of {name} depend on each other"
    help = (
        f"derive {classes.equivalence} from predicates that do not depend on {name}, or the other way round"
    )
    diagnostics.error(message, classes.span, help)


def _report_subsumed(subsumption: Rule, classes: Predicate, diagnostics: Diagnostics) -> None:
    compared = subsumption.heads[0].predicate
    message = f"{compared}, which has a subsumption, and the equivalence relation {classes.equivalence}"
    message += " depend on each other"
    help = f"derive {classes.equivalence} from predicates that do not depend on it"
    diagnostics.error(message, subsumption.span, help)


def _edges(rule: Rule, predicates: dict[str, Predicate]) -> Iterator[Edge]:
    if rule.removes:
        (head,) = rule.heads
        others = [atom for atom, _ in rule.body.atoms() if atom.predicate != head.predicate]
        yield from (Edge(head.predicate, a.predicate, SUBSUMPTION, a.span or rule.span) for a in others)
        return
    for head in rule.heads:
        kind = _kind(rule, head) if predicates[head.predicate].numbering is None else AUTOINC
        for atom, negated in rule.body.atoms():
            yield Edge(head.predicate, atom.predicate, "not" if negated else kind, atom.span or rule.span)


def _kind(rule: Rule, head: Atom) -> str:
    """The aggregate through which a head gets its rows, if any; NUMBERING of a sequence."""
    if rule.numbers:
        return NUMBERING
    used = used_by([head], rule.aggregates)
    return used[-1].op if used else ""


def _components(predicates: dict[str, Predicate], edges: list[Edge]) -> list[tuple[str, ...]]:
    """Strongly connected components, each after those it depends on, otherwise in source order."""
    graph = rustworkx.PyDiGraph()
    ids = {name: graph.add_node(name) for name in predicates}
    names = list(predicates)
    for edge in edges:
        graph.add_edge(ids[edge.body], ids[edge.head], None)
    components = rustworkx.strongly_connected_components(graph)
    of = {node: i for i, nodes in enumerate(components) for node in nodes}
    condensed = rustworkx.PyDiGraph()
    condensed.add_nodes_from([min(nodes) for nodes in components])
    links = {(of[ids[e.body]], of[ids[e.head]]) for e in edges}
    condensed.add_edges_from([(a, b, None) for a, b in sorted(links) if a != b])
    order = rustworkx.lexicographical_topological_sort(condensed, key=lambda first: f"{first:09d}")
    by_first = {min(nodes): nodes for nodes in components}
    return [tuple(names[n] for n in sorted(by_first[first])) for first in order]


def _restricted(rule: Rule, component: tuple[str, ...], recursive: bool) -> Iterator[Rule]:
    """The rule with only its heads in a component; in a recursion a rule with aggregates has one head."""
    heads = tuple(h for h in rule.heads if h.predicate in component)
    parts = [(h,) for h in heads] if recursive and rule.aggregates else [heads]
    for part in parts:
        yield with_heads(rule, part, used_by(part, rule.aggregates))


def _combine(rules: Iterable[Rule]) -> dict[str, str]:
    """Predicates of a recursion whose values are combined by min or max."""
    combine: dict[str, str] = {}
    for rule in rules:
        head = rule.heads[0]
        for aggregate in rule.aggregates:
            in_value = head.is_functional and head.args[-1] == aggregate.result
            if in_value and aggregate.function.is_recursive and len(rule.aggregates) == 1:
                combine.setdefault(head.predicate, aggregate.op)
    return combine


# Cycles


def _is_forbidden(edge: Edge, combine: dict[str, str], predicates: dict[str, Predicate]) -> bool:
    """The negation for an absent inline aggregate is not the user's: the aggregate is in the cycle."""
    if edge.kind == "not":
        return not predicates[edge.body].auxiliary or predicates[edge.body].equivalence is not None
    return bool(edge.kind) and combine.get(edge.head) != edge.kind


def _report_cycle(
    edge: Edge, edges: list[Edge], predicates: dict[str, Predicate], diagnostics: Diagnostics
) -> None:
    """The cycle that goes through a forbidden edge, predicate by predicate, with lines."""
    whole = [edge, *_path(edge.body, edge.head, edges)]
    path = _without_auxiliary(whole, predicates)
    steps = []
    for step in path:
        word = {"": "", "not": "not ", SUBSUMPTION: "for its subsumption "}.get(step.kind, f"{step.kind} of ")
        where = place(step.span, edge.span) if step.span else "unknown place"
        steps.append(f"{step.head} needs {word}{step.body} ({where})")
    help = f"the cycle: {', '.join(steps)}"
    if any(is_domain(step.body) for step in whole):
        help += "; the aggregate's outer variables must get their values from outside the cycle"
    function = AGGREGATES.get(edge.kind)
    may_recur = function is not None and (function.is_recursive or function.grows)
    if may_recur and not predicates[path[0].head].is_functional:
        help += f"; a recursive {edge.kind} is the value of a function, as in {path[0].head}[...] = x"
    if edge.kind == AUTOINC:
        help += "; a number is given when all assignments of a rule are known"
    what = "negation" if edge.kind == "not" else edge.kind
    diagnostics.error(f"{path[0].head} depends on its own {what}", edge.span, help)


def _without_auxiliary(path: list[Edge], predicates: dict[str, Predicate]) -> list[Edge]:
    """A cycle without auxiliary predicates: the user wrote the aggregates and domains they stand for."""
    while predicates[path[0].head].auxiliary:
        path = [*path[1:], path[0]]
    shown: list[Edge] = []
    kind = ""
    for before, edge in zip((path[-1], *path), path, strict=False):
        kind = edge.kind if edge.kind and not predicates[edge.body].auxiliary else kind or edge.kind
        start = shown[-1].body if shown else path[0].head
        if not predicates[edge.body].auxiliary:
            of_classes = predicates[edge.head].equivalence is not None  # not a dependency that the user wrote
            shown.append(Edge(start, edge.body, kind, before.span if of_classes else edge.span))
            kind = ""
    return shown


def _path(start: str, goal: str, edges: list[Edge]) -> list[Edge]:
    """A shortest chain of dependencies from one predicate to another inside a component."""
    out = defaultdict(list)
    for edge in edges:
        out[edge.head].append(edge)
    frontier: list[tuple[str, list[Edge]]] = [(start, [])]
    seen = {start}
    for name, path in frontier:
        if name == goal:
            return path
        for edge in out[name]:
            if edge.body not in seen:
                seen.add(edge.body)
                frontier.append((edge.body, [*path, edge]))
    raise AssertionError(f"{start} does not need {goal}")
