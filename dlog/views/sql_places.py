"""Owns the places of SQL syntax trees: which characters of the file a node stands for, and what is said of a
node that is outside the supported fragment.
"""

from __future__ import annotations

from sqlglot import expressions as exp

from dlog.errors import UnsupportedError
from dlog.language.source import Source, Span


class Places:
    """sqlglot keeps places at words; a node stands from its first to its last word."""

    def __init__(self, source: Source, whole: Span):
        self.source, self.whole = source, whole

    def span(self, node: exp.Expr) -> Span:
        """Of the node; of what is around it, where it has no word of its own."""
        at: exp.Expr | None = node
        while at is not None:
            metas = [n.meta for n in at.walk() if "start" in n.meta]
            if metas:
                return self._closed(min(m["start"] for m in metas), max(m["end"] for m in metas) + 1)
            at = at.parent
        return self.whole

    def text(self, node: exp.Expr) -> str:
        """As it is written, in one line."""
        return " ".join(self.span(node).text().split())

    def _closed(self, start: int, end: int) -> Span:
        """With the brackets that close what is opened in it, as far as they follow at once."""
        text = self.source.text
        missing = text.count("(", start, end) - text.count(")", start, end)
        while missing > 0 and text[end : end + 1] == ")":
            end, missing = end + 1, missing - 1
        return Span(self.source, start, end)

    def outside(self, message: str, node: exp.Expr, help: str | None = None) -> UnsupportedError:
        return UnsupportedError(message, span=self.span(node), help=help)
