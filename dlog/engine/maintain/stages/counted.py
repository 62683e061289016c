"""Owns the evaluation of a recursive stratum with its state: rows, stages and support counts at once.

Correct output: the relations hold what evaluation from scratch gives, and the table of stages has all facts,
each with a stage and the exact number of its derivations from lower stages (`dlog.heads.stages.table`).

The driven fixpoint finds every derivation once, when the last of its recursive facts drives; the set that
detects new rows then also gives the head's support.  So preparing for changes costs a wider row in a
queue, and a table that is filled at the end.  Bodies that do not run inside the kernel, and recursive min and
max, take the general path (`dlog.engine.maintain.stages.keep`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from dlog.engine.body.bodies import BodyRunner
from dlog.engine.evaluate.driven import Driven
from dlog.engine.evaluate.fixpoint import Supports, Surroundings, run_fixpoint
from dlog.engine.head.heads import apart, copied_rows, head_rows
from dlog.engine.maintain.stages.expansion import Body, Expansion, Recursion, distinct
from dlog.engine.state.measure import Measures
from dlog.ir.rules import Atom, Form
from dlog.jit import Words
from dlog.planning.versions import delta_name, earlier_name, facts_name
from dlog.storage.index.sort import weigh_rows
from dlog.storage.queue.support_kernels import COUNT_BITS
from dlog.storage.relation.relation import Relation

FIRST_STAGE = 1 << COUNT_BITS


def is_countable(recursion: Recursion, expansions: Sequence[Expansion]) -> bool:
    """Whether the bodies, expanded through each of their recursive facts, can be driven and counted."""
    arities = [recursion.store.predicates[name].arity for name in recursion.numbers]
    return all(arities) and all(expansion.in_kernel for expansion in expansions)


def evaluate_counted(recursion: Recursion, bodies: Sequence[Body], start: Sequence[Expansion]) -> int:
    """Evaluate into the store's relations and fill the table, which is empty.  Returns the work.

    `start` are the bodies without recursive facts.  REQUIRES: is_countable.
    """
    store, evaluation, table = recursion.store, recursion.evaluation, recursion.table
    supports = _seed(recursion, start)
    items = list(_variants(recursion, bodies))
    before = _work(items)
    run_fixpoint(
        store,
        tuple(recursion.numbers),
        items,
        Surroundings(evaluation.watch, evaluation.measures, evaluation.row_sets),
        supports=Supports(supports, lambda name, block: table.fill(recursion.numbers[name], block)),
    )
    return _work(items) - before


def _seed(recursion: Recursion, start: Sequence[Expansion]) -> dict[str, Words]:
    """Put what the bodies without recursive facts derive into the relations; its supports, in order."""
    store = recursion.store
    supports = {}
    by_head: dict[str, list[Expansion]] = {}
    for expansion in start:
        by_head.setdefault(expansion.body.head.predicate, []).append(expansion)
    for name in recursion.numbers:
        arity, orders = store.predicates[name].arity, store.relations[facts_name(name)].orders
        parts = [part for e in by_head.get(name, ()) if len((part := _heads(e))[0])]
        if not parts:
            store.relations[name] = Relation(store.arena, arity, orders)
            supports[name] = np.empty(0, np.int64)
            continue
        rows = parts[0][0] if len(parts) == 1 else np.concatenate([rows for rows, _ in parts])
        columns, counts = weigh_rows(list(rows.T), _weights(parts))
        store.relations[name] = Relation.from_columns(store.arena, columns, orders)
        supports[name] = counts + FIRST_STAGE
    return supports


def _heads(expansion: Expansion) -> tuple[Words, Words | None]:
    """(Heads of all derivations of a body, how many each represents; None: one)."""
    shared, rule = expansion.recursion, expansion.rule
    evaluation = shared.evaluation
    evaluation.watch.doing = f"evaluating {expansion.body.head.predicate}"
    measures = evaluation.measures if rule.span else Measures()  # base facts are no rule of the program
    with measures.of(rule) as measure:
        copied = copied_rows(shared.store, expansion.body.head, expansion.forms, rule)
        if copied is not None and measure.trace is None:
            measure.rows += len(copied)
            return copied, None
        runner = BodyRunner(shared.store, rule, evaluation.watch, measures, measure, evaluation.jobs)
        table, weights = apart(runner.run(expansion.pipeline, weighted=not expansion.repeats))
        if expansion.repeats:
            table = distinct(table, expansion.outputs)
        measure.rows += table.n
        return head_rows(shared.store, expansion.body.head, table, rule), weights


def _weights(parts: Sequence[tuple[Words, Words | None]]) -> Words | None:
    if all(weights is None for _, weights in parts):
        return None
    return np.concatenate([np.ones(len(rows), np.int64) if w is None else w for rows, w in parts])


def _variants(recursion: Recursion, bodies: Sequence[Body]) -> Iterator[Driven]:
    """A driven rule for each recursive fact of each body.  Those before it are of earlier rounds, those
    after it also of this one: so every derivation is found once."""
    measures = recursion.evaluation.measures
    for body in bodies:
        facts = body.facts[1:]
        for place, atom in enumerate(facts):
            driver = replace(atom, predicate=delta_name(atom.predicate))
            before = {id(fact) for fact in facts[:place]}
            rest = tuple(_earlier(f) if id(f) in before else f for f in body.forms if f is not atom)
            yield Driven(body.rule, driver, rest, measures.measure(body.rule), True)


def _earlier(form: Form) -> Form:
    assert isinstance(form, Atom)
    return replace(form, predicate=earlier_name(form.predicate))


def _work(items: Sequence[Driven]) -> int:
    """Derivations and join operations of the rules so far."""
    measures = {id(item.measure): item.measure for item in items}.values()
    return sum(m.rows + m.seeks + m.nexts for m in measures)
