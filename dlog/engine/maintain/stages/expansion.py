"""Owns finding the derivations that given facts take part in, or that derive them.

An expansion is a rule's body with one atom left out, whose facts are given: changed facts of a stratum
below, facts of the recursion that were born or died, or, for the bound query, the head.  Correct output:
every assignment of the rule's outer variables that satisfies the body and agrees with a given fact, once for
each.

Bodies that are a single join run inside `expand_kernels`; those with column primitives go through tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dlog.engine.body.bodies import ROW, BodyRunner, concatenate, sortable
from dlog.engine.body.default_statistics import GrowingStatistics
from dlog.engine.body.replan import alike
from dlog.engine.body.table import Table, distinct_rows
from dlog.engine.evaluate.evaluate import Evaluation
from dlog.engine.head.heads import head_rows, is_stored
from dlog.engine.state.store import Store
from dlog.heads.stages import expand_kernels as kernels
from dlog.heads.stages.table import CHUNK, NO_IDS, StageTable
from dlog.ir.analysis.projection import outer_variables
from dlog.ir.rules import Atom, Const, Disjunction, Form, Rule, Var
from dlog.jit import DISABLED, Words
from dlog.lftj import opcodes as o
from dlog.lftj.assemble import Assembled, assemble
from dlog.lftj.triejoin import NO_WORDS
from dlog.planning.compile import CompiledJoin, compile_join
from dlog.planning.pipeline import Join, plan_pipeline
from dlog.planning.versions import base_name, is_old
from dlog.storage.index.index import Index
from dlog.storage.relation.relation import Order
from dlog.values import Type

_expand = np.errstate(all="ignore")(kernels.expand) if DISABLED else kernels.expand
_FEW = 16  # up to this many bindings for a given fact, each is looked up in the table rather than in an index


@dataclass
class Recursion:
    """What the expansions of one recursive stratum share."""

    store: Store
    evaluation: Evaluation
    table: StageTable
    numbers: Mapping[str, int]  # of the stratum's predicates in the table
    generation: int = 0  # incremented whenever relations have changed: indices are looked up again
    buffer: Words = field(default_factory=lambda: np.empty(0, np.int64))
    attached: list[Plans] = field(default_factory=list)  # those that may have run, until they are measured

    def index(self, name: str, columns: Sequence[int]) -> Index:
        """An index of a version; an order that only the old version would get goes to the new one, too."""
        if is_old(name):
            self.store.index(base_name(name), columns)
        return self.store.index(name, columns)

    def output(self, columns: int) -> Words:
        """Room for CHUNK derivations of this many columns, and the facts that they go through."""
        if len(self.buffer) < (1 + columns) * CHUNK:
            self.buffer = np.empty((1 + columns) * CHUNK, np.int64)
        return self.buffer


@dataclass(frozen=True)
class Body:
    """A rule with one head, as the recursion sees it: `facts` are the head and the recursive body atoms."""

    rule: Rule
    forms: tuple[Form, ...]
    facts: tuple[Atom, ...]

    @property
    def head(self) -> Atom:
        return self.facts[0]


class Expansion:
    """`given`: the atom whose facts are given, by its first `columns` columns (None: nothing is given).

    `changed` is its place among the recursive body atoms, if it is one.  `repeats`: the forms may give an
    assignment several times.
    """

    def __init__(
        self,
        recursion: Recursion,
        body: Body,
        given: Atom | None,
        forms: Sequence[Form],
        changed: int = -1,
        columns: int | None = None,
        types: Mapping[str, Type] | None = None,
        repeats: bool = False,
    ):
        self.recursion = recursion
        self.body = body
        self.forms = tuple(forms)
        self.changed = changed
        self.rule = body.rule if types is None else replace(body.rule, types=types)
        self.args = () if given is None else given.args
        self.needed = tuple(dict.fromkeys(f.predicate for f in forms if isinstance(f, Atom)))
        self.predicate = "" if given is None else given.predicate
        self.columns = len(self.args) if columns is None else columns
        self.variables = tuple(dict.fromkeys(a.name for a in self.args[: self.columns] if isinstance(a, Var)))
        # Branches of a disjunction can also give the same assignment.
        self.repeats = repeats or any(isinstance(f, Disjunction) for f in forms)
        read = [atom for i, atom in enumerate(body.facts) if i - 1 != changed or changed < 0]
        self.outputs = tuple(dict.fromkeys(a.name for atom in read for a in atom.args if isinstance(a, Var)))
        if self.repeats:
            self.outputs = outer_variables(body.rule)
        self.pipeline = plan_pipeline(
            self.forms, self.outputs, self.rule.types, not self.repeats, self.variables
        )
        self.compiled: CompiledJoin | None = None
        self.in_kernel = (
            not self.repeats
            and len(self.pipeline.operations) == 1
            and isinstance(self.pipeline.operations[0], Join)
            and is_stored(recursion.store, self.rule, body.head)
        )
        self.unchecked = self._without_bound_facts()
        if self.in_kernel:
            self.shape = self._shape(self._operands)
        else:
            self.shape = self._shape(self._after_head)
            evaluation = recursion.evaluation
            self.runner = BodyRunner(recursion.store, self.rule, evaluation.watch, evaluation.measures)
        self.orders: list[tuple[str, Order]] = []
        self.job = np.zeros(kernels.JOB, np.int64)
        self.own_plans = Plans(recursion, [self])

    def _without_bound_facts(self) -> tuple[Form, ...]:
        """The forms without recursive atoms whose variables the others bind: the table, which is searched for
        their stages anyway, shows whether such facts exist."""
        left = list(self.forms)
        for fact in self.body.facts[1:]:
            others = [f for f in left if f is not fact]
            bound = {a.name for f in others if isinstance(f, Atom) for a in f.args if isinstance(a, Var)}
            names = {a.name for a in fact.args if isinstance(a, Var)}
            if others and names <= bound | {*self.variables}:
                left = others
        return tuple(left)

    def run(self, rows: Words, ids: Words, mode: int, step: int) -> None:
        """Apply the derivations with the given facts.  `rows` is (n, k), contiguous; ids: their records."""
        if not len(rows) or self._is_empty():
            return
        if self.in_kernel:
            self._run_kernel(rows, ids, mode, step)
        else:
            found = self.bindings(rows)
            if self.repeats:
                found = distinct(found, self.outputs)
            self.act(found, ids[found.columns[ROW]] if len(ids) else NO_IDS, mode, step)

    def _is_empty(self) -> bool:
        """Whether a relation that every derivation needs is empty."""
        store = self.recursion.store
        return any(store.rows(name) == 0 for name in self.needed)

    # One join

    def _run_kernel(self, rows: Words, ids: Words, mode: int, step: int) -> None:
        shared, table = self.recursion, self.recursion.table
        job, watch, plans = self.job, shared.evaluation.watch, self.own_plans.bring()
        job[:] = 0
        job[kernels.LAST_FACT], job[kernels.LAST_PLAN], job[kernels.CAPACITY] = len(rows), 1, CHUNK
        job[kernels.MODE], job[kernels.NUMBER], job[kernels.SLICE] = mode, step, kernels.OPERATIONS
        if len(ids):
            table.batch(len(ids))[:] = ids
            job[kernels.FROM_BATCH] = 1
        facts = rows.reshape(-1) if rows.size else NO_IDS
        out, ranks = shared.output(max(1, len(self.outputs))), self.own_plans.ranks
        while True:
            arena = shared.store.arena.A
            answer = _expand(arena, ranks, plans, job, facts, table.table, table.records, table.head, out)
            if answer == kernels.FINISHED:
                break
            if answer == kernels.NEEDS_ROOM:
                table.grow()
            watch.check()

    def plan(self) -> None:
        """Make sure there is a plan for the current sizes of the relations."""
        if self.compiled is None or not alike(self._sizes(), self.sizes):
            self._plan()

    def current_roots(self) -> list[int]:
        return [index.root for index in self._current_indices()]

    def _current_indices(self) -> list[Index]:
        """Those that the plan reads, of the versions as they are now: in the orders of the last ones."""
        assert self.compiled is not None
        relations = self.recursion.store.relations
        if self.orders:
            found = [relations[name].find(order) for name, order in self.orders]
            kept = [index for index in found if index is not None]
            if len(kept) == len(found):
                return kept
        indices = [self.recursion.index(use.predicate, use.columns) for use in self.compiled.atoms]
        names = [use.predicate for use in self.compiled.atoms]
        self.orders = [(name, relations[name].order_of(i)) for name, i in zip(names, indices, strict=True)]
        return indices

    def _plan(self) -> None:
        self.orders = []
        self.compiled = self._compiled(self.unchecked)
        if len(self.unchecked) < len(self.forms) and max(self.compiled.key_order.sizes, default=1) > _FEW:
            self.compiled = self._compiled(self.forms)
        self.sizes = self._sizes()
        self.assembled: Assembled = assemble(self.compiled.plan)
        self.parameters = self._parameters(int(self.assembled.initial[o.PC]))

    def _compiled(self, forms: Sequence[Form]) -> CompiledJoin:
        store = self.recursion.store
        given = Atom(self.predicate, tuple(map(Var, self.variables)), len(self.variables))
        return compile_join(
            forms, self.outputs, self.rule.types, store.column_types, GrowingStatistics(store), store.encode,
            bag=True, driver=given,
        )  # fmt: skip

    def _sizes(self) -> list[int]:
        assert self.compiled is not None
        return [self.recursion.store.rows(use.predicate) for use in self.compiled.atoms]

    def _parameters(self, start: int) -> Words:
        """How a given fact is put into the plan's slots: see `expand_kernels`."""
        assert self.compiled is not None
        slots = dict(self.compiled.given)
        out = [start, len(self.args)]
        seen: dict[str, int] = {}
        for column, operand in enumerate(self.args):
            if column >= self.columns:
                out += [kernels.ANY, 0]
            elif isinstance(operand, Const):
                out += self._must_be(operand, column)
            elif operand.name in seen:
                out += [kernels.SAME, seen[operand.name]]
            else:
                seen[operand.name] = column
                out += [kernels.INTO, o.HEADER + slots[operand.name]]
        return np.array(out, np.int64)

    def _must_be(self, const: Const, column: int) -> list[int]:
        store = self.recursion.store
        code = store.encode(const, store.column_types(self.predicate)[column])
        assert code is not None, "checked by `fits`"
        return [kernels.EQUALS, code]

    # Tables

    def bindings(self, rows: Words) -> Table:
        """Assignments of the outputs, with `$row`, the number of the given fact."""
        mask = np.ones(len(rows), bool)
        columns: dict[str, Words] = {}
        store = self.recursion.store
        for c, operand in enumerate(self.args[: self.columns]):
            if isinstance(operand, Const):
                mask &= rows[:, c] == store.encode(operand, store.column_types(self.predicate)[c])
            elif operand.name in columns:
                mask &= rows[:, c] == columns[operand.name]
            else:
                columns[operand.name] = rows[:, c]
        given = Table(len(rows), {**columns, ROW: np.arange(len(rows))}).filter(mask)
        evaluation = self.recursion.evaluation  # of this transaction
        self.runner.watch, self.runner.measures = evaluation.watch, evaluation.measures
        if self.rule.id >= 0:  # not the one for base facts
            self.runner.measure = evaluation.measures.measure(self.rule)
        return self.runner.run(self.pipeline, given)

    def act(self, found: Table, ids: Words, mode: int, step: int) -> None:
        """Apply the derivations of a table of assignments."""
        if not found.n:
            return
        head = head_rows(self.recursion.store, self.body.head, found, self.rule).T
        columns = np.concatenate([head, *(found.columns[v].reshape(1, -1) for v in self._body_variables)])
        self.recursion.table.take(columns, ids, self.shape, mode, step)

    @property
    def _body_variables(self) -> list[str]:
        """Columns that follow the head's: of recursive body atoms that are not given."""
        atoms = [atom for i, atom in enumerate(self.body.facts) if i > 0 and i - 1 != self.changed]
        return list(dict.fromkeys(a.name for atom in atoms for a in atom.args if isinstance(a, Var)))

    # Shapes

    def _shape(self, operands: Callable[[int, Atom], list[tuple[int, int]]]) -> Words:
        facts = []
        for place, atom in enumerate(self.body.facts):
            given = place > 0 and place - 1 == self.changed
            columns = [] if given else operands(place, atom)
            facts.append((self.recursion.numbers[atom.predicate], columns))
        return self.recursion.table.shape(self.changed, facts)

    def _operands(self, place: int, atom: Atom) -> list[tuple[int, int]]:
        return [self._operand(atom, c, self.outputs) for c in range(len(atom.args))]

    def _after_head(self, place: int, atom: Atom) -> list[tuple[int, int]]:
        if place == 0:
            return [(0, c) for c in range(len(atom.args))]
        head = len(self.body.head.args)
        found = [self._operand(atom, c, self._body_variables) for c in range(len(atom.args))]
        return [(constant, word if constant else word + head) for constant, word in found]

    def _operand(self, atom: Atom, column: int, names: Sequence[str]) -> tuple[int, int]:
        operand = atom.args[column]
        if isinstance(operand, Var):
            return 0, list(names).index(operand.name)
        store = self.recursion.store
        code = store.encode(operand, store.column_types(atom.predicate)[column])
        assert code is not None, "checked by `fits`"
        return 1, code


class Plans:
    """Expansions as kernels run them: see `expand_kernels`."""

    def __init__(self, recursion: Recursion, expansions: Sequence[Expansion]):
        self.recursion, self.expansions = recursion, expansions
        self.words: Words = NO_WORDS
        self.ranks: Words = NO_WORDS
        self.states: list[Words] = []
        self.roots: list[Words] = []
        self.counts = [(0, 0)] * len(expansions)  # seeks and nexts of what is no longer attached
        self.assembled: list[Assembled] = []
        self.generation = -1

    def bring(self) -> Words:
        """The plans for the relations as they are now."""
        if self.generation != self.recursion.generation:
            self._count()
            self.recursion.attached.append(self)
            self.prepare()
            for number, expansion in enumerate(self.expansions):
                self.roots[number][:] = expansion.current_roots()
            self.words[kernels.P_READY : kernels.PLAN * len(self.expansions) : kernels.PLAN] = 0
            self.generation = self.recursion.generation
        return self.words

    def prepare(self) -> None:
        """Make sure there are plans for the current sizes of the relations."""
        for expansion in self.expansions:
            expansion.plan()
        assembled = [e.assembled for e in self.expansions]
        if list(map(id, assembled)) != list(map(id, self.assembled)):
            self._lay_out()
            self.assembled = assembled
        uses_ranks = any(e.compiled is not None and e.compiled.uses_ranks for e in self.expansions)
        self.ranks = self.recursion.store.dictionary.rank if uses_ranks else NO_WORDS

    def measure(self) -> list[tuple[Rule, int, int]]:
        """(Rule, seeks, nexts) of the kernel since the last call.  O(expansions)."""
        self._count()
        measured = [(e.rule, *counts) for e, counts in zip(self.expansions, self.counts, strict=True)]
        self.counts = [(0, 0)] * len(self.counts)
        return measured

    def _count(self) -> None:
        """Move the operation counts out of the states."""
        for number, state in enumerate(self.states):
            seeks, nexts = self.counts[number]
            self.counts[number] = seeks + int(state[o.SEEKS]), nexts + int(state[o.NEXTS])
            state[o.SEEKS] = state[o.NEXTS] = 0

    def _lay_out(self) -> None:
        self._count()
        parts: list[Words] = []
        table: list[int] = []
        places: list[list[int]] = []
        at = kernels.PLAN * len(self.expansions)
        for e in self.expansions:
            plan, n_atoms = e.assembled, len(e.assembled.levels) // 2
            state, roots = np.zeros(len(plan.initial), np.int64), np.zeros(n_atoms, np.int64)
            initial = plan.initial[: len(plan.initial) - o.CHUNK]  # without the scratch space
            own = [plan.code, state, e.parameters, e.shape, initial, plan.levels, roots]
            starts = (at + np.cumsum([0, *map(len, own)])).tolist()
            number = self.recursion.numbers.get(e.predicate, -1)
            table += [number, *starts[:-1], len(initial), n_atoms, 0]
            parts, at = [*parts, *own], starts[-1]
            places.append(starts)
        self.words = np.concatenate([np.array(table, np.int64), *parts])
        self.states = [self.words[starts[1] : starts[2]] for starts in places]
        self.roots = [self.words[starts[6] : starts[7]] for starts in places]


class GroupExpansion:
    """Variants that may give the same assignment several times, and count it once (see `planning.deltas`)."""

    def __init__(self, parts: Sequence[Expansion], outer: tuple[str, ...]):
        self.parts = parts
        self.outer = outer

    def run(self, given: Sequence[Words], mode: int, step: int) -> None:
        """`given`: the changed facts of each part."""
        found = [part.bindings(rows) for part, rows in zip(self.parts, given, strict=True) if len(rows)]
        found = [table.only(self.outer) for table in found if table.n]
        if found:
            columns = {v: concatenate([table.columns[v] for table in found]) for v in self.outer}
            total = distinct(Table(sum(table.n for table in found), columns), self.outer)
            self.parts[0].act(total, NO_IDS, mode, step)


def distinct(table: Table, names: tuple[str, ...]) -> Table:
    """One row for each binding of these variables.  O(n log n)."""
    return table.take(distinct_rows([sortable(table.columns[v]) for v in names], table.n))
