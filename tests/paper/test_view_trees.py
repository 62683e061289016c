"""The running example of the thesis on factorised maintenance, its variable orders, views and M3 listings."""

from __future__ import annotations

import textwrap

import pytest

from dlog.errors import SourceError
from dlog.m3.syntax.ast import DeltaRelation, MapAccess
from dlog.m3.syntax.parse import parse
from dlog.views.m3.program import NONE, ONCE, Style, m3_program, m3_text
from dlog.views.orders.dtree import parse_dtree, print_dtree
from dlog.views.orders.orders import find_order
from dlog.views.query import Query, total
from dlog.views.tree.build import NEEDED, PATHS, view_tree
from tests.views.schemas import RUNNING, housing, retailer, running_example, schema, var

DTREE = """\
6 3
0 A int -1 {} 0
1 B double 0 {0} 0
2 C int 0 {0} 0
3 D int 2 {2} 0
4 E int 2 {0,2} 0
5 F double 1 {0,1} 0
R 5 A,B,F
S 4 A,C,E
T 3 C,D
"""

HYBRID = """\
7 4
0 A int -1 {} 0
1 B int 0 {0} 0
2 C int 1 {0,1} 0
3 D int 1 {0,1} 0
4 E int 0 {0} 0
5 F int 4 {4} 0
6 extra int 2 {0,1,2} 0
R 6 A,B,C,extra
S 3 A,B,D
T 4 A,E
U 5 E,F
"""


def trees(query, text, **options):
    return view_tree(query, parse_dtree(text, query), **options)


def statements(text):
    """A trigger's statements, with M3's lower case."""
    return (
        parse(
            f"""CREATE TYPE Ring FROM FILE 'ring.hpp'; CREATE STREAM R(a int, b double, f double);
        DECLARE MAP AGG_VIEW_A(Ring)[][]; DECLARE MAP AGG_VIEW_B(Ring)[][a: int];
        DECLARE MAP AGG_VIEW_C(Ring)[][a: int]; DECLARE MAP DELTA_AGG_VIEW_A(Ring)[][];
        DECLARE MAP DELTA_AGG_VIEW_B(Ring)[][a: int];
        ON BATCH UPDATE OF R {{ {text} }}"""
        )
        .triggers[0]
        .statements
    )


def trigger(program, relation):
    return next(t for t in program.triggers if t.relation == relation)


def test_dtree_is_read_and_written():
    """Listing 4.2; numbers go by depth first in what is written."""
    query = running_example()
    order = parse_dtree(DTREE, query)
    assert {n.variable: n.depends for n in order.walk()} == {
        "A": (), "B": ("A",), "F": ("A", "B"), "C": ("A",), "D": ("C",), "E": ("A", "C"),
    }  # fmt: skip
    assert {n.variable: n.atoms for n in order.walk() if n.atoms} == {"F": ("R",), "E": ("S",), "D": ("T",)}
    assert parse_dtree(print_dtree(order, query), query) == order


def test_view_tree():
    """Fig. 3.4: V@A[] over V@B[A] over V@F[A, B], and over V@C[A] over V@D[C] and V@E[A, C]."""
    query = Query(**schema(RUNNING), aggregates=(total("Q", var("F"), var("C")),))
    tree = trees(query, DTREE, compress=False)
    inner = {
        v.name: (v.keys, v.relations, [c.name for c in v.children]) for v in tree.walk() if not v.is_leaf
    }
    assert inner == {
        "A": ((), ("R", "S", "T"), ["B", "C"]),
        "B": (("A",), ("R",), ["F"]),
        "F": (("A", "B"), ("R",), ["R"]),
        "C": (("A",), ("S", "T"), ["D", "E"]),
        "D": (("C",), ("T",), ["T"]),
        "E": (("A", "C"), ("S",), ["S"]),
    }
    assert {v.name: v.factors for v in tree.walk() if v.factors} == {"F": (var("F"),), "C": (var("C"),)}
    assert [v.name for v in tree.root.path("R")] == ["A", "B", "F", "R"]  # the delta path, 3.2.4


def test_chains_are_compressed():
    """Fig. 4.8: F goes into B, with its lifting function."""
    tree = trees(running_example(), DTREE)
    assert [(v.name, v.variables) for v in tree.walk() if not v.is_leaf] == [
        ("A", ("A",)), ("B", ("B", "F")), ("C", ("C",)), ("D", ("D",)), ("E", ("E",)),
    ]  # fmt: skip
    view = tree.view("B")
    assert [f.function for f in view.factors] == ["f_B", "f_F"] and view.summed == ("B", "F")


def test_what_is_materialised():
    """Fig. 4.5: only R changes, so its own path needs no views but the root; those beside it do."""
    kept = {v.name for v in trees(running_example(), DTREE).walk() if v.materialised}
    assert kept == {"A", "C"}
    query = Query(**schema(RUNNING), aggregates=(total("Q", var("F")),))
    assert {v.name for v in trees(query, DTREE).walk() if v.materialised} == {"A", "B", "C", "D", "E"}


def test_batch_trigger():
    """Listings 4.11 and 4.14."""
    tree = trees(running_example(), DTREE, keep=PATHS)
    program = m3_program(running_example(), tree, Style(inline=NONE))
    assert trigger(program, "R").statements == statements("""
        DELTA_AGG_VIEW_B(Ring)[][A] := AggSum([A], (DELTA R)(A, B, F) * [f_B: Ring](B) * [f_F: Ring](F));
        AGG_VIEW_B(Ring)[][A] += DELTA_AGG_VIEW_B(Ring)[][A];
        DELTA_AGG_VIEW_A(Ring)[][] :=
          AggSum([], DELTA_AGG_VIEW_B(Ring)[][A] * AGG_VIEW_C(Ring)[][A] * [f_A: Ring](A));
        AGG_VIEW_A(Ring)[][] += DELTA_AGG_VIEW_A(Ring)[][];""")


def test_inlined_batch_trigger():
    """Listing 4.15."""
    tree = trees(running_example(), DTREE, keep=PATHS)
    program = m3_program(running_example(), tree, Style(inline=ONCE))
    assert trigger(program, "R").statements == statements("""
        DELTA_AGG_VIEW_B(Ring)[][A] := AggSum([A], (DELTA R)(A, B, F) * [f_B: Ring](B) * [f_F: Ring](F));
        AGG_VIEW_B(Ring)[][A] += DELTA_AGG_VIEW_B(Ring)[][A];
        AGG_VIEW_A(Ring)[][] += AggSum([],
          DELTA_AGG_VIEW_B(Ring)[][A] * AGG_VIEW_C(Ring)[][A] * [f_A: Ring](A));""")
    assert program.map("DELTA_AGG_VIEW_A") is None


def test_declarations():
    """Listing 4.12, where T changes too: a map for V@D with its definition, and one for its change."""
    query = running_example()
    streams = Query(
        tuple(type(s)("stream", s.name, s.columns) for s in query.sources), query.atoms, query.aggregates,
        types=query.types,
    )  # fmt: skip
    text = m3_text(streams, trees(streams, DTREE), Style(inline=NONE))
    assert "DECLARE MAP AGG_VIEW_D(Ring)[][c: int] := AggSum([c], T(c, d) * [f_D: Ring](d));" in text
    assert "DECLARE MAP DELTA_AGG_VIEW_D(Ring)[][c: int] := 0;" in text


def test_hybrid_tree():
    """4.10: the definitions of the example, only R changing."""
    relations = {"R": ("A", "B", "C", "extra"), "S": ("A", "B", "D"), "T": ("A", "E"), "U": ("E", "F")}
    query = Query(**schema(relations, tables=("S", "T", "U")), aggregates=(total("Q", var("A")),))
    tree = trees(query, HYBRID)
    found = {v.name: (v.summed, v.keys, {c.name for c in v.children}) for v in tree.walk() if not v.is_leaf}
    assert found == {
        "A": (("A",), (), {"E", "B"}),
        "B": (("B",), ("A",), {"D", "C"}),
        "C": (("C", "extra"), ("A", "B"), {"R"}),
        "D": (("D",), ("A", "B"), {"S"}),
        "E": (("E",), ("A",), {"F", "T"}),
        "F": (("F",), ("E",), {"U"}),
    }
    assert [v.name for v in tree.walk() if v.changes] == ["A", "B", "C", "R"]
    program = m3_program(query, tree)
    reads = {n.name for n in trigger(program, "R").walk() if isinstance(n, MapAccess)}
    assert reads == {"AGG_VIEW_A", "AGG_VIEW_D", "AGG_VIEW_E"}
    assert any(isinstance(n, DeltaRelation) for n in trigger(program, "R").walk())


def test_orders_are_found():
    """The orders that the thesis gives are the ones that are found."""
    order = find_order(running_example())
    assert order.parents == {"A": None, "B": "A", "F": "B", "C": "A", "D": "C", "E": "C"}
    star = find_order(housing())
    assert [r.variable for r in star.roots] == ["postcode"] and len(star.roots[0].children) == 6
    assert all(len(n.children) <= 1 for n in star.walk() if n.variable != "postcode")
    snow = find_order(retailer())
    joins = ("locn", "dateid", "ksn", "zip")
    assert {v: snow.parents[v] for v in joins} == {
        "locn": None, "dateid": "locn", "ksn": "dateid", "zip": "locn",
    }  # fmt: skip


def test_wide_stars_have_seven_views():
    """Fig. 4.7."""
    query = housing()
    inner = [v for v in view_tree(query, find_order(query)).walk() if not v.is_leaf]
    assert len(inner) == 7
    long = [
        v for v in view_tree(query, find_order(query), compress=False, keep=NEEDED).walk() if not v.is_leaf
    ]
    assert len(long) == 27


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2 C int 0 {0} 0", "2 C int -1 {} 0",
         "8:1: error: the variables of relation S do not lie on one path: A is not above E"),
        ("4 E int 2 {0,2} 0", "4 E int 2 {2} 0", "6:1: error: E depends on A, which is not among its"),
        ("3 D int 2", "3 D string 2", "5:1: error: variable D is int in the query, not string"),
        ("1 B double 0", "1 B int 0", "3:1: error: variable B is double in the query, not int"),
        ("3 D int 2", "3 X int 2", "5:1: error: the query has no variable X"),
        ("3 D int 2", "3 D int 9", "5:1: error: there is no variable 9"),
        ("R 5 A,B,F", "R 1 A,B,F", "8:1: error: the lowest variable of R is F, not B"),
        ("R 5 A,B,F", "R 5 A,F", "8:1: error: the columns of R are A,B,F in the query"),
        ("6 3", "7 3", "1:1: error: 7 variables and 3 relations, but 9 lines"),
        ("0 A int -1 {} 0", "0 A int 5 {} 0", "2:1: error: variable A is below itself"),
        ("2 C int 0", "2 C int 3", "4:1: error: variable C is below itself"),
        ("0 A int -1 {} 0", "0 A int -1", "2:1: error: expected a variable"),
    ],
)  # fmt: skip
def test_errors_of_dtrees(old, new, message):
    assert old in DTREE
    text = textwrap.dedent(DTREE).replace(old, new)
    if "not above" in message:
        message = "9" + message[1:]
    with pytest.raises(SourceError) as found:
        parse_dtree(text, running_example(), "order.txt")
    assert found.value.render().startswith(f"order.txt:{message}")
