"""Owns the compilation of kernels: the only module that imports numba.  Knows nothing of what kernels do.

Policy.  A kernel is compiled at its first call and its machine code is kept on disk.  numba's own check does
not notice an edit in a module that a kernel calls, so each module's code lies in a directory named by a
digest of that module and of all modules of dlog that it imports, directly or not.  These directories are in
`$DLOG_CACHE_DIR`, else `$XDG_CACHE_HOME/dlog`, else `~/.cache/dlog`; when that is not writable, in a private
directory below the system's temporary one.  Of each module the three directories last used stay, older ones
go.  Several processes may start at once: numba writes each file under another name and renames it, and a
kernel has one signature, so two processes that compile the same kernel write the same thing.

Environment: NUMBA_DISABLE_JIT=1 runs the same text uncompiled (numba is then not imported at all);
DLOG_BOUNDSCHECK=1 compiles with checks of array bounds, into directories of its own.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Words: TypeAlias = npt.NDArray[np.int64]  # what kernels work on
F = TypeVar("F", bound=Callable[..., Any])

DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
BOUNDSCHECK = os.environ.get("DLOG_BOUNDSCHECK", "0") not in ("", "0")
KEPT_DIRECTORIES = 3
PACKAGE = Path(__file__).resolve().parent

# Every kernel in order of definition, for tests and for `compiled_kernels`.
KERNELS: list[Any] = []

if not DISABLED:
    import llvmlite.binding
    import numba
    import numba.core.event
    import numba.core.sigutils

    # Unrolling loops of unknown length doubled the time to compile the storage kernels (25 s against 13 s on
    # a busy machine) and gained nothing in any of them, nor in joins.
    for option in ("-unroll-runtime=false", "-unroll-allow-partial=false"):
        llvmlite.binding.set_option("", option)


def kernel(function: F) -> F:
    """Compile a pure function over arrays of numbers at its first call; the machine code is kept on disk.

    Compiled code releases the GIL and divides as numpy does (no exception).
    """
    return _compiled(function, no_cfunc_wrapper=True)


def helper(function: F) -> F:
    """A kernel that only kernels call.  It cannot be called from Python, and compiles faster for that.

    Without the two wrappers that numba makes for other callers, each with the whole function inlined, the
    storage kernels took a quarter less time to compile.
    """
    return _compiled(function, no_cfunc_wrapper=True, no_cpython_wrapper=True)


def _compiled(function: F, **options: bool) -> F:
    if DISABLED:
        KERNELS.append(function)
        return function
    config: Any = numba.config
    before = config.CACHE_DIR
    # numba settles a function's cache directory when it is decorated.  Set only meanwhile, so that a program
    # that uses numba for itself keeps its own setting.
    config.CACHE_DIR = str(cache_directory(Path(inspect.getfile(function))))
    try:
        njit: Any = numba.njit
        compiled = njit(cache=True, nogil=True, error_model="numpy", boundscheck=BOUNDSCHECK, **options)(
            function
        )
    finally:
        config.CACHE_DIR = before
    _forget_literals(compiled)
    KERNELS.append(compiled)
    return compiled


def compiled_kernels() -> dict[str, int]:
    """How many signatures each kernel of this process has been compiled or loaded for."""
    return {f"{k.__module__}.{k.__name__}": len(getattr(k, "signatures", ())) for k in KERNELS}


def _forget_literals(dispatcher: Any) -> None:
    """Treat a constant argument as any int64.

    numba would compile a kernel once more for each combination of constants that other kernels call it
    with: the storage kernels then took 43 s to compile on a busy machine, 28 s without.
    """
    compile_ = dispatcher.compile

    def compile_plain(signature: Any) -> Any:
        args, _ = numba.core.sigutils.normalize_signature(signature)
        return compile_(tuple(numba.types.unliteral(a) for a in args))

    dispatcher.compile = compile_plain


# Where machine code is kept


def cache_directory(source: Path) -> Path:
    """Where the machine code of a module's kernels lies.  Made at the first call, then remembered."""
    directory = _directories.get(source)
    if directory is None:
        name = f"{_module_name(source)}-{source_digest(source)}"
        directory = _directories[source] = _make_directory(_cache_roots(), name)
        if not DISABLED and not any(directory.rglob("*.nbi")):
            _announcer().empty.add(str(source))
    return directory


_directories: dict[Path, Path] = {}


def source_digest(source: Path, package: Path = PACKAGE) -> str:
    """A digest of a module and all modules of the package that it imports, numba's version and settings."""
    reached: dict[Path, bytes] = {}
    waiting = [source.resolve()]
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached[path], imported = _read_module(path, package.resolve())
            waiting += imported
    digest = hashlib.sha256()
    for path in sorted(reached):
        digest.update(path.name.encode() + reached[path])
    version = "none" if DISABLED else numba.__version__
    digest.update(f"numba {version} boundscheck {BOUNDSCHECK}".encode())
    return digest.hexdigest()[:16]


_IMPORT = re.compile(
    rb"^\s*(?:from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n#]*)|import\s+([\w.]+))", re.MULTILINE
)


@functools.cache
def _read_module(path: Path, package: Path) -> tuple[bytes, list[Path]]:
    """A digest of the module's text, and the files of the package's modules that it imports."""
    try:
        text = path.read_bytes()
    except OSError:  # no source beside the code: its name has to do
        text = str(path).encode()
    imported = []
    for origin, names, plain in _IMPORT.findall(text):
        parts = (origin or plain).decode().split(".")
        if parts[0] == package.name:
            module = package.joinpath(*parts[1:])
            inner = [module / name for name in re.findall(r"\w+", names.decode())] if module.is_dir() else []
            files = [f for m in (module, *inner) for f in (m.with_suffix(".py"), m / "__init__.py")]
            imported += [file for file in files if file.is_file()]
    return hashlib.sha256(text).digest(), imported


def _module_name(source: Path) -> str:
    """A name for people who look into the directory.

    >>> _module_name(PACKAGE / "storage" / "sort_kernels.py")
    'dlog.storage.sort_kernels'
    """
    try:
        return ".".join(source.resolve().relative_to(PACKAGE.parent).with_suffix("").parts)
    except ValueError:
        return source.stem


def _cache_roots() -> list[Path]:
    """Candidates, best first.  The last one is below the temporary directory and named for the user."""
    roots = []
    if override := os.environ.get("DLOG_CACHE_DIR"):
        roots.append(Path(override))
    else:
        default = os.environ.get("LOCALAPPDATA") if os.name == "nt" else None
        base = os.environ.get("XDG_CACHE_HOME") or default or os.path.expanduser("~/.cache")
        roots.append(Path(base) / "dlog")
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    roots.append(Path(tempfile.gettempdir()) / f"dlog-cache-{user}")
    return roots


def _make_directory(roots: list[Path], name: str) -> Path:
    """The directory `name` in the first root that can be written; the module's older ones there go."""
    for root in roots:
        directory = root / name
        fresh = not directory.exists()
        if not _writable(root, directory):
            continue
        if fresh:
            _remove_old(root, keep=directory)
        return directory
    return Path(tempfile.mkdtemp(prefix="dlog-cache-"))


def _writable(root: Path, directory: Path) -> bool:
    """Make the directory; true when files can be made in it and nobody else could have put code there."""
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        directory.mkdir(exist_ok=True, mode=0o700)
        # Machine code from a directory of another user must not be run: the temporary directory is shared.
        if hasattr(os, "getuid") and directory.stat().st_uid != os.getuid():
            return False
        tempfile.TemporaryFile(dir=directory).close()
        os.utime(directory)  # "last used" for _remove_old
    except OSError:
        return False
    return True


def _remove_old(root: Path, keep: Path) -> None:
    """Only directories of the same module; the newest KEPT_DIRECTORIES stay."""
    module = re.escape(keep.name[: -len("-0123456789abcdef")])
    try:
        ours = [d for d in root.iterdir() if re.fullmatch(module + "-[0-9a-f]{16}", d.name) and d.is_dir()]
        ours.sort(key=lambda d: (d == keep, d.stat().st_mtime), reverse=True)
    except OSError:
        return  # another process is removing them
    for directory in ours[KEPT_DIRECTORIES:]:
        shutil.rmtree(directory, ignore_errors=True)


# What is said about it

if not DISABLED:

    class _Announcer(numba.core.event.Listener):
        """Says once, on standard error, that kernels are being compiled: only when no code is kept yet.

        numba reports "numba:compile" only when it found no machine code on disk.
        """

        def __init__(self) -> None:
            self.empty: set[str] = set()  # modules without any machine code when this process began
            self.silent = False

        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            if self.silent or function.__code__.co_filename not in self.empty:
                return
            self.silent = True
            print("compiling kernels (once per installation) ...", file=sys.stderr, flush=True)

        def on_end(self, event: Any) -> None:
            """Nothing to say."""

    _the_announcer: _Announcer | None = None

    def _announcer() -> _Announcer:
        global _the_announcer
        if _the_announcer is None:
            _the_announcer = _Announcer()
            numba.core.event.register("numba:compile", _the_announcer)
        return _the_announcer
