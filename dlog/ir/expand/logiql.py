"""Owns the order in which LogiQL's statements are replaced by others, before names are resolved."""

from __future__ import annotations

from dlog.errors import Diagnostics
from dlog.ir.expand.blocks import without_blocks
from dlog.ir.expand.entities import without_entities
from dlog.ir.expand.properties import without_properties
from dlog.ir.expand.widths import with_ranges
from dlog.language import ast


def without_logiql(program: ast.Program, diagnostics: Diagnostics) -> ast.Program:
    """Without blocks, entity types, widths, `lang:` settings and delta rules, of which `dlog.ir.events` takes
    care."""
    program = without_blocks(program, diagnostics)
    program = without_properties(program, diagnostics)
    program = without_entities(program, diagnostics)
    program = with_ranges(program, diagnostics)
    if any(isinstance(s, ast.DeltaRule) for s in program.statements):
        kept = tuple(s for s in program.statements if not isinstance(s, ast.DeltaRule))
        program = ast.Program(kept, span=program.span)
    return program
