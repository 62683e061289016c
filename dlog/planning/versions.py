"""Owns the names of a predicate's versions during a transaction.

The plain name is the new version.  The name of another version is not an identifier of the language, so it
never equals a predicate's name, and a plan that reads it needs to know nothing of versions.
"""

from __future__ import annotations

from dlog.ir.rules import COUNTER as COUNTER

_DELTA, _EARLIER, _OLD, _INSERTED, _ERASED, _FACTS = "Δ", "earlier ", "old ", "+", "-", "base "
_STALE, _EVERYTHING, _SUBSUMED = "stale ", "all ", "subsumed "
_GIVEN = "given "
_PREFIXES = (_OLD, _DELTA, _EARLIER, _INSERTED, _ERASED, _FACTS)


def delta_name(predicate: str) -> str:
    """The rows that the last iteration added to a predicate."""
    return _DELTA + predicate


def earlier_name(predicate: str) -> str:
    """A predicate without the rows that the last iteration added."""
    return _EARLIER + predicate


def old_name(predicate: str) -> str:
    """The version before the transaction."""
    return _OLD + predicate


def inserted_name(predicate: str) -> str:
    """The rows that the transaction inserts: in the new version but not in the old one."""
    return _INSERTED + predicate


def erased_name(predicate: str) -> str:
    """The rows that the transaction erases: in the old version but not in the new one."""
    return _ERASED + predicate


def facts_name(predicate: str) -> str:
    """The base facts of a predicate that also has rules."""
    return _FACTS + predicate


def everything_name(predicate: str) -> str:
    """The rows of a predicate with a subsumption, those that are subsumed, too."""
    return _EVERYTHING + predicate


def subsumed_name(predicate: str) -> str:
    """Those of them that are subsumed."""
    return _SUBSUMED + predicate


def stale_name(predicate: str) -> str:
    """What marks a predicate that nothing updates."""
    return _STALE + predicate


def given_name(predicate: str) -> str:
    """The rows that a predicate with memory had before it is evaluated again."""
    return _GIVEN + predicate


def is_memory(name: str) -> bool:
    """Whether a name stands for state that is neither facts nor derived from them."""
    return name == COUNTER or name.startswith(_GIVEN)


def base_name(name: str) -> str:
    """The predicate that a name is a version of.

    >>> base_name(old_name("edge")), base_name("edge")
    ('edge', 'edge')
    """
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name[len(prefix) :]
    return name


def declared_name(name: str) -> str:
    """The predicate that has the columns of a version.

    >>> declared_name(old_name("edge")), declared_name(old_name(everything_name("edge")))
    ('edge', 'edge')
    """
    name = base_name(name)
    return next((name[len(prefix) :] for prefix in (_EVERYTHING, _SUBSUMED) if name.startswith(prefix)), name)


def is_old(name: str) -> bool:
    return name.startswith(_OLD)


def is_earlier(name: str) -> bool:
    return name.startswith(_EARLIER)


def is_change(name: str) -> bool:
    """Whether a name stands for rows that a transaction, or an iteration, inserts or erases."""
    return name.startswith((_DELTA, _INSERTED, _ERASED))


def is_of_transaction(name: str) -> bool:
    """The same of a transaction alone."""
    return name.startswith((_INSERTED, _ERASED))
