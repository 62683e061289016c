"""Owns strata that run at the same time: those that are independent of each other, on several cores.

Correct output: as one after the other, whatever the number of cores: relations, warnings in the order of
strata, and of several errors the one that the first stratum to fail raises.

One lock, the *turn*, is held to change the store or to plan; it is released while joins and
recursions run, which only read.  So nothing else needs a lock, and long work runs side by
side.  Strata that may make new strings run alone: the order of arrival is part of the dictionary.  So
do those that give numbers, which come in the order of strata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from dlog.engine.head.heads import body_outputs
from dlog.engine.state.limits import ReleasableLock, Watch
from dlog.engine.state.measure import Measures
from dlog.engine.state.store import Store
from dlog.ir.rules import Program, Rule, Stratum
from dlog.planning.pipeline import Join, plan_pipeline

if TYPE_CHECKING:
    from dlog.engine.evaluate.evaluate import Evaluation

LARGE = 20_000  # rows that a stratum reads, below which a thread costs more than it saves
_LOOK = 0.02  # seconds between two checks of the limits

Run = Callable[[Stratum, "Evaluation"], None]


def run_all(program: Program, store: Store, evaluation: Evaluation, run: Run) -> None:
    """Run all strata, several at a time if that helps."""
    # A limit on rows names the rule that exceeds it, a profile has rules' times: one after the other then.
    alone = evaluation.watch.limits.rows is not None or evaluation.measures.traced
    held: list[tuple[int, Outcome]] = []  # a heap, by number: of strata behind some that have not run yet
    failed = len(program.strata)  # the first stratum that did
    for numbers in groups(program, store, 1 if alone else evaluation.jobs):
        _tell(held, numbers[0], evaluation)
        numbers = [number for number in numbers if number < failed]
        names = ", ".join(name for number in numbers for name in program.strata[number].predicates)
        evaluation.watch.beat = partial(evaluation.progress, names, numbers[0], len(program.strata))
        evaluation.watch.check()
        if len(numbers) == 1:
            run(program.strata[numbers[0]], evaluation)
        else:
            for outcome in run_group(program, numbers, evaluation, run):
                heappush(held, (outcome.number, outcome))
                failed = min(failed, outcome.number) if outcome.error is not None else failed
    _tell(held, len(program.strata), evaluation)


def _tell(held: list[tuple[int, Outcome]], before: int, evaluation: Evaluation) -> None:
    """The warnings and the first error of strata before a number: all of these have run."""
    while held and held[0][0] < before:
        _, outcome = heappop(held)
        for text in outcome.warnings:
            evaluation.measures.warn(text)
        if outcome.error is not None:
            raise outcome.error


def groups(program: Program, store: Store, jobs: int) -> Iterator[list[int]]:
    """Strata to run next, by number: one, or several that can run side by side.

    Each is asked for when those before are done, since their sizes decide.  O(program).
    """
    strata = program.strata
    if jobs == 1:
        yield from ([number] for number in range(len(strata)))
        return
    readers, missing = _dependencies(strata)
    done = [False] * len(strata)
    large = {n for n in range(len(strata)) if not missing[n] and _is_worth(strata[n], store)}
    for number in range(len(strata)):
        if done[number]:
            continue
        group = sorted(large) if number in large else [number]
        yield group
        large.difference_update(group)
        for member in group:
            done[member] = True
            for reader in readers[member]:
                missing[reader] -= 1
                if not missing[reader] and _is_worth(strata[reader], store):
                    large.add(reader)


def _dependencies(strata: Sequence[Stratum]) -> tuple[list[list[int]], list[int]]:
    """(The strata that read each, how many others each reads)."""
    owners = {name: number for number, stratum in enumerate(strata) for name in stratum.predicates}
    readers: list[list[int]] = [[] for _ in strata]
    missing = []
    for number, stratum in enumerate(strata):
        needs = {owners[name] for name in stratum.reads if name in owners} - {number}
        missing.append(len(needs))
        for owner in needs:
            readers[owner].append(number)
    return readers, missing


def _is_worth(stratum: Stratum, store: Store) -> bool:
    large = sum(map(store.rows, stratum.reads)) >= LARGE
    if any(store.predicates[name].numbering is not None for name in stratum.predicates):
        return False
    return large and not any(map(_makes_strings, (*stratum.rules, *stratum.subsumptions)))


def _makes_strings(rule: Rule) -> bool:
    """Whether a rule may: whatever is computed on columns counts."""
    if any(a.function.makes_texts for a in rule.aggregates):
        return True
    pipeline = plan_pipeline(rule.body.forms, body_outputs(rule), rule.types, bool(rule.aggregates))
    return not all(isinstance(operation, Join) for operation in pipeline.operations)


@dataclass
class Outcome:
    """The warnings and the error of a stratum that ran beside others."""

    number: int
    warnings: list[str]
    error: BaseException | None = None


@dataclass
class _Running:
    """A stratum in its own thread."""

    outcome: Outcome
    evaluation: Evaluation
    future: Future[None]

    @property
    def failed(self) -> bool:
        return self.future.done() and self.future.exception() is not None


def run_group(program: Program, numbers: list[int], evaluation: Evaluation, run: Run) -> list[Outcome]:
    """Run strata side by side.  Those after one that failed are not run to their end.

    Raises only what limits and Ctrl-C raise.
    """
    lock = ReleasableLock()
    with ThreadPoolExecutor(min(evaluation.jobs, len(numbers))) as pool:
        running = [_begin(pool, lock, program, number, evaluation, run) for number in numbers]
        try:
            while going := [r for r in running if not r.future.done()]:
                wait([r.future for r in going], _LOOK, FIRST_COMPLETED)
                _stop_after_failure(running)
                evaluation.watch.doing = going[0].evaluation.watch.doing
                evaluation.watch.check()
        finally:
            for r in running:
                r.evaluation.watch.stopped = True
    for r in running:
        evaluation.measures.rules.update(r.evaluation.measures.rules)
        evaluation.measures.sets.update(r.evaluation.measures.sets)
        evaluation.watch.derived(r.evaluation.watch.derived_rows)
        r.outcome.error = r.future.exception()
    return [r.outcome for r in running]


def _begin(
    pool: ThreadPoolExecutor,
    lock: ReleasableLock,
    program: Program,
    number: int,
    evaluation: Evaluation,
    run: Run,
) -> _Running:
    outcome = Outcome(number, [])
    measures = Measures(on_warning=outcome.warnings.append)
    own = replace(evaluation, watch=Watch(lock=lock), measures=measures)

    def work() -> None:
        with lock:
            own.watch.check()
            run(program.strata[number], own)

    return _Running(outcome, own, pool.submit(work))


def _stop_after_failure(running: list[_Running]) -> None:
    """When a stratum has failed, those after it are not needed; those before it may fail as well."""
    failed = next((i for i, r in enumerate(running) if r.failed), len(running))
    for r in running[failed + 1 :]:
        r.evaluation.watch.stopped = True
