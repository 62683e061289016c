"""Owns names that generated C++ can have: `v_t` for a variable t, `m_t` for a map, `REL_T` for a relation.

Maps and relations become members of a class, keys members of structures, and variables local, beside the
names of the generator, of C++ and of macros.  A name gets a prefix if it is one of these, or has one letter,
or is another map's, relation's or variable's.  Relations are in upper case, as the code that calls triggers
expects.  A map that is a query has the query's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from dlog.m3.syntax import ast
from dlog.m3.syntax.rewrite import rewritten

VARIABLE, MAP, RELATION = "v_", "m_", "REL_"

CPP = frozenset((
    "alignas", "alignof", "and", "and_eq", "asm", "atomic_cancel", "atomic_commit", "atomic_noexcept",
    "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char", "char16_t", "char32_t",
    "char8_t", "class", "co_await", "co_return", "co_yield", "compl", "concept", "const", "const_cast",
    "consteval", "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double",
    "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "final", "float", "for",
    "friend", "goto", "if", "import", "inline", "int", "long", "module", "mutable", "namespace", "new",
    "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "override", "private",
    "protected", "public", "reflexpr", "register", "reinterpret_cast", "requires", "return", "short",
    "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "synchronized",
    "template", "this", "thread_local", "throw", "true", "try", "typedef", "typeid", "typename",
    "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq",
))  # fmt: skip
# Of macros and of the headers that are read without a namespace.
_HEADERS = frozenset((
    "assert", "errno", "linux", "unix", "major", "minor", "makedev", "stdin", "stdout", "stderr",
    "null", "eof", "string", "date", "std",
))  # fmt: skip
# Of the generated classes and functions.
_GENERATED = frozenset((
    "t0", "tt", "tn", "ts", "tlastn", "data", "data_t", "tlq_t", "program", "snapshot_t", "serialize",
    "register_data", "registermaps", "registersources", "program_base", "process_tables",
    "process_streams", "process_stream_event", "process_table_event", "take_snapshot", "batch",
    "batchsize", "modify", "nxt", "prv", "other", "ar", "ea",
))  # fmt: skip
# Locals of the generator, which have numbers.
_NUMBERED = re.compile(r"(se|st|sum|agg|entry|source|preg|[cehilnv])\d+", re.IGNORECASE)


def is_taken(name: str) -> bool:
    """Whether generated C++ cannot have the name, or has it.

    >>> [name for name in ("t", "price", "Class", "h2", "s2", "tN") if is_taken(name)]
    ['t', 'Class', 'h2', 'tN']
    """
    lower = name.lower()
    is_own = lower in CPP or lower in _HEADERS or lower in _GENERATED
    return len(name) == 1 or is_own or _NUMBERED.fullmatch(name) is not None


def with_names(program: ast.Program) -> ast.Program:
    """The program with such names.  REQUIRES: a query whose expression is a map is for that map alone."""
    variables = _renamed(_variables(program), VARIABLE, ())
    relations = _renamed_upper(s.name for s in program.sources)
    results = {q.expression.name: q.name for q in program.queries if isinstance(q.expression, ast.MapAccess)}
    taken = {*variables.values(), *relations.values(), *(f"DELTA_{name}" for name in relations.values())}
    own = [m.name for m in program.maps if m.name not in results]
    maps = _renamed(own, MAP, taken)
    shown = _renamed((q.name for q in program.queries), MAP, {*taken, *maps.values()})
    maps |= {name: shown[query] for name, query in results.items()}

    def change(node: ast.Node) -> ast.Node:
        if isinstance(node, ast.Variable | ast.Column):
            return replace(node, name=variables[node.name])
        if isinstance(node, ast.Source | ast.Relation | ast.DeltaRelation):
            return replace(node, name=relations[node.name])
        if isinstance(node, ast.Trigger) and node.relation is not None:
            return replace(node, relation=relations[node.relation])
        if isinstance(node, ast.MapDeclaration | ast.MapAccess):
            return replace(node, name=maps[node.name])
        return replace(node, name=shown[node.name]) if isinstance(node, ast.Query) else node

    return rewritten(program, change)


def _variables(program: ast.Program) -> Iterable[str]:
    return dict.fromkeys(n.name for n in program.walk() if isinstance(n, ast.Variable | ast.Column))


def _renamed(names: Iterable[str], prefix: str, taken: Iterable[str]) -> dict[str, str]:
    """A name for each, no two equal in any case."""
    used, found = {name.lower() for name in taken}, {}
    given = list(names)
    for name in sorted(given, key=is_taken):  # names that stay come first
        new = prefix + name if is_taken(name) or name.lower() in used else name
        while new.lower() in used:
            new += "_"
        used.add(new.lower())
        found[name] = new
    return found


def _renamed_upper(names: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        new = (RELATION + name if is_taken(name) else name).upper()
        while new in found.values():
            new += "_"
        found[name] = new
    return found
