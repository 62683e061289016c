"""Reachability under a stream of edges in Pathway: `python pathway_reach.py FILE.npz`, its own process.

The file has the edges, and those that are erased and inserted again one by one.  Prints the seconds from each
change to the end of its output as JSON.  Does not import dlog, so that it runs under an interpreter that has
Pathway: this one, or the one that DLOG_PATHWAY_PYTHON names.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

PATIENCE = 1.0  # seconds between two checks


def interpreter() -> str | None:
    """A Python that has Pathway, if there is one."""
    named = os.environ.get("DLOG_PATHWAY_PYTHON")
    return named or (sys.executable if importlib.util.find_spec("pathway") else None)


def replay(python: str, edges: np.ndarray, changes: np.ndarray) -> tuple[list[float], int]:
    """(Seconds of each change, erased and inserted by turns; the number of pairs at the end)."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "edges.npz"
        np.savez(file, edges=edges, changes=changes)
        done = subprocess.run([python, __file__, str(file)], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["seconds"], answer["pairs"]


def run(edges: list[list[int]], changes: list[list[int]]) -> dict[str, Any]:
    import pathway as pw

    class Edge(pw.Schema):
        x: int = pw.column_definition(primary_key=True)
        y: int = pw.column_definition(primary_key=True)

    ready = Event()
    seconds: list[float] = []
    pairs = present = ended = 0  # pairs and edges so far, edges at the end of the last output

    class Stream(pw.io.python.ConnectorSubject):
        def run(self) -> None:
            for x, y in edges:
                self.next(x=x, y=y)
            self.wait(len(edges))
            for x, y in changes:
                for change, left in ((self.delete, len(edges) - 1), (self.next, len(edges))):
                    started = time.perf_counter()
                    change(x=x, y=y)
                    self.wait(left)
                    seconds.append(time.perf_counter() - started)

        def wait(self, expected: int) -> None:
            """Until the output of a time has ended at which there were this many edges."""
            self.commit()
            while ended != expected:
                ready.wait(PATIENCE)
                ready.clear()

        @property
        def _deletions_enabled(self) -> bool:
            return True

    def step(reach: pw.Table, edge: pw.Table) -> dict[str, pw.Table]:
        further = reach.join(edge, reach.y == edge.x).select(x=pw.left.x, y=pw.right.y)
        both = pw.Table.concat_reindex(edge.select(edge.x, edge.y), further)
        return {"reach": both.groupby(both.x, both.y).reduce(both.x, both.y), "edge": edge}

    edge = pw.io.python.read(Stream(), schema=Edge, autocommit_duration_ms=None)
    start = edge.groupby(edge.x, edge.y).reduce(edge.x, edge.y)
    reach = pw.iterate(step, reach=pw.iterate_universe(start), edge=edge).reach

    # Pathway does not report the end of a time at which nothing changed: the number of edges always does.
    number = edge.reduce(x=-1, y=pw.reducers.count())
    output = pw.Table.concat_reindex(reach.select(reach.x, reach.y), number)

    def changed(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        nonlocal pairs, present
        if row["x"] >= 0:
            pairs += 1 if is_addition else -1
        elif is_addition:
            present = row["y"]

    def time_ended(time: int) -> None:
        nonlocal ended
        ended = present
        ready.set()

    pw.io.subscribe(output, on_change=changed, on_time_end=time_ended)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return {"seconds": seconds, "pairs": pairs}


if __name__ == "__main__":
    given = np.load(sys.argv[1])
    print(json.dumps(run(given["edges"].tolist(), given["changes"].tolist())))
