"""Owns recursive sums and counts for the oracle: groups that need themselves, by definition, and random
programs as text.

    @given(totals())
    def test_something(text):
        program = dlog.check(text)

A group needs another if a contribution to it is computed from that group's total.  A total that needs itself
is an error, whether or not its value would settle.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hypothesis import strategies as st

from dlog.errors import DataError
from dlog.ir.rules import Atom, Disjunction, Form, Primitive, Rule, Stratum, Var

from .bodies import Draw

Group = tuple[str, tuple[Any, ...]]


class NeedsItself(DataError):
    """A group's total is computed from itself."""


def check_given(stratum: Stratum, base: Mapping[str, Iterable[tuple[Any, ...]]]) -> None:
    """A recursive sum or count has no base facts."""
    if any(base[name] for name in stratum.totals):
        raise DataError(f"base facts of {', '.join(stratum.totals)}")


def check_needs(stratum: Stratum, solutions: Any, value: Any) -> None:
    """`solutions(rule, forms)` gives the assignments of a conjunction, `value(operand, assignment)` a
    value."""
    needs: dict[Group, set[Group]] = defaultdict(set)
    for rule in stratum.rules:
        (head, *_) = rule.heads
        if head.predicate in stratum.totals:
            for forms in choices(rule.body.forms):
                for atom in sources(rule, forms, stratum):
                    for found in solutions(rule, forms):
                        group = (head.predicate, tuple(value(a, found) for a in head.keys))
                        needs[group].add((atom.predicate, tuple(value(a, found) for a in atom.keys)))
    for group in list(needs):
        reached, waiting = set[Group](), [group]
        while waiting:
            for other in needs[waiting.pop()] - reached:
                reached.add(other)
                waiting.append(other)
        if group in reached:
            raise NeedsItself(f"{group} needs itself")


def choices(forms: tuple[Form, ...]) -> Iterator[tuple[Form, ...]]:
    """Conjunctions with one branch of every disjunction."""
    first = next((form for form in forms if isinstance(form, Disjunction)), None)
    if first is None:
        yield forms
        return
    rest = tuple(form for form in forms if form is not first)
    for branch in first.branches:
        yield from choices((*rest, *branch.forms))


def sources(rule: Rule, forms: Iterable[Form], stratum: Stratum) -> set[Atom]:
    """The atoms of totals from which a rule's contribution is computed, by whatever computes it."""
    forms = list(forms)
    (item,) = rule.aggregates
    wanted = {item.argument.name} if isinstance(item.argument, Var) else set()
    before = -1
    while before < len(wanted):
        before = len(wanted)
        for form in forms:
            if isinstance(form, Primitive):
                results = form.inputs if form.name == "eq" else (form.output,)
                if wanted & names(results):
                    wanted |= names(form.inputs)
    atoms = (f for f in forms if isinstance(f, Atom) and f.predicate in stratum.totals)
    return {atom for atom in atoms if names(atom.args[-1:]) & wanted}


def names(operands: Iterable[Any]) -> set[str]:
    return {a.name for a in operands if isinstance(a, Var)}


# Programs

NODES = (1, 2, 3, 4)
LEAST = st.integers(0, 4)
DECLARED = """\
e(x, y, w) -> int(x), int(y), {number}(w).
f[x, y] = w -> int(x), int(y), {number}(w).
n(x) -> int(x).
start(x) -> int(x).
limit[x] = m -> int(x), {number}(m).
f[_, _] = w -> w >= @0.
limit[_] = m -> m >= @0.
acts(x, y) -> int(x), int(y).
"""
# Of held, with what may be added up.
BODIES = (
    "sum(w)>> acts(x, y), f[y, z] = w",
    "sum(w)>> acts(x, y), e(y, z, w), w >= @0",
    "sum(w)>> acts(x, y), acts(y, u), f[u, z] = w",
    "sum(w)>> (acts(x, y), f[y, z] = w ; acts(x, z), f[z, y] = w)",
    "sum(w)>> acts(x, y), f[y, z] = w, !n(z)",
    "sum(v)>> acts(x, y), f[y, z] = w, v = w + @1",
    "sum(@2)>> acts(x, y), e(y, z, _)",
    "count()>> acts(x, y), e(y, z, _)",
    "count()>> acts(x, y), (f[y, z] = _ ; e(z, y, _))",
    "count_distinct(w)>> acts(x, y), e(y, z, w)",
    "count_distinct(y)>> acts(x, y), acts(y, z)",
    "sum(w)>> acts(x, y), held[x, y] = t, t > @2, f[y, z] = w",
    "count()>> acts(x, y), held[x, y] = _, e(y, z, _)",
)
GUARDS = (
    "s > {c}",
    "s >= {c}",
    "{c} < s",
    "@2 * s >= {c} + @2",
    "s + @1 > limit[z]",
    "f[z, _] = w, s >= w",
    "s - @1 > @0",
    "(s > @3 ; n(z), s > @1)",
    "max(s, @1) > @1",
)
SUMS = (  # of values that are computed from sums; the shape (x, y) is acyclic or not
    "cost[x] = t <- agg<<t = sum(c)>> (limit[x] = c ; f[x, y] = w, c = w * cost[y]).",
    "cost[x] = t <- agg<<t = sum(c)>> (limit[x] = c ; f[x, y] = w, cost[y] = v, v > @2, c = w + v).",
    "cost[x] = t <- agg<<t = sum(c)>> (limit[x] = c ; f[x, y] = w, e(y, z, _), c = cost[y] + cost[z]).",
    "cost[x] = t <- agg<<t = sum(c)>> (limit[x] = c ; f[x, y] = _, c = min(cost[y], @3)).",
    "cost[x] = t <- agg<<t = sum(c)>> (limit[x] = c ; f[x, y] = _, c = more[y]).\n"
    "more[x] = t <- agg<<t = sum(c)>> cost[x] = c, e(x, _, _).",
    "cost[x] = t <- agg<<t = sum(c)>> (limit[x] = c ; big(x), f[x, y] = _, c = cost[y]).\n"
    "big(x) <- start(x).\nbig(y) <- cost[x] = t, t > @2, e(x, y, _).",
)
INLINE = (
    "acts(x, z) <- start(x), n(z), k = count : { acts(x, y), e(y, z, _) }, k > 1.",
    "acts(x, z) <- start(x), n(z), @2 < sum w : { acts(x, y), f[y, z] = w }.",
)


@st.composite
def totals(draw: Draw) -> str:
    number = draw(st.sampled_from(("int", "int", "decimal[8, 2]")))
    point = "" if number == "int" else ".0"
    text = "\n".join(_lines(draw, number != "int")).replace("{number}", number)
    return re.sub(r"@(-?[0-9.]+)", lambda found: found[1] if "." in found[1] else found[1] + point, text)


def _lines(draw: Draw, decimals: bool) -> list[str]:
    """`@1` stands for a literal of the type of the values."""
    node = st.sampled_from(NODES)
    weight = st.sampled_from(("0.5", "1.25", "2", "3") if decimals else ("0", "1", "2", "3"))
    downward = draw(st.booleans())
    lines = [DECLARED]
    pairs = draw(st.lists(st.tuples(node, node), min_size=2, max_size=10, unique=True))
    lines += [f"f[{x}, {y}] = @{draw(weight)}." for x, y in pairs if x < y or not downward]
    edges = st.tuples(node, node, st.integers(-1, 3))
    edges = draw(st.lists(edges, min_size=2, max_size=10, unique=True))
    lines += [f"e({x}, {y}, @{w})." for x, y, w in edges if x < y or not downward]
    for name in ("n", "start"):
        lines += [f"{name}({x})." for x in sorted(draw(st.sets(node, min_size=1, max_size=4)))]
    lines += [f"limit[{x}] = @{draw(weight)}." for x in sorted(draw(st.sets(node, min_size=1, max_size=3)))]
    lines += ["acts(x, x) <- start(x)."] if draw(st.booleans()) else ["acts(x, y) <- start(x), e(x, y, _)."]
    kind = draw(st.sampled_from(("threshold", "threshold", "sums", "inline")))
    if kind == "inline":
        return [*lines, *draw(st.lists(st.sampled_from(INLINE), min_size=1, max_size=2, unique=True)), ""]
    if kind == "sums":
        return [*lines, draw(st.sampled_from(SUMS)), ""]
    bodies = [body for body in BODIES if not decimals or body.startswith("sum")]
    lines.append(f"held[x, z] = s <- agg<<s = {draw(st.sampled_from(bodies))}.")
    guards = draw(st.lists(st.sampled_from(GUARDS), min_size=1, max_size=2, unique=True))
    lines += [f"acts(x, z) <- held[x, z] = s, {g.replace('{c}', f'@{draw(LEAST)}')}." for g in guards]
    if draw(st.booleans()):
        lines.append("acts(y, x) <- acts(x, y), n(y).")
    if draw(st.booleans()):
        lines.append("result(x, s) <- held[x, _] = s, s < @3.\nnone(x) <- n(x), !acts(x, _).")
    return [*lines, ""]
