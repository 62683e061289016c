"""Owns the layout of canonical text: line breaks, blank lines and where comments go.

Correct output: `parse(format_program(p)) == p`, and formatting the output again changes nothing.  Comments
between statements stay before the statement they precede; a comment after a statement on its line stays
there; a comment inside a statement moves before it.  Annotations are treated like comments.  Blank lines
between statements are kept, at most one at a time.  The contents of components are indented.  What the C
preprocessor replaced or dropped is lost before parsing, comments included: for a program with preprocessor
lines this prints the expansion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from textwrap import indent

from dlog.language import ast, printing
from dlog.language.lexer import statement_end
from dlog.language.parse import comments_of
from dlog.language.printing import format_node
from dlog.language.source import Source

__all__ = ["format_node", "format_program"]

WIDTH = 100
_INDENT = "    "
_BLANK = re.compile(r"\n[ \t\f\v]*\n")


def format_program(program: ast.Program) -> str:
    """The canonical text of a program.  O(length of its source).

    >>> from dlog.language.parse import parse
    >>> print(format_program(parse("r(x,y):-e(x,y). // one\\n.decl e(x:number,y:number)")), end="")
    r(x, y) <- e(x, y).  // one
    e(x, y) -> int(x), int(y).
    """
    page = _Page()
    pieces = list(_pieces(program))
    if program.span is not None:
        page.comments_in(program.span.source)
    for index, piece in enumerate(pieces):
        follower = pieces[index + 1] if index + 1 < len(pieces) else None
        page.add(piece, more=follower is not None and follower.begins_with(piece))
    page.finish()
    return "".join(line + "\n" for line in page.lines)


@dataclass
class _Piece:
    """The text of one statement, and where it was; `source` is None if it was not read from a text."""

    text: str
    source: Source | None = None
    start: int = 0
    end: int = 0
    opens: int = 0  # 1 for the start of a component, -1 for its end

    def begins_with(self, other: _Piece) -> bool:
        """Whether both come from the same text, as the two halves of `p(x) -> int(x), q(x).` do."""
        return self.source is other.source is not None and self.start == other.start


@dataclass
class _Cursor:
    """How far a source has been printed: the next comment, and the end of the last thing printed."""

    comments: list[tuple[int, str]]
    index: int = 0
    end: int = 0

    def next_before(self, offset: int) -> tuple[int, str] | None:
        if self.index < len(self.comments) and self.comments[self.index][0] < offset:
            self.index += 1
            return self.comments[self.index - 1]
        return None


@dataclass
class _Page:
    lines: list[str] = field(default_factory=list)
    depth: int = 0  # how many components are open
    cursors: dict[int, tuple[Source, _Cursor]] = field(default_factory=dict)

    def comments_in(self, source: Source) -> _Cursor:
        # The source is stored beside its cursor, since an id is only valid as long as its object lives.
        if id(source) not in self.cursors:
            self.cursors[id(source)] = (source, _Cursor(comments_of(source)))
        return self.cursors[id(source)][1]

    def add(self, piece: _Piece, more: bool) -> None:
        """Prints what comes before a piece, the piece, and, unless `more` of it comes, what follows it."""
        if piece.source is None:
            self._statement(piece)
            return
        cursor = self.comments_in(piece.source)
        while comment := cursor.next_before(piece.end):
            self._comment(piece.source, cursor, comment, limit=piece.start)
        self._blank(piece.source, cursor, piece.start)
        self._statement(piece)
        cursor.end = max(cursor.end, piece.start if more else piece.end)
        if not more:
            self._behind(piece.source, cursor)

    def _statement(self, piece: _Piece) -> None:
        """The contents of a component are indented, its braces are not."""
        before = self.depth
        self.depth = max(0, before + piece.opens)
        self.lines.append(indent(piece.text, _INDENT * min(before, self.depth)))

    def finish(self) -> None:
        for source, cursor in self.cursors.values():
            while comment := cursor.next_before(len(source.text)):
                self._comment(source, cursor, comment, limit=len(source.text))

    def _comment(self, source: Source, cursor: _Cursor, comment: tuple[int, str], limit: int) -> None:
        """A comment on its own lines; one from inside a statement moves to the statement's start."""
        offset, text = comment
        self._blank(source, cursor, min(offset, limit))
        self.lines.append(_INDENT * self.depth + text.rstrip())
        cursor.end = max(cursor.end, min(offset + len(text), limit))

    def _behind(self, source: Source, cursor: _Cursor) -> None:
        """Comments that begin on the line where the last piece ended."""
        while cursor.index < len(cursor.comments):
            offset, text = cursor.comments[cursor.index]
            if source.text[cursor.end : offset].strip(" \t\f\v"):
                return
            self.lines[-1] += "  " + text.rstrip()
            cursor.index += 1
            cursor.end = offset + len(text)
            if "\n" in text:
                return

    def _blank(self, source: Source, cursor: _Cursor, start: int) -> None:
        if self.lines and cursor.end < start and _BLANK.search(source.text, cursor.end, start):
            self.lines.append("")
        cursor.end = max(cursor.end, start)


# Statements with their positions


def _pieces(program: ast.Program) -> Iterator[_Piece]:
    statements = program.statements
    index = 0
    while index < len(statements):
        statement = statements[index]
        count = 1
        if isinstance(statement, ast.Facts):
            yield from _fact_pieces(statement)
        elif isinstance(statement, ast.Directive):
            while index + count < len(statements) and _continues(
                statements[index + count - 1], statements[index + count]
            ):
                count += 1
            yield _directive_piece(statements[index : index + count])
        else:
            yield _placed(_laid_out(statement), statement, statement)
        index += count


def _placed(text: str, first: ast.Node, last: ast.Node) -> _Piece:
    opens = isinstance(first, ast.ComponentStart | ast.BlockStart) - isinstance(first, ast.ComponentEnd)
    if first.span is None:
        return _Piece(text, opens=opens)
    return _Piece(text, first.span.source, first.span.start, last.span.end, opens)


def _fact_pieces(facts: ast.Facts) -> Iterator[_Piece]:
    """One per fact, with its own spelling of numbers."""
    if facts.span is None or len(facts.offsets) != len(facts.rows):
        yield from (_Piece(printing.fact(facts, row)) for row in facts.rows)
        return
    source = facts.span.source
    spelled = printing.OTHER_NUMBER.search(source.text, facts.span.start, facts.span.end) is not None
    for row, start in zip(facts.rows, facts.offsets, strict=True):
        end = statement_end(source.text, start)
        text = printing.fact(facts, row, source.text[start:end] if spelled else "")
        yield _Piece(text, source, start, end)


def _continues(left: ast.Node, right: ast.Node) -> bool:
    """Whether two directives were written as one list, so that they can be printed as one list again."""
    if not isinstance(left, ast.Directive) or not isinstance(right, ast.Directive) or left.span is None:
        return False
    if right.span is None or left.span.source is not right.span.source:
        return False
    between = left.span.source.text[left.span.end : right.span.start]
    same = (left.kind, left.params) == (right.kind, right.params)
    return same and re.sub(r"//[^\n]*|/\*.*?\*/", "", between, flags=re.DOTALL).strip() == ","


def _directive_piece(directives: tuple[ast.Node, ...]) -> _Piece:
    """`.input a, b(delimiter=",")`: parameters at the end of a list apply to all of it."""
    items = [d for d in directives if isinstance(d, ast.Directive)]
    names = [d.predicate for d in items]
    names[-1] += printing.directive_parameters(items[-1])
    text = f".{items[0].kind} {', '.join(names)}"
    if len(text) > WIDTH:
        text = "\n".join(_filled(f".{items[0].kind} ", names))
    return _placed(text, items[0], items[-1])


def _filled(start: str, items: list[str]) -> Iterator[str]:
    """As many items on a line as fit."""
    line = start + items[0]
    for item in items[1:]:
        if len(line) + len(item) + 3 > WIDTH:
            yield line + ","
            line = _INDENT + item
        else:
            line += ", " + item
    yield line


# Line breaks


def _laid_out(statement: ast.Node) -> str:
    """One line if it fits; else one literal per line."""
    text = format_node(statement)
    if len(text) <= WIDTH:
        return text
    if isinstance(statement, ast.Rule) and statement.body is not None:
        start = f"{_broken_head(statement)} <- {printing.aggregations(statement)}".rstrip()
        return _body_below(start, statement.body)
    if isinstance(statement, ast.Constraint):
        return _body_below(f"{printing.constraint_left(statement)} ->", statement.right)
    if isinstance(statement, ast.Query):
        start = "?-" if statement.head is None else f"{printing.literal(statement.head)} <-"
        return _body_below(f"{start} {printing.aggregations(statement)}".rstrip(), statement.body)
    if isinstance(statement, ast.DeltaRule):
        heads = ", ".join(map(printing.delta, statement.heads))
        return _body_below(f"{heads} <- {printing.aggregations(statement)}".rstrip(), statement.body)
    if isinstance(statement, ast.SequenceRule):
        start = f"{printing.formula(statement.head)} <- {printing.sequence(statement)}"
        return _body_below(start, statement.body)
    if isinstance(statement, ast.DeltaStatement):
        return f",\n{_INDENT}".join(map(printing.delta, statement.deltas)) + "."
    if isinstance(statement, ast.Declaration):
        return _broken_declaration(statement)
    return text


def _broken_head(rule: ast.Rule) -> str:
    text = printing.head(rule)
    if len(text) + 3 <= WIDTH or len(rule.heads) == 1:
        return text
    return printing.at_start(",\n".join(printing.heads(rule)), rule.heads[0])


def _body_below(start: str, body: ast.Node) -> str:
    return f"{start}\n{_broken(body)}."


def _broken(body: ast.Node) -> str:
    """The lines of a body: alternatives begin with `;`, literals are below one another.

    a(x) <-
        b(x),
        c(x)
      ; d(x).
    """
    if not isinstance(body, ast.Disjunction):
        return _INDENT + f",\n{_INDENT}".join(map(printing.literal, _items(body)))
    sides = []
    for side in body.items:
        text = _INDENT + printing.conjunction(side)
        sides.append(text if len(text) <= WIDTH else _broken(side))
    return "\n  ; ".join([sides[0], *(side.removeprefix(_INDENT) for side in sides[1:])])


def _items(body: ast.Node) -> tuple[ast.Node, ...]:
    return body.items if isinstance(body, ast.Conjunction) else (body,)


def _broken_declaration(node: ast.Declaration) -> str:
    if printing.is_logiql(node):
        types = f",\n{_INDENT}".join(printing.declaration_types(node))
        return f"{printing.declaration_left(node)} ->\n{_INDENT}{types}."
    parameters = f",\n{_INDENT}".join(printing.declaration_parameters(node))
    return f".decl {node.name}(\n{_INDENT}{parameters}\n){printing.declaration_qualifiers(node)}"
