"""Owns the cache: where reusable files are stored, and which of them are removed.

The cache is `$DLOG_CACHE_DIR`, else `$XDG_CACHE_HOME/dlog`, else `~/.cache/dlog`; or, when that cannot be
written, a private directory in the system's temporary one.  Knows nothing of the files' content.

An entry is a file or a directory in the cache, named `KIND-DIGEST`.  Each installation of dlog lists the
entries that it uses in a file in `installations`.  When something is added, `clean` removes what no
installation uses any more, and then the least recently used entries until the cache is no larger than BOUND.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

BOUND = 400_000_000  # bytes: machine code takes about 5 MB, the Java classes that Spark loads 100 to 200 MB
VERSIONS = 3  # an installation keeps this many entries of each kind, those used last
DAY = 86400
INSTALLATIONS = "installations"
_PACKAGE = Path(__file__).resolve().parent
_ENTRY = re.compile(r"(.+)-[0-9a-f]{16}")


def roots() -> list[Path]:
    """Candidates, best first.  The last one is in the temporary directory and named after the user."""
    found = []
    if override := os.environ.get("DLOG_CACHE_DIR"):
        found.append(Path(override))
    else:
        default = os.environ.get("LOCALAPPDATA") if os.name == "nt" else None
        base = os.environ.get("XDG_CACHE_HOME") or default or os.path.expanduser("~/.cache")
        found.append(Path(base) / "dlog")
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    found.append(Path(tempfile.gettempdir()) / f"dlog-cache-{user}")
    return found


def is_writable(directory: Path) -> bool:
    """Make the directory; true when files can be made in it and no other user could have put code there."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Code from a directory of another user must not be run: the temporary directory is shared.
        if hasattr(os, "getuid") and directory.stat().st_uid != os.getuid():
            return False
        tempfile.TemporaryFile(dir=directory).close()
    except OSError:
        return False
    return True


def is_trusted(file: Path) -> bool:
    """Whether the file exists and belongs to this user or the system: no other user can have put it there."""
    try:
        owners = {file.stat().st_uid, file.parent.stat().st_uid}
    except OSError:
        return False
    return not hasattr(os, "getuid") or owners <= {os.getuid(), 0}


# Which entries are used


def mark_used(entry: Path) -> None:
    """Note that this installation uses an entry.  A process reads its list once, and adds what is new."""
    with suppress(OSError):  # what cannot be written is not cleaned up either
        if time.time() - entry.stat().st_mtime > DAY:
            os.utime(entry)
        names = _own_entries(entry.parent)
        if entry.name not in names:
            names.add(entry.name)
            with _own_list(entry.parent).open("a", encoding="utf-8") as file:
                file.write(f"{entry.name}\n")


@functools.cache
def _own_entries(root: Path) -> set[str]:
    """The entries that this installation has used; its list is created if there is none."""
    file = _own_list(root)
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        with file.open("a", encoding="utf-8") as out:
            out.write(f"{_PACKAGE}\n")
    return set(file.read_text(encoding="utf-8").splitlines()[1:])


def _own_list(root: Path) -> Path:
    return root / INSTALLATIONS / hashlib.sha256(str(_PACKAGE).encode()).hexdigest()[:16]


# Which entries are removed


def clean(root: Path, bound: int = BOUND) -> None:
    """Remove what no installation uses, then the least recently used until `bound` bytes remain."""
    ages = {entry: _age(entry) for entry in entries(root)}
    known, used = _listed(root, ages)
    for entry in list(ages):
        # An entry in no list belongs to an installation without a list, or is being made.
        if entry.name not in used and (entry.name in known or ages[entry] > 2 * DAY):
            remove(entry)
            del ages[entry]
    # Ages are exact to a day, see `mark_used`.  Of one day, a large entry goes before many small ones.
    sizes = {entry: size(entry) for entry in ages}
    total = sum(sizes.values())
    for entry in sorted(ages, key=lambda entry: (-(ages[entry] // DAY), -sizes[entry], -ages[entry])):
        if total <= bound:
            return
        total -= sizes[entry]
        remove(entry)


def entries(root: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from (path for path in root.iterdir() if _ENTRY.match(path.name))


def size(path: Path) -> int:
    """Bytes of a file, or of all files in a directory."""
    try:
        files = [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else [path]
        return sum(file.stat().st_size for file in files)
    except OSError:
        return 0  # removed meanwhile


def remove(path: Path) -> None:
    with suppress(OSError):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0  # removed meanwhile


def _listed(root: Path, ages: dict[Path, float]) -> tuple[set[str], set[str]]:
    """Entries in any list, and those in use.  Lists of installations that no longer exist are removed."""
    known: set[str] = set()
    used: set[str] = set()
    by_name = {entry.name: age for entry, age in ages.items()}
    for file in (root / INSTALLATIONS).glob("*"):
        with suppress(OSError):
            package, *names = file.read_text(encoding="utf-8").splitlines() or [""]
            known.update(names)
            if (Path(package) / "places.py").is_file():
                used.update(_newest(names, by_name))
            else:
                remove(file)
    return known, used


def _newest(names: list[str], ages: dict[str, float]) -> Iterator[str]:
    """Of each kind the VERSIONS used last."""
    kinds = defaultdict(list)
    for name in set(names) & ages.keys():
        if match := _ENTRY.match(name):
            kinds[match[1]].append(name)
    for group in kinds.values():
        yield from sorted(group, key=ages.__getitem__)[:VERSIONS]
