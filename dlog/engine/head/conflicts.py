"""Owns errors in the data: two values for one key of a function, or a broken constraint.

The messages say why: a derivation of each of the two values, the facts that break a constraint.
"""

from __future__ import annotations

import numpy as np

from dlog.engine.body.bodies import BodyRunner
from dlog.engine.commit.printed_facts import literal_text
from dlog.engine.head.heads import aggregate_rule, body_outputs, head_rows
from dlog.engine.state.limits import Watch
from dlog.engine.state.measure import Measures
from dlog.engine.state.store import Store
from dlog.errors import ConstraintError
from dlog.ir.analysis.projection import stored_as
from dlog.ir.lower.equivalence import as_written
from dlog.ir.rules import Atom, Conj, Const, Form, Negation, Operand, Predicate, Primitive, Program, Rule, Var
from dlog.ir.types.typecheck import quote
from dlog.lftj.assemble import assemble
from dlog.lftj.plan import Compare, Count, Leap, Plan, Step
from dlog.lftj.triejoin import Join
from dlog.planning.pipeline import plan_pipeline
from dlog.storage.index.index import Index
from dlog.storage.relation.relation import Relation
from dlog.storage.values import decode_value
from dlog.values import Type

_SHOWN = 5
GOAL = "$goal"


def check_function(program: Program, store: Store, name: str) -> None:
    """Raises ConstraintError when a key has two values.  O(n)."""
    rows = store.relations[name].rows()
    n_keys = program.predicates[name].n_keys
    if len(rows) < 2:
        return
    same = (rows[1:, :n_keys] == rows[:-1, :n_keys]).all(axis=1)
    if not same.any():
        return
    first = int(np.flatnonzero(same)[0])
    facts = [show_row(store, program.predicates[name], rows[i]) for i in (first, first + 1)]
    reasons = [f"{f}  {derivation(program, store, name, rows[first + i])}" for i, f in enumerate(facts)]
    others = int(same.sum()) - 1
    more = f" (and {others:,} more conflict{'s'[: others != 1]})" if others else ""
    raise ConstraintError(
        f"two values for one key of {name}{more}:\n  " + "\n  ".join(reasons),
        span=program.predicates[name].span,
    )


def check_new_values(program: Program, store: Store, name: str, inserted: np.ndarray) -> None:
    """Like `check_function`, when all but the inserted rows are known to agree.  O(inserted log n)."""
    n_keys = program.predicates[name].n_keys
    relation = store.relations[name]
    if not len(inserted) or len(relation) < 2:
        return
    new = Index.build(store.arena, inserted, n_keys + 1)
    keys: list[Step] = [Leap(c, ((0, c), (1, c))) for c in range(n_keys)]
    values = (Leap(n_keys, ((0, n_keys),)), Leap(n_keys + 1, ((1, n_keys),)))
    differ = Compare("!=", n_keys, n_keys + 1)
    plan = Plan((n_keys + 1, n_keys + 1), (*keys, *values, differ, Count()))
    stored = store.index(name, tuple(range(n_keys + 1)))
    if Join(assemble(plan), store.arena.A, (new.root, stored.root)).count():
        check_function(program, store, name)


def check_constraints(program: Program, store: Store) -> None:
    """Raises ConstraintError for the first constraint that has violations, with the facts that break it."""
    program = program.written or program  # messages show the user's conditions
    for constraint in program.constraints:
        rows = store.relations[constraint.violations].rows()
        if not len(rows):
            continue
        rule = program.rules_of(constraint.violations)[0]
        facts = dict.fromkeys(_violation(program, store, rule, row) for row in rows[:_SHOWN])
        lines = [f"constraint broken: {constraint.text}", *filter(None, facts)]
        lines += [f"and {len(rows) - _SHOWN:,} more"] if len(rows) > _SHOWN else []
        raise ConstraintError("\n  ".join(lines), span=constraint.span)


def _violation(program: Program, store: Store, rule: Rule, row: np.ndarray) -> str:
    """The facts of a constraint's left side for one violation, and what they lack."""
    names = [a.name for a in rule.heads[0].args if isinstance(a, Var)]
    binding = dict(zip(names, row.tolist(), strict=True))
    atoms = as_written(f for f in rule.body.forms if isinstance(f, Atom))
    whole = (
        _one_binding(program, store, rule, rule.heads[0], row) or {}
    ) | binding  # including the values of `_`
    shown = [_show_atom(store, program.predicates[a.predicate], a, whole) for a in atoms]
    facts = ", ".join(shown) or ", ".join(
        f"{n} = {_show(store, rule.types[n], c)}" for n, c in binding.items()
    )
    failed = [_show_part(program, store, part, binding) for part in _failed(program, store, rule, row)]
    lacking = f"not {' and not '.join(failed)}" if any(failed) else ""
    return ", but ".join(filter(None, (facts, lacking)))


def _failed(program: Program, store: Store, rule: Rule, row: np.ndarray) -> list[list[Form]]:
    """The parts of a constraint's right side that do not hold for a violation.

    Conditions that share a variable not on the left side are one part: they must hold together.
    """
    right = rule.body.forms[-1] if rule.body.forms else None
    if not isinstance(right, Negation) or not _is_right_side(right, rule):
        return []
    known = {a.name for a in rule.heads[0].args if isinstance(a, Var)}
    parts: list[tuple[set[str], list[Form]]] = []
    for form in right.body.forms:
        own = Conj((), (form,)).variables() - known
        joined = [part for part in parts if part[0] & own]
        parts = [part for part in parts if part not in joined]
        forms = [f for _, part in joined for f in part] + [form]
        parts.append((own.union(*(names for names, _ in joined)), forms))
    if len(parts) == 1:
        return [parts[0][1]]
    return [part for _, part in parts if not _holds(program, store, rule, row, part)]


def _is_right_side(negation: Negation, rule: Rule) -> bool:
    """A position that is not on the left side if the right one is `false`: only the end follows."""
    if negation.span is None or rule.span is None:
        return False
    return "->" not in rule.span.source.text[negation.span.end : rule.span.end]


def _holds(program: Program, store: Store, rule: Rule, row: np.ndarray, forms: list[Form]) -> bool:
    head = rule.heads[0]
    names = tuple(a.name for a in head.args if isinstance(a, Var))
    return _bound_by(program, store, rule, head, row, tuple(forms), names) is not None


def _show_part(program: Program, store: Store, part: list[Form], binding: dict[str, int]) -> str:
    """One atom with its values; anything else as it was written."""
    form = part[0]
    if _only_one_atom(part) and isinstance(form, Atom) and not program.predicates[form.predicate].auxiliary:
        return _show_atom(store, program.predicates[form.predicate], form, binding)
    spans = [f.span for f in part if f.span is not None]
    if not spans:
        return ""
    whole = min(spans, key=lambda s: s.start).to(max(spans, key=lambda s: s.end))
    return quote(whole.text())


def _only_one_atom(part: list[Form]) -> bool:
    """An atom, and perhaps other names for its values that nothing else reads, as for exact decimals."""
    names = [name for form in part for name in Conj((), (form,)).variables()]
    return all(
        isinstance(form, Primitive)
        and form.name == "eq"
        and any(isinstance(a, Var) and names.count(a.name) == 1 for a in form.args)
        for form in part[1:]
    )


def derivation(program: Program, store: Store, name: str, row: np.ndarray) -> str:
    """Why a row holds, as text: the rule and the facts that derive it, or that it is a base fact."""
    for rule in program.rules_of(name):
        head = next(h for h in rule.heads if h.predicate == name)
        where = f"{rule.span.file}:{rule.span.line}" if rule.span else "a rule"
        if rule.aggregates:
            if _aggregates_to(store, rule, head, row):
                return f"from the aggregation at {where}"
            continue
        binding = _one_binding(program, store, rule, head, row)
        if binding is not None:
            atoms = as_written(f for f in rule.body.forms if isinstance(f, Atom))
            facts = ", ".join(_show_atom(store, program.predicates[a.predicate], a, binding) for a in atoms)
            return f"from {facts or 'nothing'} by the rule at {where}"
    return "as a fact"


def _one_binding(
    program: Program, store: Store, rule: Rule, head: Atom, row: np.ndarray
) -> dict[str, int] | None:
    """Codes of the body's variables for one derivation of a head row."""
    names = tuple(v for v in rule.types if any(v == o.name for o in _top_variables(rule)))
    if _is_rounded(program, rule, head):
        return _one_rounded(program, store, rule, head, row, names)
    return _bound_by(program, store, rule, head, row, rule.body.forms, names)


def _is_rounded(program: Program, rule: Rule, head: Atom) -> bool:
    """Whether a head has decimals with other digits than its rule: its rows do not join with the body."""
    columns = program.predicates[head.predicate].columns
    pairs = zip(head.args, columns, strict=True)
    return any(isinstance(a, Var) and not stored_as(rule, a, c.type) for a, c in pairs)


def _one_rounded(
    program: Program, store: Store, rule: Rule, head: Atom, row: np.ndarray, names: tuple[str, ...]
) -> dict[str, int] | None:
    """Like `_one_binding`, by comparing the head's row for each binding.  Runs the whole body."""
    heads = (a.name for a in head.args if isinstance(a, Var))
    outputs = tuple(dict.fromkeys((*names, *heads)))
    pipeline = plan_pipeline(rule.body.forms, outputs, rule.types, False)
    table = BodyRunner(store, rule, Watch(), Measures()).run(pipeline)
    found = np.flatnonzero((head_rows(store, head, table, rule) == row).all(axis=1))
    if not len(found):
        return None
    return {n: int(table.columns[n][found[0]]) for n in names if not table.is_wide(n)}


def _bound_by(
    program: Program,
    store: Store,
    rule: Rule,
    head: Atom,
    row: np.ndarray,
    forms: tuple[Form, ...],
    names: tuple[str, ...],
) -> dict[str, int] | None:
    """Codes of variables for which the forms hold together with a head row; None when there are none."""
    view = store.snapshot()  # a separate one: goals differ in their columns
    view.predicates[GOAL] = program.predicates[head.predicate]
    view.relations[GOAL] = Relation.build(view.arena, row.reshape(1, -1), len(row))
    goal = Atom(GOAL, head.args, len(head.args))
    pipeline = plan_pipeline((goal, *forms), names, rule.types, False)
    table = BodyRunner(view, rule, Watch(), Measures()).run(pipeline)
    if table.n == 0:
        return None
    return {n: int(table.columns[n][0]) for n in names if not table.is_wide(n)}


def _top_variables(rule: Rule) -> list[Var]:
    return [a for f in rule.body.forms if isinstance(f, Atom) for a in f.args if isinstance(a, Var)]


def _aggregates_to(store: Store, rule: Rule, head: Atom, row: np.ndarray) -> bool:
    """Whether an aggregation derives a row: a base fact may have the same key.  Runs its whole body."""
    pipeline = plan_pipeline(rule.body.forms, body_outputs(rule), rule.types, True)
    table = aggregate_rule(BodyRunner(store, rule, Watch(), Measures()), rule, pipeline)
    return bool((head_rows(store, head, table, rule) == row).all(axis=1).any())


def show_row(store: Store, predicate: Predicate, row: np.ndarray) -> str:
    values = [_show(store, c.type, code) for c, code in zip(predicate.columns, row.tolist(), strict=True)]
    return predicate.show(tuple(values))


def _show_atom(store: Store, predicate: Predicate, atom: Atom, binding: dict[str, int]) -> str:
    values = []
    for operand, column in zip(atom.args, predicate.columns, strict=True):
        values.append(_show_operand(store, operand, column.type, binding))
    return predicate.show(tuple(values))


def _show_operand(store: Store, operand: Operand, type: Type, binding: dict[str, int]) -> str:
    if isinstance(operand, Const):
        return str(operand)
    return _show(store, type, binding[operand.name]) if operand.name in binding else "_"


def _show(store: Store, type: Type, code: int) -> str:
    """A value as it is written in a program."""
    return literal_text(decode_value(code, type, store.dictionary), type)
