"""Owns the log of a run of `dlog m3` (4.6): every stage as a section of text, also of a run that fails.

The sections: the query; the variable order, with the alternatives that were considered and their costs; the
view tree; which views are materialised and why; what the optimiser did; how the program was adapted to its
reader.  Of a query with levels of maps: the query; its maps, with what each event does to them and why.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dlog.errors import DlogError
from dlog.m3.consumers.consumers import fitted
from dlog.m3.syntax import ast
from dlog.views.levels.explain import explain as explain_levels
from dlog.views.levels.program import Levels
from dlog.views.log.decisions import adaptation_lines, materialised_lines, optimiser_lines, order_lines
from dlog.views.log.inputs import query_lines
from dlog.views.m3.export import Target
from dlog.views.m3.program import Writer
from dlog.views.picture.notation import explain
from dlog.views.query import Query
from dlog.views.tree.tree import ViewTree


class RunLog:
    """Is given what each stage made; see `dlog.views.m3.export.Observer`."""

    def __init__(self, command: str, to: Target, dtree: Path | None):
        self.to, self.dtree = to, dtree
        self.sections: list[tuple[str, list[str]]] = [("Run", [command])]
        self.started = self.latest = time.perf_counter()
        self.query: Query | None = None
        self.program: ast.Program | None = None

    def read(self, query: Query) -> None:
        self.query = query
        self._section("Query", query_lines(query))

    def ordered(self, query: Query, tree: ViewTree) -> None:
        self._section("Variable order", order_lines(query, tree, self.dtree))
        self._section("View tree", explain(tree, query).rstrip().split("\n"))
        self._section("Materialised views", materialised_lines(query, tree, self.to.optimise))

    def written(self, writer: Writer, program: ast.Program) -> None:
        self.program = program
        self._section("Optimiser", optimiser_lines(writer, self.to.optimise))

    def adapted(self, program: ast.Program, text: str) -> None:
        assert self.program is not None
        self._section("Program", adaptation_lines(self.program, program, text, self.to))

    def leveled(self, levels: Levels, text: str) -> None:
        """Of a query without a view tree."""
        described, *maps = explain_levels(levels).rstrip().split("\n\n")
        sources = (f"{s.kind} {s.name} from {s.file}" for s in levels.query.sources)
        self._section("Query", [*sources, described])
        self._section("Levels of maps", "\n\n".join(maps).split("\n"))
        fit = fitted(levels.m3, self.to.consumer)
        self._section("Program", adaptation_lines(levels.m3, fit, text, self.to))

    def failed(self, error: DlogError) -> None:
        self._section("Error", error.render().split("\n"))

    def _section(self, title: str, lines: list[str]) -> None:
        now = time.perf_counter()
        self.sections.append((f"{title} ({1000 * (now - self.latest):.1f} ms)", lines))
        self.latest = time.perf_counter()

    def text(self) -> str:
        written = (
            "\n".join([f"== {title}", *(f"   {line}".rstrip() for line in lines)])
            for title, lines in self.sections
        )
        return "\n\n".join(written) + f"\n\n== End: {1000 * (self.latest - self.started):.1f} ms\n"


@contextmanager
def recorded(path: Path | None, command: str, to: Target, dtree: Path | None) -> Iterator[RunLog | None]:
    """A log that is written to a file when the run ends, whether or not it succeeds; None without a file."""
    if path is None:
        yield None
        return
    log = RunLog(command, to, dtree)
    try:
        yield log
    except DlogError as error:
        log.failed(error)
        raise
    finally:
        try:
            path.write_text(log.text(), encoding="utf-8")
        except OSError as error:
            raise DlogError(f"cannot write {path}: {error.strerror}") from None
