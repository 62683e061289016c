"""The documents say what is true: their programs check, their Python runs, the files they name exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import dlog
from dlog import progress

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    "README.md",
    "docs/language.md",
    "docs/durable.md",
    "docs/joingraph.md",
    "docs/levels.md",
    "docs/m3.md",
    "docs/spark.md",
    "docs/sql.md",
    "docs/streams.md",
    "docs/performance.md",
    "docs/operations.md",
    "docs/transactions.md",
    "docs/views.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "programs/README.md",
]


def blocks(document: str, language: str) -> list[str]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


PROGRAMS = [(d, i) for d in DOCUMENTS for i in range(len(blocks(d, "prolog")))]


@pytest.mark.parametrize(("document", "number"), PROGRAMS)
def test_programs_in_documents_run(document: str, number: int) -> None:
    text = blocks(document, "prolog")[number]
    dlog.Database(source=text).check()


TRIGGER_PROGRAMS = [(d, i) for d in DOCUMENTS for i in range(len(blocks(d, "m3")))]


@pytest.mark.parametrize(("document", "number"), TRIGGER_PROGRAMS)
def test_trigger_programs_in_documents_are_right(document: str, number: int) -> None:
    from dlog import m3

    m3.check(m3.parse(blocks(document, "m3")[number]))


LANGUAGE = (ROOT / "docs/language.md").read_text(encoding="utf-8")
VALUES = re.findall(r"\| `([^`]+)` \| `([^`]+)` (?=\|)", LANGUAGE)


def test_expressions_in_the_language_document_have_the_values_shown() -> None:
    assert len(VALUES) > 50
    database = dlog.Database(source="\n".join(f"v{i}(x) <- x = {e}." for i, (e, _) in enumerate(VALUES)))
    found = [", ".join(str(x) for (x,) in database[f"v{i}"].rows()) for i in range(len(VALUES))]
    assert dict(VALUES) == dict(zip((e for e, _ in VALUES), found, strict=True))


def test_the_language_document_shows_every_word() -> None:
    """Every function, condition, operator, aggregate, directive and qualifier, in a program or a table."""
    from dlog.aggregates import AGGREGATES
    from dlog.ir import primitives
    from dlog.language import vocabulary

    words = primitives.FUNCTORS | vocabulary.WORD_OPERATORS | vocabulary.WORD_PREFIXES | set(AGGREGATES)
    words |= vocabulary.QUALIFIERS | {f".{name}" for name in vocabulary.DIRECTIVES}
    assert not {word for word in words if not re.search(rf"(?<![a-z_]){re.escape(word)}(?![a-z_])", LANGUAGE)}


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if blocks(d, "python")])
def test_python_in_documents_runs(document: str) -> None:
    for text in blocks(document, "python"):
        exec(compile(text, document, "exec"), {})


IN_ORDER = ("docs/durable.md",)  # see tests/durable/test_prompt.py
# Lines that are printed when something takes long, or when two processes meet.
NOTICE = f"^({'|'.join(['compiling kernels', 'waiting for another process', *progress.PHASES.values()])}) "
SESSIONS = [(d, i) for d in DOCUMENTS if d not in IN_ORDER for i in range(len(blocks(d, "console")))]
_PROMPT = re.compile(r"^(?:dlog|tx|failed|\.\.\.)[> ] ?")


@pytest.mark.parametrize(("document", "number"), SESSIONS)
def test_sessions_in_documents_are_as_shown(document: str, number: int) -> None:
    """`$ dlog ...` is run with the lines after `dlog>` as its input; times are not compared."""
    command, *lines = blocks(document, "console")[number].splitlines()
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "dlog"
    typed = [_PROMPT.sub("", line) for line in lines if _PROMPT.match(line)]
    shown = [line for line in lines if not _PROMPT.match(line)]
    done = subprocess.run(
        [sys.executable, "-m", "dlog", *arguments],
        input="".join(f"{line}\n" for line in typed),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
    )
    printed = re.sub(rf"{NOTICE}.*\n", "", done.stdout, flags=re.MULTILINE).replace("<stdin>", "<prompt>")
    if shown:
        assert _without_times(printed) == _without_times("".join(f"{line}\n" for line in shown))
    assert done.returncode == (1 if "error:" in printed else 0)


def _without_times(text: str) -> str:
    return re.sub(r"[0-9.]+ m?s\b", "TIME", text)


def test_glossary_defines_each_term_once_and_in_order() -> None:
    """One term in each row; a word with several meanings is qualified, as in `map slot`."""
    sections = (ROOT / "GLOSSARY.md").read_text(encoding="utf-8").split("\n## ")[1:]
    terms = [re.findall(r"^\| (?!term |---)([^|]+?) \|", section, re.MULTILINE) for section in sections]
    every = [term.lower() for section in terms for term in section]
    assert len(every) > 100 and not [term for term in set(every) if every.count(term) > 1 or "," in term]
    for section in terms:
        assert section == sorted(section, key=str.lower)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / document).parent.joinpath(target).exists(), target
