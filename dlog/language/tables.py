"""Owns the parser's tables: lark builds them in 60 ms, then they are cached and read in 6 ms."""

from __future__ import annotations

import hashlib
import sys
from importlib import resources
from typing import Any

import lark

from dlog.places import is_trusted, is_writable, mark_used, roots


def load_tables(package: str = "dlog.language", **options: Any) -> lark.Lark:
    """The parser of a package's `grammar.lark`, with options of lark.  Caches the tables if possible."""
    grammar = resources.files(package).joinpath("grammar.lark").read_text(encoding="utf-8")
    options |= {"parser": "lalr", "maybe_placeholders": True}
    key = f"{grammar} {lark.__version__} {sys.implementation.cache_tag} {sorted(options)}"
    name = f"grammar-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    found = next((root for root in roots() if is_trusted(root / name)), None)
    place = found or next(filter(is_writable, roots()), None)
    if place is None:
        return lark.Lark(grammar, **options)
    # lark rebuilds the tables if it cannot read the file, for example while another process is writing it.
    parser = lark.Lark(grammar, cache=str(place / name), **options)
    mark_used(place / name)
    return parser
