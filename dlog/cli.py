"""Owns the command line: arguments in, text and exit status out.  Everything else is done below it.

Commands import what they need when they run, so that `dlog --help` stays quick.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from dlog.errors import DlogError

if TYPE_CHECKING:
    from dlog.profile import Clock
    from dlog.progress import Screen
    from dlog.views.query import Query
    from dlog.views.tree import ViewTree

HELP = """A Datalog engine whose answers stay up to date.

Write rules, load facts, change them; every derived predicate follows.

\b
A first program, hello.dl:
    edge(1, 2).  edge(2, 3).
    reach(x, y) <- edge(x, y).
    reach(x, z) <- reach(x, y), edge(y, z).
    .output reach

\b
Run it and print what it derives:
    dlog run hello.dl -D -
"""

app = typer.Typer(
    help=HELP,
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Strategy = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="maintain every rule in this way: delta, trace, trace-exact, views"),
]
DatabaseFolder = Annotated[
    Path | None, typer.Option("--db", metavar="DIR", help="keep the database in this folder")
]
Durability = Annotated[
    str, typer.Option(metavar="full|group|none", help="with --db: when a transaction counts as committed")
]
Spark = Annotated[
    str | None,
    typer.Option(metavar="MASTER", help="on Apache Spark, as in local[2] or spark://HOST:7077"),
]
Shards = Annotated[int | None, typer.Option(min=1, help="with --spark: how many; else as many as cores")]
ProgramFile = Annotated[Path, typer.Argument(metavar="PROGRAM.dl", help="a program")]


def main() -> NoReturn:
    """The console script: no user's mistake ends in a traceback."""
    # A process makes many objects at its start that live to its end: to look through them again after every
    # 700 took 8% of a small run.
    gc.set_threshold(100_000)
    sys.meta_path.insert(0, _NoPandas())
    _listen_to_interrupts()
    try:
        app(prog_name="dlog")
    except DlogError as error:
        print(error.render(), file=sys.stderr)
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        _end_interrupted()
    except SystemExit as end:
        if end.code == 130:  # typer's form of the same
            _end_interrupted()
        raise
    except BrokenPipeError:  # the reader of our output went away: not an error of ours
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    sys.exit(0)


def _listen_to_interrupts() -> None:
    """Ctrl-C, or SIGINT from another process, stops a command whatever it inherited and wherever it is.

    A shell starts its background jobs with SIGINT ignored, and Python then leaves it so.  And Python drops an
    interrupt that arrives in a destructor or in a callback from compiled code: that one is sent again.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def dropped(unraisable: sys.UnraisableHookArgs) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            threading.Timer(0.01, signal.raise_signal, [signal.SIGINT]).start()  # after the destructor
        else:
            sys.__unraisablehook__(unraisable)

    sys.unraisablehook = dropped


def _end_interrupted() -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # there is nothing left to stop
    print("interrupted", file=sys.stderr)
    sys.exit(130)


class _NoPandas:
    """pyarrow imports pandas, if there is one, with its first array: half a second that no command needs
    but `run --spark`, where pyspark asks for it before it writes folders."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("no command of dlog needs pandas", name=name)


@app.callback(invoke_without_command=True)
def version(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="print the version and exit")] = False,
) -> None:
    if version:
        from dlog import __version__

        print(f"dlog {__version__}")
        raise typer.Exit


@app.command()
def check(programs: Annotated[list[Path], typer.Argument(metavar="PROGRAM.dl...", help="programs")]) -> None:
    """Check programs, or queries in SQL: print their errors, or nothing."""
    from dlog.ir.check import load_program
    from dlog.language.source import read_source

    def load(path: Path) -> object:
        if path.suffix == ".sql":
            from dlog.views.sql import read_sql

            return read_sql(path)
        return load_program(read_source(path))

    _check_each(programs, load)


@app.command()
def m3(
    program: Annotated[Path, typer.Argument(metavar="QUERY.sql|PROGRAM.dl", help="a query, or a program")],
    predicate: Annotated[
        str | None, typer.Argument(help="of a program: what the rule with aggregates derives")
    ] = None,
    dtree: Annotated[
        Path | None, typer.Option("--order", "--dtree", help="the variable order; else one is found")
    ] = None,
    dialect: Annotated[
        str, typer.Option(metavar="a5|dbtoaster", help="the dialect that is written")
    ] = "dbtoaster",
    batch: Annotated[
        bool, typer.Option("--batch/--single", help="triggers for batches, or for single rows")
    ] = False,
    optimise: Annotated[
        bool,
        typer.Option(
            "--optimise/--plain",
            "--optimize/--no-optimize",
            help="without, every view and every change is a map",
        ),
    ] = True,
    facts: Annotated[
        Path | None, typer.Option("--facts", "-F", help="folder of the .input files; else the program's")
    ] = None,
    tree: Annotated[
        Path | None, typer.Option(metavar="FILE.svg|.pdf|.dot", help="draw the view tree into a file")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", help="write the M3 program into a file")] = None,
) -> None:
    """Print the M3 program that keeps the result of an aggregation query up to date."""
    from dlog.views.export import exported

    _dialect(dialect)
    query, found, text = exported(program, predicate, dtree, dialect, batch, optimise, facts)
    if tree is not None:
        _draw(program, predicate, found, query, tree)
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DlogError(f"cannot write {output}: {error.strerror}") from None


def _draw(program: Path, predicate: str | None, tree: ViewTree, query: Query, picture: Path) -> None:
    from dlog.views.picture import write_picture

    title = f"{program.name}: {predicate}" if predicate else program.name
    lost = write_picture(tree, picture, title, query)
    if lost:
        message = f"{picture}: PDF fonts have no {' '.join(lost[:10])}, which are shown as ?; SVG has them"
        print(f"warning: {message}", file=sys.stderr)


@app.command("m3-check")
def m3_check(
    programs: Annotated[list[Path], typer.Argument(metavar="PROGRAM.m3...", help="M3 programs")],
    dialect: Annotated[
        str | None, typer.Option(metavar="a5|dbtoaster", help="the dialect; else what the text shows")
    ] = None,
) -> None:
    """Check M3 programs: print their errors, or nothing."""
    from dlog.m3 import check, parse_file

    dialect = _dialect(dialect)
    _check_each(programs, lambda path: check(parse_file(path, dialect)))


def _check_each(programs: list[Path], check: Callable[[Path], object]) -> None:
    """Errors of all of them are printed; one is enough to fail."""
    failed = False
    for path in programs:
        try:
            check(path)
        except DlogError as error:
            print(error.render(), file=sys.stderr)
            failed = True
    if failed:
        raise typer.Exit(1)


@app.command("m3-run")
def m3_run(
    program: Annotated[Path, typer.Argument(metavar="PROGRAM.m3", help="an M3 program")],
    batch: Annotated[int, typer.Option("--batch", "-b", min=1, help="rows of a stream at a time")] = 1000,
    facts: Annotated[
        Path | None, typer.Option("--facts", "-F", help="folder of the files; else the program's")
    ] = None,
    format: Annotated[str, typer.Option(metavar="table|csv|json", help="how results are printed")] = "table",
    skip_bad_rows: Annotated[
        bool, typer.Option("--skip-bad-rows", help="go on without rows that cannot be taken, and count them")
    ] = False,
    dialect: Annotated[
        str | None, typer.Option(metavar="a5|dbtoaster", help="the dialect; else what the text shows")
    ] = None,
    stats: Annotated[bool, typer.Option("--stats", help="rows, time and memory on standard error")] = False,
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
    runtime = Runtime(parse_file(program, _dialect(dialect)))
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
        memory = f"{runtime.maps.memory() / 1e6:,.1f} MB of maps"
        print(f"{runtime.rows:,} rows in {seconds:.2f} s, {memory}", file=sys.stderr)


def _dialect(dialect: str | None) -> str | None:
    from dlog.m3.ast import DIALECTS

    if dialect not in (None, *DIALECTS):
        raise DlogError(f"unknown dialect {dialect}", help=f"one of {', '.join(DIALECTS)}")
    return dialect


@app.command()
def format(
    program: ProgramFile,
    write: Annotated[
        bool, typer.Option("--write", "-w", help="rewrite the file instead of printing")
    ] = False,
) -> None:
    """Print a program in the canonical style."""
    from dlog.language.format import format_program
    from dlog.language.parse import parse_file
    from dlog.language.preprocess import has_directives
    from dlog.language.source import read_source

    text = format_program(parse_file(program))
    expanded = has_directives(read_source(program).text)
    if write and expanded:
        raise DlogError(
            f"{program} has preprocessor lines: what is printed is the text after them",
            help="leave out --write",
        )
    if expanded:
        print(f"warning: {program} has preprocessor lines; this is the program after them", file=sys.stderr)
    if write:
        program.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


@app.command()
def run(
    program: ProgramFile,
    facts: Annotated[Path, typer.Option("--facts", "-F", help="folder of the .input files")] = Path("."),
    out: Annotated[Path, typer.Option("--output", "-D", help="folder of the .output files; - prints")] = Path(
        "."
    ),
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="cores to use")] = 1,
    stats: Annotated[
        bool, typer.Option("--stats", help="print rows, iterations, seeks and time per rule")
    ] = False,
    profile: Annotated[
        Path | None,
        typer.Option(metavar="PAGE.html", help="write a page about time, rows and plans of each rule"),
    ] = None,
    timeout: Annotated[float | None, typer.Option(min=0, help="stop after this many seconds")] = None,
    max_rows: Annotated[int | None, typer.Option(min=0, help="stop after this many derived rows")] = None,
    max_memory: Annotated[str | None, typer.Option(help="stop at this much memory, as in 500M or 2G")] = None,
    no_magic: Annotated[
        bool, typer.Option("--no-magic", help="compute every predicate in full, asked for or not")
    ] = False,
    spark: Spark = None,
    shards: Shards = None,
    work: Annotated[
        Path | None, typer.Option(metavar="DIR", help="with --spark: a folder that all workers reach")
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="with --spark: a setting of Spark's")
    ] = None,
) -> None:
    """Evaluate a program once and write its .output predicates."""
    from dlog.engine.limits import Limits
    from dlog.engine.run import run_program
    from dlog.progress import Screen
    from dlog.report import print_queries, print_stats, undefined_warnings

    limits = Limits(timeout, max_rows, _bytes(max_memory))
    if spark is None and (shards or work or conf):
        raise DlogError("--shards, --work and --conf belong to --spark MASTER")
    if spark is not None and profile is not None:
        raise DlogError("a profile is of one process: leave out --profile or --spark")
    if spark is not None and (stats or jobs > 1):
        raise DlogError("--stats and --jobs are of one process: leave them out, or --spark")
    with Screen() as screen:
        if spark is not None:
            from dlog.spark.command import run_on_spark

            sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _NoPandas)]
            sharded = run_on_spark(
                program,
                facts,
                out,
                spark,
                shards=shards,
                work=work,
                settings=conf or (),
                limits=limits,
                progress=screen,
                warn=screen.print,
                magic=not no_magic,
            )
            for warning in undefined_warnings(sharded):
                screen.print(warning)
    if spark is not None:
        print_queries(sharded)
        return
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
            magic=not no_magic,
            traced=profile is not None,
        )
        if profile is not None and clock is not None:
            from dlog.profile import write_profile

            clock.stop()
            write_profile(profile, database, program, clock.seconds)
        for warning in undefined_warnings(database):
            screen.print(warning)
    print_queries(database)
    if stats:
        print_stats(database)


@app.command()
def apply(
    program: ProgramFile,
    tx: Annotated[Path, typer.Option("--tx", metavar="FILE", help="transactions, one per statement")],
    facts: Annotated[Path, typer.Option("--facts", "-F", help="folder of the .input files")] = Path("."),
    out: Annotated[
        Path | None, typer.Option("--output", "-D", help="folder of the .output files at the end; - prints")
    ] = None,
    changes: Annotated[bool, typer.Option("--changes", help="print each derived change")] = False,
    stats: Annotated[bool, typer.Option("--stats", help="rows, operations and time per transaction")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="evaluate from scratch after each transaction and compare")
    ] = False,
    strategy: Strategy = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", "-k", help="go on after a transaction that fails")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="cores to use")] = 1,
    timeout: Annotated[float | None, typer.Option(min=0, help="stop a transaction after seconds")] = None,
    max_rows: Annotated[int | None, typer.Option(min=0, help="stop after this many derived rows")] = None,
    max_memory: Annotated[str | None, typer.Option(help="stop at this much memory, as in 500M or 2G")] = None,
    db: DatabaseFolder = None,
    durability: Durability = "full",
) -> None:
    """Load a program, then run a file of transactions.  One that fails is rolled back: status 1."""
    from dlog.apply import Options, apply_file
    from dlog.durable.database import open_database
    from dlog.engine.limits import Limits
    from dlog.engine.run import write_outputs
    from dlog.progress import Screen

    limits = Limits(timeout, max_rows, _bytes(max_memory))
    with Screen() as screen:
        database = open_database(
            db,
            program,
            durability,
            facts=facts,
            limits=limits,
            progress=screen,
            warn=screen.print,
            jobs=jobs,
            strategy=strategy,
        )
    with database, database.group() if durability == "group" else nullcontext():
        tally = apply_file(database, tx, Options(changes, stats, verify, keep_going))
    if out is not None and (keep_going or not tally.failed):
        write_outputs(database, out)
    sys.stdout.flush()
    print(tally, file=sys.stderr)
    if tally.failed:
        raise typer.Exit(1)


@app.command()
def stream(
    program: ProgramFile,
    source: Annotated[
        list[str],
        typer.Option(metavar="DIR|PREDICATE=URI", help="a folder with a folder of files for each predicate"),
    ],
    sink: Annotated[Path, typer.Option(metavar="DIR", help="the folder of results")],
    checkpoint: Annotated[
        Path, typer.Option(metavar="DIR", help="the folder of the stream's state: give it again to go on")
    ],
    spark: Annotated[str, typer.Option(metavar="MASTER", help="as in local[2] or local[*]")] = "local[2]",
    shards: Annotated[
        int, typer.Option(min=0, help="keep the state in so many processes; 0: in this one")
    ] = 0,
    once: Annotated[
        bool, typer.Option("--once", "--available-now", help="end when all files that are there are taken")
    ] = False,
    every: Annotated[float, typer.Option(min=0, help="seconds between two looks for new files")] = 0.2,
    batch_files: Annotated[
        int | None, typer.Option(min=1, help="at most so many files of each predicate in a batch")
    ] = None,
    op: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="the column that says what a row does; else op")
    ] = None,
    format: Annotated[str, typer.Option(metavar="csv|json|parquet", help="of files of changes")] = "csv",
    values_every: Annotated[
        float, typer.Option(min=0, help="seconds at least between two writings of current values")
    ] = 5.0,
    facts: Annotated[Path, typer.Option("--facts", "-F", help="folder of .input files to begin with")] = Path(
        "."
    ),
    json: Annotated[bool, typer.Option("--json", help="a line of JSON for each batch on standard output")] = (
        False
    ),
) -> None:
    """Keep the rules of a program up to date over facts that arrive as files, by Spark.

    \b
    Files of facts go into a folder of their predicate, written elsewhere and renamed:
        in/sale/0001.csv     1,north,20
                             2,south,5
    A last column says what a row does: + (or i, insert, c) inserts, - (or d, delete)
    erases, u (update) replaces the value of a function.  Without it rows are inserts.

    \b
    dlog stream sales.dl --source in --sink out --checkpoint state
        out/changes/total/batch-00000000.csv     what each batch changed, with + or -
        out/values/total.csv                     all rows, as dlog run writes them
        out/bad/sale/batch-00000000.json         rows that were not taken, and why

    Each batch is one transaction, and is applied exactly once, whatever is killed when: the same command goes
    on where the last one ended.  Ctrl-C ends it between batches.
    """
    from dlog.progress import Screen
    from dlog.spark.stream import Options, Places, run_stream
    from dlog.spark.stream_progress import Telling

    options = Options(
        master=spark,
        shards=shards,
        once=once,
        every=every,
        batch_files=batch_files,
        operations=op,
        format=format,
        values_every=values_every,
        facts=facts,
    )
    with Telling(json) as telling:
        run_stream(Places(program, source, sink, checkpoint), options, telling, Screen)


@app.command()
def explain(
    program: Annotated[Path, typer.Argument(metavar="PROGRAM.dl|QUERY.sql", help="a program, or a query")],
    predicate: Annotated[str | None, typer.Argument(help="only the rules of this predicate")] = None,
    facts: Annotated[Path, typer.Option("--facts", "-F", help="folder of the .input files")] = Path("."),
    order: Annotated[
        Path | None,
        typer.Option("--order", "--dtree", help="the variable order of a query; else one is found"),
    ] = None,
    tree: Annotated[
        Path | None,
        typer.Option("--tree", "--svg", metavar="FILE.svg|.pdf|.dot", help="draw the view tree into a file"),
    ] = None,
    strategy: Strategy = None,
    spark: Annotated[bool, typer.Option("--spark", help="how rules are sharded, and why")] = False,
    shards: Annotated[
        int | None, typer.Option(min=1, help="with --spark: for so many shards; else 2")
    ] = None,
) -> None:
    """Say how each rule is evaluated and maintained, and why; of a query, its view tree.

    Facts are read for sizes; no rule runs.
    """
    if shards is not None and not spark:
        raise DlogError("--shards belongs to --spark")
    if spark:
        from dlog.spark.command import explain_on_spark

        print(explain_on_spark(program, facts, shards, predicate))
        return
    is_query = program.suffix.lower() == ".sql"
    if is_query and strategy is not None:
        raise DlogError("--strategy is for programs; a query is kept by its view tree")
    if not is_query:
        from dlog.engine.database import plan_only

        print(plan_only(program, facts, strategy).explain(predicate))
    if is_query or order is not None or tree is not None:
        from dlog.views.export import read_query, read_tree
        from dlog.views.notation import explain as explain_tree

        query = read_query(program, predicate, facts)
        found = read_tree(query, order)
        if is_query or order is not None:
            print("" if is_query else f"\nthe view tree along {order}:\n", end="")
            print(explain_tree(found, query), end="")
        if tree is not None:
            _draw(program, predicate, found, query, tree)


@app.command()
def why(
    program: ProgramFile,
    fact: Annotated[str, typer.Argument(help="a fact, as in 'reach(1, 3)'")],
    facts: Annotated[Path, typer.Option("--facts", "-F", help="folder of the .input files")] = Path("."),
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="cores to use")] = 1,
) -> None:
    """One derivation of a fact, as a tree.  Status 1 when the fact does not hold."""
    from dlog.engine.database import Database
    from dlog.progress import Screen

    with Screen() as screen:
        database = Database(program, facts=facts, progress=screen, warn=screen.print, jobs=jobs)
    print(database.why(fact))


@app.command()
def repl(
    program: Annotated[
        Path | None, typer.Argument(metavar="[PROGRAM.dl]", help="a program to begin with")
    ] = None,
    facts: Annotated[Path, typer.Option("--facts", "-F", help="folder of the .input files")] = Path("."),
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="cores to use")] = 1,
    timeout: Annotated[float | None, typer.Option(min=0, help="stop a transaction after seconds")] = None,
    max_rows: Annotated[int | None, typer.Option(min=0, help="stop after this many derived rows")] = None,
    max_memory: Annotated[str | None, typer.Option(help="stop at this much memory, as in 500M or 2G")] = None,
    strategy: Strategy = None,
    db: DatabaseFolder = None,
    durability: Durability = "full",
    read_only: Annotated[
        bool,
        typer.Option("--read-only", help="with --db: look at it as it is now, also while another writes"),
    ] = False,
) -> None:
    """Transactions at a prompt; from a pipe, the status is 1 when anything typed was wrong."""
    from dlog import repl
    from dlog.engine.limits import Limits

    limits = Limits(timeout, max_rows, _bytes(max_memory))
    session = repl.Session(
        program, facts, limits, jobs, folder=db, durability=durability, strategy=strategy, read_only=read_only
    )
    raise typer.Exit(repl.run(session))


@app.command()
def dump(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the folder of a database")],
    out: Annotated[
        Path | None, typer.Option("--output", "-D", help="a folder for program.dl and a file per predicate")
    ] = None,
    branch: Annotated[str, typer.Option(metavar="NAME", help="the branch to write")] = "main",
) -> None:
    """Print a database as a program with its facts, or write both into a folder."""
    from dlog.durable.dump import dump
    from dlog.progress import Screen

    with Screen() as screen:
        dump(folder, branch, out, sys.stdout, screen)


databases = typer.Typer(
    help="Look after databases in folders.", rich_markup_mode=None, no_args_is_help=True, add_completion=False
)
app.add_typer(databases, name="db")


@databases.command("check")
def check_database(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the folder of a database")],
) -> None:
    """Verify a database: every record, every invariant, every derived predicate.  Changes nothing."""
    from dlog.durable.dump import check
    from dlog.progress import Screen

    with Screen() as screen:
        found = check(folder, screen)
    print(found)


@databases.callback()
def _databases() -> None:
    """One command so far is still a command."""


def _clock(screen: Screen) -> Clock:
    from dlog.profile import Clock

    return Clock(screen)


def _bytes(text: str | None) -> int | None:
    """`500M` in bytes."""
    if text is None:
        return None
    units = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
    number, unit = (text[:-1], units[text[-1].lower()]) if text[-1:].lower() in units else (text, 1)
    try:
        return int(float(number) * unit)
    except ValueError:
        raise DlogError(f"bad size: {text}", help="write bytes, or a number with K, M, G or T") from None
