"""Owns where machine code is stored and how it is named.  Knows nothing of its format.

A module's code is in a directory named after the module and a digest of its source, of all modules of dlog
that it imports, directly or not, and of everything else that machine code depends on.  These directories are
entries of the cache, see `dlog.places`.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import re
import sys
import tempfile
from pathlib import Path

from dlog import places

DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
BOUNDSCHECK = os.environ.get("DLOG_BOUNDSCHECK", "0") not in ("", "0")
COMPILER = Path(__file__).resolve().parent
CODE_MAKERS = ("build.py", "dispatch.py", "image.py", "wrapper.py")  # files that affect machine code
PACKAGE = COMPILER.parent


def is_ours(source: Path) -> bool:
    """Whether a file belongs to dlog."""
    return source.resolve().is_relative_to(PACKAGE)


def find(source: Path, name: str) -> Path | None:
    """The file `name` in the directory of a module's code, if there is one that can be trusted."""
    for root in places.roots():
        file = root / directory_name(source) / name
        if places.is_trusted(file):
            places.mark_used(file.parent)
            return file
    return None


def make_directory(source: Path, among: list[Path] | None = None) -> Path:
    """The directory of a module's code, in the first writable root."""
    for root in places.roots() if among is None else among:
        directory = root / directory_name(source)
        if places.is_writable(directory):
            os.utime(directory)
            places.mark_used(directory)
            return directory
    return Path(tempfile.mkdtemp(prefix="dlog-cache-"))


# Names


@functools.cache
def directory_name(source: Path) -> str:
    return f"{module_name(source)}-{source_digest(source)}"


def module_name(source: Path) -> str:
    """The module of a file of dlog; for another file, a readable name.

    >>> module_name(PACKAGE / "storage" / "index" / "sort_kernels.py")
    'dlog.storage.index.sort_kernels'
    """
    try:
        return ".".join(source.resolve().relative_to(PACKAGE.parent).with_suffix("").parts)
    except ValueError:
        return source.stem


def source_digest(source: Path, package: Path = PACKAGE) -> str:
    """A digest of a module and all modules of the package that it imports, and of the compiler."""
    reached = reached_modules(source, package)
    digest = hashlib.sha256(_compiler())
    for path in sorted(reached):
        digest.update(path.name.encode() + reached[path])
    return digest.hexdigest()[:16]


def reached_modules(source: Path, package: Path = PACKAGE) -> dict[Path, bytes]:
    """Files and digests of a module and all modules of the package that it imports, directly or not.

    The compiler's own are left out: kernels know only its decorators.
    """
    reached: dict[Path, bytes] = {}
    waiting = [source.resolve()]
    while waiting:
        path = waiting.pop()
        if path not in reached and path.parent != COMPILER:
            reached[path], imported = _read_module(path, package)
            waiting += imported
    return reached


@functools.cache
def _compiler() -> bytes:
    """What machine code depends on besides its source, as far as known without importing numba."""
    parts = [str(sys.implementation.cache_tag), sys.abiflags, f"boundscheck {BOUNDSCHECK}"]
    parts += [(COMPILER / name).read_text(encoding="utf-8") for name in CODE_MAKERS]
    for name in ("numba", "llvmlite", "numpy"):
        spec = None if DISABLED else importlib.util.find_spec(name)
        for folder in spec.submodule_search_locations or () if spec else ():
            versions = [Path(folder, "_version.py"), Path(folder, "version.py")]
            parts += [file.read_text() for file in versions if file.is_file()]
    return "\n".join(parts).encode()


_IMPORT = re.compile(
    rb"^\s*(?:from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n#]*)|import\s+([\w.]+))", re.MULTILINE
)


@functools.cache
def _read_module(path: Path, package: Path) -> tuple[bytes, list[Path]]:
    """A digest of the module's text, and the files of the package's modules that it imports."""
    try:
        text = path.read_bytes()
    except OSError:  # no source file: use its name
        text = str(path).encode()
    imported = []
    for origin, names, plain in _IMPORT.findall(text):
        parts = (origin or plain).decode().split(".")
        if parts[0] == package.name:
            module = package.joinpath(*parts[1:])
            inner = [_file_of(module / name) for name in re.findall(r"\w+", names.decode())]
            # A package's own source matters only if a name comes from it, not from a module in it.
            imported += [f or _file_of(module) for f in inner] if inner else [_file_of(module)]
    return hashlib.sha256(text).digest(), [file for file in imported if file is not None]


def _file_of(module: Path) -> Path | None:
    """The file of a module or package; None when there is none."""
    files = (module.with_suffix(".py"), module / "__init__.py")
    return next((file for file in files if file.is_file()), None)
