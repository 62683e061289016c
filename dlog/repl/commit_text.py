"""Owns the lines that report a commit: `committed 1: +2 edge, +3 reach (0.4 ms)`."""

from __future__ import annotations

from collections import Counter

from dlog.durable.database import Database
from dlog.engine.commit.commits import Commit
from dlog.engine.database import Database as InMemory
from dlog.engine.maintain.strategies import PRAGMA
from dlog.ir.goals.materialize import ALWAYS, DIRECTIVE
from dlog.language import ast
from dlog.report import change_parts, milliseconds

_NOUNS = {
    ast.Rule: "rule",
    ast.SequenceRule: "rule",
    ast.DeltaRule: "delta rule",
    ast.Constraint: "constraint",
    ast.Declaration: "declaration",
    ast.Entity: "declaration",
    ast.Block: "block",
}


def commit_line(commit: Commit, database: Database, earlier: ast.Program) -> str:
    """`earlier` is the program before the commit."""
    changes = changes_text(commit, database, earlier)
    return f"committed {commit.version}: {changes} ({milliseconds(commit.seconds)})"


def changes_text(commit: Commit, database: InMemory, earlier: ast.Program) -> str:
    """`1 rule, +3 reach`: what a commit changed in the program and in predicates."""
    parts = [*program_change(earlier, database.tree), *change_parts(commit, database)]
    return ", ".join(parts) or "no change"


def program_change(before: ast.Program, after: ast.Program) -> list[str]:
    """`1 rule`, `1 rule removed`, `p on_read`: what a transaction added to the program, what it removed, and
    what it set."""
    if before is after:
        return []
    added, removed = _counts(after) - _counts(before), _counts(before) - _counts(after)
    was, now = _settings(before), _settings(after)
    parts = [*_numbers(added), *(f"{text} removed" for text in _numbers(removed))]
    return parts + [f"{name} {value}" for name, value in now.items() if was.get(name, ALWAYS) != value]


def _settings(program: ast.Program) -> dict[str, str]:
    """The modes of predicates, and the strategy."""
    found = dict[str, str]()
    for statement in program.statements:
        if isinstance(statement, ast.Directive) and statement.kind == DIRECTIVE:
            found[statement.predicate] = str(statement.params[0].value)
        elif isinstance(statement, ast.Pragma) and statement.key == PRAGMA:
            found["strategy"] = statement.value or ""
    return found


def _numbers(counts: Counter[str]) -> list[str]:
    return [
        f"{n} {noun}{'' if n == 1 else 's'}" for noun in dict.fromkeys(_NOUNS.values()) if (n := counts[noun])
    ]


def _counts(program: ast.Program) -> Counter[str]:
    """Declarations that only determine types have no text, so they are not counted."""
    return Counter(_NOUNS[type(s)] for s in program.statements if type(s) in _NOUNS and _is_written(s))


def _is_written(statement: ast.Node) -> bool:
    if not isinstance(statement, ast.Declaration):
        return True
    return statement.span is not None and any(c in statement.span.text() for c in ("->", ".decl"))
