"""Types do not depend on the order of statements or literals."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dlog
from dlog.ir.primitives import ANY
from dlog.ir.rules import Primitive, Var
from dlog.ir.types.type_nodes import Node, join, restrict
from dlog.ir.types.typecheck import TypeChecker
from dlog.ir.types.widening import settle

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=100)

LITERALS = ["1", "2.5", "3u", '"a"', '"2024-01-31"', "true"]
PREDICATES = ["a", "b", "c", "d", "p", "q"]
TYPES = ["int", "unsigned", "float", "decimal", "string", "date", "decimal[8, 2]"]
VARIABLES = ["x", "y", "z", "w"]

names = st.sampled_from(PREDICATES)
variables = st.sampled_from(VARIABLES)
operands = st.one_of(variables, variables, st.sampled_from(LITERALS[:3]))


@st.composite
def primitives(draw: st.DrawFn) -> str:
    a, b, c = draw(operands), draw(operands), draw(variables)
    form = draw(st.sampled_from(["+", "*", "/", "max", "%", "=", "<", "to_string", "as", "neg"]))
    match form:
        case "max":
            return f"{c} = max({a}, {b})"
        case "=" | "<":
            return f"{a} {form} {b}"
        case "to_string":
            return f"{c} = to_string({a})"
        case "as":
            return f"{c} = as({a}, {draw(st.sampled_from(['int', 'unsigned', 'float', 'string']))})"
        case "neg":
            return f"{c} = -{draw(variables)}"
    return f"{c} = {a} {form} {b}"


@st.composite
def rules(draw: st.DrawFn) -> tuple[str, list[str]]:
    atoms = draw(st.lists(st.builds("{}({})".format, names, variables), min_size=1, max_size=3))
    body = atoms + draw(st.lists(primitives(), max_size=3))
    # What no atom binds is bound by a comparison with itself in c: only types matter here.
    bound = [f"c2({v}, _)" for v in VARIABLES if not any(f"({v})" in a for a in atoms)]
    return f"{draw(names)}({draw(variables)})", body + [f"{b[:-3]}_)" for b in bound]


declarations = st.dictionaries(names, st.sampled_from(TYPES), max_size=2)
all_facts = st.lists(st.tuples(names, st.sampled_from(LITERALS)), max_size=5)
programs = st.lists(rules(), min_size=1, max_size=4)


def outcome(statements: list[str]) -> dict[str, str] | None:
    """Types of all columns, or None when the program is refused."""
    try:
        program = dlog.check("\n".join(statements))
    except dlog.DlogError:
        return None
    program.check()
    return {
        f"{p.name}.{i}": str(c.type) for p in program.predicates.values() for i, c in enumerate(p.columns)
    }


@relaxed
@given(declarations, all_facts, programs, st.randoms(use_true_random=False))
def test_order_of_statements_changes_no_type(
    declared: dict[str, str],
    facts: list[tuple[str, str]],
    program: list[tuple[str, list[str]]],
    chance: random.Random,
) -> None:
    head = [f"{name}(x) -> {type}(x)." for name, type in declared.items()]
    head += [f"{name}(x) -> ." for name in PREDICATES if name not in declared]
    # One column each for what a rule's atoms do not bind, so that rules stay apart.
    head += ["c2(x, y) -> ."]
    first = [*head, *(f"{n}({v})." for n, v in facts), *(f"{h} <- {', '.join(b)}." for h, b in program)]
    second = [*head, *(f"{n}({v})." for n, v in facts)]
    for h, body in program:
        chance.shuffle(body)
        second.append(f"{h} <- {', '.join(body)}.")
    chance.shuffle(second)
    assert outcome(first) == outcome(second)


NUMBERS = ("int", "unsigned", "float", "decimal")
TIMES = ("datetime", "timestamp", "duration")
SETS = [s for names in (NUMBERS, TIMES) for k in (1, 2, 3, 4) for s in itertools.combinations(names, k)]
SETS.append((*NUMBERS, *TIMES))
MIXED = {("int", t, t) for t in ("float", "decimal")} | {(t, "int", t) for t in ("float", "decimal")}
ALLOWED = {
    "add": {(t, t, t) for t in (*NUMBERS, "duration")}
    | MIXED
    | {("datetime", "duration", "datetime"), ("timestamp", "duration", "timestamp")}
    | {("duration", "datetime", "datetime"), ("duration", "timestamp", "timestamp")},
    "sub": {(t, t, t) for t in (*NUMBERS, "duration")}
    | MIXED
    | {("datetime", "duration", "datetime"), ("timestamp", "duration", "timestamp")}
    | {("datetime", "datetime", "duration"), ("timestamp", "timestamp", "duration")},
    "mul": {(t, t, t) for t in NUMBERS}
    | MIXED
    | {("int", "duration", "duration"), ("duration", "int", "duration")},
    "div": {(t, t, t) for t in NUMBERS}
    | MIXED
    | {("duration", "int", "duration"), ("duration", "duration", "int")},
}


class _Checker:
    """As much of a type checker as widening needs, for one form `c = a op b`."""

    def __init__(self, op: str, *candidates: tuple[str, ...]):
        self.nodes = dict(zip("abc", map(Node, candidates), strict=True))
        self.widening = [(None, Primitive(op, (Var("a"), Var("b")), Var("c")))]
        self.quotients: list = []
        self.conflicts = 0

    def node(self, _: object, operand: Var) -> Node:
        return self.nodes[operand.name]

    def conflict(self, *_: object, **__: object) -> None:
        self.conflicts += 1

    def call(self, operand: Var) -> str:
        return operand.name

    def why(self, *_: object) -> None:
        return None


@pytest.mark.parametrize("op", ALLOWED)
def test_widening_settles_on_an_allowed_triple(op: str) -> None:
    """For all candidates of operands and result: a triple that is allowed, or one conflict."""
    for candidates in itertools.product(SETS, repeat=3):
        checker = _Checker(op, *candidates)
        settle(checker)  # type: ignore[arg-type]
        found = [t for t in itertools.product(*candidates) if t in ALLOWED[op]]
        numbers = any(t[0] in NUMBERS and t[1] in NUMBERS for t in found)
        texts = [{t[i] for t in found} for i in (0, 1)]
        unknown = not numbers and any(len(t) > 1 and not t & set(NUMBERS) for t in texts)
        possible = bool(found) and not unknown
        assert checker.conflicts == (0 if possible else 1), candidates
        if possible:
            chosen = tuple(TypeChecker.type_of(None, node).name for node in checker.nodes.values())  # type: ignore[arg-type]
            assert chosen in ALLOWED[op] and all(t in c for t, c in zip(chosen, candidates, strict=True)), (
                candidates
            )


MEANS = {**dict.fromkeys(NUMBERS, "float"), "duration": "duration"}


@pytest.mark.parametrize("form", ["m[] = r <- agg<<r = mean(x)>> q(x).", "m[] = r <- r = mean x : { q(x) }."])
@pytest.mark.parametrize("argument", [None, *MEANS])
@pytest.mark.parametrize("result", [None, "float", "duration", "int"])
def test_the_type_of_a_mean_follows_from_its_argument_and_back(
    form: str, argument: str | None, result: str | None
) -> None:
    """Where nothing says more, it is one of numbers."""
    text = f"q(x) -> {argument}(x)." if argument else "q(x) <- q(x)."
    text += f" m[] = r -> {result}(r)." if result else ""
    fitting = [a for a in MEANS if argument in (None, a) and result in (None, MEANS[a])]
    if not fitting:
        with pytest.raises(dlog.DlogError, match="type conflict: "):
            dlog.check(f"{text} {form}")
        return
    program = dlog.check(f"{text} {form}")
    (x,), (r,) = (program.predicates[name].columns for name in "qm")
    assert (x.type.name, r.type.name) == (fitting[0], MEANS[fitting[0]])


@given(st.lists(st.tuples(st.integers(0, 5), st.sets(st.sampled_from(ANY), min_size=1)), max_size=8))
def test_restrictions_commute(restrictions: list[tuple[int, set[str]]]) -> None:
    """The model: a node has what all restrictions of its class have in common."""
    nodes = [Node() for _ in range(6)]
    for a, b in ((0, 1), (2, 3)):
        assert join(nodes[a], nodes[b])
    expected = [set(ANY) for _ in nodes]
    refused = set()
    for index, types in restrictions:
        group = {0: (0, 1), 1: (0, 1), 2: (2, 3), 3: (2, 3)}.get(index, (index,))
        possible = expected[index] & types
        assert restrict(nodes[index], tuple(types)) == bool(possible)
        if not possible:
            refused.add(index)
            continue
        for member in group:
            expected[member] = possible
    assert [set(n.find().candidates) for n in nodes] == expected
