"""Owns the commands about view trees and M3 programs: m3, m3-check and m3-run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dlog.cli.common import (
    Chosen,
    Depth,
    Dialect,
    Functions,
    Inputs,
    Levels,
    VariableOrder,
    check_each,
    read_dialect,
    run_python,
)
from dlog.errors import DlogError

if TYPE_CHECKING:
    from dlog.engine.evaluated import Evaluated
    from dlog.views.levels.program import Levels as LevelsOfMaps
    from dlog.views.nested import NestedQuery
    from dlog.views.query import Query
    from dlog.views.tree.tree import ViewTree


def m3(
    program: Annotated[Path, typer.Argument(metavar="QUERY.sql|PROGRAM.dl", help="a query, or a program")],
    predicate: Annotated[str | None, typer.Argument(help="of a program: what its rules derive")] = None,
    dtree: VariableOrder = None,
    consumer: Annotated[
        str | None,
        typer.Option("--for", "--dialect", metavar="a5|dbtoaster|fivm", help="the program that reads the M3"),
    ] = None,
    batch: Annotated[
        bool | None, typer.Option("--batch/--single", help="triggers for batches, or for single rows")
    ] = None,
    optimise: Annotated[
        bool,
        typer.Option(
            "--optimise/--plain",
            "--optimize/--no-optimize",
            help="without, every view and every change is a map",
        ),
    ] = True,
    one_payload: Annotated[
        bool,
        typer.Option(
            "--compound/--separate", help="all aggregates as one element of a ring, as F-IVM has them"
        ),
    ] = False,
    facts: Annotated[
        Path | None,
        typer.Option("--facts", "-F", help="folder of the .input files; default: the program's folder"),
    ] = None,
    tree: Annotated[
        Path | None,
        typer.Option(metavar="FILE.svg|.pdf|.dot", help="draw the view tree, or the maps, into a file"),
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", help="write the M3 program into a file")] = None,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write what was decided and why into a file")
    ] = None,
    levels: Levels = False,
    depth: Depth = None,
    chosen: Chosen = False,
    inputs: Inputs = False,
) -> None:
    """Print the M3 program that keeps the result of an aggregation query up to date."""
    from dlog.views.levels.export import level_text
    from dlog.views.levels.program import Options
    from dlog.views.levels.sampled import sampled
    from dlog.views.log.log import recorded
    from dlog.views.m3.export import exported, target

    to = target(consumer, batch, optimise, one_payload)
    forced = levels or depth is not None or chosen or inputs
    with recorded(log, f"{program} {predicate or ''}".strip(), to, dtree) as observer:
        nested = by_levels(program, predicate, facts, forced)
        if nested is not None:
            plain = not optimise
            refuse_options(nested, {"--order": dtree, "--plain": plain, "--compound": one_payload})
            known = sampled(nested.sources, (program.parent,)).known if chosen else None
            compiled, text = level_text(nested, to, Options(depth, inputs, statistics=known))
            if observer is not None:
                observer.leveled(compiled, text)
            _write(text, output)
            if tree is not None:
                draw_maps(program, predicate, compiled, tree)
            return
        query, found, text = exported(program, predicate, dtree, to, facts, observer)
    if tree is not None:
        draw(program, predicate, found, query, tree)
    _write(text, output)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DlogError(f"cannot write {output}: {error.strerror}") from None


def by_levels(program: Path, predicate: str | None, facts: Path | None, levels: bool) -> NestedQuery | None:
    """The query of a file, if it is maintained by levels of maps: because it must be, or is to be."""
    from dlog.views.m3.export import read_any
    from dlog.views.nested import NestedQuery

    if program.suffix.lower() != ".sql" and not levels:
        return None
    query = read_any(program, predicate, facts, levels)
    return query if isinstance(query, NestedQuery) else None


def refuse_options(query: NestedQuery, given: Mapping[str, object]) -> None:
    """Those that belong to view trees."""
    for option, value in given.items():
        if value:
            help = f"leave it out: the query has levels of maps, since {query.reason}"
            raise DlogError(f"{option} belongs to view trees", help=help)


def draw(program: Path, predicate: str | None, tree: ViewTree, query: Query, picture: Path) -> None:
    from dlog.views.picture.picture import write_picture

    _warn_of_lost(write_picture(tree, picture, _title(program, predicate), query), picture)


def draw_maps(program: Path, predicate: str | None, levels: LevelsOfMaps, picture: Path) -> None:
    from dlog.views.picture.levels import write_levels

    _warn_of_lost(write_levels(levels, picture, _title(program, predicate)), picture)


def draw_strategy(database: Evaluated, program: Path, predicate: str | None, picture: Path) -> bool:
    """Draw what maintains a predicate, if its strategy has a picture."""
    lost = database.draw(picture, _title(program, predicate), predicate)
    _warn_of_lost(lost or "", picture)
    return lost is not None


def _title(program: Path, predicate: str | None) -> str:
    return f"{program.name}: {predicate}" if predicate else program.name


def _warn_of_lost(lost: str, picture: Path) -> None:
    if lost:
        message = f"{picture}: PDF fonts have no {' '.join(lost[:10])}, which are shown as ?; SVG has them"
        print(f"warning: {message}", file=sys.stderr)


def m3_check(
    programs: Annotated[list[Path], typer.Argument(metavar="PROGRAM.m3...", help="M3 programs")],
    dialect: Dialect = None,
    functions: Functions = None,
) -> None:
    """Check M3 programs: print their errors, or nothing."""
    from dlog.m3 import check, parse_file

    run_python(functions)
    dialect = read_dialect(dialect)
    check_each(programs, lambda path: check(parse_file(path, dialect)))


def m3_run(
    program: Annotated[Path, typer.Argument(metavar="PROGRAM.m3", help="an M3 program")],
    batch: Annotated[int, typer.Option("--batch", "-b", min=1, help="rows of a stream at a time")] = 1000,
    facts: Annotated[
        Path | None, typer.Option("--facts", "-F", help="folder of the files; default: the program's folder")
    ] = None,
    format: Annotated[str, typer.Option(metavar="table|csv|json", help="how results are printed")] = "table",
    skip_bad_rows: Annotated[
        bool, typer.Option("--skip-bad-rows", help="skip rows that cannot be read, and count them")
    ] = False,
    dialect: Dialect = None,
    functions: Functions = None,
    stats: Annotated[bool, typer.Option("--stats", help="rows, time and memory on standard error")] = False,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="cores to use")] = None,
    floats: Annotated[
        str, typer.Option(metavar="exact|doubled|plain", help="how floats are added")
    ] = "exact",
) -> None:
    """Run an M3 program over the files that it names, and print its queries."""
    import time

    from dlog.m3 import parse_file
    from dlog.m3.runtime.results import FORMATS, print_results
    from dlog.m3.runtime.runtime import Runtime
    from dlog.m3.runtime.streams import Reader, run_files
    from dlog.progress import Screen

    if format not in FORMATS:
        raise DlogError(f"unknown format {format}", help=f"one of {', '.join(FORMATS)}")
    run_python(functions)
    runtime = Runtime(parse_file(program, read_dialect(dialect)), floats=floats, threads=jobs)
    started = time.perf_counter()
    with Screen() as screen:
        reader = Reader(facts or program.parent, skip_bad_rows, screen.print)
        run_files(runtime, reader, batch, screen)
    print_results(runtime.results(), format, sys.stdout)
    sys.stdout.flush()
    if reader.skipped:
        print(f"{reader.skipped:,} bad row{'' if reader.skipped == 1 else 's'} skipped", file=sys.stderr)
    if reader.left_out:
        print(f"left out, as their files cannot be read: {', '.join(reader.left_out)}", file=sys.stderr)
    if stats:
        seconds = time.perf_counter() - started
        memory = f"{runtime.memory() / 1e6:,.1f} MB of maps"
        print(f"{runtime.rows:,} rows in {seconds:.2f} s, {memory}", file=sys.stderr)
