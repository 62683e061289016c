"""Every production of the grammar: what it builds, and what is not supported yet."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dlog.errors import DataError, DlogErrors, SourceError
from dlog.language import ast
from dlog.language.ast import (
    Aggregation,
    Application,
    BranchType,
    Call,
    ChoiceDomain,
    Comparison,
    Conjunction,
    Constant,
    Constraint,
    Declaration,
    Directive,
    DirectiveParameter,
    Disjunction,
    Negation,
    Parameter,
    Rule,
    TypeDeclaration,
    TypeRef,
    Variable,
    Wildcard,
)
from dlog.language.parse import expand_includes, load_file, parse, parse_file

x, y, z = Variable("x"), Variable("y"), Variable("z")
X, Y = Parameter("x", TypeRef("int")), Parameter("y", TypeRef("T"))
p, q, r = Call("p", (x,)), Call("q", (x,)), Call("r", (x,))
INT, STRING = TypeRef("int"), TypeRef("string")


def f(value: ast.Node) -> ast.Node:
    return Comparison("=", Application("f", (x,)), value)


def directive(kind: str, predicate: str, **values: str | int | bool) -> Directive:
    return Directive(kind, predicate, tuple(DirectiveParameter(k, v) for k, v in values.items()))


PRODUCTIONS: list[tuple[str, list[ast.Node]]] = [
    # Facts and rules
    ("p(1).", [ast.Facts("p", ((("int", 1),),))]),
    ("p().", [ast.Facts("p", ((),))]),
    ("f[] = 1.", [ast.Facts("f", ((("int", 1),),), True)]),
    ("p(1) <- .", [ast.Facts("p", ((("int", 1),),))]),
    ("p(x).", [Rule((p,))]),
    ("p(x) <- q(x).", [Rule((p,), q)]),
    ("p(x), q(x) :- r(x).", [Rule((p, q), r)]),
    ("p(1), q(2).", [Rule((Call("p", (Constant("int", 1),)), Call("q", (Constant("int", 2),))))]),
    ("f[x] = y <- p(x).", [Rule((f(y),), p)]),
    ("p(x) <- q(x), r(x) ; p(x).", [Rule((p,), Disjunction((Conjunction((q, r)), p)))]),
    ("p(x) <- q(_).", [Rule((p,), Call("q", (Wildcard(),)))]),
    ("p(x) <- q(x), (r(x) ; p(x)).", [Rule((p,), Conjunction((q, Disjunction((r, p)))))]),
    ("p(x) <- (q(x), (r(x))).", [Rule((p,), Conjunction((q, r)))]),
    ("p(x) <- !q(x), !!r(x).", [Rule((p,), Conjunction((Negation(q), Negation(Negation(r)))))]),
    ("p(x) <- !x = y.", [Rule((p,), Negation(Comparison("=", x, y)))]),
    ("p(x) <- !(q(x), r(x)).", [Rule((p,), Negation(Conjunction((q, r))))]),
    ("p(x) <- true.", [Rule((p,), Constant("bool", True))]),
    ("p(x) <- x = f[y], q(x).", [Rule((p,), Conjunction((Comparison("=", x, Application("f", (y,))), q)))]),
    # A comparison as a head is subsumption.
    ("p(x) <= p(y) :- q(x).", [Rule((Comparison("<=", p, Call("p", (y,))),), q)]),
    (
        "f[x] = y, p(x) <- agg<<y = sum(z), z = count()>> q(x).",
        [Rule((f(y), p), q, (Aggregation("y", "sum", (z,)), Aggregation("z", "count", ())))],
    ),
    # Constraints and declarations
    ("p(x) -> q(x).", [Constraint(p, q)]),
    ("p(x), q(x) -> r(x) ; !p(x).", [Constraint(Conjunction((p, q)), Disjunction((r, Negation(p))))]),
    ("p(x) -> int(x).", [Declaration("p", (Parameter("x", INT),))]),
    ("p(x) -> .", [Declaration("p", (Parameter("x", None),))]),
    ("p(x, y) -> string(y).", [Declaration("p", (Parameter("x", None), Parameter("y", STRING)))]),
    ("p(x) -> number(x), q(x).", [Declaration("p", (Parameter("x", INT),)), Constraint(p, q)]),
    ("f[x] = y -> symbol(x), int(y).", [Declaration("f", (Parameter("x", STRING),), Parameter("y", INT))]),
    ("p(x) -> int(y).", [Constraint(p, Call("int", (y,)))]),
    (
        ".decl p(x: number, y: number) choice-domain x, (x, y) btree",
        [
            Declaration(
                "p",
                (Parameter("x", INT), Parameter("y", INT)),
                None,
                ("btree",),
                (ChoiceDomain((x,)), ChoiceDomain((x, y))),
            )
        ],
    ),
    (
        ".decl p(x: number) choice-domain x inline",
        [Declaration("p", (Parameter("x", INT),), None, ("inline",), (ChoiceDomain((x,)),))],
    ),
    ("p($) <- q(x).", [Rule((Call("p", (Call("autoinc", ()),)),), q)]),
    (".decl p(x: number)", [Declaration("p", (Parameter("x", INT),))]),
    (".decl p()", [Declaration("p", ())]),
    (
        ".decl p, q(x: T) inline btree",
        [Declaration(n, (Parameter("x", TypeRef("T")),), None, ("inline", "btree")) for n in "pq"],
    ),
    (".decl p(x: T) output", [Declaration("p", (Parameter("x", TypeRef("T")),)), Directive("output", "p")]),
    (".decl p(x: decimal(10, 2))", [Declaration("p", (Parameter("x", TypeRef("decimal", (10, 2))),))]),
    # Types
    (".type T <: number", [TypeDeclaration("T", "subtype", (INT,))]),
    (".type T = A | number", [TypeDeclaration("T", "union", (TypeRef("A"), INT))]),
    (".type T", [TypeDeclaration("T", "subtype", (STRING,))]),
    (".symbol_type T", [TypeDeclaration("T", "subtype", (STRING,))]),
    (".number_type T", [TypeDeclaration("T", "subtype", (INT,))]),
    # Directives
    (".input p", [Directive("input", "p")]),
    (".output a.b, p", [Directive("output", "a.b"), Directive("output", "p")]),
    (
        '.input p(IO=file, name="a", n=-3, header=true, m=1.5), q',
        [directive("input", "p", IO="file", name="a", n=-3, header=True, m="1.5"), Directive("input", "q")],
    ),
    (".input p, q(n=1)", [directive("input", "p", n=1), directive("input", "q", n=1)]),
    (".input p()", [Directive("input", "p")]),
    (".printsize p\n.limitsize q(n=3)\n.table p\n.stream q", [
        Directive("printsize", "p"), directive("limitsize", "q", n=3), Directive("table", "p"),
        Directive("stream", "q"),
    ]),
    (
        ".materialize p, a.b changes\n.materialize q on_read r(1).",
        [*(directive("materialize", name, mode="changes") for name in ("p", "a.b")),
         directive("materialize", "q", mode="on_read"), ast.Facts("r", ((("int", 1),),))],
    ),
    ('.pragma "a"', [ast.Pragma("a")]),
    ('.pragma "a" "b"', [ast.Pragma("a", "b")]),
    (".plan 0:(2, 1), 1:()", [ast.Plan("0:(2, 1), 1:()")]),
    ('.include "a.dl"', [ast.Include("a.dl")]),
    (".once", []),
    # Records
    (".type T = [x: number, y: T]", [TypeDeclaration("T", "record", (), (BranchType("", (X, Y)),))]),
    (
        ".type T = A {x: number} | B {}",
        [TypeDeclaration("T", "adt", (), (BranchType("A", (X,)), BranchType("B")))],
    ),
    ("p([x, nil]).", [ast.Rule((ast.Call("p", (ast.Record((x, ast.Constant("nil", "nil"))),)),))]),
    ("p($A(x, $B)).", [ast.Rule((ast.Call("p", (ast.Branch("A", (x, ast.Branch("B"))),)),))]),
    ("p([1, [0x10, nil]]).", [ast.Facts("p", ((("record", "[1, [0x10, nil]]"),),))]),
    ("p($A(1), nil).", [ast.Facts("p", ((("record", "$A(1)"), ("nil", "nil")),))]),
    # Transactions and queries
    ("+p(x).", [ast.DeltaStatement((ast.Delta("+", p),))]),
    ("-p(x), ^f[x] = y.", [ast.DeltaStatement((ast.Delta("-", p), ast.Delta("^", f(y))))]),
    ("?- p(x) ; q(x).", [ast.Query(Disjunction((p, q)))]),
    # Nothing
    ("", []),
    ("// only a comment", []),
    ('@[magic] p(x) @![inner = [1, "]"]] <- q(x).', [Rule((p,), q)]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), PRODUCTIONS, ids=[t for t, _ in PRODUCTIONS])
def test_productions(text: str, expected: list[ast.Node]) -> None:
    assert list(parse(text).statements) == expected


def test_components_are_statements_between_braces() -> None:
    text = ".comp A<T, U> : B<T>, C { .decl p(x: T) p(1). .comp D {\n.init e = C }\n.override q}\nr(2)."
    assert parse(text).statements == (
        ast.ComponentStart(
            ast.ComponentRef("A", ("T", "U")), (ast.ComponentRef("B", ("T",)), ast.ComponentRef("C"))
        ),
        ast.Declaration("p", (ast.Parameter("x", ast.TypeRef("T")),)),
        ast.Facts("p", ((("int", 1),),)),
        ast.ComponentStart(ast.ComponentRef("D")),
        ast.Init("e", ast.ComponentRef("C")),
        ast.ComponentEnd(),
        ast.Override("q"),
        ast.ComponentEnd(),
        ast.Facts("r", ((("int", 2),),)),
    )


def test_an_error_in_a_component_leaves_the_others() -> None:
    text = ".comp A<T> : B<T> {\n .decl p(x: T)\n .comp C { q(. }\n}\n.init a = A\np(1)\nq(2)."
    with pytest.raises(DlogErrors) as caught:
        parse(text)
    assert [e.line for e in caught.value] == [3, 6]


def test_invariant_facts_and_sources() -> None:
    text = '#define A 7\np(1, "a", true).\n\np(A, /**/ 2.5, 3u).\nf[] = 1.\n'
    for program in (parse(text), parse(text.replace("#define A 7", "//"))):
        program.span.source.check()
        for statement in program.statements:
            if isinstance(statement, ast.Facts):
                statement.check()
    assert len(program.statements) == 3


def test_spans_cover_what_was_written() -> None:
    text = "a(1).\np(x) <-\n  q(x),  !r(x + 1)."
    rule = parse(text).statements[1]
    assert isinstance(rule, Rule) and isinstance(rule.body, Conjunction)
    assert rule.span.text() == text[6:]
    assert [n.span.text() for n in rule.body.items] == ["q(x)", "!r(x + 1)"]
    assert (rule.body.items[1].span.line, rule.body.items[1].span.column) == (3, 10)


def test_walk_visits_every_node_in_order() -> None:
    rule = parse("p(x) <- q(y), !r(f[z], 1).").statements[0]
    names = [n.name for n in rule.walk() if isinstance(n, Call | Application | Variable)]
    assert names == ["p", "x", "q", "y", "r", "f", "z"]
    assert list(parse("p(1). p(2).").statements[0].walk()) == [parse("p(1). p(2).").statements[0]]


def test_parsing_from_several_threads() -> None:
    texts = [f"p{i}(x) <- q{i}(x), x < {i}. bad{i}(" for i in range(8)]
    found: dict[int, str] = {}

    def work(i: int) -> None:
        with pytest.raises(SourceError) as caught:
            parse(texts[i], f"f{i}.dl")
        found[i] = str(caught.value.file)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {i: f"f{i}.dl" for i in range(8)}


# Files and includes


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.dl"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "main.dl"


def test_includes_are_relative_to_their_file_and_read_once(tmp_path: Path) -> None:
    main = write(
        tmp_path,
        main='a(1).\n.include "sub/one.dl"\n.include "sub/two.dl"\n.include "main.dl"\n',
        sub__one='.include "two.dl"\nb(1).\n',
        sub__two=".once\nc(1).\n",
    )
    facts = [s for s in load_file(main).statements if isinstance(s, ast.Facts)]
    assert [f.predicate for f in facts] == ["a", "c", "b"]
    assert facts[1].span.file == str(tmp_path / "sub" / "two.dl")
    assert (facts[1].span.line, facts[1].span.column) == (2, 1)
    assert [type(s) for s in parse_file(main).statements] == [ast.Facts] + 3 * [ast.Include]


def test_facts_of_two_files_stay_apart(tmp_path: Path) -> None:
    main = write(tmp_path, main='a(1).\n.include "part.dl"\n', part="\na(2).\n")
    first, second = load_file(main).statements
    assert (first.span.line, second.span.line) == (1, 2)


def test_errors_in_included_files_are_all_reported(tmp_path: Path) -> None:
    main = write(
        tmp_path, main='.include "one.dl"\n.include "two.dl"\n.include "none.dl"\n', one="a(\n", two="b(1)\n"
    )
    with pytest.raises(DlogErrors) as caught:
        load_file(main)
    assert [(Path(e.file or "").name, e.line, e.message) for e in caught.value] == [
        ("main.dl", 3, "cannot find the included file none.dl"),
        ("one.dl", 1, "`(` is not closed"),
        ("two.dl", 1, "missing `.` at the end of the statement"),
    ]


@pytest.mark.parametrize("name", ["none.dl", ".", "a" * 5000, "a\\0b", ""])
def test_includes_that_are_not_files(tmp_path: Path, name: str) -> None:
    main = write(tmp_path, main=f'p(1).\n.include "{name}"\n')
    with pytest.raises(SourceError, match="cannot find the included file") as caught:
        load_file(main)
    assert caught.value.line == 2


def test_expanding_a_text_without_a_file() -> None:
    assert expand_includes(parse("p(1).")) == parse("p(1).")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        parse_file(tmp_path / "none.dl")
    with pytest.raises(DataError, match="is a directory"):
        parse_file(tmp_path)
    (tmp_path / "bad.dl").write_bytes(b"p(1).\nq(\xff).\n")
    with pytest.raises(SourceError, match=r"not UTF-8 text \(byte 0xff\)") as caught:
        parse_file(tmp_path / "bad.dl")
    assert (caught.value.line, caught.value.column) == (2, 3)


def test_line_ends_and_byte_order_marks(tmp_path: Path) -> None:
    (tmp_path / "a.dl").write_bytes(b"\xef\xbb\xbfp(1).\r\n// c\rq(2).\r\n")
    program = parse_file(tmp_path / "a.dl")
    assert program == parse("p(1).\nq(2).")
    assert program.statements[1].span.line == 3
    assert parse("\ufeffp(1).") == parse("p(1).")
