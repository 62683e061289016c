"""Owns the places for files that are made once and kept: machine code, tables of the grammar.

They are `$DLOG_CACHE_DIR`, else `$XDG_CACHE_HOME/dlog`, else `~/.cache/dlog`; and, when that cannot be
written, a private directory below the system's temporary one.  Knows nothing of what is kept.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def roots() -> list[Path]:
    """Candidates, best first.  The last one is below the temporary directory and named for the user."""
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
    """Make the directory; true when files can be made in it and nobody else could have put code there."""
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
    """Whether the file is there and is this user's, or the system's: nobody else can have put it there."""
    try:
        owners = {file.stat().st_uid, file.parent.stat().st_uid}
    except OSError:
        return False
    return not hasattr(os, "getuid") or owners <= {os.getuid(), 0}
