"""Owns what predicates with memory may hold: rows chosen among candidates, and numbers of assignments.

What a database holds is checked, not computed again: the rest of its program is evaluated *given* the chosen
rows and the numbers, a rule that chooses being one that derives those candidates only which are given.  Then
every given row must be derived, and `check_memory` says what is true of it.  So rows that only support each
other are found: nothing derives them.

A program that is evaluated once, without memory, has one result, by the order that docs/language.md states:
base facts, then what rules derive without the recursion, then round by round, each time lowest rows first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from dlog.ir.rules import Choice, Program

from .values import Row, order

Rows = set[Row]
Facts = dict[str, Rows]


def check_memory(program: Program, facts: Facts, base: Facts, memory: Facts) -> None:
    """`facts` are the program's predicates, evaluated given the memory."""
    for name in program.remembered:
        predicate = program.predicates[name]
        assert facts[name] == memory[name], f"{name}: not derived: {memory[name] - facts[name]}"
        if predicate.choice is not None:
            candidates = facts[predicate.choice.candidates] | base[name]
            assert facts[name] <= candidates
            check_choice(predicate.choice, facts[name], candidates)
        if predicate.numbering is not None:
            count = predicate.numbering.count
            assignments = [row[:-count] for row in facts[name]]
            assert len(assignments) == len(set(assignments))
            assert set(assignments) == facts[predicate.numbering.assignments]
    every = [n for name in program.remembered for n in numbers(program, name, facts[name])]
    assert len(every) == len(set(every)), "a number was given twice"


def check_choice(choice: Choice, chosen: Rows, candidates: Rows) -> None:
    """Functional by each domain; every candidate that is not chosen shares a key with one that is."""
    keys = [{tuple(row[c] for c in domain) for row in chosen} for domain in choice.domains]
    assert all(len(known) == len(chosen) for known in keys), "two chosen rows share a key"
    for row in candidates - chosen:
        taken = (tuple(row[c] for c in d) in known for d, known in zip(choice.domains, keys, strict=True))
        assert any(taken), f"{row} could be chosen"


def check_stays(program: Program, evaluate: Callable[[Facts], Facts], before: Facts, after: Facts) -> None:
    """What was there before a transaction, and follows again from what was, stays.

    `evaluate` gives the predicates on the new facts, given a memory.  A stratum sees what is chosen below it
    now, and its own rows before.
    """
    for stratum in program.strata:
        own = {name: before[name] for name in program.remembered_in(stratum) if name in before}
        facts = evaluate(after | own) if own else {}
        for name, rows in own.items():
            gone = (rows & facts[name]) - after[name]
            assert not gone, f"{name}: these had no reason to go: {gone}"


def numbers(program: Program, name: str, rows: Iterable[Row]) -> list[int]:
    numbering = program.predicates[name].numbering
    return [n for row in rows for n in row[-numbering.count :]] if numbering is not None else []


# Without memory


def greedy(choice: Choice, chosen: Rows, candidates: Collection[Row]) -> Rows:
    """The candidates that are added to chosen rows, lowest first."""
    taken = [{tuple(row[c] for c in domain) for row in chosen} for domain in choice.domains]
    added: Rows = set()
    for row in lowest_first(candidates):
        keys = [tuple(row[c] for c in domain) for domain in choice.domains]
        if not any(key in known for key, known in zip(keys, taken, strict=True)):
            added.add(row)
            for key, known in zip(keys, taken, strict=True):
                known.add(key)
    return added


def numbered(assignments: Collection[Row], count: int, first: int) -> Rows:
    ordered = enumerate(lowest_first(assignments))
    return {(*row, *(first + i * count + k for k in range(count))) for i, row in ordered}


def choose_by_rounds(
    choices: dict[str, Choice], base: Facts, facts: Facts, derive: Callable[[], Facts]
) -> None:
    """Runs a stratum with choices to its end.  `facts` are what its rules see; `derive` gives what they
    derive then.  REQUIRES: its predicates are empty."""
    first = derive()
    for name, choice in choices.items():
        facts[name] = greedy(choice, set(), base[name])
    _round(choices, facts, first)
    while _round(choices, facts, derive()):
        pass


def _round(choices: dict[str, Choice], facts: Facts, derived: Facts) -> bool:
    """Adds what was derived, and what is chosen of it; returns whether anything was new."""
    later = {name: rows | facts[name] for name, rows in derived.items() if name not in choices}
    for name, choice in choices.items():
        known = facts[choice.candidates] if choice.candidates in derived else set()
        candidates = later.get(choice.candidates, facts[choice.candidates]) - known
        later[name] = facts[name] | greedy(choice, facts[name], candidates)
    grown = any(facts[name] != rows for name, rows in later.items())
    facts.update(later)
    return grown


def lowest_first(rows: Collection[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: [order(value) for value in row])
