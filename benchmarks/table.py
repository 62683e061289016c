"""Owns the table of all benchmarks: on the screen line by line, and in RESULTS.md."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.harness import HEADER, Row

RESULTS = Path(__file__).parent / "RESULTS.md"
WIDTHS = (40, 26, 9, 9, 18, 7, 16, 3)
INTRO = """# Results

Written by `python -m benchmarks --write`; times are the best of several runs, both sides in turns in one
process, DuckDB on one thread.  The ratio says how many times as fast as the peer (or as small) dlog is.
"""


def line(cells: Sequence[str]) -> str:
    """One line of the screen's table: measures to the right, words to the left."""
    right = {2, 3, 5}
    return " ".join(
        c.rjust(w) if i in right else c.ljust(w)
        for i, (c, w) in enumerate(zip(cells, WIDTHS, strict=True))
    ).rstrip()  # fmt: skip


def machine() -> str:
    """What the numbers were measured on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ", ".join(f"{name} {version(name)}" for name in ("numba", "numpy", "pyarrow", "duckdb"))
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    return (
        f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GB; {platform.system()}; "
        f"Python {platform.python_version()}, {packages}; load {load}"
    )


def _processor() -> str:
    try:
        found = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1].strip() if found else platform.machine()


def summary(rows: Sequence[Row]) -> str:
    aims = [row.met for row in rows if row.met is not None]
    return f"{sum(aims)} of {len(aims)} aims met"


def write(measured: dict[str, list[Row]], scale: float, path: Path = RESULTS) -> None:
    """Replaces the rows of these benchmarks; all others stay."""
    kept = _lines(path.read_text()) if path.exists() else {}
    kept |= {
        name: [f"| {name} | " + " | ".join(row.cells()) + " |" for row in rows]
        for name, rows in measured.items()
    }
    title = ("benchmark", *HEADER)
    head = ["| " + " | ".join(title) + " |", "| --- " * len(title) + "|"]
    body = [text for name in sorted(kept) for text in kept[name]]
    note = "" if scale == 1 else f"  Sizes are {scale:g} of the full ones: these numbers say little."
    described = f"Last run ({', '.join(sorted(measured))}): {machine()}.{note}"
    path.write_text("\n".join([INTRO, described, "", *head, *body, ""]))


def _lines(text: str) -> dict[str, list[str]]:
    """The lines of a written table by benchmark."""
    lines: dict[str, list[str]] = {}
    for row in text.splitlines():
        cells = row.split(" | ")
        if row.startswith("| ") and cells[0] not in ("| benchmark", "| ---"):
            lines.setdefault(cells[0][2:], []).append(row)
    return {name: rows for name, rows in lines.items() if not name.startswith("---")}
