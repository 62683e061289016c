"""Owns the commands that change facts or inspect databases: apply, compare, stream, repl, dump, db check."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from dlog.cli.common import (
    DatabaseFolder,
    Durability,
    FactsFolder,
    Folders,
    Functions,
    Jobs,
    Macros,
    MaxMemory,
    MaxRows,
    ProgramFile,
    Strategy,
    Timeout,
    preprocess_with,
    read_limits,
    run_python,
)


def apply(
    program: ProgramFile,
    tx: Annotated[Path, typer.Option("--tx", metavar="FILE", help="transactions, one per statement")],
    facts: FactsFolder = Path("."),
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
        bool, typer.Option("--keep-going", "-k", help="continue after a transaction that fails")
    ] = False,
    jobs: Jobs = 1,
    timeout: Timeout = None,
    max_rows: MaxRows = None,
    max_memory: MaxMemory = None,
    db: DatabaseFolder = None,
    durability: Durability = "full",
    functions: Functions = None,
    include_dir: Folders = None,
    macro: Macros = None,
) -> None:
    """Load a program, then run a file of transactions.  One that fails is rolled back: status 1."""
    preprocess_with(include_dir or [], macro or [])
    run_python(functions)
    from dlog.apply import Options, apply_file
    from dlog.durable.database import open_database
    from dlog.engine.run import write_outputs
    from dlog.progress import Screen

    limits = read_limits(timeout, max_rows, max_memory)
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


def compare(
    program: ProgramFile,
    predicate: Annotated[
        str | None, typer.Argument(help="only the rules of this predicate, and what they depend on")
    ] = None,
    tx: Annotated[
        Path | None, typer.Option("--tx", metavar="FILE", help="transactions, one per statement")
    ] = None,
    facts: FactsFolder = Path("."),
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PAGE.html", help="draw the comparison as a page")
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0, help="begin no further transaction after this many seconds")
    ] = 60.0,
    functions: Functions = None,
    include_dir: Folders = None,
    macro: Macros = None,
) -> None:
    """Run a file of transactions under every strategy, and print what each costs.

    \b
    A strategy is how derived predicates follow a transaction.  dlog chooses one from statistics; this
    measures all of them on your rules, facts and transactions:
        dlog compare sales.dl -F facts --tx day.tx
        dlog compare sales.dl revenue -F facts --tx day.tx --html page.html

    \b
    strategy     -> marks what dlog chooses itself; the strategies below it are those of --strategy,
                 and last is evaluation from scratch after each transaction
    to build     its state, once, when the first transaction touches a rule
    median       of the times of all transactions; total: their sum
    operations   seeks and nexts of joins, derivations examined, or updates of maps
    memory       of all rows in all column orders, with the state
    note         which rules it does not fit, and why

    Times are of the processor.  Answers are compared: all strategies give the same.  To keep a strategy
    other than the chosen one, give --strategy to apply or repl, or strategy= to Database in Python.
    """
    preprocess_with(include_dir or [], macro or [])
    run_python(functions)
    from dlog.compare import compare as run_comparison
    from dlog.compare import table, write_page
    from dlog.errors import DlogError
    from dlog.progress import Screen

    if tx is None:
        help = "write a file with a statement per line, as in +edge(1, 2). and give it with --tx"
        raise DlogError("there are no transactions to compare strategies on: --tx FILE is missing", help=help)
    with Screen() as screen:
        comparison = run_comparison(program, predicate, facts, tx, seconds, screen)
    if html is not None:
        write_page(html, comparison)
    print("\n".join(table(comparison)))


def stream(
    program: ProgramFile,
    source: Annotated[
        list[str],
        typer.Option(metavar="DIR|PREDICATE=URI", help="a folder with a folder of files for each predicate"),
    ],
    sink: Annotated[Path, typer.Option(metavar="DIR", help="the folder of results")],
    checkpoint: Annotated[
        Path, typer.Option(metavar="DIR", help="the folder of the stream's state: give it again to resume")
    ],
    spark: Annotated[str, typer.Option(metavar="MASTER", help="as in local[2] or local[*]")] = "local[2]",
    shards: Annotated[
        int, typer.Option(min=0, help="keep the state in this many processes; 0: in this one")
    ] = 0,
    once: Annotated[
        bool, typer.Option("--once", "--available-now", help="end when all available files are processed")
    ] = False,
    every: Annotated[float, typer.Option(min=0, help="seconds between two checks for new files")] = 0.2,
    batch_files: Annotated[
        int | None, typer.Option(min=1, help="at most this many files of each predicate in a batch")
    ] = None,
    op: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="the column with the operation of a row; default: op")
    ] = None,
    format: Annotated[str, typer.Option(metavar="csv|json|parquet", help="of files of changes")] = "csv",
    values_every: Annotated[
        float, typer.Option(min=0, help="at least this many seconds between two writes of current values")
    ] = 5.0,
    facts: Annotated[Path, typer.Option("--facts", "-F", help="folder of the initial .input files")] = Path(
        "."
    ),
    conf: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="a Spark setting")] = None,
    json: Annotated[bool, typer.Option("--json", help="a line of JSON for each batch on standard output")] = (
        False
    ),
    functions: Functions = None,
) -> None:
    """Keep the rules of a program up to date over facts that arrive as files, by Spark.

    \b
    Files of facts go into a folder named after their predicate, written elsewhere and renamed:
        in/sale/0001.csv     1,north,20
                             2,south,5
    A last column gives the operation of a row: + (or i, insert, c) inserts, - (or d, delete)
    deletes, u (update) replaces the value of a function.  Without it rows are inserted.

    \b
    dlog stream sales.dl --source in --sink out --checkpoint state
        out/changes/total/batch-00000000.csv     what each batch changed, with + or -
        out/values/total.csv                     all rows, as dlog run writes them
        out/bad/sale/batch-00000000.json         rejected rows, and why

    Each batch is one transaction, and is applied exactly once, even if processes are killed: rerun the same
    command to resume.  Ctrl-C ends it between batches.
    """
    run_python(functions)
    from dlog.progress import Screen
    from dlog.spark.stream.command import Options, Places, run_stream
    from dlog.spark.stream.progress import Reporter

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
        settings=conf or [],
    )
    with Reporter(json) as reporter:
        run_stream(Places(program, source, sink, checkpoint), options, reporter, Screen)


def repl(
    program: Annotated[
        Path | None, typer.Argument(metavar="[PROGRAM.dl]", help="a program to start with")
    ] = None,
    facts: FactsFolder = Path("."),
    jobs: Jobs = 1,
    timeout: Timeout = None,
    max_rows: MaxRows = None,
    max_memory: MaxMemory = None,
    strategy: Strategy = None,
    db: DatabaseFolder = None,
    durability: Durability = "full",
    read_only: Annotated[
        bool,
        typer.Option(
            "--read-only", help="with --db: read it as it is now, even while another process writes"
        ),
    ] = False,
    functions: Functions = None,
) -> None:
    """Transactions at a prompt; from a pipe, the status is 1 if any input was wrong."""
    run_python(functions)
    from dlog import repl

    limits = read_limits(timeout, max_rows, max_memory)
    session = repl.Session(
        program, facts, limits, jobs, folder=db, durability=durability, strategy=strategy, read_only=read_only
    )
    raise typer.Exit(repl.run(session))


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
    help="Inspect databases in folders.", rich_markup_mode=None, no_args_is_help=True, add_completion=False
)


@databases.command("check")
def check_database(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the folder of a database")],
    functions: Functions = None,
) -> None:
    """Verify a database: every record, every invariant, every derived predicate.  Changes nothing."""
    run_python(functions)
    from dlog.durable.dump import check
    from dlog.progress import Screen

    with Screen() as screen:
        found = check(folder, screen)
    print(found)


@databases.callback()
def _databases() -> None:
    """One command so far is still a command."""
