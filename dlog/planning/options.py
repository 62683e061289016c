"""Owns the planner's switches: each feature is chosen by cost, always used, or never.

No switch changes an answer.  They are for comparing plans: tests evaluate every program with each feature
forced and without it.

    .pragma "planner" "no-semijoins, always-sub-joins"        DLOG_PLANNER="no-sharing"
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from dlog.errors import SourceError, did_you_mean
from dlog.language.ast import Pragma
from dlog.language.source import Span

ENVIRONMENT = "DLOG_PLANNER"
AUTO, ALWAYS, NEVER = "auto", "always", "never"


@dataclass(frozen=True)
class Options:
    """auto: by cost.  always: wherever it is possible.  never: not used.

    `semijoins`   rows that cannot match are filtered out by a relation made before the join
    `sub_joins`   variables that are no longer needed are removed by separate joins
    `probes`      sub-joins are hash tables, probed for each row of the last join, instead of indices
    `chunks`      a join of large sub-joins runs range by range of one variable
    `sharing`     sub-joins that are equal except for names are computed once
    `complements` `T(x), !S(x)` with S inside T compares counts, and never examines rows that both have
    `sorted_runs` what recursion has derived is in sorted runs, where new rows are many at a time
    """

    semijoins: str = AUTO
    sub_joins: str = AUTO
    probes: str = AUTO
    chunks: str = AUTO
    sharing: str = AUTO
    complements: str = AUTO
    sorted_runs: str = AUTO

    @classmethod
    def parse(cls, text: str, base: Options | None = None, span: Span | None = None) -> Options:
        """Words such as `no-semijoins` or `always-sub-joins`, separated by commas or spaces.

        >>> Options.parse("no-semijoins always-chunks").chunks
        'always'
        """
        options = base or cls()
        for word in text.replace(",", " ").split():
            options = replace(options, **dict([_setting(word, span)]))
        return options

    @classmethod
    def of(cls, pragmas: Iterable[Pragma] = ()) -> Options:
        """From a program's pragmas; the environment overrides them."""
        options = cls()
        for pragma in pragmas:
            if pragma.key == "planner":
                options = cls.parse(pragma.value or "", options, pragma.span)
        return cls.parse(os.environ.get(ENVIRONMENT, ""), options)


def _setting(word: str, span: Span | None) -> tuple[str, str]:
    name, value = word, AUTO
    for prefix, meaning in (("no-", NEVER), ("always-", ALWAYS), ("auto-", AUTO)):
        if word.startswith(prefix):
            name, value = word.removeprefix(prefix), meaning
            break
    known = [field.name.replace("_", "-") for field in fields(Options)]
    if name not in known or name == word:
        words = [f"{prefix}{k}" for k in known for prefix in ("no-", "always-", "auto-")]
        otherwise = f"the planner's options are {', '.join(words)}"
        help = did_you_mean(word, words, otherwise)
        raise SourceError(f"unknown planner option {word}", span=span, help=help)
    return name.replace("-", "_"), value
