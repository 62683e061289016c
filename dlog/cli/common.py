"""Owns what several commands share: options with their types and help texts, parsing of sizes, and checks
of several files.  Knows no command."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dlog.cli.arguments import read_folders, read_jobs, read_macros
from dlog.engine.maintain.strategies import SELECTABLE
from dlog.errors import DlogError

if TYPE_CHECKING:
    from dlog.engine.state.limits import Limits

Strategy = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=f"maintain every rule by this strategy: {', '.join(SELECTABLE)}"),
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
Shards = Annotated[
    int | None, typer.Option(min=1, help="with --spark: how many; default: the number of cores")
]
ProgramFile = Annotated[Path, typer.Argument(metavar="PROGRAM.dl", help="a program")]
FactsFolder = Annotated[Path, typer.Option("--facts", "-F", help="folder of the .input files")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", parser=read_jobs, metavar="N|auto", help="cores to use")]
Folders = Annotated[
    list[Path] | None,
    typer.Option("--include-dir", "-I", metavar="DIR", help="look for included files in this folder, too"),
]
Macros = Annotated[
    list[str] | None,
    typer.Option("--macro", "-M", metavar="NAME=VALUE", help="define a macro of the preprocessor"),
]
NoWarnings = Annotated[
    bool,
    typer.Option("--no-warnings", "--no-warn", "-w", help="print no warnings about the text of the program"),
]
Timeout = Annotated[float | None, typer.Option(min=0, help="stop a transaction after seconds")]
MaxRows = Annotated[int | None, typer.Option(min=0, help="stop after this many derived rows")]
MaxMemory = Annotated[str | None, typer.Option(help="stop at this much memory, as in 500M or 2G")]
VariableOrder = Annotated[
    Path | None, typer.Option("--order", "--dtree", help="the variable order; default: one is chosen")
]
Levels = Annotated[
    bool, typer.Option("--levels", help="maintain a query or rules by levels of maps, not by a view tree")
]
Depth = Annotated[
    int | None,
    typer.Option(min=0, help="with --levels: how many deltas of deltas are maintained; default: all"),
]
Chosen = Annotated[
    bool,
    typer.Option("--chosen", help="with --levels: only the maps that cost least, by the sizes of the files"),
]
Inputs = Annotated[
    bool, typer.Option("--inputs", help="with --levels: maps may have input variables (a5 only)")
]
Dialect = Annotated[
    str | None, typer.Option(metavar="a5|dbtoaster", help="the dialect; default: detected from the text")
]
Functions = Annotated[
    Path | None,
    typer.Option(metavar="FILE.py", help="Python that registers functions of the program (of M3: and rings)"),
]


def preprocess_with(folders: list[Path], macros: list[str]) -> None:
    """Where included files are looked for, and macros, for all programs of this command."""
    from dlog.language.surroundings import Surroundings, use

    use(Surroundings(read_folders(folders), read_macros(macros)))


def read_limits(timeout: float | None, max_rows: int | None, max_memory: str | None) -> Limits:
    from dlog.engine.state.limits import Limits

    return Limits(timeout, max_rows, read_bytes(max_memory))


def read_bytes(text: str | None) -> int | None:
    """`500M` in bytes; also as `500MB` and `500 MiB`."""
    if text is None:
        return None
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None:
        raise DlogError(f"bad size: {text}", help="write bytes, or a number with K, M, G or T")
    return int(float(found[1]) * (1 << 10 * " kmgt".index(found[2] or " ")))


_SIZE = re.compile(r"(\d+\.?\d*|\.\d+) ?(?:([kmgt])i?)?b?")


def read_dialect(dialect: str | None) -> str | None:
    from dlog.m3.syntax.ast import DIALECTS

    if dialect not in (None, *DIALECTS):
        raise DlogError(f"unknown dialect {dialect}", help=f"one of {', '.join(DIALECTS)}")
    return dialect


def run_python(path: Path | None) -> None:
    """Runs a file that registers functions.  An error in it is reported with its line."""
    if path is None:
        return
    try:
        code = compile(path.read_bytes(), str(path), "exec")
        exec(code, {"__name__": "__main__", "__file__": str(path)})
    except OSError as error:
        if error.filename != str(path) and str(error.filename) != str(path):
            raise
        raise DlogError(f"cannot read {path}: {error.strerror}") from None
    except DlogError:
        raise
    except Exception as error:
        raise DlogError(f"{_line(error, path)}: {type(error).__name__}: {error}") from None


def _line(error: Exception, path: Path) -> str:
    """The last line of the file that was running; of a syntax error, its own."""
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)
    ]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    return f"{path}:{line}" if line else str(path)


def check_each(programs: list[Path], check: Callable[[Path], object]) -> None:
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
