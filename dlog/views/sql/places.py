"""Owns the positions of SQL syntax trees: which characters of the file belong to a node, and the error for a
node that is outside the supported fragment.
"""

from __future__ import annotations

import re

from sqlglot import expressions as exp

from dlog.errors import UnsupportedError
from dlog.language.source import Source, Span

# What has a word of its own that has no position in sqlglot, with what precedes the first word that has one.
_WORDS: dict[type[exp.Expr], str] = {
    exp.If: r"\bI?IF\s*\(\s*$",
    exp.Substring: r"\bSUBSTR(ING)?\s*\(\s*$",
    exp.Extract: r"\bEXTRACT\s*\(\s*\w+\s+FROM\s*$",
    exp.Exists: r"\bEXISTS\s*\(\s*SELECT\s*$",
    exp.Cast: r"\b(TRY_)?CAST\s*\(\s*$",
    exp.Subquery: r"\(\s*SELECT\b(?:(?!\bSELECT\b)[^)])*$",
    exp.Select: r"\bSELECT\b(?:(?!\bSELECT\b)[^)])*$",
    exp.Case: r"\bCASE\s+(WHEN\s*)?$",
}
_CAST = re.compile(r"\s*::\s*\w+")


class NeedsLevels(UnsupportedError):
    """No view tree maintains the query, but levels of maps may.  The message says why."""


class Places:
    """sqlglot has positions of words; a node extends from its first to its last word, and a function from its
    own.
    """

    def __init__(self, source: Source, whole: Span):
        self.source, self.whole = source, whole

    def span(self, node: exp.Expr) -> Span:
        """Of the node; of its surroundings, if it has no word."""
        at: exp.Expr | None = node
        while at is not None:
            metas = [n.meta for n in at.walk() if "start" in n.meta]
            if metas:
                start, end = min(m["start"] for m in metas), max(m["end"] for m in metas) + 1
                return self._closed(self._begun(at, start), end, isinstance(at, exp.Cast))
            at = at.parent
        return self.whole

    def word(self, word: str, after: exp.Expr) -> Span:
        """Of a word that follows a node."""
        found = re.compile(rf"\b{word}\b", re.IGNORECASE).search(self.source.text, self.span(after).end)
        return Span(self.source, *found.span()) if found else self.span(after)

    def follows_comma(self, node: exp.Expr) -> bool:
        before = self.source.text[self.whole.start : self.span(node).start]
        return re.sub(r"--[^\n]*|/\*.*?\*/", "", before, flags=re.DOTALL).rstrip().endswith(",")

    def text(self, node: exp.Expr) -> str:
        """As it is written, in one line."""
        return " ".join(self.span(node).text().split())

    def _begun(self, node: exp.Expr, start: int) -> int:
        """With the word of a function that comes before."""
        pattern = next((p for kind, p in _WORDS.items() if isinstance(node, kind)), None)
        before = self.source.text[self.whole.start : start]
        found = re.search(pattern, before, re.IGNORECASE) if pattern else None
        return start if found is None else self.whole.start + found.start()

    def _closed(self, start: int, end: int, is_cast: bool = False) -> Span:
        """With the brackets that close what is opened in it, if they follow at once."""
        text = self.source.text
        missing = text.count("(", start, end) - text.count(")", start, end)
        while missing > 0 and text[end : end + 1] == ")":
            end, missing = end + 1, missing - 1
        cast = _CAST.match(text, end) if is_cast else None
        end = cast.end() if cast else end
        return Span(self.source, start, end)

    def outside(self, message: str, node: exp.Expr, help: str | None = None) -> UnsupportedError:
        return UnsupportedError(message, span=self.span(node), help=help)

    def by_levels(self, reason: str, node: exp.Expr) -> NeedsLevels:
        return NeedsLevels(reason, span=self.span(node))
