"""Owns the short path of a transaction of a few rows, in steps.  A step has rows of one predicate,
all inserted or all erased, and fires one trigger.

Correct output: that of `maintain` on all rows at once.  The state between two steps may break a constraint or
a function that the last state does not break.  So after an error, or where a step has no trigger, everything
is as it was before, and the transaction takes the general path.  Most single rows derive nothing and cost one
kernel call.  Changes of a head that other rules read go on through triggers of its own, as far as there are
any; the general path does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dlog.engine.commit.commits import CommitSummary, added_costs
from dlog.engine.commit.oracle_report import OracleReport, ReportsOnRequest, no_reports
from dlog.engine.evaluate.evaluate import Evaluation
from dlog.engine.maintain.heads.changes import ChangesHead
from dlog.engine.maintain.heads.sets import counts_name
from dlog.engine.maintain.heads.text_heads import joined_changes
from dlog.engine.maintain.maintain import Maintenance, maintain
from dlog.engine.maintain.rule_strategy import RuleStrategy
from dlog.engine.maintain.strategy import Cycle, Followed
from dlog.engine.maintain.triggers.group_trigger import NONE, Assignments, OtherGroups
from dlog.engine.maintain.triggers.kernels import NOTHING, TOO_LARGE
from dlog.engine.maintain.triggers.terminal_head import HeadChange, JoinedChange
from dlog.engine.maintain.triggers.trigger import Output, Rows, Trigger
from dlog.engine.maintain.triggers.trigger_search import find_derived, find_trigger, is_read
from dlog.engine.state.pending import SignedRows
from dlog.engine.state.store import Store
from dlog.errors import DlogError, Interrupted
from dlog.heads.counts import apply_counts, net_change, net_rows
from dlog.heads.lookup import look_up
from dlog.jit import Words
from dlog.planning.deltas import ERASE, INSERT
from dlog.storage.index.batch import Change
from dlog.storage.relation.deferred import DeferredChange, may_differ
from dlog.storage.relation.relation import Relation

NO_DERIVED: Mapping[str, Change] = {}
NO_COSTS: Mapping[str, int] = {}
ChangedHeads = dict[str, tuple[Relation, Change]]  # new version, net change
NO_WAYS: Mapping[str, str] = {}  # of a step whose strata and costs are those of another one


class Step:
    """Rows that have fired a trigger, and what a commit reports of them: see `commits.CommitSummary`."""

    __slots__ = ("_costs", "_own", "derived", "later", "oracle_reports", "rows", "trigger", "ways")

    def __init__(
        self,
        trigger: Trigger,
        rows: Rows,
        ways: Mapping[str, str],
        costs: Mapping[str, int] | int,
        derived: Mapping[str, Change] = NO_DERIVED,
        oracle_reports: ReportsOnRequest = no_reports,
    ):
        self.trigger = trigger  # the first one that was fired
        self.later: list[Trigger] = []  # those that were fired after it
        self.rows = rows  # those that changed something
        self.ways = ways
        self._costs = costs  # by the names of `ways`, or of the only one
        self._own: tuple[dict[str, str], dict[str, int]] | None = None  # ways and costs, if no trigger's
        self.derived = derived
        self.oracle_reports = oracle_reports

    def costs(self) -> Mapping[str, int]:
        return dict.fromkeys(self.ways, self._costs) if isinstance(self._costs, int) else self._costs

    def add_costs(self, name: str, way: str, operations: int) -> None:
        """What another stratum did.  O(1): what belongs to the trigger is copied once."""
        if self._own is None:
            self.ways, self._costs = self._own = {**self.ways}, {**self.costs()}
        ways, costs = self._own
        ways[name] = way
        costs[name] = costs.get(name, 0) + operations

    def differences(self) -> dict[str, Change]:
        if not len(self.rows):
            return {**self.derived}
        rows, none = np.asarray(self.rows, np.int64), np.empty((0, self.trigger.arity), np.int64)
        change = Change(rows, none) if self.trigger.sign > 0 else Change(none, rows)
        return {**self.derived, self.trigger.name: change}

    def change_of(self, name: str) -> Callable[[], Change] | None:
        derived = self.derived
        if isinstance(derived, HeadChange | JoinedChange) and derived.name == name:
            return lambda: derived[name]
        return None

    def note(self, seconds: float, maintained: float) -> None:
        accounts = self.trigger.accounts
        if self.later:
            accounts = [*accounts, *(account for trigger in self.later for account in trigger.accounts)]
        share, rows = maintained / max(1, len(accounts)), len(self.rows)
        for account in accounts:
            account.note(seconds, share, rows)


class Steps:
    """The same for several, one after the other."""

    __slots__ = ("_steps",)

    def __init__(self, steps: Sequence[Step]):
        self._steps = steps

    @property
    def ways(self) -> Mapping[str, str]:
        return {name: way for step in self._steps for name, way in step.ways.items()}

    def costs(self) -> Mapping[str, int]:
        return added_costs(step.costs() for step in self._steps)

    def differences(self) -> Mapping[str, Change]:
        """O(rows that changed, sorted)."""
        of_name: dict[str, list[Change]] = {}
        for step in self._steps:
            for name, change in step.differences().items():
                of_name.setdefault(name, []).append(change)
        return {name: _net(found) for name, found in of_name.items()}

    def change_of(self, name: str) -> None:
        """The changes of several steps may cancel out."""

    def oracle_reports(self) -> Sequence[OracleReport]:
        return [report for step in self._steps for report in step.oracle_reports()]

    def note(self, seconds: float, maintained: float) -> None:
        triggers = [trigger for step in self._steps for trigger in (step.trigger, *step.later)]
        touched = {id(account): account for trigger in triggers for account in trigger.accounts}
        share, rows = maintained / max(1, len(touched)), sum(len(step.rows) for step in self._steps)
        for account in touched.values():
            account.note(seconds, share, rows)


def _net(changes: Sequence[Change]) -> Change:
    """Of consecutive changes of a predicate."""
    deferred = [change for change in changes if isinstance(change, DeferredChange)]
    if len(deferred) == len(changes):
        return joined_changes(deferred)
    return net_change([c.change if isinstance(c, DeferredChange) else c for c in changes])


def follow_rows(
    maintenance: Maintenance,
    store: Store,
    steps: Sequence[SignedRows],
    evaluation: Callable[[], Evaluation],
) -> CommitSummary | None:
    """Brings the store to the state after all steps; None: not simple, and the store is as it was.

    Raises only what a single step raises; the caller takes back what was done until then.
    """
    before, strategies = store.relations, maintenance.strategies
    if len(steps) > 1 and not maintenance.remembered.isdisjoint(name for _, name, _ in steps):
        return None  # what is lost in one step and comes back in another must stay
    if len(steps) == 1:
        done: CommitSummary | None = _follow(maintenance, store, *steps[0], evaluation, before)
    else:
        try:
            followed = _follow_steps(maintenance, store, steps, evaluation)
        except DlogError as error:
            if isinstance(error, Interrupted):
                raise
            followed = None
        done = None if followed is None else Steps(followed)
    if done is None:
        store.relations = before
        maintenance.go_back(strategies)
    return done


def _follow_steps(
    maintenance: Maintenance,
    store: Store,
    steps: Sequence[SignedRows],
    evaluation: Callable[[], Evaluation],
) -> list[Step] | None:
    shared = store.relations
    for sign, name, _ in steps:  # a recursion can take back its last step, not several
        if (trigger := find_trigger(maintenance, store, name, sign)) is None or trigger.recursions:
            return None
    if len(steps) == 2 and (pair := _pair(maintenance, store, *steps)) is not None:
        return _follow_pair(store, pair, [rows for _, _, rows in steps], shared)
    done = []
    for sign, name, rows in steps:
        step = _follow(maintenance, store, sign, name, rows, evaluation, shared)
        if step is None:
            return None
        done.append(step)
    return done


def _follow(
    maintenance: Maintenance,
    store: Store,
    sign: int,
    name: str,
    rows: Rows,
    evaluation: Callable[[], Evaluation],
    shared: dict[str, Relation],
) -> Step | None:
    trigger = find_trigger(maintenance, store, name, sign)
    if trigger is None:
        return None
    relation = store.relations[name]
    found, rows = _fire(trigger, store, relation, rows, shared)
    if found < 0:
        return Step(trigger, (), trigger.ways, NO_COSTS) if found == NOTHING else None
    step = Step(trigger, rows, trigger.ways, trigger.costs())
    if trigger.has_reports:
        step.oracle_reports = trigger.oracle_reports()
    if not trigger.recursions:
        if not found:
            return step
        if (ended := trigger.changed_heads(store, found)) is not None:
            step.derived = ended
            return step
        if trigger.alone is not None:
            return _follow_group(store.relations, step, trigger.outputs())
    return _carry_on(maintenance, store, step, trigger.outputs() if found else [], evaluation, relation)


def _carry_on(
    maintenance: Maintenance,
    store: Store,
    step: Step,
    outputs: list[Output],
    evaluation: Callable[[], Evaluation],
    base: Relation,
) -> Step | None:
    """Change the heads of joins, and carry that on to what reads them, by triggers as far as these go, else
    by the general path.  None: not simple.  `base` is the old version of the predicate that was fired."""
    relations, trigger, before, rows = store.relations, step.trigger, base, step.rows
    derived: dict[str, tuple[Relation, Relation, Change]] = {}  # old and new version, net change
    followed: Followed = {}
    done: set[int] = set()
    while True:
        done |= trigger.strata
        changes = _change_heads(maintenance, store, step, outputs, followed, evaluation)
        changes = _change_recursions(store, step, before, changes, trigger, rows)
        if changes is None:
            return None
        changes.update(trigger.own_heads())
        for head, (changed, change) in changes.items():
            derived[head] = relations[head], changed, change
            relations[head] = changed
        checked = [output.use.strategy.name for output in outputs if not output.use.ends]
        read = [
            head
            for head, (_, change) in changes.items()
            if (head in checked or is_read(maintenance, head)) and may_differ(change)
        ]
        if not read:
            break
        fired = None
        if len(read) == 1:
            before = derived[read[0]][0]
            fired = _fire_derived(maintenance, store, step, read[0], *derived[read[0]])
        if fired is None:
            cycle = Cycle(maintenance.program, store, evaluation(), followed={**followed})
            cycle.keep_old(step.trigger.name, base)
            for head, (old, changed, change) in derived.items():
                relations[head] = old
                cycle.publish(head, changed, change)
                relations[head] = changed
            maintain(maintenance, cycle, done=done)
            cycle.drop_versions()
            step.derived = cycle.changes
            return _with_cycle(step, cycle)
        trigger, outputs, rows = fired
    step.derived = {head: change for head, (_, _, change) in derived.items() if may_differ(change)}
    return step


def _fire_derived(
    maintenance: Maintenance,
    store: Store,
    step: Step,
    name: str,
    before: Relation,
    after: Relation,
    change: Change,
) -> tuple[Trigger, list[Output], Words] | None:
    """(A trigger of a derived predicate, what its joins and those of its other sign give, the rows); None:
    the general path takes its change further."""
    signs = [(sign, rows) for sign, rows in ((INSERT, change.inserted), (ERASE, change.erased)) if len(rows)]
    triggers = [find_derived(maintenance, store, step.trigger, name, before, sign) for sign, _ in signs]
    found = [trigger for trigger in triggers if trigger is not None]
    if len(found) < len(signs) or (len(signs) > 1 and found[0].recursions):
        return None
    if after.rows_in(found[0].orders) < 0:  # a plan has added an order since
        return None
    outputs: list[Output] = []
    for trigger, (_, rows) in zip(found, signs, strict=True):
        ready = not trigger.reads_others or trigger.bring_roots(store.relations, store.relations)
        given = trigger.fire_changed(store.arena, before, after, rows) if ready else TOO_LARGE
        if given < 0:
            return None
        outputs += trigger.outputs() if given else []
        for head, operations in trigger.costs_by_name().items():
            step.add_costs(head, trigger.ways[head], operations)
    step.later.append(found[0])
    return found[0], outputs, signs[0][1]


def _change_recursions(
    store: Store, step: Step, before: Relation, changes: ChangedHeads | None, trigger: Trigger, rows: Rows
) -> ChangedHeads | None:
    """The same with recursive strata that read the predicate; None: not simple."""
    for path in trigger.recursions:
        own = None if changes is None else path.follow(store, before, rows)
        if changes is None or own is None:
            trigger.outgrown = trigger.outgrown or path.outgrown
            return None
        changes.update(own)
        step.add_costs(path.strategy.stratum.predicates[0], path.strategy.way, path.operations)
    return changes


def _with_cycle(fired: Step, cycle: Cycle) -> Step:
    """What was fired, and what followed from it on the general path."""
    own, later = fired.oracle_reports, cycle.oracle_reports
    reports = (lambda: [*own(), *later]) if later else own
    ways, costs = {**fired.ways, **cycle.ways}, {**fired.costs(), **cycle.costs}
    step = Step(fired.trigger, fired.rows, ways, costs, fired.derived, reports)
    step.later = fired.later
    return step


def _fire(
    trigger: Trigger, store: Store, relation: Relation, rows: Rows, shared: dict[str, Relation]
) -> tuple[int, Rows]:
    """(What the firing answers, the rows that it changed); the predicate has its new version then.

    The store's relations are another dict than the shared one afterwards, unless nothing has changed.
    """
    relations, name = store.relations, trigger.name
    if trigger.reads_others and not trigger.bring_roots(relations, shared):
        return TOO_LARGE, ()
    found = trigger.fire(store.arena, relation, rows)
    if found < 0:
        return found, ()
    later = trigger.version(relation)
    if len(rows) > 1:
        rows = trigger.changed()
    if not trigger.checks_keys and not _is_function(trigger, later, rows):
        return TOO_LARGE, ()
    if relations is shared:
        relations = store.relations = relations.copy()  # faster than a display
    relations[name] = later
    if trigger.keeps_state:
        trigger.put_state(relations)
    return found, rows


def _pair(
    maintenance: Maintenance, store: Store, one: SignedRows, other: SignedRows
) -> tuple[Trigger, Trigger] | None:
    """The triggers of rows that come and rows that go of one predicate, if both lead to the same groups, and
    these nowhere."""
    if one[1] != other[1] or one[0] == other[0]:
        return None
    first = find_trigger(maintenance, store, one[1], one[0])
    if first is None or first.alone is None:
        return None
    second = find_trigger(maintenance, store, one[1], other[0])
    if second is None or (first.partner is not second and second.alone != first.alone):
        return None
    first.partner = second
    return first, second


def _follow_pair(
    store: Store, pair: tuple[Trigger, Trigger], given: Sequence[Rows], shared: dict[str, Relation]
) -> list[Step] | None:
    """Both steps, and then all groups at once: a window that moves on.  The first step tells the costs of
    both."""
    outputs: list[Output] = []
    changed, operations = [], 0
    for trigger, rows in zip(pair, given, strict=True):
        found, rows = _fire(trigger, store, store.relations[trigger.name], rows, shared)
        if found == TOO_LARGE:
            return None
        changed.append(rows)
        if found != NOTHING:
            operations += trigger.operations
        if found > 0:
            outputs += trigger.outputs()
    (first, second), ways = pair, pair[0].ways
    step = Step(first, changed[0], ways, operations)
    last: Step | None = Step(second, changed[1], NO_WAYS, NO_COSTS)
    if outputs and last is not None:
        last = _follow_group(store.relations, last, outputs)
    return None if last is None else [step, last]


def _follow_group(relations: dict[str, Relation], last: Step, outputs: Sequence[Output]) -> Step | None:
    """The last step with what follows, when all that was found leads to groups, and these nowhere."""
    group = last.trigger.alone
    assert group is not None
    given = _assignments(outputs)
    changed = None if given is None else group.follow(relations, {}, *given)
    if changed is None:
        return None
    relations[group.name], last.derived = changed
    return last


def _assignments(outputs: Sequence[Output]) -> tuple[Assignments, Assignments] | None:
    """What joins gave, as (those that are added, those that are taken away); None: it is not so simple."""
    first = outputs[0].use
    if len(outputs) > 1 and any(output.use.group != first.group for output in outputs):
        return None
    return _joined([o for o in outputs if o.use.sign > 0]), _joined([o for o in outputs if o.use.sign < 0])


def _joined(outputs: Sequence[Output]) -> Assignments:
    """The assignments of several joins: of a self-join, or of a disjunction, where equal ones count once."""
    if not outputs:
        return NONE
    repeats = max(output.use.repeats for output in outputs)
    if len(outputs) == 1 and (outputs[0].n == 1 or not repeats):
        return outputs[0][1:]
    words = np.concatenate([o.words.reshape(-1, o.stride)[:, : o.n] for o in outputs], axis=1)
    if repeats:
        words = words[:, np.unique(words[list(repeats)], axis=1, return_index=True)[1]]
    return words.reshape(-1), words.shape[1], words.shape[1]


def _is_function(trigger: Trigger, later: Relation, rows: Rows) -> bool:
    """Whether no key of these rows has two values."""
    if trigger.functional_keys < 0 or trigger.sign < 0:
        return True
    keys = np.asarray(rows, np.int64)[:, : trigger.functional_keys]
    return bool((look_up(later, keys)[0] == 1).all())


def _change_heads(
    maintenance: Maintenance,
    store: Store,
    step: Step,
    outputs: list[Output],
    followed: Followed,
    evaluation: Callable[[], Evaluation],
) -> ChangedHeads | None:
    """(New version, net change) of the heads of joins that gave rows, counts and sums in their places; None:
    not simple, the relations must be dropped."""
    by_strategy: dict[RuleStrategy, list[Output]] = {}
    for output in outputs:
        by_strategy.setdefault(output.use.strategy, []).append(output)
    changes = {}
    for strategy, own in by_strategy.items():
        changed = None
        if strategy.by_existence:
            cycle = Cycle(maintenance.program, store, evaluation())
            changed = strategy.changed_rows(cycle, ((_rows(o), _signs([o])) for o in own))
            step.add_costs(strategy.name, strategy.way, cycle.operations_of(strategy.stratum))
        elif strategy.ready(store):
            changed = _changed_head(store, strategy, own, followed)
        if changed is None:
            return None
        changes[strategy.name] = changed
    return changes


def _changed_head(
    store: Store, strategy: RuleStrategy, outputs: list[Output], followed: Followed
) -> tuple[Relation, Change] | None:
    relations = store.relations
    first = outputs[0]
    group, sign = first.use.group, first.use.sign
    if group is not None:
        if isinstance(group, OtherGroups):
            n_columns = len(group.outputs)
            tables = [(o.use.sign, [o.column(c).copy() for c in range(n_columns)]) for o in outputs]
            return group.follow_tables(store, followed, tables)
        given = _assignments(outputs)
        changed = None if given is None else group.follow(relations, followed, *given)
        return None if changed is None else (changed[0], changed[1][group.name])
    if any(output.use.repeats for output in outputs):
        rows, signs = _counted_once(outputs)
    else:
        rows, signs = np.concatenate([_rows(output) for output in outputs]), _signs(outputs)
    if isinstance(strategy.head, ChangesHead):
        return relations[strategy.name], strategy.head.net([(rows, signs)])
    counts, head = counts_name(strategy.name), relations[strategy.name]
    if not len(relations[counts]) and strategy.counts_are_one(store):
        if all(output.use.sign == sign for output in outputs):
            return head.apply(inserts=rows) if sign > 0 else head.apply(erases=rows)
        rows, signs = net_rows(rows, signs)
        return head.apply(inserts=rows[signs > 0], erases=rows[signs < 0])
    later, relations[counts], change = apply_counts(head, relations[counts], rows, signs)
    return later, change


def _counted_once(outputs: Sequence[Output]) -> tuple[Words, Words]:
    """Rows of a head that joins gave, with what each counts: rows of a sign that repeat count once."""
    found = []
    for sign in (INSERT, ERASE):
        own = [output for output in outputs if output.use.sign == sign]
        if own:
            rows = np.concatenate([_rows(output) for output in own])
            repeats = any(output.use.repeats for output in own)
            found.append((np.unique(rows, axis=0) if repeats else rows, sign))
    signs = np.repeat([sign for _, sign in found], [len(rows) for rows, _ in found])
    return np.concatenate([rows for rows, _ in found]), signs


def _rows(output: Output) -> Words:
    """Rows of the heads of a join."""
    return np.concatenate([_head_rows(head, output) for head in output.use.heads])


def _head_rows(head: tuple[tuple[bool, int], ...], output: Output) -> Words:
    """Rows of a head; not to be kept."""
    if all(column == (True, place) for place, column in enumerate(head)):  # as the join gives them
        return output.words.reshape(-1, output.stride)[: len(head), : output.n].T
    rows = np.empty((output.n, len(head)), np.int64)
    for c, (is_slot, word) in enumerate(head):
        rows[:, c] = output.column(word) if is_slot else word
    return rows


def _signs(outputs: Sequence[Output]) -> Words:
    """What each row of the heads counts."""
    return np.repeat([o.use.sign for o in outputs], [o.n * len(o.use.heads) for o in outputs])
