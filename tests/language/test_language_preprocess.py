"""The C preprocessor: what it does to a program, and that errors point at the file and line people wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlog.errors import DlogError, DlogErrors
from dlog.language.format import format_program
from dlog.language.parse import parse, parse_file
from dlog.language.preprocess import has_directives


def expanded(text: str) -> str:
    return format_program(parse(text)).replace("\n", " ").strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#define N 3\np(N).", "p(3)."),
        ("#define E(a, b) edge(a, b), edge(b, a)\np(x) <- E(x, y).", "p(x) <- edge(x, y), edge(y, x)."),
        ("#define N 3\n#undef N\np(N) <- q(N).", "p(N) <- q(N)."),
        ("#ifdef A\np(1).\n#else\nq(1).\n#endif", "q(1)."),
        ("#define A\n#ifdef A\np(1).\n#else\nq(1).\n#endif", "p(1)."),
        ("#ifndef A\np(1).\n#endif", "p(1)."),
        ("#define V 2\n#if V > 1 && defined(V)\np(1).\n#elif V\nq(1).\n#endif", "p(1)."),
        ("#define S(x) #x\np(S(a b)).", 'p("a b").'),
        ("#define J(x, y) x##y\nJ(p, q)(1).", "pq(1)."),
        ("#define TWO 1 + \\\n  1\np(x) <- x = TWO.", "p(x) <- x = 1 + 1."),
        ('#define N 3\np("N", N). // N\n', 'p("N", 3).'),
        ("# define N 3\n  #  ifdef N\np(N).\n#endif", "p(3)."),
        ("#pragma once\np(1).", "p(1)."),
        ("#!/usr/bin/env dlog\n#define N 3\np(N).", "p(3)."),
    ],
)
def test_expansion(text: str, expected: str) -> None:
    assert expanded(text) == expected


@pytest.mark.parametrize(
    "text",
    ["p(1).", "// #define A", "/*\n#define A\n*/", '#!/bin/x\np("#define").', "# note", "/* \n#define A"],
)
def test_most_texts_are_left_alone(text: str) -> None:
    assert not has_directives(text)


def test_includes(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.dl").write_text('#include "b.dl"\na(N).\n')
    (tmp_path / "lib" / "b.dl").write_text("#pragma once\n#define N 7\nb(N).\n")
    (tmp_path / "main.dl").write_text('#include "lib/a.dl"\n#include <lib/b.dl>\nmain(N).\n')
    program = parse_file(tmp_path / "main.dl")
    assert format_program(program) == "b(7).\na(7).\nmain(7).\n"
    assert [(Path(s.span.file).name, s.span.line) for s in program.statements] == [
        ("b.dl", 3),
        ("a.dl", 2),
        ("main.dl", 3),
    ]


def errors_of(text: str, name: str = "main.dl") -> list[tuple[str, int | None, int | None, str]]:
    with pytest.raises(DlogError) as caught:
        parse(text, name)
    errors = caught.value.errors if isinstance(caught.value, DlogErrors) else [caught.value]
    return [(Path(e.file or "").name, e.line, e.column, e.message) for e in errors]


def test_errors_point_at_the_original_line() -> None:
    text = "#define A 1\n#ifdef B\np(.\n#endif\n\n// c\n" + "\n" * 20 + "p(A) q(x).\n#define C D E\nr(C).\n"
    assert errors_of(text) == [
        ("main.dl", 27, 6, "missing `,` or `.` before `q`"),
        ("main.dl", 29, 5, "missing `,` before `E`"),
    ]


def test_errors_in_included_files_point_there(tmp_path: Path) -> None:
    (tmp_path / "part.dl").write_text("\np(1) q(x).\n")
    main = f"{tmp_path}/main.dl"
    assert errors_of('a(1).\n#include "part.dl"\nb(\n', main) == [
        ("main.dl", 3, 2, "`(` is not closed"),
        ("part.dl", 2, 6, "missing `,` or `.` before `q`"),
    ]


def test_the_shown_line_is_the_original_one() -> None:
    with pytest.raises(DlogError) as caught:
        parse("#define LONG some_very_long_predicate(x, y) another(x)\np(x) <- LONG.", "f.dl")
    assert "\np(x) <- LONG.\n" in caught.value.render()
    assert caught.value.column == len("p(x) <- LONG.") + 1


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('a(1).\n#include "none.dl"\n', 2, "cannot find the included file none.dl"),
        ('#include "/dev/zero"\n', 1, "cannot find the included file /dev/zero"),
        ("#include\n", 1, "malformed #include"),
        ("#include A\n", 1, "malformed #include"),
        ("\n#if 1\np(1).\n", 2, "#if is not closed"),
        ("#endif\n", 1, "#endif without #if"),
        ("#else\n", 1, "#else without #if"),
        ("#if (\n#endif\n", 1, "cannot evaluate this condition"),
        ("#if 1/0\n#endif\n", 1, "cannot evaluate this condition"),
        ("\n#define\n", 2, "malformed #define"),
        ("#define A(x\n", 1, "`)` is missing in the arguments of a macro"),
        ("#define A(x) x\n\np(A(1, 2)).\n", 3, "macro A takes 1 arguments, not 2"),
        ("a(1).\n#error not yet\n", 2, "#error not yet"),
        ("a(1).\n#ifndef A\n# what is this\n#endif", 3, "unexpected character `#`"),
    ],
)
def test_errors_of_the_preprocessor(
    text: str, line: int, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert [(file, at, what) for file, at, _, what in errors_of(text)] == [("main.dl", line, message)]
    assert capfd.readouterr() == ("", "")


def test_files_are_called_as_the_program_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "part.dl").write_text("q(x) r.\n")
    main = tmp_path / "lib" / "main.dl"
    main.write_text('#include "part.dl"\np(x) r(__FILE__).\n')
    monkeypatch.chdir(tmp_path)
    for name in ["lib/main.dl", "./lib/main.dl", str(main)]:
        with pytest.raises(DlogErrors) as caught:
            parse_file(name)
        part = str(tmp_path / "lib" / "part.dl") if name == str(main) else "lib/part.dl"
        assert {e.file for e in caught.value} == {name, part}
        assert "\nq(x) r.\n" in caught.value.render()
    assert format_program(parse("#define A\np(__FILE__, __LINE__).", "./f.dl")) == 'p("./f.dl", 2).\n'


def test_a_file_that_includes_itself(tmp_path: Path) -> None:
    (tmp_path / "a.dl").write_text('#include "a.dl"\n#include "a.dl"\np(1).\n')
    with pytest.raises(DlogError, match="does a file include itself"):
        parse_file(tmp_path / "a.dl")


def test_macros_that_double_each_other_are_stopped() -> None:
    doubling = "#define A0 x x\n" + "".join(f"#define A{i + 1} A{i} A{i}\n" for i in range(40))
    with pytest.raises(DlogError, match="macros expand to too much text"):
        parse(doubling + "p(A40).")


def test_macros_that_repeat_long_arguments_are_stopped() -> None:
    with pytest.raises(DlogError, match="macros expand to too much text"):
        parse(f"#define W(a) {'a ' * 2000}\nW(W(W(1)))")


def test_many_uses_of_macros_are_fine() -> None:
    uses = "".join(f"p{i}(x) <- E(x, y), E(y, z).\n" for i in range(300))
    assert len(parse("#define E(a, b) edge(a, b), edge(b, a)\n" + uses).statements) == 300


def test_bad_bytes_in_included_files(tmp_path: Path) -> None:
    (tmp_path / "bad.dl").write_bytes(b"p(1).\n\xff\n")
    assert errors_of('#include "bad.dl"\n', f"{tmp_path}/main.dl") == [
        ("bad.dl", 2, 1, "not UTF-8 text (byte 0xff)")
    ]
