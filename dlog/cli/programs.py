"""Owns the commands that read a program: check, format, run, explain and why."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dlog.cli.common import (
    Chosen,
    Depth,
    FactsFolder,
    Folders,
    Functions,
    Inputs,
    Jobs,
    Levels,
    Macros,
    MaxMemory,
    MaxRows,
    NoWarnings,
    ProgramFile,
    Shards,
    Spark,
    Strategy,
    check_each,
    preprocess_with,
    read_limits,
    run_python,
)
from dlog.cli.process import allow_pandas
from dlog.cli.views import by_levels, draw, draw_maps, draw_strategy, refuse_options
from dlog.errors import DlogError

if TYPE_CHECKING:
    from dlog.durable.database import Database
    from dlog.engine.evaluated import Evaluated
    from dlog.engine.state.limits import Limits
    from dlog.profile import Clock
    from dlog.progress import Screen


def check(
    programs: Annotated[list[Path], typer.Argument(metavar="PROGRAM.dl...", help="programs")],
    functions: Functions = None,
    include_dir: Folders = None,
    macro: Macros = None,
    no_warnings: NoWarnings = False,
) -> None:
    """Check programs, or queries in SQL: print their errors and warnings, or nothing."""
    preprocess_with(include_dir or [], macro or [])
    run_python(functions)
    from dlog.engine.maintain.strategies import requested
    from dlog.implementations import Implementations
    from dlog.ir.analysis.warnings import program_warnings
    from dlog.ir.check import load_program
    from dlog.ir.functors import used_functors
    from dlog.language.source import read_source
    from dlog.planning.options import Options

    def load(path: Path) -> object:
        if path.suffix == ".sql":
            from dlog.views.sql.files import read_sql

            return read_sql(path)
        checked = load_program(read_source(path))[1]
        if functions is not None:
            Implementations().bind(checked.functors, used_functors(checked.rules))
        Options.of(checked.pragmas)
        requested(None, checked.pragmas)
        for warning in [] if no_warnings else program_warnings(checked):
            print(warning.render(), file=sys.stderr)
        return checked

    check_each(programs, load)


def format(
    program: ProgramFile,
    write: Annotated[
        bool, typer.Option("--write", "-w", help="rewrite the file instead of printing")
    ] = False,
    include_dir: Folders = None,
    macro: Macros = None,
) -> None:
    """Print a program in the canonical style."""
    preprocess_with(include_dir or [], macro or [])
    from dlog.language.format import format_program
    from dlog.language.parse import parse_file
    from dlog.language.preprocess import has_directives
    from dlog.language.source import read_source

    text = format_program(parse_file(program))
    expanded = bool(macro) or has_directives(read_source(program).text)
    if write and expanded:
        what = "macros are given" if macro else f"{program} has preprocessor lines"
        raise DlogError(f"{what}: what is printed is the text after them", help="leave out --write")
    if expanded:
        what = "macros are given" if macro else f"{program} has preprocessor lines"
        print(f"warning: {what}; this is the program after them", file=sys.stderr)
    if write:
        program.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


def run(
    program: ProgramFile,
    facts: FactsFolder = Path("."),
    out: Annotated[Path, typer.Option("--output", "-D", help="folder of the .output files; - prints")] = Path(
        "."
    ),
    jobs: Jobs = 1,
    stats: Annotated[
        bool, typer.Option("--stats", help="print rows, iterations, seeks and time per rule")
    ] = False,
    profile: Annotated[
        Path | None,
        typer.Option(metavar="PAGE.html", help="write a page about time, rows and plans of each rule"),
    ] = None,
    timeout: Annotated[float | None, typer.Option(min=0, help="stop after this many seconds")] = None,
    max_rows: MaxRows = None,
    max_memory: MaxMemory = None,
    no_magic: Annotated[
        bool, typer.Option("--no-magic", help="compute every predicate in full, needed or not")
    ] = False,
    spark: Spark = None,
    shards: Shards = None,
    work: Annotated[
        Path | None, typer.Option(metavar="DIR", help="with --spark: a folder that all workers can access")
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="with --spark: a Spark setting")
    ] = None,
    functions: Functions = None,
    include_dir: Folders = None,
    macro: Macros = None,
    no_warnings: NoWarnings = False,
) -> None:
    """Evaluate a program once and write its .output predicates.  The program - is standard input."""
    preprocess_with(include_dir or [], macro or [])
    run_python(functions)
    limits = read_limits(timeout, max_rows, max_memory)
    if spark is None and (shards or work or conf):
        raise DlogError("--shards, --work and --conf belong to --spark MASTER")
    if spark is not None and profile is not None:
        raise DlogError("a profile is of one process: leave out --profile or --spark")
    if spark is not None and (stats or jobs > 1):
        raise DlogError("--stats and --jobs are of one process: leave them out, or --spark")
    if spark is not None:
        _run_on_spark(program, facts, out, spark, shards, work, conf or [], limits, not no_magic, no_warnings)
    else:
        _run_here(program, facts, out, limits, jobs, not no_magic, profile, stats, no_warnings)


def _run_on_spark(
    program: Path,
    facts: Path,
    out: Path,
    master: str,
    shards: int | None,
    work: Path | None,
    settings: list[str],
    limits: Limits,
    magic: bool,
    no_warnings: bool,
) -> None:
    from dlog.progress import Screen
    from dlog.report import print_queries, run_warnings, undefined_warnings
    from dlog.spark.command import run_on_spark

    allow_pandas()
    with Screen() as screen:
        sharded = run_on_spark(
            program,
            facts,
            out,
            master,
            shards=shards,
            work=work,
            settings=settings,
            limits=limits,
            progress=screen,
            warn=screen.print,
            magic=magic,
        )
        of_program: list[str] = [] if no_warnings else run_warnings(sharded.program)
        for warning in [*of_program, *undefined_warnings(sharded)]:
            screen.print(warning)
    print_queries(sharded)


def _run_here(
    program: Path,
    facts: Path,
    out: Path,
    limits: Limits,
    jobs: int,
    magic: bool,
    profile: Path | None,
    stats: bool,
    no_warnings: bool,
) -> None:
    from dlog.engine.run import run_program
    from dlog.progress import Screen
    from dlog.report import print_queries, print_stats, run_warnings, undefined_warnings

    with Screen() as screen:
        clock = _clock(screen) if profile is not None else None
        database = run_program(
            program,
            facts,
            out,
            limits=limits,
            progress=clock or screen,
            warn=screen.print,
            jobs=jobs,
            magic=magic,
            traced=profile is not None,
        )
        if profile is not None and clock is not None:
            from dlog.profile import write_profile

            clock.stop()
            write_profile(profile, database, program, clock.seconds)
        of_program: list[str] = [] if no_warnings else run_warnings(database.program)
        for warning in [*of_program, *undefined_warnings(database)]:
            screen.print(warning)
    print_queries(database)
    if stats:
        print_stats(database)


def explain(
    program: Annotated[Path, typer.Argument(metavar="PROGRAM.dl|QUERY.sql", help="a program, or a query")],
    predicate: Annotated[str | None, typer.Argument(help="only the rules of this predicate")] = None,
    facts: FactsFolder = Path("."),
    order: Annotated[
        Path | None,
        typer.Option("--order", "--dtree", help="the variable order of a query; default: one is chosen"),
    ] = None,
    tree: Annotated[
        Path | None,
        typer.Option(
            "--tree",
            "--svg",
            metavar="FILE.svg|.pdf|.dot",
            help="draw the view tree, the maps, or the join graph, into a file",
        ),
    ] = None,
    strategy: Strategy = None,
    every: Annotated[
        bool, typer.Option("--all", help="what every strategy would cost, or why it refuses")
    ] = False,
    tx: Annotated[
        Path | None, typer.Option("--tx", metavar="FILE", help="run a file of transactions first")
    ] = None,
    spark: Annotated[bool, typer.Option("--spark", help="how rules are sharded, and why")] = False,
    shards: Annotated[
        int | None, typer.Option(min=1, help="with --spark: for this many shards; default: 2")
    ] = None,
    levels: Levels = False,
    depth: Depth = None,
    chosen: Chosen = False,
    inputs: Inputs = False,
    functions: Functions = None,
    include_dir: Folders = None,
    macro: Macros = None,
) -> None:
    """Show how each rule is evaluated and maintained, and why; for a query, its view tree.

    Facts are read for sizes; no rule runs.  With --tx FILE rules are evaluated and the transactions are run,
    so what was measured is shown, too, and where a trace is shared or exact.
    """
    preprocess_with(include_dir or [], macro or [])
    run_python(functions)
    if shards is not None and not spark:
        raise DlogError("--shards belongs to --spark")
    if tx is not None and (spark or program.suffix.lower() == ".sql"):
        raise DlogError("--tx is for a program in one process", help="leave it out")
    if spark:
        from dlog.spark.command import explain_on_spark

        print(explain_on_spark(program, facts, shards, predicate))
        return
    is_query = program.suffix.lower() == ".sql"
    if is_query and (strategy is not None or every):
        option = "--strategy" if strategy is not None else "--all"
        raise DlogError(f"{option} is for programs; a query is maintained by its view tree")
    forced = levels or depth is not None or chosen or inputs
    if forced and (strategy is not None or every):
        option = "--strategy" if strategy is not None else "--all"
        raise DlogError(f"{option} is about strategies, --levels about maps", help="leave out one of them")
    nested = by_levels(program, predicate, facts, forced)
    if nested is not None:
        from dlog.views.levels.explain import explain as explain_levels
        from dlog.views.levels.program import Options, side_by_side
        from dlog.views.levels.program import levels as compiled
        from dlog.views.levels.sampled import sampled

        refuse_options(nested, {"--order": order})
        sample = sampled(nested.sources, (facts, program.parent))
        known = sample.known if chosen else None
        maps = compiled(nested, Options(depth, inputs, statistics=known))
        print(explain_levels(maps, side_by_side(nested, sample.known), sample), end="")
        if tree is not None:
            draw_maps(program, predicate, maps, tree)
        return
    if not is_query and tx is not None:
        database: Evaluated = _after(program, facts, strategy, tx)
    elif not is_query:
        from dlog.engine.database import plan_only

        database = plan_only(program, facts, strategy)
        if database.unread is not None:
            print(f"warning: sizes are guesses: {database.unread.message}", file=sys.stderr)
            print("help: give the facts folder with -F", file=sys.stderr)
    if not is_query:
        print(database.explain(predicate, every))
        if tree is not None and order is None and draw_strategy(database, program, predicate, tree):
            return
    if is_query or order is not None or tree is not None:
        from dlog.views.m3.export import read_query, read_tree
        from dlog.views.picture.notation import explain as explain_tree

        query = read_query(program, predicate, facts)
        found = read_tree(query, order)
        if is_query or order is not None:
            print("" if is_query else f"\nthe view tree along {order}:\n", end="")
            print(explain_tree(found, query), end="")
        if tree is not None:
            draw(program, predicate, found, query, tree)


def _after(program: Path, facts: Path, strategy: str | None, transactions: Path) -> Database:
    """A program after a file of transactions.  Failures are reported, and answers of queries not shown."""
    from dlog.apply import Options, apply_file
    from dlog.durable.database import Database
    from dlog.progress import Screen

    with Screen() as screen:
        database = Database(program, facts=facts, strategy=strategy, progress=screen, warn=screen.print)
        with redirect_stdout(io.StringIO()):
            apply_file(database, transactions, Options(keep_going=True))
    return database


def why(
    program: ProgramFile,
    fact: Annotated[str, typer.Argument(help="a fact, as in 'reach(1, 3)'")],
    facts: FactsFolder = Path("."),
    jobs: Jobs = 1,
    functions: Functions = None,
    include_dir: Folders = None,
    macro: Macros = None,
) -> None:
    """One derivation of a fact, as a tree.  Status 1 when the fact does not hold."""
    preprocess_with(include_dir or [], macro or [])
    run_python(functions)
    from dlog.durable.database import Database
    from dlog.progress import Screen

    with Screen() as screen:
        database = Database(program, facts=facts, progress=screen, warn=screen.print, jobs=jobs)
    print(database.why(fact))


def _clock(screen: Screen) -> Clock:
    from dlog.profile import Clock

    return Clock(screen)
