"""Owns a database as files: a program, and beside it one file of base facts for each predicate that has any.

Correct output: `dlog run DIR/program.dl -F DIR` has the same predicates with the same rows.
"""

from __future__ import annotations

from pathlib import Path

from dlog.engine.database import Database
from dlog.errors import DataError
from dlog.io import OutputOptions, OutputSet
from dlog.language import ast
from dlog.language.printing import format_node, quoted

PROGRAM = "program.dl"


def save(database: Database, folder: Path) -> None:
    """Writes all of it; files of other names in the folder are left alone.  O(size of the base facts)."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is not a folder")
    lines = [format_node(s) for s in database.tree.statements if not _is_input(s)]
    with OutputSet() as outputs:
        for name in database.predicates():
            result = database.base(name)
            if len(result) and result.columns:
                options = OutputOptions.from_params(name, _parameters(name) | {"precision": "full"}, folder)
                outputs.write(
                    result.table_for(options.format), options, [(c.name, c.type) for c in result.columns]
                )
                given = ", ".join(f"{k}={quoted(v)}" for k, v in _parameters(name).items())
                lines.append(f".input {name}({given})")
            elif len(result):
                lines.append(f"{name}().")
        for declaration, predicate, result in database.given():
            options = OutputOptions.from_params(
                predicate.name, _parameters(predicate.name) | {"precision": "full"}, folder
            )
            outputs.write(result.to_arrow(), options, [(c.name, c.type) for c in result.columns])
            given = ", ".join(f"{k}={quoted(v)}" for k, v in _parameters(predicate.name).items())
            lines += [format_node(declaration), f".input {predicate.name}({given})"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / PROGRAM).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot write {folder / PROGRAM}: {error.strerror}") from None


def _parameters(name: str) -> dict[str, str]:
    return {"IO": "csv", "filename": f"{name}.csv"}


def _is_input(statement: ast.Node) -> bool:
    return isinstance(statement, ast.Directive) and statement.kind == "input"
