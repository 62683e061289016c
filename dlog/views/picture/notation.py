"""Owns the notation of views: V with its variable raised and its relations lowered, and
definitions in the paper's operators (2.2.11).  Knows nothing of M3's text and of drawing.

    V@A R,S,T[] = ⊕A (V@B R[A] ⊗ V@C S,T[A] ⊗ f_A(A))
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dlog.m3.syntax import ast
from dlog.views.picture.text import DELTA, LOWERED, PLUS, RAISED, TIMES, Text, lowered, plain, raised
from dlog.views.query import Query, Term
from dlog.views.tree.tree import EXISTS, View, ViewTree, atom_of

_MOST_RELATIONS = 7  # that are listed below a V
_LONG_NAME = 3  # characters; longer names are abbreviated if several are together


@dataclass(frozen=True)
class Notation:
    """`short` has the short names of atoms, `meant` says what each is; `lifted` has, by a view's identity,
    the products that the terms of the query need there.
    """

    short: dict[str, str]
    meant: dict[str, str]
    lifted: dict[int, list[list[str]]]

    @classmethod
    def of(cls, tree: ViewTree, query: Query | None = None) -> Notation:
        """Without the query, all factors of a view are taken as one product, and names as relations."""
        names = list(tree.root.atoms)
        together = len(names) > 1 and any(len(name) > _LONG_NAME for name in names)
        short = _prefixes(names) if together else {name: name for name in names}
        relations = {name: query.atom(name).relation if query is not None else name for name in names}
        meant = {
            name: " = ".join(dict.fromkeys((short[name], name, relations[name]))) for name in names
        }  # fmt: skip
        short |= {
            name: name.replace(atom_of(name), short[atom_of(name)], 1)
            for name in tree.root.relations
            if name not in short
        }
        return cls(short, meant, _lifted(tree, query) if query is not None else {})

    @property
    def abbreviations(self) -> list[str]:
        """The meaning of each name that is not a relation's own."""
        return [meant for name, meant in self.meant.items() if meant != name]

    # Names

    def name(self, view: View, change: str | None = None, several: bool = False) -> Text:
        """`V@X` over its relations, or a relation; its change when an atom is given that changes.

        `several`: other relations change too, so the change says whose it is.
        """
        delta = _delta(self.short[change] if several else "") if change is not None else ()
        if view.atom is not None:
            exists = plain(EXISTS) if view.is_indicator else ()
            return (*delta, *exists, *plain(view.name.removeprefix(EXISTS), bold=True))
        relations = [self.short[name] for name in view.atoms]
        below = f"{len(relations)} relations" if len(relations) > _MOST_RELATIONS else ",".join(relations)
        return (*delta, *plain("V"), *raised(f"@{view.name}"), *lowered(below))

    def keys(self, view: View) -> list[Text]:
        """`[A, B]`, in pieces between which a line may end."""
        parts = [f"{key}, " for key in view.keys[:-1]] + [*view.keys[-1:]] or [""]
        parts[0], parts[-1] = f"[{parts[0]}", f"{parts[-1]}]" if len(parts) > 1 else f"[{parts[-1]}]"
        return [plain(part) for part in parts]

    # Definitions

    def definition(self, view: View, change: str | None = None, several: bool = False) -> list[Text]:
        """Pieces of a line: `V[keys] = ⊕X (V ⊗ V ⊗ f(X))`.  REQUIRES: the view is not a leaf."""
        head = _followed(self._operand(view, change, several), " = ")
        sums = [(*plain(PLUS), *lowered(variable), *plain(" ")) for variable in view.summed]
        operands = [self._operand(child, change, several) for child in view.children]
        operands += [_words(text) for text in (*self._lifting(view), *map(scalar, view.conditions))]
        if sums and len(operands) > 1:
            operands[0][0] = (*plain("("), *operands[0][0])
            operands[-1] = _followed(operands[-1], ")")
        joined = [_followed(operand, f" {TIMES} ") for operand in operands[:-1]] + operands[-1:]
        return [*head, *sums, *(piece for operand in joined for piece in operand)]

    def _lifting(self, view: View) -> list[str]:
        """The factors; `<x, y, 1>` where aggregates need several products of them."""
        products = self.lifted.get(id(view), [list(map(scalar, view.factors))])
        if len(products) == 1:
            return products[0]
        return [f"<{', '.join(' * '.join(product) or '1' for product in products)}>"]

    def _operand(self, view: View, change: str | None, several: bool) -> list[Text]:
        changed = change if change in view.relations else None
        first, *others = self.keys(view)
        return [(*self.name(view, changed, several), *first), *others]


def _lifted(tree: ViewTree, query: Query) -> dict[int, list[list[str]]]:
    """By a view's identity: the products of its factors that terms need, each once."""
    terms = [term for aggregate in query.aggregates for term in aggregate.terms] or [Term()]
    found: dict[int, list[list[str]]] = {}
    for view in tree.walk():
        products = (tuple(f for f in term.factors if f in view.factors) for term in terms)
        found[id(view)] = [list(map(scalar, product)) for product in dict.fromkeys(products)]
    return found


def _words(text: str) -> list[Text]:
    return [plain(word) for word in re.findall(r"\S+\s*", text)]


def _followed(pieces: list[Text], text: str) -> list[Text]:
    return [*pieces[:-1], (*pieces[-1], *plain(text))]


def changes_of(view: View) -> Sequence[str]:
    """The atoms and indicators whose changes go through a view, in the order of its relations."""
    return [name for name in view.relations if name in view.changes]


def _delta(below: str) -> Text:
    return (*plain(DELTA), *(lowered(below) + plain(" ") if below else ()))


def _prefixes(names: list[str]) -> dict[str, str]:
    """The shortest prefixes that distinguish the names.

    >>> _prefixes(["HOUSE", "SHOP", "SCHOOL"])
    {'HOUSE': 'H', 'SHOP': 'SH', 'SCHOOL': 'SC'}
    """
    found: dict[str, str] = {}
    for name in names:
        others = [other.lower() for other in names if other != name]
        lengths = (
            n for n in range(1, len(name) + 1) if not any(o.startswith(name[:n].lower()) for o in others)
        )
        found[name] = name[: next(lengths, len(name))]
    return found


# Scalars


def scalar(node: ast.Node) -> str:
    """A lifting function or a condition in readable form.

    >>> scalar(ast.Sum((ast.Call("f", ast.TypeRef("int"), (ast.Variable("a"),)), ast.Constant("int", -1))))
    '(f(a) - 1)'
    """
    if isinstance(node, ast.Variable):
        return node.name
    if isinstance(node, ast.Constant):
        return f"'{node.value}'" if isinstance(node.value, str) else str(node.value)
    if isinstance(node, ast.Product):
        return " * ".join(map(scalar, node.factors))
    if isinstance(node, ast.Sum):
        return f"({_joined([scalar(term) for term in node.terms])})"
    if isinstance(node, ast.Call):
        return _call(node)
    if isinstance(node, ast.Comparison):
        return f"{{{scalar(node.left)} {node.op} {scalar(node.right)}}}"
    assert isinstance(node, ast.In), node
    return f"{{{scalar(node.operand)} in {', '.join(map(scalar, node.values))}}}"


def _joined(terms: list[str]) -> str:
    text = terms[0]
    for term in terms[1:]:
        negative = term.startswith("-")
        rest = term.removeprefix("-1 * ") if term.startswith("-1 * ") else term.removeprefix("-")
        text += f" - {rest}" if negative else f" + {term}"
    return text


def _call(node: ast.Call) -> str:
    arguments = ", ".join(map(scalar, node.arguments))
    if node.function == "/" and len(node.arguments) == 1:
        return f"1 / {arguments}"
    parameters = f"<{', '.join(map(str, node.parameters))}>" if node.parameters else ""
    return f"{node.function}{parameters}({arguments})"


# Text


def flat(text: Sequence[Text] | Text) -> str:
    """Rich text in one line of characters: what is lowered comes after `_`, in braces when it is long.

    >>> flat((*plain("V"), *raised("@A"), *lowered("R,S"), *plain("[A]")))
    'V@A_{R,S}[A]'
    """
    runs = [run for part in text for run in (part if isinstance(part, tuple) else (part,))]
    found = ""
    for run in runs:
        if run.shift == LOWERED:
            found += f"_{run.text}" if run.text.isalnum() else f"_{{{run.text}}}"
        else:
            assert run.shift in (0.0, RAISED)
            found += run.text
    return found


def explain(tree: ViewTree, query: Query | None = None) -> str:
    """A view tree as text: which views are materialised, which relations change them, and every definition.

    >>> leaf = View("R", ("A", "B"), ("R",), atom="R", changes=("R",))
    >>> root = View("A", (), ("R",), ("A", "B"), (leaf,), (ast.Variable("A"),), (), None, True, ("R",))
    >>> from dlog.views.tree.tree import VariableOrder
    >>> print(explain(ViewTree(root, VariableOrder(()))), end="")
    V@A_R[]  materialised, changes with R
    └── R[A, B]  stream
    <BLANKLINE>
    V@A_R[] = ⊕_A ⊕_B (R[A, B] ⊗ A)
    δV@A_R[] = ⊕_A ⊕_B (δR[A, B] ⊗ A)
    """
    notation = Notation.of(tree, query)
    lines = [*_drawn(tree, notation), ""]
    lines += [flat(pieces) for pieces in definitions(tree, notation)]
    if notation.abbreviations:
        lines += ["", "where " + ", ".join(notation.abbreviations)]
    return "\n".join(lines) + "\n"


def tree_lines(tree: ViewTree, query: Query) -> list[str]:
    """The same in short: the tree, and the definitions of views without those of their changes."""
    notation = Notation.of(tree, query)
    views = (view for view in tree.walk() if not view.is_leaf)
    lines = [*_drawn(tree, notation), *(flat(notation.definition(view)) for view in views)]
    return lines + ([f"where {', '.join(notation.abbreviations)}"] if notation.abbreviations else [])


def _drawn(tree: ViewTree, notation: Notation) -> list[str]:
    return [f"{branch}{_described(notation, view)}" for branch, view in _branches(tree.root)]


def definitions(tree: ViewTree, notation: Notation) -> list[list[Text]]:
    """Of every view, parents first; below it, those of its changes."""
    several = len(tree.root.changes) > 1
    found: list[list[Text]] = []
    for view in tree.walk():
        if not view.is_leaf:
            found.append(notation.definition(view))
            found += [notation.definition(view, change, several) for change in changes_of(view)]
    return found


def _described(notation: Notation, view: View) -> str:
    text = flat([notation.name(view), *notation.keys(view)])
    kind = f"indicator of {view.atom}" if view.is_indicator else "stream" if view.changes else "table"
    notes = [kind] if view.is_leaf else []
    if view.materialised:
        notes.append("materialised")
    if view.changes and not view.is_leaf:
        notes.append(f"changes with {', '.join(dict.fromkeys(map(atom_of, changes_of(view))))}")
    return f"{text}  {', '.join(notes)}" if notes else text


def _branches(root: View) -> list[tuple[str, View]]:
    """The branch that is drawn before each view, parents first.  Without recursion: trees may be deep."""
    found: list[tuple[str, View]] = []
    waiting: list[tuple[str, str, View]] = [("", "", root)]
    while waiting:
        branch, below, view = waiting.pop()
        found.append((branch, view))
        children = list(view.children)
        for child in reversed(children):
            last = child is children[-1]
            line, space = ("└── ", "    ") if last else ("├── ", "│   ")
            waiting.append((below + line, below + space, child))
    return found
