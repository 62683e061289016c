"""Owns the blocks of a live program: statements that are added and removed together, by name."""

from __future__ import annotations

from dlog.errors import DlogError, did_you_mean
from dlog.ir.check import check_program
from dlog.ir.rules import Program
from dlog.language import ast
from dlog.language.blocks import grouped
from dlog.language.parse import expand_includes, parse
from dlog.language.printing import format_node


def block_of(name: str, text: str, place: str) -> ast.Block:
    """Statements as a block."""
    start = expand_includes(parse(f"block(`{name}) {{ }}", "<block>")).statements
    if len(start) != 1 or not isinstance(start[0], ast.Block):
        raise DlogError(f"a block cannot be called {name}", help="its name is like that of a predicate")
    program = expand_includes(parse(text, place))
    return ast.Block(start[0].start, tuple(grouped(program.statements)), span=program.span)


def blocks_of(tree: ast.Program) -> dict[str, str]:
    """The text of each block by name."""
    return {
        s.name: "\n".join(map(format_node, s.statements)) for s in tree.statements if isinstance(s, ast.Block)
    }


def without_block(tree: ast.Program, name: str) -> tuple[ast.Program, Program]:
    """A settled program without a block, which must exist."""
    known = blocks_of(tree)
    if name not in known:
        otherwise = f"there are {', '.join(known)}" if known else "there are none"
        raise DlogError(f"there is no block {name}", help=did_you_mean(name, known, otherwise))
    kept = tuple(s for s in tree.statements if not (isinstance(s, ast.Block) and s.name == name))
    later = ast.Program(kept, span=tree.span)
    return later, check_program(later)
