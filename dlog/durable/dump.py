"""Owns operations on a folder as a whole: writing it out as a program, and verifying it.  Only reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TextIO

from dlog.durable.database import Database, no_database
from dlog.durable.files import Files
from dlog.durable.folder import read_folder
from dlog.engine.commit.printed_facts import facts_text
from dlog.engine.saving import save
from dlog.errors import StoreError
from dlog.language import ast
from dlog.language.printing import format_node


def dump(folder: Path, branch: str, out: Path | None, text: TextIO, progress: Any = None) -> None:
    """A program whose evaluation gives the same predicates: with its facts as text, or beside it in files."""
    if not folder.is_dir():  # a program that is only in memory is not a database to write out
        raise no_database(folder)
    with Database(folder, read_only=True, progress=progress, evaluated=False) as database:
        if branch != database.current_branch:
            database.checkout(branch)
        if out is not None:
            save(database, out)
            return
        for statement in database.tree.statements:
            if not (isinstance(statement, ast.Directive) and statement.kind == "input"):
                print(format_node(statement), file=text)
        for name in database.predicates():
            for fact in facts_text(database.program.predicates[name], database.base(name)):
                print(f"{fact}.", file=text)
        for declaration, predicate, result in database.given():
            print(format_node(declaration), file=text)
            for fact in facts_text(predicate, result):
                print(f"{fact}.", file=text)


def check(folder: Path, progress: Any = None) -> str:
    """Raises for the first thing that is wrong; else returns a short summary."""
    found = read_folder(folder, Files())
    if found is None:
        raise no_database(folder)
    with Database(folder, read_only=True, progress=progress) as database:
        database.store.dictionary.check()
        database.store.dictionary.records.check()
        facts = 0
        branches = database.branches()
        for name in branches:
            database.checkout(name)
            try:
                database.check()
            except AssertionError as error:
                raise StoreError(f"{folder}: an invariant of branch {name} does not hold: {error}") from None
            database.verify()
            facts = max(facts, sum(len(database.base(p)) for p in database.predicates()))
        lines = [
            f"{folder}: sound",
            f"  versions up to {database._timeline.last}, {_number(len(found.records), 'record')} in the log",
            *(f"  branch {name} at version {version}" for name, version in branches.items()),
            f"  {_number(facts, 'base fact')} in the largest branch",
        ]
    if found.tail.cut:
        lines.append(f"  {found.tail.cut:,} bytes after the log are not a record: {found.tail.reason}")
    return "\n".join(lines)


def _number(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
