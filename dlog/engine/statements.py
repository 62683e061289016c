"""Owns the meaning of statements for a live database: which change facts, and which change the program.

The program of a live database has no facts, since transactions change them: if types followed
from facts, there are declarations instead (`settled`).  So types never change while the database is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dlog.engine.loading import read_input, report_rejected
from dlog.engine.maintain.strategies import PRAGMA
from dlog.errors import DataError, SourceError, did_you_mean
from dlog.ir.check import check_program, events_with
from dlog.ir.declared import declaration, types_of
from dlog.ir.goals.materialize import DIRECTIVE
from dlog.ir.rules import Predicate, Program
from dlog.language import ast
from dlog.language.parse import parse

if TYPE_CHECKING:
    from dlog.engine.database import Database
    from dlog.engine.view import View

Literals = list[tuple[tuple[str, "int | str | bool"], ...]]
_FACTS = (ast.Facts, ast.DeltaStatement)
REMOVABLE = (ast.Rule, ast.Constraint, ast.DeltaRule, ast.SequenceRule)


@dataclass
class Extension:
    """What statements add to a database: a program, changes of facts in order, files' rows, queries, and
    delta rules that run once."""

    tree: ast.Program
    program: Program
    facts: list[tuple[str, str, Literals]] = field(default_factory=list)
    tables: list[tuple[str, Any]] = field(default_factory=list)
    queries: list[ast.Query] = field(default_factory=list)
    once: list[ast.DeltaRule] = field(default_factory=list)


def settled(tree: ast.Program, program: Program) -> ast.Program:
    """A checked program without its facts, every predicate declared.  O(statements + predicates)."""
    declared = [declaration(p) for p in program.predicates.values() if not (p.declared or p.auxiliary)]
    kept = [_filled(s, program) for s in tree.statements if not _is_fact(s, program)]
    return ast.Program((*kept, *declared), span=tree.span)


def _is_fact(statement: ast.Node, program: Program) -> bool:
    """Whether a statement is about facts alone, or about what is given where a program is loaded."""
    if isinstance(statement, ast.Declaration | ast.Directive):
        name = statement.name if isinstance(statement, ast.Declaration) else statement.predicate
        return name in program.predicates and program.predicates[name].given_to is not None
    return isinstance(statement, _FACTS)


def with_modes(tree: ast.Program, program: Program, modes: Mapping[str, str]) -> tuple[ast.Program, Program]:
    """A checked program with more `.materialize` directives."""
    if not modes:
        return tree, program
    if not isinstance(modes, Mapping):
        raise DataError(f"materialize is {modes!r}", help='give each predicate its mode: {"p": "on_read"}')
    for name in modes:
        if name not in program.predicates:
            raise DataError(f"unknown predicate {name}", help=did_you_mean(name, program.predicates))
    added = parse("\n".join(f".materialize {name} {mode}" for name, mode in modes.items()), "<materialize>")
    earlier = _without_replaced(tree, added.statements).statements
    tree = ast.Program((*earlier, *added.statements), span=tree.span)
    return tree, check_program(tree)


def _filled(statement: ast.Node, program: Program) -> ast.Node:
    """A declaration that leaves types open, with the inferred types."""
    if not isinstance(statement, ast.Declaration) or statement.name not in program.predicates:
        return statement  # an inlined predicate is none of the program's
    full = declaration(program.predicates[statement.name])
    keys = tuple(
        a if a.type else replace(a, type=b.type) for a, b in zip(statement.keys, full.keys, strict=True)
    )
    value = statement.value
    if value is not None and full.value is not None and value.type is None:
        value = replace(value, type=full.value.type)
    return replace(statement, keys=keys, value=value)


def extend(
    database: Database,
    tree: ast.Program,
    program: Program,
    statements: Sequence[ast.Node],
    to_stay: bool = False,
) -> Extension:
    """Checks statements against a settled program.  Raises all their errors together.  Delta rules run once,
    unless they are `to_stay`; those in blocks stay.

    O(statements) if they are facts of known predicates, else O(program).
    """
    queries = [s for s in statements if isinstance(s, ast.Query)]
    once = [s for s in statements if isinstance(s, ast.DeltaRule) and not to_stay]
    others = [s for s in statements if not isinstance(s, ast.Query) and s not in once]
    extension = _extended(database, tree, program, others)
    extension.queries, extension.once = queries, once
    events_with(extension.program, once)
    return extension


def _extended(
    database: Database, tree: ast.Program, program: Program, others: Sequence[ast.Node]
) -> Extension:
    known = {name for name, p in program.predicates.items() if not p.auxiliary}
    if all(isinstance(s, _FACTS) for s in others):
        _require_known(others, known, tree)
    plain = known - program.references
    if all(isinstance(s, _FACTS) and _names(s) <= plain for s in others):
        return Extension(tree, program, _facts_only(program, others))
    tree = _without_replaced(tree, others)
    new = [s for s in others if isinstance(s, _FACTS) or s not in tree.statements]
    checked = check_program(ast.Program((*tree.statements, *new), span=tree.span))
    tables = [
        (d.predicate, _read(database, checked.predicates[d.predicate], d))
        for d in new
        if isinstance(d, ast.Directive) and d.kind == "input"
    ]
    later = settled(checked.source, checked)
    return Extension(later, check_program(later), _facts(checked), tables)


def _without_replaced(tree: ast.Program, statements: Sequence[ast.Node]) -> ast.Program:
    """Without the modes of predicates that get another one, and without the strategy if another is named."""
    named = {_set_by(statement) for statement in statements} - {None}
    rest = [statement for statement in tree.statements if _set_by(statement) not in named]
    return ast.Program(tuple(rest), span=tree.span) if named else tree


def _set_by(statement: ast.Node) -> tuple[str, str] | None:
    """What a statement sets, so that a later one replaces it: the mode of a predicate, or the strategy."""
    if isinstance(statement, ast.Directive) and statement.kind == DIRECTIVE:
        return DIRECTIVE, statement.predicate
    if isinstance(statement, ast.Pragma) and statement.key == PRAGMA:
        return PRAGMA, ""
    return None


def read_fact(view: View, text: str) -> tuple[str, np.ndarray]:
    """The predicate and the row of codes of one fact, as it is written in a program; its `.` is optional."""
    text = text.strip()
    statements = parse(text if text.endswith(".") else f"{text}.", "<fact>").statements
    one = statements[0] if len(statements) == 1 else None
    if not isinstance(one, ast.Facts) or len(one.rows) != 1:
        help = 'a fact has constants only, as in reach(1, 3) or price["tea"] = 3.50'
        raise SourceError("this is not one fact", span=statements[0].span if statements else None, help=help)
    known = view.predicates()
    if one.predicate not in known:
        help_known = did_you_mean(one.predicate, known)
        raise SourceError(f"unknown predicate {one.predicate}", span=one.span, help=help_known)
    ((_, name, rows),) = _facts_only(view.program, [one])
    return name, view.store.literal_rows(name, rows)


def without(tree: ast.Program, text: str) -> tuple[ast.Program, Program]:
    """A settled program without the rules and constraints of a text, which must all exist."""
    removed = parse(text, "<rule>").statements
    kept = list(tree.statements)
    for statement in removed:
        if not isinstance(statement, REMOVABLE):
            raise SourceError("only rules and constraints can be removed", span=statement.span)
        owner = next((s for s in kept if isinstance(s, ast.Block) and statement in s.statements), None)
        if statement not in kept and owner is not None:
            message = f"this belongs to block {owner.name}"
            raise SourceError(message, span=statement.span, help="remove the block")
        if statement not in kept:
            raise SourceError("there is no such rule", span=statement.span, help="write it as it was added")
        kept.remove(statement)
    later = ast.Program(tuple(kept), span=tree.span)
    return later, check_program(later)


def _facts_only(program: Program, statements: Sequence[ast.Node]) -> list[tuple[str, str, Literals]]:
    """Checked against the declarations of just the predicates they name."""
    named = dict.fromkeys(name for s in statements for name in sorted(_names(s)))
    declared = [declaration(program.predicates[name]) for name in named]
    types = types_of(program) if any(program.predicates[name].has_records for name in named) else []
    return _facts(check_program(ast.Program((*types, *declared, *statements))))


def _facts(checked: Program) -> list[tuple[str, str, Literals]]:
    """Plain facts first, then deltas in order; neighbours of one kind together."""
    out: list[tuple[str, str, Literals]] = [("+", b.predicate, list(b.rows)) for b in checked.facts]
    for delta in checked.deltas:
        if out and out[-1][:2] == (delta.op, delta.predicate) and delta.op != "^":
            out[-1][2].append(delta.row)
        else:
            out.append((delta.op, delta.predicate, [delta.row]))
    return out


def _require_known(statements: Iterable[ast.Node], known: set[str], tree: ast.Program) -> None:
    """`+ - ^` do not create a predicate: a misspelt name would go unnoticed.  A plain fact of the text
    does.
    """
    known = known | {s.predicate for s in statements if isinstance(s, ast.Facts)}
    for statement in statements:
        for delta in statement.deltas if isinstance(statement, ast.DeltaStatement) else ():
            name = _name(delta.atom)
            if name is not None and name not in known:
                raise _unknown(name, delta, known, tree)


def _unknown(name: str, delta: ast.Delta, known: set[str], tree: ast.Program) -> SourceError:
    declared = [s for s in tree.statements if isinstance(s, ast.Declaration) and s.name == name]
    if any("inline" in s.qualifiers for s in declared):
        message, help = f"{name} is inline: it has no rows of its own", "change what its rules read"
        return SourceError(message, span=delta.span, help=help)
    form = f"{name}[x] = y -> int(x), int(y)." if delta.op == "^" else f"{name}(x) -> int(x)."
    help_known = did_you_mean(name, known, f"declare it first, as in {form}")
    return SourceError(f"unknown predicate {name}", span=delta.span, help=help_known)


def _names(statement: ast.Node) -> set[str]:
    if isinstance(statement, ast.Facts):
        return {statement.predicate}
    deltas = statement.deltas if isinstance(statement, ast.DeltaStatement) else ()
    return {name for d in deltas if (name := _name(d.atom)) is not None}


def _name(atom: ast.Node) -> str | None:
    node = atom.left if isinstance(atom, ast.Comparison) else atom
    return node.name if isinstance(node, ast.Call | ast.Application) else None


def _read(database: Database, predicate: Predicate, directive: ast.Directive) -> Any:
    loaded = read_input(predicate, directive, database.facts_folder)
    report_rejected(predicate.name, loaded, database.warn)
    return loaded.table
