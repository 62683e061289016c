"""Owns the export to M3: the query of an SQL file, or of an aggregation rule of a program, as an M3 program.

Reads no data: the program's files are only named.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dlog.errors import DlogError, UnsupportedError, did_you_mean
from dlog.io import InputOptions
from dlog.io.options import TEXT
from dlog.ir import rules as ir
from dlog.ir.check import load_program
from dlog.ir.lower.aggregates import used_by
from dlog.ir.lower.quantify import with_heads
from dlog.language.source import read_source
from dlog.m3.consumers.consumers import CONSUMERS, Consumer, consumer_named, fitted
from dlog.m3.syntax import ast
from dlog.m3.syntax.parse import parse
from dlog.m3.syntax.print import print_program
from dlog.m3.types.typecheck import check
from dlog.views.compound import compound
from dlog.views.m3.program import NONE, ONCE, Style, Writer
from dlog.views.m3.results import ResultWriter
from dlog.views.nested import NestedQuery
from dlog.views.orders.dtree import read_dtree
from dlog.views.orders.orders import find_order
from dlog.views.query import Query
from dlog.views.regression import ring_of_sums
from dlog.views.rules.nested import nested_query
from dlog.views.rules.query import query_of
from dlog.views.rules.sources import LEVELS, VIEW_TREES, Describe, aggregation_rules, source_of
from dlog.views.tree.build import NEEDED, PATHS, view_tree
from dlog.views.tree.tree import ViewTree


def read_query(path: str | Path, predicate: str | None = None, facts: str | Path | None = None) -> Query:
    """The query of a file that a view tree maintains."""
    query = read_any(path, predicate, facts)
    if isinstance(query, NestedQuery):
        raise UnsupportedError(f"the query has no view tree: {query.reason}", span=query.span)
    return query


def read_any(
    path: str | Path, predicate: str | None = None, facts: str | Path | None = None, levels: bool = False
) -> Query | NestedQuery:
    """The query of a file: the SELECT of an SQL file, or the rule with aggregates of a program; of several,
    the one that derives `predicate`.  Files of `.input` are searched for in `facts`.  `levels`: the query
    is for levels of maps, in a program that of any derived predicate.
    """
    is_sql = Path(path).suffix.lower() == ".sql"
    if is_sql and predicate is not None:
        raise DlogError(f"{path} is one query: {predicate} is only for programs", help="leave it out")
    if is_sql:
        from dlog.views.sql.files import read_sql

        return read_sql(path, levels)
    _, program = load_program(read_source(path))
    query = (levels_query if levels else program_query)(program, path, predicate, facts)
    query.check()
    return query


def read_tree(query: Query, dtree: str | Path | None = None, optimise: bool = True) -> ViewTree:
    """The view tree along the order of a dtree file, or along one that is chosen."""
    order = find_order(query) if dtree is None else read_dtree(dtree, query)
    return view_tree(query, order, optimise, NEEDED if optimise else PATHS)


@dataclass(frozen=True)
class Target:
    """Which program reads the M3, whether triggers are for batches, whether it is optimised, and whether all
    aggregates are one element of a ring.
    """

    consumer: Consumer = CONSUMERS["dbtoaster"]
    batch: bool = False
    optimise: bool = True
    one_payload: bool = False

    @property
    def has_rings(self) -> bool:
        """Whether a cofactor is one element of a ring, as F-IVM reads it, instead of its sums."""
        return self.consumer.name == "fivm"


def target(
    consumer: str | None = None, batch: bool | None = None, optimise: bool = True, one_payload: bool = False
) -> Target:
    """By the consumer's name.  Without one, batches are for F-IVM and single rows for DBToaster's compiler;
    without `batch`, triggers are for single rows if the consumer runs these.

    >>> [(target(*given).consumer.name, target(*given).batch) for given in ((), (None, True), ("fivm",))]
    [('dbtoaster', False), ('fivm', True), ('fivm', True)]
    """
    found = consumer_named(consumer or ("fivm" if batch else "dbtoaster"))
    in_batches = not found.rows if batch is None else batch
    found.require_triggers(in_batches)
    return Target(found, in_batches, optimise, one_payload)


def export(
    path: str | Path,
    predicate: str | None = None,
    dtree: str | Path | None = None,
    consumer: str | None = None,
    batch: bool | None = None,
    optimise: bool = True,
    facts: str | Path | None = None,
    one_payload: bool = False,
) -> str:
    """The M3 text of a file's query, checked.  Unless optimised, every view and every change is a map."""
    return exported(path, predicate, dtree, target(consumer, batch, optimise, one_payload), facts)[2]


class Observer(Protocol):
    """Is given what each stage of an export made, as soon as it is made."""

    def read(self, query: Query) -> None: ...
    def ordered(self, query: Query, tree: ViewTree) -> None: ...
    def written(self, writer: Writer, program: ast.Program) -> None: ...
    def adapted(self, program: ast.Program, text: str) -> None: ...


def exported(
    path: str | Path,
    predicate: str | None,
    dtree: str | Path | None,
    to: Target,
    facts: str | Path | None,
    observer: Observer | None = None,
) -> tuple[Query, ViewTree, str]:
    """The same with the query and its tree."""
    query = read_query(path, predicate, facts)
    if to.one_payload:
        query = compound(query, None if dtree is None else read_dtree(dtree, query)).query
    elif to.has_rings:
        query = ring_of_sums(query, None if dtree is None else read_dtree(dtree, query))
    if observer is not None:
        observer.read(query)
    tree = read_tree(query, dtree, to.optimise)
    if observer is not None:
        observer.ordered(query, tree)
    return query, tree, consumer_text(query, tree, to, observer)


def consumer_text(query: Query, tree: ViewTree, to: Target, observer: Observer | None = None) -> str:
    """The text of the M3 program that maintains a view tree, as a consumer reads it; read back and checked
    before it is returned.
    """
    style = Style(ast.DBTOASTER, to.batch, ONCE if to.optimise else NONE)
    writer = (ResultWriter if to.consumer.in_cpp else Writer)(query, tree, style)
    program = writer.program()
    check(program)
    if observer is not None:
        observer.written(writer, program)
    adapted = fitted(program, to.consumer)
    text = checked_text(adapted)
    if observer is not None:
        observer.adapted(adapted, text)
    return text


def checked_text(program: ast.Program) -> str:
    """The text of a program, read back and checked."""
    text = print_program(program)
    check(parse(text, dialect=program.dialect))
    return text


def program_query(
    program: ir.Program, path: str | Path, predicate: str | None, facts: str | Path | None
) -> Query:
    known = sorted(_shown_heads(program))
    found = [r for r in aggregation_rules(program, predicate) if any(h.predicate in known for h in r.heads)]
    if not found and predicate is not None:
        message = f"no rule of {path} with aggregates derives {predicate}"
        raise DlogError(message, help=_help_for_levels(program, predicate) or did_you_mean(predicate, known))
    if not found:
        raise DlogError(f"{path} has no rule with aggregates")
    if len(found) > 1:
        message = f"{path} has several rules with aggregates"
        raise DlogError(message, help=f"name the predicate: {', '.join(known)}")
    (rule,) = found
    derived = {head.predicate for rule in program.rules for head in rule.heads}

    def describe(name: str) -> ast.Source:
        if name in derived:
            message = f"{name} is derived by rules: an M3 program has base relations only"
            place = next((atom.span for atom, _ in rule.body.atoms() if atom.predicate == name), None)
            raise UnsupportedError(message, span=place or rule.span)
        return _described(program, name, Path(path).parent, facts)

    try:
        return _tree_query(program, rule, predicate, describe)
    except UnsupportedError as error:
        if error.help is None and _has_levels(program, rule.heads[0].predicate):
            error.help = "--levels maintains it by levels of maps"
        raise


def _tree_query(program: ir.Program, rule: ir.Rule, predicate: str | None, describe: Describe) -> Query:
    """With all aggregates of the rule, if a view tree can maintain them."""
    for head in rule.heads:
        if head.predicate in program.stratum_of and program.stratum_of[head.predicate].subsumptions:
            raise UnsupportedError(
                f"{head.predicate} has a subsumption: view trees have none", span=rule.span
            )
    try:
        return query_of(rule, program.predicates, describe)
    except UnsupportedError:
        heads = tuple(h for h in rule.heads if h.predicate == predicate)
        if len(heads) == len(rule.heads) or not heads:
            raise
        own = with_heads(rule, heads, used_by(heads, rule.aggregates))
        return query_of(own, program.predicates, describe)


def _shown_heads(program: ir.Program) -> set[str]:
    """What rules with aggregates derive, but for inline aggregates."""
    heads = {head.predicate for rule in aggregation_rules(program) for head in rule.heads}
    return {name for name in heads if not program.predicates[name].auxiliary}


def _has_levels(program: ir.Program, predicate: str) -> bool:
    try:
        nested_query(program, predicate)
    except UnsupportedError:
        return False
    return True


def _help_for_levels(program: ir.Program, predicate: str) -> str | None:
    derives = predicate in program.stratum_of and not program.predicates[predicate].auxiliary
    return "--levels maintains what any rules derive" if derives else None


def levels_query(
    program: ir.Program, path: str | Path, predicate: str | None, facts: str | Path | None
) -> NestedQuery:
    """What rules derive for a predicate; without a name, for the only one that no other rule reads."""
    derived = {name for name in program.stratum_of if not program.predicates[name].auxiliary}
    if predicate is not None and predicate not in derived:
        message = f"no rule of {path} derives {predicate}"
        raise DlogError(message, help=did_you_mean(predicate, sorted(derived)))
    if predicate is None:
        predicate = _only_result(program, path, derived)

    def describe(name: str) -> ast.Source:
        return _described(program, name, Path(path).parent, facts, LEVELS)

    return nested_query(program, predicate, describe)


def _only_result(program: ir.Program, path: str | Path, derived: set[str]) -> str:
    read = {name for rule in program.rules for name in rule.body.predicates()}
    heads = [{h.predicate for h in rule.heads} for rule in program.rules]
    results = [names for names in heads if names <= derived and not names & read]
    if not results:
        raise DlogError(f"{path} has no rule")
    if len({frozenset(names) for names in results}) > 1:
        known = ", ".join(sorted(set().union(*results)))
        raise DlogError(f"{path} has several results", help=f"name the predicate: {known}")
    return min(results[0])


def _described(
    program: ir.Program, name: str, folder: Path, facts: str | Path | None, reader: str = VIEW_TREES
) -> ast.Source:
    """A predicate with its `.input` file, and whether `.table` says that it does not change."""
    of = {d.kind: d for d in program.directives if d.predicate == name}
    kind = ast.TABLE if "table" in of else ast.STREAM
    directive = of.get("input")
    if directive is None:
        return source_of(program.predicates[name], kind, reader=reader)
    given = {p.name: p.value for p in directive.params}
    options = InputOptions.from_params(name, given, facts or folder)
    if options.path is None or options.format != TEXT or options.columns is not None or options.header:
        message = f"M3 reads delimited files without a header: not the input of {name}"
        raise UnsupportedError(message, span=directive.span)
    file = os.path.relpath(options.path, folder)
    delimiter = (("delimiter", options.delimiter.replace("\t", "\\t")),)
    return source_of(program.predicates[name], kind, file=file, options=delimiter, reader=reader)
