"""Owns explanations: how each rule will be evaluated and why, in terms a user understands.  Runs nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from dlog.engine.body.complements import find_complement
from dlog.engine.body.default_statistics import DefaultStatistics
from dlog.engine.body.pushed_filters import SHARE, pushed_filters
from dlog.engine.body.readable import TABLE, Readable
from dlog.engine.body.shared_subjoin_choice import Body, SharedSubjoinChoice
from dlog.engine.evaluate.column_orders import planned_behind
from dlog.engine.evaluate.driven import Driven, driven
from dlog.engine.evaluate.evaluate import as_plain, combines_by_row, delta_variants, shared_bodies
from dlog.engine.explain.orders import explain_orders
from dlog.engine.explain.recursion import explain_recursion
from dlog.engine.head.heads import body_outputs, only_counts, takes_weights
from dlog.engine.head.sequences import sequence_of
from dlog.engine.state.measure import RuleMeasure
from dlog.engine.state.store import Store
from dlog.ir.events import changed_by, installed, waits_for
from dlog.ir.rules import Atom, Form, Program, Rule, Stratum, Var
from dlog.language.printing import format_node
from dlog.planning.compile import CompiledJoin, compile_join, estimate_join
from dlog.planning.decompose import GAIN, SECONDS, WHOLE, decompose
from dlog.planning.key_order import KeyOrder
from dlog.planning.options import ALWAYS, NEVER
from dlog.planning.pipeline import (
    Anti,
    Compute,
    Generate,
    Join,
    Pipeline,
    Test,
    Union,
    bound_behind,
    form_variables,
    in_kernel,
    plan_pipeline,
)
from dlog.planning.sub_joins import PREFIX, WEIGHT, Decomposition
from dlog.planning.versions import base_name, is_change

_ROUNDS = "in rounds: what is new are the members of the smaller of two classes that join"
_LEGEND = (
    "key order: the order in which variables are bound, the one that is expected to visit the fewest values;",
    "  ~ is an estimate from the numbers of rows, of distinct values and of frequent values",
)


def explain(
    program: Program,
    store: Store,
    predicate: str | None = None,
    maintained: Callable[[Stratum], Sequence[str]] = lambda stratum: (),
) -> str:
    """Rule by rule: key order, sizes expected, indices read, and what is computed on columns; in the end, for
    the whole program, the column orders.

    `maintained` explains how a stratum is maintained under transactions.
    """
    lines: list[str] = []
    store = store.under(store.predicates)
    store.inclusions = program.inclusions
    store.subjoin_choice = SharedSubjoinChoice(store, partial(shared_bodies, program, store))
    for number, stratum in enumerate(program.strata, 1):
        rules = [
            r
            for r in (*stratum.rules, *stratum.subsumptions)
            if predicate is None or any(h.predicate == predicate for h in r.heads)
        ]
        if not rules:
            continue
        lines.append(_title(number, stratum))
        classes = program.classes_in(stratum)
        for rule in rules:
            relation = classes.get(rule.heads[0].predicate)
            if rule.numbers:
                found = _sequence(rule)
            else:
                found = _rule(rule, store, stratum) if relation is None else _classes(rule, relation)
            lines += [f"  {line}" for line in found]
        lines += [f"  {line}" for line in _recursion(store, stratum, bool(classes))]
        lines += [f"  {line}" for line in maintained(stratum)]
    if not lines and predicate is not None:
        lines.append(f"{predicate} has no rules: {store.rows(predicate):,} base facts")
    lines += _delta_rules(program, predicate)
    if predicate is None:
        lines += explain_orders(program, store)
    if any("key order" in line for line in lines):
        lines += _LEGEND
    return "\n".join(lines)


def _delta_rules(program: Program, predicate: str | None) -> list[str]:
    """The delta rules that change a predicate, or all, with the events that they wait for."""
    rules = installed(program.source)
    shown = [rule for rule in rules if predicate is None or predicate in changed_by(rule)]
    lines = ["delta rules, before all others in a transaction with their events:"] if shown else []
    for rule in shown:
        where = f"{rule.span.file}:{rule.span.line}: " if rule.span else ""
        lines += [f"  {where}{format_node(rule)}", f"    waits for {', '.join(waits_for(rule))}"]
    return lines


def _title(number: int, stratum: Stratum) -> str:
    names = ", ".join(stratum.predicates)
    how = "recursive, semi-naive: from the rows that are new" if stratum.recursive else "evaluated once"
    if stratum.subsumptions:
        compared = ", ".join(dict.fromkeys(rule.heads[0].predicate for rule in stratum.subsumptions))
        when = "recursive, in rounds, each of which" if stratum.recursive else "evaluated once, which"
        how = f"{when} removes rows of {compared} that another row subsumes"
    elif stratum.combine:
        how = "recursive, " + ", ".join(f"{op} per key of {name}" for name, op in stratum.combine.items())
    elif stratum.totals:
        totals = ", ".join(f"{op} of {name}" for name, op in stratum.totals.items())
        how = f"recursive, in rounds, in which groups with new contributions are added up again: {totals}"
    return f"stratum {number}: {names} ({how})"


def _sequence(rule: Rule) -> Iterator[str]:
    """How numbers are found."""
    where = f"{rule.span.file}:{rule.span.line}: " if rule.span else ""
    sequence = sequence_of(rule)
    yield f"{where}{rule}"
    groups = f"in each group of its first {sequence.n_groups} columns, " if sequence.n_groups > 1 else ""
    groups = "in each group of its first column, " if sequence.n_groups == 1 else groups
    yield f"  a sequence: numbers the rows of {sequence.rows} in order, {groups}from 0"


def _classes(rule: Rule, relation: str) -> Iterator[str]:
    """How the classes of an equivalence relation are found."""
    where = f"{rule.span.file}:{rule.span.line}: " if rule.span else ""
    yield f"{where}{rule}"
    yield f"  the members of {relation}, each with the one that represents its class:"
    yield "  by union-find over its pairs: one row for each member"


def _recursion(store: Store, stratum: Stratum, has_classes: bool) -> Iterator[str]:
    """How the recursive rules of a stratum work together."""
    if not stratum.recursive:
        return
    if has_classes:
        yield _ROUNDS
        return
    items = _driven(store, stratum)
    yield from explain_recursion(items, stratum.predicates, store.options.sorted_runs, bool(stratum.combine))


def _driven(store: Store, stratum: Stratum) -> list[Driven | None]:
    """The variants of recursive rules as driven rules; None stands for one that cannot be."""
    names = set(stratum.predicates)
    items: list[Driven | None] = []
    variants = []
    for own in stratum.rules:
        rule = as_plain(own) if own.heads[0].predicate in stratum.combine else own
        for forms in delta_variants(rule, names):
            items.append(driven(store, rule, forms, RuleMeasure(rule)))
            variants.append(forms)
    in_rounds = bool(stratum.subsumptions or stratum.totals)
    if in_rounds or (stratum.combine and not combines_by_row(store, stratum, variants)):
        return [None]
    return items


def _rule(rule: Rule, store: Store, stratum: Stratum) -> Iterator[str]:
    where = f"{rule.span.file}:{rule.span.line}: " if rule.span else ""
    yield f"{where}{rule}"
    names = set(stratum.predicates) if stratum.recursive or rule.removes else set()
    plain = as_plain(rule) if rule.heads[0].predicate in stratum.combine else rule
    variants = list(delta_variants(plain, names))
    all_forms = [form for forms in variants for form in forms]
    records = any(not in_kernel(f, rule.types) for f in all_forms) and None not in _driven(store, stratum)
    if variants and all(in_kernel(f, rule.types, records=records) for f in all_forms):
        for forms in variants:
            yield from (f"  {line}" for line in _new_row(forms, plain, store))
    else:
        pipeline = plan_pipeline(rule.body.forms, body_outputs(rule), rule.types, bool(rule.aggregates))
        yield from (f"  {line}" for line in _pipeline(pipeline, rule, store, ()))
    if rule.aggregates:
        groups = ", ".join(map(str, rule.groups))
        over = f"for each {groups}" if groups else "over all of them"
        yield f"  then {', '.join(map(str, rule.aggregates))} {over}"


def _new_row(forms: tuple[Form, ...], rule: Rule, store: Store) -> Iterator[str]:
    """What a recursive rule does with a row that is new in one of its atoms."""
    driver = next(f for f in forms if isinstance(f, Atom) and is_change(f.predicate))
    others = [f for f in forms if f is not driver]
    shown = replace(driver, predicate=base_name(driver.predicate))
    atoms = any(isinstance(f, Atom) for f in others)
    yield f"for each new {shown}" + (":" if atoms else ", nothing else is read")
    view = Readable(store, {})
    compiled = compile_join(
        others,
        body_outputs(rule),
        rule.types,
        view.column_types,
        DefaultStatistics(store),
        store.encode,
        driver=driver,
        shape=store.dictionary.records.shape,
    )
    yield from (f"  {line}" for line in (*_order(compiled.key_order), *_atoms(compiled, store)))


def _pipeline(pipeline: Pipeline, rule: Rule, store: Store, bound: tuple[str, ...]) -> Iterator[str]:
    for pushed in () if bound else pushed_filters(pipeline, store):
        tests = ", ".join(str(test.primitive) for test in pushed.tests)
        yield f"first {tests}, on the values of {pushed.atom} alone: the join reads those that pass"
        yield f"  unless more than {SHARE:.0%} of them do"
        bound = pushed.values.outputs
    for operation in pipeline.operations:
        match operation:
            case Join():
                if operation.forms:
                    yield from _join(operation, rule, store, bound)
            case Compute() | Test() | Generate():
                yield f"on columns: {operation.primitive}"
            case Anti():
                yield "rows without a match in"
                yield from (f"  {line}" for line in _pipeline(operation.body, rule, store, bound))
            case Union():
                yield "rows of any of"
                for branch in operation.branches:
                    yield from (f"  {line}" for line in _pipeline(branch, rule, store, bound))
        bound = bound_behind(operation, bound)


def _join(join: Join, rule: Rule, store: Store, bound: tuple[str, ...]) -> Iterator[str]:
    sparse = None if bound else find_complement(join)
    if sparse is not None and sparse.is_sparse(store):
        rows = _round(store.rows(sparse.whole.predicate) - store.rows(sparse.part.predicate))
        yield f"{sparse}: counts are compared, as {sparse.part.predicate} is a subset; {rows} rows expected"
        join = sparse.rest
        bound = tuple(v.name for v in sparse.whole.args if isinstance(v, Var))
        if not join.forms:
            return
    if not bound and sum(isinstance(f, Atom) for f in join.forms) > 1:
        body = _body(join, rule, store)
        joint = store.subjoin_choice.joint_plan(body, body.plan(store, ()))
        if joint is not None:
            yield from _parts(joint)
            yield "  parts shared with other rules are computed once for all: alone they would not pay"
            return
        considered = _considered(body, store)
        if considered is not None and _is_taken(considered, store):
            yield from _parts(considered)
            return
        yield from _undivided(join, rule, store, bound)
        yield from _not_taken(considered)
    else:
        yield from _undivided(join, rule, store, bound)


def _undivided(join: Join, rule: Rule, store: Store, bound: tuple[str, ...]) -> Iterator[str]:
    compiled = planned_behind(join, join.forms, rule, store, bound)
    yield from _order(compiled.key_order)
    yield from _atoms(compiled, store)
    if compiled.cross_products:
        parts = " and ".join(", ".join(part) for part in compiled.cross_products)
        yield f"cross product: {parts} share no variable"


def _order(order: KeyOrder) -> Iterator[str]:
    if order.variables:
        steps = [f"{v} (~{_round(s)})" for v, s in zip(order.variables, order.sizes, strict=True)]
        yield f"key order [{', '.join(order.variables)}]: bindings expected after each: {', '.join(steps)}"


# Joins in parts


def _body(join: Join, rule: Rule, store: Store) -> Body:
    """The join of a rule as its planner sees it."""
    count = bool(rule.aggregates) and only_counts(rule)
    options = store.options
    if join.bag and not takes_weights(rule):
        options = replace(options, sub_joins=NEVER)
    return Body(join.forms, () if count else join.outputs, join.bag, count, options)


def _considered(body: Body, store: Store) -> Decomposition | None:
    """The best plan in parts, even if it is not worth it; None if it is not searched for."""
    return decompose(
        body.forms, body.outputs, body.bag, DefaultStatistics(store), estimate_join, body.options,
        count=body.count, gain=float("inf"),
    )  # fmt: skip


def _is_taken(d: Decomposition, store: Store) -> bool:
    forced = ALWAYS in (store.options.semijoins, store.options.sub_joins)
    return forced or d.cost <= GAIN * dict(d.rejected)[WHOLE]


def _parts(d: Decomposition) -> Iterator[str]:
    whole = dict(d.rejected)[WHOLE]
    yield f"in parts, estimated at {_seconds(d.cost)}; {WHOLE} would take {_seconds(whole)}:"
    for s in d.sub_joins:
        name = _shown(s.name)
        yield f"  {name}({', '.join(s.outputs)}), ~{_round(s.rows)} rows: {_forms(s.forms)}"
        if s.reduces:
            yield f"    a semijoin: only {' and '.join(s.outputs)} that can match are examined later"
        else:
            gone = sorted({v for f in s.forms for v in form_variables(f) if v[0] != "$"} - set(s.outputs))
            counting = "; rows are counted" if s.weighted else ""
            yield (
                f"    {', '.join(gone)} no longer needed{counting}"
                if gone
                else "    a filter: only these rows are examined later"
            )
        if d.chunk is None:
            yield f"    key order [{', '.join(s.order)}]"
    counted = [_shown(s.name) for s in d.sub_joins if s.weighted]
    yield f"  then {_forms(d.joined())}"
    if counted:
        yield f"    where a row counts as often as its rows of {' and '.join(counted)} together"
    if d.chunk is None and not d.probes:
        yield f"    key order [{', '.join(d.key_order)}]"
    for probe in d.probes:
        yield f"    and probe {_shown(probe.predicate)}, a hash table, for each row"
    if d.chunk is not None:
        yield f"  range by range of {d.chunk}, first in every key order, so that parts stay small"
    for text, cost in d.rejected[1:]:
        yield f"  rejected, as it would take {_seconds(cost)}: {text}"


def _not_taken(considered: Decomposition | None) -> Iterator[str]:
    if considered is None:
        yield "in one join: it is expected to be quick"
        return
    whole = dict(considered.rejected)[WHOLE]
    first = ", ".join(f"{{{', '.join(s.outputs)}}}" for s in considered.sub_joins)
    near = ", too little less to be worth it" if considered.cost < whole else ""
    yield (
        f"in one join, estimated at {_seconds(whole)}: "
        f"with parts over {first} it would take {_seconds(considered.cost)}{near}"
    )


def _forms(forms: Sequence[Form]) -> str:
    return ", ".join(_shown(str(f)) for f in forms)


def _shown(text: str) -> str:
    """Readable names for generated ones."""
    text = re.sub(rf"(\w*)\[([^]]*)\] = {re.escape(WEIGHT)}\d*", r"\1(\2)", text.replace(PREFIX, "part"))
    return text.replace(WEIGHT, "count")


def _seconds(cost: float) -> str:
    seconds = cost * SECONDS
    return f"{_round(seconds)} s" if seconds >= 1 else f"{_round(seconds * 1e3)} ms"


def _atoms(compiled: CompiledJoin, store: Store) -> Iterator[str]:
    for use, atom in zip(compiled.atoms, compiled.read, strict=True):
        if use.predicate == TABLE:
            continue
        names = [store.predicates[use.predicate].columns[c].name for c in use.columns]
        by = f"by {', '.join(names)}" if names else "for any row"
        yield f"reads {atom} {by} ({_now(store.rows(use.predicate))})"


def _now(rows: int) -> str:
    return f"{rows:,} row{'' if rows == 1 else 's'} now" if rows else "none yet"


def _round(size: float) -> str:
    return f"{size:.2g}" if size < 10 else f"{size:,.0f}"
