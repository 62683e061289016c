"""Owns the description of a plan as text: its vertices, and the search for each changed atom."""

from __future__ import annotations

from collections.abc import Iterator

from dlog.joingraph.estimates import Statistics, work
from dlog.joingraph.plan import Enter, Plan, PlannedAtom, Search, Step


def describe(plan: Plan, statistics: Statistics | None = None) -> Iterator[str]:
    """Line by line; with statistics also what a changed row is estimated to enter and to give.

    >>> from dlog.joingraph.body import Atom, Body, Comparison
    >>> from dlog.joingraph.plan import plan_graph
    >>> atoms = Atom("user", ("u", "g")), Atom("tweet", ("u", "t", "d")), Atom("retweet", ("w", "r", "t"))
    >>> plan = plan_graph(Body(atoms, ("g", "t", "r"), (Comparison(">", "d", 7), Comparison("!=", "g", "r"))))
    >>> print(*describe(plan), sep=chr(10))
    vertex u: user(u, g), tweet(u, t, d)
    vertex t: tweet(u, t, d), retweet(w, r, t)
    rows of user(u, g): payload g
    rows of tweet(u, t, d) if d > 7: counted
    rows of retweet(w, r, t): payload r, counted
    change of user(u, g): tweet by u, retweet by t, rows of retweet if g != r
    change of tweet(u, t, d): user by u, rows of user, retweet by t, rows of retweet if g != r
    change of retweet(w, r, t): tweet by t, user by u, rows of user if g != r
    """
    for vertex in plan.vertices:
        one, other = (plan.atoms[atom].atom for atom in vertex.atoms)
        yield f"vertex {', '.join(vertex.variables) or 'of all rows'}: {one}, {other}"
    for planned in plan.atoms:
        yield _rows(planned)
    for i, search in enumerate(plan.searches):
        line = f"change of {plan.atoms[i].atom}: {_steps(plan, search)}"
        if statistics is not None:
            estimate = work(plan, i, statistics)
            line += f" (about {estimate.visits:.3g} join tuples, {estimate.rows:.3g} rows)"
        yield line


def _rows(planned: PlannedAtom) -> str:
    atom, tests = planned.atom, []
    for test in planned.filters:
        right = test.right if test.is_code else atom.args[test.right]
        if atom.args[test.left] != right:
            tests.append(f"{atom.args[test.left]} {test.op} {right}")
    kept = [f"payload {', '.join(planned.payload)}"] * bool(planned.payload) + ["counted"] * planned.counted
    where = f" if {', '.join(tests)}" if tests else ""
    return f"rows of {atom}{where}: {', '.join(kept) or 'join columns only'}"


def _steps(plan: Plan, search: Search) -> str:
    return ", ".join(_step(plan, step) for step in search.steps)


def _step(plan: Plan, step: Step) -> str:
    name = plan.atoms[step.atom].atom.relation
    tests = f" if {', '.join(map(str, step.tests))}" if step.tests else ""
    if isinstance(step, Enter):
        by = ", ".join(plan.vertices[step.vertex].variables)
        return f"{name}{f' by {by}' if by else ''}{tests}"
    return f"rows of {name}{tests}"
