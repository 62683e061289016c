"""Delta variants, by the naive evaluator: their signed sum is the change of a body's assignments."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.errors import ConstraintError
from dlog.ir.analysis.projection import outer_variables
from dlog.ir.rules import Conj, Disjunction, Program, Rule
from dlog.planning.deltas import Variant, cover_variants, rule_variants
from dlog.planning.versions import erased_name, inserted_name, old_name
from tests.examples import relaxed
from tests.oracle.accepted import accepted
from tests.oracle.changes import apply_all, transactions
from tests.oracle.naive import Facts, _Body, _Stratum, base_facts, evaluate_base
from tests.oracle.programs import NONRECURSIVE, programs
from tests.oracle.values import DoesNotFit

RULES = {
    "triangle": "p(x, y, z) <- e(x, y), e(y, z), e(x, z).",
    "negation": "p(x, y) <- e(x, y), !e(y, x).",
    "negated join": "p(x) <- e(x, _), !(e(x, y), e(y, z), !f(z)).",
    "disjunction": "p(x, y) <- e(x, y), (f(x) ; e(y, z), f(z) ; e(y, x)).",
    "disjunction that binds": "p(x, z) <- e(x, y), (z = y, f(x) ; e(y, z) ; f(z)).",
    "projection": "p(x) <- e(x, y), e(y, z).",
    "nested": "p(x) <- f(x), !(e(x, y), (f(y) ; !e(y, x))).",
}


def versions(program: Program, old: Facts, new: Facts) -> tuple[set[str], Facts]:
    """(Predicates that changed, the facts of all versions)."""
    changed = {name for name in program.predicates if old[name] != new[name]}
    facts = dict(new)
    for name in changed:
        facts[old_name(name)] = old[name]
        facts[inserted_name(name)] = new[name] - old[name]
        facts[erased_name(name)] = old[name] - new[name]
    return changed, facts


def signed_sum(program: Program, rule: Rule, old: Facts, new: Facts) -> Counter[tuple[object, ...]]:
    """What the variants of a rule give, each assignment once for each group."""
    changed, facts = versions(program, old, new)
    total: Counter[tuple[object, ...]] = Counter()
    groups: dict[object, tuple[int, list[tuple[object, ...]]]] = {}
    for number, variant in enumerate(rule_variants(rule, changed)):
        found = assignments(program, rule, variant, facts)
        if variant.group < 0:
            assert len(found) == len(set(found)), f"an atom's variant gives an assignment twice: {variant}"
        key = (variant.group, number if variant.group < 0 else 0)
        groups.setdefault(key, (variant.sign, []))[1].extend(found)
    for sign, found in groups.values():
        for assignment in set(found):
            total[assignment] += sign
    return Counter({a: n for a, n in total.items() if n})


def assignments(program: Program, rule: Rule, variant: Variant, facts: Facts) -> list[tuple[object, ...]]:
    stratum = _Stratum(program, program.strata[0], {}, facts)
    body = _Body(replace(rule, types=variant.types), stratum)
    found = body.solutions(Conj((), variant.forms), {})
    outer = [tuple(sorted((v, e[v]) for v in outer_variables(rule))) for e in found]
    if any(isinstance(form, Disjunction) for form in variant.forms):  # one may hold in two ways
        return list(dict.fromkeys(outer)) if variant.group < 0 else outer
    return outer


def whole(program: Program, rule: Rule, facts: Facts) -> Counter[tuple[object, ...]]:
    body = _Body(rule, _Stratum(program, program.strata[0], {}, facts))
    found = body.solutions(rule.body, {})
    return Counter({tuple(sorted((v, e[v]) for v in outer_variables(rule))) for e in found})


def agree(program: Program, old: Facts, new: Facts) -> None:
    for stratum in program.strata:
        for rule in stratum.rules:
            before, after = whole(program, rule, old), whole(program, rule, new)
            after.subtract(before)
            expected = Counter({a: n for a, n in after.items() if n})
            assert signed_sum(program, rule, old, new) == expected, str(rule)
            covers(program, rule, old, new)


def covers(program: Program, rule: Rule, old: Facts, new: Facts) -> None:
    """Each cover holds all that becomes true (false), and nothing that is not true in its version."""
    changed, facts = versions(program, old, new)
    before, after = set(whole(program, rule, old)), set(whole(program, rule, new))
    for sign, there, not_there in ((1, after, before), (-1, before, after)):
        variants = [v for v in cover_variants(rule, changed) if v.sign == sign]
        found = {a for v in variants for a in assignments(program, rule, v, facts)}
        assert there - not_there <= found <= there, str(rule)


E = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=9)
F = st.sets(st.tuples(st.integers(0, 3)), max_size=4)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_oracle_signed_sum_of_small_rules(rule: str) -> None:
    program = dlog.check("e(x, y) -> int(x), int(y). f(x) -> int(x). " + rule)

    @relaxed(60)
    @given(E, E, F, F)
    def check(e_old: set, e_new: set, f_old: set, f_new: set) -> None:  # type: ignore[type-arg]
        old = evaluate_base(program, {**base_facts(program), "e": e_old, "f": f_old})
        new = evaluate_base(program, {**base_facts(program), "e": e_new, "f": f_new})
        agree(program, old, new)

    check()


G = st.dictionaries(st.integers(0, 3), st.integers(0, 3)).map(lambda found: {*found.items()})


@pytest.mark.parametrize(
    ("rule", "once", "per_row"),
    [
        ("p(x, y) <- e(x, y), !e(y, x).", True, True),
        ("p(x) <- f(x), !g[x] = _.", True, True),
        ("p(x, y) <- e(x, y), !g[x] = y.", True, True),
        ("p(x) <- f(x), !g[_] = x.", False, True),
        ("p(x) <- f(x), !e(x, _).", False, True),
        ("p(x) <- f(x), !e(x, _), (e(_, x) ; g[_] = x).", False, False),
        ("p(x) <- f(x), !(e(x, x), f(x)).", False, False),
    ],
)
def test_a_negation_of_one_row_needs_no_group(rule: str, once: bool, per_row: bool) -> None:
    """That each variant gives an assignment once is asserted in `signed_sum`."""
    program = dlog.check("e(x, y) -> int(x), int(y). f(x) -> int(x). g[x] = y -> int(x), int(y). " + rule)
    variants = rule_variants(program.rules[0], {"e", "f", "g"})
    assert all(variant.once_per_row for variant in variants) == per_row
    assert all(variant.group < 0 for variant in variants) == once

    @relaxed(60)
    @given(E, E, F, F, G, G)
    def check(e_old: set, e_new: set, f_old: set, f_new: set, g_old: set, g_new: set) -> None:  # type: ignore[type-arg]
        base = base_facts(program)
        old = evaluate_base(program, {**base, "e": e_old, "f": f_old, "g": g_old})
        new = evaluate_base(program, {**base, "e": e_new, "f": f_new, "g": g_new})
        agree(program, old, new)

    check()


def random_agree(data: st.DataObject, text: str) -> None:
    program = accepted(text)
    base = base_facts(program)
    try:
        old = evaluate_base(program, base)
        for transaction in data.draw(transactions(program, most=3)):
            apply_all(base, transaction)
        new = evaluate_base(program, base)
    except (DoesNotFit, ConstraintError):
        return
    agree(program, old, new)


@relaxed(60)
@given(st.data(), programs(NONRECURSIVE))
def test_oracle_signed_sum(data: st.DataObject, text: str) -> None:
    random_agree(data, text)


@pytest.mark.fuzz
@relaxed(3000, random=True)
@given(st.data(), programs(NONRECURSIVE, derived=6))
def test_fuzz_signed_sum(data: st.DataObject, text: str) -> None:
    random_agree(data, text)


def test_a_self_join_is_one_term_per_occurrence() -> None:
    program = dlog.check("e(x, y) -> int(x), int(y). p(x, z) <- e(x, y), e(y, z).")
    texts = [str(v) for v in rule_variants(program.rules[0], {"e"})]
    assert texts == [
        "- -e(x, y), old e(y, z)",
        "+ +e(x, y), old e(y, z)",
        "- -e(y, z), e(x, y)",
        "+ +e(y, z), e(x, y)",
    ]
