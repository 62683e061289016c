"""Owns names of M3 variables for texts that have other names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dlog.m3.syntax.ast import A5, DBTOASTER
from dlog.m3.syntax.dialects import is_reserved


class Names:
    """Names of M3 variables: lower case, none twice, none reserved.

    >>> names = Names(["r"])
    >>> names.fresh("Price"), names.fresh("price"), names.fresh("r", "row"), names.fresh("4")
    ('price', 'price_2', 'row', 'x4')
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)

    def fresh(self, *wanted: str) -> str:
        """The first of these that is free, else one like the last."""
        names = [_identifier(name) for name in wanted]
        for name in names:
            if self._is_free(name):
                self.taken.add(name)
                return name
        number = 2
        while not self._is_free(f"{names[-1]}_{number}"):
            number += 1
        self.taken.add(f"{names[-1]}_{number}")
        return f"{names[-1]}_{number}"

    def _is_free(self, name: str) -> bool:
        return name not in self.taken and not is_reserved(name, DBTOASTER) and not is_reserved(name, A5)


def _identifier(name: str) -> str:
    plain = re.sub(r"[^a-z0-9_]", "_", name.lower())
    return plain if re.match(r"[a-z_]", plain) else f"x{plain}"
