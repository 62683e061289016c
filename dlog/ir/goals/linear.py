"""Owns tail calls: a restricted predicate whose recursion only passes its answers on.

    # reach(x, z) <- edge(x, y), reach(y, z).      with x requested for one value:
    # the demand for reach goes along the edges, and so would a copy of the answers for every node on the way.
    # path(start, start) <- wanted(start).       path(start, y) <- path(start, x), edge(x, y).
    # reach'bf(start, z) <- path(start, x), edge(x, z).      has the answers of the start alone.

Where the rule that ends the recursion takes the same step as the recursive one, as here, the path is the
answer, except for its start:

    # reach'bf(x, y) <- wanted(x), edge(x, y).     reach'bf(x, z) <- reach'bf(x, y), edge(y, z).

After Naughton, Ramakrishnan, Sagiv and Ullman, "Efficient evaluation of right-, left-, and multi-linear
rules".  Done where the predicate is requested for constants, that is for a few values: then `path` is no
larger than the demand would be.  Where demand comes from facts, many may share their paths, and answers for
each node on them are smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dlog.errors import Diagnostics
from dlog.ir.analysis.safety import make_safe
from dlog.ir.goals.goals import Restriction, names_of, operand_type
from dlog.ir.goals.passing import Demand
from dlog.ir.lower.alternatives import renamed
from dlog.ir.rules import Atom, Conj, Form, Operand, Predicate, Rule, Var

if TYPE_CHECKING:
    from dlog.ir.goals.magic import RestrictedPart

_Demands = list[tuple[Rule, Demand]]


def follow_calls(
    parts: Sequence[RestrictedPart], outside: _Demands, predicates: dict[str, Predicate]
) -> list[Rule]:
    """Rewrites in place the parts whose recursion is of this kind; returns the rules of their paths."""
    made: list[Rule] = []
    constants = _wanted_for_constants(parts, outside)
    for part in parts:
        if (part.origin, part.restriction) in constants and _passes_answers_on(part):
            made += [] if _turn_around(part, predicates) else _rewrite(part, predicates)
    return made


def _wanted_for_constants(parts: Sequence[RestrictedPart], outside: _Demands) -> set[tuple[str, Restriction]]:
    """Predicates, with their restrictions, that others want for constants only.  O(demands).

    Rewriting a part changes its demands for itself, which do not count here, and the atoms in the others.
    """
    targets = [((d.predicate, d.restriction), bool(d.forms)) for _, d in outside]
    for part in parts:
        own = (part.origin, part.restriction)
        found = [((d.predicate, d.restriction), bool(d.forms)) for _, d in part.demands]
        targets += [(target, by_facts) for target, by_facts in found if target != own]
    return {target for target, _ in targets} - {target for target, by_facts in targets if by_facts}


def _passes_answers_on(part: RestrictedPart) -> bool:
    """Whether every recursive rule makes a tail call, and there is one."""
    calls = [_call(part, rule, head, body) for rule, head, _, body in part.rules]
    return None not in calls and any(isinstance(call, Atom) for call in calls)


def _call(part: RestrictedPart, rule: Rule, head: Atom, body: Conj) -> Atom | bool | None:
    """The recursive atom of a rule; False if it has none; None if it does not just pass answers on."""
    inside = [atom for atom, _ in body.atoms() if atom.predicate == part.name]
    if rule.aggregates:
        return None
    if not inside:
        return False
    call = inside[0]
    free = [i for i in range(len(head.args)) if i not in part.restriction]
    answers = [head.args[i] for i in free]
    rest = Conj((), tuple(f for f in body.forms if f is not call)).variables()
    rest |= names_of(a.args[i] for a in (head, call) for i in part.bound)
    passed = (
        len(inside) == 1
        and call in body.forms
        and bool(free)
        and all(isinstance(a, Var) and call.args[i] == a for i, a in zip(free, answers, strict=True))
        and len(set(answers)) == len(answers)
        and not names_of(answers) & rest
    )
    return call if passed else None


def _rewrite(part: RestrictedPart, predicates: dict[str, Predicate]) -> list[Rule]:
    old, path = part.guard_name, f"{part.name}'path"
    columns = predicates[old].columns
    predicates[path] = Predicate(path, (*columns, *columns), 2 * len(columns), auxiliary=True)
    start = _start(part, len(columns))
    types = {v.name: c.type for v, c in zip(start, columns, strict=True)}

    def along(guard: Atom) -> Atom:
        return Atom(path, (*start, *guard.args), 2 * len(columns))

    wanted = Conj((), (Atom(old, start, len(start)),))
    made = [Rule(0, (Atom(path, (*start, *start), 2 * len(start)),), wanted, types=types)]
    kept = []
    for rule, head, guard, body in part.rules:
        rule = replace(rule, types={**rule.types, **types})
        call = _call(part, rule, head, body)
        if isinstance(call, Atom):
            target = Atom(path, (*start, *(call.args[i] for i in part.bound)), 2 * len(start))
            rest = tuple(f for f in body.forms if f is not call)
            made.append(replace(rule, heads=(target,), body=Conj((), (along(guard), *rest))))
        else:
            places = dict(zip(part.bound, start, strict=True))
            args = tuple(places.get(i, a) for i, a in enumerate(head.args))
            kept.append((rule, replace(head, args=args), along(guard), body))
    part.rules, part.guard_name = kept, path
    own = (part.origin, part.restriction)
    part.demands = [
        (replace(rule, types={**rule.types, **types}), _with_guard(demand, old, along))
        for rule, demand in part.demands
        if (demand.predicate, demand.restriction) != own
    ]
    return [_safe(rule) for rule in made]


def _start(part: RestrictedPart, n: int) -> tuple[Var, ...]:
    """Variables that none of the part's rules has, for the values that answers are requested for."""
    rules = [*(made[0] for made in part.rules), *(rule for rule, _ in part.demands)]
    taken = {name for rule in rules for name in rule.types}
    names = ["start"] if n == 1 else [f"start{i + 1}" for i in range(n)]
    while not taken.isdisjoint(names):
        names = [f"{name}_" for name in names]
    return tuple(map(Var, names))


# Closures


def _turn_around(part: RestrictedPart, predicates: dict[str, Predicate]) -> bool:
    """Makes the recursion go from the start, if its last step is a step like all others; whether it is."""
    columns = predicates[part.name].columns
    free = [i for i in range(len(columns)) if i not in part.restriction]
    if len(part.rules) != 2 or [columns[i].type for i in part.bound] != [columns[i].type for i in free]:
        return False
    (rule, head, guard, body), last = sorted(
        part.rules, key=lambda r: not isinstance(_call(part, r[0], r[1], r[3]), Atom)
    )
    call = _call(part, rule, head, body)
    assert isinstance(call, Atom)
    rest = tuple(f for f in body.forms if f is not call)
    onward = tuple(call.args[i] for i in part.bound)
    end = tuple(last[1].args[i] for i in free)
    if any(operand_type(last[0], a) != columns[i].type for i, a in zip(free, end, strict=True)):
        return False  # an answer is rounded, a step is not
    step = _canonical(guard.args, onward, rest)
    if step is None or step != _canonical(last[2].args, end, last[3].forms):
        return False
    start = _start(part, len(free))
    types = {v.name: columns[i].type for v, i in zip(start, part.bound, strict=True)}
    rule = replace(rule, types={**rule.types, **types})

    def reached(by: tuple[Operand, ...]) -> Atom:
        places = dict(zip((*part.bound, *free), (*start, *by), strict=True))
        return replace(head, args=tuple(places[i] for i in range(len(columns))))

    part.rules = [last, (rule, reached(onward), guard, Conj((), (reached(guard.args), *rest)))]
    own = (part.origin, part.restriction)
    part.demands = [
        (rule, _with_guard(d, part.guard_name, lambda g: reached(g.args))) if of.id == rule.id else (of, d)
        for of, d in part.demands
        if (d.predicate, d.restriction) != own
    ]
    return True


def _canonical(
    given: tuple[Operand, ...], found: tuple[Operand, ...], forms: tuple[Form, ...]
) -> tuple[Form, ...] | None:
    """Forms under names that only show where variables occur; None unless those given and found are distinct
    variables."""
    ends = [a.name for a in (*given, *found) if isinstance(a, Var)]
    if len(set(ends)) != len(given) + len(found):
        return None
    used = dict.fromkeys([*ends, *(v.name for v in Conj((), forms).occurrences())])
    names = {name: f"v{number}" for number, name in enumerate(used)}
    return renamed(Conj((), forms), names).forms


def _with_guard(demand: Demand, old: str, along: Callable[[Atom], Atom]) -> Demand:
    forms = [along(f) if isinstance(f, Atom) and f.predicate == old else f for f in demand.forms]
    return replace(demand, forms=tuple(forms))


def _safe(rule: Rule) -> Rule:
    diagnostics = Diagnostics()
    safe = make_safe(rule, diagnostics)
    assert not diagnostics.errors, f"{rule}: {diagnostics.errors[0]}"
    return safe
