"""Owns one run of a program: evaluate, then write what it asks for.  All outputs appear, or none."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import BinaryIO

from dlog.engine.database import Database
from dlog.engine.loading import FAR_HELP, directive_params, located
from dlog.engine.state.limits import Limits
from dlog.errors import DataError
from dlog.io import OutputOptions, OutputSet
from dlog.language import ast

Progress = Callable[[str, str, int, int], None]


def run_program(
    path: str | Path,
    facts: str | Path = ".",
    out: str | Path = ".",
    *,
    limits: Limits | None = None,
    progress: Progress | None = None,
    warn: Callable[[str], None] | None = None,
    jobs: int = 1,
    stdout: BinaryIO | None = None,
    magic: bool = True,
    traced: bool = False,
) -> Database:
    """Evaluates a program and writes its `.output` and `.printsize` predicates; `out` may be "-".

    With `magic` only what the program asks for is computed; `traced` keeps what a profile shows.
    """
    database = Database(
        path,
        facts=facts,
        limits=limits,
        progress=progress,
        warn=warn,
        jobs=jobs,
        goals_only=magic,
        traced=traced,
    )
    write_outputs(database, out, progress, stdout)
    return database


def write_outputs(
    database: Database,
    out: str | Path,
    progress: Progress | None = None,
    stdout: BinaryIO | None = None,
    written: Collection[ast.Directive] = (),
) -> None:
    """The `.output` and `.printsize` predicates, but for outputs that others have written."""
    wanted = [d for d in database.program.directives if d.kind in ("output", "printsize")]
    wanted = [d for d in wanted if d not in written]
    with OutputSet(stdout=stdout) as outputs:
        for number, directive in enumerate(wanted):
            if progress is not None:
                progress("write", directive.predicate, number, len(wanted))
            if directive.kind == "printsize":
                outputs.print_size(directive.predicate, len(database.relation(directive.predicate)))
            else:
                _write(database, directive, out, outputs)


def _write(database: Database, directive: ast.Directive, out: str | Path, outputs: OutputSet) -> None:
    result = database[directive.predicate]
    try:
        options = OutputOptions.from_params(directive.predicate, directive_params(directive), out)
        if options.far is not None:
            raise DataError(f'"{options.far}" is written by Spark', help=FAR_HELP)
        outputs.write(result.table_for(options.format), options, [(c.name, c.type) for c in result.columns])
    except DataError as error:
        raise located(error, directive) from None
