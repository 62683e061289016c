"""Random rules as trees, their text, and what they mean by definition.

The trees know nothing of dlog.  `answer` evaluates a rule by brute force: alternatives are split into
clauses, atoms are matched row by row, every other variable ranges over all values there can be.

    literal ::= ("atom", predicate, terms) | ("fn", term, variable) | ("cmp", op, term, term)
              | ("inc", variable, term) | ("neg", body) | ("or", bodies) | ("agg", variable, op, target, body)
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hypothesis import strategies as st

Literal = tuple
Body = list  # of literals
Row = tuple[int, ...]
Facts = dict[str, set[Row]]
Environment = dict[str, int]

ARITY = {"e": 2, "f": 2, "g": 1}  # and the function h, of one key
VALUES = range(4)
DOMAIN = range(7)  # what facts hold, and what three increments can make of it
VARIABLES = ("x", "y", "z", "u")


@dataclass(frozen=True)
class Statement:
    """`p(head) <- body.`, or with `op`: `p[head] = result <- agg<<result = op(target)>> body.`"""

    head: tuple[str, ...]
    body: Body
    op: str | None = None
    target: str | None = None


# Random statements

terms = st.one_of(st.sampled_from(VARIABLES), st.sampled_from(VARIABLES), st.sampled_from(VALUES))
arguments = st.one_of(terms, terms, terms, st.just("_"))


@st.composite
def atoms(draw: st.DrawFn) -> Literal:
    name = draw(st.sampled_from(sorted(ARITY)))
    return ("atom", name, tuple(draw(arguments) for _ in range(ARITY[name])))


variables = st.sampled_from(VARIABLES)
simple = st.one_of(
    atoms(),
    atoms(),
    st.tuples(st.just("fn"), terms, variables),
    st.tuples(st.just("cmp"), st.sampled_from(["<", "<=", "=", "!="]), terms, terms),
    st.tuples(st.just("inc"), variables, variables),
)


def bodies(literals: st.SearchStrategy[Literal], least: int = 1) -> st.SearchStrategy[Body]:
    return st.lists(literals, min_size=least, max_size=3)


@st.composite
def aggregates(draw: st.DrawFn, inner: st.SearchStrategy[Literal]) -> Literal:
    op = draw(st.sampled_from(["count", "sum", "min", "max"]))
    target = None if op == "count" else draw(variables)
    return ("agg", draw(variables), op, target, draw(bodies(inner)))


def compound(inner: st.SearchStrategy[Literal]) -> st.SearchStrategy[Literal]:
    return st.one_of(
        st.tuples(st.just("neg"), bodies(inner)),
        st.tuples(st.just("or"), st.lists(bodies(inner), min_size=2, max_size=3)),
        aggregates(inner),
    )


literals = st.recursive(simple, compound, max_leaves=6)


@st.composite
def statements(draw: st.DrawFn) -> Statement:
    body = [*draw(bodies(atoms())), *draw(bodies(literals, least=0))]
    head = tuple(draw(st.lists(variables, max_size=2, unique=True)))
    if draw(st.integers(0, 3)):
        return Statement(head, body)
    op = draw(st.sampled_from(["count", "sum", "min", "max"]))
    return Statement(head, body, op, None if op == "count" else draw(variables))


@st.composite
def grounded_outside(draw: st.DrawFn) -> Statement:
    """An inline aggregate over anything, every variable of which has a value outside, but for its target."""
    op = draw(st.sampled_from(["count", "sum", "min", "max"]))
    inner = [("atom", "e", ("u", "_")), *draw(bodies(literals))]
    chance = draw(st.randoms(use_true_random=False))
    outer = [("atom", "e", ("x", "y")), ("atom", "g", ("z",))]
    outer.append(("agg", "result", op, None if op == "count" else "u", permuted(inner, chance)))
    return Statement(("x", "y", "z", "result"), permuted(outer, chance))


@st.composite
def facts(draw: st.DrawFn) -> Facts:
    value = st.sampled_from(VALUES)
    out: Facts = {n: draw(st.sets(st.tuples(*[value] * k), min_size=1, max_size=5)) for n, k in ARITY.items()}
    out["h"] = set(draw(st.dictionaries(value, value, min_size=1)).items())
    return out


# Text


def text(statement: Statement, rows: Facts | None = None) -> str:
    lines = ["e(x, y) -> int(x), int(y).", "f(x, y) -> int(x), int(y).", "g(x) -> int(x)."]
    lines.append("h[x] = y -> int(x), int(y).")
    for name, found in (rows or {}).items():
        for row in sorted(found):
            args = ", ".join(map(str, row))
            lines.append(f"h[{row[0]}] = {row[1]}." if name == "h" else f"{name}({args}).")
    lines.append(rule_text(statement))
    return "\n".join(lines) + "\n"


def rule_text(statement: Statement) -> str:
    keys, body = ", ".join(statement.head), body_text(statement.body)
    if statement.op is None:
        return f"p({keys}) <- {body}."
    return f"p[{keys}] = result <- agg<<result = {statement.op}({statement.target or ''})>> {body}."


def body_text(body: Body) -> str:
    return ", ".join(map(literal_text, body))


def literal_text(literal: Literal) -> str:
    match literal:
        case ("atom", name, args):
            return f"{name}({', '.join(map(str, args))})"
        case ("fn", key, value):
            return f"h[{key}] = {value}"
        case ("cmp", op, a, b):
            return f"{a} {op} {b}"
        case ("inc", var, a):
            return f"{var} = {a} + 1"
        case ("neg", body):
            return f"!({body_text(body)})"
        case ("or", branches):
            return "(" + " ; ".join(map(body_text, branches)) + ")"
        case ("agg", var, op, target, body):
            return f"{var} = {op} {target or ''} : {{ {body_text(body)} }}"
    raise AssertionError(literal)


# Changes that mean nothing


def permuted(body: Body, chance: random.Random) -> Body:
    """The same literals in another order, at every depth."""
    out = [_permuted_inside(literal, chance) for literal in body]
    chance.shuffle(out)
    return out


def _permuted_inside(literal: Literal, chance: random.Random) -> Literal:
    match literal:
        case ("neg", body):
            return ("neg", permuted(body, chance))
        case ("or", branches):
            return ("or", permuted([permuted(b, chance) for b in branches], _Still()))
        case ("agg", var, op, target, body):
            return ("agg", var, op, target, permuted(body, chance))
    return literal


class _Still(random.Random):
    """Branches keep their order, and are not literals themselves."""

    def shuffle(self, _: list) -> None:  # type: ignore[override]
        return None


def renamed(statement: Statement, names: dict[str, str]) -> Statement:
    def rename(value: object) -> object:
        if isinstance(value, tuple) and value and value[0] in ("cmp", "atom", "agg"):
            kind, word, *rest = value
            if kind == "agg":
                var, op, rest = word, rest[0], rest[1:]
                return (kind, rename(var), op, *map(rename, rest))
            return (kind, word, *map(rename, rest))
        if isinstance(value, tuple):
            return tuple(map(rename, value))
        if isinstance(value, list):
            return [rename(v) for v in value]
        return names.get(value, value) if isinstance(value, str) else value

    head = tuple(names.get(n, n) for n in statement.head)
    target = names.get(statement.target or "", statement.target)
    return Statement(head, rename(statement.body), statement.op, target)  # type: ignore[arg-type]


# Meaning


def answer(statement: Statement, rows: Facts) -> set[Row]:
    """The rows of p.  REQUIRES: the statement is safe."""
    if statement.op is None:
        outside = set(statement.head)
        return {
            tuple(env[n] for n in statement.head)
            for clause in clauses(statement.body)
            for env in solutions(clause, {}, outside, rows)
        }
    groups: dict[Row, list[int]] = {}
    wanted = {*statement.head, *((statement.target,) if statement.target else ())}
    for assignment in assignments(statement.body, {}, wanted, rows):
        env = dict(assignment)
        key = tuple(env[n] for n in statement.head)
        groups.setdefault(key, []).append(env.get(statement.target or "", 1))
    return {(*key, aggregate(statement.op, values)) for key, values in groups.items()}


def aggregate(op: str, values: list[int]) -> int:
    return {"count": len, "sum": sum, "min": min, "max": max}[op](values)  # type: ignore[operator]


def clauses(body: Body) -> list[Body]:
    """The body without disjunctions outside negations and aggregates: a clause for each choice."""
    choices = [
        [c for branch in literal[1] for c in clauses(branch)] if literal[0] == "or" else [[literal]]
        for literal in body
    ]
    return [[x for part in choice for x in part] for choice in itertools.product(*choices)]


def assignments(body: Body, env: Environment, outside: set[str], rows: Facts) -> set[frozenset]:
    """Distinct assignments of a body's variables, `_` being one each, given what is bound around it."""
    counter = itertools.count()
    named = [_without_wildcards(literal, counter) for literal in body]
    return {
        frozenset(found.items())
        for clause in clauses(named)
        for found in solutions(clause, env, outside, rows)
    }


def _without_wildcards(literal: Literal, counter: Iterator[int]) -> Literal:
    match literal:
        case ("atom", name, args):
            return ("atom", name, tuple(f"_{next(counter)}" if a == "_" else a for a in args))
        case ("or", branches):
            return ("or", [[_without_wildcards(x, counter) for x in b] for b in branches])
    return literal


def names_in(value: object) -> set[str]:
    """Variables of a literal or body, at any depth."""
    match value:
        case ("atom", _, args):
            return {a for a in args if isinstance(a, str) and a != "_"}
        case ("fn", key, var) | ("inc", var, key):
            return {a for a in (key, var) if isinstance(a, str)}
        case ("cmp", _, a, b):
            return {x for x in (a, b) if isinstance(x, str)}
        case ("neg", body):
            return names_in(body)
        case ("or", branches):
            return set().union(*map(names_in, branches))
        case ("agg", var, _, target, body):
            return {var, *((target,) if target else ())} | names_in(body)
        case list():
            return set().union(*map(names_in, value))
    raise AssertionError(value)


def solutions(clause: Body, env: Environment, outside: set[str], rows: Facts) -> Iterator[Environment]:
    """Environments over the clause's own scope that satisfy all its literals."""
    scope = _scope(clause, outside) | set(env)
    found = [dict(env)]
    for literal in clause:
        if literal[0] in ("atom", "fn"):
            found = [e for known in found for e in _matched(literal, known, rows)]
    others = [x for x in clause if x[0] not in ("atom", "fn")]
    for known in found:
        yield from _completed(others, known, scope, rows)


def _scope(clause: Body, outside: set[str]) -> set[str]:
    """Variables of the clause itself: used outside negations and aggregates, or around one of these."""
    own = {n for x in clause if x[0] != "neg" for n in visible(x)} | outside
    for literal in clause:
        if literal[0] in ("neg", "agg"):
            inside = names_in(literal) if literal[0] == "neg" else _inner(literal)
            around = outside.union(*(visible(x) for x in clause if x is not literal))
            own |= inside & around
    return own


def visible(literal: Literal) -> set[str]:
    """Names that others can share: what an aggregate uses inside is its own."""
    match literal:
        case ("agg", var, *_):
            return {var}
        case ("neg", body):
            return set().union(*map(visible, body))
        case ("or", branches):
            return {n for branch in branches for x in branch for n in visible(x)}
    return names_in(literal)


def _inner(aggregate: Literal) -> set[str]:
    return names_in(aggregate[4]) | ({aggregate[3]} if aggregate[3] else set())


def _matched(literal: Literal, env: Environment, rows: Facts) -> Iterator[Environment]:
    name, args = (literal[1], literal[2]) if literal[0] == "atom" else ("h", literal[1:])
    for row in rows[name]:
        extended = dict(env)
        if all(a == "_" or extended.setdefault(a, v) == v if isinstance(a, str) else a == v
               for a, v in zip(args, row, strict=True)):  # fmt: skip
            yield extended


def _completed(others: Body, env: Environment, scope: set[str], rows: Facts) -> Iterator[Environment]:
    """Computes what is determined, tries all values for what is not, then tests everything."""
    for literal in others:
        new = _determined(literal, env, scope, rows)
        if new is not None:
            yield from _completed(others, {**env, **new}, scope, rows)
            return
    missing = sorted(scope - set(env))
    if missing:
        for value in DOMAIN:
            yield from _completed(others, {**env, missing[0]: value}, scope, rows)
    elif all(_holds(x, env, rows, scope) for x in others):
        yield env


def _determined(literal: Literal, env: Environment, scope: set[str], rows: Facts) -> Environment | None:
    """The variable that a literal gives a value, when it has none and all others have."""
    match literal:
        case ("inc", var, a) if var not in env and a in env:
            return {var: env[a] + 1}
        case ("cmp", "=", a, b):
            for this, other in ((a, b), (b, a)):
                if isinstance(this, str) and this not in env and (other in env or isinstance(other, int)):
                    return {this: env[other] if isinstance(other, str) else other}
        case ("agg", var, *_) if var not in env and _inner(literal) & scope <= set(env):
            value = _aggregated(literal, env, scope, rows)
            return None if value is None else {var: value}
    return None


def _aggregated(literal: Literal, env: Environment, scope: set[str], rows: Facts) -> int | None:
    _, _, op, target, body = literal
    given = {n: v for n, v in env.items() if n in _inner(literal) & scope}
    wanted = {target} if target else set()
    found = assignments(body, given, wanted, rows)
    values = [dict(a)[target] if target else 1 for a in found]
    return aggregate(op, values) if values or op in ("count", "sum") else None


def _holds(literal: Literal, env: Environment, rows: Facts, scope: set[str]) -> bool:
    def value(term: object) -> int:
        return env[term] if isinstance(term, str) else term  # type: ignore[return-value]

    match literal:
        case ("cmp", op, a, b):
            x, y = value(a), value(b)
            return {"<": x < y, "<=": x <= y, "=": x == y, "!=": x != y}[op]
        case ("inc", var, a):
            return value(var) == value(a) + 1
        case ("agg", var, *_):
            return _aggregated(literal, env, scope, rows) == env[var]
        case ("neg", body):
            given = {n: v for n, v in env.items() if n in names_in(body)}
            outside = set(given)
            return not any(True for clause in clauses(body) for _ in solutions(clause, given, outside, rows))
    raise AssertionError(literal)


def shuffled(names: Iterable[str], chance: random.Random) -> dict[str, str]:
    """Other names for variables, some of which dlog makes itself."""
    pool = ["x", "y", "z", "u", "_1", "_2", "_3", "_w0", "_t0", "_t1", "?a", "result_"]
    chance.shuffle(pool)
    return dict(zip(names, pool, strict=False))
