"""Owns how a view tree is explained."""

from __future__ import annotations

from collections.abc import Mapping

from dlog.views.orders.orders import find_order
from dlog.views.picture.notation import tree_lines
from dlog.views.query import Query
from dlog.views.tree.build import view_tree


def explain_views(query: Query, sizes: Mapping[str, int], reason: str) -> list[str]:
    tree = view_tree(query, find_order(query, sizes))
    return [f"views: a view tree, because {reason}", *tree_lines(tree, query)]
