"""Owns the check that rings have the products that a program needs: elements with floats.  Writes no code."""

from __future__ import annotations

from collections.abc import Mapping

from dlog.errors import UnsupportedError
from dlog.m3.rings.rings import Ring
from dlog.m3.runtime.compile.analysis import Typing
from dlog.m3.runtime.compile.values import FLOAT_KIND, RING_KIND, kind_of
from dlog.m3.syntax import ast


def check_products(program: ast.Program, typing: Typing, rings: Mapping[str, Ring]) -> None:
    """Raises for the first product of an element and a float in a ring that has none.  Definitions of maps
    are not computed.
    """
    for part in (*program.queries, *program.triggers):
        for node in part.walk():
            if isinstance(node, ast.Product):
                _check(node, typing, rings)


def _check(product: ast.Product, typing: Typing, rings: Mapping[str, Ring]) -> None:
    types = [typing.of(factor) for factor in product.factors]
    elements = [type_ for type_ in types if kind_of(type_) == RING_KIND]
    floats = [f for f, t in zip(product.factors, types, strict=True) if kind_of(t) == FLOAT_KIND]
    if not elements or not floats or rings[elements[0].name].takes_floats:
        return
    message = f"{elements[0]} has no product with a {typing.of(floats[0])}"
    help = "give its ring one, Ring(.., by_float=..), or lift the number into the ring: [f: type](x)"
    raise UnsupportedError(message, span=floats[0].span or product.span, help=help)
