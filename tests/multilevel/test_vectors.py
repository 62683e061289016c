"""The worked examples: what expressions bind, what deltas, domains and programs look like.

ML is the paper on multilevel incremental view maintenance, MI that on map initialisation.
"""

from __future__ import annotations

import itertools
import random

import pytest

from dlog.language.ast import Node
from dlog.m3.convert import convert
from dlog.m3.syntax import ast
from dlog.m3.syntax.parse import parse
from dlog.m3.syntax.print import print_program
from dlog.multilevel.binding import NONE, binding
from dlog.multilevel.decompose import expand
from dlog.multilevel.deltas import Event, delta
from dlog.multilevel.domains import domain
from dlog.multilevel.initial import AtReady, OnRead, Refused, Zero, initial
from dlog.multilevel.maps import Catalogue
from dlog.multilevel.materialise import Materialiser
from dlog.multilevel.names import plain, replaced, same
from dlog.multilevel.notation import read, text
from dlog.multilevel.program import Limits, Program, Refusal, compile
from dlog.multilevel.simplify import LAWS, Budget, TooManyRewrites, everywhere, simplify
from tests.multilevel.running import Running, source
from tests.oracle.agca_naive import Naive

# ---- ML Table 1


@pytest.mark.parametrize(
    ("expression", "inputs", "outputs"),
    [
        ("R(a, b)", "", "ab"),
        ("{c < d}", "cd", ""),
        ("{c = d}", "cd", ""),
        ("(c ^= d)", "d", "c"),
        ("AggSum([a], R(a, b) * {b < c})", "c", "a"),
        ("{b < AggSum([], S(c, d) * d * {a > c})}", "ab", ""),
        ("AggSum([a, b], R(a, b) * {b < AggSum([], S(c, d) * d * {a > c})})", "", "ab"),
        ("x * R(x)", "x", ""),
        ("R(x) + AggSum([], R(x))", "x", ""),
    ],
)
def test_table_1(expression: str, inputs: str, outputs: str) -> None:
    found = binding(read(expression))
    assert (sorted(found.inputs), sorted(found.outputs)) == (sorted(inputs), sorted(outputs))


# ---- laws with side conditions


@pytest.mark.parametrize(
    ("law", "before", "after"),
    [
        # A hidden variable is not the one that the lift binds.
        ("unify", "AggSum([], (b ^= 4) * S(b) * AggSum([], R(a, b) * b))", None),
        ("unify", "AggSum([], (b ^= 4) * T(a) * b * AggSum([], R(a, b) * b))",
         "AggSum([], T(a) * 4 * AggSum([], R(a, b) * b))"),
        ("unify", "AggSum([a], (x ^= a) * R(a, x))", "R(a, a)"),
        ("unify", "AggSum([x], (x ^= 4) * R(a, x))", None),
        # What x equals is not what is called so inside.
        ("unify", "AggSum([], (x ^= y + 1) * T(a) * AggSum([], R(y, z) * x))",
         "AggSum([], T(a) * AggSum([], R(y_1, z) * (y + 1)))"),
        ("assume", "{a < b} * AggSum([], R(c, d) * {a < b})", "{a < b} * AggSum([], R(c, d))"),
        ("assume", "{a < b} * AggSum([], R(c, b) * {a < b})", None),
        ("pull", "AggSum([b], (b ^= a + 5) * R(a, b, c))", "(b ^= a + 5) * AggSum([a, b], R(a, b, c))"),
        ("erase", "AggSum([], R(a, b) * AggSum([], R(b, c)))", "AggSum([], R(a, b) * R(b_1, c))"),
        ("binary", "EXISTS({a < b})", "{a < b}"),
        ("binary", "EXISTS(R(a))", None),
        ("equalities", "AggSum([a], R(a, b) * S(c, d) * {b = c})", "AggSum([a], R(a, c) * S(c, d))"),
        ("locate", "R(c, b) * {b = a}", "(b ^= a) * R(c, b)"),
        ("locate", "S(c) * (R(c, b) + T(b)) * {a = b}", "(b ^= a) * S(c) * (R(c, b) + T(b))"),
        # Neither is bound outside; an expression may have another type; a comparison of parameters.
        ("locate", "R(c, b) * {b = c}", None),
        ("locate", "R(c, b) * {b = a + 1}", None),
        ("locate", "R(c, b) * {a = a}", None),
        ("factorise", "(p * q) + (q * r) + (r * s)", "(q * (p + r)) + (r * s)"),
        ("cancel", "R(a) + (-1 * R(a))", "0"),
        ("cancel", "(2 * R(a)) + (3 * R(a))", "5 * R(a)"),
        ("cancel", "R(a) + (-1 * R(b))", None),
        ("fold", "2 * 3 * R(a)", "6 * R(a)"),
        ("fold", "2147483647 * 2 * R(a)", "2147483647 * 2 * R(a)"),
    ],
)  # fmt: skip
def test_law(law: str, before: str, after: str | None) -> None:
    node = read(before)
    found = LAWS[law](node, frozenset("a") if law in ("pull", "locate") else NONE)
    assert text(found) == text(read(after) if after is not None else node)


def test_simplification_has_a_budget() -> None:
    with pytest.raises(TooManyRewrites):
        simplify(read("AggSum([], (a ^= x) * R(a, b) * {b = 1 + 1} * 2 * 3)"), frozenset("x"), Budget(1))


# ---- deltas


@pytest.mark.parametrize(
    ("expression", "event", "expected"),
    [
        # ML 3.1
        ("AggSum([], R(a, b) * S(c, d) * {b < c} * a * d)", Event("R", 1, ("x", "y")),
         "x * AggSum([], S(c, d) * {y < c} * d)"),
        # a domain restricts where a lift is compared
        ("AggSum([n], P(pk) * (n ^= AggSum([pk], L(pk, q) * q)))", Event("L", 1, ("dpk", "dq")),
         "P(dpk) * ((n ^= AggSum([dpk], L(dpk, q) * q) + dq) + (-1 * (n ^= AggSum([dpk], L(dpk, q) * q))))"),
        ("EXISTS(AggSum([a], R(a, b, c) * {b > 10}))", Event("R", 1, ("da", "db", "dc")),
         "(a ^= da) * {db > 10} * (EXISTS(AggSum([da], R(da, b, c) * {b > 10}) + 1) + "
         "(-1 * EXISTS(AggSum([da], R(da, b, c) * {b > 10}))))"),
        ("AggSum([], EXISTS(AggSum([b], R(a, b) * {a > 10})))", Event("R"),
         "AggSum([], DOMAIN(AggSum([b], (DELTA R)(a, b) * {a > 10})) * "
         "(EXISTS(AggSum([b], R(a, b) * {a > 10}) + AggSum([b], (DELTA R)(a, b) * {a > 10})) + "
         "(-1 * EXISTS(AggSum([b], R(a, b) * {a > 10})))))"),
        # the number of rows of a lift that is not used does not change
        ("AggSum([], P(pk) * (n ^= AggSum([pk], L(pk, q) * q)))", Event("L", 1, ("dpk", "dq")), "0"),
    ],
)  # fmt: skip
def test_delta(expression: str, event: Event, expected: str) -> None:
    found = simplify(delta(read(expression), event), event.scope)
    assert same(found, read(expected), fixed=True) is not None, text(found)


@pytest.mark.parametrize(
    "expression",
    [
        "S(a, b) * (u ^= AggSum([a], R(a, x))) * (v ^= AggSum([b], R(y, b)))",
        "EXISTS(AggSum([a], R(a, x))) * EXISTS(AggSum([b], R(y, b)))",
    ],
)
def test_two_aggregates_of_one_relation_change_one_after_the_other(expression: str) -> None:
    """Each has a domain of its own: one domain for both would be wrong."""
    node = read(expression)
    names = binding(node).outputs
    for seed in range(50):
        rng = random.Random(seed)
        rows = {(rng.randint(0, 1), rng.randint(0, 1)): rng.choice((-1, 1)) for _ in range(3)}
        bags = {n: {(rng.randint(0, 1), rng.randint(0, 1)): 1 for _ in range(2)} for n in "RS"}
        after = {**bags, "R": _added(bags["R"], rows)}
        change = Naive(bags, {"R": rows}).table(delta(node, Event("R")), names)
        assert _added(Naive(bags).table(node, names), change) == Naive(after).table(node, names)


def _added(left: dict, right: dict) -> dict:
    found = {k: left.get(k, 0) + right.get(k, 0) for k in {*left, *right}}
    return {k: v for k, v in found.items() if v}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("AggSum([b], (DELTA R)(a, b) * a)", "DOMAIN(AggSum([b], (DELTA R)(a, b) * a))"),
        # Rows of a batch may cancel, and the rows they are joined with differ.
        ("AggSum([b], (DELTA R)(a, b) * S(a, c))", "DOMAIN(AggSum([b], EXISTS((DELTA R)(a, b))))"),
        ("AggSum([b], (DELTA R)(a, b)) * T(b) + AggSum([b], (DELTA R)(a, b) * T(a))",
         "DOMAIN(AggSum([b], EXISTS((DELTA R)(a, b))))"),
        ("((k ^= x) * S(k, b)) + ((k ^= x) * S(b, k))", "(k ^= x)"),
        ("((k ^= x) * S(k, b)) + ((k ^= y) * S(b, k))", "DOMAIN((k ^= x) + (k ^= y))"),
        ("T(k) * {x = k} * {y > 3}", "(k ^= x) {y > 3}"),
        ("S(a, b) * {a < x}", ""),
    ],
)  # fmt: skip
def test_domain(change: str, expected: str) -> None:
    assert " ".join(map(text, domain(read(change), frozenset("xy")))) == expected


# ---- expansion


def test_what_is_inside_a_lift_is_not_expanded() -> None:
    found = expand(read("P(a) * (R(b) + S(c)) * (x ^= R(a) + S(a))"))
    assert [len(m) for m in found] == [3, 3]


# ---- maps


@pytest.mark.parametrize(
    ("expression", "expected", "maps"),
    [
        ("AggSum([a], R(a, b) + R(a, b))", "2 * M1[][a]", 1),
        ("(R(a, b) * S(c, d)) + (R(b, c) * S(a, d))",
         "(M1[][a, b] * M2[][c, d]) + (M1[][b, c] * M2[][a, d])", 2),
        ("R(a) * S(c) * (e ^= R(c) * S(a)) * 5", "5 * M1[][a] * M2[][c] * (e ^= M1[][c] * M2[][a])", 2),
        ("AggSum([a], R(a, b) * (c ^= S(a)) * {c > 0})", "M1[][a] * {M2[][a] > 0}", 2),
    ],
)  # fmt: skip
def test_maps_are_shared(expression: str, expected: str, maps: int) -> None:
    catalogue = Catalogue(64)
    found = Materialiser(catalogue, Catalogue(64)).statement(read(expression), NONE)
    assert same(found, read(expected)) is not None, text(found)
    assert len(catalogue.maps) == maps


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ("R(a)", Zero),
        ("(a ^= 1)", AtReady),
        ("(a ^= R(b))", Refused),
        ("(a ^= 1) * R(a)", Zero),
        ("(a ^= 1) * R(b)", Zero),
        ("(a ^= AggSum([], S(c))) * R(b)", Zero),
        ("(a ^= AggSum([], S(c)))", AtReady),
        ("T1(a) * {a < AggSum([], S(c))}", AtReady),
        ("AggSum([c], (c ^= AggSum([a], R2(r, b) * (a ^= r))) * (a ^= 3))", Refused),
        ("AggSum([], R2(a, b) * {b < x})", OnRead),
    ],
)
def test_first_values(definition: str, expected: type) -> None:
    streams = [source("R(a)"), source("S(a)"), source("R2(a, b)")]
    sources = {s.name: s for s in [*streams, source("T1(a)", ast.TABLE)]}
    assert isinstance(initial(read(definition), sources, on_read=True), expected)


def test_first_value_of_nested_sums() -> None:
    """An AggSum over no rows is 0, and so is the lift's variable, which then is added up."""
    node = read("(z ^= AggSum([], (y ^= AggSum([], (x ^= AggSum([], R(r, b) * b)) * x)) * y))")
    found = initial(node, {"R": source("R(a, b)")})
    assert isinstance(found, AtReady) and text(found.expression) == "(z ^= 0)"


# ---- whole programs


def assert_program(found: Program, expected: str) -> None:
    """Each expected map and statement is there, up to names; and no more."""
    wanted = _plain(parse(expected, dialect=ast.DBTOASTER))
    given = _plain(found.m3)
    names = {m.name: _name_of(m, given) for m in wanted.maps}
    assert len(given.maps) == len(wanted.maps), [m.name for m in given.maps]
    assert len(given.triggers) == len(wanted.triggers)
    for trigger in wanted.triggers:
        mine = next(t for t in given.triggers if (t.event, t.relation) == (trigger.event, trigger.relation))
        assert len(mine.statements) == len(trigger.statements)
        for statement in _renamed(trigger, names).statements:
            assert any(_same_statement(s, statement) for s in mine.statements), text(statement.expression)


def _plain(node: Node) -> Node:
    if isinstance(node, ast.MapAccess):
        return ast.MapAccess(node.name, None, *(tuple(map(plain, part)) for part in (node.inputs, node.keys)))
    return plain(node) if isinstance(node, ast.Variable) else replaced(node, _plain)


def _name_of(wanted: ast.MapDeclaration, given: ast.Program) -> str:
    for other in given.maps:
        if same(_body(wanted.definition), _body(other.definition)) is not None:
            return other.name
    raise AssertionError(text(wanted.definition))


def _body(node: Node) -> Node:
    return simplify(everywhere(node, NONE, LAWS["lifted"]))


def _renamed(node: Node, names: dict[str, str]) -> Node:
    node = replaced(node, lambda child: _renamed(child, names))
    if isinstance(node, ast.MapAccess):
        return ast.MapAccess(names[node.name], None, node.inputs, node.keys)
    return node


def _same_statement(left: ast.Assign, right: ast.Assign) -> bool:
    both = [ast.Product((s.target, simplify(s.expression))) for s in (left, right)]
    return left.op == right.op and same(*both) is not None


RS = [source("R(a, b)"), source("S(c, d)")]


def program(definitions: dict[str, str], sources: list[ast.Source], **options) -> Program:
    found = compile({name: read(d) for name, d in definitions.items()}, sources, **options)
    assert isinstance(found, Program), found
    return found


def test_inequality_join_in_batches() -> None:
    """ML 3.1, 3.2: no map has an input variable."""
    found = program({"Q": "AggSum([], R(a, b) * S(c, d) * {b < c} * a * d)"}, RS)
    assert_program(
        found,
        """
        DECLARE MAP Q(long)[][] := AggSum([], R(a, b) * S(c, d) * {b < c} * a * d);
        DECLARE MAP S1(long)[][c: long] := AggSum([c], S(c, d) * d);
        DECLARE MAP R1(long)[][b: long] := AggSum([b], R(a, b) * a);
        ON BATCH UPDATE OF R {
          Q(long)[][] += AggSum([], (DELTA R)(a, b) * a * S1(long)[][c] * {b < c});
          R1(long)[][b] += AggSum([b], (DELTA R)(a, b) * a);
        }
        ON BATCH UPDATE OF S {
          Q(long)[][] += AggSum([], (DELTA S)(c, d) * d * R1(long)[][b] * {b < c});
          S1(long)[][c] += AggSum([c], (DELTA S)(c, d) * d);
        }""",
    )


def test_inequality_join_with_input_variables() -> None:
    """ML 3.2: each map has an input variable, and is computed from a lower map when it is first read."""
    found = program({"Q": "AggSum([], R(a, b) * S(c, d) * {b < c} * a * d)"}, RS, batch=False, inputs=True)
    assert [(m.name, type(m.initial)) for m in found.maps if m.inputs] == [("M2", OnRead), ("M4", OnRead)]
    printed = print_program(convert(found.m3, ast.A5))
    statements = [line.strip() for line in printed.splitlines() if line.endswith(";") and line[0] == " "]
    assert statements[-12:-9] + statements[-6:-3] == [
        "Q(int)[][] += a:int * M2(int)[b:int][]:(AggSum([], M3(int)[][c:int] * {b:int < c:int}));",
        "M4(int)[c:int][] += {b:int < c:int} * a:int;",
        "M5(int)[][b:int] += a:int;",
        "Q(int)[][] += d:int * M4(int)[c:int][]:(AggSum([], M5(int)[][b:int] * {b:int < c:int}));",
        "M2(int)[b:int][] += {b:int < c:int} * d:int;",
        "M3(int)[][c:int] += d:int;",
    ]


def test_decomposition_of_a_chain() -> None:
    """ML 3.2: S in the middle falls apart."""
    sources = [source("R(a, b)"), source("S(b, c)"), source("T(c, d, e)")]
    found = program({"Q": "AggSum([], R(a, b) * S(b, c) * T(c, d, e) * a * d)"}, sources)
    assert_program(
        found,
        """
        DECLARE MAP Q(long)[][] := AggSum([], R(a, b) * S(b, c) * T(c, d, e) * a * d);
        DECLARE MAP MR(long)[][b: long] := AggSum([b], S(b, c) * T(c, d, e) * d);
        DECLARE MAP MS1(long)[][b: long] := AggSum([b], R(a, b) * a);
        DECLARE MAP MS2(long)[][c: long] := AggSum([c], T(c, d, e) * d);
        DECLARE MAP MT(long)[][c: long] := AggSum([c], R(a, b) * S(b, c) * a);
        DECLARE MAP MRT(long)[][b: long, c: long] := S(b, c);
        ON BATCH UPDATE OF R {
          Q(long)[][] += AggSum([], (DELTA R)(a, b) * a * MR(long)[][b]);
          MT(long)[][c] += AggSum([c], (DELTA R)(a, b) * a * MRT(long)[][b, c]);
          MS1(long)[][b] += AggSum([b], (DELTA R)(a, b) * a);
        }
        ON BATCH UPDATE OF S {
          Q(long)[][] += AggSum([], (DELTA S)(b, c) * MS1(long)[][b] * MS2(long)[][c]);
          MR(long)[][b] += AggSum([b], (DELTA S)(b, c) * MS2(long)[][c]);
          MT(long)[][c] += AggSum([c], (DELTA S)(b, c) * MS1(long)[][b]);
          MRT(long)[][b, c] += (DELTA S)(b, c);
        }
        ON BATCH UPDATE OF T {
          Q(long)[][] += AggSum([], (DELTA T)(c, d, e) * d * MT(long)[][c]);
          MR(long)[][b] += AggSum([b], (DELTA T)(c, d, e) * d * MRT(long)[][b, c]);
          MS2(long)[][c] += AggSum([c], (DELTA T)(c, d, e) * d);
        }""",
    )


def test_self_join_in_batches() -> None:
    """The rows of the batch are joined to each other, so their sums are a map."""
    bids = source("BIDS(t, i, b, v, p)")
    both = "AggSum([b], BIDS(t, i, b, v, p) * v * p * BIDS(t2, i2, b, v2, p2) * v2 * p2)"
    assert_program(
        program({"Q": both}, [bids]),
        f"""
        DECLARE MAP Q(long)[][b: long] := {both};
        DECLARE MAP M(long)[][b: long] := AggSum([b], BIDS(t, i, b, v, p) * v * p);
        DECLARE MAP D(long)[][b: long] := AggSum([b], (DELTA BIDS)(t, i, b, v, p) * v * p);
        ON BATCH UPDATE OF BIDS {{
          D(long)[][b] := AggSum([b], (DELTA BIDS)(t, i, b, v, p) * v * p);
          Q(long)[][b] += D(long)[][b] * ((2 * M(long)[][b]) + D(long)[][b]);
          M(long)[][b] += D(long)[][b];
        }}""",
    )


def test_range_delta() -> None:
    """ML 3.3: only entries between the old and the new bound change."""
    found = program({"Q": "R(a) * {a < AggSum([], S(x))}"}, [source("R(a)"), source("S(x)")], batch=False)
    assert_program(
        found,
        """
        DECLARE MAP Q(long)[][a: long] := R(a) * {a < AggSum([], S(x))};
        DECLARE MAP MR(long)[][a: long] := R(a);
        DECLARE MAP MS(long)[][] := AggSum([], S(x));
        ON + R(a) { Q(long)[][a] += {a < MS(long)[][]}; MR(long)[][a] += 1; }
        ON - R(a) { Q(long)[][a] += -1 * {a < MS(long)[][]}; MR(long)[][a] += -1; }
        ON + S(x) {
          Q(long)[][a] += MR(long)[][a] * ({a < (MS(long)[][] + 1)} + (-1 * {a < MS(long)[][]}));
          MS(long)[][] += 1;
        }
        ON - S(x) {
          Q(long)[][a] += MR(long)[][a] * ({a < (MS(long)[][] + -1)} + (-1 * {a < MS(long)[][]}));
          MS(long)[][] += -1;
        }""",
    )
    assert [s.statement.op for s in found.map("Q").steps] == ["+="] * 4


PARTS = [source("PART(pk)"), source("LINEITEM(pk, q, e double)")]
SMALL = """AggSum([], PART(pk) * LINEITEM(pk, q, e) * e *
    {q < (0.005 * AggSum([], LINEITEM(k, r, f) * r * {k = pk}))})"""


def test_bound_with_an_equality() -> None:
    """The rows that agree in a key, between the old and the new bound; bounds are computed alike."""
    assert_program(
        program({"Q": SMALL}, PARTS, batch=False),
        f"""
        DECLARE MAP Q(double)[][] := {SMALL};
        DECLARE MAP P(long)[][pk: long] := PART(pk);
        DECLARE MAP E(double)[][pk: long, q: long] := AggSum([pk, q], LINEITEM(pk, q, e) * e);
        DECLARE MAP S(long)[][pk: long] := AggSum([pk], LINEITEM(pk, q, e) * q);
        ON + LINEITEM(pk, q, e) {{
          Q(double)[][] += P(long)[][pk] * (AggSum([], E(double)[][pk, r] *
              ({{r < (0.005 * (S(long)[][pk] + q))}} + (-1 * {{r < (0.005 * S(long)[][pk])}}))) +
            (e * {{q < (0.005 * (S(long)[][pk] + q))}}));
          E(double)[][pk, q] += e;
          S(long)[][pk] += q;
        }}
        ON - LINEITEM(pk, q, e) {{
          Q(double)[][] += P(long)[][pk] * (AggSum([], E(double)[][pk, r] *
              ({{r < (0.005 * (S(long)[][pk] + (-1 * q)))}} + (-1 * {{r < (0.005 * S(long)[][pk])}}))) +
            (-1 * e * {{q < (0.005 * (S(long)[][pk] + (-1 * q)))}}));
          E(double)[][pk, q] += -1 * e;
          S(long)[][pk] += -1 * q;
        }}
        ON + PART(pk) {{
          Q(double)[][] += AggSum([], E(double)[][pk, r] * {{r < (0.005 * S(long)[][pk])}});
          P(long)[][pk] += 1;
        }}
        ON - PART(pk) {{
          Q(double)[][] += -1 * AggSum([], E(double)[][pk, r] * {{r < (0.005 * S(long)[][pk])}});
          P(long)[][pk] += -1;
        }}""",
    )


VWAP = """AggSum([], BIDS(t, i, b, v, p) * v * p *
    {AggSum([], BIDS(t2, i2, b2, v2, p2) * v2) > (4 * AggSum([], BIDS(t3, i3, b3, w, r) * w * {r > p}))})"""


def test_every_nested_value_moves() -> None:
    """Updates come first, then the result is computed again."""
    assert_program(
        program({"VWAP": VWAP}, [source("BIDS(t, i, b, v, p)")]),
        f"""
        DECLARE MAP VWAP(long)[][] := {VWAP};
        DECLARE MAP TOTAL(long)[][] := AggSum([], BIDS(t, i, b, v, p) * v);
        DECLARE MAP VOLUME(long)[][p: long] := AggSum([p], BIDS(t, i, b, v, p) * v);
        DECLARE MAP AMOUNT(long)[][p: long] := AggSum([p], BIDS(t, i, b, v, p) * v * p);
        ON BATCH UPDATE OF BIDS {{
          TOTAL(long)[][] += AggSum([], (DELTA BIDS)(t, i, b, v, p) * v);
          VOLUME(long)[][p] += AggSum([p], (DELTA BIDS)(t, i, b, v, p) * v);
          AMOUNT(long)[][p] += AggSum([p], (DELTA BIDS)(t, i, b, v, p) * v * p);
          VWAP(long)[][] := AggSum([], AMOUNT(long)[][p] *
              {{TOTAL(long)[][] > (4 * AggSum([], VOLUME(long)[][r] * {{r > p}}))}});
        }}""",
    )


def test_differences_become_ranges() -> None:
    """A comparison of a difference is solved for the key that is read."""
    far = "AggSum([b], X(b, v, p) * Y(b, w, r) * w * {(r + (-1 * p)) > 1000})"
    found = program({"Q": far}, [source("X(b, v, p)"), source("Y(b, v, p)")], batch=False)
    printed = print_program(found.m3)
    assert "> (1000 + p)}" in printed and "< (-1000 + p)}" in printed


# ---- options, order, refusals


def test_depths() -> None:
    """1 stores relations only, 0 computes again; the result is the same."""
    chain = "AggSum([], R(a, b) * S(b, c) * T(c, d, e) * a * d)"
    sources = [source("R(a, b)"), source("S(b, c)"), source("T(c, d, e)")]
    for depth, maps in ((0, 4), (1, 4), (2, 8)):
        found = program({"Q": chain}, sources, depth=depth)
        assert len(found.maps) == maps
        assert {s.statement.op for s in found.map("Q").steps} == {":=" if depth == 0 else "+="}
        for report in found.maps[1:] if depth < 2 else ():
            assert len([n for n in report.definition.walk() if isinstance(n, ast.Relation)]) == 1


def test_statements_in_any_order_of_rows() -> None:
    """All orders of six rows, one by one and in batches, give the same."""
    rows = [("R", (1, 2)), ("R", (3, 1)), ("S", (2, 5)), ("S", (4, 1)), ("R", (2, 2)), ("S", (3, 3))]
    definitions = {"Q": "AggSum([], R(a, b) * S(c, d) * {b < c} * a * d)"}
    compiled = {batch: program(definitions, RS, batch=batch) for batch in (True, False)}
    for order in itertools.islice(itertools.permutations(rows), 0, 720, 60):
        results = set()
        for batch, size in ((True, 1), (True, 2), (True, 3), (False, 1)):
            running = Running(compiled[batch])
            for at in range(0, len(order), size):
                part = order[at : at + size]
                for name in "RS":
                    running.apply(name, {row: 1 for n, row in part if n == name})
            running.check()
            results.add(running.content("Q")[()])
        assert results == {39}


def test_report() -> None:
    found = program({"Q": "AggSum([], R(a, b) * S(c, d) * {b < c} * a * d)"}, RS)
    assert {m.name: m.readers for m in found.maps} == {"Q": ("Q",), "M2": ("Q",), "M3": ("Q",)}
    assert [(s.event.relation, s.reason) for s in found.map("M2").steps] == [
        ("S", "the delta has one relation less")
    ]


def test_tables_are_read_when_all_are_loaded() -> None:
    sources = [source("R(a, b)"), source("T(b, c)", ast.TABLE)]
    found = program({"Q": "AggSum([], R(a, b) * T(b, c) * a * c)"}, sources)
    running = Running(found, {"T": {(1, 10): 1, (1, 5): 2}})
    running.apply("R", {(7, 1): 1, (8, 2): 1})
    running.check()
    assert running.content("Q") == {(): 140}
    ready = next(t for t in found.m3.triggers if t.event == ast.READY)
    assert [s.op for s in ready.statements] == [":="]


def test_a_sum_of_floats_in_a_condition_is_compared_again() -> None:
    """The old value of a bound that is a sum of floats is not known exactly: nothing is added by ranges."""
    floats = "AggSum([], R(a) * {a < AggSum([], S(x) * x)})"
    found = program({"Q": floats}, [source("R(a)"), source("S(x double)")])
    reasons = {s.event.relation: (s.statement.op, s.reason) for s in found.map("Q").steps}
    assert reasons["S"][0] == ":=" and "floats" in reasons["S"][1] and reasons["R"][0] == "+="


@pytest.mark.parametrize(
    ("definition", "options", "reason"),
    [
        ("(n ^= AggSum([a], R(a, b)))", {}, "Q: would need a value for every a"),
        ("AggSum([], R(a, b) * {b < x})", {}, "Q: x is bound nowhere"),
        ("AggSum([], R(a, b) * S(c, d) * {b < c})", {"limits": Limits(maps=2)},
         "it needs more than 2 maps"),
        ("AggSum([], R(a, b) * S(b, d))", {"limits": Limits(statements=3)},
         "it needs more than 3 statements"),
        ("AggSum([], R(a, b) * S(b, d))", {"limits": Limits(rewrites=0), "batch": False},
         "its deltas are not simple after 0 rewrites"),
        ("AggSum([], " + " * ".join(["(R(a, b) + S(a, b))"] * 13) + ")", {},
         "it is a sum of more than 4,096 products"),
    ],
)  # fmt: skip
def test_refusals(definition: str, options: dict, reason: str) -> None:
    assert compile({"Q": read(definition)}, RS, **options) == Refusal(reason)


def test_a_single_row_program_in_both_dialects() -> None:
    """What is converted to a5 does the same."""
    found = program({"Q": "AggSum([a], R(a, b) * {b < AggSum([], S(c, d) * d * {c = a})})"}, RS, batch=False)
    other = convert(found.m3, ast.A5)
    assert parse(print_program(other), dialect=ast.A5) is not None
    rng = random.Random(5)
    for program_ in (found, Program(other, found.maps)):
        running = Running(found)
        running.runtime = type(running.runtime)(program_.m3)
        for _ in range(40):
            name = rng.choice("RS")
            running.apply(name, {(rng.randint(0, 3), rng.randint(0, 3)): rng.choice((1, 1, -1))})
            running.check()
