"""Group sums over a stream of facts in Pathway: `python pathway_sums.py FILE.npz`, a process of its own.

The file has the facts (id, shop, amount), the size of a transaction, and how many transactions a window holds
(0: facts only come in).  Prints the seconds of each transaction, from its first fact to the end of its
output, as JSON.  Needs nothing of dlog; the interpreter is that of `pathway_reach`.
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


def replay(python: str, facts: np.ndarray, size: int, window: int) -> tuple[list[float], int]:
    """(Seconds of each transaction, the sum of all sums at the end)."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "facts.npz"
        np.savez(file, facts=facts, size=size, window=window)
        done = subprocess.run([python, __file__, str(file)], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["seconds"], answer["total"]


def sums_after(facts: list[list[int]], size: int, window: int) -> list[int]:
    """What the sums add up to after each transaction: only then it is at its end."""
    total = np.cumsum([0, *(amount for _, _, amount in facts)])
    ends = np.minimum(np.arange(size, len(facts) + size, size), len(facts))
    starts = np.maximum(ends - window * size, 0) if window else np.zeros_like(ends)
    return (total[ends] - total[starts]).tolist()  # type: ignore[no-any-return]


def run(facts: list[list[int]], size: int, window: int) -> dict[str, Any]:
    import pathway as pw

    class Sale(pw.Schema):
        id: int = pw.column_definition(primary_key=True)
        shop: int
        amount: int

    ready = Event()
    seconds: list[float] = []
    total = 0
    expected = sums_after(facts, size, window)
    parts = [facts[i : i + size] for i in range(0, len(facts), size)]

    class Stream(pw.io.python.ConnectorSubject):
        def run(self) -> None:
            for i, part in enumerate(parts):
                started = time.perf_counter()
                for id, shop, amount in part:
                    self.next(id=id, shop=shop, amount=amount)
                if window and i >= window:
                    for id, shop, amount in parts[i - window]:
                        self.delete(id=id, shop=shop, amount=amount)
                ready.clear()
                self.commit()
                while not ready.wait(PATIENCE) or total != expected[i]:
                    ready.clear()
                seconds.append(time.perf_counter() - started)

        @property
        def _deletions_enabled(self) -> bool:
            return True

    sale = pw.io.python.read(Stream(), schema=Sale, autocommit_duration_ms=None)
    sums = sale.groupby(sale.shop).reduce(sale.shop, total=pw.reducers.sum(sale.amount))

    def changed(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        nonlocal total
        total += row["total"] if is_addition else -row["total"]

    pw.io.subscribe(sums, on_change=changed, on_time_end=lambda time: ready.set())
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return {"seconds": seconds, "total": total}


if __name__ == "__main__":
    given = np.load(sys.argv[1])
    print(json.dumps(run(given["facts"].tolist(), int(given["size"]), int(given["window"]))))
