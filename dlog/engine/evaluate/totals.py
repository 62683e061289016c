"""Owns recursive sums and counts: the fixpoint of a stratum whose totals grow.

Correct output: the least sets of rows, and the least total for each group, that all rules agree with.  Each
total is the aggregate over the contributions at the end, each counted once.

1 A round derives rows and contributions (`dlog.ir.analysis.contributions`) from what the last one added.
2 Groups with new contributions are added up again, and a greater total replaces the one before.
3 At the end, totals whose contributions are computed from totals are checked: no group may need itself, since
its total would have no bound; and the last values must give all contributions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dlog.column_functions.columns import float_values
from dlog.engine.evaluate.combine import combine_candidates
from dlog.engine.evaluate.evaluate import Evaluation, PlainStratum, Task
from dlog.engine.evaluate.growth import Growth
from dlog.engine.evaluate.total_cycles import Need, check_cycles, wraps
from dlog.engine.head.conflicts import show_row
from dlog.engine.state.store import Store
from dlog.errors import DataError
from dlog.ir.analysis.contributions import Alternative, Contributions, contributions_of
from dlog.ir.rules import Atom, Column, Predicate, Program, Stratum, Var
from dlog.storage.relation.relation import Relation
from dlog.values import FLOAT, Type

FIRST_CHECK = 32  # rounds after which a recursion is examined for groups that need themselves


class TotalStratum(PlainStratum):
    def __init__(self, program: Program, stratum: Stratum, store: Store, evaluation: Evaluation):
        self.totals = {one.total: one for one in contributions_of(program, stratum)}
        self.by_name = {one.name: one for one in self.totals.values()}
        own = [p for one in self.totals.values() for p in (one.predicate, one.touched)]
        predicates = {**program.predicates, **{p.name: p for p in own}}
        rules = [r for r in stratum.rules if r.heads[0].predicate not in self.totals]
        rules += [way.rule for one in self.totals.values() for way in one.alternatives]
        names = (*stratum.predicates, *self.by_name)
        super().__init__(
            replace(program, predicates=predicates),
            replace(stratum, predicates=names, rules=tuple(rules), totals={}),
            store.under({**store.predicates, **{p.name: p for p in own}}),
            evaluation,
        )
        self.adding_up = {
            name: self.task(one.adding_up, one.adding_up.body.forms) for name, one in self.totals.items()
        }
        self.finished_rounds = 0
        self.after_round: Callable[[], None] | None = None

    def run(self) -> None:
        for one in self.totals.values():
            self.refuse_facts(one)
            self.store.clear(one.name)
        try:
            super().run()
            self.check_contributions()
        except DataError:
            self.check_contributions(only_cycles=True)
            raise
        finally:
            for one in self.totals.values():
                for name in (one.name, one.touched.name):
                    self.store.relations.pop(name, None)

    def refuse_facts(self, one: Contributions) -> None:
        """A base fact would be a second value: a total is what its rule adds up."""
        rows = self.store.relations[one.total].rows()
        if len(rows):
            fact = show_row(self.store, self.program.predicates[one.total], rows[0])
            op = one.adding_up.aggregates[0].op
            help = f"add an alternative to the rule: agg<<... = {op}(...)>> (... ; ...)"
            message = f"the recursive {op} {one.total} cannot have base facts: {fact}"
            raise DataError(message, span=one.adding_up.span, help=help)

    def driven(self, tasks: list[Task]) -> bool:
        return False

    def growth(self, name: str, tasks: list[Task]) -> Growth:
        replaced = name in self.totals or (name in self.by_name and self.by_name[name].grow)
        if replaced or name in self.by_name or self.after_round is not None:
            return Growth(self.store.relations[name], read=True, packed=not replaced)
        return super().growth(name, tasks)

    def round(self, tasks: list[Task]) -> dict[str, np.ndarray]:
        added = super().round(tasks)
        for name, one in self.totals.items():
            added[name] = self.add_up(one, added[one.name])
        if self.after_round is not None:
            self.after_round()
        self.finished_rounds += 1
        if self.finished_rounds >= FIRST_CHECK and self.finished_rounds & (self.finished_rounds - 1) == 0:
            self.check_contributions(only_cycles=True)
        return added

    def add(self, name: str, parts: list[np.ndarray]) -> np.ndarray:
        one = self.by_name.get(name)
        if one is None:
            return super().add(name, parts)
        if one.adding_up.aggregates[0].function.adds_up:  # a broken constraint will tell of what is negative
            parts = [rows[self.values(one.predicate, rows) >= 0] for rows in parts]
        return self.raise_to(name, parts) if one.grow else super().add(name, parts)

    def values(self, predicate: Predicate, rows: np.ndarray) -> np.ndarray:
        """The values of functions as numbers with the right sign."""
        type = predicate.columns[-1].type
        if type.kernel == "unsigned":
            return np.zeros(len(rows), np.int64)
        return float_values(rows[:, -1]) if type == FLOAT else rows[:, -1]

    def raise_to(self, name: str, parts: list[np.ndarray]) -> np.ndarray:
        """Replaces values by greater ones of the same key.  Returns what is new."""
        parts = [rows for rows in parts if len(rows)]
        if not parts:
            return np.empty((0, self.program.predicates[name].arity), np.int64)
        better, worse = combine_candidates(self.store, name, np.concatenate(parts), "max")
        change = self.store.relations[name].apply_in_place(inserts=better, erases=worse)
        self.watch.pending(0)
        self.watch.derived(len(better) - len(worse))
        return change.inserted

    # Totals

    def add_up(self, one: Contributions, added: np.ndarray) -> np.ndarray:
        """The totals of the groups that have new contributions."""
        if not len(added):
            return np.empty((0, self.program.predicates[one.total].arity), np.int64)
        return self.raise_to(one.total, [self.totals_of(one, added[:, : one.touched.arity])])

    def totals_of(self, one: Contributions, groups: np.ndarray) -> np.ndarray:
        """The totals of some groups.  O(their contributions)"""
        relation = Relation(self.store.arena, one.touched.arity)
        relation.apply_in_place(inserts=groups)
        self.store.relations[one.touched.name] = relation
        return np.concatenate([rows for _, rows in self.derive(self.adding_up[one.total])])

    # Checks

    def check_contributions(self, only_cycles: bool = False) -> None:
        """Raises if a group needs itself, or if a contribution has lost its value.
        O(the evaluation of the bodies)"""
        needs: list[Need] = []
        for one in self.totals.values():
            if one.grow:
                found = [self.final(one, way) for way in one.alternatives]
                needs += [need for _, own in found for need in own]
                if not only_cycles:
                    self.check_values(one, np.concatenate([rows for rows, _ in found]))
        if needs:
            check_cycles(self.program, self.store, self.totals, needs)
        for one in self.totals.values():
            for way in one.alternatives if not only_cycles else ():
                self.check_arithmetic(one, way)

    def final(self, one: Contributions, way: Alternative) -> tuple[np.ndarray, list[Need]]:
        """The contributions by one alternative as the totals are now, and the groups that they need."""
        (head,), (total,) = way.rule.heads, one.adding_up.heads
        atoms = [(total, atom) for atom in way.needs]
        args = (*head.args, *(a for pair in atoms for atom in pair for a in atom.keys))
        types = [c.type for c in one.predicate.columns]
        types += [t for pair in atoms for a in pair for t in self.key_types(a.predicate)]
        name = self.predicate_of(f"final {one.name}", types)
        rows = self.rows_of(way, Atom(name, args, len(args)))
        needs, place = [], one.predicate.arity
        for pair in atoms:
            ends = []
            for atom in pair:
                ends.append((atom.predicate, rows[:, place : place + atom.n_keys]))
                place += atom.n_keys
            needs.append(Need(*ends))
        return rows[:, : one.predicate.arity], needs

    def key_types(self, name: str) -> list[Type]:
        predicate = self.program.predicates[name]
        return [column.type for column in predicate.columns[: predicate.n_keys]]

    def predicate_of(self, name: str, types: Sequence[Type]) -> str:
        columns = tuple(Column(str(i), type) for i, type in enumerate(types))
        self.store.predicates[name] = Predicate(name, columns, len(columns), auxiliary=True)
        return name

    def rows_of(self, way: Alternative, head: Atom) -> np.ndarray:
        """What an alternative's body derives for another head."""
        rule = replace(way.rule, heads=(head,))
        return np.concatenate([rows for _, rows in self.derive(self.task(rule, rule.body.forms))])

    def check_arithmetic(self, one: Contributions, way: Alternative) -> None:
        """Integers wrap: raises where that happens to a contribution.  Other numbers have no value then."""
        for form in way.arithmetic:
            types = [way.rule.types[a.name] if isinstance(a, Var) else a.type for a in form.inputs]
            name = self.predicate_of(f"operands of {one.name}", [type for type in types if type is not None])
            a, b = self.rows_of(way, Atom(name, form.inputs, 2)).T
            if wraps(form.name, a, b, types[0]):
                raise self.too_large(one)

    def too_large(self, one: Contributions) -> DataError:
        op = one.adding_up.aggregates[0].op
        message = f"a value in the recursive {op} of {one.total} is too large for its type"
        return DataError(message, span=one.adding_up.span)

    def check_values(self, one: Contributions, rows: np.ndarray) -> None:
        """Arithmetic that has left its type gives no value: then a contribution of before has none now."""
        stored = self.store.relations[one.name].rows()
        kept = np.unique(rows[self.values(one.predicate, rows) >= 0], axis=0)
        if len(kept) != len(stored) or (kept != stored).any():
            raise self.too_large(one)
