"""Random syntax trees that some program text has: what `parse` can return, and nothing else."""

from __future__ import annotations

from hypothesis import strategies as st

from dlog.language import ast
from dlog.language.build import PRECEDENCE

# Ordinary names, and words that are keywords somewhere else.
VARIABLES = st.sampled_from(
    ["x", "y", "X1", "?x", "a.b", "_z", "count", "min", "sum", "band", "lor", "agg", "input", "choice", "as"]
)
PREDICATES = st.sampled_from(
    ["p", "edge", "Q2", "inst.rel", "?r", "count", "max", "band", "inline", "output", "agg", "nil", "true"]
)
FUNCTORS = st.sampled_from(["f", "count", "a.b", "input"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ['"', "\\", "a\nb", "\t\r\0\a\b\f\v", "// no comment", "/* */", "%", "1.5", "é", "\x7f"]
)
INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
FLOATS = st.from_regex(r"-?[0-9]{1,3}\.[0-9]{1,3}(e[+-]?[0-9]{1,2})?", fullmatch=True)
TYPES = ["int", "string", "unsigned", "float", "decimal", "bool", "date", "datetime", "timestamp", "duration"]

values = st.one_of(
    st.tuples(st.just("int"), INTEGERS),
    st.tuples(st.just("unsigned"), st.integers(0, 2**64 - 1)),
    st.tuples(st.just("float"), FLOATS),
    st.tuples(st.just("string"), TEXTS),
    st.tuples(st.just("bool"), st.booleans()),
    st.just(("nil", "nil")),
)
RECORDS = ["[1, [nil, -2.5]]", '$Add("a, b", true)', "$Zero", "[]", "[0x10]"]
literals = values | st.tuples(st.just("record"), st.sampled_from(RECORDS))
BRANCHES = st.sampled_from(["Add", "Zero", "B2", "a.B"])
constants = values.map(lambda pair: ast.Constant(*pair))
leaves = st.one_of(VARIABLES.map(ast.Variable), st.just(ast.Wildcard()), constants)


def _is_number(node: ast.Node) -> bool:
    return isinstance(node, ast.Constant) and node.kind in ("int", "float")


def _flat(kind: type, items: list[ast.Node]) -> tuple[ast.Node, ...]:
    """A conjunction directly inside a conjunction is one conjunction."""
    return tuple(x for item in items for x in (item.items if isinstance(item, kind) else (item,)))


type_references = st.builds(
    ast.TypeRef,
    st.sampled_from([*TYPES, "Person", "a.T"]),
    st.lists(st.integers(0, 99), max_size=2).map(tuple),
)
BINARY = ["-", "*", "^", "^", *PRECEDENCE]
KINDS = ["leaf", "binary", "binary", "unary", "call", "application", "cast", "aggregate", "aggregate"] + [
    "comparison", "comparison", "function", "negation", "conjunction", "disjunction", "disjunction",
    "record", "branch", "user call",
]  # fmt: skip


@st.composite
def _nodes(draw: st.DrawFn, depth: int) -> ast.Node:
    """Formulas and terms in any mixture: `(x < y) + 1` means nothing, but has a syntax tree."""
    kind = draw(st.sampled_from(KINDS)) if depth else "leaf"
    inner = _nodes(depth - 1) if depth else leaves

    def several(least: int) -> list[ast.Node]:
        return draw(st.lists(inner, min_size=least, max_size=3))

    match kind:
        case "binary":
            return ast.Binary(draw(st.sampled_from(BINARY)), draw(inner), draw(inner))
        case "unary":
            operand = draw(inner)
            # A minus before a number is part of the number.
            signs = ["bnot", "lnot"] if _is_number(operand) else ["-", "-", "bnot", "lnot"]
            return ast.Unary(draw(st.sampled_from(signs)), operand)
        case "call":
            return ast.Call(draw(PREDICATES), tuple(several(0)))
        case "application":
            return ast.Application(draw(PREDICATES), tuple(several(0)))
        case "record":
            return ast.Record(tuple(several(0)))
        case "branch":
            return ast.Branch(draw(BRANCHES), tuple(several(0)))
        case "user call":
            return ast.UserCall(draw(FUNCTORS), tuple(several(0)))
        case "cast":
            return ast.Cast(draw(inner), draw(type_references))
        case "aggregate":
            op = draw(
                st.sampled_from(
                    ["count", "count", "sum", "min", "max", "mean", "total", "stddev", "count_distinct", "@f"]
                )
            )
            return ast.InlineAggregate(op, None if op == "count" else draw(inner), draw(inner))
        case "comparison":
            return ast.Comparison(
                draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="])), draw(inner), draw(inner)
            )
        case "function":
            return ast.Comparison("=", ast.Application(draw(PREDICATES), tuple(several(0))), draw(inner))
        case "negation":
            return ast.Negation(draw(inner))
        case "conjunction":
            return ast.Conjunction(_flat(ast.Conjunction, several(2)))
        case "disjunction":
            return ast.Disjunction(_flat(ast.Disjunction, several(2)))
        case _:
            return draw(leaves)


nodes = st.integers(0, 4).flatmap(_nodes)
atoms = st.builds(ast.Call, PREDICATES, st.lists(leaves | nodes, max_size=3).map(tuple))


def _has_plain_form(head: ast.Node) -> bool:
    """Whether a fact with this head would be read as a row of `Facts`."""
    if isinstance(head, ast.Call):
        return all(map(_is_literal, head.args))
    if isinstance(head, ast.Comparison) and head.op == "=" and isinstance(head.left, ast.Application):
        return all(map(_is_literal, (*head.left.args, head.right)))
    return False


def _is_literal(node: ast.Node) -> bool:
    return all(isinstance(inner, ast.Constant | ast.Record | ast.Branch) for inner in node.walk())


def _is_bare(head: ast.Node) -> bool:
    """A name alone could be the qualifier of a declaration before it."""
    return isinstance(head, ast.Variable)


def _is_no_sum(atom: ast.Node) -> bool:
    """The signs of a sum in a delta would begin another delta."""
    return not (isinstance(atom, ast.Binary) and atom.op in ("+", "-", "^"))


def _heads(draw_from: st.SearchStrategy[ast.Node]) -> st.SearchStrategy[tuple[ast.Node, ...]]:
    one = draw_from.filter(lambda n: not isinstance(n, ast.Conjunction) and not _is_bare(n))
    return st.lists(one, min_size=1, max_size=3).map(tuple)


aggregations = st.builds(
    ast.Aggregation,
    VARIABLES,
    st.sampled_from(["sum", "count", "min", "@f", "@count"]),
    st.lists(nodes, max_size=2).map(tuple),
)
rules = st.one_of(
    st.builds(ast.Rule, _heads(atoms | nodes), nodes),
    st.builds(ast.Rule, _heads(atoms), nodes, st.lists(aggregations, min_size=1, max_size=3).map(tuple)),
    _heads(nodes).filter(lambda h: len(h) > 1 or not _has_plain_form(h[0])).map(ast.Rule),
)
names = st.sampled_from(["x", "y", "z", "value", "count", "true", "nil", "bnot", "input", "_"])
parameters = st.builds(ast.Parameter, names, type_references)
fields = st.lists(parameters, max_size=3).map(tuple)
qualifiers = st.lists(
    st.sampled_from(["inline", "magic", "overridable", "brie"]), max_size=2, unique=True
).map(tuple)
declarations = st.builds(
    ast.Declaration, PREDICATES, st.lists(parameters, max_size=8).map(tuple), st.none(), qualifiers
)


@st.composite
def functional_declarations(draw: st.DrawFn) -> ast.Declaration:
    """Distinct variables, built-in types or none."""
    kinds = st.none() | st.builds(ast.TypeRef, st.sampled_from(TYPES), st.just(()) | st.just((10, 2)))
    some = [
        ast.Parameter(n, draw(kinds)) for n in draw(st.lists(VARIABLES, min_size=1, max_size=4, unique=True))
    ]
    return ast.Declaration(draw(PREDICATES), tuple(some[:-1]), some[-1])


MODES = ["always", "changes", "on_read", "another"]


def _mode(mode: str) -> tuple[ast.DirectiveParameter, ...]:
    return (ast.DirectiveParameter("mode", mode),)


directive_values = TEXTS | st.integers(-5, 10**9) | st.booleans()
directive_parameters = st.builds(
    ast.DirectiveParameter, st.sampled_from(["IO", "filename", "delimiter", "n", "header"]), directive_values
)
deltas = st.builds(ast.Delta, st.sampled_from("+-^"), nodes.filter(_is_no_sum))
event_atoms = st.one_of(
    st.builds(ast.Call, PREDICATES, st.lists(leaves, max_size=3).map(tuple)),
    st.builds(
        ast.Comparison,
        st.just("="),
        st.builds(ast.Application, PREDICATES, st.lists(leaves, max_size=3).map(tuple)),
        leaves,
    ),
)
events = st.builds(ast.Delta, st.sampled_from("+-^"), event_atoms)
event_literals = events | st.builds(ast.Negation, events) | nodes
event_bodies = event_literals | st.lists(event_literals, min_size=2, max_size=3).map(
    lambda items: ast.Conjunction(_flat(ast.Conjunction, items))
)
delta_rules = st.builds(
    ast.DeltaRule,
    st.lists(deltas, min_size=1, max_size=3).map(tuple),
    event_bodies,
    st.lists(aggregations, max_size=2).map(tuple),
)
anonymous = st.builds(ast.Call, st.just("_"), st.lists(leaves | nodes, max_size=3).map(tuple)) | st.builds(
    ast.Comparison,
    st.just("="),
    st.builds(ast.Application, st.just("_"), st.lists(leaves | nodes, max_size=3).map(tuple)),
    nodes,
)
BACKTICKED = PREDICATES | st.sampled_from(["person:name", "a:b:c"])
PROPERTIES = st.sampled_from(["lang:pulse", "lang:physical:x", "lang:derivationType"])
properties = (
    st.lists(BACKTICKED, max_size=2)
    .map(tuple)
    .flatmap(lambda names: st.builds(ast.Property, PROPERTIES, st.just(names), st.none() | constants))
)
entities = st.builds(
    ast.Entity,
    BACKTICKED,
    BACKTICKED,
    st.sampled_from([("p", "n"), ("x", "y")]),
    st.builds(ast.TypeRef, st.sampled_from(TYPES), st.sampled_from([(), (10, 2)])),
)
sequences = st.builds(
    ast.SequenceRule,
    atoms.filter(lambda n: not _is_bare(n)),
    nodes,
    VARIABLES,
    st.lists(leaves, min_size=1, max_size=3).map(tuple),
) | st.builds(ast.SequenceRule, atoms, nodes)
plans = st.lists(st.lists(st.integers(0, 9), max_size=3), min_size=1, max_size=2).map(
    lambda orders: ast.Plan(", ".join(f"{i}:({', '.join(map(str, o))})" for i, o in enumerate(orders)))
)
facts = st.booleans().flatmap(
    lambda functional: st.builds(
        ast.Facts,
        PREDICATES,
        st.lists(
            st.lists(literals, min_size=int(functional), max_size=3).map(tuple), min_size=1, max_size=3
        ).map(tuple),
        st.just(functional),
    )
)
component_types = st.builds(
    ast.ComponentRef, PREDICATES, st.lists(st.sampled_from(["int", "T"]), max_size=2).map(tuple)
)
statements = st.one_of(
    facts,
    rules,
    st.builds(ast.Constraint, nodes.filter(lambda n: not _is_bare(n)), nodes),
    st.builds(ast.Query, nodes),
    st.builds(ast.Query, nodes, anonymous, st.lists(aggregations, max_size=2).map(tuple)),
    delta_rules,
    properties,
    entities,
    sequences,
    st.builds(ast.BlockStart, BACKTICKED),
    st.lists(deltas, min_size=1, max_size=3).map(lambda several: ast.DeltaStatement(tuple(several))),
    declarations,
    functional_declarations(),
    st.builds(ast.TypeDeclaration, PREDICATES, st.just("subtype"), type_references.map(lambda t: (t,))),
    st.builds(
        ast.TypeDeclaration,
        PREDICATES,
        st.just("union"),
        st.lists(st.sampled_from(["int", "A", "B"]).map(ast.TypeRef), min_size=1, max_size=3).map(tuple),
    ),
    st.builds(
        ast.TypeDeclaration,
        PREDICATES,
        st.just("record"),
        st.just(()),
        st.builds(ast.BranchType, st.just(""), fields).map(lambda branch: (branch,)),
    ),
    st.builds(
        ast.TypeDeclaration,
        PREDICATES,
        st.just("adt"),
        st.just(()),
        st.lists(st.builds(ast.BranchType, BRANCHES, fields), min_size=1, max_size=3).map(tuple),
    ),
    st.builds(
        ast.Directive,
        st.sampled_from(["input", "output", "printsize", "limitsize", "table", "stream"]),
        PREDICATES,
        st.lists(directive_parameters, max_size=3).map(tuple),
    ),
    st.builds(ast.Directive, st.just("materialize"), PREDICATES, st.builds(_mode, st.sampled_from(MODES))),
    st.builds(
        ast.FunctorDeclaration,
        FUNCTORS,
        st.lists(st.builds(ast.Parameter, names | st.just(""), type_references), max_size=3).map(tuple),
        type_references,
        st.sampled_from([(), ("stateful",), ("aggregate",)]),
    ),
    st.builds(ast.ComponentStart, component_types, st.lists(component_types, max_size=2).map(tuple)),
    st.just(ast.ComponentEnd()),
    st.builds(ast.Init, PREDICATES, component_types),
    st.builds(ast.Override, PREDICATES),
    st.builds(ast.Pragma, TEXTS, st.none() | TEXTS),
    st.builds(ast.Include, TEXTS),
    plans,
)


def _without_runs(items: list[ast.Node]) -> tuple[ast.Node, ...]:
    """Neighbouring facts of one predicate would be read as one run."""
    kept: list[ast.Node] = []
    for item in items:
        if not kept or _run(item) != _run(kept[-1]) or _run(item) is None:
            kept.append(item)
    return tuple(kept)


def _run(item: ast.Node) -> tuple[str, bool] | None:
    return (item.predicate, item.functional) if isinstance(item, ast.Facts) else None


programs = st.lists(statements, max_size=5).map(lambda items: ast.Program(_without_runs(items)))
