"""Owns `dlog cache`: where the cache is and how large, and how it is emptied."""

from __future__ import annotations

from typing import Annotated

import typer


def cache(clear: Annotated[bool, typer.Option("--clear", help="remove all cached files")] = False) -> None:
    """Print where compiled kernels and other cached files are and how much space they take."""
    from dlog import places

    for root in places.roots():
        found = list(places.entries(root))
        if clear:
            for entry in found:
                places.remove(entry)
        elif found or root == places.roots()[0]:
            print(f"{root}: {len(found)} entries, {sum(map(places.size, found)) / 1e6:.1f} MB")
