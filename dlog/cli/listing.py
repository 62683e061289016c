"""Owns the command that lists the rows of a relation that joins give."""

from __future__ import annotations

import csv
import sys
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from dlog.cli.common import VariableOrder
from dlog.errors import DlogError


def list_rows(
    program: Annotated[Path, typer.Argument(metavar="QUERY.sql", help="SELECT DISTINCT columns FROM ...")],
    rows: Annotated[
        int | None, typer.Option("-n", min=0, help="at most this many rows; default: all")
    ] = None,
    dtree: VariableOrder = None,
    facts: Annotated[
        Path | None, typer.Option("--facts", "-F", help="folder of the files; default: the query's folder")
    ] = None,
    m3: Annotated[
        bool, typer.Option("--m3", help="print the M3 program that maintains the factor relations")
    ] = False,
    stats: Annotated[
        bool, typer.Option("--stats", help="rows of factor relations and steps on standard error")
    ] = False,
) -> None:
    """List the rows of SELECT DISTINCT as CSV, without computing the join: the first ones at once."""
    from dlog.m3.runtime.streams import Reader
    from dlog.progress import Screen
    from dlog.views.m3.export import read_query
    from dlog.views.m3.factors import factor_text
    from dlog.views.orders.dtree import read_dtree
    from dlog.views.orders.factors import factorisation
    from dlog.views.run.listing import Listing

    if program.suffix.lower() != ".sql":
        raise DlogError(f"{program} is not an SQL file", help="dlog run lists what rules derive")
    query = read_query(program)
    order = None if dtree is None else read_dtree(dtree, query)
    if m3:
        sys.stdout.write(factor_text(factorisation(query, order)))
        return
    with Screen() as screen:
        listing = Listing.of_files(query, Reader(facts or program.parent), order, screen)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(listing.columns)
    writer.writerows(islice(listing.rows(), rows))
    sys.stdout.flush()
    if stats:
        print(f"{len(listing):,} rows of factor relations, {listing.steps:,} steps", file=sys.stderr)
