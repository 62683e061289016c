"""Owns which derived predicates are subsets of others for all facts: a sound, syntactic answer.

S is a subset of T when every rule of S has T, with the head's own arguments, as a positive atom of its body:

    # S(x, y) <- T(x, y), bad(y).       S(x, y) <- T(x, y), worse(x).

A T with a subsumption is left out: in a recursion, S may have rows that T no longer has.

This holds for derived rows; the caller must rule out base facts of S.
"""

from __future__ import annotations

from dlog.ir.rules import Atom, Program


def inclusions(program: Program) -> frozenset[tuple[str, str]]:
    """Pairs (S, T) such that the rules of S derive rows of T only.  O(rules, and the atoms of each)."""
    candidates: dict[str, set[str]] = {}
    for stratum in program.strata:
        for rule in stratum.rules:
            for head in rule.heads:
                predicate = program.predicates[head.predicate]
                special = predicate.equivalence is not None or predicate.numbering is not None
                if special or rule.numbers:
                    continue  # its rule says only where its rows come from
                around = {
                    form.predicate
                    for form in rule.body.forms
                    if isinstance(form, Atom) and form.args == head.args and _alike(program, form, head)
                }
                known = candidates.get(head.predicate)
                candidates[head.predicate] = around if known is None else known & around
    smaller = {head.predicate for rule in program.subsumptions for head in rule.heads}
    return frozenset(
        (inner, outer)
        for inner, outers in candidates.items()
        for outer in outers
        if inner != outer and outer not in smaller
    )


def _alike(program: Program, a: Atom, b: Atom) -> bool:
    """Whether columns have the same types, so that equal values are equal codes."""
    return [c.type for c in program.predicates[a.predicate].columns] == [
        c.type for c in program.predicates[b.predicate].columns
    ]
