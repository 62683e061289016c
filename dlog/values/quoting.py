"""Owns how a text is written between quotes in a program, and read back.  Knows nothing of types."""

from __future__ import annotations

import re

ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "'": "'", "0": "\0", "a": "\a", "b": "\b",
           "f": "\f", "v": "\v"}  # fmt: skip
_ESCAPED = str.maketrans({text: f"\\{letter}" for letter, text in ESCAPES.items() if text != "'"})
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def quoted(text: str) -> str:
    r"""
    >>> quoted('a "b"')
    '"a \\"b\\""'
    """
    return f'"{text.translate(_ESCAPED)}"'


def unquoted(text: str) -> str:
    """The text that `quoted` was given; an unknown escape stands for its letter."""
    return _ESCAPE.sub(lambda match: ESCAPES.get(match.group(1), match.group(1)), text[1:-1])
