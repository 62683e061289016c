"""Owns the first compilation: which modules are missing, who compiles them, and what the screen says of it.

One process compiles at a time and the others wait for what it makes: a lock on a file of the cache directory.
Compilation runs in processes of its own (`dlog.jit.build`), one per core, so that neither numba nor what it
leaves in memory gets into this one.
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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from dlog import places
from dlog.jit import cache
from dlog.jit.image import FAILURE, FILE, NoImage, is_for_this_machine

MOST_PROCESSES = 4  # each needs some 300 MB
LOWERING = 0.6  # the part of a module's time before its first kernel is optimised
_ENTRY = re.compile(r"^@kernel$", re.MULTILINE)


def compile_all() -> None:
    """Make the images of all modules of dlog that have none.  About 20 s of processor time for all."""
    root = next(filter(places.is_writable, places.roots()), None)
    if root is None:
        root = Path(tempfile.mkdtemp(prefix="dlog-cache-"))
    with _alone(root):
        modules = kernel_modules()
        missing = [module for module in modules if not _has_image(modules[module].source)]
        if not missing:
            return
        failure = _compile(root, [modules[module] for module in missing])
        if failure is not None:
            for module in modules.values():
                (cache.make_directory(module.source, [root]) / FAILURE).write_text(failure)
            raise NoImage(failure)


@dataclass(frozen=True)
class Module:
    """A module of dlog with kernels that Python calls.  Its time to compile follows the text they reach."""

    name: str
    source: Path
    kernels: int

    @functools.cached_property
    def reached(self) -> dict[Path, int]:
        """The files that its kernels reach, and their sizes."""
        return {path: path.stat().st_size for path in cache.reached_modules(self.source)}

    @property
    def weight(self) -> int:
        return sum(self.reached.values())


def kernel_modules() -> dict[str, Module]:
    """All of them, by name."""
    found = {}
    for source in sorted(cache.PACKAGE.rglob("*.py")):
        if count := len(_ENTRY.findall(source.read_text(encoding="utf-8"))):
            name = cache.module_name(source)
            found[name] = Module(name, source, count)
    return found


def _has_image(source: Path) -> bool:
    file = cache.find(source, FILE)
    return file is not None and is_for_this_machine(file)


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Wait until no other process compiles into this root.  A process that dies lets go."""
    try:
        import fcntl
    except ImportError:  # Windows: several may compile the same, and the last one's files stay
        yield
        return
    with open(root / "compiling.lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another process that compiles kernels ...", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _compile(root: Path, missing: list[Module]) -> str | None:
    """Make images; why it could not be done, if it could not."""
    shares = _shares(missing, min(MOST_PROCESSES, _cores()))
    progress = _Progress(missing)
    with tempfile.TemporaryFile("w+") as errors:
        running = [_start(root, share, errors) for share in shares]
        try:
            readers = [threading.Thread(target=progress.follow, args=(p.stdout,)) for p in running]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
            statuses = [process.wait() for process in running]
        finally:
            for process in running:
                process.kill()
                process.wait()
        progress.end()
        errors.seek(0)
        reason = "\n".join(errors.read().strip().splitlines()[-1:])
    if any(status not in (0, 1) for status in statuses):
        raise NoImage("the compiler was ended")  # from outside: the next process tries again
    return reason if any(statuses) else None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class _Share:
    """The modules of one process.  What several of them reach is lowered once, but optimised in each."""

    modules: list[Module] = field(default_factory=list)

    def weight(self, more: Module | None = None) -> float:
        modules = [*self.modules, *([more] if more else [])]
        lowered = {path: size for module in modules for path, size in module.reached.items()}
        return LOWERING * sum(lowered.values()) + (1 - LOWERING) * sum(m.weight for m in modules)


def _shares(missing: list[Module], parts: int) -> list[list[str]]:
    """Modules for each process: always the largest of the rest to the one that is done first with it."""
    shares = [_Share() for _ in range(parts)]
    for module in sorted(missing, key=lambda m: -m.weight):
        min(shares, key=lambda share: share.weight(module)).modules.append(module)
    return [[module.name for module in share.modules] for share in shares if share.modules]


def _start(root: Path, share: list[str], errors: IO[str]) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(cache.PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "dlog.jit.build", str(root), *share],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    except (OSError, TypeError, ValueError) as error:
        raise NoImage(f"the compiler did not start: {error}") from None


class _Progress:
    """One line on standard error; on a terminal it counts up."""

    TEXT = "compiling kernels (once per installation) ..."

    def __init__(self, modules: list[Module]) -> None:
        self.modules = {module.name: module for module in modules}
        self.total = sum(module.weight for module in modules)
        self.done = 0.0
        self.lock = threading.Lock()
        self.is_terminal = sys.stderr.isatty()
        print(self.TEXT, end="" if self.is_terminal else "\n", file=sys.stderr, flush=True)

    def follow(self, lines: Iterable[str]) -> None:
        """Count what a compiling process reports: `kernel MODULE` and `image MODULE`."""
        for line in lines:
            what, name = line.split()
            module = self.modules[name]
            part = LOWERING / module.kernels if what == "kernel" else 1 - LOWERING
            with self.lock:
                self.done += part * module.weight
                if self.is_terminal:
                    percent = int(100 * self.done / self.total)
                    print(f"\r{self.TEXT} {percent}%", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.is_terminal:
            print(file=sys.stderr, flush=True)
