"""Max and float sums of groups over a stream in Pathway: `pathway_streams.py FILE.npz`, a process apart.

The file has ids, shops and amounts, the reducer (0 max, 1 sum), the size of a transaction, and how many
transactions a window holds (0: facts only come in).  Prints the seconds of each transaction, from its first
fact to the end of its output, as JSON, and the results.  That a transaction is at its end is told by the sums
of all ids, which Pathway keeps as well.  Needs nothing of dlog; the interpreter is that of `pathway_reach`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

PATIENCE = 1.0  # seconds between two looks


def replay(
    python: str, shops: np.ndarray, amounts: np.ndarray, is_sum: bool, size: int, window: int
) -> tuple[list[float], dict[int, float]]:
    """(Seconds of each transaction, the result of each shop at the end)."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "facts.npz"
        np.savez(file, shops=shops, amounts=amounts, is_sum=is_sum, size=size, window=window)
        done = subprocess.run([python, __file__, str(file)], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["seconds"], {int(shop): value for shop, value in answer["results"].items()}


def ids_after(n: int, size: int, window: int) -> list[int]:
    """What the ids that are there add up to after each transaction."""
    total = np.concatenate([[0], np.cumsum(np.arange(n))])
    ends = np.minimum(np.arange(size, n + size, size), n)
    starts = np.maximum(ends - window * size, 0) if window else np.zeros_like(ends)
    return (total[ends] - total[starts]).tolist()  # type: ignore[no-any-return]


def run(shops: list[int], amounts: list[Any], is_sum: bool, size: int, window: int) -> dict[str, Any]:
    import pathway as pw

    columns = {
        "number": pw.column_definition(dtype=int, primary_key=True),
        "shop": pw.column_definition(dtype=int),
        "amount": pw.column_definition(dtype=float if is_sum else int),
    }
    ready = Event()
    seconds: list[float] = []
    there = 0
    results: dict[int, float] = {}
    expected = ids_after(len(shops), size, window)
    facts = list(zip(range(len(shops)), shops, amounts, strict=True))
    parts = [facts[i : i + size] for i in range(0, len(facts), size)]

    class Stream(pw.io.python.ConnectorSubject):
        def run(self) -> None:
            for i, part in enumerate(parts):
                started = time.perf_counter()
                for number, shop, amount in part:
                    self.next(number=number, shop=shop, amount=amount)
                if window and i >= window:
                    for number, shop, amount in parts[i - window]:
                        self.delete(number=number, shop=shop, amount=amount)
                ready.clear()
                self.commit()
                while not ready.wait(PATIENCE) or there != expected[i]:
                    ready.clear()
                seconds.append(time.perf_counter() - started)

        @property
        def _deletions_enabled(self) -> bool:
            return True

    sale = pw.io.python.read(Stream(), schema=pw.schema_builder(columns), autocommit_duration_ms=None)
    reducer = pw.reducers.sum if is_sum else pw.reducers.max
    reduced = sale.groupby(sale.shop).reduce(sale.shop, result=reducer(sale.amount))
    numbers = sale.reduce(ids=pw.reducers.sum(sale.number))

    def changed(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        if is_addition:
            results[row["shop"]] = row["result"]

    def counted(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        nonlocal there
        if is_addition:
            there = row["ids"]

    pw.io.subscribe(reduced, on_change=changed, on_time_end=lambda time: ready.set())
    pw.io.subscribe(numbers, on_change=counted, on_time_end=lambda time: ready.set())
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return {"seconds": seconds, "results": results}


if __name__ == "__main__":
    given = np.load(sys.argv[1])
    answer = run(
        given["shops"].tolist(),
        given["amounts"].tolist(),
        bool(given["is_sum"]),
        int(given["size"]),
        int(given["window"]),
    )
    print(json.dumps(answer))
