"""Owns compilation on demand: which kernels are missing, who compiles them, and the progress line.

One process compiles at a time and the others wait for what it makes: a lock on a file of the cache directory.
Compilation runs in separate processes (`dlog.jit.build`), one per core, so that neither numba nor what it
leaves in memory gets into this one.  Each takes the next module when it has finished one.  What is finished
when a compilation is interrupted is kept.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from dlog import places
from dlog.interrupts import immediate_interrupts
from dlog.jit import cache, image
from dlog.jit.groups import FIRST, group_of
from dlog.jit.image import NoImage

MOST_PROCESSES = 4  # each needs some 300 MB
_ENTRY = re.compile(r"^@kernel\s+def (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Module:
    """Kernels of one module that Python calls: all of them, or those that are to be compiled."""

    name: str
    source: Path
    kernels: tuple[str, ...]

    @functools.cached_property
    def weight(self) -> int:
        """About proportional to its time to compile: the size of the text that its kernels may reach."""
        return sum(path.stat().st_size for path in cache.reached_modules(self.source))

    def missing(self) -> Module:
        return replace(self, kernels=tuple(k for k in self.kernels if image.find(self.source, k) is None))


def compile_all() -> None:
    """Make the images of all kernels of dlog that have none.  About 90 s of processor time for all."""
    _compile_missing(list(kernel_modules().values()))


def compile_group(module: str, kernel: str) -> None:
    """Make the images that are missing of a kernel's group."""
    modules = kernel_modules()
    group = group_of(module, kernel, {name: m.kernels for name, m in modules.items()})
    # Nothing has been changed when the first kernels are called.  Later, an interrupt could arrive in the
    # middle of a transaction: it waits for the compiler and then for a safe point.
    hold = group is not FIRST
    with contextlib.nullcontext() if hold else immediate_interrupts():
        _compile_missing([replace(modules[name], kernels=kernels) for name, kernels in group.items()])


def kernel_modules() -> dict[str, Module]:
    """All modules of dlog with kernels, by name."""
    found = {}
    for source in sorted(cache.PACKAGE.rglob("*.py")):
        if kernels := tuple(_ENTRY.findall(source.read_text(encoding="utf-8"))):
            name = cache.module_name(source)
            found[name] = Module(name, source, kernels)
    return found


def _compile_missing(modules: list[Module]) -> None:
    root = next(filter(places.is_writable, places.roots()), None)
    if root is None:
        root = Path(tempfile.mkdtemp(prefix="dlog-cache-"))
    with _alone(root):
        missing = [part for part in (module.missing() for module in modules) if part.kernels]
        failure = _compile(root, missing) if missing else None
        if failure is not None:
            for module in missing:
                _note_failure(root, module, failure)
            raise NoImage(failure)
        if missing:
            places.clean(root)


def _note_failure(root: Path, module: Module, failure: str) -> None:
    directory = cache.make_directory(module.source, [root])
    for kernel in module.missing().kernels:
        (directory / image.failure_name(kernel)).write_text(failure)


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Wait until no other process is compiling into this root.  A process that dies releases the lock."""
    try:
        import fcntl
    except ImportError:  # Windows: several may compile the same kernel, and the last file wins
        yield
        return
    with open(root / "compiling.lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another process to compile kernels ...", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _compile(root: Path, missing: list[Module]) -> str | None:
    """Make images; returns the reason if that failed."""
    waiting = deque(sorted(missing, key=lambda module: -module.weight))  # the largest first
    progress = _Progress(missing)
    with tempfile.TemporaryFile("w+") as errors:
        running = [_start(root, errors) for _ in range(min(MOST_PROCESSES, _cores(), len(missing)))]
        try:
            threads = [threading.Thread(target=_feed, args=(p, waiting, progress)) for p in running]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            statuses = [process.wait() for process in running]
        finally:
            for process in running:
                process.kill()
                process.wait()
        progress.end()
        errors.seek(0)
        reason = "\n".join(errors.read().strip().splitlines()[-1:])
    if any(status not in (0, 1) for status in statuses):
        raise NoImage("the compiler was killed")  # from outside: the next process tries again
    return reason if any(statuses) else None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start(root: Path, errors: IO[str]) -> subprocess.Popen[str]:
    """A compiling process.  Ctrl-C does not reach it: this process ends it, or waits for it."""
    path = os.pathsep.join([str(cache.PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "dlog.jit.build", str(root)],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    except (OSError, TypeError, ValueError) as error:
        raise NoImage(f"the compiler did not start: {error}") from None


def _feed(process: subprocess.Popen[str], waiting: deque[Module], progress: _Progress) -> None:
    """Give a process one module after the other until none waits, or until it ends."""
    assert process.stdin is not None and process.stdout is not None
    with contextlib.suppress(OSError, IndexError), process.stdin as requests:
        while True:
            module = waiting.popleft()
            print(module.name, *module.kernels, file=requests, flush=True)
            while (answer := process.stdout.readline().strip()) != "done":
                if not answer:
                    return
                progress.count(answer, module)


class _Progress:
    """One line on standard error; on a terminal it counts up."""

    TEXT = "compiling kernels (once per installation) ..."
    PARTS = {"kernel": 0.6, "image": 0.4}  # shares of a kernel's time: to lower it, to optimise it

    def __init__(self, modules: list[Module]) -> None:
        self.total = sum(module.weight for module in modules)
        self.done = 0.0
        self.lock = threading.Lock()
        self.is_terminal = sys.stderr.isatty()
        print(self.TEXT, end="" if self.is_terminal else "\n", file=sys.stderr, flush=True)

    def count(self, what: str, module: Module) -> None:
        with self.lock:
            self.done += self.PARTS[what] * module.weight / len(module.kernels)
            if self.is_terminal:
                percent = round(100 * self.done / self.total)
                print(f"\r{self.TEXT} {percent}%", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.is_terminal:
            print(file=sys.stderr, flush=True)
