"""A separate program: random work on a database, with Ctrl-C at random moments.

    python -m tests.engine.interrupted SEED INTERRUPTS

Half of the seeds maintain joins by join graphs.  After each interrupt every structure passes its check,
everything is as evaluated from scratch, and the base facts are those before the work or those after it.
Prints how often what was interrupted.
"""

from __future__ import annotations

import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import dlog
from dlog.errors import Interrupted

RULES = """
.decl e(x: number, y: number)
.decl named(x: number, s: symbol)
two(x, z) <- e(x, y), e(y, z).
reach(x, y) <- e(x, y).
reach(x, z) <- reach(x, y), e(y, z).
lone(x, s) <- named(x, s), !e(x, _).
texts(cat(s, t)) <- named(x, s), two(x, y), named(y, t).
degree[x] = n <- agg<<n = count()>> e(x, _).
near[y] = m <- agg<<m = min(b)>> near[x] = a, e(x, y), b = a + 1.
near[0] = 0.
"""
State = dict[str, set]  # type: ignore[type-arg]
Rows = dict[str, list]  # type: ignore[type-arg]


class Work:
    """A database and what can be done with it."""

    def __init__(self, seed: int, folder: Path):
        self.rng, self.folder = random.Random(seed), folder
        self.made = 0
        self.db = dlog.Database(source=RULES, strategy=None if seed % 2 else "join_graph")
        self.allowed = [self.base()]  # the base facts before the work at hand, and after each of its commits
        self.change(insert={"e": [self.edge() for _ in range(60)]})
        for name, rows in (
            ("e", [self.edge() for _ in range(200)]),
            ("named", [(i, f"n{i}") for i in range(50)]),
        ):
            (folder / f"{name}.facts").write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
        inputs = ".input e\n.input named\n"
        (folder / "program.dl").write_text(RULES.replace("two(x, z)", inputs + "two(x, z)", 1))

    def edge(self) -> tuple[int, int]:
        return self.rng.randrange(40), self.rng.randrange(40)

    def name(self) -> tuple[int, str]:
        """Often a text that the dictionary has not seen."""
        self.made += 1
        return self.rng.randrange(40), self.rng.choice((f"n{self.rng.randrange(9)}", f"new {self.made}"))

    def base(self) -> State:
        return {name: set(self.db.base(name).rows()) for name in self.db.predicates()}

    def change(self, insert: Rows | None = None, erase: Rows | None = None) -> None:
        """One transaction; the facts after it may be there from now on."""
        after = {name: set(rows) for name, rows in self.allowed[-1].items()}
        for name, rows in (erase or {}).items():
            after[name] -= set(rows)
        for name, rows in (insert or {}).items():
            after[name] |= set(rows)
        self.allowed.append(after)
        self.db.apply(insert=insert, erase=erase)

    def kinds(self) -> list[Callable[[], object]]:
        return [self.one_row, self.few_rows, self.many_rows, self.names, self.query, self.load, self.verify]

    def one_row(self) -> None:
        self.change(**{"insert" if self.rng.random() < 0.6 else "erase": {"e": [self.edge()]}})

    def few_rows(self) -> None:
        self.change(insert={"e": [self.edge(), self.edge()]}, erase={"e": [self.edge(), self.edge()]})

    def many_rows(self) -> None:
        rows = sorted(self.db.base("e").rows())
        kept = self.rng.sample(rows, min(len(rows), 20))
        self.change(
            insert={"e": [self.edge() for _ in range(40)]}, erase={"e": [e for e in rows if e not in kept]}
        )

    def names(self) -> None:
        self.change(insert={"named": [self.name() for _ in range(5)]})
        self.change(erase={"named": self.db.base("named").rows()[:-12]})

    def query(self) -> None:
        self.db.query("?- reach(x, y), two(y, z), named(z, s), t = cat(s, s).").rows()
        with suppress(dlog.DataError):  # there may be no such fact
            self.db.why("reach(1, 2)")

    def load(self) -> None:
        dlog.Database(self.folder / "program.dl", facts=self.folder).query("?- reach(1, y).")

    def verify(self) -> None:
        self.db.verify()


def interrupt(work: Callable[[], object], delay: float) -> bool:
    """Whether Ctrl-C, sent so long after the start, came while at work.  It always comes: none is lost."""
    main, sent = threading.main_thread().ident, threading.Event()
    assert main is not None

    def send() -> None:
        time.sleep(delay)
        signal.pthread_kill(main, signal.SIGINT)
        sent.set()

    thread = threading.Thread(target=send)
    inside = True
    try:
        thread.start()
        work()
        inside = False
        for _ in range(3000):  # short ones: Python does not wake up for a signal that comes just before
            time.sleep(0.01)
        raise AssertionError("an interrupt was lost")
    except (KeyboardInterrupt, Interrupted):
        pass
    thread.join()
    return inside


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main(seed: int, interrupts: int) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        work = Work(seed, Path(folder))
        usual = {kind.__name__: seconds(kind) for _ in range(2) for kind in work.kinds()}
        for _ in range(interrupts):
            kind = work.rng.choice(work.kinds())
            work.allowed = [work.base()]
            if interrupt(kind, work.rng.random() * usual[kind.__name__]):
                seen[kind.__name__] += 1
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            work.db.check()
            work.db.store.arena.check()
            work.db.store.dictionary.check()
            work.db.verify()
            assert work.base() in work.allowed, f"{kind.__name__} was done in part"
    print(dict(seen))
    print("all is well")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
