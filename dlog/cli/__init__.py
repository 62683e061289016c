"""Owns the command line: arguments in, text and exit status out.  Everything else happens in lower layers.

Commands import what they need when they run, so that `dlog --help` stays quick.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

from dlog.cli import listing, process, programs, transactions, views
from dlog.cli.arguments import completed
from dlog.cli.cache import cache

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


@app.callback(invoke_without_command=True)
def version(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="print the version and exit")] = False,
) -> None:
    if version:
        from dlog import __version__

        print(f"dlog {__version__}")
        raise typer.Exit


COMMANDS: dict[str, Callable[..., None]] = {  # in the order of --help
    "check": programs.check,
    "list": listing.list_rows,
    "m3": views.m3,
    "m3-check": views.m3_check,
    "m3-run": views.m3_run,
    "format": programs.format,
    "run": programs.run,
    "apply": transactions.apply,
    "compare": transactions.compare,
    "stream": transactions.stream,
    "explain": programs.explain,
    "why": programs.why,
    "repl": transactions.repl,
    "dump": transactions.dump,
    "cache": cache,
}
for name, command in COMMANDS.items():
    app.command(name)(command)
app.add_typer(transactions.databases, name="db")


def main() -> NoReturn:
    """The console script."""
    process.run_to_the_end(_run)


def _run(prog_name: str) -> object:
    known = {*COMMANDS, "db"}
    return app(completed(sys.argv[1:], known), prog_name=prog_name)
