"""Owns `dlog cache`: where the cache is and how large, and how it is emptied."""

from __future__ import annotations

from typing import Annotated

import typer

from dlog.errors import DlogError


def cache(clear: Annotated[bool, typer.Option("--clear", help="remove all cached files")] = False) -> None:
    """Print where compiled kernels and other cached files are and how much space they take."""
    from dlog import places

    for root in places.roots():
        found = list(places.entries(root))
        if not found and root != places.roots()[0]:
            continue
        entries = f"{len(found)} entr{'y' if len(found) == 1 else 'ies'}"
        megabytes = f"{sum(map(places.size, found)) / 1e6:.1f} MB"
        if clear:
            for entry in found:
                places.remove(entry)
            if left := list(places.entries(root)):
                raise DlogError(f"cannot remove {left[0]}", help="its owner can")
        print(f"{root}: {'removed ' if clear else ''}{entries}, {megabytes}")
